//! The pure functions over both dialects: the same head is judged alike in either, and `dwp` is as it was.

use aynig::protocol::complete::{Completion, Declared, Exit, HeadIs, Stall, complete};
use aynig::protocol::decide::{Decision, Facts, Head, Policy, Takeover, decide};
use aynig::protocol::declaration::{Declaration, Invalid};
use aynig::protocol::dialect::{Dialect, STATE};
use aynig::protocol::event::Event;
use aynig::protocol::id::ObjectId;
use aynig::protocol::message::{Message, Trailer};
use aynig::protocol::transition::{Run, canceled, recovered, retried};
use proptest::prelude::*;
use std::time::Duration;

/// Names after the prefix, managed and not, with values that are sometimes what they should be.
fn trailers() -> impl Strategy<Value = Vec<(String, String)>> {
    let names = [
        "state",
        "run-id",
        "runner-id",
        "lease-seconds",
        "hop",
        "trigger",
        "origin-state",
        "ticket",
        "recovery-id",
    ];
    let id = "0123456789abcdef0123456789abcdef01234567";
    let values = prop_oneof![
        Just("working".to_owned()),
        Just("build".to_owned()),
        Just("us".to_owned()),
        Just("300".to_owned()),
        Just("3".to_owned()),
        Just("".to_owned()),
        Just(id.to_owned()),
        "[ -~]{0,12}".prop_map(|s| s.trim().to_owned()),
    ];
    prop::collection::vec((prop::sample::select(names.to_vec()).prop_map(str::to_owned), values), 0..8)
}

fn written(dialect: Dialect, trailers: &[(String, String)]) -> Message {
    let prefix = dialect.prefix();
    let trailers = trailers.iter().map(|(k, v)| Trailer::new(format!("{prefix}{k}"), v)).collect();
    Message::new("s", "b", trailers)
}

/// The same message with every key of one dialect in the other's.
fn renamed(message: &Message) -> Message {
    let other = |key: &str| match (key.strip_prefix("dwp-"), key.strip_prefix("aynig-")) {
        (Some(rest), _) => format!("aynig-{rest}"),
        (_, Some(rest)) => format!("dwp-{rest}"),
        (None, None) => key.to_owned(),
    };
    let trailers =
        message.trailers.iter().map(|t| Trailer { key: other(&t.key), value: t.value.clone() }).collect();
    Message { trailers, ..message.clone() }
}

fn policy(grace: u64, aynig_grace: u64, observe: bool, has_command: bool) -> Policy<'static> {
    let takeover = if observe { Takeover::Observe } else { Takeover::Date };
    Policy {
        grace,
        aynig_grace,
        takeover,
        runner_id: "us",
        max_hops: 5,
        has_command,
        facts: Facts::default(),
    }
}

fn judged(message: Message, at: (Option<i64>, Option<i64>, i64), policy: Policy<'_>) -> Decision {
    let event = Event::of(message);
    decide(Head { event: event.as_ref(), committed: at.0 }, at.1, at.2, policy)
}

fn exits() -> impl Strategy<Value = Exit> {
    prop_oneof![
        any::<i32>().prop_map(Exit::Code),
        Just(Exit::Code(0)),
        Just(Exit::Signal { signal: 9, core_dumped: false }),
        Just(Exit::TimedOut(Duration::from_secs(1))),
        Just(Exit::Interrupted),
        Just(Exit::Stopped),
        Just(Exit::NotStarted("x".into())),
        Just(Exit::Unsupervised),
        Just(Exit::SupervisorStopped),
    ]
}

