//! `wait`: what ends it, and with which exit code.

use crate::support::flow::repo;
use crate::support::world::World;
use crate::verbs::rig::Rig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// K55
#[test]
fn a_wait_ends_when_the_branch_rests() {
    let rig = Rig::new();
    let mut tick = rig.hold("work");
    let late = rig.aynig(&["wait", "work", "--timeout", "0"]).expect(75);
    assert!(late.out.is_empty() && late.err.starts_with("work: still working after"), "{}", late.err);
    let waiting = rig.spawn(&["wait", "work"]);
    rig.go();
    let ended = waiting.wait_with_output().unwrap();
    let head = rig.git(&["rev-parse", "--short=8", "work"]);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), format!("work: done ({head})\n"));
    assert_eq!(ended.status.code(), Some(0));
    assert!(tick.wait().unwrap().success());
    // What is no state event rests too, and so does what can name no command.
    rig.aynig(&["wait", "main"]).expect(0);
    rig.aynig(&["wait", "gone"]).expect(128);
}

/// K55
#[test]
fn a_state_that_was_passed_between_two_looks_is_not_missed() {
    let rig = Rig::new();
    rig.set("work", "one");
    rig.aynig(&["wait", "work", "--for", "one"]).expect(0);
    // It is over already: only what comes counts.
    rig.set("work", "two");
    rig.aynig(&["wait", "work", "--for", "one", "--timeout", "0"]).expect(75);
    let mut waiting = rig.spawn(&["wait", "work", "--for", "three", "--for", "other", "--json"]);
    while waiting.try_wait().unwrap().is_none() {
        rig.set("work", "three");
        rig.set("work", "four");
    }
    let ended = waiting.wait_with_output().unwrap();
    let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&object["reached"], &object["state"]), (&"state".into(), &"three".into()));
    let commit = object["commit"].as_str().unwrap();
    assert!(rig.git(&["show", "-s", "--format=%(trailers)", commit]).contains("dwp-state: three"));
}

/// K55: a rewind passes nothing on its way
#[test]
fn a_branch_that_is_put_elsewhere_was_in_none_of_that_branchs_states() {
    let rig = Rig::new();
    rig.set("other", "one");
    rig.set("other", "two");
    rig.set("work", "zero");
    let mut waiting = rig.spawn(&["wait", "work", "--for", "one", "--for", "end"]);
    let zero = rig.git(&["rev-parse", "work"]);
    rig.git(&["update-ref", "refs/heads/work", "other", &zero]);
    while waiting.try_wait().unwrap().is_none() {
        rig.set("work", "end");
    }
    let said = waiting.wait_with_output().unwrap();
    assert!(said.stdout.starts_with(b"work: end ("), "{said:?}");
}

/// K55
#[test]
fn what_will_not_go_on_by_itself_ends_a_wait_for_a_state() {
    let rig = Rig::new();
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    let said = rig.aynig(&["wait", "work", "--for", "done"]).expect(1);
    assert!(said.out.starts_with("work: stalled ("), "{}", said.out);
    assert!(said.err.contains("exit 3; waits for git aynig retry work"), "{}", said.err);
    rig.aynig(&["wait", "work", "--for", "stalled"]).expect(0);
    // A user may go on with a branch that waits for a person.
    rig.set("other", "review");
    rig.aynig(&["wait", "other"]).expect(0);
    rig.aynig(&["wait", "other", "--for", "done", "--timeout", "0"]).expect(75);
    rig.set("ready", "ok");
    rig.aynig(&["trust", "--revoke"]).expect(0);
    let said = rig.aynig(&["wait", "ready"]).expect(2);
    assert!(said.err.contains("not trusted: the branch has .aynig/command/ok"), "{}", said.err);
}

/// K55
#[test]
fn a_wait_ends_with_its_branch_and_with_a_signal() {
    let rig = Rig::new();
    rig.set("work", "review");
    rig.set("gone", "review");
    let waiting = rig.spawn(&["wait", "gone", "--for", "done"]);
    rig.git(&["update-ref", "-d", "refs/heads/gone"]);
    let said = waiting.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(128), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("branch 'gone' does not exist"), "{said:?}");
    let mut waiting = rig.spawn(&["wait", "work", "--for", "working"]);
    rig.aynig(&["set-working", "-b", "work"]).expect(0);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    let mut waiting = rig.spawn(&["wait", "work"]);
    // It ends by the signal whether it had begun to wait or not.
    kill(Pid::from_raw(waiting.id() as i32), Signal::SIGTERM).unwrap();
    let code = waiting.wait().unwrap().code();
    assert!(code == Some(143) || code.is_none(), "{code:?}");
    rig.aynig(&["wait", "work", "--timeout", "soon"]).expect(129);
    rig.aynig(&["wait", "work", "--for", "a b"]).expect(129);
    rig.aynig(&["wait"]).expect(129);
}

/// K30, K34, K55
#[test]
fn a_branch_of_a_remote_is_waited_for_there() {
    let world = World::any();
    let dir = repo(&world, &[("build", "true")]);
    let server = world.try_init("server.git", &["--bare"]).unwrap();
    world.git(&dir, &["remote", "add", "hub", server.to_str().unwrap()]);
    world.aynig(&dir, &["set-state", "review", "-b", "work"]).expect(0);
    world.git(&dir, &["push", "-q", "hub", "main", "work"]);
    world.git(&dir, &["branch", "-D", "work"]);
    let said = world.aynig(&dir, &["wait", "--remote", "hub", "work"]).expect(0);
    assert!(said.out.starts_with("work: review ("), "{}", said.out);
    let said = world.aynig(&dir, &["wait", "--remote", "hub", "work", "--for", "done", "--timeout", "0"]);
    assert_eq!(said.code, 75, "{said:?}");
    world.aynig(&dir, &["wait", "work"]).expect(128);
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    world.git(&dir, &["config", "aynig.remote", "hub"]);
    let said = world.aynig(&dir, &["wait", "work"]).expect(2);
    assert!(said.err.contains("hint: git aynig wait work --remote hub"), "{}", said.err);
}
