//! CreateTopics (19): not built yet, so neither dispatched nor advertised.
