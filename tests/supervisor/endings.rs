//! Every way to end has its name.

use crate::rig::{GUARDIAN, LONG, Rig, eventually, hear, next, run};
use aynig::supervisor::{Ending, Event, Exit, Supervised, SupervisorError, Wake};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

const KILLED: Exit = Exit::Signal { signal: libc::SIGKILL, core_dumped: false };
const TERMED: Exit = Exit::Signal { signal: libc::SIGTERM, core_dumped: false };

fn ending_of(script: &str) -> Ending {
    run(&Rig::new().spec(script)).ending.unwrap()
}

#[test]
fn exit_statuses_are_reported() {
    assert_eq!(ending_of("exit 0"), Ending::Exited(0));
    assert_eq!(ending_of("exit 213"), Ending::Exited(213));
}

#[test]
fn deaths_by_signal_are_reported() {
    let died = |signal| Ending::Signaled { signal, core_dumped: false };
    assert_eq!(ending_of("kill -KILL $$"), died(libc::SIGKILL));
    assert_eq!(ending_of("kill -TERM $$"), died(libc::SIGTERM));
    // A real-time signal, which has no name.
    assert_eq!(ending_of("kill -40 $$"), died(40));
    assert_eq!(ending_of("ulimit -c 0; kill -SEGV $$"), died(libc::SIGSEGV));
}

#[test]
fn a_time_limit_ends_what_sleeps_past_it() {
    let rig = Rig::new();
    let mut spec = rig.spec("sleep 300");
    spec.timeout = Some(Duration::from_millis(100));
    let report = run(&spec);
    let after = Duration::from_millis(100);
    assert_eq!(report.ending, Some(Ending::TimedOut { after, exit: TERMED }));
}

#[test]
fn whoever_ignores_sigterm_is_killed_after_the_grace() {
    let rig = Rig::new();
    let mut spec = rig.spec("trap '' TERM; echo up >up; while :; do sleep 1; done");
    spec.kill_grace = Duration::from_millis(200);
    let mut after = Duration::from_millis(300);
    // On a slow machine the time is over before it ignores anything: with more of it once more.
    let report = loop {
        spec.timeout = Some(after);
        let report = run(&spec);
        if rig.count("up") > 0 {
            break report;
        }
        after *= 2;
    };
    assert_eq!(report.ending, Some(Ending::TimedOut { after, exit: KILLED }));
    assert!(report.took >= after + spec.kill_grace, "{:?}", report.took);
}

#[test]
fn a_stop_lets_the_command_clean_up() {
    let rig = Rig::new();
    let mut run = rig.start("trap 'echo cleaned >it; exit 7' TERM; echo SET up; sleep 300 & wait");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    run.stop(LONG);
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: Exit::Code(7) }));
    assert_eq!(run.end().unwrap().survivors, 0);
    assert_eq!(fs::read_to_string(rig.path("it")).unwrap(), "cleaned\n");
}

#[test]
fn a_stop_kills_in_the_end_and_a_second_one_can_hurry() {
    let rig = Rig::new();
    let mut run = rig.start("trap '' TERM; echo SET up; while :; do sleep 1; done");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    run.stop(LONG);
    run.stop(Duration::from_millis(50));
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: KILLED }));
    run.end().unwrap();
}

/// K18: a caller that is not heard from again need do nothing.
#[test]
fn a_guardian_stops_the_command_by_itself_unless_it_hears_of_more_time() {
    let rig = Rig::new();
    let mut run = rig.start("trap '' TERM; echo SET up; while :; do sleep 1; done");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    run.stop_after(LONG, LONG);
    run.stop_after(Duration::from_millis(100), Duration::from_millis(50));
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: KILLED }));
    run.end().unwrap();
    let mut run = rig.start("sleep 4; exit 3");
    run.stop_after(Duration::from_secs(3), LONG);
    run.stop_after(LONG, LONG);
    assert_eq!(hear(&mut run).ending, Some(Ending::Exited(3)));
    run.end().unwrap();
}

/// K18: and so where the caller hangs as soon as it has started a guardian.
#[test]
fn a_guardian_has_what_stops_its_command_before_it_starts_it() {
    let rig = Rig::new();
    let mut spec = rig.spec("trap 'echo told >told; exit 4' TERM; while :; do sleep 0.05; done");
    spec.stop_after = Some((Duration::from_millis(300), LONG));
    let mut run = Supervised::start(&spec).unwrap();
    eventually("the command is told", || rig.count("told") == 1);
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: Exit::Code(4) }));
    run.end().unwrap();
}

#[test]
fn a_stopped_command_hears_the_stop() {
    let rig = Rig::new();
    let mut run = rig.start("echo SET up; kill -STOP $$");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    run.stop(LONG);
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: TERMED }));
    run.end().unwrap();
}

