//! DescribeProducers (61): not built yet, so neither dispatched nor advertised.
