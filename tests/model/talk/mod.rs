//! Messages, questions, pauses and waits: a model of its own beside the protocol's, with the same shipped functions.
//!
//! Senders, those who answer, pause and let go, and ticks that deliver and run: each step is one read or one move of a
//! ref, in every order, and each process may be killed at each of them; on a remote an answer may be lost, and the
//! server killed between two moves. With every rule in place only that fails which no rule mends; each rule left out
//! breaks what it is there for. Messages bring work, which conflicts or not, and one id is sent to two branches.
//! For K42, K46, K46a, K47, K47a, K48, K49a, K50, K51, K52.

mod cases;
mod commits;
mod moves;
mod people;
mod promises;
mod steps;
mod tick;
mod world;

use crate::appendix::{self, grouped, table};
use cases::{Case, ablations, cases, larger};
use promises::Promise;

/// Most states of one case, and among the ignored ones.
const STATES: [usize; 2] = [60_000, 2_000_000];

fn names(promises: &[Promise]) -> String {
    let names: Vec<&str> = promises.iter().map(|p| p.name()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

fn every_case(all: Vec<Case>, most: usize) -> String {
    let (mut rows, mut visited, mut wrong) = (Vec::new(), 0, Vec::new());
    for Case { name, world, fails } in all {
        let found = world.check(most, None);
        if found.broken != fails {
            let (fail, ways) = (names(&found.broken), found.ways);
            wrong.push(format!("{name}: {fail} fail, and {} should: {ways:?}", names(fails)));
        }
        visited += found.states;
        let states = format!("{}{}", grouped(found.states), if found.whole { "" } else { " (cut)" });
        rows.push(vec![name.to_owned(), states, names(&found.broken)]);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let cases = table(&["messages, with every rule in place", "states", "fails"], &rows);
    format!("{cases}\n{} states in all.\n", grouped(visited))
}

/// K47a, K49a, K50-K52.
#[test]
fn what_is_said_is_delivered_once_and_what_is_paused_waits() {
    appendix::keep("messages", &every_case(cases(), STATES[0]));
}

/// K47a, K49a, K50-K52.
#[test]
fn each_rule_of_messages_left_out_breaks_what_it_is_there_for() {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for (rule, Case { name, world, fails }) in ablations() {
        let found = world.check(STATES[1], Some(fails));
        if fails.iter().any(|promise| !found.broken.contains(promise)) {
            let (says, states, broken) = (rule.says(), found.states, names(&found.broken));
            wrong.push(format!("without '{says}', {name}: {broken} of {} after {states}", names(fails)));
        }
        rows.push(vec![rule.says().to_owned(), name.to_owned(), names(fails)]);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(world::Rule::ALL.iter().all(|rule| ablations().iter().any(|(left, _)| left == rule)));
    appendix::keep("messages, left out", &table(&["left out", "with", "named for it"], &rows));
}

#[test]
#[ignore = "minutes; use --release"]
fn what_is_said_is_delivered_once_in_millions_of_states() {
    appendix::keep("messages, millions", &every_case(larger(), STATES[1]));
}

/// From every state what waits is delivered, once nothing more goes wrong and each who was cut off comes by again.
#[test]
fn from_every_state_what_waits_is_delivered() {
    for Case { name, world, .. } in cases() {
        if let Some(stuck) = world.stuck(300) {
            panic!("{name}: {stuck:#?}");
        }
    }
}

#[test]
fn the_promises_about_messages_are_told_as_they_are_judged() {
    let lines = Promise::ALL.iter().map(|p| format!("- **{}**: {}.\n", p.name(), p.says()));
    appendix::keep("promises about messages", &lines.collect::<String>());
}
