//! Heartbeat (12): not built yet, so neither dispatched nor advertised.
