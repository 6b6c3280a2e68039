//! Kafka's identifiers of topics, directories and incarnations.

use std::fmt;
use std::str::FromStr;

/// 128 bits, written as 22 characters of URL-safe base64. Ordered by its bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

/// A text that is not a [`Uuid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 22 characters of URL-safe base64")]
pub struct ParseUuidError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TEXT_LEN: usize = 22;

impl Uuid {
    /// "No identifier".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is "no identifier".
    pub const fn is_zero(&self) -> bool {
        self.as_u128() == 0
    }

    /// The identifier as one big-endian number.
    pub const fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The identifier of a big-endian number.
    pub const fn from_u128(value: u128) -> Self {
        Self(value.to_be_bytes())
    }

    /// The 16 bytes as they go over the wire.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 128 bits are 21 digits of six bits and one of two, which base64 pads with zeros at the low end.
        let value = self.as_u128();
        let mut text = [0; TEXT_LEN];
        for (i, digit) in text.iter_mut().enumerate() {
            let bits = match 122usize.checked_sub(6 * i) {
                Some(shift) => value >> shift,
                None => value << 4,
            };
            *digit = ALPHABET[(bits & 0x3f) as usize];
        }
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        if text.len() != TEXT_LEN {
            return Err(ParseUuidError);
        }
        let mut value = 0u128;
        for (i, byte) in text.bytes().enumerate() {
            let digit = ALPHABET.iter().position(|&c| c == byte).ok_or(ParseUuidError)? as u128;
            if i + 1 < TEXT_LEN {
                value = value << 6 | digit;
            } else if digit & 0xf == 0 {
                value = value << 2 | digit >> 4;
            } else {
                // Two texts for one identifier would make comparing texts wrong.
                return Err(ParseUuidError);
            }
        }
        Ok(Self::from_u128(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kafkas() {
        // Made with org.apache.kafka.common.Uuid.
        for (value, text) in [
            (0, "AAAAAAAAAAAAAAAAAAAAAA"),
            (1, "AAAAAAAAAAAAAAAAAAAAAQ"),
            (u128::MAX, "_____________________w"),
            (0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, "ASNFZ4mrze_-3LqYdlQyEA"),
        ] {
            let uuid = Uuid::from_u128(value);
            assert_eq!(uuid.to_string(), text);
            assert_eq!(text.parse(), Ok(uuid));
        }
    }

    #[test]
    fn every_bit_survives_a_round_trip() {
        for bit in 0..128 {
            let uuid = Uuid::from_u128(1 << bit);
            assert_eq!(uuid.to_string().parse(), Ok(uuid));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "AAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAA=",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "+AAAAAAAAAAAAAAAAAAAAA",
            "éAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }
}
