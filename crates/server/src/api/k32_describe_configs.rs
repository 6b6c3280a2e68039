//! DescribeConfigs (32): not built yet, so neither dispatched nor advertised.
