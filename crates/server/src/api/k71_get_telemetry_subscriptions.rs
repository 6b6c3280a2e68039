//! GetTelemetrySubscriptions (71): not built yet, so neither dispatched nor advertised.
