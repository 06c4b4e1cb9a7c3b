//! Holding a lease: when it is renewed, when it is given up, and whose the branch's head is meanwhile.
//!
//! Pure and total: time and what was read come in as arguments, what is to be done comes out. The runner's
//! loop and the model of the protocol call these same functions. A lease is given up before it ends, and a
//! command that is stopped for any reason gets no longer than the lease has left, so that it is dead before
//! another runner may take the branch. Implements K18 (times, what a look means), K22 and K24 (whose the head
//! is), K29.

use super::complete::HeadIs;
use super::dialect::Writer;
use super::event::{Event, RECOVERY_ID};
use super::id::ObjectId;
use std::time::Duration;

/// A moment after the end of any run: the deadline of a lease that its command keeps, or that no process
/// keeps (K29).
pub const NEVER: Duration = Duration::from_secs(1 << 36);
/// How soon a failed renewal is tried again.
pub const RENEW_AGAIN: Duration = Duration::from_millis(500);

/// The deadlines of a lease, on the clock that counts suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseDeadlines {
    /// From this moment on the lease is renewed.
    pub renew: Duration,
    /// At this moment the command is told to stop.
    pub give_up: Duration,
    /// The time that the command then gets between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// From this moment on no runner may rely on the lease.
    pub ends: Duration,
}

/// What a runner does about its lease before it starts the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeStart {
    /// Nothing: at least half of the lease is left.
    Start,
    /// Renews the lease; if that fails, nothing is started.
    Renew,
}

/// What a runner does about its lease while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing yet.
    Wait,
    /// Renews the lease.
    Renew,
    /// Stops the command, which gets [`LeaseDeadlines::grace`].
    GiveUp,
}

impl LeaseDeadlines {
    /// Returns the deadlines of a lease that the runner began to build at `born`. `kill_grace` is the
    /// configured time between SIGTERM and SIGKILL.
    pub fn of(writer: Writer, born: Duration, lease_seconds: u64, kill_grace: Duration) -> Self {
        let length = Duration::from_secs(lease_seconds);
        let grace = kill_grace.min(length / 4);
        let ends = born.saturating_add(length);
        match writer {
            Writer::Runner => Self { renew: born + length / 2, give_up: ends - grace, grace, ends },
            Writer::Command => Self { renew: NEVER, give_up: NEVER, grace, ends },
        }
    }

    /// Returns the moment until which the swap that makes the lease the head is tried again: a claim that
    /// took longer would have to be renewed before anything starts.
    pub fn claim_until(born: Duration, lease_seconds: u64) -> Duration {
        born + Duration::from_secs(lease_seconds) / 2
    }

    /// Decides what to do about the lease before the command starts.
    pub fn before_start(&self, now: Duration) -> BeforeStart {
        if now > self.renew { BeforeStart::Renew } else { BeforeStart::Start }
    }

    /// Returns what the lease asks for now. A renewal that failed is not tried again before `not_before`.
    pub fn duty(&self, now: Duration, not_before: Duration) -> Duty {
        if now >= self.give_up {
            Duty::GiveUp
        } else if now >= self.renew.max(not_before) {
            Duty::Renew
        } else {
            Duty::Wait
        }
    }

    /// True once half of the time for renewing the lease has passed: whatever else is being done for the run
    /// has to end.
    pub fn presses(&self, now: Duration) -> bool {
        now >= self.renew + self.give_up.saturating_sub(self.renew) / 2
    }

    /// Returns the moment at which the lease asks for something next.
    pub fn next(&self, now: Duration) -> Duration {
        let next = if now < self.renew { self.renew } else { now + RENEW_AGAIN };
        next.min(self.give_up)
    }

    /// Returns the time between SIGTERM and SIGKILL of a command that is stopped now, for whatever reason: no
    /// more than is left of the lease, which is not renewed any more.
    pub fn kill_after(&self, now: Duration, kill_grace: Duration) -> Duration {
        kill_grace.min((self.give_up + self.grace).saturating_sub(now))
    }
}

/// The head of a branch as it was read, for [`classify_head`].
#[derive(Debug, Clone, Copy)]
pub struct SeenHead<'a> {
    /// The head's commit.
    pub id: ObjectId,
    /// The head's event; `None` where the commit is no state event.
    pub event: Option<&'a Event>,
}

