//! Which names topics may have.

use wire::ErrorCode;

use super::error::Refusal;
use super::journal::METADATA_TOPIC;

const MAX_CHARS: usize = 249;

pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";
pub(crate) const TRANSACTIONS_TOPIC: &str = "__transaction_state";
const SHARE_STATE_TOPIC: &str = "__share_group_state";

/// Topics that clients may not write to (U-5), and that Metadata marks (M-3).
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, OFFSETS_TOPIC | TRANSACTIONS_TOPIC | SHARE_STATE_TOPIC)
}

/// M-6: INVALID_TOPIC_EXCEPTION with Kafka's text.
pub(crate) fn validate(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let why = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." | ".." => format!("'{name}' is not allowed"),
        // Kafka counts UTF-16 units; a name with others than ASCII is refused below anyway.
        _ if name.encode_utf16().count() > MAX_CHARS => {
            format!("the length of '{name}' is longer than the max allowed length {MAX_CHARS}")
        }
        _ if !name.chars().all(legal) => {
            format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(ErrorCode::InvalidTopicException, format!("Topic name is invalid: {why}")))
}

/// The name of the metadata log, which is not a topic for anybody.
pub(crate) fn is_reserved(name: &str) -> bool {
    name == METADATA_TOPIC
}

/// Names that differ only in `.` and `_` collide in the names of metrics. `None` for names that have neither.
pub(super) fn collision_key(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_6_names_have_to_be_letters_digits_dot_underscore_and_dash() {
        for name in ["a", "A.b_c-9", "__internal", "...", &"x".repeat(249)] {
            assert_eq!(validate(name), Ok(()), "{name}");
        }
        let cases = [
            ("", "Topic name is invalid: the empty string is not allowed"),
            (".", "Topic name is invalid: '.' is not allowed"),
            ("..", "Topic name is invalid: '..' is not allowed"),
            (
                "a b",
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
            ),
            (
                "ä",
                "Topic name is invalid: 'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
            ),
        ];
        for (name, expected) in cases {
            let refusal = validate(name).expect_err(name);
            assert_eq!((refusal.code, refusal.to_string().as_str()), (ErrorCode::InvalidTopicException, expected));
        }
        let long = "x".repeat(250);
        assert_eq!(
            validate(&long).expect_err("too long").to_string(),
            format!("Topic name is invalid: the length of '{long}' is longer than the max allowed length 249")
        );
    }

    #[test]
    fn names_collide_that_differ_only_in_dots_and_underscores() {
        assert_eq!(collision_key("a.b"), collision_key("a_b"));
        assert_ne!(collision_key("a.b"), collision_key("a.c"));
        assert_eq!(collision_key("ab"), None);
    }
}
