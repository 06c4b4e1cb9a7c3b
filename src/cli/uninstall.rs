//! `uninstall`: shows what a repository holds of ours, asks, and takes it away. The work is `runner::uninstall`'s.
//!
//! Commits stay as they are, `.aynig/` in them included. Work that is on no branch stays unless `--attempts` says
//! otherwise, trust in the account's own configuration unless `--trust` does or the question is answered so.

use super::args::Uninstall;
use super::fail::Failure;
use super::session::{Global, Session};
use super::{exit, output};
use crate::app::Exit;
use crate::app::config::Flags;
use crate::protocol::text::{escape, shell_word};
use crate::runner::Silent;
use crate::runner::uninstall::{Belongings, InUse};
use crate::store::config;
use crate::supervisor::interrupt::Interrupt;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// At most so many of one kind are named.
const NAMED: usize = 10;

/// Keys of ours: in the repository's own configuration, and for this repository in the account's.
struct Keys {
    own: Vec<String>,
    global: Vec<String>,
}

/// `git aynig uninstall`.
pub fn run(global: &Global, args: &Uninstall) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags::here())?;
    let interrupt = Interrupt::never()?;
    let reader = session.reader(&settings, &interrupt)?;
    let (found, keys) = (reader.belongings()?, keys(&session)?);
    list(&found, &keys, args);
    if let Some(why) = reader.in_use()? {
        return Err(in_use(&why));
    }
    drop(reader);
    if args.dry_run || (found.is_empty() && keys.own.is_empty() && keys.global.is_empty()) {
        return Ok(0);
    }
    crate::app::mend::all(&session);
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !(args.force || (asks && is_yes("Remove this? [y/N] "))) {
        return Err(Failure::refused("nothing was removed").hint("git aynig uninstall --force"));
    }
    let trust = !keys.global.is_empty()
        && (args.trust
            || (asks && !args.force && is_yes("Remove the trust from your configuration too? [y/N] ")));
    let mut ended = Exit::Done;
    {
        let runner = session.runner(&settings, &interrupt, &Silent)?;
        let out = runner.remove_belongings(args.attempts)?.map_err(|why| in_use(&why))?;
        for removal in out.removed.iter().filter(|removal| removal.kept.is_some()) {
            let kept = removal.kept.as_ref().map(|name| escape(name.as_bytes())).unwrap_or_default();
            output::note(&format!("work of a run that was cut short is kept in {kept}"));
        }
        for error in out.failed {
            ended = ended.max(Exit::from(&error));
            output::error(&Failure::from(error).render());
        }
    }
    // Last, so that what it says (hooks that are off) holds as long as there is something that it is said to.
    for key in keys.own.iter().filter(|_| ended == Exit::Done) {
        session.repo.git.unset_own(&session.repo.common_dir, key)?;
    }
    for key in keys.global.iter().filter(|_| trust && ended == Exit::Done) {
        session.repo.git.set_global(key, None)?;
    }
    if ended == Exit::Done && !global.quiet {
        output::line("Uninstalled");
        if !keys.global.is_empty() && !trust {
            output::note("kept: what your own configuration says of this repository");
            for key in &keys.global {
                output::note(&format!(
                    "hint: git config --global --unset-all {}",
                    shell_word(key.as_bytes())
                ));
            }
        }
    }
    Ok(exit::code(ended))
}

fn in_use(why: &InUse) -> Failure {
    match why {
        InUse::Run => Failure { code: 3, ..Failure::fatal("a run lives, or its worktree is kept for it") }
            .hint("git aynig status, and git aynig cancel <branch>"),
        InUse::Checkout(dir) => {
            let shown = escape(dir.as_os_str().as_encoded_bytes());
            Failure {
                code: 1,
                ..Failure::fatal(format!("'{shown}' does not yet have what its branch holds"))
            }
            .hint("commit or stash, then git aynig tick")
        }
    }
}

fn is_yes(question: &str) -> bool {
    output::error(question);
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}

fn keys(session: &Session) -> Result<Keys, Failure> {
    let ours = config::key_of(session.repo.site.dir(), "");
    let mut keys = Keys { own: Vec::new(), global: Vec::new() };
    for entry in config::read(&session.repo)? {
        let list = match entry.protected {
            true if entry.key.strip_prefix(&*ours).is_some_and(|key| !key.contains('.')) => &mut keys.global,
            false if entry.key.starts_with("aynig.") => &mut keys.own,
            true | false => continue,
        };
        if !list.contains(&entry.key) {
            list.push(entry.key);
        }
    }
    Ok(keys)
}

fn list(found: &Belongings, keys: &Keys, args: &Uninstall) {
    let path = |path: &Path| format!("'{}'", escape(path.as_os_str().as_encoded_bytes()));
    let section = |verb: &str, what: &str, names: Vec<String>| {
        names.iter().take(NAMED).for_each(|name| output::line(&format!("{verb} {what} {name}")));
        if names.len() > NAMED {
            output::line(&format!("{verb} {} more of this kind", names.len() - NAMED));
        }
    };
    section("remove", "hooks in", found.hooks.iter().map(|p| path(p)).collect());
    section("remove", "worktree", found.slots.iter().map(|p| path(p)).collect());
    section("remove", "ref", found.refs.iter().map(|name| escape(name.as_bytes())).collect());
    section("remove", "folder", found.folders.iter().map(|p| path(p)).collect());
    section("remove", "configuration", keys.own.iter().map(|key| escape(key.as_bytes())).collect());
    let work = if args.attempts { "remove" } else { "keep  " };
    section(work, "work in", found.attempts.iter().map(|name| escape(name.as_bytes())).collect());
    section(work, "work in", found.submodules.iter().map(|p| path(p)).collect());
    let trust = if args.trust { "remove" } else { "keep  " };
    section(trust, "your configuration", keys.global.iter().map(|key| escape(key.as_bytes())).collect());
}
