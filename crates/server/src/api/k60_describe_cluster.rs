//! DescribeCluster (60): not built yet, so neither dispatched nor advertised.
