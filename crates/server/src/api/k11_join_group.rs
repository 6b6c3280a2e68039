//! JoinGroup (11): not built yet, so neither dispatched nor advertised.
