//! `govern start`: a run on a branch, with a command for each role. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::{Start, Where};
use super::failure::STATUS;
use super::place::changed;
use crate::app::govern::GovernError;
use crate::app::govern::begin::{begin, begin_on_branch};

/// Runs `git aynig govern start`.
pub(crate) fn run(global: &Global, args: &Start) -> Result<i32, Failure> {
    let (place, role) = (&args.place, args.role.as_deref());
    if place.root.is_some() {
        let begun = changed(global, place, true, |root, config, _| begin(root, config, role, false));
        return begun.map_err(|failed| place.there(failed));
    }
    let branch = place.run("govern start -b <branch>");
    let prepared = branch.prepare(&global.open()?);
    if let Err(GovernError::Unanswered { written: true, .. }) = &prepared
        && !place.json
    {
        output::line("Wrote .aynig/command/turn/ for them");
    }
    prepared.map_err(|error| place.there(error.into()))?;
    let mut is_new = false;
    let begun = changed(global, place, true, |root, config, ground| {
        is_new = ground.is_some_and(|ground| ground.is_new);
        // What a new branch begins at is a copy of HEAD's run, which stays under way there: with that taken up too,
        // two branches would have one run.
        let adopts = ground.is_some_and(|ground| !ground.is_new && !ground.has_state);
        begin_on_branch(root, config, role, adopts)
    });
    begun.map_err(|failed| if is_new { at_head(global, place, failed) } else { place.there(failed) })
}

/// Returns the failure to begin a run on a branch that was not made: the run that is in the way is HEAD's, and the
/// hint shows it there.
fn at_head(global: &Global, place: &Where, failed: Failure) -> Failure {
    let is_detached = global.open().is_ok_and(|session| matches!(session.current_branch(), Ok(None)));
    let (of_run, rest) = failed.hints.into_iter().partition::<Vec<_>, _>(|hint| hint == STATUS);
    let mut failed = place.there(Failure { hints: rest, ..failed });
    if !of_run.is_empty() {
        let shown = if is_detached { "git show HEAD:.agentxchain/state.json" } else { STATUS };
        failed.hints.push(shown.to_owned());
    }
    failed
}
