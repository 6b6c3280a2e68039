//! Produce (0): not built yet, so neither dispatched nor advertised.
