//! Helpers without a guardian: bounded in time and memory.

use aynig::supervisor::SupervisorError;
use aynig::supervisor::bounded::{Bounded, Input, Output, Verdict};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Waits until it is told to go on, and not for ever.
const HELD: &str = "n=0; until [ -e go ] || [ $n -ge 12000 ]; do sleep 0.01; n=$((n+1)); done";

fn shell<'a>(script: &str) -> Bounded<'a> {
    let mut command = Command::new("/bin/sh");
    command.env_clear().env("PATH", "/usr/bin:/bin").args(["-c", script]);
    Bounded::new(command)
}

#[test]
fn status_and_output_are_captured() {
    let done = shell("echo out; echo err >&2; exit 3").run().unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert_eq!((&done.stdout.bytes[..], &done.stderr.bytes[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!((done.verdict, done.leaked), (Verdict::Ended, false));
}

#[test]
fn large_input_and_output_do_not_deadlock() {
    let mut helper = shell("cat; cat /dev/null");
    let input: Vec<u8> = (0..20_000_000_u32).map(|i| i as u8).collect();
    helper.input = Input::Bytes(input.clone());
    assert!(helper.run().unwrap().stdout.bytes == input);
}

#[test]
fn input_that_is_not_read_is_no_error() {
    let mut helper = shell("exec <&-; echo done");
    helper.input = Input::Bytes(vec![b'x'; 1 << 20]);
    assert_eq!(helper.run().unwrap().stdout.bytes, b"done\n");
}

#[test]
fn output_above_the_limit_is_dropped() {
    let mut helper = shell("yes | head -c 10000000");
    helper.stdout = Output::Capture(1001);
    let done = helper.run().unwrap();
    assert_eq!((done.stdout.bytes.len(), done.stdout.truncated), (1001, true));
    assert!(done.status.success());
}

/// The helper reads a line before it takes memory, so that the limit stands whatever the machine does meanwhile.
#[test]
fn memory_above_the_limit_is_refused() {
    for (memory, succeeds) in [(None, true), (Some(64 << 20), false)] {
        let mut helper = shell("read -r go; exec dd if=/dev/zero of=/dev/null bs=512M count=1");
        helper.memory = memory;
        helper.input = Input::Bytes(b"go\n".to_vec());
        let done = helper.run().unwrap();
        assert_eq!(done.status.success(), succeeds, "{}", String::from_utf8_lossy(&done.stderr.bytes));
    }
}

#[test]
fn a_deadline_asks_first_and_kills_then() {
    let mut helper = shell("exec sleep 300");
    helper.deadline = Some(Instant::now() + Duration::from_millis(50));
    let done = helper.run().unwrap();
    assert_eq!((done.verdict, done.status.signal()), (Verdict::Deadline { killed: false }, Some(15)));

    // On a slow machine the time is over before it ignores anything: with more of it once more.
    let mut time = Duration::from_millis(200);
    let done = loop {
        let mut helper = shell("trap '' TERM; echo up; while :; do sleep 1; done");
        helper.deadline = Some(Instant::now() + time);
        helper.term_grace = Duration::from_millis(50);
        helper.own_group = true;
        let done = helper.run().unwrap();
        if done.stdout.bytes == b"up\n" {
            break done;
        }
        time *= 2;
    };
    assert_eq!((done.verdict, done.status.signal()), (Verdict::Deadline { killed: true }, Some(9)));
}

#[test]
fn whom_a_helper_that_is_ended_alone_started_goes_on() {
    for alone in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let begun = dir.path().join("begun");
        let other = format!("trap 'echo told >end; exit' TERM; touch begun; {HELD}; echo went on >end");
        let mut helper = shell("sh -c \"$OTHER\" & wait; exit 7");
        helper.command.env("OTHER", other).current_dir(dir.path());
        helper.own_group = true;
        helper.alone = alone;
        helper.stdout = Output::Null;
        helper.stderr = Output::Null;
        let asked = || begun.exists();
        helper.interrupt = Some(&asked);
        let done = helper.run().unwrap();
        assert_eq!(done.status.signal(), Some(15), "{:?}", done.verdict);
        if alone {
            std::fs::write(dir.path().join("go"), "").unwrap();
        }
        let end = || std::fs::read_to_string(dir.path().join("end")).unwrap_or_default();
        crate::rig::eventually("it ends too", || end().ends_with('\n'));
        assert_eq!(end(), if alone { "went on\n" } else { "told\n" });
    }
}

#[test]
fn an_interrupt_ends_a_helper_that_says_nothing() {
    let start = Instant::now();
    let asked = || start.elapsed() > Duration::from_millis(50);
    let mut helper = shell("exec sleep 300");
    helper.stdout = Output::Inherit;
    helper.stderr = Output::Null;
    helper.interrupt = Some(&asked);
    assert_eq!(helper.run().unwrap().verdict, Verdict::Interrupted { killed: false });
}

#[test]
fn a_descendant_with_the_pipes_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = shell(&format!("({HELD}; touch end) & echo done"));
    helper.command.current_dir(dir.path());
    helper.own_group = true;
    let done = helper.run().unwrap();
    assert_eq!((&done.stdout.bytes[..], done.leaked), (&b"done\n"[..], true));
    std::fs::write(dir.path().join("go"), "").unwrap();
    crate::rig::eventually("it went on", || dir.path().join("end").exists());
}

#[test]
fn a_missing_program_is_named() {
    let error = Bounded::new(Command::new("/no/such/helper")).run().unwrap_err();
    assert!(matches!(error, SupervisorError::NoHelper { .. }));
    assert_eq!(error.to_string(), "cannot start '/no/such/helper'");
}
