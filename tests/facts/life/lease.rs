//! Keeping a lease, losing it, and what becomes of the command and its work.

use crate::support::life::{Life, Running, eventually, lives};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Says when it is up and what it was killed by, and leaves work behind.
const WAITS: &str =
    "echo w >>file; trap 'echo term >\"$T/term\"; exit 9' TERM; echo $$ >\"$T/up\"; read x <\"$T/gate\"";

fn waiting(args: &[&str]) -> (Life, Running) {
    waiting_for("", args)
}

fn waiting_for(trailers: &str, args: &[&str]) -> (Life, Running) {
    let life = Life::new(&[("build", &format!("{WAITS}\necho 'SET_STATE {{\"state\":\"next\"}}'"))]);
    life.event("work", "build", trailers);
    let gate = life.gate("gate");
    let tick = life.start_tick(&[&["--json", "work"], args].concat());
    life.hear("up");
    // Kept open by no other process, the fifo would end the read.
    std::mem::forget(gate);
    (life, tick)
}

fn open(life: &Life) {
    std::fs::File::options()
        .write(true)
        .open(life.shared().join("gate"))
        .map(|mut f| std::io::Write::write_all(&mut f, b"go\n").unwrap())
        .unwrap();
}

/// K18
#[test]
fn a_command_that_runs_past_its_lease_keeps_it() {
    let (life, tick) = waiting(&["--lease", "10s"]);
    let first = life.rev("work");
    eventually("two renewals", || (life.states("work").len() >= 4).then_some(()));
    // Another runner finds it leased.
    life.tick(&["work"]).expect(3);
    open(&life);
    tick.done().expect(0);
    let states = life.states("work");
    assert_eq!((&*states[0], &**states.last().unwrap()), ("next", "build"));
    assert!(states[1..states.len() - 1].iter().all(|s| s == "working"), "{states:?}");
    // Renewals are the lease again, one on top of the other, and the outcome is on the last.
    let renewed = life.git(&["rev-list", "--reverse", &format!("{first}..work~1")]);
    for commit in renewed.lines() {
        assert_eq!(life.trailers(commit), life.trailers(&first));
        assert_eq!(life.rev(&format!("{commit}^{{tree}}")), life.rev(&format!("{first}^{{tree}}")));
    }
    assert_eq!(life.git(&["rev-list", "--merges", "work"]), "");
    assert_eq!(life.show("work", "file"), "one\nw");
}

