//! Runs whose command could not even be prepared: the slot was not filled, a log not made.
//!
//! Implements K14 (a fill that fails), K29 (where nobody but the command may write).

use super::claim::Claimed;
use super::live::Live;
use super::report::{Note, Ran, Report};
use super::{Runner, RunnerError};
use crate::protocol::complete::Stall;
use crate::protocol::dialect::Writer;
use crate::store::RefName;
use crate::store::slots::Slot;

impl Runner<'_> {
    /// Ends a run whose command could not be prepared.
    pub(super) fn finish_unstarted(
        &self,
        branch: &RefName,
        claimed: Claimed,
        slot: Slot,
        error: &RunnerError,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        let logs = super::logs::paths(&super::logs::folder(self.repo).0, claimed.run.trigger, 1);
        let dir = self.run_dir(&claimed.run.id);
        let mut live = Live::new(claimed, slot, dir, logs, None);
        live.interrupted = self.interrupt.signal();
        let why = super::finish::with_causes(error);
        match live.claimed.run.dialect.writer() {
            Writer::Runner => self.finish_stalled(branch, &mut live, None, Stall::Slot(why), report),
            Writer::Command => {
                report.notes.push(Note::NotPrepared(why));
                self.finish_left(branch, &mut live, None, report)
            }
        }
    }
}
