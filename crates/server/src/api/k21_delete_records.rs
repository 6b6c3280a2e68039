//! DeleteRecords (21): not built yet, so neither dispatched nor advertised.
