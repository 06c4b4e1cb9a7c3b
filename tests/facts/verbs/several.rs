//! `cancel` and `retry` of several branches, and `events` of all.

use crate::verbs::rig::Rig;

const CHANGE: &str = "aynig.change/1";
const EVENTS: &str = "aynig.events/1";

fn texts<'a>(objects: &'a [serde_json::Value], key: &str) -> Vec<&'a str> {
    objects.iter().map(|object| object[key].as_str().unwrap()).collect()
}

impl Rig {
    /// What each of these branches holds.
    fn state(&self, branch: &str) -> String {
        let status = self.json(&["status", "--json", branch], 0, "aynig.status/1");
        status[0]["state"].as_str().unwrap().to_owned()
    }
}

/// K55
#[test]
fn a_pattern_cancels_what_is_leased_and_nothing_by_accident() {
    let rig = Rig::new();
    for branch in ["job/a", "job/b", "job/deep/c", "other"] {
        rig.set(branch, "ok");
        rig.aynig(&["set-working", "-b", branch]).expect(0);
    }
    rig.set("job/idle", "ok");
    let head = rig.git(&["rev-parse", "job/a"]);
    // One pattern that means nothing keeps the others from being written to.
    let said = rig.aynig(&["cancel", "job/*", "jbo/*"]).expect(128);
    assert!(said.out.is_empty() && said.err.contains("no branch that is leased matches 'jbo/*'"), "{said:?}");
    assert!(said.err.contains("hint: git aynig status"), "{}", said.err);
    assert_eq!(rig.git(&["rev-parse", "job/a"]), head);
    // It matches a branch, which no run holds.
    rig.aynig(&["cancel", "job/id*"]).expect(128);
    let lines = rig.json(&["cancel", "job/*", "job/a", "--json"], 0, CHANGE);
    assert_eq!(texts(&lines, "branch"), ["job/a", "job/b"]);
    assert_eq!((rig.state("job/a").as_str(), rig.state("job/idle").as_str()), ("canceled", "ok"));
    let lines = rig.json(&["cancel", "--all", "--json"], 0, CHANGE);
    assert_eq!(texts(&lines, "branch"), ["job/deep/c", "other"]);
    let said = rig.aynig(&["cancel", "--all"]).expect(0);
    assert!(said.out.is_empty() && said.err.contains("no branch is leased"), "{said:?}");
    rig.aynig(&["cancel"]).expect(129);
    rig.aynig(&["cancel", "--all", "other"]).expect(129);
}

/// K55
#[test]
fn one_branch_that_cannot_be_retried_keeps_no_other_from_it() {
    let rig = Rig::new();
    for branch in ["a", "b", "c"] {
        rig.set(branch, "fail");
    }
    rig.aynig(&["tick", "a", "b", "c"]).expect(1);
    // A person wrote it: no run stalled there.
    rig.git(&["commit", "-q", "--allow-empty", "-m", "x\n\ndwp-state: stalled"]);
    let said = rig.aynig(&["retry", "a", "main", "gone", "b"]).expect(128);
    assert_eq!(said.out.lines().count(), 2, "{}", said.out);
    assert!(said.out.starts_with("a: fail (") && said.out.contains("\nb: fail ("), "{}", said.out);
    assert!(said.err.contains("branch 'gone' does not exist"), "{}", said.err);
    let lines = rig.json(&["retry", "--all", "--json"], 0, CHANGE);
    assert_eq!(texts(&lines, "branch"), ["c"]);
    // Of one branch all is as it was.
    rig.aynig(&["retry", "main"]).expect(128);
}

/// K55: a command that cancels all others goes on itself
#[test]
fn inside_a_run_its_own_branch_is_never_meant() {
    let rig = Rig::untrusted();
    let all = "#!/bin/sh\ngit aynig cancel --all\necho 'SET_STATE {\"state\":\"done\"}'\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/all", all)], "all");
    rig.aynig(&["trust", "--ref", "main"]).expect(0);
    rig.set("other", "ok");
    rig.aynig(&["set-working", "-b", "other"]).expect(0);
    rig.set("work", "all");
    rig.aynig(&["tick", "work"]).expect(0);
    assert_eq!((rig.state("other").as_str(), rig.state("work").as_str()), ("canceled", "done"));
}

