//! `init`: scaffolds `.aynig/` in the working tree; overwrites nothing, and writes through no link.

use super::args::Init;
use super::fail::Failure;
use super::session::Global;
use super::{hints, output, trust};
use crate::app::AppError;
use crate::app::trust::default_source;
use crate::supervisor::beneath::{BeneathError, Root};
use std::collections::HashSet;
use std::path::Path;

const HELLO: &str = r#"#!/bin/sh
# Answers commits that say "dwp-state: hello". Runs in a worktree of its own, at the commit that asked.
# What it leaves there becomes part of the branch's next commit; what it says last comes next.
set -eu
printf 'hello from run %s\n' "$AYNIG_RUN_ID" >>hello.txt
echo 'SET_STATE {"state":"done","subject":"hello: said"}'
"#;

const COMMANDS: &str = r#"# Commands

A commit whose trailers say `dwp-state: <state>` is answered by the executable `.aynig/command/<state>`
(or `.aynig/roles/<role>/command/<state>` for a runner with that role).

- It runs in a worktree of its own, at the commit that asked. Files that it leaves become part of the outcome.
- It is told by its environment: `BODY` (the commit's body), `COMMIT_HASH`, each `dwp-*` trailer in upper case
  (`dwp-ticket: 7` is `DWP_TICKET=7`), `AYNIG_BRANCH`, `AYNIG_RUN_ID`, `AYNIG_DIR` (this folder, read-only).
- It says what comes next on its standard output, and exits 0:
  `SET_STATE {"state":"review","subject":"build: ready","body":"...","trailers":["dwp-ticket: 7"]}`
- Any other exit, a signal or a timeout ends the branch `stalled`; `git aynig retry <branch>` asks again.
- A state without a command waits for a person.
"#;

/// Runs `git aynig init`.
pub fn run(global: &Global, args: &Init) -> Result<i32, Failure> {
    let session = global.open()?;
    let Some(dir) = &session.repo.work_dir else {
        return Err(Failure::fatal("a bare repository has no files: commands come with a push")
            .hint("git aynig trust --ref <branch>"));
    };
    let root = Root::open(dir).map_err(|e| not_written(&e))?;
    let tracked = session.repo.git.tracked(&session.repo.git_dir, dir, ".aynig").map_err(AppError::from)?;
    let made = [
        write_new((&root, &tracked), ".aynig/command/hello", HELLO, 0o777)?,
        write_new((&root, &tracked), ".aynig/COMMANDS.md", COMMANDS, 0o666)?,
    ];
    if !global.quiet {
        let what = if made.contains(&true) { "Wrote" } else { "Nothing to do:" };
        output::line(&format!("{what} .aynig/command/hello and .aynig/COMMANDS.md"));
    }
    let trusted = session.settings(&Default::default())?.commands_from;
    if args.trust {
        trust::give(&session, &default_source(&session)?)?;
    }
    if !global.quiet {
        output::line("Next:");
        if let Some(first) = hints::to_top(session.repo.work_dir.as_deref()) {
            output::line(&format!("  {first}"));
        }
        output::line("  git add .aynig && git commit -m 'aynig: first command'");
        if !args.trust && trusted == crate::runner::settings::CommandsFrom::Nowhere {
            output::line("  git aynig trust");
        }
        output::line("  git aynig set-state hello -b try");
        output::line("  git aynig tick");
    }
    Ok(0)
}

/// Creates a file; false where one is there already, or in the index.
pub(super) fn write_new(
    (root, tracked): (&Root, &HashSet<Vec<u8>>),
    name: &str,
    content: &str,
    mode: u32,
) -> Result<bool, Failure> {
    // A sparse checkout leaves out what is committed all the same.
    if tracked.contains(name.as_bytes()) {
        return Ok(false);
    }
    let path = Path::new(name);
    if let Some(folder) = path.parent() {
        root.create_dirs(folder, 0o777).map_err(|e| not_written(&e))?;
    }
    match root.create_new(path, mode) {
        Ok(mut file) => {
            let written = std::io::Write::write_all(&mut file, content.as_bytes());
            written.map_err(|e| Failure::fatal(format!("cannot write '{name}': {e}")))?;
            Ok(true)
        }
        Err(e) if e.is_there() => Ok(false),
        Err(e) => Err(not_written(&e)),
    }
}

/// Creates the failure of a file that was not written. The branch's author may have put a symbolic link in
/// its place, which leads to what is no command of this repository: nothing is written through one.
pub(super) fn not_written(error: &BeneathError) -> Failure {
    let causes = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Failure::fatal(format!("{error}{}", causes.unwrap_or_default()))
}
