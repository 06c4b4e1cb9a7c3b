use crate::dialect::support_of::*;
use crate::support::life::{Life, eventually, lives};
use nix::sys::signal::Signal;

/// K29: neither the exit status nor what is printed counts, only the head.
#[test]
fn a_command_that_advanced_has_advanced_whatever_its_exit_status() {
    for (ending, exit) in [("exit 0", "exit 0"), ("exit 7", "exit 7"), ("kill -9 $$", "killed by signal 9")] {
        let life = asked(&format!("state done; {ending}"));
        let ran = ticked(&life, &[]);
        assert_eq!(result(&ran), (Some(0), "own"), "{ending}: {ran:?}");
        assert_eq!((ran.1["exit"].as_str(), states(&life, "work")[0].as_str()), (Some(exit), "done"));
    }
    let life = asked("state done; sleep 300");
    let ran = ticked(&life, &["--timeout", "4s"]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
}

/// K29: without a next state the lease lives until it expires, and the next tick recovers it.
#[test]
fn a_command_that_wrote_no_state_leaves_its_lease_to_expire() {
    let endings = [("exit 0", 0), ("exit 3", 1), ("kill -9 $$", 1), ("kill -9 $PPID; sleep 300", 1)];
    for (ending, code) in endings {
        let life = asked(&format!("whole; echo w >>file; echo words; {ending}"));
        let ran = ticked(&life, &["--lease", "4s"]);
        assert_eq!(result(&ran), (Some(code), "lease-left"), "{ending}: {ran:?}");
        assert_eq!(states(&life, "work"), ["working", "working", "build"], "{ending}");
        assert_eq!(ran.1["commit"].as_str(), Some(&*life.rev("work")));
        let (run, trigger) = (ran.1["run_id"].as_str().unwrap(), life.rev("work~2"));
        let attempt = format!("refs/aynig/attempts/{run}");
        assert_eq!(ran.1["attempt"].as_str(), Some(&*attempt), "{ending}");
        assert_eq!(
            (life.show(&attempt, "file"), life.rev(&format!("{attempt}^2"))),
            ("one\nw".into(), life.rev("work"))
        );
        // It is leased for every runner, the grace of this dialect included.
        life.tick(&["work"]).expect(3);
        assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
        let report = recovered(&life);
        assert_eq!(report["recovered"][0]["attempt"].as_str(), Some(&*attempt));
        assert_eq!(states(&life, "work"), ["stalled", "working", "working", "build"]);
        let trailers = life.trailers("work");
        let expected = [
            ("aynig-hop", "1"),
            ("aynig-origin-state", "build"),
            ("aynig-recovery-id", &trailers["aynig-recovery-id"]),
            ("aynig-run-id", run),
            ("aynig-stalled-run", run),
            ("aynig-state", "stalled"),
            ("aynig-trigger", &trigger),
        ];
        assert_eq!(trailers, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        assert!(life.body("work").contains(&attempt), "{}", life.body("work"));
        life.repo.assert_sound();
    }
}

/// K29, K7: the grace is 30 s here, unless one is configured.
#[test]
fn the_grace_of_this_dialect_is_thirty_seconds() {
    // A lease ends with a margin of ten seconds before or after what is asked for: a slow machine looks later.
    for (ago, args, wanted) in [
        (120, &[][..], "leased"),
        (132, &[], "would-recover"),
        (102, &["--grace", "0"], "would-recover"),
        (132, &["--grace", "1m"], "leased"),
    ] {
        let life = asked("true");
        lease(&life, "work", "r", 100, ago);
        let report = life.tick(&[&["--dry-run", "--json", "work"], args].concat()).json();
        assert_eq!(report["result"].as_str(), Some(wanted), "{ago} {args:?}");
    }
    let life = asked("true");
    lease(&life, "work", "r", 10, 12);
    life.config("aynig.leaseGrace", "1s");
    let report = life.tick(&["--dry-run", "--json", "work"]).json();
    assert_eq!(report["result"].as_str(), Some("would-recover"));
}

/// K29, K8: a heartbeat need not repeat what the lease says; a recovery, and `retry`, know it all the same.
#[test]
fn a_recovery_knows_what_short_heartbeats_do_not_say() {
    let life = asked(
        "[ -e \"$T/again\" ] && { state done; exit; }; beat 'aynig-lease-seconds: 1'; plain p; beat 'aynig-lease-seconds: 1'",
    );
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "lease-left"));
    assert_eq!(states(&life, "work"), ["working", "-", "working", "working", "build"]);
    let trigger = life.rev("work~4");
    recovered(&life);
    let trailers = life.trailers("work");
    let told = ["aynig-origin-state", "aynig-trigger", "aynig-hop"].map(|key| trailers[key].as_str());
    assert_eq!(told, ["build", &trigger, "1"]);
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(life.trailers("work"), [("aynig-state".to_owned(), "build".to_owned())].into());
    std::fs::write(life.shared().join("again"), "").unwrap();
    assert_eq!(result(&ticked(&life, &[])), (Some(0), "own"));
}