/// K18: filling the slot took the lease beyond where it is renewed, and where a command would be stopped.
#[test]
fn a_lease_is_renewed_before_its_command_starts() {
    let life = Life::new(&[("build", "echo w >>file; echo 'SET_STATE {\"state\":\"next\"}'")]);
    life.write(".gitattributes", "file filter=slow\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "a filter"]);
    life.config("filter.slow.smudge", "sleep 7; cat");
    life.config("filter.slow.clean", "cat");
    life.event("work", "build", "");
    life.tick(&["--lease", "12s", "work"]).expect(0);
    assert_eq!(life.states("work"), ["next", "working", "working", "build"]);
    assert_eq!(life.show("work", "file"), "one\nw");
}

/// The command is gone, nothing was written over `head`, and the work is kept.
fn assert_fenced(life: &Life, tick: Running, head: &str) {
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"), "{report}");
    assert_eq!(life.rev("work"), head);
    let attempt = format!("refs/aynig/attempts/{}", report["run_id"].as_str().unwrap());
    assert_eq!((report["attempt"].as_str(), life.attempts()), (Some(&*attempt), vec![attempt.clone()]));
    assert_eq!(life.show(&attempt, "file"), "one\nw");
    assert!(!lives(life.said("up").trim_end()));
}

/// A lease that asks for no renewal while a test runs: what is noticed is noticed by a look at the branch.
const FAR: [&str; 2] = ["--lease", "1h"];

/// K18, K24, K26
#[test]
fn a_commit_over_the_lease_stops_the_command() {
    let (life, tick) = waiting(&FAR);
    let head = life.event_at("work", "somebody\n", None);
    life.hear("term");
    assert_fenced(&life, tick, &head);
}

/// K18, section 13
#[test]
fn cancel_is_felt_at_once() {
    let (life, tick) = waiting(&FAR);
    life.run(&["cancel", "work"]).expect(0);
    life.hear("term");
    let head = life.rev("work");
    assert_fenced(&life, tick, &head);
    assert_eq!(life.states("work"), ["canceled", "working", "build"]);
    assert_eq!(life.trailer("work", "dwp-run-id"), None);
    life.run(&["cancel", "work"]).expect(128);
    life.run(&["cancel", "nothing"]).expect(128);
}

/// K8, K24: a recovery carries the run's id (K27), and is no outcome of its command's for that.
#[test]
fn a_run_that_was_recovered_is_fenced() {
    let (life, tick) = waiting(&[]);
    let lease = life.trailers("work");
    let copied = ["dwp-run-id", "dwp-origin-state", "dwp-trigger", "dwp-hop"]
        .map(|key| format!("{key}: {}\n", lease[key]))
        .concat();
    let message = format!(
        "gone\n\ndwp-state: stalled\ndwp-stalled-run: {}\n{copied}dwp-recovery-id: r\n",
        lease["dwp-run-id"]
    );
    let head = life.event_at("work", &message, None);
    life.hear("term");
    assert_fenced(&life, tick, &head);
}

/// K18: rewinding the branch takes the lease as well.
#[test]
fn a_rewound_branch_stops_the_command() {
    let (life, tick) = waiting(&[]);
    let head = life.rev("work~1");
    life.git(&["update-ref", "refs/heads/work", &head]);
    life.hear("term");
    assert_fenced(&life, tick, &head);
}

/// K18: and so does going back to an older lease of the same run: another process took the newer one off the branch.
#[test]
fn a_branch_that_went_back_to_an_older_lease_stops_the_command() {
    // The first one is what the slot stands on.
    for renewals in [1, 2] {
        let (life, tick) = waiting(&["--lease", "10s"]);
        eventually("renewals", || (life.states("work").len() >= renewals + 2).then_some(()));
        let older = life.rev("work~1");
        life.git(&["update-ref", "refs/heads/work", &older]);
        life.hear("term");
        assert_fenced(&life, tick, &older);
    }
}

/// The command heard of its end before its lease was over, by the times that were written down.
#[track_caller]
fn assert_ended_in_time(life: &Life, lease_seconds: u64) {
    let told = std::fs::metadata(life.shared().join("term")).unwrap().modified().unwrap();
    let born: u64 = life.git(&["log", "-1", "--format=%ct", "work"]).parse().unwrap();
    let told = told.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(told < born + lease_seconds, "told at {told}, leased at {born}");
}

/// K18: a runner that can do nothing (here it is stopped) leaves no command behind its lease's end.
#[test]
fn a_runner_that_hangs_has_its_command_stopped_in_time() {
    let (life, tick) = waiting(&["--lease", "8s"]);
    tick.signal(Signal::SIGSTOP);
    life.hear("term");
    assert_ended_in_time(&life, 8);
    tick.signal(Signal::SIGCONT);
    let report = tick.done().expect(1).json();
    assert_eq!(report["result"].as_str(), Some("stalled"), "{report}");
    assert!(report["why"].as_str().is_some_and(|why| why.contains("lease")), "{report}");
}

/// K18: however early that runner hangs: its guardian has what stops the command before it is started.
#[test]
#[cfg(target_os = "linux")]
fn a_guardian_is_told_of_the_lease_before_it_is_started() {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"next\"}'")]);
    life.event("work", "build", "");
    let Some(log) = life.traced_tick("write,execve", &["work"]) else { return };
    let line =
        |what: &str| log.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{log}"));
    assert!(line("StopAfter") < line("\"guardian\""), "{log}");
}

/// K17, K18: what is stopped gets no longer than its lease has left, whatever the kill grace.
#[test]
fn an_interrupted_command_is_dead_when_its_lease_ends() {
    let life = Life::new(&[(
        "build",
        "trap '' TERM; echo $$ >\"$T/up\"; while :; do echo still here; sleep 0.05; done",
    )]);
    life.config("aynig.killGrace", "1h");
    life.event("work", "build", "");
    let tick = life.start_tick(&["--json", "work", "--lease", "8s"]);
    let pid = life.hear("up");
    tick.signal(Signal::SIGINT);
    let done = tick.done().expect(130);
    assert!(!lives(&pid), "{done:?}");
    // And no process renews it meanwhile, whatever it prints.
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("interrupted"));
}

