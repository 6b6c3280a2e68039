//! Strings as they come off the wire: a checked piece of the frame, not a copy of it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use bytes::Bytes;
use bytestring::ByteString;

use crate::error::DecodeError;

/// UTF-8 text that is cheap to clone. Compares, orders and hashes like `str`.
///
/// A decoded `KStr` keeps its whole frame alive: what is to live long should keep [`KStr::to_owned_detached`].
#[derive(Clone, Default)]
pub struct KStr(ByteString);

impl KStr {
    /// The empty string.
    pub const EMPTY: Self = Self(ByteString::new());

    /// A string of the program's own text.
    pub const fn from_static(text: &'static str) -> Self {
        Self(ByteString::from_static(text))
    }

    /// A string with a copy of `text`.
    pub fn copy(text: &str) -> Self {
        Self(ByteString::from(text))
    }

    /// A string over `bytes` themselves, if they are UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, DecodeError> {
        ByteString::try_from(bytes).map(Self).map_err(|_| DecodeError::Utf8)
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes behind the text, without a copy.
    pub fn as_shared_bytes(&self) -> &Bytes {
        self.0.as_bytes()
    }

    /// A copy of its own memory, so that the frame this came from can be freed.
    pub fn to_owned_detached(&self) -> Self {
        Self::copy(self)
    }
}

impl Deref for KStr {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for KStr {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for KStr {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&'static str> for KStr {
    fn from(text: &'static str) -> Self {
        Self::from_static(text)
    }
}

impl From<String> for KStr {
    fn from(text: String) -> Self {
        Self(ByteString::from(text))
    }
}

impl From<&KStr> for String {
    fn from(text: &KStr) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialEq for KStr {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for KStr {}

impl PartialEq<str> for KStr {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for KStr {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for KStr {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl PartialEq<KStr> for str {
    fn eq(&self, other: &KStr) -> bool {
        *self == **other
    }
}

impl PartialEq<KStr> for &str {
    fn eq(&self, other: &KStr) -> bool {
        **self == **other
    }
}

impl PartialOrd for KStr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KStr {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for KStr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Display for KStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for KStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn a_slice_shares_the_frame_and_a_detached_copy_does_not() {
        let frame = Bytes::from(vec![b'g'; 64]);
        let text = KStr::from_utf8(frame.slice(8..16)).unwrap();
        assert_eq!(text.as_ptr(), frame[8..].as_ptr());
        assert_eq!(text.clone().as_ptr(), text.as_ptr());
        let copy = text.to_owned_detached();
        assert_eq!(copy, text);
        assert_ne!(copy.as_ptr(), text.as_ptr());
    }

    #[test]
    fn only_utf8_is_accepted() {
        let broken = Bytes::from_static(&[b'a', 0xff]);
        assert_eq!(KStr::from_utf8(broken), Err(DecodeError::Utf8));
        assert!(KStr::from_utf8(Bytes::from_static("größe".as_bytes())).is_ok());
    }

    #[test]
    fn compares_orders_and_hashes_like_str() {
        let a = KStr::from("a");
        assert_eq!(a, *"a");
        assert_eq!(a, "a");
        assert_eq!("a", a);
        assert_eq!(*"a", a);
        assert_eq!(a, String::from("a"));
        assert_ne!(a, "b");
        let b = KStr::from(String::from("b"));
        assert!(a < b);
        let hashed: HashMap<KStr, u8> = [(a.clone(), 1)].into();
        assert_eq!(hashed.get("a"), Some(&1));
        let ordered: BTreeMap<KStr, u8> = [(a, 1)].into();
        assert_eq!(ordered.get("a"), Some(&1));
    }

    #[test]
    fn shows_like_str() {
        let text = KStr::copy("a\"b");
        assert_eq!(format!("{text} {text:?} {text:>4}"), "a\"b \"a\\\"b\"  a\"b");
        assert_eq!(KStr::default(), "");
        assert_eq!(KStr::EMPTY.len(), 0);
    }
}
