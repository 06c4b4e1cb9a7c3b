//! `shell`: a shell in a slot that holds what a run left.
//!
//! Implements git-aynig-shell(1), K36, K55.

use super::args::Shell;
use super::diff::title;
use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output;
use super::render::full;
use super::session::Global;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::diff;
use crate::app::shell::open;
use crate::protocol::text::{escape, shell_word};
use std::os::unix::process::ExitStatusExt;

/// Runs `git aynig shell`.
pub fn run(global: &Global, args: &Shell) -> Result<i32, Failure> {
    let session = global.open()?;
    let found = diff::find(&session, args.what.as_deref(), args.remote.clone())?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let commit = found.work.unwrap_or(found.trigger);
    let visited = open(&change, &found, |folder| {
        if !global.quiet {
            let folder = escape(folder.as_os_str().as_encoded_bytes());
            output::note(&format!("{}: {} in '{folder}'", title(&found), commit.short(10)));
            output::note("what you change here is kept when this shell ends; the branch is not touched");
        }
    })?;
    let left = &visited.left;
    if let Some(folder) = left.repositories.as_ref().filter(|_| !global.quiet) {
        let folder = escape(folder.as_os_str().as_encoded_bytes());
        output::note(&format!("repositories that were there are kept in '{folder}'"));
    }
    match left.kept.as_ref().filter(|_| !global.quiet) {
        Some(name) => {
            let (name, place) = (shell_word(full(name).as_bytes()), hints::place(session.place()));
            output::note(&format!("what you changed is kept in {name}"));
            output::note(&format!("hint: git -C {place} diff {commit} {name}"));
            let send = Addressed::new(&found.branch, change.remote()).call("send");
            output::note(&format!("hint: to hand it over: {send} --attach {name}"));
        }
        None if global.quiet || left.repositories.is_some() => {}
        None => output::note("nothing was changed"),
    }
    let ended = visited.status;
    Ok(ended.code().or_else(|| ended.signal().map(|signal| 128 + signal)).unwrap_or(1))
}
