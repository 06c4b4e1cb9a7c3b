//! `uninstall`: shows what git-aynig has put into a repository, asks, and removes that. The work is
//! `runner::uninstall`'s.
//!
//! Commits stay as they are, `.aynig/` in them included. Work that is on no branch stays unless `--attempts`
//! says otherwise; so does trust in the account's own configuration, unless `--trust` or the answer to a
//! question says so.

use super::args::Uninstall;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output};
use crate::app::Exit;
use crate::app::uninstall;
use crate::protocol::text::{escape, shell_word};
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// At most so many things of one kind are listed by name.
const NAMED: usize = 10;

/// Runs `git aynig uninstall`.
pub fn run(global: &Global, args: &Uninstall) -> Result<i32, Failure> {
    let session = global.open()?;
    let found = uninstall::Uninstall::look(&session)?;
    list(&found, args);
    if !args.dry_run {
        found.mend();
    }
    found.refuse_in_use()?;
    if args.dry_run || found.is_empty(args.attempts) {
        return Ok(0);
    }
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !(args.force || (asks && is_yes("Remove this? [y/N] "))) {
        return Err(Failure::refused("nothing was removed").hint("git aynig uninstall --force"));
    }
    let trust = !found.global.is_empty()
        && (args.trust
            || (asks && !args.force && is_yes("Remove the trust from your configuration too? [y/N] ")));
    let out = found.remove(args.attempts)?;
    for removal in out.removed.iter().filter(|removal| removal.kept.is_some()) {
        let kept = removal.kept.as_ref().map(|name| escape(name.as_bytes())).unwrap_or_default();
        output::note(&format!("work of a run that was cut short is kept in {kept}"));
    }
    if out.failed.is_empty() {
        found.unset_keys(trust)?;
    }
    let mut ended = Exit::Done;
    for error in out.failed {
        ended = ended.max(Exit::from(&error));
        output::error(&Failure::from(error).render());
    }
    if ended == Exit::Done && !global.quiet {
        output::line("Uninstalled");
        if !found.global.is_empty() && !trust {
            output::note("kept: what your own configuration says of this repository");
            for key in &found.global {
                output::note(&format!(
                    "hint: git config --global --unset-all {}",
                    shell_word(key.as_bytes())
                ));
            }
        }
    }
    Ok(exit::code(ended))
}

fn is_yes(question: &str) -> bool {
    output::error(question);
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}

fn list(all: &uninstall::Uninstall<'_>, args: &Uninstall) {
    let found = &all.belongings;
    let path = |path: &Path| format!("'{}'", escape(path.as_os_str().as_encoded_bytes()));
    let section = |verb: &str, what: &str, names: Vec<String>| {
        names.iter().take(NAMED).for_each(|name| output::line(&format!("{verb} {what} {name}")));
        if names.len() > NAMED {
            output::line(&format!("{verb} {} more of this kind", names.len() - NAMED));
        }
    };
    section("remove", "hooks in", found.hooks.iter().map(|p| path(p)).collect());
    section("keep  ", "lines of yours in", found.by_hand.iter().map(|p| path(p)).collect());
    section("remove", "worktree", found.slots.iter().map(|p| path(p)).collect());
    section("remove", "ref", found.refs.iter().map(|name| escape(name.as_bytes())).collect());
    section("remove", "folder", found.folders.iter().map(|p| path(p)).collect());
    section("remove", "configuration", all.own.iter().map(|key| escape(key.as_bytes())).collect());
    let work = if args.attempts { "remove" } else { "keep  " };
    section(work, "work in", found.attempts.iter().map(|name| escape(name.as_bytes())).collect());
    section(work, "work in", found.submodules.iter().map(|p| path(p)).collect());
    let trust = if args.trust { "remove" } else { "keep  " };
    section(trust, "your configuration", all.global.iter().map(|key| escape(key.as_bytes())).collect());
}
