//! What the verbs that change a branch have in common: the lease that they are inside of, and what they report.

use super::super::move_branch::{Moved, blocked_notes};
use super::super::report::Note;
use super::super::{Runner, RunnerError, Tip};
use super::{ChangeError, Inside};
use crate::protocol::event::{Event, RUNNER_ID};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::name::StateName;
use crate::protocol::transition::Run;
use crate::store::RefName;
use crate::store::checkout::Finished;
use crate::store::git_merge::Overruled;

/// What a change has written.
#[derive(Debug)]
pub struct Written {
    /// The branch that was changed.
    pub branch: RefName,
    /// Its new head.
    pub commit: ObjectId,
    /// The state that the branch has now.
    pub state: StateName,
    /// The id of the run: the one that `set-working` has begun or renewed, or that `cancel` has ended.
    pub run_id: Option<String>,
    /// True if the branch was created.
    pub created: bool,
    /// What the user should be told besides.
    pub notes: Vec<Note>,
    /// Paths where `retry` of a blocked checkout took the run's version over the branch's.
    pub overruled: Vec<Overruled>,
}

/// Returns the notes of a branch that moved with its working trees; `None` if another process was quicker. In
/// that case a working tree that could not be put back to what the branch holds is reported first, as an
/// error.
pub(super) fn moved_notes(branch: &RefName, moved: Moved) -> Result<Option<Vec<Note>>, ChangeError> {
    let blocked = |by| Err(ChangeError::Blocked(branch.clone(), by));
    match moved {
        Moved::Won(finished) => Ok(Some(blocked_notes(finished))),
        Moved::Lost(left) => match left.into_iter().find(|done| done.obstacle().is_some()) {
            Some(Finished::Blocked(_, by)) => blocked(by),
            Some(Finished::Arrived(..) | Finished::Moot(_) | Finished::Stands(_)) | None => Ok(None),
        },
        Moved::Blocked(by) => blocked(by),
    }
}

pub(super) fn working() -> Result<StateName, ChangeError> {
    StateName::new(crate::protocol::name::WORKING).map_err(|e| ChangeError::Message(e.to_string()))
}

pub(super) fn written(branch: &RefName, commit: ObjectId, state: &StateName) -> Written {
    Written {
        branch: branch.clone(),
        commit,
        state: state.clone(),
        run_id: None,
        created: false,
        notes: Vec::new(),
        overruled: Vec::new(),
    }
}

impl Runner<'_> {
    pub(super) fn write_declared(
        &self,
        branch: &RefName,
        message: &Message,
        tree: ObjectId,
        parents: Vec<ObjectId>,
    ) -> Result<ObjectId, ChangeError> {
        self.write(branch, tree, parents, message).map_err(|error| match error {
            RunnerError::Message { cause } => ChangeError::Message(cause),
            other => ChangeError::Runner(other),
        })
    }

    /// Returns the head if it is a lease of this run, with its event and the run; [`ChangeError::LeaseLost`]
    /// otherwise.
    pub(in crate::runner) fn own_lease(
        &self,
        branch: &RefName,
        inside: &Inside,
    ) -> Result<(Tip, Event, Run), ChangeError> {
        let lost = || ChangeError::LeaseLost(branch.clone(), inside.run_id.clone());
        let tip = self.fresh_tip(branch)?.ok_or_else(lost)?;
        let lease = self.whole_lease(&tip)?.filter(|e| e.run_id() == Some(&*inside.run_id));
        let lease = lease.ok_or_else(lost)?;
        let (Some(state), Some(trigger)) = (lease.origin_state(), lease.trigger()) else {
            return Err(lost());
        };
        let run = Run {
            id: inside.run_id.clone(),
            dialect: lease.dialect,
            runner_id: lease.text(RUNNER_ID).unwrap_or_default().to_owned(),
            state,
            trigger,
            hop: lease.hop(),
            lease_seconds: lease.lease_seconds().unwrap_or(self.settings.lease),
            remote: self.settings.remote.clone(),
        };
        Ok((tip, lease, run))
    }
}
