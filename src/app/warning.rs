//! What a verb says while it is at work, as types: a listener is told, and cannot answer.

use super::AppError;
use crate::protocol::obstacle::Obstacle;
use crate::runner::Observer;
use crate::runner::report::Report;
use crate::store::RefName;
use std::path::PathBuf;

/// Something that a user should know, and that keeps no verb from its work.
#[derive(Debug)]
pub enum Warning {
    /// This key in the repository's own configuration does not count.
    Ignored(String),
    /// This key is in a file that Git includes only for some branches or remotes: nothing may run.
    Conditional(String),
    /// This remote is named by the repository's own configuration alone, and is not asked before trust (K34).
    NotAsked(String),
    /// A working tree that should follow its branch, and what is in the way.
    CannotFollow(PathBuf, Obstacle),
    /// A branch that could not be noted for the runner of this run, and why.
    CannotNote(RefName, String),
    /// The branch that is checked out is meant, and HEAD is detached.
    NoCurrentBranch,
    /// A message waits for this branch, and nothing may run on it here: the next tick of a user who may run there delivers it.
    LeftToOthers(RefName),
    /// `aynig.hooks` was switched off while a chain waited.
    HooksOff,
    /// Part of the work failed, and the verb goes on without it.
    Failed(AppError),
}

/// Hears warnings as they come.
pub trait Listener: Send + Sync {
    /// Takes one.
    fn warned(&self, warning: &Warning);
}

/// For work of which no user should hear.
pub struct Unheard;

impl Listener for Unheard {
    fn warned(&self, _: &Warning) {}
}

/// Hears how branches are evaluated, as it happens.
pub trait Audience: Observer {
    /// A branch was evaluated.
    fn reported(&self, report: &Report);
    /// Branches were settled by one look at all heads: there may be very many.
    fn settled(&self, reports: &[Report]) {
        reports.iter().for_each(|report| self.reported(report));
    }
    /// A chain's last look at the other branches recovered one.
    fn recovered(&self, report: &Report);
}