/// K17, K18: the kill grace is cut where the lease is lost to time; a command that ignores SIGTERM goes too.
#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let life = Life::new(&[("build", "trap '' TERM; echo $$ >\"$T/up\"; while :; do sleep 0.05; done")]);
    life.config("aynig.killGrace", "1s");
    life.event("work", "build", "");
    let tick = life.start_tick(&["--json", "work"]);
    let pid = life.hear("up");
    life.run(&["cancel", "work"]).expect(0);
    let done = tick.done().expect(3);
    assert!(!lives(&pid), "{done:?}");
}

/// K18: a lease that cannot be renewed is given up before it ends.
#[test]
fn a_lease_that_cannot_be_renewed_is_given_up_in_time() {
    let (life, tick) = waiting_for(&format!("big: {}\n", "x".repeat(200_000)), &["--lease", "8s"]);
    // No process of ours holds it, so it is never removed (K43).
    std::fs::write(life.path(".git/refs/heads/work.lock"), "").unwrap();
    life.hear("term");
    assert_ended_in_time(&life, 8);
    let done = tick.done();
    // The branch could not be written: the lease stays until a runner recovers it.
    assert_eq!(done.code, Some(75), "{done:?}");
    // What was tried again and again is said once, and beside what else there is to say.
    let report = done.json();
    let said = |words: &str| {
        report["notes"].as_array().unwrap().iter().filter(|n| n.as_str().unwrap().contains(words)).count()
    };
    assert_eq!((said("could not be looked at or renewed"), said("trailers too large")), (1, 1), "{report}");
    assert_eq!(life.states("work"), ["working", "build"]);
    std::fs::remove_file(life.path(".git/refs/heads/work.lock")).unwrap();
    eventually("the lease to end", || (life.tick(&["work"]).code != Some(3)).then_some(()));
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    let attempts = life.attempts();
    assert_eq!((attempts.len(), life.show(&attempts[0], "file")), (1, "one\nw".into()));
}

/// K17, K8, K26 and `retry`
#[test]
fn a_killed_runner_is_recovered_and_retried() {
    let script = "printf '%s|%s|' \"$BODY\" \"$ISSUE\" >>\"$T/told\"; echo x >>file; setsid sleep 300 & echo $! $$ >\"$T/up\"\n\
        [ -e \"$T/second\" ] || sleep 300; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    let message = "go\n\nthe body\n\ndwp-state: build\ndwp-role: b\nIssue: 12\n";
    let trigger = life.event_at("work", message, None);
    let tick = life.start_tick(&["--lease", "4s", "work"]);
    let pids = life.hear("up");
    tick.signal(Signal::SIGKILL);
    eventually("all are gone", || pids.split(' ').all(|pid| !lives(pid)).then_some(()));
    let run = life.trailer("work", "dwp-run-id").unwrap();
    let recovering =
        eventually("expiry", || Some(life.tick(&["--json", "work"])).filter(|d| d.code != Some(3)));
    let report = recovering.expect(1).json();
    assert_eq!(report["recovered"][0]["run_id"].as_str(), Some(&*run));
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    let attempt = format!("refs/aynig/attempts/{run}");
    assert_eq!(life.show(&attempt, "file"), "one\nx");
    assert!(life.body("work").contains(&attempt), "{}", life.body("work"));
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(
        life.git(&["log", "-1", "--format=%b", "work"]),
        life.git(&["log", "-1", "--format=%b", &trigger])
    );
    std::fs::write(life.shared().join("second"), "").unwrap();
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("told"), "the body|12|the body|12|");
    assert_eq!(life.states("work"), ["next", "working", "build", "stalled", "working", "build"]);
    // The slot that the dead run had is clean again.
    assert_eq!(life.show("work", "file"), "one\nx");
    life.repo.assert_sound();
}

