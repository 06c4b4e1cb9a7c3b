//! The protocol's model: every interleaving of runners, faults and users within bounds, checked by stateright.
//!
//! Its steps call the shipped functions (`decide`, `complete`, `whose`, the moments of a lease, the tables of a
//! swap's verdict, the messages), not copies of them. With every rule in place only that fails which no rule
//! mends; each rule left out alone breaks what it is there for; and from every state a settled one is reached in
//! time. A million states by `cargo test --test model`, ten million by `-- --ignored` (use `--release`). Both
//! keep the appendix of CONTRACT.md. Tries promises 1, 2 and 4, and K6-K8, K10, K11, K17, K18, K20-K24.

mod appendix;
mod cases;
mod checking;
mod faults;
mod progress;
mod properties;
mod pushes;
mod queue;
mod runs;
mod steps;
mod talk;
mod texts;
mod world;

use appendix::{grouped, table};
use cases::{Case, Scale, ablations, ahead, hardened};
use checking::Found;
use properties::Promise;
use world::Rule;

/// Most steps of one case among a million states, and among ten million.
const STEPS: [usize; 2] = [160_000, 3_000_000];
/// States of one case from which a settled one is looked for.
const SETTLED: [usize; 2] = [1_500, 40_000];

fn names(promises: &[Promise]) -> String {
    let names: Vec<&str> = promises.iter().map(|p| p.name()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

fn how_many(found: &Found) -> String {
    format!("{}{}", grouped(found.states), if found.whole { "" } else { " (cut)" })
}

/// Every case with every rule in place; `all` names the states that were visited.
fn check_hardened(scale: Scale, steps: usize, least: usize) -> String {
    let (mut rows, mut visited, mut wrong) = (Vec::new(), 0, Vec::new());
    for Case { name, world, fails } in hardened(scale) {
        let found = world.check(steps);
        if found.broken != fails {
            wrong.push(format!("{name}: {} fail, and {} should", names(&found.broken), names(fails)));
        }
        visited += found.states;
        rows.push(vec![name.to_owned(), how_many(&found), names(&found.broken)]);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(visited >= least, "only {visited} states");
    let cases = table(&["with every rule in place", "states", "fails"], &rows);
    format!("{cases}\n{} states in all.\n", grouped(visited))
}

/// Where it fails at all, a run of the protocol never writes twice: the branch is fenced whatever happens.
#[test]
fn what_no_rule_mends_leaves_the_branch_fenced() {
    for case in hardened(Scale::TenMillion) {
        for fenced in [Promise::Q1, Promise::Q2, Promise::Q5, Promise::Q6, Promise::Q8, Promise::Q9] {
            assert!(!case.fails.contains(&fenced), "{}", case.name);
        }
    }
}

#[test]
fn a_million_states_keep_what_is_promised() {
    appendix::keep("a million states", &check_hardened(Scale::Million, STEPS[0], 1_000_000));
}

#[test]
fn each_rule_left_out_breaks_what_it_is_there_for() {
    let mut left_out = Vec::new();
    for (rule, Case { name, world, fails }) in ablations() {
        let found = world.check_for(STEPS[1], fails);
        let missing: Vec<_> = fails.iter().filter(|p| !found.broken.contains(p)).collect();
        assert!(missing.is_empty(), "without '{}', {name}: {missing:?} still hold", rule.says());
        left_out.push(rule);
    }
    assert!(Rule::ALL.iter().all(|rule| left_out.contains(rule)));
}

/// Promise 4.
#[test]
fn from_every_state_a_settled_one_is_reached_in_time() {
    settle(Scale::Million, SETTLED[0]);
}

/// Promise 4: a lease that is dated ahead holds that much longer where it is judged by its date, up to an hour.
#[test]
fn a_dead_runner_whose_clock_was_ahead_is_recovered_that_much_later() {
    let world = ahead(3);
    let ticks = world.progress(20_000).unwrap().ticks;
    assert_eq!(ticks, world.settles_within() + 3);
}

fn settle(scale: Scale, most: usize) -> (usize, u8) {
    let (mut states, mut slowest) = (0, 0);
    for Case { name, world, .. } in hardened(scale) {
        let progress = world.progress(most).unwrap_or_else(|state| panic!("{name}: stuck: {state:#?}"));
        let within = world.settles_within();
        assert!(progress.ticks <= within, "{name}: {} ticks, not {within}", progress.ticks);
        states += progress.states;
        slowest = slowest.max(progress.ticks);
    }
    (states, slowest)
}

#[test]
#[ignore = "minutes; use --release"]
fn ten_million_states_keep_what_is_promised() {
    let cases = check_hardened(Scale::TenMillion, STEPS[1], 10_000_000);
    let mut rows = Vec::new();
    for (rule, Case { name, world, fails }) in ablations() {
        let found = world.check(STEPS[1]);
        assert!(fails.iter().all(|p| found.broken.contains(p)), "{name}");
        let shortest = fails.iter().map(|p| world.shortest(*p).map_or(0, |steps| steps.len()).to_string());
        let shortest = shortest.collect::<Vec<_>>().join(" ");
        let states = how_many(&found);
        rows.push(vec![
            rule.says().into(),
            name.into(),
            states,
            names(&found.broken),
            names(fails),
            shortest,
        ]);
    }
    let head = ["left out", "with", "states", "fails", "named for it", "steps to those"];
    let (states, slowest) = settle(Scale::TenMillion, SETTLED[1]);
    let settled = format!(
        "L: from each of {} states, a settled one is reached within lease, grace and one tick; the slowest takes {} \
         ticks.\n",
        grouped(states),
        slowest
    );
    appendix::keep("ten million states", &format!("{cases}\n{}\n{settled}", table(&head, &rows)));
}

#[test]
fn the_promises_are_told_as_they_are_judged() {
    let lines = Promise::ALL.iter().map(|p| format!("- **{}**: {}.\n", p.name(), p.says()));
    appendix::keep("promises", &lines.collect::<String>());
}
