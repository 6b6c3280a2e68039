//! Settings of the broker: keys with Kafka's names, files, dynamic changes.

/// Everything that can be configured, as a snapshot that changes over time.
#[derive(Debug, Default)]
pub struct Config {}
