//! StreamsGroupTopologyDescriptionUpdate (93): not built yet, so neither dispatched nor advertised.
