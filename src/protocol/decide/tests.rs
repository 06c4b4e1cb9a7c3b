//! What is decided about a head, fact by fact.

use super::*;
use crate::protocol::message::{Message, Trailer};
use proptest::prelude::*;

fn event(trailers: &[(&str, &str)]) -> Event {
    let trailers = trailers.iter().map(|(k, v)| Trailer { key: (*k).into(), value: (*v).into() }).collect();
    Event::of(Message::new("s", "", trailers)).unwrap()
}

fn lease(seconds: &str) -> Event {
    event(&[("dwp-state", "working"), ("dwp-lease-seconds", seconds), ("dwp-runner-id", "them")])
}

fn policy(takeover: Takeover) -> Policy<'static> {
    Policy {
        grace: 0,
        aynig_grace: 0,
        takeover,
        runner_id: "us",
        max_hops: 64,
        has_command: true,
        facts: Facts::default(),
    }
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
    for (hop, runs) in [("0", true), ("63", true), ("64", false), ("65", false), ("x", false), ("-1", false)]
    {
        let e = event(&[("dwp-state", "build"), ("dwp-hop", hop)]);
        let dispatched = matches!(judge(&e, Some(1), None, 2, p), Decision::Dispatch { .. });
        assert_eq!(dispatched, runs, "{hop}");
    }
}

fn id(n: u8) -> MessageId {
    MessageId::v7(u64::from(n), 0, [n; 8])
}

fn waiting(list: &[(u8, &str)]) -> Vec<Waiting> {
    list.iter().map(|(n, kind)| Waiting { id: id(*n), kind: Kind::new(kind).unwrap() }).collect()
}

fn deliver(state: &str, ids: &[u8]) -> Decision {
    Decision::Deliver { state: StateName::new(state).unwrap(), take: ids.iter().map(|n| id(*n)).collect() }
}

macro_rules! by {
    ($by:pat) => {
        Decision::Nothing(Idle::Held { by: $by, .. })
    };
}

fn idle(event: &Event, policy: Policy<'_>) -> Idle {
    match judge(event, Some(1), None, 2, policy) {
        Decision::Nothing(idle) => idle,
        other => panic!("{other:?}"),
    }
}

/// K47: all messages that bring the same state as the oldest are taken, in the order of their ids, whatever
/// their kinds.
#[test]
fn what_waits_for_a_receptive_head_is_delivered_before_its_own_state() {
    let head = [("dwp-state", "build"), ("dwp-accepts", "message=rework handoff=rework interrupt=stop")];
    let e = event(&head);
    let p = policy(Takeover::Date);
    let judged = |list: &[(u8, &str)]| {
        let waiting = waiting(list);
        judge(&e, Some(1), None, 2, Policy { facts: Facts { waiting: &waiting, ..Facts::default() }, ..p })
    };
    assert_eq!(
        judged(&[(9, "message"), (2, "interrupt"), (4, "handoff"), (3, "message")]),
        deliver("stop", &[2])
    );
    assert_eq!(
        judged(&[(9, "message"), (4, "handoff"), (3, "message"), (5, "other")]),
        deliver("rework", &[3, 4, 9])
    );
    assert!(matches!(judged(&[(1, "other"), (2, "answer")]), Decision::Dispatch { .. }));
    let many: Vec<_> = (0..200).map(|n| (n, "message")).collect();
    assert_eq!(judged(&many), deliver("rework", &(0..64).collect::<Vec<_>>()));
}

/// K47: nothing is delivered to a lease, nor to a head whose command has yet to hear what was brought before,
/// and `aynig` heads accept nothing.
#[test]
fn a_head_that_has_to_be_heard_first_is_not_delivered_to() {
    let waiting = waiting(&[(1, "message")]);
    let p = Policy { facts: Facts { waiting: &waiting, ..Facts::default() }, ..policy(Takeover::Date) };
    let heard = format!("{} {}", id(7), "1".repeat(40));
    let accepts = ("dwp-accepts", "message=rework");
    let brought = event(&[("dwp-state", "rework"), accepts, ("dwp-heard", &heard)]);
    assert!(matches!(judge(&brought, Some(1), None, 2, p), Decision::Dispatch { .. }));
    let rests = Policy { has_command: false, ..p };
    assert_eq!(judge(&brought, Some(1), None, 2, rests), deliver("rework", &[1]));
    let leased = event(&[("dwp-state", "working"), ("dwp-lease-seconds", "9"), accepts]);
    assert!(matches!(judge(&leased, Some(1), None, 2, p), Decision::Leased { .. }));
    let aynig = event(&[("aynig-state", "rework"), accepts]);
    assert!(matches!(judge(&aynig, Some(1), None, 2, p), Decision::Dispatch { .. }));
}

