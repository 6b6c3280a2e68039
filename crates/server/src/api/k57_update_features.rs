//! UpdateFeatures (57): not built yet, so neither dispatched nor advertised.
