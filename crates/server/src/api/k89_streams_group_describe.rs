//! StreamsGroupDescribe (89): not built yet, so neither dispatched nor advertised.
