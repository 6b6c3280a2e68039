//! DescribeTopicPartitions (75): not built yet, so neither dispatched nor advertised.
