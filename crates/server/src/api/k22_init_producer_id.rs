//! InitProducerId (22): not built yet, so neither dispatched nor advertised.
