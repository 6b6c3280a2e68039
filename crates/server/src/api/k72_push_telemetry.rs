//! PushTelemetry (72): not built yet, so neither dispatched nor advertised.
