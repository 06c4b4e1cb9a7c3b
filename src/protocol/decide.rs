//! What a runner does about the head of a branch: one pure, total function.
//!
//! Only the head counts; history is never read, and nothing is remembered but when this runner first
//! saw the head. Implements K6, K7, K9, K29 (the grace).

use super::dialect::Dialect;
use super::event::Event;
use super::name::{BadName, StateName};

/// How far ahead of our clock a committer date may lie before it is absurd, in seconds.
pub const AHEAD_MAX: i64 = 3600;
/// The lease length assumed where a lease does not say a readable one, in seconds.
pub const LEASE_DEFAULT: u64 = 300;

/// What `decide` looks at.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The event of the newest commit; `None` where it is no state event.
    pub event: Option<&'a Event>,
    /// Its committer date in seconds since 1970; `None` where that is unreadable.
    pub committed: Option<i64>,
}

/// Whose clock judges a foreign lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// The lease's own committer date against ours.
    Date,
    /// Only ours: the head must have stayed the same for lease + grace since we first saw it.
    Observe,
}

/// What this runner was told.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// Added to every lease before it counts as expired, in seconds.
    pub grace: u64,
    /// The grace of leases that only their commands renew (K29).
    pub aynig_grace: u64,
    /// How foreign leases are judged.
    pub takeover: Takeover,
    /// This runner; its own leases are judged by date even where foreign ones are observed.
    pub runner_id: &'a str,
    /// Most dispatches in a chain.
    pub max_hops: u32,
    /// Whether the head's state has a command here.
    pub has_command: bool,
}

/// Why a lease was not judged by its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// Its length is missing, unreadable, zero or absurd.
    Seconds,
    /// Its date is missing, unreadable or too far ahead.
    Date,
    /// The policy says so.
    Policy,
}

/// Why nothing is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// The head is no state event.
    NoState,
    /// Its state can't be a command's name.
    InvalidState {
        /// What stood there.
        raw: Vec<u8>,
        /// What is wrong with it.
        why: BadName,
    },
    /// No command answers this state: it waits for a person, or is an end.
    NoCommand {
        /// The state.
        state: StateName,
    },
    /// The chain is as long as it may get.
    HopLimit {
        /// The state that is not dispatched.
        state: StateName,
        /// How many dispatches led here.
        hop: u32,
        /// The limit.
        max: u32,
    },
}

/// What to do about a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Nothing(Idle),
    /// A run holds the branch.
    Leased {
        /// Until this second, our clock.
        until: i64,
        /// Set where the date was not believed.
        observed: Option<Observed>,
    },
    /// The holder is gone: recover, then decide again.
    Expired {
        /// Since this second, our clock.
        since: i64,
        /// Set where the date was not believed.
        observed: Option<Observed>,
    },
    /// Claim the branch and run this state's command.
    Dispatch {
        /// The state.
        state: StateName,
    },
}

/// Judges one head at `now`. `first_seen` is when this runner first found it there, on its own clock;
/// `None` means just now. Times are whole seconds since 1970.
pub fn decide(head: Head<'_>, first_seen: Option<i64>, now: i64, policy: Policy<'_>) -> Decision {
    let Some(event) = head.event else {
        return Decision::Nothing(Idle::NoState);
    };
    let state = match &event.state {
        Ok(state) => state,
        Err((raw, why)) => {
            return Decision::Nothing(Idle::InvalidState { raw: raw.clone(), why: *why });
        }
    };
    if state.is_working() {
        return judge_lease(event, head.committed, first_seen.unwrap_or(now), now, policy);
    }
    if !policy.has_command {
        return Decision::Nothing(Idle::NoCommand { state: state.clone() });
    }
    let hop = event.hop();
    if hop >= policy.max_hops {
        return Decision::Nothing(Idle::HopLimit { state: state.clone(), hop, max: policy.max_hops });
    }
    Decision::Dispatch { state: state.clone() }
}

