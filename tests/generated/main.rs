//! Manual pages and completions are written from the definition of the command line, and are committed.
//!
//! A test fails where they are not what the definition says; `AYNIG_BLESS=1 cargo test --test generated`
//! writes them anew. Then the pages are read by `man`, and the completions by the shells that are here.

mod page;
mod shells;
#[path = "../support/skipped.rs"]
mod skipped;

use clap::Command;
use clap_complete::Shell;
use skipped::skipped;
use std::path::{Path, PathBuf};

/// The command line with every verb's full name worked out.
fn command() -> Command {
    let mut command = aynig::cli::command();
    command.build();
    command
}

/// What a file of the tree should hold.
fn expected() -> Vec<(PathBuf, String)> {
    let command = command();
    let mut files = vec![(PathBuf::from("man/git-aynig.1"), page::render(&command))];
    for verb in command.get_subcommands().filter(|v| !v.is_hide_set()) {
        files.push((format!("man/git-aynig-{}.1", verb.get_name()).into(), page::render(verb)));
    }
    let server = include_str!("../../src/cli/manual/server.txt");
    let about = "a bare repository that answers pushes";
    files.push(("man/gitaynig-server.7".into(), page::guide("gitaynig-server", about, server)));
    let govern = include_str!("../../src/cli/manual/govern.txt");
    let about = "runs of several roles: turns, gates, approvals";
    files.push(("man/gitaynig-govern.7".into(), page::guide("gitaynig-govern", about, govern)));
    let macos = include_str!("../../src/cli/manual/macos.txt");
    let about = "what is promised where Linux is not";
    files.push(("man/gitaynig-macos.7".into(), page::guide("gitaynig-macos", about, macos)));
    let flow = include_str!("../../src/cli/manual/flow.txt");
    let about = "agents that hand work to one another";
    files.push(("man/gitaynig-flow.7".into(), page::guide("gitaynig-flow", about, flow)));
    for (shell, name) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        files.push((format!("install/completions/git-aynig.{name}").into(), shells::render(shell)));
    }
    files
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn manual_pages_and_completions_are_what_the_definition_says() {
    let bless = std::env::var_os("AYNIG_BLESS").is_some();
    let mut wrong = Vec::new();
    let expected = expected();
    for (path, text) in &expected {
        if bless {
            std::fs::write(root().join(path), text).unwrap();
        } else if std::fs::read_to_string(root().join(path)).ok().as_ref() != Some(text) {
            wrong.push(path.display().to_string());
        }
    }
    for folder in ["man", "install/completions"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = Path::new(folder).join(entry.unwrap().file_name());
            if !expected.iter().any(|(known, _)| *known == path) {
                wrong.push(format!("{} (nothing makes it)", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "run AYNIG_BLESS=1 cargo test --test generated: {wrong:#?}");
}

#[test]
fn every_verb_has_a_description_and_sections() {
    for verb in command().get_subcommands().filter(|v| !v.is_hide_set()) {
        let name = verb.get_name();
        assert!(verb.get_long_about().is_some(), "{name} has no description");
        let more = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        assert!(more.contains("See also:\n"), "{name} names no other page");
        assert!(more.contains("Examples:\n"), "{name} has no example");
    }
}

#[test]
fn man_reads_every_page_without_a_warning() {
    let mut read = 0;
    for (path, _) in expected().iter().filter(|(path, _)| path.starts_with("man")) {
        let page = root().join(path);
        let run = std::process::Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(&page)
            .env("MANWIDTH", "80")
            .env("MANPAGER", "cat")
            .stdin(std::process::Stdio::null())
            .output();
        let Ok(output) = run else {
            return skipped("there is no man here");
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", path.display());
        assert!(String::from_utf8_lossy(&output.stdout).contains("DESCRIPTION"), "{}", path.display());
        read += 1;
    }
    assert!(read > 10);
}