/// K29, K17, K26: a runner that is killed takes its command along; what the slot holds is kept by the next tick.
#[test]
fn a_killed_runner_is_recovered_and_its_work_kept() {
    let life =
        asked("plain p; whole; plain q; echo w >>file; setsid sleep 300 & echo $! $$ >\"$T/up\"; sleep 300");
    let tick = life.start_tick(&["--lease", "4s", "work"]);
    let pids = life.hear("up");
    tick.signal(Signal::SIGKILL);
    eventually("all are gone", || pids.split(' ').all(|pid| !lives(pid)).then_some(()));
    let run = life.trailer("work", "aynig-run-id").unwrap();
    let report = recovered(&life);
    assert_eq!(report["recovered"][0]["run_id"].as_str(), Some(&*run));
    let attempt = format!("refs/aynig/attempts/{run}");
    assert_eq!(life.show(&attempt, "file"), "one\nw");
    let kept = life.git(&["log", "--format=%s", &attempt]);
    assert!(["p", "q"].iter().all(|subject| kept.lines().any(|l| l == *subject)), "{kept}");
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
    // The slot is free for any run again.
    life.run(&["retry", "work"]).expect(0);
    life.repo.assert_sound();
}

/// K26: everything on the branch is nothing to keep.
#[test]
fn a_killed_runner_whose_command_committed_all_leaves_no_attempt() {
    let life = asked("echo w >>file; git commit -qam p; whole; echo $$ >\"$T/up\"; sleep 300");
    let tick = life.start_tick(&["--lease", "4s", "work"]);
    life.hear("up");
    eventually("the heartbeat", || (states(&life, "work").len() == 4).then_some(()));
    tick.signal(Signal::SIGKILL);
    drop(tick);
    recovered(&life);
    assert_eq!(life.attempts(), Vec::<String>::new());
    assert_eq!(life.show("work", "file"), "one\nw");
}

/// K29, K17: the runner stops its command, forwards what that has committed by then, and adds nothing.
#[test]
fn a_signal_to_the_runner_ends_the_command_and_leaves_the_lease() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 143)] {
        let life = asked("trap 'whole; exit 9' TERM; echo w >>file; echo $$ >\"$T/up\"; sleep 300 & wait");
        let tick = life.start_tick(&["--json", "work"]);
        let pid = life.hear("up");
        tick.signal(signal);
        let report = tick.done().expect(code).json();
        assert_eq!(report["result"].as_str(), Some("lease-left"), "{report}");
        assert_eq!(states(&life, "work"), ["working", "working", "build"]);
        assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw");
        assert!(!lives(&pid));
        life.run(&["cancel", "work"]).expect(0);
    }
    let life = asked("trap 'state canceled; exit 9' TERM; echo $$ >\"$T/up\"; sleep 300 & wait");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    tick.signal(Signal::SIGTERM);
    assert_eq!(tick.done().expect(143).json()["result"].as_str(), Some("own"));
}

