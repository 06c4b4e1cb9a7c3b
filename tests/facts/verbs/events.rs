use crate::verbs::rig::Rig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};

const SCHEMA: &str = "aynig.events/1";

fn states(objects: &[serde_json::Value]) -> Vec<&str> {
    objects.iter().map(|o| o["state"].as_str().unwrap()).collect()
}

#[test]
fn events_are_newest_first_and_leases_are_history() {
    let rig = Rig::new();
    let trigger = rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let events = rig.json(&["events", "work", "--json"], 0, SCHEMA);
    assert_eq!(states(&events), ["done", "ok"]);
    assert_eq!(events[0]["trigger"], *trigger);
    assert_eq!(events[0]["origin_state"], "ok");
    assert_eq!(events[1]["commit"], *trigger);
    assert!(events[1]["run_id"].is_null());
    let all = rig.json(&["events", "work", "--history", "--json"], 0, SCHEMA);
    assert_eq!(states(&all), ["done", "working", "ok"]);
    assert_eq!(states(&rig.json(&["events", "work", "-n", "1", "--json"], 0, SCHEMA)), ["done"]);
    let text = rig.aynig(&["events", "work"]).expect(0).out;
    assert!(text.lines().next().unwrap().contains(&format!("answers ok {}", &trigger[..10])), "{text}");
}

#[test]
fn following_shows_what_lands_and_ends_by_sigint() {
    let rig = Rig::new();
    rig.set("work", "one");
    let mut child = rig.spawn(&["events", "work", "--follow", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["state"], "one");
    rig.set("work", "two");
    assert_eq!(next()["state"], "two");
    rig.set("work", "three");
    rig.set("work", "four");
    assert_eq!(next()["state"], "three");
    assert_eq!(next()["state"], "four");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_verb_without_failure() {
    let rig = Rig::new();
    rig.set("work", "one");
    let mut child = rig.spawn(&["events", "work", "--follow"]);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_shallow_clone_ends_where_it_ends() {
    let rig = Rig::new();
    for state in ["one", "two", "three"] {
        rig.set("work", state);
    }
    let url = format!("file://{}", rig.dir.display());
    rig.git(&["clone", "-q", "--depth", "2", "--branch", "work", &url, "../shallow"]);
    let said = rig.world.aynig(&rig.dir.join("../shallow"), &["events", "--json"]).expect(0);
    assert_eq!(said.out.lines().count(), 2);
}

#[test]
fn a_branch_without_events_says_so_and_a_missing_one_is_an_error() {
    let rig = Rig::new();
    let said = rig.aynig(&["events", "main"]).expect(0);
    assert!(said.out.is_empty() && said.err.contains("has no state events"), "{}", said.err);
    rig.aynig(&["events", "gone"]).expect(128);
}

/// K55: those of all branches as they land, each once, of a branch that comes meanwhile too.
#[test]
fn all_branches_are_followed() {
    let rig = Rig::new();
    rig.set("one", "first");
    let mut child = rig.spawn(&["events", "--all", "--follow", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let event: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        (event["branch"].as_str().unwrap().to_owned(), event["state"].as_str().unwrap().to_owned())
    };
    let is = |branch: &str, state: &str| (branch.to_owned(), state.to_owned());
    assert_eq!(next(), is("one", "first"));
    rig.set("two", "second");
    assert_eq!(next(), is("two", "second"));
    rig.set("one", "third");
    assert_eq!(next(), is("one", "third"));
    rig.git(&["branch", "same", "one"]);
    rig.set("two", "fourth");
    assert_eq!(next(), is("two", "fourth"));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