/// The facts beyond the head itself that [`classify_head`] needs; it asks for each only where the answer
/// matters.
pub trait HeadFacts {
    /// The error of a fact that can't be found out.
    type Error;
    /// Returns whether there are only leases between the head and the lease that the run knows. The answer is
    /// `false` for an older lease of the run, which no longer counts as the run's own: the newer lease was
    /// taken off the branch.
    ///
    /// # Errors
    /// If the commits can't be read.
    fn stands_on_lease(&mut self) -> Result<bool, Self::Error>;
    /// Returns whether the head is the slot's own HEAD and descends from the lease.
    ///
    /// # Errors
    /// If the commits can't be read.
    fn is_slot_head(&mut self) -> Result<bool, Self::Error>;
    /// Returns the commit not far below the head that is a state event of the run, no lease, and stands on
    /// the run's lease.
    ///
    /// # Errors
    /// If the commits can't be read.
    fn own_event_below(&mut self) -> Result<Option<ObjectId>, Self::Error>;
}

/// Judges the head of a branch that a run claimed. `head` is `None` where the branch is gone, `lease` is the
/// lease that the run knows.
///
/// # Errors
/// The errors of `facts`.
pub fn classify_head<F: HeadFacts>(
    head: Option<SeenHead<'_>>,
    run_id: &str,
    lease: ObjectId,
    facts: &mut F,
) -> Result<HeadIs, F::Error> {
    let Some(head) = head else { return Ok(HeadIs::Other) };
    if head.id == lease {
        return Ok(HeadIs::Lease(lease));
    }
    let own_lease = head.event.is_some_and(|e| e.is_working() && e.run_id() == Some(run_id));
    if (own_lease || is_own_event(head.event, run_id)) && facts.stands_on_lease()? {
        return Ok(if own_lease { HeadIs::Lease(head.id) } else { HeadIs::OwnEvent(head.id) });
    }
    if own_lease {
        // This is an older lease of the run, which the slot may still stand on: the newer lease was taken
        // off.
        return Ok(HeadIs::Other);
    }
    if facts.is_slot_head()? {
        return Ok(HeadIs::SlotHead);
    }
    Ok(facts.own_event_below()?.map_or(HeadIs::Other, HeadIs::OwnEvent))
}

/// True for an event of this run that is no lease. A recovery carries the run's id too (K27), but another
/// process wrote it.
pub fn is_own_event(event: Option<&Event>, run_id: &str) -> bool {
    event.is_some_and(|e| !e.is_working() && e.run_id() == Some(run_id) && e.text(RECOVERY_ID).is_none())
}

/// What a runner does after a look at the head of its branch while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLook {
    /// Goes on as before.
    Keep,
    /// Lets the command finish: its outcome is written, so there is no lease to keep.
    LetFinish,
    /// Stops the command: the head is not the run's.
    Stop,
}

