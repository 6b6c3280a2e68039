//! LeaveGroup (13): not built yet, so neither dispatched nor advertised.
