//! Trees that are small to push and large to check out. Row S35.

use crate::support::life::{Life, eventually};
use nix::sys::signal::Signal;

/// Puts a branch on a tree that holds `file` `width` to the power of `depth` times, and the commands.
fn bomb(life: &Life, branch: &str, width: usize, depth: usize) {
    let mktree = |lines: &str| {
        let input = life.shared().join("lines");
        std::fs::write(&input, lines).unwrap();
        let mut command = life.repo.command("git");
        let output = command.arg("mktree").stdin(std::fs::File::open(input).unwrap()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let mut entry = ("100644 blob", life.rev("main:file"));
    for _ in 0..depth {
        let line = |n| format!("{} {}\t{n:04}\n", entry.0, entry.1);
        entry = ("040000 tree", mktree(&(0..width).map(line).collect::<String>()));
    }
    let commands = life.rev("main:.aynig");
    let tree = mktree(&format!("040000 tree {commands}\t.aynig\n040000 tree {}\tmany\n", entry.1));
    let id = life.git(&["commit-tree", "-p", "main", "-m", "go\n\ndwp-state: build", &tree]);
    life.git(&["update-ref", &format!("refs/heads/{branch}"), &id]);
}

fn life() -> Life {
    Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")])
}

/// K14, K17: a signal ends the filling, and the branch is no runner's for no longer than that.
#[test]
fn s35_a_signal_ends_the_filling_of_a_slot() {
    let life = life();
    bomb(&life, "work", 700, 2);
    let tick = life.start_tick(&["work"]);
    eventually("it is filled", || {
        let slot = std::panic::catch_unwind(|| life.slot(0)).ok()?;
        slot.join("many").exists().then_some(())
    });
    tick.signal(Signal::SIGINT);
    tick.done().expect(130);
    let filled = std::fs::read_dir(life.slot(0).join("many")).map_or(0, Iterator::count);
    assert!(filled < 700, "all of it was filled first");
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    assert!(life.body("work").contains("interrupted"), "{}", life.body("work"));
    // Nothing of it is left that the next run would find.
    life.event("plain", "build", "");
    life.tick(&["plain"]).expect(0);
    life.repo.assert_sound();
}

/// K17, K18: the time limit counts, and the lease is renewed meanwhile.
#[test]
fn s35_the_time_limit_counts_while_a_slot_is_filled_and_the_lease_lives() {
    let life = life();
    bomb(&life, "work", 700, 2);
    life.tick(&["--timeout", "6s", "--lease", "4s", "work"]).expect(1);
    assert!(life.body("work").contains("longer than aynig.timeout"), "{}", life.body("work"));
    let states = life.states("work");
    assert!(
        states.len() > 3 && states[0] == "stalled" && states[1..3] == ["working", "working"],
        "{states:?}"
    );
}

/// K14: what no disk holds is not begun, and not held in memory either.
#[test]
fn s35_a_tree_that_no_disk_holds_is_refused_before_it_is_expanded() {
    let life = life();
    bomb(&life, "work", 10, 12);
    life.tick(&["work"]).expect(1);
    assert!(life.body("work").contains("it has more than"), "{}", life.body("work"));
    assert_eq!(life.state("work"), "stalled");
}
