//! From files and `--set` to checked values: what is unknown, what has no effect, what must be refused.

use std::path::PathBuf;

use thiserror::Error;
use tracing::{info, warn};

use super::keys::{self, Known};
use super::layers::Values;
use super::source::{self, Format, Setting, SourceError};
use super::value::{self, ValueError};

/// What the command line says about configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `.toml` or `.properties`.
    pub file: Option<PathBuf>,
    /// `KEY=VALUE`, which win over the file; the last one wins.
    pub set: Vec<String>,
}

/// The broker cannot start with this configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("unknown configuration key {name}{}", hint(.nearest))]
    Unknown { name: String, nearest: Option<&'static str> },
    #[error(
        "{name} is set, but encryption, authentication, authorisation and policies are not built: \
         the broker would serve in the open what was meant to be closed. Remove the key if that is what you want"
    )]
    Security { name: String },
    #[error("{0}")]
    Conflict(String),
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean {name}?"))
}

/// What is worth a log line although the broker starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Keys of Kafka's without effect here.
    pub inert: Vec<String>,
    /// Names in a `.properties` file that mean nothing to anybody, and what they may have meant.
    pub unknown: Vec<(String, Option<&'static str>)>,
}

impl Findings {
    /// One line for all keys without effect, one per unknown key.
    pub fn log(&self) {
        if !self.inert.is_empty() {
            info!("without effect here: {}", self.inert.join(", "));
        }
        for (name, nearest) in &self.unknown {
            warn!("unknown configuration key {name}{}", hint(nearest));
        }
    }
}

/// Reads and checks everything that was configured. Values that contradict each other are found later, by
/// [`super::ServerConfig::build`].
pub fn load(sources: &Sources) -> Result<(Values, Findings), ConfigError> {
    let mut values = Values::default();
    let mut findings = Findings::default();
    if let Some(path) = &sources.file {
        let (format, settings) = source::read(path)?;
        for setting in settings {
            accept(setting, format, &mut values, &mut findings)?;
        }
    }
    for text in &sources.set {
        accept(source::assignment(text)?, Format::Toml, &mut values, &mut findings)?;
    }
    Ok((values, findings))
}

/// As [`load`], from text: for tests and tools.
pub fn load_text(format: Format, settings: Vec<Setting>) -> Result<(Values, Findings), ConfigError> {
    let mut values = Values::default();
    let mut findings = Findings::default();
    for setting in settings {
        accept(setting, format, &mut values, &mut findings)?;
    }
    Ok((values, findings))
}

fn accept(setting: Setting, format: Format, values: &mut Values, findings: &mut Findings) -> Result<(), ConfigError> {
    let Setting { name, value } = setting;
    match keys::classify(&name) {
        Known::Key(key) => {
            value::parse(key, &value)?;
            values.insert(key.name.to_owned(), value.trim().to_owned());
        }
        Known::Refused { harmless } => {
            if !value.trim().is_empty() && harmless != Some(value.trim()) {
                return Err(ConfigError::Security { name });
            }
        }
        Known::Inert(_) => {
            if name == "process.roles" && !value.split(',').any(|role| role.trim() == "broker") {
                return Err(ConfigError::Conflict(format!("process.roles={value}: this is always a broker")));
            }
            // Kept, because DescribeConfigs shows what was configured.
            values.insert(name.clone(), value.trim().to_owned());
            if !findings.inert.contains(&name) {
                findings.inert.push(name);
            }
        }
        Known::Unknown if format == Format::Properties => {
            let nearest = keys::nearest(&name);
            findings.unknown.push((name, nearest));
        }
        Known::Unknown => {
            let nearest = keys::nearest(&name);
            return Err(ConfigError::Unknown { name, nearest });
        }
    }
    Ok(())
}
