//! Kafka's schemas: JSON with comments, and rules that are nowhere written but in its generator.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::names::snake;
use super::types::{Default, Type};

/// Where a schema comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Protocol,
    Group,
    Transaction,
    Metadata,
}

/// What a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Request,
    Response,
    CoordinatorKey,
    CoordinatorValue,
    MetadataRecord,
    Other,
}

/// A range of versions, both ends included; empty if `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub lo: i16,
    pub hi: i16,
}

impl Versions {
    const NONE: Self = Self { lo: 0, hi: -1 };

    fn parse(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        if let Some(lo) = text.strip_suffix('+') {
            return Ok(Self { lo: lo.parse()?, hi: i16::MAX });
        }
        let (lo, hi) = text.split_once('-').unwrap_or((text, text));
        Ok(Self { lo: lo.parse()?, hi: hi.parse()? })
    }

    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub fn and(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The smallest range with both in it.
    pub fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) },
        }
    }

    pub fn contains(self, other: Self) -> bool {
        self.and(other) == other
    }
}

/// A field of a struct.
#[derive(Debug, Clone)]
pub struct Field {
    /// Rust's name.
    pub name: String,
    pub about: String,
    pub ty: Type,
    pub versions: Versions,
    /// Versions in which it can be null; may reach beyond `versions`.
    pub nullable: Versions,
    /// Whether Rust's type has a null.
    pub optional: bool,
    pub default: Default,
    /// Whether a value may be dropped in a version without the field.
    pub ignorable: bool,
    pub tag: Option<u32>,
    /// Written as in versions that are not flexible, always.
    pub never_flexible: bool,
}

/// A struct; the message itself is one.
#[derive(Debug, Clone)]
pub struct Struct {
    pub name: String,
    pub fields: Vec<Field>,
    /// Versions in which it can occur.
    pub versions: Versions,
}

/// A message with at least one supported version.
#[derive(Debug, Clone)]
pub struct Schema {
    pub name: String,
    pub kind: Kind,
    pub role: Role,
    /// API key, or the type of a record.
    pub api_key: Option<i16>,
    pub versions: Versions,
    pub flexible: Versions,
    pub latest_unstable: bool,
    /// The message first, then its parts in the order in which it names them.
    pub structs: Vec<Struct>,
}

impl Schema {
    /// `None` for a message of which Kafka no longer supports any version.
    pub fn parse(text: &str, kind: Kind) -> Result<Option<Self>> {
        let json: Value = serde_json::from_str(&strip_comments(text))?;
        let versions = Versions::parse(string(&json, "validVersions")?)?;
        if versions.is_empty() {
            return Ok(None);
        }
        let name = string(&json, "name")?.to_owned();
        let mut structs = vec![Struct::parse(&name, &json)?];
        collect_structs(&json, &mut structs)?;
        for common in list(&json, "commonStructs") {
            structs.push(Struct::parse(string(common, "name")?, common)?);
            collect_structs(common, &mut structs)?;
        }
        let mut schema = Self {
            name,
            kind,
            role: role(string(&json, "type")?)?,
            api_key: json["apiKey"].as_i64().map(i16::try_from).transpose()?,
            versions,
            flexible: Versions::parse(string(&json, "flexibleVersions")?)?.and(versions),
            latest_unstable: json["latestVersionUnstable"] == Value::Bool(true),
            structs,
        };
        schema.limit_versions()?;
        if schema.role == Role::Response {
            let fields = schema.structs.iter_mut().flat_map(|s| &mut s.fields);
            fields.filter(|field| field.ty == Type::Records).for_each(|field| field.ty = Type::SentRecords);
        }
        schema.validate()?;
        Ok(Some(schema))
    }

    /// Finds out in which versions each struct occurs, and drops fields that occur in none.
    fn limit_versions(&mut self) -> Result<()> {
        let mut found: BTreeMap<String, Versions> = BTreeMap::new();
        let mut todo = vec![(self.name.clone(), self.versions)];
        while let Some((name, versions)) = todo.pop() {
            let known = found.entry(name.clone()).or_insert(Versions::NONE);
            if versions.is_empty() || known.contains(versions) && !known.is_empty() {
                continue;
            }
            *known = known.hull(versions);
            let all = self.structs.iter().find(|s| s.name == name);
            for field in &all.with_context(|| format!("no struct {name}"))?.fields {
                if let Some(part) = field.ty.struct_name() {
                    todo.push((part.to_owned(), field.versions.and(versions)));
                }
            }
        }
        for s in &mut self.structs {
            s.versions = found.get(&s.name).copied().unwrap_or(Versions::NONE);
            let versions = s.versions;
            s.fields.retain(|field| !field.versions.and(versions).is_empty());
        }
        self.structs.retain(|s| !s.versions.is_empty());
        Ok(())
    }

