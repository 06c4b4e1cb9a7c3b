//! What Git's hooks call. Failures and notices begin with `aynig: `, except for the notice that the ref of
//! the commands does not exist.
//!
//! A hook never changes the exit status of the Git command that called it. The work is `app::hook`'s.

use super::chain::Onlooker;
use super::fail::Failure;
use super::inner::Hook;
use super::session::{Global, Session};
use super::{hints, output, reader, render, status};
use crate::app::hook::{Hearer, Notice, Push, here, pushed};
use crate::app::is_switched_off;
use crate::app::mend::logs_away;
use crate::protocol::text::escape;
use crate::runner::logs;
use crate::store::RefName;
use crate::store::hooks::HookEvent;

/// Runs `git aynig hook <event>`. Always returns 0, since the commit, the merge or the push is done already.
pub fn run(global: &Global, args: &Hook) -> i32 {
    if is_switched_off() {
        return 0;
    }
    let done = match HookEvent::named(&args.event) {
        Some(HookEvent::PostCommit) => here(|| global.open(), false, &Speaker).map_err(Failure::from),
        Some(HookEvent::PostMerge) => merged(global, false),
        // Git calls this hook after `git commit --amend`, too: an amended commit had its own post-commit.
        Some(HookEvent::PostRewrite) => match args.args.first().map(|a| a.as_os_str()) {
            Some(what) if what == "rebase" => merged(global, true),
            Some(_) | None => Ok(()),
        },
        Some(HookEvent::PostReceive) => received(global),
        None => Err(Failure::usage(format!("no such hook: '{}'", escape(args.event.as_bytes())))),
    };
    if let Err(failure) = done {
        for line in failure.render().lines() {
            output::note(&format!("aynig: {line}"));
        }
    }
    0
}

/// Looks at what others wrote and a merge, or a rebase, has brought: that may be rules which let logs into
/// commits.
fn merged(global: &Global, rebased: bool) -> Result<(), Failure> {
    let opened = global.open();
    // Where the repository can't be opened, that is said only of what is asked for.
    if let Ok(session) = &opened {
        logs_away(session);
    }
    Ok(here(|| opened, rebased, &Speaker)?)
}

fn received(global: &Global) -> Result<(), Failure> {
    reader::is_pusher();
    pushed(global.open()?, || Push::read(std::io::stdin().lock()), &Speaker)?;
    Ok(())
}

struct Speaker;

impl Hearer for Speaker {
    type Audience = Onlooker;

    fn hear(&self, notices: Vec<Notice>) {
        let text: String = notices.iter().map(text).collect();
        if !text.is_empty() {
            output::error(&text);
        }
    }

    fn audience(&self, session: &Session) -> Onlooker {
        Onlooker::watching(logs::open_hook_log(&session.repo).ok())
    }
}

fn text(notice: &Notice) -> String {
    let shown = |branch: &RefName| escape(branch.short());
    let of = |branch: &Option<RefName>| branch.as_ref().map(|b| shown(b) + ": ").unwrap_or_default();
    let on = if reader::is_away() { "; on the server" } else { "" };
    let text = match notice {
        Notice::Missed(branch, missed) => format!("{}{}", of(branch), render::missed_state(missed)),
        Notice::Alike(branch, state, meant) => {
            format!("{}no command answers '{state}': {}", of(branch), render::did_you_mean(meant))
        }
        Notice::NotTrusted(place) => {
            format!("not trusted, nothing runs{on}: git -C {} aynig trust", hints::place(place))
        }
        Notice::Unsure(unsure, place) => {
            format!(
                "{unsure}, nothing runs{on}: git -C {} {}",
                hints::place(place),
                hints::show_key(unsure.key())
            )
        }
        Notice::HopLimit(branch, max) => {
            format!("{}: not dispatched: its chain has reached {max} hops", shown(branch))
        }
        Notice::Unusable(branch, path, why) => {
            format!("{}: not dispatched: .aynig/{path}: {why}", shown(branch))
        }
        Notice::LeftOut(branch) => format!("{}: left out by aynig.branches", shown(branch)),
        Notice::NotVouched(branch, refusal) => format!("{}: {refusal}", shown(branch)),
        Notice::InvalidState(branch, state, why) => {
            format!("{}: state '{}' is not usable: {why}", shown(branch), escape(state))
        }
        Notice::Absent(name, place) => return status::absent(name, place),
        Notice::Dispatched { branch, state, run_id, queued } => {
            let (what, why) = match queued {
                false => ("dispatched", ""),
                true => ("queued", ": no worktree is free"),
            };
            format!("{state} {what} on {} (run {}){why}", shown(branch), &run_id[..8])
        }
    };
    format!("aynig: {text}\n")
}
