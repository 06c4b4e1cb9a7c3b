//! What a command may ask about its own run: what it answers, and its work as an outcome would read it now.
//!
//! Nothing in the slot is moved for it. Implements K25 (read before the end), K22 (the lease is the run's).

use super::super::Runner;
use super::super::change::Inside;
use super::TalkError;
use crate::protocol::id::ObjectId;

/// The work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What the run answers.
    pub trigger: ObjectId,
    /// The tree that it began with.
    pub before: ObjectId,
    /// The tree that its slot holds.
    pub now: ObjectId,
}

impl Runner<'_> {
    /// What the run that we are inside of answers.
    ///
    /// # Errors
    /// Where the lease is lost.
    pub fn own_trigger(&self, inside: &Inside) -> Result<ObjectId, TalkError> {
        Ok(self.own_lease(&inside.branch, inside)?.2.trigger)
    }

    /// Its work as it is now.
    ///
    /// # Errors
    /// Where the lease is lost, or the slot holds what is no outcome.
    pub fn own_work(&self, inside: &Inside) -> Result<Work, TalkError> {
        let (tip, _, run) = self.own_lease(&inside.branch, inside)?;
        let (now, _, _) = self.inside_tree(inside, &tip, run.dialect, &mut Vec::new())?;
        Ok(Work { trigger: run.trigger, before: tip.commit.tree, now })
    }
}