    fn validate(&self) -> Result<()> {
        for s in &self.structs {
            let twins = self.structs.iter().filter(|other| other.name == s.name);
            ensure!(twins.count() == 1, "two structs named {}", s.name);
            for version in s.versions.lo..=s.versions.hi {
                let version = Versions { lo: version, hi: version };
                let present = |f: &Field| f.tag.is_none() && f.versions.contains(version);
                // The reader relies on this: it bounds arrays by the bytes left. The message is in no array.
                ensure!(
                    s.name == self.name || self.flexible.contains(version) || s.fields.iter().any(present),
                    "{} takes no bytes in version {}",
                    s.name,
                    version.lo
                );
            }
            for field in s.fields.iter().filter(|field| field.tag.is_some()) {
                ensure!(
                    self.flexible.contains(field.versions.and(s.versions)),
                    "{} is tagged where nothing can be",
                    field.name
                );
            }
        }
        Ok(())
    }
}

impl Struct {
    fn parse(name: &str, json: &Value) -> Result<Self> {
        let fields = list(json, "fields")
            .map(|field| Field::parse(field).with_context(|| format!("{name} {}", field["name"])))
            .collect::<Result<_>>()?;
        Ok(Self { name: name.to_owned(), fields, versions: Versions::NONE })
    }
}

impl Field {
    fn parse(json: &Value) -> Result<Self> {
        let range = |key: &str| json[key].as_str().map(Versions::parse).transpose();
        let tagged = range("taggedVersions")?;
        // A field that is tagged in all its versions may leave them out.
        let versions = range("versions")?.or(tagged).context("no versions")?;
        ensure!(tagged.is_none_or(|tagged| tagged == versions), "tagged in some versions only");
        let tag = json["tag"].as_u64().map(u32::try_from).transpose()?;
        ensure!(tag.is_some() == tagged.is_some(), "tag without versions");
        let ty = Type::parse(string(json, "type")?)?;
        let nullable = range("nullableVersions")?.unwrap_or(Versions::NONE);
        let flexible = range("flexibleVersions")?;
        ensure!(flexible.is_none_or(Versions::is_empty), "flexible in some versions only");
        Ok(Self {
            name: snake(string(json, "name")?),
            about: json["about"].as_str().unwrap_or_default().to_owned(),
            default: Default::parse(&ty, !nullable.is_empty(), json.get("default"))?,
            optional: !nullable.is_empty() || ty == Type::Records,
            ty,
            versions,
            nullable,
            ignorable: json["ignorable"] == Value::Bool(true),
            tag,
            never_flexible: flexible.is_some(),
        })
    }
}

/// The structs that the fields of `json` define in place.
fn collect_structs(json: &Value, out: &mut Vec<Struct>) -> Result<()> {
    for field in list(json, "fields") {
        if field.get("fields").is_some() {
            let ty = Type::parse(string(field, "type")?)?;
            let name = ty.struct_name().context("fields, but no struct")?;
            out.push(Struct::parse(name, field)?);
            collect_structs(field, out)?;
        }
    }
    Ok(())
}

fn role(text: &str) -> Result<Role> {
    Ok(match text {
        "request" => Role::Request,
        "response" => Role::Response,
        "coordinator-key" => Role::CoordinatorKey,
        "coordinator-value" => Role::CoordinatorValue,
        "metadata" => Role::MetadataRecord,
        "header" | "data" => Role::Other,
        _ => bail!("unknown type of schema {text}"),
    })
}

fn string<'a>(json: &'a Value, key: &str) -> Result<&'a str> {
    json[key].as_str().ok_or_else(|| anyhow!("no {key}"))
}

fn list<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    json[key].as_array().into_iter().flatten()
}

/// Takes out `//` comments, but not what looks like one inside a string.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let (mut in_string, mut escaped, mut end) = (false, false, line.len());
        for (i, c) in line.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                '/' if !in_string && line[i..].starts_with("//") => {
                    end = i;
                    break;
                }
                _ => {}
            }
        }
        out.push_str(&line[..end]);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        let text = "{ // one\n\"a\": \"http://x\\\"//\", // two\n\"b\": 1 }";
        let json: Value = serde_json::from_str(&strip_comments(text)).unwrap();
        assert_eq!(json["a"], "http://x\"//");
        assert_eq!(json["b"], 1);
    }

    #[test]
    fn versions() {
        let v = |lo, hi| Versions { lo, hi };
        assert_eq!(Versions::parse("3").unwrap(), v(3, 3));
        assert_eq!(Versions::parse("3-5").unwrap(), v(3, 5));
        assert_eq!(Versions::parse("3+").unwrap(), v(3, i16::MAX));
        assert!(Versions::parse("none").unwrap().is_empty());
        assert_eq!(v(0, 4).and(v(3, 9)), v(3, 4));
        assert_eq!(v(0, 1).hull(v(4, 5)), v(0, 5));
    }
}
