//! ListOffsets (2): not built yet, so neither dispatched nor advertised.
