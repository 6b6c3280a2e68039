//! Tests of streams groups over a whole shard.

mod matching;
mod messages;
mod scenarios;
