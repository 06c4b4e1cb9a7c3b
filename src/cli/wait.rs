//! `wait`: returns when a branch rests or was in a state; prints which, and its exit code says how the wait
//! ended.
//!
//! Implements git-aynig-wait(1), K36, K55.

use super::args::Wait;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output, status};
use crate::app::wait::{self, Reached, Request, WaitLine, Waited};
use crate::protocol::text::escape;

/// Runs `git aynig wait`.
pub fn run(global: &Global, args: &Wait) -> Result<i32, Failure> {
    let (states, timeout) = (wait::states(&args.states)?, wait::timeout(args.timeout.as_deref())?);
    let request = Request { branch: &args.branch, states, timeout, remote: args.remote.clone() };
    let waited = wait::wait(&global.open()?, &request)?;
    if args.json {
        output::line(&output::json(&WaitLine::of(&waited)));
    } else if let Some(line) = line(&waited) {
        output::line(&line);
    }
    if !global.quiet && !args.json {
        note(&waited);
    }
    Ok(exit::code(waited.reached.exit()))
}

/// Returns the branch with the state that was reached; `None` where none was.
fn line(waited: &Waited) -> Option<String> {
    let branch = escape(waited.status.branch.short());
    let at = |commit: String, state: String| Some(format!("{branch}: {state} ({commit})"));
    match &waited.reached {
        Reached::State(commit, state) => at(commit.short(8), state.to_string()),
        Reached::Rest | Reached::Stalled | Reached::Refused => {
            at(waited.status.tip.id().short(8), status::state(&waited.status))
        }
        Reached::Late | Reached::Signal(_) => None,
    }
}

/// Prints why the branch went no further.
fn note(waited: &Waited) {
    let branch = escape(waited.status.branch.short());
    let words = || status::words(&waited.status, waited.now, waited.settings.remote.as_deref(), false);
    match &waited.reached {
        Reached::Stalled | Reached::Refused => output::note(&format!("{branch}: {}", words())),
        Reached::Late => {
            let (state, took) = (status::state(&waited.status), status::span(waited.took.as_secs() as i64));
            output::note(&format!("{branch}: still {state} after {took}: {}", words()));
        }
        Reached::Rest | Reached::State(..) | Reached::Signal(_) => {}
    }
}
