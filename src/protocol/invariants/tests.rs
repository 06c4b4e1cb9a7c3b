//! Tests of the judge itself, on forged histories: one for each violation.

use super::*;

fn id(n: u8) -> ObjectId {
    ObjectId::from_bytes(&[n; 20]).unwrap()
}

/// A history being forged: commits by number, and moves between them.
#[derive(Default)]
struct Forged {
    commits: HashMap<ObjectId, Recorded>,
    moves: Vec<Move>,
}

impl Forged {
    fn commit(&mut self, n: u8, parent: u8, trailers: &str) -> &mut Self {
        let message = format!("subject\n\n{trailers}").into_bytes();
        self.commits.insert(id(n), Recorded { parents: vec![id(parent)], message });
        self
    }
    fn go(&mut self, from: u8, to: u8) -> &mut Self {
        self.moves.push(Move { old: Some(id(from)), new: Some(id(to)) });
        self
    }
    fn of_run(&mut self, n: u8, parent: u8, state: &str, run: &str, trigger: u8) -> &mut Self {
        let trigger = id(trigger);
        let trailers = format!(
            "dwp-state: {state}\ndwp-run-id: {run}\ndwp-origin-state: build\ndwp-trigger: {trigger}\n"
        );
        self.commit(n, parent, &trailers)
    }
    fn recovery(&mut self, n: u8, parent: u8, run: &str) -> &mut Self {
        let trailers =
            format!("dwp-state: stalled\ndwp-stalled-run: {run}\ndwp-run-id: {run}\ndwp-recovery-id: x{n}\n");
        self.commit(n, parent, &trailers)
    }
    fn found(&self) -> Vec<Violation> {
        check(&self.moves, &self.commits)
    }
}

/// 1 is a trigger, 2 its lease, 3 a renewal, 4 the outcome.
fn good() -> Forged {
    let mut h = Forged::default();
    h.commit(0, 99, "").commit(1, 0, "dwp-state: build\n");
    h.of_run(2, 1, "working", "r", 1).of_run(3, 2, "working", "r", 1).of_run(4, 3, "done", "r", 1);
    h.go(0, 1).go(1, 2).go(2, 3);
    h
}

#[test]
fn a_good_history_has_no_violation() {
    assert_eq!(good().go(3, 4).found(), []);
    assert_eq!(check_line(id(4), &good().commits), []);
    let mut recovered = good();
    recovered.recovery(5, 3, "r").go(3, 5);
    assert_eq!(recovered.found(), []);
    // A person may rewind, and then the trigger is answered once more.
    let mut rewound = good();
    rewound.of_run(6, 1, "working", "s", 1).go(3, 1).go(1, 6);
    assert_eq!(rewound.found(), []);
}

/// A person may take the branch back to any commit of its own, a run's too.
#[test]
fn a_rewind_to_a_commit_of_a_run_is_no_violation() {
    let mut h = good();
    h.go(3, 4).go(4, 2);
    assert_eq!(h.found(), []);
    // The lease is the head again, and its run ends once more. A third end is one too many.
    h.recovery(7, 2, "r").go(2, 7);
    assert_eq!(h.found(), []);
    h.recovery(8, 7, "r").go(7, 8);
    assert!(h.found().contains(&Violation::SecondEnd("r".into())), "{:?}", h.found());
    // Back by one and forth again.
    let mut h = good();
    h.go(3, 4).go(4, 3).go(3, 4);
    assert_eq!(h.found(), []);
    // An end that is still below the head counts.
    let mut h = good();
    h.go(3, 4).commit(5, 4, "").go(4, 5).go(5, 4).of_run(9, 4, "done", "r", 1).go(4, 9);
    assert!(h.found().contains(&Violation::SecondEnd("r".into())), "{:?}", h.found());
}

#[test]
fn v1_a_trigger_that_was_leased_twice() {
    let mut h = good();
    h.of_run(6, 1, "working", "s", 1).moves.push(Move { old: Some(id(1)), new: Some(id(6)) });
    assert!(h.found().contains(&Violation::SecondLease(id(1).to_string())), "{:?}", h.found());
    assert!(h.found().contains(&Violation::Gap(id(6))));
}

#[test]
fn v2_a_run_that_ended_twice() {
    let mut h = good();
    h.go(3, 4).of_run(7, 4, "done", "r", 1).go(4, 7);
    assert!(h.found().contains(&Violation::SecondEnd("r".into())), "{:?}", h.found());
}

#[test]
fn an_outcome_is_landed_over_stalled_once() {
    let mut h = good();
    let landed = |n: u8| {
        let trigger = id(1);
        format!(
            "dwp-state: done\ndwp-run-id: r\ndwp-origin-state: build\ndwp-trigger: {trigger}\ndwp-recovery-id: l{n}\n"
        )
    };
    h.of_run(5, 3, "stalled", "r", 1).go(3, 5).commit(6, 5, "");
    h.commits.get_mut(&id(5)).unwrap().message.extend(b"dwp-stalled-run: r\n");
    h.commit(7, 6, &landed(7)).go(5, 6).go(6, 7);
    assert_eq!(h.found(), []);
    h.commit(8, 7, &landed(8)).go(7, 8);
    assert_eq!(h.found(), [Violation::SecondEnd("r".into()), Violation::NoLeaseBelow(id(8))]);
}