/// K55
#[test]
fn events_of_all_branches_are_told_once_and_say_how_long_a_run_took() {
    let rig = Rig::new();
    rig.set("one", "ok");
    rig.aynig(&["tick", "one"]).expect(0);
    // It has the same history, and one event more.
    rig.git(&["branch", "two", "one"]);
    rig.set("two", "fail");
    rig.aynig(&["tick", "two"]).expect(1);
    let all = rig.json(&["events", "--all", "--json"], 0, EVENTS);
    let commits: std::collections::HashSet<_> = texts(&all, "commit").into_iter().collect();
    assert_eq!((all.len(), commits.len()), (4, 4));
    let ended: Vec<_> = all.iter().filter(|event| event["seconds"].is_number()).collect();
    assert_eq!(ended.len(), 2, "{all:?}");
    let dates: Vec<_> = all.iter().map(|event| event["committed"].as_i64().unwrap()).collect();
    assert!(dates.is_sorted_by(|a, b| a >= b), "{dates:?}");
    let some = rig.json(&["events", "--all", "--json", "--state", "done", "--state", "stalled"], 0, EVENTS);
    assert_eq!(some.len(), 2);
    assert_eq!(rig.json(&["events", "--all", "--json", "-n", "1"], 0, EVENTS).len(), 1);
    let leases = rig.json(&["events", "one", "--json", "--state", "working"], 0, EVENTS);
    assert_eq!(texts(&leases, "state"), ["working"]);
    let said = rig.aynig(&["events", "--all"]).expect(0).out;
    assert!(said.contains("  two   stalled ") && said.contains(", took "), "{said}");
}

/// K55
#[test]
fn events_since_a_moment_are_those_that_are_newer() {
    let rig = Rig::new();
    for (state, date) in [("old", "2024-01-02T03:04:05Z"), ("new", "2024-02-02T03:04:05Z")] {
        let message = format!("x\n\ndwp-state: {state}");
        let dated = format!("GIT_COMMITTER_DATE={date}");
        let args = [&*dated, "git", "commit", "-q", "--allow-empty", "-m", &message];
        rig.world.run("env", &rig.dir, &args).expect(0);
    }
    for (since, states) in [
        ("2024-01-01", &["new", "old"][..]),
        ("2024-01-02T03:04:05Z", &["new", "old"]),
        ("2024-01-02T03:04:06Z", &["new"]),
        ("2024-02-01", &["new"]),
        ("1d", &[]),
        ("100 years", &[]),
    ] {
        let args = ["events", "main", "--json", "--since", since];
        let said = rig.aynig(&args);
        if since == "100 years" {
            said.expect(129);
            continue;
        }
        assert_eq!(texts(&rig.json(&args, 0, EVENTS), "state"), states, "{since}");
    }
    let said = rig.aynig(&["events", "main", "--since", "1d"]).expect(0);
    assert!(said.err.contains("'main' has no state events that are asked for"), "{}", said.err);
    let said = rig.aynig(&["events", "main", "--since", "yesterday"]).expect(129);
    assert!(said.err.contains("is no moment"), "{}", said.err);
}

/// A retry that was ended after its swap, and before it could say so, is made once: what hooks would start follows.
#[test]
fn a_retry_of_what_was_asked_again_already_says_so() {
    let rig = Rig::new();
    rig.set("a", "fail");
    rig.aynig(&["tick", "a"]).expect(1);
    rig.aynig(&["retry", "a"]).expect(0);
    let head = rig.git(&["rev-parse", "a"]);
    let lines = rig.json(&["retry", "a", "--json"], 0, CHANGE);
    assert_eq!(
        (texts(&lines, "commit"), rig.git(&["rev-parse", "a"])),
        (vec![head.trim_end()], head.clone())
    );
    // Any other state over it is none.
    rig.aynig(&["tick", "a"]).expect(1);
    rig.aynig(&["set-state", "-b", "a", "other"]).expect(0);
    rig.aynig(&["retry", "a"]).expect(128);
}

/// K20: `stalled` is what a run ends with, declared or written.
#[test]
fn stalled_is_not_declared_outside_of_a_run() {
    let rig = Rig::new();
    let said = rig.aynig(&["set-state", "stalled", "--emit"]).expect(129);
    assert!(said.out.is_empty() && said.err.contains("what a run ends with"), "{} {}", said.out, said.err);
    rig.aynig(&["set-state", "blocked", "--emit"]).expect(0);
}
