//! Fetch (1): not built yet, so neither dispatched nor advertised.