#[test]
fn v3_a_run_that_wrote_after_it_was_stalled() {
    let mut h = good();
    h.recovery(5, 3, "r").go(3, 5).of_run(7, 5, "done", "r", 1).go(5, 7);
    assert!(h.found().contains(&Violation::WroteAfterStalled("r".into())), "{:?}", h.found());
}

#[test]
fn v4_a_lease_or_an_outcome_that_stands_elsewhere() {
    let mut h = good();
    h.commit(8, 1, "").of_run(9, 8, "working", "s", 1).moves.truncate(1);
    h.go(1, 8).go(8, 9);
    assert_eq!(h.found(), [Violation::ForeignParent(id(9))]);
    let mut h = good();
    h.moves.truncate(1);
    h.of_run(9, 1, "done", "r", 1).go(1, 9);
    assert_eq!(h.found(), [Violation::NoLeaseBelow(id(9))]);
}

#[test]
fn v5_a_users_commit_that_a_runner_dropped() {
    let mut h = good();
    h.commit(8, 3, "").go(3, 8).moves.push(Move { old: Some(id(8)), new: Some(id(4)) });
    assert!(h.found().contains(&Violation::Dropped(id(4))), "{:?}", h.found());
}

#[test]
fn v6_a_branch_that_a_runner_made() {
    let mut h = good();
    h.moves.push(Move { old: Some(id(3)), new: None });
    h.moves.push(Move { old: None, new: Some(id(4)) });
    assert_eq!(h.found(), [Violation::MadeBranch(id(4))]);
}

#[test]
fn v7_a_commit_that_hides_its_trigger() {
    for hides in [
        "dwp-state: working\ndwp-run-id: r\n",
        "dwp-state: done\ndwp-run-id: r\ndwp-origin-state: build\n",
        &format!("dwp-state: done\ndwp-run-id: r\ndwp-trigger: {}\n", id(1)),
    ] {
        let mut h = good();
        h.commit(4, 3, hides).go(3, 4);
        assert_eq!(h.found(), [Violation::Unreadable(id(4))], "{hides}");
    }
}

#[test]
fn an_outcome_that_a_command_committed_by_hand_is_one() {
    let mut h = good();
    h.commit(4, 3, "dwp-state: done\ndwp-run-id: r\n").go(3, 4);
    assert_eq!(h.found(), []);
    h.commit(5, 4, "dwp-state: failed\ndwp-run-id: r\n").go(4, 5);
    assert_eq!(h.found(), [Violation::SecondEnd("r".into()), Violation::NoLeaseBelow(id(5))]);
}

#[test]
fn a_commit_that_is_not_there() {
    assert_eq!(good().go(3, 77).found(), [Violation::Missing(id(77))]);
}

/// The reflog of a branch that holds these commits one after another.
fn log(lines: &[(u8, bool)]) -> Vec<Logged> {
    lines.iter().map(|(n, by_runner)| Logged { new: id(*n), by_runner: *by_runner }).collect()
}

/// One move may bring many commits; a person may go back, elsewhere, and merge.
#[test]
fn a_good_reflog_has_no_violation() {
    let h = good();
    assert_eq!(check_log(&log(&[(0, false), (1, false), (2, true), (3, true), (4, true)]), &h.commits), []);
    // A fetch brought the run as a whole; the commits below the first line count too.
    assert_eq!(check_log(&log(&[(1, false), (4, false)]), &h.commits), []);
    assert_eq!(check_log(&log(&[(4, false)]), &h.commits), []);
    let mut h = good();
    h.of_run(6, 1, "working", "s", 1);
    assert_eq!(check_log(&log(&[(3, true), (1, false), (6, true)]), &h.commits), [], "a rewind");
    // To another line of history, with another run of the trigger, and to a merge of that with what was
    // there.
    h.commit(5, 6, "");
    h.commits.get_mut(&id(5)).unwrap().parents.push(id(3));
    assert_eq!(check_log(&log(&[(3, true), (6, false)]), &h.commits), [], "a reset");
    assert_eq!(check_log(&log(&[(3, true), (5, false)]), &h.commits), [], "a merge");
    let log = log(&[(3, true), (3, false), (4, true)]);
    assert_eq!(check_log(&log, &h.commits), [], "a line without a move");
}

#[test]
fn a_reflog_tells_what_the_commits_do_not() {
    let mut h = good();
    h.of_run(6, 1, "working", "s", 1);
    // The same move, made by this tool: it dropped 2 and 3 without a rewind, for a second lease of 1.
    let dropped = check_log(&log(&[(1, false), (2, true), (3, true), (6, true)]), &h.commits);
    assert!(dropped.contains(&Violation::Dropped(id(6))), "{dropped:?}");
    assert!(dropped.contains(&Violation::ForeignParent(id(6))), "{dropped:?}");
    assert_eq!(check_line(id(6), &h.commits), []);
    // What is wrong before a person's move elsewhere is reported as well.
    h.of_run(7, 4, "done", "r", 1);
    let twice = check_log(&log(&[(4, true), (7, true), (6, false)]), &h.commits);
    assert_eq!(twice, [Violation::SecondEnd("r".into()), Violation::NoLeaseBelow(id(7))]);
}

