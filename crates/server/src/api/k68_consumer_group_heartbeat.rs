//! ConsumerGroupHeartbeat (68): not built yet, so neither dispatched nor advertised.
