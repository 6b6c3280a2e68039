//! What is generated over all messages together.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::names::snake;
use super::schema::{Kind, Role, Schema};

/// `mod.rs`.
pub fn modules(schemas: &[Schema]) -> String {
    let mut out = String::from(
        "//! The messages of Kafka's protocol and of its internal topics, a module each.\n\n\
         pub mod api_key;\npub mod coordinator_records;\n",
    );
    for schema in schemas {
        let _ = writeln!(out, "pub mod {};", snake(&schema.name));
    }
    out += "\npub use api_key::ApiKey;\n\
            pub use coordinator_records::{GroupRecordType, TransactionRecordType};\n";
    for schema in schemas {
        let _ = writeln!(out, "pub use {}::{};", snake(&schema.name), schema.name);
    }
    out += "\n/// Calls a macro with the names of all messages, for tests that go over every one of them.\n\
            #[doc(hidden)]\n#[macro_export]\nmacro_rules! for_each_message {\n\
            ($macro:ident) => {\n$macro! {\n";
    for schema in schemas {
        let _ = writeln!(out, "            {}", schema.name);
    }
    out += "}\n};\n}\n";
    out
}

/// `api_key.rs`.
pub fn api_keys(schemas: &[Schema]) -> Result<String> {
    let mut apis = Vec::new();
    for request in schemas.iter().filter(|s| s.role == Role::Request) {
        let name = request.name.trim_end_matches("Request");
        let response = schemas.iter().find(|s| s.name == format!("{name}Response"));
        let response = response.with_context(|| format!("{name} has no response"))?;
        ensure!(response.versions == request.versions, "{name}: versions differ");
        let key = request.api_key.with_context(|| format!("{name} has no key"))?;
        apis.push((key, name, request, response));
    }
    apis.sort_by_key(|api| api.0);

    let (mut versions, mut request_flexible, mut response_flexible) = Default::default();
    let arm = |out: &mut String, name, value| writeln!(out, "Self::{name} => {value},");
    for (_, name, request, response) in &apis {
        let newest = request.versions.hi - i16::from(request.latest_unstable);
        arm(&mut versions, name, format!("{}..={newest}", request.versions.lo))?;
        arm(&mut request_flexible, name, flexible_from(request))?;
        if *name == "ApiVersions" {
            // The client cannot know yet what the broker speaks, so this header never changed.
            arm(&mut response_flexible, name, "i16::MAX".to_owned())?;
        } else {
            arm(&mut response_flexible, name, flexible_from(response))?;
        }
    }
    let values: Vec<(i16, &str)> = apis.iter().map(|api| (api.0, api.1)).collect();
    let mut out = String::from(
        "//! The kinds of requests.\n\nuse std::fmt;\nuse std::ops::RangeInclusive;\n\n\
         use crate::error::UnknownCode;\n\n",
    );
    out += &numbered_enum("ApiKey", "The kind of a request, as its header names it.", "API", &values);
    let _ = write!(
        out,
        "impl ApiKey {{
            /// The versions that are stable. A message may have one more, which is not.
            pub const fn versions(self) -> RangeInclusive<i16> {{
                match self {{ {versions} }}
            }}

            const fn request_flexible_from(self) -> i16 {{
                match self {{ {request_flexible} }}
            }}

            const fn response_flexible_from(self) -> i16 {{
                match self {{ {response_flexible} }}
            }}

            /// Version of the `RequestHeader` before a request of this version.
            pub const fn request_header_version(self, api_version: i16) -> i16 {{
                if api_version >= self.request_flexible_from() {{ 2 }} else {{ 1 }}
            }}

            /// Version of the `ResponseHeader` before a response of this version. Always 0 for `ApiVersions`.
            pub const fn response_header_version(self, api_version: i16) -> i16 {{
                if api_version >= self.response_flexible_from() {{ 1 }} else {{ 0 }}
            }}
        }}\n\n"
    );
    Ok(out)
}

fn flexible_from(schema: &Schema) -> String {
    if schema.flexible.is_empty() { "i16::MAX".to_owned() } else { schema.flexible.lo.to_string() }
}

/// `coordinator_records.rs`.
pub fn record_types(schemas: &[Schema]) -> String {
    let mut out = String::from(
        "//! The types of records in the coordinators' internal topics.\n\nuse std::fmt;\n\n\
         use crate::error::UnknownCode;\n\n",
    );
    for (kind, name, topic) in [
        (Kind::Group, "GroupRecordType", "__consumer_offsets"),
        (Kind::Transaction, "TransactionRecordType", "__transaction_state"),
    ] {
        let keys = schemas.iter().filter(|s| s.kind == kind && s.role == Role::CoordinatorKey);
        let mut values: Vec<(i16, &str)> =
            keys.filter_map(|s| Some((s.api_key?, s.name.trim_end_matches("Key")))).collect();
        values.sort_unstable();
        let about = format!(
            "The types of records in `{topic}`: the number before the key. The messages are named after it, with \
             `Key` and `Value`."
        );
        out += &numbered_enum(name, &about, "record type", &values);
    }
    out
}

/// An enum over 16-bit numbers, with its conversions and names.
fn numbered_enum(name: &str, about: &str, what: &str, values: &[(i16, &str)]) -> String {
    let (mut variants, mut from, mut names, mut all) = <(String, String, String, String)>::default();
    for (number, value) in values {
        let _ = writeln!(variants, "/// {number}\n{value} = {number},");
        let _ = writeln!(from, "{number} => Self::{value},");
        let _ = writeln!(names, "Self::{value} => \"{value}\",");
        let _ = writeln!(all, "Self::{value},");
    }
    format!(
        "/// {about}
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum {name} {{ {variants} }}

        impl {name} {{
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[{all}];

            /// The number on the wire.
            #[inline]
            pub const fn code(self) -> i16 {{
                self as i16
            }}

            /// Kafka's name.
            pub const fn name(self) -> &'static str {{
                match self {{ {names} }}
            }}
        }}

        impl TryFrom<i16> for {name} {{
            type Error = UnknownCode;

            fn try_from(code: i16) -> Result<Self, UnknownCode> {{
                Ok(match code {{
                    {from}
                    _ => return Err(UnknownCode {{ what: \"{what}\", code }}),
                }})
            }}
        }}

        impl fmt::Display for {name} {{
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {{
                f.pad(self.name())
            }}
        }}\n\n"
    )
}
