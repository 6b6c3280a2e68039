//! One module of Rust per message.

use std::fmt::Write;

use anyhow::{Result, ensure};

use super::schema::{Field, Kind, Role, Schema, Struct, Versions};
use super::types::{Default, Type};

/// Names that the generated functions use themselves.
const LOCALS: &[&str] = &["r", "w", "v", "flexible", "tag"];

/// The module of `schema`.
pub fn module(schema: &Schema) -> Result<String> {
    let mut out = format!("//! `{}` and its parts.\n\nuse crate::codec::prelude::*;\n", schema.name);
    if matches!(schema.role, Role::Request) {
        out.push_str("use super::ApiKey;\n");
    }
    for (i, s) in schema.structs.iter().enumerate() {
        let part = Part { schema, s };
        let about = if i == 0 { message_doc(schema) } else { part_doc(schema, s) };
        out += &part.definition(&about);
        if i == 0 {
            out += &message_impls(schema);
        }
        out += &part.codec()?;
    }
    Ok(out)
}

fn message_doc(schema: &Schema) -> String {
    let Versions { lo, hi } = schema.versions;
    let versions = if lo == hi { format!("version {lo}") } else { format!("versions {lo} to {hi}") };
    let unstable = if schema.latest_unstable { ", the last of them unstable" } else { "" };
    format!("Kafka's `{}`, {versions}{unstable}.", schema.name)
}

fn part_doc(schema: &Schema, s: &Struct) -> String {
    format!("`{}`, a part of [`{}`].", s.name, schema.name)
}

/// The traits of the message itself, beyond its codec.
fn message_impls(schema: &Schema) -> String {
    let Schema { name, versions, flexible, .. } = schema;
    let flexible_from = if flexible.is_empty() { "i16::MAX".to_owned() } else { flexible.lo.to_string() };
    let mut out = format!(
        "impl Message for {name} {{
            const NAME: &'static str = \"{name}\";
            const MIN_VERSION: i16 = {};
            const MAX_VERSION: i16 = {};
            const FLEXIBLE_FROM: i16 = {flexible_from};
        }}\n\n",
        versions.lo, versions.hi
    );
    let key = schema.api_key.unwrap_or_default();
    match schema.role {
        Role::Request => {
            let api = name.trim_end_matches("Request");
            let _ = write!(
                out,
                "impl Request for {name} {{
                    const KEY: ApiKey = ApiKey::{api};
                    type Response = super::{api}Response;
                }}\n\n"
            );
        }
        Role::CoordinatorKey => {
            let value = name.trim_end_matches("Key");
            let _ = write!(
                out,
                "impl CoordinatorKey for {name} {{
                    const RECORD_TYPE: i16 = {key};
                    type Value = super::{value}Value;
                }}\n\n"
            );
        }
        Role::CoordinatorValue => {
            let _ = write!(out, "impl CoordinatorValue for {name} {{ const RECORD_TYPE: i16 = {key}; }}\n\n");
        }
        Role::MetadataRecord => {
            debug_assert_eq!(schema.kind, Kind::Metadata);
            let _ = write!(
                out,
                "impl {name} {{
                    /// The type of this record in the metadata log.
                    pub const API_KEY: i16 = {key};
                }}\n\n"
            );
        }
        Role::Response | Role::Other => {}
    }
    out
}

/// A struct, and the message it belongs to.
struct Part<'a> {
    schema: &'a Schema,
    s: &'a Struct,
}

