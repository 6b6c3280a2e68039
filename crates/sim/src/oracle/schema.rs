//! Kafka's message schemas as data, read from the files that the codec is generated from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Versions from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions(i16, i16);

impl Versions {
    const NONE: Versions = Versions(1, 0);

    pub fn contains(self, version: i16) -> bool {
        (self.0..=self.1).contains(&version)
    }

    /// `none`, `3`, `3+` or `3-5`.
    fn parse(text: &str) -> Result<Versions, String> {
        let number = |text: &str| text.parse::<i16>().map_err(|_| format!("not a version: {text}"));
        if text == "none" {
            return Ok(Versions::NONE);
        }
        if let Some(first) = text.strip_suffix('+') {
            return Ok(Versions(number(first)?, i16::MAX));
        }
        match text.split_once('-') {
            Some((first, last)) => Ok(Versions(number(first)?, number(last)?)),
            None => Ok(Versions(number(text)?, number(text)?)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Text,
    Uuid,
    Bytes,
    Struct(Vec<Field>),
    Array(Box<Type>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub of: Type,
    pub versions: Versions,
    pub nullable: Versions,
    pub tagged: Versions,
    pub tag: u32,
    /// Versions in which the field has a compact length, if they differ from those of the message.
    pub flexible: Option<Versions>,
    pub default: Value,
}

#[derive(Clone, Debug)]
pub struct Schema {
    pub name: String,
    pub versions: Versions,
    pub flexible: Versions,
    pub fields: Vec<Field>,
}

/// All schemas, by name.
pub struct Schemas {
    by_name: BTreeMap<String, Schema>,
    /// Names of requests, by API key.
    requests: BTreeMap<i16, String>,
    /// Names of keys and values of the offsets topic, by record type.
    records: BTreeMap<i16, (String, String)>,
}

impl Schemas {
    /// Reads the schemas of the codec.
    ///
    /// # Panics
    /// If one of them cannot be read: they are part of this repository.
    pub fn load() -> Schemas {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/schemas");
        let mut schemas = Schemas { by_name: BTreeMap::new(), requests: BTreeMap::new(), records: BTreeMap::new() };
        for folder in ["message", "group"] {
            for path in json_files(&root.join(folder)) {
                if let Err(error) = schemas.add(&path) {
                    panic!("{}: {error}", path.display());
                }
            }
        }
        schemas
    }

    pub fn get(&self, name: &str) -> Option<&Schema> {
        self.by_name.get(name)
    }

    pub fn request(&self, api_key: i16) -> Option<&Schema> {
        self.get(self.requests.get(&api_key)?)
    }

    pub fn response(&self, api_key: i16) -> Option<&Schema> {
        self.get(&self.requests.get(&api_key)?.replace("Request", "Response"))
    }

    /// Key and value of a record type of the offsets topic.
    pub fn record(&self, record_type: i16) -> Option<(&Schema, &Schema)> {
        let (key, value) = self.records.get(&record_type)?;
        Some((self.get(key)?, self.get(value)?))
    }

    fn add(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let json: Value = serde_json::from_str(&without_comments(&text)).map_err(|error| error.to_string())?;
        let name = text_of(&json, "name")?;
        let mut structs = BTreeMap::new();
        for common in json["commonStructs"].as_array().into_iter().flatten() {
            structs.insert(text_of(common, "name")?, common["fields"].clone());
        }
        let schema = Schema {
            versions: Versions::parse(&text_of(&json, "validVersions")?)?,
            flexible: Versions::parse(json["flexibleVersions"].as_str().unwrap_or("none"))?,
            fields: fields(&json["fields"], &structs)?,
            name: name.clone(),
        };
        let number = json["apiKey"].as_i64().map(|key| key as i16);
        match (text_of(&json, "type")?.as_str(), number) {
            ("request", Some(key)) => {
                self.requests.insert(key, name.clone());
            }
            ("coordinator-key", Some(key)) => self.records.entry(key).or_default().0 = name.clone(),
            ("coordinator-value", Some(key)) => self.records.entry(key).or_default().1 = name.clone(),
            _ => {}
        }
        self.by_name.insert(name, schema);
        Ok(())
    }
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Comments are whole lines in these files.
fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn text_of(json: &Value, key: &str) -> Result<String, String> {
    json[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key}"))
}

fn fields(json: &Value, structs: &BTreeMap<String, Value>) -> Result<Vec<Field>, String> {
    json.as_array().into_iter().flatten().map(|json| field(json, structs)).collect()
}

fn field(json: &Value, structs: &BTreeMap<String, Value>) -> Result<Field, String> {
    let name = text_of(json, "name")?;
    let versions = |key: &str| Versions::parse(json[key].as_str().unwrap_or("none"));
    let mut first = name.chars();
    let lower: String = first.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(first).collect();
    let of = type_of(&text_of(json, "type")?, json, structs)?;
    Ok(Field {
        default: default(&of, &json["default"])?,
        versions: match json["versions"].as_str() {
            Some(text) => Versions::parse(text)?,
            None => versions("taggedVersions")?,
        },
        nullable: versions("nullableVersions")?,
        tagged: versions("taggedVersions")?,
        tag: json["tag"].as_u64().unwrap_or(0) as u32,
        flexible: json["flexibleVersions"].as_str().map(Versions::parse).transpose()?,
        name: lower,
        of,
    })
}

fn type_of(name: &str, json: &Value, structs: &BTreeMap<String, Value>) -> Result<Type, String> {
    if let Some(element) = name.strip_prefix("[]") {
        return Ok(Type::Array(Box::new(type_of(element, json, structs)?)));
    }
    Ok(match name {
        "bool" => Type::Bool,
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "uint16" => Type::Uint16,
        "int32" => Type::Int32,
        "uint32" => Type::Uint32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "string" => Type::Text,
        "uuid" => Type::Uuid,
        "bytes" | "records" => Type::Bytes,
        name => Type::Struct(fields(structs.get(name).unwrap_or(&json["fields"]), structs)?),
    })
}

/// The default as the JSON form has it.
fn default(of: &Type, json: &Value) -> Result<Value, String> {
    let text = match json {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    if text.as_deref() == Some("null") {
        return Ok(Value::Null);
    }
    Ok(match of {
        Type::Bool => Value::Bool(text.as_deref() == Some("true")),
        Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Uint32 | Type::Int64 => {
            let text = text.unwrap_or_else(|| "0".into());
            let number = match text.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => text.parse::<i64>(),
            };
            number.map_err(|_| format!("default {text}"))?.into()
        }
        Type::Float64 => text.unwrap_or_else(|| "0".into()).parse::<f64>().map_err(|error| error.to_string())?.into(),
        Type::Text => text.unwrap_or_default().into(),
        Type::Uuid => super::codec::uuid_text(&[0; 16]).into(),
        Type::Bytes => String::new().into(),
        Type::Array(_) => Value::Array(Vec::new()),
        Type::Struct(fields) => fields
            .iter()
            .map(|field| (field.name.clone(), field.default.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    })
}
