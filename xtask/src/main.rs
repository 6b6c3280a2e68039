//! The project's own tools: `cargo xtask codegen [--check]` and `cargo xtask tidy`. Both are tests as well.

mod codegen;
mod tidy;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask codegen [--check] | tidy";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["codegen"] => codegen::write(&root()),
        ["codegen", "--check"] => codegen::check(&root()),
        ["tidy"] => tidy::check(&root()),
        _ => bail!(USAGE),
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_current() {
        codegen::check(&root()).unwrap();
    }

    #[test]
    fn repository_is_tidy() {
        tidy::check(&root()).unwrap();
    }
}