/// K29, K17: no process outlives its command here.
#[test]
fn what_a_command_left_running_is_ended_with_it() {
    let life = asked("setsid sleep 300 & echo $! >\"$T/up\"; exit 0");
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "lease-left"));
    let pid = life.hear("up");
    eventually("it is gone", || (!lives(&pid)).then_some(()));
    // Its slot is free.
    event(&life, "other", "build", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
}

/// K29, K19: there are no declarations, and that is said once.
#[test]
fn declarations_are_ignored_and_that_is_said_once() {
    let lines = "echo 'SET_STATE {\"state\":\"review\"}'; echo 'SET_STATE oops'";
    for (script, result_is) in [
        (lines.to_owned(), "lease-left"),
        (format!("{lines}; state done"), "own"),
        ("echo '{\"state\":\"review\"}' >\"$AYNIG_RESULT\"".to_owned(), "lease-left"),
        ("echo oops >\"$AYNIG_RESULT\"; state done".to_owned(), "own"),
    ] {
        let life = asked(&script);
        let ran = ticked(&life, &[]);
        assert_eq!(result(&ran), (Some(0), result_is), "{script}");
        let notes = ran.1["notes"].as_array().unwrap();
        assert!(
            notes.len() == 1 && note_with(&ran.1, "is ignored: in the aynig dialect").is_some(),
            "{ran:?}"
        );
        assert!(!states(&life, "work").contains(&"review".to_owned()));
    }
}

/// K29, K14: nothing but its command writes to the branch, not even where that never ran.
#[test]
fn a_command_that_could_not_start_leaves_its_lease() {
    let life = Life::new(&[]);
    life.write(".aynig/command/build", "#!no/such/interpreter\n");
    std::fs::set_permissions(
        life.path(".aynig/command/build"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "command"]);
    event(&life, "work", "build", "");
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(1), "lease-left"), "{ran:?}");
    assert!(ran.1["exit"].as_str().unwrap().contains("could not be started"), "{ran:?}");
    assert_eq!(states(&life, "work"), ["working", "build"]);
    // Its folder can't be made: that is known before the claim.
    let life = asked("state done");
    std::fs::create_dir_all(life.path(".git/aynig")).unwrap();
    std::fs::write(life.path(".git/aynig/runs"), "in the way").unwrap();
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(128), "failed"), "{ran:?}");
    assert_eq!((states(&life, "work"), life.attempts()), (vec!["build".into()], vec![]));
}

/// K29, K24, K28: a runner that slept past its lease forwards nothing to a branch that was recovered; what its
/// command committed meanwhile is kept whole, and `retry` lands it without running anything.
#[test]
fn a_runner_that_slept_past_its_lease_forwards_nothing() {
    let life = asked(
        "echo x >>\"$T/runs\"; echo $$ >\"$T/up\"; read x <\"$T/a\"; echo w >>file; git add file; state done\n\
         echo made >\"$T/made\"; read x <\"$T/b\"",
    );
    let (mut a, _b) = (life.gate("a"), life.gate("b"));
    let tick = life.start_tick(&["--json", "--lease", "4s", "work"]);
    let pid = life.hear("up");
    tick.signal(Signal::SIGSTOP);
    a.open();
    life.hear("made");
    recovered(&life);
    let stalled = life.rev("work");
    tick.signal(Signal::SIGCONT);
    let report = tick.done().expect(3).json();
    assert_eq!((report["result"].as_str(), life.rev("work")), (Some("fenced"), stalled), "{report}");
    assert!(!lives(&pid));
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.trailer(attempt, "aynig-state").as_deref(), Some("done"));
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(states(&life, "work"), ["done", "stalled", "working", "build"]);
    assert_eq!((life.show("work", "file"), life.said("runs")), ("one\nw".into(), "x\n".into()));
}
