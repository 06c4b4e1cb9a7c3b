//! When a node is taken for going in a circle. (N11)

use aynig::contract::stall::{LIMIT, Signals, judge, signature};
use proptest::prelude::*;

fn turn(n: usize, output: &str, diff: Option<&str>, verification: Option<&str>) -> Signals {
    Signals {
        turn: format!("t{n}"),
        output: Some(output.to_owned()),
        diff: diff.map(str::to_owned),
        verification: verification.map(str::to_owned),
        summary: format!("s{n}"),
    }
}

fn turns(n: usize, of: impl Fn(usize) -> Signals) -> Vec<Signals> {
    (0..n).map(of).collect()
}

#[test]
fn a_limit_is_so_many_repetitions_after_the_first() {
    let same = |n| turns(n, |n| turn(n, "same", None, None));
    let limit = LIMIT as usize;
    assert_eq!(judge(&same(limit), None, LIMIT), None);
    let evidence = judge(&same(limit + 1), None, LIMIT).unwrap();
    assert_eq!(
        (evidence.output_hash.as_deref(), evidence.diff_hash, evidence.verification_failure),
        (Some("same"), None, None)
    );
    assert_eq!(evidence.summaries, ["s18", "s19", "s20"]);
    assert_eq!(judge(&same(50), None, 0), None, "a limit of 0 never stalls");
}

#[test]
fn each_signal_stalls_by_itself_and_only_in_a_row() {
    let diff = judge(&turns(4, |n| turn(n, &n.to_string(), Some("d"), None)), None, 3).unwrap();
    assert_eq!((diff.diff_hash.as_deref(), diff.output_hash), (Some("d"), None));
    let check = judge(&turns(4, |n| turn(n, &n.to_string(), None, Some("v"))), None, 3).unwrap();
    assert_eq!(check.verification_failure.as_deref(), Some("v"));
    // A turn that changed nothing is no repetition of one that changed nothing.
    assert_eq!(judge(&turns(9, |n| turn(n, &n.to_string(), None, None)), None, 3), None);
    let broken = |n| turn(n, if n == 2 { "other" } else { "same" }, None, None);
    assert_eq!(judge(&turns(5, broken), None, 3), None);
    assert!(judge(&turns(7, broken), None, 3).is_some());
}

#[test]
fn who_resumes_counts_from_there() {
    let same = |n| turns(n, |n| turn(n, "same", None, None));
    assert_eq!(judge(&same(8), Some("t4"), 3), None);
    assert!(judge(&same(9), Some("t4"), 3).is_some());
    assert_eq!(judge(&same(9), Some("t8"), 3), None);
    // A turn that is not among those that are known is older than all of them.
    assert!(judge(&same(4), Some("gone"), 3).is_some());
}

#[test]
fn the_same_failure_has_the_same_signature_whatever_it_counts() {
    let log = |ms: u32, address: &str| {
        format!("running 3 tests\n\ntest a ... FAILED after {ms} ms at {address}\n  1 failed\n")
    };
    assert_eq!(signature(1, log(12, "0x7f3a").as_bytes()), signature(1, log(4711, "0x00ff").as_bytes()));
    assert_ne!(signature(1, log(12, "0x7f3a").as_bytes()), signature(2, log(12, "0x7f3a").as_bytes()));
    assert_ne!(signature(1, b"test a failed"), signature(1, b"test b failed"));
}

proptest! {
    #[test]
    fn the_same_outcomes_are_judged_the_same_and_older_ones_change_nothing(
        outputs in prop::collection::vec(0_u8..2, 1..12), older in prop::collection::vec(0_u8..2, 0..6), limit in 1_u32..4,
    ) {
        let of = |list: &[u8], from: usize| list.iter().enumerate().map(|(n, o)| turn(from + n, &o.to_string(), None, None)).collect::<Vec<_>>();
        let late = of(&outputs, 100);
        let mut all = of(&older, 0);
        all.push(turn(99, "seen", None, None));
        all.extend(late.clone());
        prop_assert_eq!(judge(&all, Some("t99"), limit), judge(&late, None, limit));
        let tail = outputs.iter().rev().take_while(|o| *o == outputs.last().unwrap()).count();
        prop_assert_eq!(judge(&late, None, limit).is_some(), tail > limit as usize);
    }

    #[test]
    fn no_output_breaks_a_signature(output in prop::collection::vec(any::<u8>(), 0..300)) {
        signature(1, &output);
    }
}
