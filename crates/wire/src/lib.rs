//! Kafka's wire format: the messages of Kafka 4.4, generated from its schemas, and what they are made of.
//!
//! Knows bytes only: no sockets, no files, no groups. Everything read is taken to be hostile; a message that cannot be
//! read is an error, never a panic, and never costs more memory than a small multiple of its bytes.

#![forbid(unsafe_code)]

pub mod batch;
mod codec;
mod error;
mod error_code;
mod key_hash;
mod kstr;
// Formatted by `xtask codegen`, which must give the same bytes everywhere.
#[rustfmt::skip]
pub mod messages;
mod payload;
mod reader;
mod uuid;
pub mod varint;
mod writer;

pub use bytes::Bytes;

pub use codec::{CoordinatorKey, CoordinatorValue, Element, Message, Request};
pub use error::{DecodeError, EncodeError, UnknownCode};
pub use error_code::ErrorCode;
pub use key_hash::{partition_of, string_hash};
pub use kstr::KStr;
pub use messages::ApiKey;
pub use payload::{Payload, Remote};
pub use reader::Reader;
pub use uuid::{ParseUuidError, Uuid};
pub use writer::{ErrorTally, Patch, SPLICE_MIN_BYTES, Writer};
