//! A cycle costs what it writes, and the thousandth what the first did.
//!
//! `AYNIG_SPEED=1` measures 1,000 cycles against the stated bounds, by the time that goes by; without it fewer, against
//! looser ones, by the time that this thread has a processor: what else the machine does is no part of that.

use crate::rig::Project;
use aynig::governed::*;
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 2]
}

/// What time is measured by.
#[derive(Clone, Copy)]
enum Watch {
    Wall,
    Processor,
}

impl Watch {
    /// How long this takes.
    fn time<T>(self, work: impl FnOnce() -> T) -> (Duration, T) {
        let thread = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
        let (started, had) = (Instant::now(), thread());
        let done = work();
        match self {
            Self::Wall => (started.elapsed(), done),
            Self::Processor => (thread() - had, done),
        }
    }
}

fn cycle(project: &Project, root: &Root, watch: Watch) -> Duration {
    let (assigning, assigned) = watch.time(|| assign_turn(root, &project.config, "pm").unwrap());
    project.stage(&assigned.turn, json!({}));
    let accept = || accept_turn(root, &project.config, &AcceptOptions::default()).unwrap();
    assigning + watch.time(accept).0
}

/// What a cycle leaves, written and synced by hand: two states, four appended lines, two folders removed.
fn by_hand(project: &Project, state: &str, line: &str, watch: Watch) -> Duration {
    let folder = project.path().join("by-hand");
    std::fs::create_dir_all(folder.join("staging")).unwrap();
    std::fs::write(folder.join("staging/result"), line).unwrap();
    watch.time(|| written_by_hand(&folder, state, line)).0
}

fn written_by_hand(folder: &Path, state: &str, line: &str) {
    let sync = || File::open(folder).unwrap().sync_all().unwrap();
    for _ in 0..2 {
        let mut file = File::create(folder.join("state.new")).unwrap();
        file.write_all(state.as_bytes()).unwrap();
        file.sync_data().unwrap();
        std::fs::rename(folder.join("state.new"), folder.join("state.json")).unwrap();
        sync();
    }
    for name in ["history", "ledger", "talk", "events"] {
        let mut file = OpenOptions::new().append(true).create(true).open(folder.join(name)).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        file.sync_data().unwrap();
    }
    std::fs::remove_dir_all(folder.join("staging")).unwrap();
    sync();
}

#[test]
fn the_last_cycle_costs_what_the_first_did() {
    let is_strict = std::env::var_os("AYNIG_SPEED").is_some();
    // By hand a processor does next to nothing: of its time a cycle takes 8 times as much in a build for tests, of the time
    // that goes by, most of which is the disk's in both, half as many times as that.
    let (cycles, part, growth, factor) = if is_strict { (1000, 200, 1.2, 3.0) } else { (90, 30, 2.0, 16.0) };
    let watch = if is_strict { Watch::Wall } else { Watch::Processor };
    let project = Project::on_disk();
    let root = Root::new(project.path());
    let mut told = String::new();
    // What else the machine does meanwhile slows both hands down: each cycle is measured against the same
    // work by hand, right after it.
    for _ in 0..3 {
        let (mut costs, mut hands, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..cycles {
            let cost = cycle(&project, &root, watch);
            let state = std::fs::read_to_string(project.path().join(".agentxchain/state.json")).unwrap();
            let hand = by_hand(&project, &state, &"x".repeat(1200), watch);
            costs.push(cost);
            hands.push(hand);
            ratios.push(Duration::from_secs_f64(cost.as_secs_f64() / hand.as_secs_f64()));
        }
        let ends = |all: &[Duration]| [median(all[..part].to_vec()), median(all[cycles - part..].to_vec())];
        let [first, last] = ends(&ratios).map(|ratio| ratio.as_secs_f64());
        let (of_cycle, of_hand) = (median(costs), median(hands));
        told = format!(
            "{first:.2} times by hand at the start, {last:.2} at the end; {of_cycle:?} to {of_hand:?}"
        );
        println!("{told}");
        if last <= first * growth && last <= factor {
            return;
        }
    }
    panic!("{told}");
}

#[test]
fn loading_the_state_does_not_read_the_history() {
    let project = Project::begun();
    // What can't be read as a file would tell.
    std::fs::create_dir(project.path().join(".agentxchain/history.jsonl")).unwrap();
    let state = project.state();
    assert_eq!(state.status(), Some(RunStatus::Active));
    std::fs::remove_dir(project.path().join(".agentxchain/history.jsonl")).unwrap();
}
