//! `govern start`: a run on a branch, with a command for each role. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::Start;
use super::place::{told, warn};
use crate::app::govern::begin::begin;
use crate::app::govern::place::{Changed, change_folder};
use crate::app::govern::{Done, GovernError, acts};
use crate::governed::{Config, GovernedError, Root};

/// Runs `git aynig govern start`.
pub(crate) fn run(global: &Global, args: &Start) -> Result<i32, Failure> {
    let begun = begun(global, args).and_then(|changed| {
        warn(global, &changed.warnings);
        told(global, &args.place, changed)
    });
    begun.map_err(|failed| args.place.there(failed))
}

fn begun(global: &Global, args: &Start) -> Result<Changed, Failure> {
    let (place, role) = (&args.place, args.role.as_deref());
    if let Some(folder) = &place.root {
        return Ok(change_folder(folder, |root, config| begin_in_folder(root, config, role))?);
    }
    let branch = place.run("govern start -b <branch>");
    let prepared = branch.prepare(&global.open()?);
    if let Err(GovernError::Unanswered { written: true, .. }) = &prepared
        && !place.json
    {
        output::line("Wrote .aynig/command/turn/ for them");
    }
    prepared?;
    Ok(branch.begin(global.open()?, role, !place.no_tick)?)
}

/// Begins a run in a plain folder. What its first turn is to be no commit can say there, so that turn is assigned.
fn begin_in_folder(root: &Root, config: &Config, role: Option<&str>) -> Result<Done, GovernedError> {
    let begun = begin(root, config, role, false)?;
    if role.is_none() {
        return Ok(begun);
    }
    Ok(match acts::assign(root, config, role) {
        Ok(done) => Done { happened: format!("{}; {}", begun.happened, done.happened), ..done },
        Err(error) => Done { failure: Some(error), next: None, ..begun },
    })
}