/// K17, K23, section 13
#[test]
fn a_signal_to_the_runner_ends_the_branch_stalled_and_frees_the_slot() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 143)] {
        let (life, tick) = waiting(&["--jobs", "1"]);
        tick.signal(signal);
        life.hear("term");
        let report = tick.done().expect(code).json();
        assert_eq!(
            (report["result"].as_str(), report["why"].as_str()),
            (Some("stalled"), Some("interrupted"))
        );
        assert_eq!(life.states("work"), ["stalled", "working", "build"]);
        assert!(life.body("work").contains("interrupted"));
        assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw");
        let dir = life.slot(0);
        life.command("quick", "pwd >\"$T/where\"; echo 'SET_STATE {\"state\":\"next\"}'");
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "quick"]);
        life.event("other", "quick", "");
        life.tick(&["--jobs", "1", "other"]).expect(0);
        assert_eq!(
            (life.said("where").trim_end(), life.state("other")),
            (dir.to_str().unwrap(), "next".into())
        );
        assert_eq!(life.files("other"), ["dir/other", "file"]);
    }
}

/// Section 13: the other branches of the pass are left for the next.
#[test]
fn an_interrupted_pass_starts_nothing_more() {
    let life = Life::new(&[("build", &format!("echo x >>\"$T/runs\"; {WAITS}"))]);
    ["a", "b", "c"].iter().for_each(|b| drop(life.event(b, "build", "")));
    let _gate = life.gate("gate");
    let tick = life.start_tick(&["--jobs", "1", "--chain"]);
    life.hear("up");
    tick.signal(Signal::SIGINT);
    tick.done().expect(130);
    assert_eq!(life.said("runs"), "x\n");
    let stalled = ["a", "b", "c"].iter().filter(|b| life.state(b) == "stalled").count();
    assert_eq!(stalled, 1);
}

/// K17: what ends a run is waited for, until a user asks twice; its work stays where it is.
#[test]
fn a_second_interrupt_ends_the_git_child_that_hangs() {
    let life = Life::new(&[("build", "echo work >new; echo 'SET_STATE {\"state\":\"next\"}'")]);
    life.write(".gitattributes", "new filter=hangs\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "a filter"]);
    let told = life.shared().join("filter");
    let filter = format!("echo $$ >'{}'; exec sleep 600", told.display());
    life.git(&["config", "filter.hangs.clean", &filter]);
    life.event("work", "build", "");
    let mut tick = life.start_tick(&["--jobs", "1", "--json"]);
    let pid = life.hear("filter");
    // One Ctrl-C: from the terminal, and from the `git` that started it.
    let pressed = Instant::now();
    tick.signal(Signal::SIGINT);
    tick.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(30));
    tick.signal(Signal::SIGINT);
    // A slow machine may have made two presses of it.
    let is_one = pressed.elapsed() < Duration::from_millis(100);
    // The runner is given the time to make the mistake.
    std::thread::sleep(Duration::from_millis(400));
    let goes_on = !tick.is_over() && lives(&pid);
    assert!(goes_on || !is_one);
    if goes_on {
        tick.signal(Signal::SIGINT);
    }
    let report = tick.done().expect(130).json();
    assert_eq!(report["result"].as_str(), Some("stalled"));
    eventually("the filter is gone", || (!lives(&pid)).then_some(()));
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    assert_eq!(std::fs::read_to_string(life.slot(0).join("new")).unwrap(), "work\n");
    // The runner that wants the slot keeps what is in it first.
    life.git(&["config", "--unset", "filter.hangs.clean"]);
    life.run(&["retry", "work"]).expect(0);
    life.tick(&["--jobs", "1", "work"]).expect(0);
    assert_eq!(life.state("work"), "next");
    let attempts = life.attempts();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    assert_eq!(life.show(&attempts[0], "new"), "work");
    life.repo.assert_sound();
}

/// K7: what was seen of one branch is not what was seen of another, however alike their long names begin.
#[test]
fn long_names_that_begin_alike_do_not_keep_each_other_waiting() {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("aynig.takeover", "observe");
    let names = ["a", "b"].map(|end| "x".repeat(150) + end);
    for name in &names {
        life.event(name, "build", "");
        life.lease(name, "build", "11111111-2222-4333-8444-555555555555", 1, 0);
    }
    eventually("both are recovered", || {
        life.tick(&["-q"]);
        names.iter().all(|name| life.state(name) == "stalled").then_some(())
    });
}