/// K49a: only the answer to the head's own question is delivered.
#[test]
fn a_stale_answer_is_not_delivered() {
    let accepts = ("dwp-accepts", "answer=go");
    let answer = [Waiting { id: answer_id(id(5)), kind: Kind::answer() }];
    let p = Policy {
        facts: Facts { waiting: &answer, ..Facts::default() },
        has_command: false,
        ..policy(Takeover::Date)
    };
    for (asked, right) in [(Some(5), true), (Some(6), false), (None, false)] {
        let mut trailers = vec![("dwp-state", "ask"), accepts];
        let asked = asked.map(|n| id(n).to_string());
        trailers.extend(asked.as_ref().map(|id| ("dwp-question", id.as_str())));
        let delivered = matches!(judge(&event(&trailers), Some(1), None, 2, p), Decision::Deliver { .. });
        assert_eq!(delivered, right, "{asked:?}");
    }
}

/// K50-K52, K54: pause, deliver, not before, after, budget, command, in this order.
#[test]
fn what_holds_a_head_is_judged_in_its_order() {
    let paused = Paused { id: id(1), holder: Holder::Person("ada".into()), reason: "quota".into() };
    let unmet = Unmet { missing: Vec::new(), unreadable: vec![b"x".to_vec()] };
    let overspent = Overspent { per: Per::Day, spent: Usd::from_micros(2), limit: Usd::from_micros(1) };
    let message = waiting(&[(1, "message")]);
    let e = event(&[("dwp-state", "build"), ("dwp-accepts", "message=rework"), ("dwp-not-before", "3")]);
    let all = Facts {
        paused: Some(&paused),
        waiting: &message,
        after: Some(&unmet),
        budget: Some(&overspent),
        max_hops: None,
    };
    let p = policy(Takeover::Date);
    let at = |now, facts| judge(&e, Some(1), None, now, Policy { facts, ..p });
    assert!(matches!(at(2, all), by!(Held::Paused(by)) if by == paused));
    let facts = Facts { paused: None, ..all };
    assert_eq!(at(2, facts), deliver("rework", &[1]));
    let facts = Facts { waiting: &[], ..facts };
    assert!(matches!(at(2, facts), by!(Held::NotBefore(Ok(3)))));
    assert!(matches!(at(3, facts), by!(Held::After(_))));
    let facts = Facts { after: Some(&Unmet { missing: Vec::new(), unreadable: Vec::new() }), ..facts };
    assert!(matches!(at(3, facts), by!(Held::Budget(_))));
    assert!(matches!(at(3, Facts { budget: None, ..facts }), Decision::Dispatch { .. }));
    let soon = event(&[("dwp-state", "build"), ("dwp-not-before", "soon")]);
    assert!(
        matches!(idle(&soon, p), Idle::Held { by: Held::NotBefore(Err(BadTime(raw))), .. } if raw == b"soon")
    );
}

/// K50: a pause holds no head for which nothing would be done, and an expired lease is recovered even on a
/// paused branch.
#[test]
fn a_pause_holds_what_would_go_on_and_nothing_else() {
    let paused = Paused { id: id(1), holder: Holder::Run("r".into()), reason: String::new() };
    let facts = Facts { paused: Some(&paused), ..Facts::default() };
    let p = Policy { facts, ..policy(Takeover::Date) };
    assert!(matches!(idle(&event(&[("dwp-state", "build")]), p), Idle::Held { by: Held::Paused(_), .. }));
    let none = Policy { has_command: false, ..p };
    assert!(matches!(idle(&event(&[("dwp-state", "done")]), none), Idle::NoCommand { .. }));
    assert!(matches!(idle(&event(&[("dwp-state", "build"), ("dwp-hop", "64")]), p), Idle::HopLimit { .. }));
    assert!(matches!(judge(&lease("300"), Some(0), None, 301, p), Decision::Expired { .. }));
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
            Decision::Nothing(_) | Decision::Dispatch { .. } | Decision::Deliver { .. } => prop_assert!(false),
        }
    }
}