fn not_started(rig: &Rig, program: &str) -> (i32, String) {
    let mut spec = rig.spec("");
    spec.argv = vec![rig.path(program).into()];
    match run(&spec).ending {
        Some(Ending::NotStarted { errno, what }) => (errno, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_can_not_be_executed_says_why() {
    let rig = Rig::new();
    rig.write_program("lost", "755", "#!/no/such/interpreter -x\n");
    rig.write_program("private", "644", "#!/bin/sh\n");
    rig.write_program("plain", "755", "echo hello\n");
    let (errno, what) = not_started(&rig, "lost");
    assert_eq!(errno, libc::ENOENT);
    assert!(what.starts_with("interpreter '/no/such/interpreter' of '"), "{what}");
    assert_eq!(not_started(&rig, "private").0, libc::EACCES);
    assert_eq!(not_started(&rig, "plain").0, libc::ENOEXEC);
    assert_eq!(not_started(&rig, "absent").0, libc::ENOENT);
}

#[test]
fn arguments_that_can_not_be_passed_say_why() {
    let rig = Rig::new();
    for (argument, expected) in [("x".repeat(1 << 20), libc::E2BIG), ("a\0b".into(), libc::EINVAL)] {
        let mut spec = rig.spec("");
        spec.argv.push(argument.into());
        match run(&spec).ending {
            Some(Ending::NotStarted { errno, .. }) => assert_eq!(errno, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_missing_folder_and_a_missing_guardian_are_told_apart() {
    let rig = Rig::new();
    let mut spec = rig.spec("");
    spec.cwd = rig.path("nowhere");
    let Some(Ending::NotStarted { errno, what }) = run(&spec).ending else { panic!("it started") };
    assert_eq!(errno, libc::ENOENT);
    assert!(what.starts_with("folder '"), "{what}");
    spec.guardian = rig.path("nothing");
    assert!(matches!(Supervised::start(&spec), Err(SupervisorError::NoGuardian { .. })));
}

#[test]
fn a_second_run_does_not_get_the_hold() {
    let rig = Rig::new();
    let mut spec = rig.spec("echo SET up; sleep 300");
    spec.hold = Some(rig.path("hold"));
    let mut first = Supervised::start(&spec).unwrap();
    while next(&mut first) != Event::Line(b"SET up".into()) {}
    let Some(Ending::NotStarted { errno, what }) = run(&spec).ending else { panic!("it started") };
    assert_eq!(errno, libc::EWOULDBLOCK);
    assert!(what.ends_with("which another run has"), "{what}");
    assert_eq!(fs::metadata(rig.path("hold")).unwrap().mode() & 0o777, 0o600);
    first.end().unwrap();
    spec.argv[2] = "exit 4".into();
    assert_eq!(run(&spec).ending, Some(Ending::Exited(4)));
}

/// K14, K17: a runner that dies while its guardian still starts leaves nothing that could begin in a slot which
/// is another runner's by then.
#[test]
fn a_guardian_that_starts_late_finds_its_caller_gone() {
    let rig = Rig::new();
    let (go, hold) = (rig.path("go"), rig.path("hold"));
    let script = format!(
        "#!/bin/sh\nuntil [ -e {} ] || ! [ -e \"$0\" ]; do sleep 0.01; done\nexec {GUARDIAN} \"$@\"\n",
        go.display()
    );
    let mut spec = rig.spec("echo ran >>ran");
    spec.guardian = rig.write_program("late", "755", &script);
    spec.hold = Some(hold.clone());
    let taken = || fs::File::open(&hold).unwrap().try_lock().is_err();
    for gone in [false, true] {
        let mut run = Supervised::start(&spec).unwrap();
        run.stop_after(LONG, Duration::ZERO);
        assert!(taken(), "before the guardian could");
        let waiting = if gone {
            drop(run);
            None
        } else {
            Some(run)
        };
        assert!(taken(), "nobody but the late guardian has it");
        fs::File::create(&go).unwrap();
        if let Some(mut run) = waiting {
            assert_eq!(hear(&mut run).ending, Some(Ending::Exited(0)));
            run.end().unwrap();
        }
        eventually("everybody is gone", || rig.alive().is_empty());
        eventually("the hold is free", || !taken());
        assert_eq!(rig.count("ran"), 1, "gone {gone}");
        fs::remove_file(&go).unwrap();
    }
}

#[test]
fn a_lost_guardian_takes_the_command_with_it() {
    let rig = Rig::new();
    let mut run = rig.start("echo SET up; sleep 300 & sleep 300");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    kill(Pid::from_raw(run.guardian_pid() as i32), Signal::SIGKILL).unwrap();
    assert_eq!(hear(&mut run).ending, Some(Ending::GuardianLost));
    assert!(matches!(run.next(None, None), Err(SupervisorError::Over)));
    assert!(run.end().unwrap().guardian_lost);
    eventually("everybody is gone", || rig.alive().is_empty());
}

#[test]
fn a_guardian_that_is_told_to_end_ends_everything() {
    let rig = Rig::new();
    let mut run = rig.start("echo SET up; setsid sleep 300 & sleep 300");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    kill(Pid::from_raw(run.guardian_pid() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(hear(&mut run).ending, Some(Ending::Stopped { exit: TERMED }));
    assert_eq!(next(&mut run), Event::Done { survivors: 0 });
    run.end().unwrap();
    assert_eq!(rig.alive(), []);
}

#[test]
fn a_frozen_guardian_is_killed_after_a_while() {
    let rig = Rig::new();
    let mut run = rig.start("echo SET up; sleep 300");
    while next(&mut run) != Event::Line(b"SET up".into()) {}
    kill(Pid::from_raw(run.guardian_pid() as i32), Signal::SIGSTOP).unwrap();
    assert!(run.end().unwrap().guardian_lost);
    eventually("everybody is gone", || rig.alive().is_empty());
}

/// K17: a guardian that its command stopped is noticed while the run goes on, whatever it was asked for
#[test]
fn a_guardian_that_its_command_stops_is_an_ending_of_its_own() {
    for order in ["none", "stop", "time limit"] {
        let rig = Rig::new();
        let mut spec = rig.spec("setsid sleep 300 & kill -STOP $PPID; echo up >up; sleep 300");
        spec.timeout = (order == "time limit").then_some(Duration::from_millis(300));
        let mut run = Supervised::start(&spec).unwrap();
        // It may be stopped before it could say that anything was started.
        eventually("it is stopped", || rig.count("up") == 1);
        if order == "stop" {
            run.stop(Duration::from_secs(60));
        }
        let report = hear(&mut run);
        assert_eq!(report.ending, Some(Ending::GuardianStopped), "{order}");
        assert!(run.end().unwrap().guardian_lost);
        eventually("everybody is gone", || rig.alive().is_empty());
    }
}

/// K17: one that answers late, or was stopped for a moment, is none
#[test]
fn a_guardian_that_goes_on_is_not_taken_for_a_stopped_one() {
    let rig = Rig::new();
    let script =
        "for n in 1 2 3; do kill -STOP $PPID; sleep 0.3; kill -CONT $PPID; sleep 0.3; done; echo SET on";
    let report = run(&rig.spec(script));
    assert_eq!((report.ending, report.lines), (Some(Ending::Exited(0)), vec!["SET on".to_owned()]));
    // Silent for longer than it takes to be asked.
    let quiet = run(&rig.spec("sleep 3"));
    assert_eq!(quiet.ending, Some(Ending::Exited(0)));
}

#[test]
fn waiting_ends_at_the_deadline_and_at_an_interrupt() {
    let rig = Rig::new();
    let mut run = rig.start("sleep 300");
    assert!(matches!(next(&mut run), Event::Started { .. }));
    let until = Instant::now() + Duration::from_millis(30);
    assert_eq!(run.next(Some(until), None).unwrap(), Wake::Deadline);
    assert!(Instant::now() >= until);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"x").unwrap();
    assert_eq!(run.next(None, Some(reader.as_fd())).unwrap(), Wake::Interrupted);
    run.end().unwrap();
}

#[test]
fn what_the_callers_caller_let_through_reaches_nobody() {
    let rig = Rig::new();
    let mut runner = rig.runner("ls /proc/$$/fd /proc/$PPID/fd >fds; echo up >up; sleep 300");
    eventually("the command is up", || rig.count("up") == 1);
    let fds = fs::read_to_string(rig.path("fds")).unwrap();
    assert!(!fds.lines().any(|fd| fd == "77"), "{fds}");
    runner.kill().unwrap();
    runner.wait().unwrap();
    eventually("everybody is gone", || rig.alive().is_empty());
}

#[test]
fn the_command_has_three_descriptors() {
    let rig = Rig::new();
    let mut spec = rig.spec("");
    spec.argv = ["/bin/ls", "/proc/self/fd"].map(Into::into).into();
    run(&spec);
    // The fourth is the listing's own.
    assert_eq!(rig.log(), b"0\n1\n2\n3\n");
}

#[test]
fn the_command_has_a_session_and_clean_signals() {
    let rig = Rig::new();
    let script = r#"
        set -- $(cut -d' ' -f5,6,7 /proc/$$/stat); echo "SET $(($1 == $$)) $(($2 == $$)) $3"
        grep -E '^Sig(Blk|Ign|Cgt)' /proc/$$/status | tr -d '\t\n' | sed 's/^/SET /'; echo
        test -c /proc/$$/fd/0 && ! (: </dev/tty) 2>/dev/null && echo SET no terminal
        pwd -P | sed 's/^/SET /'; echo SET $AYNIG_TEST_MARK"#;
    let lines = run(&rig.spec(script)).lines;
    let dir = format!("SET {}", rig.dir.path().canonicalize().unwrap().display());
    assert_eq!(lines[0], "SET 1 1 0");
    // 32 and 33 are the C library's own; its posix_spawn always leaves those two ignored.
    let clean = [
        "SET SigBlk:0000000000000000SigIgn:0000000000000000",
        "SET SigBlk:0000000000000000SigIgn:0000000180000000",
    ];
    assert!(clean.iter().any(|clean| lines[1].starts_with(clean)), "{}", lines[1]);
    assert_eq!(lines[2..], ["SET no terminal".to_owned(), dir, format!("SET {}", rig.mark)]);
}
