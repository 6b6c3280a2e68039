//! ConsumerGroupDescribe (69): not built yet, so neither dispatched nor advertised.
