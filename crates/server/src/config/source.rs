//! Where settings come from: Kafka's `server.properties`, TOML with the same names, and `--set KEY=VALUE`.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// One `KEY=VALUE`, not yet looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{path}: {error}")]
    Toml { path: PathBuf, error: Box<toml::de::Error> },
    #[error("{path}: {key} is neither a string, a number, true, false nor a list of those")]
    TomlType { path: PathBuf, key: String },
    #[error("{path} is neither .toml nor .properties")]
    Extension { path: PathBuf },
    #[error("'{0}' is not KEY=VALUE")]
    NotASetting(String),
}

/// How strictly a file is read: a `.properties` file was written for Kafka, so it may name what is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Properties,
    Toml,
}

impl Format {
    pub fn of(path: &Path) -> Result<Format, SourceError> {
        match path.extension().and_then(|ext| ext.to_str()) {
            Some("properties") => Ok(Format::Properties),
            Some("toml") => Ok(Format::Toml),
            _ => Err(SourceError::Extension { path: path.to_owned() }),
        }
    }
}

pub fn read(path: &Path) -> Result<(Format, Vec<Setting>), SourceError> {
    let format = Format::of(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| SourceError::Read { path: path.to_owned(), error })?;
    let settings = match format {
        Format::Properties => properties(&text),
        Format::Toml => toml_settings(path, &text)?,
    };
    Ok((format, settings))
}

/// `--set KEY=VALUE`.
pub fn assignment(text: &str) -> Result<Setting, SourceError> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Setting { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err(SourceError::NotASetting(text.to_owned())),
    }
}

/// Java's format: `#` and `!` comments, `=`, `:` or blanks between key and value, a backslash joins lines and escapes.
pub fn properties(text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while ends_with_open_backslash(&line) {
            line.pop();
            match lines.next() {
                Some(next) => line.push_str(next.trim_start()),
                None => break,
            }
        }
        settings.push(split_property(&line));
    }
    settings
}

fn ends_with_open_backslash(line: &str) -> bool {
    line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

fn split_property(line: &str) -> Setting {
    let mut escaped = false;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if matches!(c, '=' | ':') || c.is_whitespace() {
            end = at;
            break;
        }
    }
    let rest = line[end..].trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
    Setting { name: unescape(&line[..end]), value: unescape(value) }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let hex: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Tables and dotted keys are joined with dots, so `[log] retention.ms = 1` is `log.retention.ms`. A key that is the beginning of
/// another (`log.dir`) has to be quoted when both are given.
fn toml_settings(path: &Path, text: &str) -> Result<Vec<Setting>, SourceError> {
    let table: toml::Table =
        toml::from_str(text).map_err(|error| SourceError::Toml { path: path.to_owned(), error: Box::new(error) })?;
    let mut settings = Vec::new();
    flatten(path, "", &table, &mut settings)?;
    Ok(settings)
}

fn flatten(path: &Path, prefix: &str, table: &toml::Table, out: &mut Vec<Setting>) -> Result<(), SourceError> {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(path, &name, inner, out)?,
            toml::Value::Array(list) => {
                let parts: Option<Vec<String>> = list.iter().map(scalar).collect();
                let parts = parts.ok_or_else(|| SourceError::TomlType { path: path.to_owned(), key: name.clone() })?;
                out.push(Setting { name, value: parts.join(",") });
            }
            other => {
                let value =
                    scalar(other).ok_or_else(|| SourceError::TomlType { path: path.to_owned(), key: name.clone() })?;
                out.push(Setting { name, value });
            }
        }
    }
    Ok(())
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