fn judge_lease(
    event: &Event,
    committed: Option<i64>,
    first_seen: i64,
    now: i64,
    policy: Policy<'_>,
) -> Decision {
    let foreign = event.text(super::event::RUNNER_ID) != Some(policy.runner_id);
    let seconds = event.lease_seconds();
    let date = committed.filter(|date| *date >= 0 && *date <= now.saturating_add(AHEAD_MAX));
    let (from, observed) = match (seconds, date) {
        (None, _) => (first_seen, Some(Observed::Seconds)),
        (Some(_), None) => (first_seen, Some(Observed::Date)),
        (Some(_), Some(_)) if foreign && policy.takeover == Takeover::Observe => {
            (first_seen, Some(Observed::Policy))
        }
        (Some(_), Some(date)) => (date, None),
    };
    let grace = match event.dialect {
        Dialect::Dwp => policy.grace,
        Dialect::Aynig => policy.aynig_grace,
    };
    let length = seconds.unwrap_or(LEASE_DEFAULT).saturating_add(grace);
    let until = from.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
    if now > until {
        Decision::Expired { since: until, observed }
    } else {
        Decision::Leased { until, observed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Message, Trailer};
    use proptest::prelude::*;

    fn event(trailers: &[(&str, &str)]) -> Event {
        let trailers =
            trailers.iter().map(|(k, v)| Trailer { key: (*k).into(), value: (*v).into() }).collect();
        Event::of(Message::new("s", "", trailers)).unwrap()
    }

    fn lease(seconds: &str) -> Event {
        event(&[("dwp-state", "working"), ("dwp-lease-seconds", seconds), ("dwp-runner-id", "them")])
    }

    fn policy(takeover: Takeover) -> Policy<'static> {
        Policy { grace: 0, aynig_grace: 0, takeover, runner_id: "us", max_hops: 64, has_command: true }
    }

    fn judge(event: &Event, committed: Option<i64>, seen: Option<i64>, now: i64, p: Policy<'_>) -> Decision {
        decide(Head { event: Some(event), committed }, seen, now, p)
    }

    /// K6.
    #[test]
    fn a_plain_commit_is_nothing_to_do() {
        let d = decide(Head { event: None, committed: Some(1) }, None, 2, policy(Takeover::Date));
        assert_eq!(d, Decision::Nothing(Idle::NoState));
    }

    /// K6, K5.
    #[test]
    fn a_state_with_a_command_is_dispatched_and_one_without_waits() {
        let e = event(&[("dwp-state", "build")]);
        let p = policy(Takeover::Date);
        assert!(matches!(judge(&e, Some(1), None, 2, p), Decision::Dispatch { .. }));
        let none = Policy { has_command: false, ..p };
        assert!(matches!(judge(&e, Some(1), None, 2, none), Decision::Nothing(Idle::NoCommand { .. })));
    }

    #[test]
    fn a_state_that_is_no_path_is_reported_with_its_bytes() {
        let e = event(&[("dwp-state", "../x")]);
        let d = judge(&e, Some(1), None, 2, policy(Takeover::Date));
        assert!(matches!(d, Decision::Nothing(Idle::InvalidState { raw, .. }) if raw == b"../x"));
    }

    /// K7.
    #[test]
    fn a_lease_ends_one_second_after_date_plus_length_plus_grace() {
        let e = lease("300");
        let p = Policy { grace: 30, ..policy(Takeover::Date) };
        assert_eq!(judge(&e, Some(1000), None, 1330, p), Decision::Leased { until: 1330, observed: None });
        assert_eq!(judge(&e, Some(1000), None, 1331, p), Decision::Expired { since: 1330, observed: None });
    }

    #[test]
    fn absurd_leases_are_judged_by_observation() {
        let p = policy(Takeover::Date);
        for seconds in ["0", "-1", "1e9", "9999999999999999999", "abc", "", "1000000000"] {
            let d = judge(&lease(seconds), Some(1000), Some(5000), 5300, p);
            assert_eq!(d, Decision::Leased { until: 5300, observed: Some(Observed::Seconds) }, "{seconds}");
            let d = judge(&lease(seconds), Some(1000), Some(5000), 5301, p);
            assert!(matches!(d, Decision::Expired { .. }), "{seconds}");
        }
        for date in [None, Some(-1), Some(4_070_908_800)] {
            let d = judge(&lease("10"), date, Some(5000), 5010, p);
            assert_eq!(d, Decision::Leased { until: 5010, observed: Some(Observed::Date) });
            assert!(matches!(judge(&lease("10"), date, Some(5000), 5011, p), Decision::Expired { .. }));
        }
        assert!(matches!(judge(&lease("300"), Some(0), None, 1_700_000_000, p), Decision::Expired { .. }));
    }

    #[test]
    fn observation_as_a_policy_spares_our_own_leases() {
        let p = policy(Takeover::Observe);
        let d = judge(&lease("10"), Some(1), Some(5000), 5000, p);
        assert_eq!(d, Decision::Leased { until: 5010, observed: Some(Observed::Policy) });
        let ours = Policy { runner_id: "them", ..p };
        assert!(matches!(judge(&lease("10"), Some(1), Some(5000), 5000, ours), Decision::Expired { .. }));
    }

    /// K9.
    #[test]
    fn the_hop_limit_stops_a_chain_and_a_forged_count_does_not_free_it() {
        let p = policy(Takeover::Date);
        for (hop, runs) in
            [("0", true), ("63", true), ("64", false), ("65", false), ("x", false), ("-1", false)]
        {
            let e = event(&[("dwp-state", "build"), ("dwp-hop", hop)]);
            let dispatched = matches!(judge(&e, Some(1), None, 2, p), Decision::Dispatch { .. });
            assert_eq!(dispatched, runs, "{hop}");
        }
    }

    proptest! {
        #[test]
        fn decide_is_total(
            state in "\\PC*", secs in "\\PC*", hop in "\\PC*",
            committed in any::<Option<i64>>(), seen in any::<Option<i64>>(), now in any::<i64>(), grace in any::<u64>(),
        ) {
            let e = event(&[("dwp-state", &state), ("dwp-lease-seconds", &secs), ("dwp-hop", &hop)]);
            let p = Policy { grace, ..policy(Takeover::Date) };
            let _ = judge(&e, committed, seen, now, p);
        }

        #[test]
        fn no_lease_is_both_held_and_expired(date in 0i64..2_000_000_000, secs in 1u64..LEASE_DEFAULT, now in 0i64..2_000_000_000) {
            let e = lease(&secs.to_string());
            let d = judge(&e, Some(date), Some(now), now, policy(Takeover::Date));
            match d {
                Decision::Leased { until, .. } => prop_assert!(now <= until),
                Decision::Expired { since, .. } => prop_assert!(now > since),
                Decision::Nothing(_) | Decision::Dispatch { .. } => prop_assert!(false),
            }
        }
    }
}
