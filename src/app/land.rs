//! `land`: asks that branches be landed on another, and says which of them wait for others.
//!
//! A caller uses [`landing`], then [`Change::land`] for each branch; the machines that tick do the rest. A
//! caller that ticks itself asks [`Change::queued`] whether one of its branches waits for another's check,
//! and [`Change::not_landed`] how it ended. Implements K60 (asking).

use super::AppError;
use super::change::Change;
use crate::protocol::id::ObjectId;
use crate::protocol::landing::{History, is_of_a_landing};
use crate::protocol::name::StateName;
use crate::runner::Silent;
use crate::runner::change::Written;
pub use crate::runner::change::land::Landing;
use crate::runner::settings::CommandsFrom;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::{OsStr, OsString};

/// Returns what was asked for. Without a target, branches land on the branch that commands come from, else on
/// `main`.
pub fn landing(
    change: &Change<'_>,
    onto: Option<&OsStr>,
    history: Option<History>,
    after: &[OsString],
) -> Result<Landing, AppError> {
    change.session.require_trust(&change.settings)?;
    let onto = match (onto, &change.settings.commands_from) {
        (Some(name), _) => change.session.branch(name)?,
        (None, CommandsFrom::Ref(name)) if name.as_bytes().starts_with(b"refs/heads/") => name.clone(),
        (None, CommandsFrom::Ref(_) | CommandsFrom::Branch | CommandsFrom::Nowhere) => {
            RefName::branch("main")
        }
    };
    let after = after.iter().map(|name| change.session.branch(name)).collect::<Result<_, _>>()?;
    Ok(Landing { onto, history, after })
}

impl Change<'_> {
    /// Returns the branches that are named, else the run's own, else the current one.
    pub fn named_or_current(&self, names: &[OsString]) -> Result<Vec<RefName>, AppError> {
        match names {
            [] => Ok(vec![self.session.branch_or_current(None, "land <branch>")?]),
            names => names.iter().map(|name| self.session.branch(name)).collect(),
        }
    }

    /// Asks that a branch be landed.
    pub fn land(&self, branch: &RefName, landing: &Landing) -> Result<Written, AppError> {
        self.write(|runner, inside| self.changed(runner.ask_to_land(branch, landing, inside)))
    }

    /// Returns the first of these branches that waits for another's check, and that other branch.
    pub fn queued(&self, branches: &[RefName]) -> Result<Option<(RefName, RefName)>, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        for branch in branches {
            if let Some(first) = runner.lands_behind(branch)? {
                return Ok(Some((branch.clone(), first)));
            }
        }
        Ok(None)
    }

    /// Returns those of these branches that have not landed since these commits asked for it. Where a branch's
    /// head does not belong to the landing any more, since its check named another state or wrote one itself, that
    /// state comes with it.
    pub fn not_landed(
        &self,
        asked: &[(RefName, ObjectId)],
    ) -> Result<Vec<(RefName, Option<StateName>)>, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        let mut others = Vec::new();
        for (branch, request) in asked {
            let tip = runner.fresh_tip(branch)?;
            if tip.as_ref().map_or(Ok(false), |tip| runner.has_landed_since(tip, *request))? {
                continue;
            }
            let event = tip.and_then(|tip| tip.event);
            let left = event.as_ref().filter(|event| !is_of_a_landing(event));
            others.push((branch.clone(), left.and_then(|event| event.state_name().cloned())));
        }
        Ok(others)
    }
}
