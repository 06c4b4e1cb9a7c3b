//! `govern start`: a run on a branch, with a command for each role. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::{Start, Where};
use super::place::{acted, change_or_begin};
use crate::app::govern::GovernError;
use crate::app::govern::begin::{begin, begin_on_branch};

/// Runs `git aynig govern start`.
pub(crate) fn run(global: &Global, args: &Start) -> Result<i32, Failure> {
    let (place, role) = (&args.place, args.role.as_deref());
    if place.root.is_some() {
        return change_or_begin(global, place, true, |root, config| begin(root, config, role, false));
    }
    let branch = place.run("govern start -b <branch>");
    let prepared = branch.prepare(&global.open()?);
    if let Err(GovernError::Unanswered { written: true, .. }) = &prepared
        && !place.json
    {
        output::line("Wrote .aynig/command/turn/ for them");
    }
    prepared.map_err(|error| place.there(error.into()))?;
    let ground = branch.ground(&global.open()?)?;
    let adopts = ground.is_another_tools;
    // A run that is in the way of a branch yet to be made is HEAD's.
    let holder = Where { branch: place.branch.clone().filter(|_| !ground.is_new), ..place.clone() };
    let begun = acted(global, place, true, |root, config| begin_on_branch(root, config, role, adopts));
    begun.map_err(|failed| holder.there(failed))
}
