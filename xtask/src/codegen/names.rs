//! Kafka's names in Rust's spelling.

const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
    "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];

/// `KRaftVersion` becomes `kraft_version`, `Type` becomes `type_`.
pub fn snake(name: &str) -> String {
    let name = name.replace("KRaft", "Kraft");
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        if c.is_uppercase() && i > 0 {
            let after_word = !chars[i - 1].is_uppercase();
            let before_word = chars.get(i + 1).is_some_and(|next| next.is_lowercase());
            if after_word || before_word {
                out.push('_');
            }
        }
        out.extend(c.to_lowercase());
    }
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case() {
        for (name, expected) in [
            ("ThrottleTimeMs", "throttle_time_ms"),
            ("topicId", "topic_id"),
            ("Type", "type_"),
            ("KRaftVersionFeature", "kraft_version_feature"),
            ("HTTPPort", "http_port"),
        ] {
            assert_eq!(snake(name), expected);
        }
    }
}
