//! Errors, exit codes, completions and manual pages.

use std::net::TcpListener;

use super::rig::millstream;

#[test]
fn a_broker_that_is_not_there_is_exit_code_3() {
    // A port that was free a moment ago, and one where nobody ever answers.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").to_string();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().map(|address| (silent, address.to_string())).expect("its address");
    for command in ["groups list", "topics list", "groups describe g", "groups explain g"] {
        for (address, words) in [(&free, "cannot connect"), (&silent.1, "no answer")] {
            let mut args: Vec<&str> = command.split(' ').collect();
            args.extend(["--timeout", "1", "-b", address]);
            assert_eq!(millstream(&args).failed(3, words), "", "{command} {address}");
        }
    }
}

#[test]
fn wrong_arguments_are_exit_code_2() {
    for (args, words) in [
        (vec!["dance"], "dance"),
        (vec!["groups"], "Usage"),
        (vec!["groups", "list", "--colour"], "--colour"),
        (vec!["groups", "config", "g", "--set", "x"], "NAME=VALUE"),
        (vec!["groups", "remove-members", "g"], "required"),
        (vec!["groups", "plan", "g"], "required"),
        (vec!["topics", "create", "t", "--partitions", "0"], "0"),
        (vec!["topics", "list", "--timeout", "0"], "0"),
        (vec!["man", "groups", "dance"], "has no command dance"),
    ] {
        let ran = millstream(&args);
        assert_eq!(ran.code, 2, "{args:?} {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?} {ran:?}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_in_one_line() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("server.properties");
    std::fs::write(&file, "num.partitions=many\n").expect("a file");
    let config = file.to_str().expect("UTF-8");
    let data = dir.path().join("data");
    let data = data.to_str().expect("UTF-8");
    for (args, words) in [
        (vec!["serve", "--config", config], "num.partitions"),
        (vec!["--set", "no.such.key=1"], "no.such.key"),
        (vec!["--set", "nonsense"], "nonsense"),
        (vec!["serve", "--config", "missing.properties"], "missing.properties"),
        (
            vec!["--listen", "localhost:0", "--advertise", "a:1", "--advertise", "b:2", "--data-dir", data],
            "--advertise",
        ),
    ] {
        let ran = millstream(&args);
        let lines = ran.stderr.lines().count();
        ran.failed(2, words);
        assert!(lines <= 2, "{args:?}: {lines} lines");
    }
    assert!(!std::path::Path::new(data).exists(), "nothing was begun");
}

#[test]
fn a_port_that_is_taken_is_told_in_words() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let args =
        ["serve", "--listen", &address, "--data-dir", data.to_str().expect("UTF-8"), "--set", "admin.http.listener="];
    let ran = millstream(&args);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains(&address), "{ran:?}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = millstream(&["completions", shell]).ok();
        for word in ["reset-offsets", "remove-members", "by-duration", "completions"] {
            assert!(script.contains(word), "{word} is not in the completions of {shell}");
        }
    }
    let page = millstream(&["man", "groups", "lag"]).ok();
    assert!(page.contains("millstream\\-groups\\-lag"), "{page}");
    assert!(page.contains("isolation"), "{page}");
    assert!(millstream(&["man"]).ok().contains("Exit codes"));
}

#[test]
fn help_says_what_the_exit_codes_mean() {
    let help = millstream(&["--help"]).ok();
    assert!(help.contains("Exit codes: 0 done"), "{help}");
    assert_eq!(millstream(&["--version"]).ok(), format!("millstream {}\n", env!("CARGO_PKG_VERSION")));
}
