//! Regular expressions over topic names (C K-33, decision 25): RE2 syntax, matched against the whole name.
//!
//! Pure, for consumer and streams groups. The server resolves expressions off the shard, for `Effect::ResolveRegex`.

use regex::{Regex, RegexBuilder};
use wire::KStr;

use crate::topics::TopicImage;

/// Bound of the compiled program, so that an expression cannot cost more than this.
const SIZE_LIMIT_BYTES: usize = 1 << 20;

/// Why an expression is refused; a text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegexError(String);

/// Whether the expression can be compiled (C K-33).
pub fn check(expression: &str) -> Result<(), RegexError> {
    compile(expression).map(|_| ())
}

/// For each expression the topics whose whole name it matches, in ascending order.
pub fn resolve(expressions: &[KStr], topics: &TopicImage) -> Vec<(KStr, Result<Vec<KStr>, String>)> {
    let resolve = |expression: &KStr| match compile(expression) {
        Ok(regex) => Ok(topics.iter().map(|(name, _)| name).filter(|name| regex.is_match(name)).cloned().collect()),
        Err(error) => Err(error.0),
    };
    expressions.iter().map(|expression| (expression.clone(), resolve(expression))).collect()
}

/// Matches whole names only.
pub(crate) fn compile(expression: &str) -> Result<Regex, RegexError> {
    let expression = unquote(expression);
    // On its own first: between the anchors, `a)(b` would pass.
    build(&expression)?;
    // A trailing comment of verbose mode would swallow the closing parenthesis.
    build(&format!(r"\A(?:{expression})\z")).or_else(|_| build(&format!("\\A(?:{expression}\n)\\z")))
}

fn build(expression: &str) -> Result<Regex, RegexError> {
    let built = RegexBuilder::new(expression).size_limit(SIZE_LIMIT_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => RegexError(String::from("expression too large")),
        // The last line is the reason, those before it a drawing of the place.
        error => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            RegexError(String::from(reason.trim_start_matches("error: ")))
        }
    })
}

/// `\Q...\E` is RE2's way to quote; the regex library does not know it.
fn unquote(expression: &str) -> String {
    let mut plain = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(at) = find_quote(rest) {
        plain.push_str(&rest[..at]);
        let quoted = &rest[at + 2..];
        let (literal, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
        plain.push_str(&regex::escape(literal));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Where a `\Q` stands whose backslash is not itself escaped.
fn find_quote(expression: &str) -> Option<usize> {
    let mut chars = expression.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == '\\' && chars.next().is_some_and(|(_, next)| next == 'Q') {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use wire::Uuid;

    use super::*;
    use crate::topics::TopicMetadata;

    fn image(names: &[&str]) -> TopicImage {
        let mut image = TopicImage::default();
        for (id, name) in (1..).zip(names) {
            let metadata = TopicMetadata { id: Uuid::from_u128(id), partitions: 1, rack: None };
            image.insert(KStr::copy(name), metadata);
        }
        image
    }

    fn matches(expression: &str, topic: &str) -> bool {
        let resolved = resolve(&[KStr::copy(expression)], &image(&[topic]));
        !resolved[0].1.as_ref().expect("the expression is valid").is_empty()
    }

    #[test]
    fn k_33_the_whole_name_has_to_match() {
        for (expression, topic, expected) in [
            ("o.*", "orders", true),
            ("rder", "orders", false),
            ("orders|users", "users", true),
            ("a|ab", "ab", true),
            ("(?i)ORDERS", "orders", true),
            (r"\Qa.b\E.*", "a.bc", true),
            (r"\Qa.b\E", "axb", false),
            (r"\\Q", r"\Q", true),
            (r"a\Q.", "a.", true),
            ("(?x)ord # comment", "ord", true),
            ("", "", true),
            (r"^orders$", "orders", true),
        ] {
            assert_eq!(matches(expression, topic), expected, "{expression} {topic}");
        }
    }

    #[test]
    fn k_33_what_re2_does_not_know_is_refused() {
        for expression in ["(", "[abc", "(?!x).*", "(?=a)", "(?<=a)b", "a)(b", "a)|(b", r"(a)\1", "*", "a**b("] {
            assert!(check(expression).is_err(), "{expression}");
        }
        assert!(check("o.*|u.*").is_ok());
    }

    #[test]
    fn an_expression_may_not_explode() {
        let error = check("(((a{100}){100}){100}){100}").expect_err("a hundred million states");
        assert_eq!(error.to_string(), "expression too large");
        assert!(check(&"(".repeat(10_000)).is_err());
    }

    #[test]
    fn each_expression_has_its_own_answer() {
        let resolved = resolve(&["b.".into(), "(".into(), "c".into()], &image(&["b2", "a", "b1"]));
        assert_eq!(resolved[0].1, Ok(vec![KStr::from("b1"), KStr::from("b2")]));
        assert!(resolved[1].1.is_err());
        assert_eq!(resolved[2].1, Ok(Vec::new()));
    }
}
