//! DescribeLogDirs (35): not built yet, so neither dispatched nor advertised.
