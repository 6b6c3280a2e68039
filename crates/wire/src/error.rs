//! What can go wrong while bytes become messages, and messages bytes.

use thiserror::Error;

/// The bytes are not what the schema says. The connection that sent them is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A value needs more bytes than the frame has left.
    #[error("{needed} bytes needed, {left} left")]
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes left in the frame.
        left: usize,
    },
    /// A length below -1, or above what the type allows.
    #[error("invalid length {0}")]
    Length(i64),
    /// More elements than bytes left: no array can be that long.
    #[error("array of {elements} elements in {left} bytes")]
    ArrayLength {
        /// Elements that the array claims.
        elements: usize,
        /// Bytes left in the frame.
        left: usize,
    },
    /// A variable-length integer that does not fit its type.
    #[error("variable-length integer too long")]
    Varint,
    /// A string that is not UTF-8.
    #[error("string is not UTF-8")]
    Utf8,
    /// Null where this version of the message has no null.
    #[error("null in a field that cannot be null")]
    Null,
    /// A version that the message does not have.
    #[error("{message} has no version {version}")]
    Version {
        /// Name of the message.
        message: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// A known tagged field whose value is shorter than its announced size.
    #[error("tagged field {tag} has {extra} bytes too many")]
    TaggedSize {
        /// The field's tag.
        tag: u32,
        /// Bytes left over.
        extra: usize,
    },
    /// Bytes after the end of the message, where none may be.
    #[error("{0} bytes after the message")]
    Trailing(usize),
}

/// The message cannot be written in the version asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// A version that the message does not have.
    #[error("{message} has no version {version}")]
    Version {
        /// Name of the message.
        message: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// A field has a value, but the version has no such field, and dropping it would change the meaning.
    #[error("{field} is set, but version {version} does not have it")]
    FieldNotInVersion {
        /// Struct and field.
        field: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// Null where this version of the message has no null.
    #[error("{field} is null, but cannot be")]
    Null {
        /// Struct and field.
        field: &'static str,
    },
    /// A value longer than its length field can say.
    #[error("{0} is too long for its length field")]
    TooLong(usize),
}

/// A number that names nothing: no API key, no error code, no record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no {what} has the number {code}")]
pub struct UnknownCode {
    /// What was looked for.
    pub what: &'static str,
    /// The number.
    pub code: i16,
}