impl Part<'_> {
    fn definition(&self, about: &str) -> String {
        let Struct { name, fields, .. } = self.s;
        let all_zero = fields.iter().all(|f| rust_default(f).is_none());
        let derive = if all_zero { ", Default" } else { "" };
        let mut out = format!("\n/// {about}\n#[derive(Clone, Debug, PartialEq{derive})]\npub struct {name} {{");
        for field in fields {
            // Prose, in which rustdoc would look for links.
            for line in field.about.replace('[', "\\[").lines() {
                let _ = write!(out, "\n/// {}", line.trim());
            }
            let _ = write!(out, "\npub {}: {},", field.name, rust_type(field));
        }
        out += "\n}\n\n";
        if !all_zero {
            let _ = write!(out, "impl Default for {name} {{ fn default() -> Self {{ Self {{");
            for field in fields {
                let _ = write!(out, "{}: {},", field.name, default_value(field));
            }
            out += "} } }\n\n";
        }
        out
    }

    fn codec(&self) -> Result<String> {
        for field in &self.s.fields {
            ensure!(!LOCALS.contains(&field.name.as_str()), "field {}", field.name);
        }
        let (read, write) = (self.read_body(), self.write_body()?);
        let params = |body: &str| {
            // Most structs use both, but a warning about one that does not would be noise.
            let version = if uses(body, "v") { "v" } else { "_" };
            let flexible = if uses(body, "flexible") { "flexible" } else { "_" };
            format!("{version}: i16, {flexible}: bool")
        };
        Ok(format!(
            "impl Element for {} {{
                fn read(r: &mut Reader<'_>, {}) -> Result<Self, DecodeError> {{\n{read}\n}}

                fn write(&self, w: &mut Writer, {}) -> Result<(), EncodeError> {{\n{write}\n}}
            }}\n",
            self.s.name,
            params(&read),
            params(&write),
        ))
    }

    fn read_body(&self) -> String {
        let mut out = String::new();
        for field in self.s.fields.iter().filter(|f| f.tag.is_none()) {
            let value = self.read_value(field);
            let value = match self.condition(field.versions) {
                None => value,
                Some(condition) => {
                    format!("if {condition} {{ {value} }} else {{ {} }}", default_value(field))
                }
            };
            let _ = writeln!(out, "let {} = {value};", field.name);
        }
        out += &self.read_tags();
        let names: Vec<&str> = self.s.fields.iter().map(|f| f.name.as_str()).collect();
        let _ = write!(out, "Ok(Self {{ {} }})", names.join(", "));
        out
    }

    fn read_value(&self, field: &Field) -> String {
        let flexible = self.flexible(field);
        let plain = field.ty.read(flexible, false);
        if !field.optional {
            return plain;
        }
        let nullable = field.ty.read(flexible, true);
        let present = field.versions.and(self.s.versions);
        match condition(field.nullable, present) {
            None => nullable,
            Some(_) if field.nullable.and(present).is_empty() => format!("Some({plain})"),
            Some(condition) => format!("if {condition} {{ {nullable} }} else {{ Some({plain}) }}"),
        }
    }

    fn read_tags(&self) -> String {
        let mut out = String::new();
        let tagged = self.tagged();
        let read = if tagged.is_empty() {
            "r.skip_tagged_fields()?;".to_owned()
        } else {
            let mut arms = String::new();
            for (tag, field) in &tagged {
                let _ = writeln!(out, "let mut {} = {};", field.name, default_value(field));
                let guard = match self.flexible_condition(field) {
                    None => String::new(),
                    Some(condition) => format!("if {condition}"),
                };
                let value = tagged_form(&self.read_value(field));
                let _ = writeln!(arms, "{tag} {guard} => {} = {value},", field.name);
            }
            format!(
                "r.tagged_fields(|tag, r| {{
                    match tag {{ {arms} _ => return Ok(false), }}
                    Ok(true)
                }})?;"
            )
        };
        out + &self.when_flexible(&read)
    }

    fn write_body(&self) -> Result<String> {
        let mut out = String::new();
        for field in self.s.fields.iter().filter(|f| f.tag.is_none()) {
            let value = self.write_value(field)?;
            match self.condition(field.versions) {
                None => out += &format!("{value};\n"),
                Some(condition) => {
                    let _ = write!(out, "if {condition} {{ {value}; }}");
                    if !field.ignorable {
                        let _ = write!(out, "else if {} {{ {} }}", is_set(field), self.refuse(field));
                    }
                    out.push('\n');
                }
            }
        }
        for (_, field) in self.tagged() {
            if let (Some(absent), false) = (absence(field.versions, self.s.versions), field.ignorable) {
                let (set, refuse) = (is_set(field), self.refuse(field));
                let _ = writeln!(out, "if {absent} && {set} {{ {refuse} }}");
            }
        }
        out += &self.when_flexible(&self.write_tags()?);
        out += "Ok(())";
        Ok(out)
    }

    fn write_value(&self, field: &Field) -> Result<String> {
        let flexible = self.flexible(field);
        let value = format!("self.{}", field.name);
        if field.name == "error_code" && field.ty == Type::Int("i16") {
            return Ok(format!("w.error_code({value})"));
        }
        if !field.optional {
            return Ok(field.ty.write(&value, false, flexible));
        }
        let nullable = field.ty.write_nullable(&value, flexible)?;
        let required = format!("required(&{value}, \"{}.{}\")?", self.s.name, field.name);
        let plain = field.ty.write(&required, true, flexible);
        let present = field.versions.and(self.s.versions);
        Ok(match condition(field.nullable, present) {
            None => nullable,
            Some(_) if field.nullable.and(present).is_empty() => plain,
            Some(condition) => format!("if {condition} {{ {nullable} }} else {{ {plain} }}"),
        })
    }

    fn write_tags(&self) -> Result<String> {
        let tagged = self.tagged();
        if tagged.is_empty() {
            return Ok("w.unsigned_varint(0);".to_owned());
        }
        let (mut flags, mut fields) = (String::new(), String::new());
        let mut names = Vec::new();
        for (tag, field) in &tagged {
            let set = match self.flexible_condition(field) {
                None => is_set(field),
                Some(condition) => format!("{condition} && {}", is_set(field)),
            };
            let _ = writeln!(flags, "let has_{} = {set};", field.name);
            names.push(format!("u32::from(has_{})", field.name));
            let value = tagged_form(&self.write_value(field)?);
            let _ = writeln!(fields, "if has_{} {{ w.tagged_field({tag}, |w| {{ {value}; Ok(()) }})?; }}", field.name);
        }
        Ok(format!("{flags} w.unsigned_varint({});\n{fields}", names.join(" + ")))
    }

    fn refuse(&self, field: &Field) -> String {
        format!("return not_in_version(\"{}.{}\", v);", self.s.name, field.name)
    }

    /// Tagged fields in the order of their tags, which is that of the wire.
    fn tagged(&self) -> Vec<(u32, &Field)> {
        let tagged = self.s.fields.iter().filter_map(|f| Some((f.tag?, f)));
        let mut tagged: Vec<_> = tagged.collect();
        tagged.sort_by_key(|(tag, _)| *tag);
        tagged
    }

    fn flexible(&self, field: &Field) -> &'static str {
        let flexible = self.schema.flexible.and(self.s.versions);
        if field.never_flexible || flexible.and(field.versions).is_empty() {
            "false"
        } else if flexible.contains(field.versions.and(self.s.versions)) {
            "true"
        } else {
            "flexible"
        }
    }

    fn when_flexible(&self, code: &str) -> String {
        let flexible = self.schema.flexible.and(self.s.versions);
        if flexible.is_empty() {
            String::new()
        } else if flexible == self.s.versions {
            format!("{code}\n")
        } else {
            format!("if flexible {{ {code} }}\n")
        }
    }

    /// When a field with these versions is there, as Rust; `None` for always.
    fn condition(&self, versions: Versions) -> Option<String> {
        condition(versions, self.s.versions)
    }

    /// The same for a tagged field, where it is known that the version is flexible.
    fn flexible_condition(&self, field: &Field) -> Option<String> {
        condition(field.versions, self.schema.flexible.and(self.s.versions))
    }
}

