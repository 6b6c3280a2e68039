//! Consumer groups through the shard, in virtual time.

mod oracle;
