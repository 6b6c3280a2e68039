//! StreamsGroupHeartbeat (88): not built yet, so neither dispatched nor advertised.