/// Tells versions `wanted` from others, as Rust, when `v` is one of `among`; `None` if all are wanted.
fn condition(wanted: Versions, among: Versions) -> Option<String> {
    let Versions { lo, hi } = wanted.and(among);
    match (lo > among.lo, hi < among.hi) {
        (false, false) => None,
        _ if lo == hi => Some(format!("v == {lo}")),
        (true, false) => Some(format!("v >= {lo}")),
        (false, true) => Some(format!("v <= {hi}")),
        (true, true) => Some(format!("({lo}..={hi}).contains(&v)")),
    }
}

/// The opposite of [`condition`].
fn absence(wanted: Versions, among: Versions) -> Option<String> {
    let condition = condition(wanted, among)?;
    for (operator, opposite) in [("==", "!="), (">=", "<"), ("<=", ">")] {
        if condition.starts_with(&format!("v {operator}")) {
            return Some(condition.replace(operator, opposite));
        }
    }
    Some(format!("!{condition}"))
}

fn uses(body: &str, name: &str) -> bool {
    let words = body.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.into_iter().any(|word| word == name)
}

fn rust_type(field: &Field) -> String {
    let ty = field.ty.rust();
    if field.optional { format!("Option<{ty}>") } else { ty }
}

/// Kafka marks a null struct in another way where it is tagged.
fn tagged_form(code: &str) -> String {
    code.replace(".nullable_struct(", ".nullable_tagged_struct(")
}

/// The default if it is not what Rust's `Default` gives.
fn rust_default(field: &Field) -> Option<String> {
    match &field.default {
        Default::Int(number) => Some(number.clone()),
        Default::True => Some("true".to_owned()),
        Default::Null => None,
        Default::Zero if field.optional => Some(format!("Some({})", zero(&field.ty))),
        Default::Zero => None,
    }
}

fn default_value(field: &Field) -> String {
    rust_default(field).unwrap_or_else(|| if field.optional { "None".to_owned() } else { zero(&field.ty) })
}

fn zero(ty: &Type) -> String {
    match ty {
        Type::Bool => "false".to_owned(),
        Type::Int(_) => "0".to_owned(),
        Type::Float64 => "0.0".to_owned(),
        Type::Uuid => "Uuid::ZERO".to_owned(),
        Type::String => "KStr::EMPTY".to_owned(),
        Type::Bytes | Type::Records => "Bytes::new()".to_owned(),
        Type::SentRecords => "Payload::default()".to_owned(),
        Type::Struct(name) => format!("{name}::default()"),
        Type::Array(_) => "Vec::new()".to_owned(),
    }
}

/// Whether a field differs from its default, as Rust.
fn is_set(field: &Field) -> String {
    let value = format!("self.{}", field.name);
    match (&field.default, &field.ty) {
        (Default::Null, _) => format!("{value}.is_some()"),
        (Default::True, _) => format!("!{value}"),
        (Default::Int(number), _) => format!("{value} != {number}"),
        (Default::Zero, Type::Struct(_)) if field.optional => {
            format!("{value} != {}", default_value(field))
        }
        (Default::Zero, _) if field.optional => {
            format!("{value}.as_ref().is_none_or(|x| !x.is_empty())")
        }
        (Default::Zero, Type::Bool) => value,
        (Default::Zero, Type::Uuid) => format!("!{value}.is_zero()"),
        (Default::Zero, Type::Int(_) | Type::Float64 | Type::Struct(_)) => {
            format!("{value} != {}", zero(&field.ty))
        }
        (Default::Zero, _) => format!("!{value}.is_empty()"),
    }
}
