//! A message as JSON, by way of its `Debug` text.
//!
//! The messages are generated, with hundreds of structs that all derive `Debug` and nothing else that tells their fields. Its form
//! is regular, so one small reader serves all of them, those to come included. What it cannot read stays text.

use std::fmt::Debug;

use serde_json::{Map, Value};

pub fn of(value: &impl Debug) -> Value {
    let text = format!("{value:?}");
    let mut cursor = Cursor { rest: &text };
    match cursor.value() {
        Some(value) if cursor.rest.is_empty() => value,
        _ => Value::String(text),
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Value> {
        if self.eat("[") {
            return self.list();
        }
        if self.rest.starts_with('"') || self.rest.starts_with("b\"") {
            return self.text();
        }
        let end = self.rest.find([',', ' ', '(', ')', ']', '}']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if self.eat(" { ") {
            return self.fields();
        }
        if self.eat("(") {
            // `Some(x)`: what is there is told as such.
            let inner = self.value()?;
            return self.eat(")").then_some(inner);
        }
        Some(match word {
            "" => return None,
            "None" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            // A number, a UUID, or a struct without fields.
            _ => word.parse::<i64>().map_or_else(|_| Value::from(word), Value::from),
        })
    }

    fn list(&mut self) -> Option<Value> {
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.value()?);
            self.eat(", ");
        }
        Some(Value::Array(items))
    }

    fn fields(&mut self) -> Option<Value> {
        let mut object = Map::new();
        while !self.eat(" }") {
            let (name, rest) = self.rest.split_once(": ")?;
            self.rest = rest;
            let value = self.value()?;
            object.insert(name.to_owned(), value);
            self.eat(", ");
        }
        Some(Value::Object(object))
    }

    /// A string, or bytes: those keep the escapes that `Debug` gives them.
    fn text(&mut self) -> Option<Value> {
        let is_bytes = self.eat("b");
        self.eat("\"");
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(Value::String(text));
                }
                '\\' if is_bytes => {
                    text.push(c);
                    text.push(chars.next()?.1);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '0' => text.push('\0'),
                    'u' => {
                        let rest = &self.rest[at..];
                        let code = rest.get(rest.find('{')? + 1..rest.find('}')?)?;
                        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                        chars.by_ref().find(|(_, c)| *c == '}')?;
                    }
                    other => text.push(other),
                },
                _ => text.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
    use wire::{Bytes, KStr, Uuid};

    use super::*;

    #[test]
    fn a_message_becomes_an_object_with_its_fields() {
        let value = GroupMetadataValue {
            protocol_type: "consumer".into(),
            generation: -7,
            protocol: Some("a \"quoted\", [odd] {name}: \\ \n\u{7f}é".into()),
            leader: None,
            members: vec![
                MemberMetadata {
                    member_id: "m".into(),
                    subscription: Bytes::from_static(b"\0\x01\"x"),
                    ..Default::default()
                },
                MemberMetadata::default(),
            ],
            ..Default::default()
        };
        let found = of(&value);
        assert_eq!(found["generation"], json!(-7));
        assert_eq!(found["protocol"], json!("a \"quoted\", [odd] {name}: \\ \n\u{7f}é"));
        assert_eq!(found["leader"], Value::Null);
        assert_eq!(found["members"][0]["subscription"], json!("\\0\\x01\\\"x"));
        assert_eq!(found["members"][1]["member_id"], json!(""));
        assert_eq!(found["members"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn simple_values_keep_their_types_and_what_is_strange_stays_text() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        struct Parts {
            id: Uuid,
            flag: bool,
            list: Vec<i32>,
            name: Option<KStr>,
        }
        let parts = Parts { id: Uuid::from_u128(1), flag: true, list: vec![], name: Some("x".into()) };
        let id = Uuid::from_u128(1).to_string();
        assert_eq!(of(&parts), json!({ "id": id, "flag": true, "list": [], "name": "x" }));
        assert_eq!(of(&(1, 2)), json!("(1, 2)"));
        assert_eq!(of(&("a".."b")), json!("\"a\"..\"b\""));
    }
}
