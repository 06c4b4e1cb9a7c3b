//! `serve`: becomes the program that serves the page, which is a package of its own.
//!
//! Implements W1, W4.

use super::args::Serve;
use super::fail::Failure;
use super::session::Global;
use crate::app::helper;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs `git aynig serve`.
pub fn run(global: &Global, args: &Serve) -> Result<i32, Failure> {
    become_it(words(global, args))
}

/// Replaces this process with `git-aynig-serve` and these arguments; returns only where that failed.
pub(super) fn become_it(words: Vec<OsString>) -> Result<i32, Failure> {
    let Some(program) = helper::find() else {
        let missing =
            Failure::fatal(format!("'{}' is not beside this program, and not on PATH", helper::PROGRAM));
        return Err(missing.hint("cargo install --path serve, from where git-aynig was built"));
    };
    let failed = Command::new(&program).args(words).exec();
    Err(Failure::fatal(format!("cannot start '{}': {failed}", program.display())))
}

/// Returns the arguments in the form that `git-aynig-serve` takes.
fn words(global: &Global, args: &Serve) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let flags = [
        (args.open, "--open"),
        (args.read_only, "--read-only"),
        (args.share, "--share"),
        (args.json, "--json"),
    ];
    words.extend(flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag.into()));
    let mut value = |flag: &str, value: &OsString| words.extend([flag.into(), value.clone()]);
    value("--port", &args.port.to_string().into());
    value("--bind", &args.bind.to_string().into());
    args.token_fd.iter().for_each(|fd| value("--token-fd", &fd.to_string().into()));
    args.allow_host.iter().for_each(|host| value("--allow-host", &host.into()));
    args.allow_origin.iter().for_each(|origin| value("--allow-origin", &origin.into()));
    args.tls_cert.iter().for_each(|file| value("--tls-cert", &file.into()));
    args.tls_key.iter().for_each(|file| value("--tls-key", &file.into()));
    args.ui.iter().for_each(|dir| value("--ui", &dir.into()));
    args.data_dir.iter().for_each(|dir| value("--data-dir", &dir.into()));
    words.push("--".into());
    let git_dir = global.git_dir.iter().map(|dir| dir.into());
    words.extend(git_dir.chain(args.places.iter().map(|place| place.into())));
    words
}