fn declarations() -> impl Strategy<Value = Declared> {
    let state = Declaration::parse(br#"{"state":"review"}"#).unwrap();
    prop_oneof![
        Just(Declared::Nothing),
        Just(Declared::State(state)),
        Just(Declared::BadResult(Invalid::NoState)),
        Just(Declared::BadLine(Invalid::Working))
    ]
}

fn id() -> ObjectId {
    ObjectId::from_bytes(&[1; 20]).unwrap()
}

fn heads() -> impl Strategy<Value = HeadIs> {
    prop::sample::select(vec![HeadIs::Lease(id()), HeadIs::OwnEvent(id()), HeadIs::SlotHead, HeadIs::Other])
}

proptest! {
    /// K29, K6: with the same grace a head is judged alike in either dialect, whatever it says.
    #[test]
    fn a_head_is_judged_alike_in_either_dialect(
        trailers in trailers(), grace in 0u64..1000, observe: bool, has: bool,
        committed in prop::option::of(-10i64..3000), seen in prop::option::of(0i64..3000), now in 0i64..4000,
    ) {
        let at = (committed, seen, now);
        let dwp = judged(written(Dialect::Dwp, &trailers), at, policy(grace, 0, observe, has));
        let aynig = judged(written(Dialect::Aynig, &trailers), at, policy(0, grace, observe, has));
        prop_assert_eq!(dwp, aynig);
    }

    /// K29: no trailer of the other dialect, and not its grace, changes what a `dwp` head means.
    #[test]
    fn nothing_of_the_other_dialect_changes_what_a_dwp_head_means(
        own in trailers(), other in trailers(), state in "[ -~]{0,9}", graces in any::<(u64, u64)>(), observe: bool,
        committed in any::<Option<i64>>(), seen in any::<Option<i64>>(), now in any::<i64>(),
    ) {
        let at = (committed, seen, now);
        let mut alone = written(Dialect::Dwp, &own);
        alone.trailers.push(Trailer::new(STATE.of(Dialect::Dwp), state));
        let mut both = alone.clone();
        both.trailers.extend(written(Dialect::Aynig, &other).trailers);
        let before = judged(alone, at, policy(graces.0, 30, observe, true));
        prop_assert_eq!(before, judged(both, at, policy(graces.0, graces.1, observe, true)));
    }

    /// K29, K20-K24: total in both, `dwp` as its table says, and no commit of the runner's in `aynig`.
    #[test]
    fn a_run_is_judged_by_its_dialects_table(exit in exits(), declared in declarations(), head in heads()) {
        let dwp = complete(Dialect::Dwp, &exit, declared.clone(), head);
        let ok = exit == Exit::Code(0);
        let table = match (head, ok, declared.clone()) {
            (HeadIs::Other, ..) => Completion::Fenced,
            (HeadIs::OwnEvent(own), ..) => Completion::AlreadyWritten(own),
            (HeadIs::SlotHead | HeadIs::Lease(_), true, Declared::State(next)) => Completion::Outcome(next),
            (HeadIs::SlotHead, ..) => Completion::Fenced,
            (HeadIs::Lease(_), false, _) => Completion::Stalled(Stall::Exit(exit.clone())),
            (HeadIs::Lease(_), true, Declared::Nothing) => Completion::KeepLease,
            (HeadIs::Lease(_), true, Declared::BadResult(why)) => Completion::Stalled(Stall::BadResult(why)),
            (HeadIs::Lease(_), true, Declared::BadLine(why)) => Completion::Stalled(Stall::BadLine(why)),
        };
        prop_assert_eq!(dwp, table);
        let aynig = complete(Dialect::Aynig, &exit, declared, head);
        let writes = matches!(aynig, Completion::Outcome(_) | Completion::KeepLease | Completion::Stalled(_));
        prop_assert!(!writes, "{:?}", aynig);
        prop_assert_eq!(aynig, complete(Dialect::Aynig, &Exit::Code(0), Declared::Nothing, head));
    }

    /// K29, K10, K27: what is written differs by the prefix alone, and is read back as what was meant.
    #[test]
    fn what_is_written_differs_by_the_prefix_alone(more in trailers(), remote in prop::option::of("[a-z]{1,9}"), hop in any::<u32>()) {
        let state = || "build".to_owned();
        let with_state = |dialect| {
            let mut all = more.clone();
            all.push(("state".to_owned(), state()));
            written(dialect, &all)
        };
        let run = |dialect| Run {
            id: "r".into(), dialect, runner_id: "us".into(), state: aynig::protocol::name::StateName::new("build").unwrap(),
            trigger: "0123456789abcdef0123456789abcdef01234567".parse().unwrap(), hop, lease_seconds: 300, remote: remote.clone(),
        };
        let all = |dialect| {
            let (run, trigger) = (run(dialect), with_state(dialect));
            let lease = run.lease(&trigger);
            let (event, asked) = (Event::of(lease.clone()).unwrap(), Event::of(trigger).unwrap());
            let next = Declaration::parse(br#"{"state":"review","keep_trailers":true}"#).unwrap();
            let stalled = run.stalled(&Stall::Exit(Exit::Code(1)), "d", &lease);
            let messages = vec![
                run.outcome(&next, &lease), lease, stalled, recovered(&event, "id", "d"), canceled(&event, "id", "d", None),
                retried(&run.state, &asked, Some(hop)),
            ];
            for message in &messages {
                let read = Event::of(Message::parse(&message.render().unwrap())).unwrap();
                assert_eq!((read.dialect, &read.message), (dialect, message));
            }
            messages
        };
        let renamed: Vec<Message> = all(Dialect::Dwp).iter().map(renamed).collect();
        prop_assert_eq!(renamed, all(Dialect::Aynig));
    }
}
