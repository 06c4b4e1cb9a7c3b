//! What may run is what is said now, also for who runs already (K33, K35, K38).

use super::*;
use crate::support::flow::repo;
use crate::support::life::eventually;
use std::process::Stdio;

/// A trusted repository whose `hold` waits for [`open`] and goes on with `next`, which leaves a trace.
fn held(world: &mut World) -> PathBuf {
    world.set("T", world.root());
    let hold = "echo >\"$T/begun\"\nread x <\"$T/gate\"\necho 'SET_STATE {\"state\":\"next\"}'";
    let next = format!("echo >\"$T/next\"\n{DONE}");
    nix::unistd::mkfifo(&world.root().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    repo(world, &[("hold", hold), ("next", &next)])
}

fn begun(world: &World) {
    eventually("the command has begun", || world.root().join("begun").exists().then_some(()));
}

fn open(world: &World) {
    std::fs::write(world.root().join("gate"), "go\n").unwrap();
}

/// A runner that polls, which ends with its test.
struct Polling(std::process::Child);

impl Polling {
    fn end(&mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        self.0.wait().unwrap().code()
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// K33, K35
#[test]
fn who_polls_goes_by_what_is_said_now() {
    for (change, says) in [(&["trust", "--revoke"][..], "not trusted"), (&[], "changed meanwhile")] {
        let mut world = World::any();
        let dir = held(&mut world);
        world.aynig(&dir, &["set-state", "hold", "-b", "work"]).expect(0);
        let mut command = world.command(world.root().join("bin/git-aynig"), &dir);
        let log = world.root().join("log");
        let file = std::fs::File::create(&log).unwrap();
        command.args(["run", "--every", "1h"]).stdout(file.try_clone().unwrap()).stderr(Stdio::from(file));
        let mut child = Polling(command.spawn().unwrap());
        begun(&world);
        match change {
            [] => global(&world, &["aynig.branches", "other"]),
            args => drop(world.aynig(&dir, args).expect(0)),
        }
        open(&world);
        let said = || std::fs::read_to_string(&log).unwrap();
        eventually("it is said", || said().contains("changed meanwhile").then_some(()));
        assert!(!world.root().join("next").exists(), "{}", said());
        assert_eq!(child.end(), Some(143), "{}", said());
        // A runner that looks only now is told the same.
        let now = world.aynig(&dir, &["run"]);
        assert!(now.code == if change.is_empty() { 0 } else { 2 }, "{says}: {now:?}");
        assert!(!world.root().join("next").exists());
    }
}

/// K38, K40
#[test]
fn a_chain_ends_where_hooks_are_switched_off() {
    for (change, says) in [
        (&["config", "aynig.hooks", "off"][..], "aynig.hooks is off now"),
        (&["aynig", "trust", "--revoke"], "not trusted"),
    ] {
        let mut world = World::any();
        let dir = held(&mut world);
        world.aynig(&dir, &["hooks", "install"]).expect(0);
        world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "go\n\ndwp-state: hold"]);
        begun(&world);
        world.git(&dir, change);
        open(&world);
        let log = dir.join(".aynig/logs/hook.log");
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        eventually("the chain has ended", || said().contains(says).then_some(()));
        let pending = std::fs::read_dir(dir.join(".git/aynig/pending")).unwrap().count();
        assert!(pending > 0, "it waits for whoever ticks: {}", said());
        let states = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)"]);
        assert_eq!(states, "next", "{change:?}: {}", said());
        assert!(!world.root().join("next").exists());
    }
}

/// K38, K40: where hooks are off nothing goes on in the background, whichever process ticks; what waits is there
/// for a tick that means it.
#[test]
fn a_tick_starts_no_other_branch_where_hooks_are_off() {
    let mut world = World::any();
    let dir = held(&mut world);
    world.aynig(&dir, &["hooks", "install"]).expect(0);
    world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "go\n\ndwp-state: hold"]);
    begun(&world);
    world.git(&dir, &["config", "aynig.hooks", "off"]);
    open(&world);
    let log = dir.join(".aynig/logs/hook.log");
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the chain has ended", || said().contains("aynig.hooks is off now").then_some(()));
    let notes = || std::fs::read_dir(dir.join(".git/aynig/pending")).map_or(0, Iterator::count);
    let before = said();
    assert_eq!(notes(), 1, "{before}");
    // What it waits for is a tick, and no worktree.
    let hold = world.git(&dir, &["symbolic-ref", "--short", "HEAD"]);
    let said_of = |verb: &str| world.aynig(&dir, &[verb]).out;
    let told = format!("hooks are off ('aynig.hooks'), git aynig tick {hold} takes it on");
    let status = said_of("status");
    assert!(status.contains(&told) && !status.contains("aynig.jobs"), "{status}");
    let doctor = said_of("doctor");
    assert!(doctor.contains(": hooks are off ('aynig.hooks'), only a tick takes it on\n"), "{doctor}");
    assert!(doctor.contains(&format!("hint: git aynig tick {hold}\n")), "{doctor}");
    assert!(!doctor.contains("one is free"), "{doctor}");
    // Another branch frees a slot, and what waits waits on.
    world.aynig(&dir, &["set-state", "next", "-b", "other", "--no-tick"]).expect(0);
    world.aynig(&dir, &["tick", "other"]).expect(0);
    assert_eq!((notes(), said()), (1, before.clone()), "no process began");
    // Who names it has it, and then it waits no more.
    std::fs::remove_file(world.root().join("next")).unwrap();
    world.aynig(&dir, &["tick"]).expect(0);
    assert!(world.root().join("next").exists());
    assert_eq!((notes(), said()), (0, before));
}

/// K33, K38, K40: the same of a chain that the user who committed or pushed watches
#[test]
fn a_watched_chain_ends_where_hooks_are_switched_off() {
    let mut world = World::any();
    let dir = held(&mut world);
    world.aynig(&dir, &["hooks", "install"]).expect(0);
    world.git(&dir, &["config", "aynig.hooks", "wait"]);
    let mut commit = world.command("git", &dir);
    commit.args(["commit", "-q", "--allow-empty", "-m", "go\n\ndwp-state: hold"]);
    let mut commit = commit.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    begun(&world);
    world.git(&dir, &["config", "aynig.hooks", "off"]);
    open(&world);
    assert!(commit.wait().unwrap().success());
    let states = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)"]);
    assert_eq!(states, "next");
    assert!(!world.root().join("next").exists());
    let pending = std::fs::read_dir(dir.join(".git/aynig/pending")).map_or(0, Iterator::count);
    assert_eq!(pending, 1, "it waits for whoever ticks");
}
