//! Metadata (3): not built yet, so neither dispatched nor advertised.
