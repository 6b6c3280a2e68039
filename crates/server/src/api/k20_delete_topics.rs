//! DeleteTopics (20): not built yet, so neither dispatched nor advertised.
