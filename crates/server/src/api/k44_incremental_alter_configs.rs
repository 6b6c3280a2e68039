//! IncrementalAlterConfigs (44): not built yet, so neither dispatched nor advertised.
