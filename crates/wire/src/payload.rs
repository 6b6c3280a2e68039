//! The records of a response: bytes, or a promise of bytes that are nowhere in memory.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A run of bytes in a message. What is read is always [`Payload::Bytes`].
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    Bytes(Bytes),
    Remote(Remote),
}

/// Bytes that whoever sends the message puts into the stream from where they are, a file say. What `source` is, is between the one who
/// makes the message and the one who sends it.
#[derive(Clone)]
pub struct Remote {
    len: usize,
    source: Arc<dyn Any + Send + Sync>,
}

impl Remote {
    /// `len`: how many bytes `source` will give, exactly.
    pub fn new(len: usize, source: Arc<dyn Any + Send + Sync>) -> Remote {
        Remote { len, source }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn source(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.source
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes elsewhere", self.len)
    }
}

/// The same if they are the same bytes of the same source.
impl PartialEq for Remote {
    fn eq(&self, other: &Remote) -> bool {
        self.len == other.len && Arc::ptr_eq(&self.source, &other.source)
    }
}

impl Payload {
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Remote(remote) => remote.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are here: always in a message that was read.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Payload::Bytes(bytes) => Some(bytes),
            Payload::Remote(_) => None,
        }
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::Bytes(Bytes::new())
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload::Bytes(bytes)
    }
}
