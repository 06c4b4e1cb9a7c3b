//! What only this program and Git's hooks call: the hooks' entry, the chains that hooks leave running, and
//! notices.
//!
//! These verbs are not for people, and are in no manual page or completion. Their command line has a
//! definition of its own, which is small, since hooks run at every commit.

use super::session::Global;
use super::{chain, hook, notify};
use crate::app::background::Cause;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The inner command line.
#[derive(Debug, Parser)]
struct Inner {
    #[arg(long)]
    git_dir: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Hook(Hook),
    Chain(Chain),
    Notify(Notify),
}

/// `hook`: what Git says to a hook.
#[derive(Debug, Args)]
pub struct Hook {
    /// Git's name for it
    pub event: String,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// `chain`: branches to go on with until nothing is actionable.
#[derive(Debug, Args)]
pub struct Chain {
    /// Branches
    pub branches: Vec<OsString>,
    /// Read more branches, and the ids of their first runs, from standard input: each ends with a NUL
    #[arg(long)]
    pub from_input: bool,
    /// Only once the rebase here is over
    #[arg(long)]
    pub after_rebase: bool,
    /// For a user who pushed: commands inherit little
    #[arg(long)]
    pub pushed: bool,
    /// Leave the session that it was started in
    #[arg(long)]
    pub detached: bool,
    /// Look after branches that wait; standard input holds the watch
    #[arg(long)]
    pub watch: bool,
}

/// `notify`: one notice, on standard input, to be given to the program that is configured.
#[derive(Debug, Args)]
pub struct Notify {
    /// Leave the session that it was started in
    #[arg(long)]
    pub detached: bool,
    /// The note that is settled once the notice was given; its file is standard output
    #[arg(long)]
    pub owed: Option<String>,
}

impl Chain {
    /// Returns what the chain was started for.
    pub fn cause(&self) -> Cause {
        match (self.pushed, self.after_rebase) {
            (true, _) => Cause::Push,
            (false, true) => Cause::Rebase,
            (false, false) => Cause::Here,
        }
    }
}

/// Runs an inner verb and returns its exit code; `None` where the arguments name no inner verb.
pub fn run(argv: &[OsString]) -> Option<i32> {
    #[cfg(feature = "conformance")]
    if argv.get(1..).is_some_and(|words| words == ["govern", "conformance"]) {
        return Some(super::govern::conformance());
    }
    let verb = match argv.get(1)?.to_str()? {
        "--git-dir" => argv.get(3)?.to_str()?,
        first => first,
    };
    if !matches!(verb, "hook" | "chain" | "notify") {
        return None;
    }
    let inner = match Inner::try_parse_from(argv) {
        Ok(inner) => inner,
        Err(error) => return Some(super::wrong_usage(&error)),
    };
    let global = Global { git_dir: inner.git_dir, quiet: false, verbose: 0 };
    Some(match inner.verb {
        Verb::Hook(args) => hook::run(&global, &args),
        Verb::Chain(args) => super::code_of(chain::run(&global, &args)),
        Verb::Notify(args) => notify::run(&global, &args),
    })
}
