//! Rules of the repository that the compiler does not check; `ARCHITECTURE.md` gives the reasons.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Each crate with those of our own that it may depend on. Tests may reach further.
const ARROWS: &[(&str, &[&str])] = &[
    ("crates/client", &["wire"]),
    ("crates/coordinator", &["wire"]),
    ("crates/load", &["client", "wire"]),
    ("crates/log", &["wire"]),
    ("crates/millstream", &["client", "server", "wire"]),
    ("crates/server", &["coordinator", "log", "wire"]),
    ("crates/sim", &["coordinator", "log", "wire"]),
    ("crates/wire", &[]),
    ("xtask", &[]),
];

/// What the code of a crate must not name: the core is to be deterministic, the codec to know bytes only.
const FORBIDDEN_PATHS: &[(&str, &[&str])] = &[
    ("crates/coordinator", &["tokio", "std::time", "std::fs", "rand", "log"]),
    ("crates/wire", &["tokio", "std::time", "std::fs", "std::net"]),
];

/// Crates that forbid unsafe code at their root.
const SAFE: &[&str] = &["crates/coordinator", "crates/wire"];

const MAX_LINES: usize = 800;
/// Generated, and as long as Kafka's schemas make it.
const GENERATED: &str = "crates/wire/src/messages";

/// Fails with every rule that is broken.
pub fn check(root: &Path) -> Result<()> {
    let mut broken = Vec::new();
    arrows(root, &mut broken)?;
    for (folder, paths) in FORBIDDEN_PATHS {
        // Unit tests may read their vectors from files.
        let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests");
        for file in rust_files(&root.join(folder).join("src"))?.into_iter().filter(|file| !is_test(file)) {
            let text = fs::read_to_string(&file)?;
            for path in paths.iter().filter(|path| names_path(&text, path)) {
                broken.push(format!("{} names {path}", shown(root, &file)));
            }
        }
    }
    for folder in SAFE {
        let file = root.join(folder).join("src/lib.rs");
        if !fs::read_to_string(&file)?.contains("#![forbid(unsafe_code)]") {
            broken.push(format!("{} does not forbid unsafe code", shown(root, &file)));
        }
    }
    long_files(root, &mut broken)?;
    if !broken.is_empty() {
        bail!("not tidy:\n  {}", broken.join("\n  "));
    }
    Ok(())
}

fn arrows(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut folders = vec!["xtask".to_owned()];
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        folders.push(format!("crates/{name}"));
    }
    let ours: BTreeSet<&str> = folders.iter().filter_map(|f| f.strip_prefix("crates/")).collect();
    for folder in &folders {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == folder) else {
            broken.push(format!("{folder} has no place in the architecture"));
            continue;
        };
        for dependency in dependencies(&root.join(folder).join("Cargo.toml"))? {
            let dependency = dependency.as_str();
            if ours.contains(dependency) && !allowed.contains(&dependency) {
                broken.push(format!("{folder} must not depend on {dependency}"));
            }
        }
    }
    Ok(())
}

/// The names of a crate's dependencies, those for single targets and for building included.
fn dependencies(manifest: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let manifest: toml::Table = text.parse()?;
    let targets = manifest.get("target").and_then(|t| t.as_table());
    let tables = targets.into_iter().flatten().filter_map(|(_, t)| t.as_table());
    let mut names = BTreeSet::new();
    for table in tables.chain([&manifest]) {
        for key in ["dependencies", "build-dependencies"] {
            let found = table.get(key).and_then(|t| t.as_table());
            names.extend(found.into_iter().flatten().map(|(name, _)| name.clone()));
        }
    }
    Ok(names)
}

/// Whether code, comments aside, names `path` (`tokio`, `std::fs`) as the beginning of a path.
fn names_path(text: &str, path: &str) -> bool {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.collect::<Vec<_>>().join("\n");
    let begins = |at: usize| !code[..at].ends_with(|c: char| is_word(c) || c == ':');
    let starts_with_word =
        |rest: &str, word: &str| rest.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_word));
    let plain = code.match_indices(path).any(|(at, _)| {
        let rest = &code[at + path.len()..];
        let is_path = path.contains("::") || rest.trim_start().starts_with("::");
        begins(at) && is_path && !rest.starts_with(is_word)
    });
    // `use std::{fs, io}` names std::fs too.
    let grouped = path.split_once("::").is_some_and(|(head, tail)| {
        let opening = format!("{head}::{{");
        code.match_indices(&opening).any(|(at, _)| {
            let group = &code[at + opening.len()..];
            let group = group.split(';').next().unwrap_or_default();
            group.split(['{', ',']).any(|item| starts_with_word(item.trim(), tail))
        })
    });
    let imported = code.match_indices("use ").any(|(at, _)| begins(at) && starts_with_word(&code[at + 4..], path));
    plain || grouped || imported
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn long_files(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let generated = root.join(GENERATED);
    for folder in ["crates", "xtask"] {
        for file in rust_files(&root.join(folder))? {
            let lines = fs::read_to_string(&file)?.lines().count();
            if lines > MAX_LINES && !file.starts_with(&generated) {
                broken.push(format!("{} has {lines} lines", shown(root, &file)));
            }
        }
    }
    Ok(())
}

/// All Rust files below a folder, build output aside.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let is_output = path.file_name().is_some_and(|name| name == "target");
            if path.is_dir() && !is_output {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_code_and_not_elsewhere() {
        for (code, path, expected) in [
            ("use std::fs;", "std::fs", true),
            ("let x = std::fs::read(y);", "std::fs", true),
            ("use std::{\n    fs,\n    io,\n};", "std::fs", true),
            ("use std::{fs::File, io};", "std::fs", true),
            ("use std::{fmt, io};\nlet fs = 1;", "std::fs", false),
            ("use tokio::sync::Mutex;", "tokio", true),
            ("use log;", "log", true),
            ("log::info!(\"x\");", "log", true),
            ("use crate::state_log::StateLog;", "log", false),
            ("use crate::log::Thing;", "log", false),
            ("self.log.append(x)", "log", false),
            ("// tokio::spawn would be wrong here", "tokio", false),
            ("let strand = 1;", "rand", false),
        ] {
            assert_eq!(names_path(code, path), expected, "{path} in {code}");
        }
    }
}
