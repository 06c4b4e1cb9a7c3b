//! What became of a run: as a line, and as notes.
//!
//! What came from a repository is escaped before a person sees it. Implements K36.

use super::hints::{self, Addressed};
use super::render::full;
use crate::protocol::complete::{Exit, Stall};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::{escape, shell_word};
use crate::runner::report::{LostTo, Outcome, Ran};
use std::os::unix::ffi::OsStrExt;

/// Returns what became of a run, in one line.
pub fn line(branch: &str, ran: &Ran) -> String {
    let took = format!("{:.1}s", ran.took.as_secs_f64());
    let state = &ran.state;
    match &ran.outcome {
        Outcome::Advanced { state: next, commit } => {
            format!("{branch}: {state} -> {next} ({}, {took})", commit.short(8))
        }
        Outcome::KeptLease { left, .. } => {
            let left = left.as_secs();
            format!(
                "{branch}: {state} goes on: the command ended and declared no state (SET_STATE), its lease lives on for {left}s ({took})"
            )
        }
        Outcome::LeaseLeft { failed, left, .. } => {
            let left = left.as_secs();
            let exit = ran.exit.as_deref().unwrap_or("its command was not started");
            let how = if *failed { "failed" } else { "ended" };
            format!(
                "{branch}: {state} {how} without a next state: its lease lives until it expires in {left}s ({}, {took})",
                escape(exit.as_bytes())
            )
        }
        Outcome::Own { commit, state: next } => {
            let next = next.as_ref().map_or("?", |s| s.as_str());
            let exit = ran.exit.as_deref().unwrap_or("");
            format!(
                "{branch}: {state} -> {next} ({}, by its command, {}, {took})",
                commit.short(8),
                escape(exit.as_bytes())
            )
        }
        Outcome::Stalled { why, commit } => {
            format!(
                "{branch}: {state} stalled: {} ({}, {took})",
                escape(why.to_string().as_bytes()),
                commit.short(8)
            )
        }
        Outcome::Fenced { to } => {
            let to = match to {
                Some(LostTo::Nothing) => "; the branch is gone".to_owned(),
                Some(LostTo::Commit(id)) => format!("; its head is {}, no state event", id.short(8)),
                Some(LostTo::Event(id, Some(state))) => {
                    format!("; its head is {}, state '{state}'", id.short(8))
                }
                Some(LostTo::Event(id, None)) => format!("; its head is {}", id.short(8)),
                None => String::new(),
            };
            format!("{branch}: {state} lost its lease: nothing was written to the branch{to} ({took})")
        }
    }
}

/// Returns the notes and hints that go with the line about a run.
pub fn notes(at: &Addressed, ran: &Ran) -> Vec<String> {
    let branch = &at.shown;
    let mut notes = Vec::new();
    if let Some(name) = &ran.attempt {
        notes.push(format!("{branch}: work that is not on the branch is kept in {}", full(name)));
    }
    // A command that was never started has printed nothing that `logs` could show.
    let ran_at_all = match &ran.outcome {
        Outcome::Stalled { why, .. } => !matches!(why, Stall::Exit(Exit::NotStarted(_))),
        _ => true,
    };
    let cause = match &ran.exit {
        Some(_) if ran_at_all => at.logs_of(&ran.trigger.short(10), &ran.stderr_log),
        Some(_) | None => "git aynig doctor".to_owned(),
    };
    let hints = match &ran.outcome {
        Outcome::Stalled { why: Stall::Checkout(by), .. } => {
            notes.push(format!("{branch}: {}", escape(by.to_string().as_bytes())));
            let mend = match by {
                Obstacle::Changes(words) if words.contains("resolve your current index") => {
                    "finish or abort what 'git status' names"
                }
                Obstacle::Changes(_) => {
                    "git stash -u; or commit, but where both changed a line the run's wins"
                }
                // It can't end any more, as the branch has moved.
                Obstacle::Rebase(dir) => {
                    &format!("git -C {} rebase --quit", shell_word(dir.as_os_str().as_bytes()))
                }
                other => &hints::of_obstacle(other),
            };
            vec![format!("once that is out of the way ({mend}): {}", at.call("retry"))]
        }
        Outcome::Stalled { .. } => vec![cause, at.call("retry")],
        Outcome::LeaseLeft { .. } => vec![cause, at.call("cancel")],
        Outcome::KeptLease { .. } => vec![at.call("cancel")],
        Outcome::Fenced { to } => {
            let look = match to {
                Some(LostTo::Nothing) => at.create(&ran.trigger.short(10)),
                Some(LostTo::Commit(_)) => at.set(ran.state.as_str()),
                Some(LostTo::Event(..)) | None => at.call("events"),
            };
            let work =
                ran.attempt.as_ref().map(|name| format!("git diff {} {}", ran.trigger.short(10), full(name)));
            std::iter::once(look).chain(work).collect()
        }
        Outcome::Advanced { .. } | Outcome::Own { .. } => Vec::new(),
    };
    notes.extend(hints.iter().map(|hint| format!("hint: {hint}")));
    notes
}
