//! ListConfigResources (74): not built yet, so neither dispatched nor advertised.
