//! What a verb reports while it is at work, as types. A listener receives it, and cannot answer.

use super::AppError;
use crate::protocol::obstacle::Obstacle;
use crate::runner::Observer;
use crate::runner::report::Report;
use crate::store::RefName;
use crate::store::protected::Unsure;
use std::path::PathBuf;

/// Something that a user should know, and that does not keep a verb from its work.
#[derive(Debug)]
pub enum Warning {
    /// This key in the repository's own configuration does not count.
    Ignored(String),
    /// Whether this key holds here is for others to say, so nothing may run.
    Unsure(Unsure),
    /// This remote is named by the repository's own configuration alone, and is not asked before trust (K34).
    NotAsked(String),
    /// A working tree that should follow its branch but can't, and what is in the way.
    CannotFollow(PathBuf, Obstacle),
    /// A working tree that follows its branch now, but for a file that could not be removed there: Git's warning.
    NotRemoved(PathBuf, String),
    /// A working tree that may hold files of an outcome that did not land: a checkout was cut short there, and can't be
    /// put back any more.
    Stands(PathBuf),
    /// A branch that could not be noted for the runner of the run that this process is inside of, and why.
    CannotNote(RefName, String),
    /// The verb is about the branch that is checked out, but HEAD is detached.
    NoCurrentBranch,
    /// A message waits for this branch, but nothing may run on the branch in this repository: the next tick
    /// of a user who may run commands there delivers it.
    LeftToOthers(RefName),
    /// A message of this kind waits for this branch, of that remote, whose head takes none of the kind.
    NotTaken(RefName, String, Option<String>),
    /// `aynig.hooks` was switched off while a chain waited.
    HooksOff,
    /// Part of the work failed, and the verb goes on without it.
    Failed(AppError),
}

/// Receives warnings as they come.
pub trait Listener: Send + Sync {
    /// Takes one warning.
    fn warned(&self, warning: &Warning);
}

/// A listener for work of which no user should hear.
pub struct Unheard;

impl Listener for Unheard {
    fn warned(&self, _: &Warning) {}
}

/// Receives reports of branches as they are evaluated.
pub trait Audience: Observer {
    /// Takes the report of a branch that was evaluated.
    fn reported(&self, report: &Report);
    /// Takes the reports of branches that one look at all heads settled; there may be very many.
    fn settled(&self, reports: &[Report]) {
        reports.iter().for_each(|report| self.reported(report));
    }
    /// Takes the report of a branch that a chain's last look at the other branches recovered.
    fn recovered(&self, report: &Report);
}
