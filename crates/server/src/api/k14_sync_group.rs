//! SyncGroup (14): not built yet, so neither dispatched nor advertised.