/// Decides what to do after a look that found this head.
pub fn after_look(head: HeadIs) -> AfterLook {
    match head {
        HeadIs::Lease(_) | HeadIs::SlotHead => AfterLook::Keep,
        HeadIs::OwnEvent(_) => AfterLook::LetFinish,
        HeadIs::Other => AfterLook::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Message, Trailer};
    use proptest::prelude::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// K18.
    #[test]
    fn a_lease_is_renewed_at_half_and_given_up_a_kill_grace_before_its_end() {
        let at = LeaseDeadlines::of(Writer::Runner, S(1000), 300, S(10));
        assert_eq!(at, LeaseDeadlines { renew: S(1150), give_up: S(1290), grace: S(10), ends: S(1300) });
        assert_eq!(LeaseDeadlines::of(Writer::Runner, S(0), 8, S(10)).give_up, S(6));
        assert_eq!(at.duty(S(1149), S(0)), Duty::Wait);
        assert_eq!(at.duty(S(1150), S(0)), Duty::Renew);
        assert_eq!(at.duty(S(1200), S(1201)), Duty::Wait);
        assert_eq!(at.duty(S(1290), S(1291)), Duty::GiveUp);
        assert_eq!(at.before_start(S(1150)), BeforeStart::Start);
        assert_eq!(at.before_start(S(1151)), BeforeStart::Renew);
    }

    /// K29.
    #[test]
    fn a_lease_that_its_command_keeps_asks_for_nothing() {
        let at = LeaseDeadlines::of(Writer::Command, S(0), 10, S(10));
        assert_eq!(at.duty(S(1_000_000), S(0)), Duty::Wait);
        assert_eq!(at.before_start(S(1_000_000)), BeforeStart::Start);
        assert_eq!(at.kill_after(S(1_000_000), S(10)), S(10));
    }

    /// K18, K31.
    #[test]
    fn a_claim_is_tried_until_its_lease_would_have_to_be_renewed() {
        assert_eq!(LeaseDeadlines::claim_until(S(1000), 300), S(1150));
        assert_eq!(
            LeaseDeadlines::claim_until(S(1000), 300),
            LeaseDeadlines::of(Writer::Runner, S(1000), 300, S(10)).renew
        );
    }

    /// K18: a lease never asks for anything at once, except for the command's end.
    #[test]
    fn a_lease_asks_next_for_its_renewal_then_again_and_at_last_for_the_end() {
        let at = LeaseDeadlines::of(Writer::Runner, S(1000), 300, S(10));
        assert_eq!(at.next(S(1000)), S(1150));
        assert_eq!(at.next(S(1149)), S(1150));
        assert_eq!(at.next(S(1150)), S(1150) + RENEW_AGAIN);
        assert_eq!(at.next(S(1200)), S(1200) + RENEW_AGAIN);
        assert_eq!(at.next(S(1290)), S(1290));
    }

    /// K18.
    #[test]
    fn a_stopped_command_has_the_kill_grace_or_what_is_left_of_the_lease() {
        let at = LeaseDeadlines::of(Writer::Runner, S(1000), 300, S(10));
        for (now, left) in [(1000, 10), (1290, 10), (1296, 4), (1300, 0), (2000, 0)] {
            assert_eq!(at.kill_after(S(now), S(10)), S(left), "{now}");
        }
    }

    /// K22, K24.
    #[test]
    fn a_head_is_ours_by_its_run_id_unless_it_is_a_recovery_or_stands_elsewhere() {
        let event = |trailers: &[(&str, &str)]| {
            let trailers = trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect();
            Event::of(Message::new("s", "", trailers)).unwrap()
        };
        struct OnLease(bool);
        impl HeadFacts for OnLease {
            type Error = ();
            fn stands_on_lease(&mut self) -> Result<bool, ()> {
                Ok(self.0)
            }
            fn is_slot_head(&mut self) -> Result<bool, ()> {
                Ok(false)
            }
            fn own_event_below(&mut self) -> Result<Option<ObjectId>, ()> {
                Ok(None)
            }
        }
        let id = |n| ObjectId::from_bytes(&[n; 20]).unwrap();
        let judge = |event: &Event, on_lease: bool| {
            let seen = SeenHead { id: id(2), event: Some(event) };
            classify_head(Some(seen), "r", id(1), &mut OnLease(on_lease)).unwrap()
        };
        let own = event(&[("dwp-state", "review"), ("dwp-run-id", "r")]);
        assert_eq!(judge(&own, true), HeadIs::OwnEvent(id(2)));
        assert_eq!(judge(&own, false), HeadIs::Other);
        let lease = event(&[("dwp-state", "working"), ("dwp-run-id", "r")]);
        assert_eq!(judge(&lease, true), HeadIs::Lease(id(2)));
        let stalled = event(&[("dwp-state", "stalled"), ("dwp-run-id", "r"), ("dwp-recovery-id", "x")]);
        assert_eq!(judge(&stalled, true), HeadIs::Other);
        let others = event(&[("dwp-state", "working"), ("dwp-run-id", "q")]);
        assert_eq!(judge(&others, true), HeadIs::Other);
        assert_eq!(classify_head(None, "r", id(1), &mut OnLease(true)), Ok(HeadIs::Other));
    }

    proptest! {
        /// K18: whatever stops a command, and whenever, it is dead when its lease ends.
        #[test]
        fn a_stopped_command_is_dead_when_its_lease_ends(
            length in 1u64..100_000, grace in 0u64..100_000, into in 0u64..100_000,
        ) {
            let at = LeaseDeadlines::of(Writer::Runner, S(5), length, S(grace));
            let now = S(5 + into).min(at.give_up);
            prop_assert!(now + at.kill_after(now, S(grace)) <= at.ends);
            prop_assert!(at.give_up + at.grace == at.ends && at.renew <= at.give_up);
            prop_assert!(at.next(now) <= at.give_up);
        }
    }
}
