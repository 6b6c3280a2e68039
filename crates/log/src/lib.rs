//! The storage of partitions: segments in Kafka's own format and layout, synced in groups, recovered from the last checkpoint on.
//!
//! Synchronous code with threads of its own; knows neither groups nor APIs nor sockets. A [`LogDir`] is a data directory, a
//! [`PartitionLog`] the log of one partition in it.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use log::{AppendParams, DirConfig, LogConfig, LogDir, RealFs, SystemClock, TopicId, TopicPartition};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new("data"))?;
//! let partition = dir.create_partition(&TopicPartition::new("topic", 0), TopicId([7; 16]), LogConfig::default())?;
//! let mut batch = wire::batch::BatchBuilder::new();
//! batch.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
//! let info = partition.append(&AppendParams::client(1_700_000_000_000), &batch.build()?)?;
//! partition.when_committed(info.next_offset(), Box::new(|result| println!("durable: {result:?}")));
//! # Ok(()) }
//! ```
//!
//! Rules that hold by what is absent: no append changes anything before its write succeeded; a failed sync is never tried again, the
//! partition goes offline; no lock is held while a file is synced or a listener called; nothing is taken from a file without a check.

mod append;
mod checkpoint;
mod cleaner;
mod compact;
mod config;
mod dir;
mod error;
mod file_range;
mod files;
mod fs;
mod index;
mod lookup;
mod mem_fs;
mod partition;
mod producer_state;
mod read;
mod recovery;
mod retention;
mod scan;
mod segment;
mod shared;
mod snapshot;
mod sound;
mod tail;
mod time_index;
mod txn_index;
mod types;
mod validate;
mod writer;

pub use compact::CompactionReport;
pub use config::{DirConfig, FlushPolicy, LogConfig};
pub use dir::{LogDir, is_data_dir};
pub use error::{AppendError, OpenError, ReadError, RecordError, StorageError};
pub use file_range::FileRange;
pub use fs::{DirEntry, File, Fs, LockGuard, OpenMode, RealFs};
pub use mem_fs::{Faults, MemFs};
pub use partition::PartitionLog;
pub use types::{
    AbortedTransaction, AppendInfo, AppendParams, Clock, Completion, Event, FailureListener, FetchData, Isolation,
    Listener, Offsets, Origin, ProducerInfo, ReadParams, SystemClock, TimestampOffset, TopicId, TopicPartition,
    TxnProtocol, VerificationGuard,
};
pub use writer::Flushes;
