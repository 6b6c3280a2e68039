//! DeleteGroups (42): not built yet, so neither dispatched nor advertised.
