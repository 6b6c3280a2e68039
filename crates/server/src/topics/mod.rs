//! The topics of this broker: what exists, with which id, partitions and configuration.

/// The registry.
#[derive(Debug, Default)]
pub(crate) struct Topics {}