/// What one move brought is judged commit by commit, whichever machine made it.
#[test]
fn a_second_end_within_one_move_is_found() {
    let mut h = good();
    h.of_run(7, 4, "done", "r", 1);
    let found = [Violation::SecondEnd("r".into()), Violation::NoLeaseBelow(id(7))];
    assert_eq!(check_line(id(7), &h.commits), found);
    assert_eq!(check_log(&log(&[(1, false), (2, true), (7, true)]), &h.commits), found);
}

/// An end that a runner dropped still counts, and the drop is reported once.
#[test]
fn a_run_whose_end_was_dropped_has_ended() {
    let mut h = good();
    h.of_run(6, 1, "working", "s", 1).of_run(7, 6, "working", "s", 1).of_run(8, 7, "done", "r", 1);
    let moves = [(1, false), (2, true), (3, true), (4, true), (6, true), (7, true), (8, true)];
    let end = Violation::SecondEnd("r".into());
    let found =
        [end, Violation::ForeignParent(id(6)), Violation::NoLeaseBelow(id(8)), Violation::Dropped(id(6))];
    assert_eq!(check_log(&log(&moves), &h.commits), found);
}

/// K37: in a shallow clone the oldest commits are not there.
#[test]
fn a_line_begins_where_its_commits_are_known() {
    let mut h = good();
    assert_eq!(line(id(4), &h.commits), [0, 1, 2, 3, 4].map(id));
    h.commits.remove(&id(2));
    assert_eq!(line(id(4), &h.commits), [3, 4].map(id));
    assert_eq!(check_line(id(4), &h.commits), []);
}

/// K29: a command of the other dialect may leave out what its lease says.
#[test]
fn a_command_that_writes_its_own_may_leave_trailers_out() {
    let mut h = good();
    h.commit(5, 4, "aynig-state: next\naynig-run-id: q\n").go(3, 4).go(4, 5);
    assert_eq!(h.found(), []);
}

/// K29: a command commits its work, and its heartbeats in between.
#[test]
fn work_between_two_heartbeats_is_no_lease_of_its_own() {
    let mut h = Forged::default();
    let lease = format!(
        "aynig-state: working\naynig-run-id: r\naynig-origin-state: fetch\naynig-trigger: {}\n",
        id(1)
    );
    h.commit(0, 99, "").commit(1, 0, "aynig-state: fetch\n").commit(2, 1, &lease).commit(3, 2, "part one\n");
    h.commit(4, 3, &lease).go(0, 1).go(1, 2).go(2, 3).go(3, 4);
    assert_eq!(h.found(), []);
    // On a person's event it is the lease of another run.
    h.commit(5, 4, "aynig-state: other\n").commit(6, 5, &lease).go(4, 5).go(5, 6);
    assert_eq!(h.found(), [Violation::ForeignParent(id(6))]);
}

/// K29, K25: one move brings the command's commits, and the event on top of them.
#[test]
fn a_move_over_the_commands_own_commits_drops_nothing() {
    let mut h = good();
    h.commit(5, 3, "work\n").of_run(6, 5, "done", "r", 1).go(3, 6);
    assert_eq!(h.found(), []);
}

/// K10, K18: a lease on the lease of another run renews nothing.
#[test]
fn v4_a_lease_on_another_runs_lease() {
    let mut h = good();
    h.of_run(6, 3, "working", "s", 1).go(3, 6);
    assert_eq!(h.found(), [Violation::ForeignParent(id(6))]);
    let mut h = good();
    h.of_run(6, 4, "working", "r", 1).go(3, 4).go(4, 6);
    assert_eq!(h.found(), [Violation::ForeignParent(id(6))]);
}

#[test]
fn each_violation_is_told_by_its_number_and_what_did_it() {
    let (one, run) = (id(1), || "r".to_owned());
    for (violation, said) in [
        (Violation::SecondLease("1".into()), "V1: trigger 1 was leased twice".to_owned()),
        (Violation::SecondEnd(run()), "V2: run r ended twice".into()),
        (Violation::WroteAfterStalled(run()), "V3: run r wrote after it was stalled".into()),
        (Violation::ForeignParent(one), format!("V4: {one} does not stand on what it replaced")),
        (Violation::NoLeaseBelow(one), format!("V4: {one} does not stand on a lease of its run")),
        (Violation::Dropped(one), format!("V5: {one} dropped what was accepted before")),
        (Violation::MadeBranch(one), format!("V6: {one} made a branch")),
        (Violation::Unreadable(one), format!("V7: {one} does not tell its story")),
        (Violation::Gap(one), format!("{one} replaced something that was not the head")),
        (Violation::Missing(one), format!("{one} is missing")),
    ] {
        assert_eq!(violation.to_string(), said);
    }
}
