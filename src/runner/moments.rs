//! When a run has to do what: look at its branch, renew its lease, give it up.
//!
//! The lease is given up before it ends, so that the command is dead before another may take the branch.
//! Implements K18 (times).

use super::Runner;
use super::claim::Claimed;
use crate::protocol::dialect::Writer;
use std::time::{Duration, Instant};

/// How often a branch that is here is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest time between two looks at a remote's branch.
const REMOTE_LOOK_MAX: Duration = Duration::from_secs(30);
/// How soon a renewal that failed is tried again.
pub(super) const RENEW_AGAIN: Duration = Duration::from_millis(500);

/// Later than any run lasts: its command keeps that lease, or nobody does (K29).
const NEVER: Duration = Duration::from_secs(1 << 36);

/// Moments of a lease, on the clock that counts suspend.
pub(super) struct Moments {
    pub renew: Duration,
    pub give_up: Duration,
    pub grace: Duration,
}

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
        let (lease, length) = (&claimed.lease, Duration::from_secs(claimed.run.lease_seconds));
        let grace = self.settings.kill_grace.min(length / 4);
        if claimed.run.dialect.writer() == Writer::Command {
            return Moments { renew: NEVER, give_up: NEVER, grace };
        }
        Moments { renew: lease.born + length / 2, give_up: lease.born + length - grace, grace }
    }

    /// When to wake up at the latest.
    pub(super) fn wake_at(&self, look: Instant, moments: &Moments) -> Instant {
        let now = self.clock.elapsed();
        let next = if now < moments.renew { moments.renew } else { now + RENEW_AGAIN };
        look.min(Instant::now() + next.min(moments.give_up).saturating_sub(now))
    }
}
