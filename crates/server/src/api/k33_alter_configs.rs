//! AlterConfigs (33): not built yet, so neither dispatched nor advertised.
