//! What a command may learn about its own run: its trigger, and its work as an outcome would read it now.
//!
//! Nothing in the slot is moved for that. Implements K25 (read before the end), K22 (the lease is the run's).

use super::super::Runner;
use super::super::change::Inside;
use super::TalkError;
use crate::protocol::id::ObjectId;

/// The work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The trigger, which the run answers.
    pub trigger: ObjectId,
    /// The tree of the run's lease.
    pub before: ObjectId,
    /// The tree of what its slot holds now.
    pub now: ObjectId,
}

impl Runner<'_> {
    /// Returns the trigger of the run that this process belongs to.
    ///
    /// # Errors
    /// Where the lease is lost.
    pub fn own_trigger(&self, inside: &Inside) -> Result<ObjectId, TalkError> {
        Ok(self.own_lease(&inside.branch, inside)?.2.trigger)
    }

    /// Returns the work of the run that this process belongs to, as it is now.
    ///
    /// # Errors
    /// Where the lease is lost, or the slot's content can't be an outcome.
    pub fn own_work(&self, inside: &Inside) -> Result<Work, TalkError> {
        let (tip, _, run) = self.own_lease(&inside.branch, inside)?;
        let (now, _, _) = self.inside_tree(inside, &tip, run.dialect, &mut Vec::new())?;
        Ok(Work { trigger: run.trigger, before: tip.commit.tree, now })
    }
}
