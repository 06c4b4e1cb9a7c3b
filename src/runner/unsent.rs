//! Outcomes that are not on their branch: kept before they are pushed, published where a run stalled.
//!
//! An outcome that the remote declined ends the run `stalled`; one that could not be brought there while the
//! lease held is kept here, and `retry` lands it. Implements K26 (remote mode), K31.

use super::finish::with_causes;
use super::live::Live;
use super::report::{Note, Ran, Report};
use super::slot::attempt_ref;
use super::supervise::note_once;
use super::{Runner, RunnerError};
use crate::protocol::complete::{Exit, Stall};
use crate::protocol::id::ObjectId;
use crate::store::{RefName, StoreError, swap};

impl Runner<'_> {
    /// Keeps a whole outcome as the run's attempt, which `retry` can land.
    pub(super) fn keep_outcome(&self, live: &Live, commit: ObjectId) -> Result<Option<RefName>, RunnerError> {
        let Some(name) = attempt_ref(&live.claimed.run.id) else { return Ok(None) };
        self.keep(&name, commit)?;
        Ok(Some(name))
    }

    pub(super) fn drop_outcome(&self, kept: Option<RefName>, commit: ObjectId) -> Result<(), RunnerError> {
        if let Some(name) = kept {
            swap::delete_ref(&*self.store, &name, commit, &self.signature())?;
        }
        Ok(())
    }

    /// An outcome that the remote refused, or that could not be brought there, or written here, while the lease
    /// held (K31).
    pub(super) fn not_landed(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        error: RunnerError,
        (commit, kept): (ObjectId, Result<Option<RefName>, RunnerError>),
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        // Where the news of it is not taken either, it was no word about the outcome: both are tried again (K31).
        if let RunnerError::Store(StoreError::Remote { message, .. }) = &error
            && error.is_no()
        {
            let why = Stall::Declined(message.clone());
            let name = kept.as_ref().ok().cloned().flatten();
            let done = self.try_stall(branch, live, Some(exit), why, name, report);
            if !done.as_ref().is_err_and(RunnerError::is_no) || self.is_worth_a_round(&done, live) {
                return done;
            }
        }
        // What is finished is kept, whatever held up its branch.
        let kept = kept.and_then(|kept| match kept {
            None => self.keep_outcome(live, commit),
            kept => Ok(kept),
        });
        match kept {
            Ok(Some(name)) => {
                report.notes.push(Note::OutcomeKept(name));
                self.release(live)?;
            }
            Ok(None) => {}
            Err(why) => report.notes.push(Note::WorkNotKept(with_causes(&why))),
        }
        Err(error)
    }

    /// Puts an attempt where the branch is, so that whoever looks there can have it. Here it is kept anyway.
    pub(super) fn publish(&self, name: &RefName, report: &mut Report) {
        let published = self.store.tip(name).and_then(|id| match id {
            Some(id) => self.store.publish(name, id),
            None => Ok(()),
        });
        if let Err(error) = published {
            note_once(report, Note::NotPublished(name.clone(), with_causes(&error)));
        }
    }
}
