//! DescribeGroups (15): not built yet, so neither dispatched nor advertised.
