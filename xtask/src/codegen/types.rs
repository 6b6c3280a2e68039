//! Types of fields, and the Rust that reads, writes and compares them.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// The type of a field, without nullability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Bool,
    /// An integer, with its Rust name.
    Int(&'static str),
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    /// Records of a response, which may be brought by whoever sends it.
    SentRecords,
    Struct(String),
    Array(Box<Type>),
}

impl Type {
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(element) = text.strip_prefix("[]") {
            return Ok(Self::Array(Box::new(Self::parse(element)?)));
        }
        Ok(match text {
            "bool" => Self::Bool,
            "int8" => Self::Int("i8"),
            "int16" => Self::Int("i16"),
            "uint16" => Self::Int("u16"),
            "int32" => Self::Int("i32"),
            "int64" => Self::Int("i64"),
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            name if name.starts_with(|c: char| c.is_uppercase()) => Self::Struct(name.to_owned()),
            _ => bail!("unknown type {text}"),
        })
    }

    pub fn rust(&self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Int(name) => (*name).into(),
            Self::Float64 => "f64".into(),
            Self::Uuid => "Uuid".into(),
            Self::String => "KStr".into(),
            Self::Bytes | Self::Records => "Bytes".into(),
            Self::SentRecords => "Payload".into(),
            Self::Struct(name) => name.clone(),
            Self::Array(element) => format!("Vec<{}>", element.rust()),
        }
    }

    /// The struct that this is, or is an array of.
    pub fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
            _ => None,
        }
    }

    /// Reads a value; `flexible` is a Rust expression.
    pub fn read(&self, flexible: &str, nullable: bool) -> String {
        let call = match self {
            Self::Bool => "bool()".into(),
            Self::Int(name) => format!("{name}()"),
            Self::Float64 => "f64()".into(),
            Self::Uuid => "uuid()".into(),
            Self::String => format!("string({flexible})"),
            Self::Bytes | Self::Records => format!("bytes({flexible})"),
            Self::SentRecords => format!("payload({flexible})"),
            Self::Struct(name) if !nullable => {
                return format!("{name}::read(r, v, {flexible})?");
            }
            Self::Struct(_) => format!("struct(v, {flexible})"),
            Self::Array(_) => format!("array(v, {flexible})"),
        };
        let prefix = if nullable { "nullable_" } else { "" };
        format!("r.{prefix}{call}?")
    }

    /// Writes a value; `value` is the field (`self.x`), or a reference to what is in it.
    pub fn write(&self, value: &str, is_reference: bool, flexible: &str) -> String {
        let reference = if is_reference { value.to_owned() } else { format!("&{value}") };
        match self {
            Self::Bool => format!("w.bool({value})"),
            Self::Int(name) => format!("w.{name}({value})"),
            Self::Float64 => format!("w.f64({value})"),
            Self::Uuid => format!("w.uuid({reference})"),
            Self::String => format!("w.string({reference}, {flexible})?"),
            Self::Bytes | Self::Records => format!("w.bytes({reference}, {flexible})?"),
            Self::SentRecords => format!("w.payload({reference}, {flexible})?"),
            Self::Struct(_) => format!("{value}.write(w, v, {flexible})?"),
            Self::Array(_) => format!("w.array({reference}, v, {flexible})?"),
        }
    }

    /// Writes a value that may be null; `value` is the field (`self.x`).
    pub fn write_nullable(&self, value: &str, flexible: &str) -> Result<String> {
        let (kind, version) = match self {
            Self::String => ("string", ""),
            Self::Bytes | Self::Records => ("bytes", ""),
            Self::SentRecords => ("payload", ""),
            Self::Struct(_) => ("struct", "v, "),
            Self::Array(_) => ("array", "v, "),
            _ => bail!("{self:?} cannot be null"),
        };
        Ok(format!("w.nullable_{kind}({value}.as_ref(), {version}{flexible})?"))
    }
}

/// What a field holds when nothing sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Default {
    /// Zero, false, empty, or the struct of defaults.
    Zero,
    /// An integer other than zero, as Rust writes it.
    Int(String),
    True,
    Null,
}

impl Default {
    /// `value` is the schema's `default`, if it has one.
    pub fn parse(ty: &Type, nullable: bool, value: Option<&Value>) -> Result<Self> {
        let text = match value {
            // Kafka has no other default for records.
            None if *ty == Type::Records => "null".to_owned(),
            // A null that is not the text "null" is no default to Kafka's generator.
            None | Some(Value::Null) => return Ok(Self::Zero),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        if text == "null" {
            ensure!(nullable || *ty == Type::Records, "null default, but cannot be null");
            return Ok(Self::Null);
        }
        match ty {
            Type::Bool if text == "true" => Ok(Self::True),
            Type::Bool if text == "false" => Ok(Self::Zero),
            Type::Int(name) => parse_int(name, &text),
            Type::String if text.is_empty() => Ok(Self::Zero),
            _ => bail!("default {text} of {ty:?} is not supported"),
        }
    }
}

fn parse_int(name: &str, text: &str) -> Result<Default> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16)?,
        None => text.parse()?,
    };
    let limits = [
        (i64::from(i32::MAX), "i32::MAX"),
        (i64::from(i32::MIN), "i32::MIN"),
        (i64::MAX, "i64::MAX"),
        (i64::MIN, "i64::MIN"),
    ];
    let limit = limits.iter().find(|(n, text)| *n == number && text.starts_with(name));
    Ok(match limit {
        Some((_, text)) => Default::Int((*text).to_owned()),
        None if number == 0 => Default::Zero,
        None => Default::Int(number.to_string()),
    })
}
