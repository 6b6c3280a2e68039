//! What generated messages have in common.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::error::{DecodeError, EncodeError};
use crate::kstr::KStr;
use crate::messages::ApiKey;
use crate::reader::Reader;
use crate::uuid::Uuid;
use crate::writer::Writer;

/// What the generated modules need, in one import.
pub(crate) mod prelude {
    pub(crate) use bytes::Bytes;

    pub(crate) use super::{CoordinatorKey, CoordinatorValue, Element, Message, Request, not_in_version, required};
    pub(crate) use crate::error::{DecodeError, EncodeError};
    pub(crate) use crate::kstr::KStr;
    pub(crate) use crate::payload::Payload;
    pub(crate) use crate::reader::Reader;
    pub(crate) use crate::uuid::Uuid;
    pub(crate) use crate::writer::Writer;
}

/// A message of Kafka's protocol, or a record of one of its internal topics.
///
/// `Default` gives the defaults of the schema.
pub trait Message: Element + Default + Clone + Debug + PartialEq {
    /// Name in the schema.
    const NAME: &'static str;
    /// Oldest version.
    const MIN_VERSION: i16;
    /// Newest version, also if Kafka calls it unstable.
    const MAX_VERSION: i16;
    /// First version with compact lengths and tagged fields; `i16::MAX` if there is none.
    const FLEXIBLE_FROM: i16;

    /// Whether `version` has compact lengths and tagged fields.
    #[inline]
    fn is_flexible(version: i16) -> bool {
        version >= Self::FLEXIBLE_FROM
    }

    /// The versions that can be read and written.
    fn versions() -> RangeInclusive<i16> {
        Self::MIN_VERSION..=Self::MAX_VERSION
    }

    /// Reads one message and leaves the cursor behind it. Fails for a version that the message does not have.
    #[inline]
    fn decode(r: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {
        if !(Self::MIN_VERSION..=Self::MAX_VERSION).contains(&version) {
            return Err(DecodeError::Version { message: Self::NAME, version });
        }
        Self::read(r, version, Self::is_flexible(version))
    }

    /// Appends the message. Fails for a version that the message does not have, for null where the version has no null,
    /// and for a value that the version cannot carry and the schema does not allow to drop.
    #[inline]
    fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        if !(Self::MIN_VERSION..=Self::MAX_VERSION).contains(&version) {
            return Err(EncodeError::Version { message: Self::NAME, version });
        }
        self.write(w, version, Self::is_flexible(version))
    }
}

/// A request, and the response it gets.
pub trait Request: Message {
    /// The key that names it in the header.
    const KEY: ApiKey;
    /// What answers it, in the same version.
    type Response: Message;
}

/// The key of a record of `__consumer_offsets` or `__transaction_state`: on disk a 16-bit record type, then this.
pub trait CoordinatorKey: Message {
    /// The 16-bit number before the key.
    const RECORD_TYPE: i16;
    /// The value that goes with it.
    type Value: CoordinatorValue;
}

/// The value of a record of `__consumer_offsets` or `__transaction_state`: on disk a 16-bit version, then this.
pub trait CoordinatorValue: Message {
    /// The number of the key that goes with it.
    const RECORD_TYPE: i16;
}

/// What arrays consist of, and how structs are read and written. The version has been checked already.
#[doc(hidden)]
pub trait Element: Sized {
    fn read(r: &mut Reader<'_>, version: i16, flexible: bool) -> Result<Self, DecodeError>;
    fn write(&self, w: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError>;
}

macro_rules! fixed_size_element {
    ($($name:ident)*) => {$(
        impl Element for $name {
            #[inline]
            fn read(r: &mut Reader<'_>, _: i16, _: bool) -> Result<Self, DecodeError> {
                r.$name()
            }

            #[inline]
            fn write(&self, w: &mut Writer, _: i16, _: bool) -> Result<(), EncodeError> {
                w.$name(*self);
                Ok(())
            }
        }
    )*};
}

fixed_size_element!(i8 i16 u16 i32 i64 f64 bool);

impl Element for Uuid {
    #[inline]
    fn read(r: &mut Reader<'_>, _: i16, _: bool) -> Result<Self, DecodeError> {
        r.uuid()
    }

    #[inline]
    fn write(&self, w: &mut Writer, _: i16, _: bool) -> Result<(), EncodeError> {
        w.uuid(self);
        Ok(())
    }
}

impl Element for KStr {
    #[inline]
    fn read(r: &mut Reader<'_>, _: i16, flexible: bool) -> Result<Self, DecodeError> {
        r.string(flexible)
    }

    #[inline]
    fn write(&self, w: &mut Writer, _: i16, flexible: bool) -> Result<(), EncodeError> {
        w.string(self, flexible)
    }
}

/// The value of a field that can be null in some versions, for a version in which it cannot.
#[inline]
pub(crate) fn required<'a, T>(value: &'a Option<T>, field: &'static str) -> Result<&'a T, EncodeError> {
    value.as_ref().ok_or(EncodeError::Null { field })
}

#[cold]
pub(crate) fn not_in_version<T>(field: &'static str, version: i16) -> Result<T, EncodeError> {
    Err(EncodeError::FieldNotInVersion { field, version })
}
