//! ListGroups (16): not built yet, so neither dispatched nor advertised.
