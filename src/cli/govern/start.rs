//! `govern start`: a run on a branch, with a command for each role. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::Start;
use super::place::change_or_begin;
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
    let adopts = branch.is_another_tools(&global.open()?)?;
    change_or_begin(global, place, true, |root, config| begin_on_branch(root, config, role, adopts))
}
