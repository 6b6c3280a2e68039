//! The topics of this broker: what exists, with which id, partitions and configuration.
//!
//! What the core of the server (groups, data path) builds on; names may change, the meaning should not:
//! - `image(&self) -> Arc<coordinator::TopicImage>`: the present picture, cheap;
//! - `on_change(&self, listener)`: called after each change, in order, with the new image, the names that appeared or
//!   changed, and what was deleted (name and id); used to send `Command::TopicsChanged` to every shard;
//! - `async create_internal(&self, topics: Vec<coordinator::InternalTopic>) -> Vec<(KStr, Result<(), TopicError>)>`:
//!   repartition and changelog topics of a streams group; a topic that exists already with these partitions is success;
//! - `partition(&self, name, index) -> Option<Arc<log::PartitionLog>>` and the same by topic id;
//! - `async ensure(&self, name, partitions, configs)`: for `__consumer_offsets`, before the broker serves.

/// The registry.
#[derive(Debug, Default)]
pub(crate) struct Topics {}
