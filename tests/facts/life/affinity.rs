//! Which slot a branch gets, and what a command is told of it. K57.

use crate::support::life::Life;

const SHOW: &str =
    "echo \"$AYNIG_SLOT $AYNIG_PORT_BASE $PWD\" >\"$T/$AYNIG_BRANCH\"; echo 'SET_STATE {\"state\":\"done\"}'";

/// The slot that a run of the branch was in.
fn slot_of(life: &Life, branch: &str, state: &str) -> usize {
    life.event(branch, state, "");
    life.tick(&["--jobs", "3", branch]).expect(0);
    life.said(branch).split(' ').next().unwrap().parse().unwrap()
}

/// K57
#[test]
fn k57_a_branch_comes_back_to_its_slot_and_a_new_one_takes_the_slot_that_rested_longest() {
    let life = Life::new(&[
        ("show", SHOW),
        ("hold", &format!("{SHOW}; echo >\"$T/held-$AYNIG_BRANCH\"; read x <\"$T/gate\"")),
    ]);
    let gate = || life.gate("gate");
    // Two at a time, so that there are two slots.
    let mut held = gate();
    life.event("a", "hold", "");
    let first = life.start_tick(&["--jobs", "3", "a"]);
    life.hear("held-a");
    assert_eq!(slot_of(&life, "b", "show"), 1);
    held.open();
    assert_eq!(first.done().code, Some(0));
    assert_eq!(life.said("a").split(' ').next(), Some("0"));
    for _ in 0..2 {
        assert_eq!((slot_of(&life, "b", "show"), slot_of(&life, "a", "show")), (1, 0));
    }
    // 'b' rested longer; then 'a' does.
    assert_eq!((slot_of(&life, "c", "show"), slot_of(&life, "d", "show")), (1, 0));
    assert_eq!((slot_of(&life, "c", "show"), slot_of(&life, "d", "show")), (1, 0));
}

/// K57
#[test]
fn k57_a_slot_has_a_number_and_ports_of_its_own() {
    let life = Life::new(&[("show", SHOW)]);
    life.event("work", "show", "aynig-slot: 7\naynig-port-base: 1\n");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("work"), format!("0 20000 {}\n", life.slot(0).display()));
    for (base, want) in [("30100", "0 30100"), ("65436", "0 65436")] {
        // The repository's own configuration may say it: it is about its commands' ports, not about what may run.
        life.git(&["config", "aynig.portBase", base]);
        life.event("work", "show", "");
        life.tick(&["work"]).expect(0);
        assert!(life.said("work").starts_with(want), "{}", life.said("work"));
    }
    life.event("work", "show", "");
    for wrong in ["0", "65437", "x", "-1"] {
        life.git(&["config", "aynig.portBase", wrong]);
        let done = life.tick(&["work"]).expect(128);
        assert!(done.stderr.contains("'aynig.portBase'"), "{done:?}");
    }
}
