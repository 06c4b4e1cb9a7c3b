//! Helpers without a guardian: bounded in time and memory.

use aynig::supervisor::SupervisorError;
use aynig::supervisor::bounded::{Bounded, Input, Output, Verdict};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

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

#[test]
fn a_deadline_asks_first_and_kills_then() {
    let mut helper = shell("exec sleep 300");
    helper.deadline = Some(Instant::now() + Duration::from_millis(50));
    let done = helper.run().unwrap();
    assert_eq!((done.verdict, done.status.signal()), (Verdict::Deadline { killed: false }, Some(15)));

    let mut helper = shell("trap '' TERM; while :; do sleep 1; done");
    helper.deadline = Some(Instant::now() + Duration::from_millis(200));
    helper.term_grace = Duration::from_millis(50);
    helper.own_group = true;
    let done = helper.run().unwrap();
    assert_eq!((done.verdict, done.status.signal()), (Verdict::Deadline { killed: true }, Some(9)));
}

#[test]
fn whom_a_helper_that_is_ended_alone_started_goes_on() {
    for alone in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (begun, told) = (dir.path().join("begun"), dir.path().join("told"));
        let other = format!(
            "trap \"touch '{}'; exit\" TERM; touch '{}'; sleep 1 & wait",
            told.display(),
            begun.display()
        );
        let mut helper = shell("sh -c \"$OTHER\" & wait; exit 7");
        helper.command.env("OTHER", other);
        helper.own_group = true;
        helper.alone = alone;
        helper.stdout = Output::Null;
        helper.stderr = Output::Null;
        let asked = || begun.exists();
        helper.interrupt = Some(&asked);
        let done = helper.run().unwrap();
        assert_eq!(done.status.signal(), Some(15), "{:?}", done.verdict);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(told.exists(), !alone);
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
    let start = Instant::now();
    let mut helper = shell("sleep 5 & echo done");
    helper.own_group = true;
    let done = helper.run().unwrap();
    assert_eq!((&done.stdout.bytes[..], done.leaked), (&b"done\n"[..], true));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn a_missing_program_is_named() {
    let error = Bounded::new(Command::new("/no/such/helper")).run().unwrap_err();
    assert!(matches!(error, SupervisorError::NoHelper { .. }));
    assert_eq!(error.to_string(), "cannot start '/no/such/helper'");
}
