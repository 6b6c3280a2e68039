//! Shell completions and manual pages, both from the definitions of the arguments.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::Cli;
use crate::failure::Failure;
use crate::output::Output;

pub fn completions(shell: clap_complete::Shell, mut out: Output) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "millstream", &mut bytes);
    out.raw(&String::from_utf8_lossy(&bytes));
    out.flush()
}

/// One page, or all of them into a directory.
pub fn man(path: &[String], dir: Option<&Path>, mut out: Output) -> Result<(), Failure> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    if let Some(dir) = dir {
        let failed = |error: std::io::Error| Failure::failed(format!("cannot write to {}: {error}", dir.display()));
        std::fs::create_dir_all(dir).map_err(failed)?;
        return write_all(&root, "millstream", dir).map_err(failed);
    }
    let mut command = &root;
    let mut name = "millstream".to_owned();
    for part in path {
        command = command
            .get_subcommands()
            .find(|command| command.get_name() == part)
            .ok_or_else(|| Failure::usage(format!("{name} has no command {part}")))?;
        name = format!("{name}-{part}");
    }
    let page = render(command, &name).map_err(|error| Failure::failed(error.to_string()))?;
    out.raw(&String::from_utf8_lossy(&page));
    out.flush()
}

fn write_all(command: &Command, name: &str, dir: &Path) -> std::io::Result<()> {
    std::fs::write(dir.join(format!("{name}.1")), render(command, name)?)?;
    for inner in command.get_subcommands() {
        write_all(inner, &format!("{name}-{}", inner.get_name()), dir)?;
    }
    Ok(())
}

fn render(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        man(&[], Some(dir.path()), Output::new(false)).expect("the pages are written");
        for name in ["millstream", "millstream-serve", "millstream-groups-reset-offsets", "millstream-log-dump"] {
            let page = std::fs::read_to_string(dir.path().join(format!("{name}.1"))).expect("the page is there");
            assert!(page.contains(&name.replace('-', "\\-")), "{name} is named in its page");
        }
    }

    #[test]
    fn a_page_of_no_command_is_refused() {
        let refused = man(&["groups".to_owned(), "dance".to_owned()], None, Output::new(false));
        assert_eq!(refused.expect_err("there is no such command").text(), "millstream-groups has no command dance");
    }
}
