//! Filling a slot is part of its run: it is bounded, renews the lease, and ends where the run is not wanted any more.
//!
//! A thread fills; this one keeps what a run keeps while its command runs: a signal, the time limit, a lease that is
//! lost or can't be renewed stop it. Implements K14, K17, K18.

use super::claim::Claimed;
use super::{Runner, RunnerError};
use crate::protocol::holding::{Duty, RENEW_AGAIN};
use crate::store::slots::Slot;
use crate::store::{RefName, StoreError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);

fn stopped(why: &str) -> RunnerError {
    StoreError::Gix { what: "fill the worktree", message: why.to_owned() }.into()
}

impl Runner<'_> {
    /// Brings a slot to the lease of its run.
    pub(super) fn fill(
        &self,
        branch: &RefName,
        claimed: &mut Claimed,
        slot: &mut Slot,
    ) -> Result<(), RunnerError> {
        let (stop, repo, first, tree) = (slot.stopper(), self.repo, claimed.first, claimed.tree);
        let filled = std::thread::scope(|scope| {
            let (tell, hear) = channel();
            let work = move || {
                let filled = slot.fill(repo, first, tree).map(drop);
                // Whoever does not listen any more is told by the end of the scope.
                let _ = tell.send(filled);
            };
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                return Err(stopped("the system gives no thread"));
            }
            self.wait_filled(branch, claimed, &hear).unwrap_or_else(|why| {
                stop.store(true, Ordering::Relaxed);
                // What it says now is that it was stopped, or that it was ready all the same: too late.
                let _ = hear.recv();
                Err(stopped(why))
            })
        });
        stop.store(false, Ordering::Relaxed);
        filled
    }

    /// Waits for the end; or says why it is not to be waited for any more.
    fn wait_filled(
        &self,
        branch: &RefName,
        claimed: &mut Claimed,
        hear: &Receiver<Result<(), StoreError>>,
    ) -> Result<Result<(), RunnerError>, &'static str> {
        let (began, mut not_before) = (Instant::now(), Duration::ZERO);
        let look_every = self.look_every(claimed.run.lease_seconds);
        let mut look = began + look_every;
        loop {
            match hear.recv_timeout(LOOK) {
                Ok(filled) => return Ok(filled.map_err(RunnerError::from)),
                Err(RecvTimeoutError::Disconnected) => return Err("its thread is gone"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.signal().is_some() {
                return Err("it was interrupted");
            }
            if self.settings.timeout.is_some_and(|limit| began.elapsed() >= limit) {
                return Err("it took longer than aynig.timeout");
            }
            let (now, moments) = (self.clock.elapsed(), self.moments(claimed));
            if now >= moments.ends {
                return Err("it took longer than its lease");
            }
            // What can't be read or written now may be later; the lease's end is the limit.
            match moments.duty(now, not_before) {
                Duty::Wait => {}
                Duty::GiveUp => return Err("its lease could not be renewed"),
                Duty::Renew => {
                    if matches!(self.renew(branch, claimed), Ok(false)) {
                        return Err("its lease was lost");
                    }
                    not_before = self.clock.elapsed() + RENEW_AGAIN;
                }
            }
            if Instant::now() >= look {
                look = Instant::now() + look_every;
                let head = self.fresh_tip(branch);
                if head.is_ok_and(|tip| tip.is_none_or(|tip| tip.id() != claimed.lease.id)) {
                    return Err("its lease was lost");
                }
            }
        }
    }
}
