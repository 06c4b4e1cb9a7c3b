//! The pauses that stand, as `status` shows them: what each holds, who made it, since when, and why.
//!
//! Implements K50 (what is shown), K55.

use super::AppError;
use super::shown::Shown;
use crate::protocol::inbox::MessageId;
use crate::protocol::pause::Holder;
use crate::runner::Runner;
use crate::runner::talk::pause::Paused;
use crate::store::RefName;
use serde::Serialize;

/// The pauses that stand, the oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pauses(pub Vec<Paused>);

impl Pauses {
    /// Reads the pauses that are known; those of a remote as they came with its heads.
    pub fn look(runner: &Runner<'_>) -> Result<Self, AppError> {
        let found = runner.known_pauses();
        Ok(Self(found.map_err(|error| AppError::talked(error, runner.settings.remote.clone()))?))
    }

    /// Returns the pauses that hold a branch.
    pub fn of(&self, branch: &RefName) -> impl Iterator<Item = &Paused> {
        self.0.iter().filter(|paused| paused.holds(branch))
    }

    /// Returns the pauses that hold one of these branches; without branches, all of them.
    pub fn of_any(&self, branches: &[RefName]) -> impl Iterator<Item = &Paused> {
        let is_meant = |paused: &&Paused| branches.iter().any(|branch| paused.holds(branch));
        self.0.iter().filter(move |paused| branches.is_empty() || is_meant(paused))
    }

    /// True where other pauses hold a branch than those in `others`.
    pub fn hold_otherwise(&self, others: &Self, branch: &RefName) -> bool {
        !self.of(branch).eq(others.of(branch))
    }

    /// Returns the pauses that hold a branch, as programs read them.
    pub(super) fn lines(&self, branch: &RefName) -> Vec<HoldingLine<'_>> {
        self.of(branch).map(HoldingLine::of).collect()
    }
}

/// A pause that holds a branch, as programs read it.
#[derive(Serialize)]
pub(super) struct HoldingLine<'a> {
    id: Shown<MessageId>,
    patterns: &'a [String],
    holder: Shown<&'a Holder>,
    reason: &'a str,
    since: Option<i64>,
}

impl<'a> HoldingLine<'a> {
    fn of(paused: &'a Paused) -> Self {
        Self {
            id: Shown(paused.id),
            patterns: &paused.pause.patterns,
            holder: Shown(&paused.pause.holder),
            reason: &paused.pause.reason,
            since: paused.since,
        }
    }
}
