//! When a run has to do what: look at its branch, renew its lease, give it up.
//!
//! The moments themselves are `holding`'s; here they meet the settings and the loop's own clock.
//! Implements K18 (times).

use super::Runner;
use super::claim::Claimed;
use crate::protocol::holding::Moments;
use std::time::{Duration, Instant};

/// How often a branch that is here is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest time between two looks at a remote's branch.
const REMOTE_LOOK_MAX: Duration = Duration::from_secs(30);
impl Runner<'_> {
    /// How long between two looks at the branch.
    pub(super) fn look_every(&self, lease_seconds: u64) -> Duration {
        match self.settings.remote {
            Some(_) => (Duration::from_secs(lease_seconds) / 10).clamp(LOOK_EVERY, REMOTE_LOOK_MAX),
            None => LOOK_EVERY,
        }
    }

    /// What a run's lease asks for, and when.
    pub(super) fn moments(&self, claimed: &Claimed) -> Moments {
        let run = &claimed.run;
        Moments::of(run.dialect.writer(), claimed.lease.born, run.lease_seconds, self.settings.kill_grace)
    }

    /// When to wake up at the latest.
    pub(super) fn wake_at(&self, look: Instant, moments: &Moments) -> Instant {
        let now = self.clock.elapsed();
        look.min(Instant::now() + moments.next(now).saturating_sub(now))
    }
}
