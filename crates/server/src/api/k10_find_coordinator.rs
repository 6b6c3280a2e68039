//! FindCoordinator (10): not built yet, so neither dispatched nor advertised.
