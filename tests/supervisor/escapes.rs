//! Nothing of a run outlives the run, whatever it does to get away; except where it may.

use crate::leaving::{self, WAYS, Way};
use crate::rig::{Rig, eventually, hear, next};
use aynig::supervisor::{Ending, Event, Supervised};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::time::Duration;

/// Beside what everyone tries.
const MORE: [Way; 5] = [
    ("background", "(eval \"$LEAF\") &", 1),
    ("setsid and double fork", "(setsid sh -c '(sh -c \"$LEAF\" & exit 0) & exit 0' &)", 1),
    ("50 sessions", "i=0; while [ $i -lt 50 ]; do setsid sh -c \"$LEAF\" & i=$((i+1)); done", 50),
    ("stopped", "setsid sh -c 'echo up >>up; kill -STOP $$; sleep 300' &", 1),
    ("deaf", "setsid sh -c \"trap '' TERM HUP INT; $LEAF\" &", 1),
];

fn shapes() -> impl Iterator<Item = Way> {
    WAYS.into_iter().chain(MORE)
}

fn script(start: &str, up: usize, then: &str) -> String {
    leaving::script("up", start, up, then)
}

fn nobody_is_left(rig: &Rig, shape: &str) {
    let taken = eventually(shape, || rig.alive().is_empty());
    println!("{shape}: gone after {taken:?}");
}

#[test]
fn nothing_survives_a_normal_end() {
    for (shape, start, up) in shapes() {
        let rig = Rig::new();
        let mut run = rig.start(&script(start, up, "exit 0"));
        let report = hear(&mut run);
        assert_eq!(report.ending, Some(Ending::Exited(0)), "{shape}");
        let ended = run.end().unwrap();
        assert_eq!((ended.survivors, ended.guardian_lost), (0, false), "{shape}");
        assert_eq!(rig.alive(), [], "{shape}");
    }
}

#[test]
fn nothing_survives_a_stop() {
    for (shape, start, up) in shapes() {
        let rig = Rig::new();
        let mut run = rig.start(&script(start, up, "echo SET up; sleep 300"));
        while next(&mut run) != Event::Line(b"SET up".into()) {}
        run.stop(Duration::from_millis(200));
        assert!(matches!(hear(&mut run).ending, Some(Ending::Stopped { .. })), "{shape}");
        run.end().unwrap();
        assert_eq!(rig.alive(), [], "{shape}");
    }
}

#[test]
fn nothing_survives_a_killed_runner() {
    for (shape, start, up) in shapes() {
        let rig = Rig::new();
        let mut runner = rig.runner(&script(start, up, "sleep 300"));
        eventually("the processes are up", || rig.count("up") >= up);
        runner.kill().unwrap();
        nobody_is_left(&rig, shape);
        runner.wait().unwrap();
    }
}

/// K17: no process could act but the guardian, which goes on when its runner dies
#[test]
fn nothing_survives_a_killed_runner_whose_guardian_was_stopped() {
    for (shape, start, up) in shapes() {
        let rig = Rig::new();
        let then = "kill -STOP $PPID; echo stopped >stopped; sleep 300";
        let mut runner = rig.runner(&script(start, up, then));
        eventually("the guardian is stopped", || rig.count("stopped") == 1);
        runner.kill().unwrap();
        nobody_is_left(&rig, shape);
        runner.wait().unwrap();
    }
}

#[test]
fn nothing_survives_a_dropped_run() {
    let rig = Rig::new();
    let mut run = rig.start("setsid sleep 300 & echo SET up; sleep 300");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    drop(run);
    nobody_is_left(&rig, "dropped");
}

#[test]
fn a_storm_of_forks_is_caught() {
    let rig = Rig::new();
    // Each generation leaves its session and starts the next; up to 20 at a time, so that the machine lives.
    rig.write_program("storm", "755", "#!/bin/sh\ntrap '' TERM\necho up >>up\nsetsid ./storm &\n");
    let mut run = rig.start("i=0; while [ $i -lt 20 ]; do setsid ./storm & i=$((i+1)); done; sleep 300");
    while !matches!(next(&mut run), Event::Started { .. }) {}
    eventually("the storm rages", || rig.count("up") > 200);
    drop(run);
    nobody_is_left(&rig, "storm");
}

#[test]
fn a_background_process_lingers_where_it_may() {
    let rig = Rig::new();
    let mut spec = rig.spec("(until [ -e go ]; do sleep 0.01; done; echo later; echo err >&2) & exit 0");
    spec.hold = Some(rig.path("hold"));
    let mut run = Supervised::start(&spec).unwrap();
    let guardian = run.guardian_pid();
    let report = hear(&mut run);
    assert_eq!((report.ending, report.leaked), (Some(Ending::Exited(0)), true));
    run.linger();
    // It would be dead by now if it could not linger.
    let taken = || {
        let file = File::open(rig.path("hold")).unwrap();
        Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()
    };
    let start = std::time::Instant::now();
    eventually("more than the time to be killed in has passed", || {
        assert!(taken(), "the hold was let go");
        start.elapsed() > Duration::from_millis(800)
    });
    assert!(rig.alive().iter().any(|(pid, _)| *pid == guardian));
    File::create(rig.path("go")).unwrap();
    eventually("the hold is free", || !taken());
    eventually("everybody is gone", || rig.alive().is_empty());
    assert_eq!(rig.log(), b"later\n");
    assert_eq!(std::fs::read(rig.path("stderr.log")).unwrap(), b"err\n");
}

#[test]
fn a_lingering_guardian_still_ends_everything_when_told() {
    let rig = Rig::new();
    let mut run = rig.start("setsid sleep 300 & exit 0");
    let guardian = nix::unistd::Pid::from_raw(run.guardian_pid() as i32);
    hear(&mut run);
    run.linger();
    nix::sys::signal::kill(guardian, nix::sys::signal::Signal::SIGTERM).unwrap();
    nobody_is_left(&rig, "lingering");
}
