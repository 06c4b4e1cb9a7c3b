use crate::dialect::support_of::*;
use crate::support::life::{Life, eventually, lives};

/// K29: the command moves the branch by plain git; which way does not matter.
#[test]
fn a_command_may_move_the_branch_itself() {
    let ways = [
        "state done; git push -q . HEAD:work",
        "state done; git update-ref refs/heads/work HEAD \"$AYNIG_LEASE_COMMIT\"",
        "git checkout -q work; echo w >>file; git commit -qam plain; beat; state done",
        // Heartbeats first, and a state that only the end brings.
        "beat; git push -q . HEAD:work; plain p; git push -q . HEAD:work; state done",
        // Nothing of it is in the slot's HEAD, and it does not say whose it is: the head alone is judged.
        "c=$(git commit-tree -p HEAD -m to -m 'aynig-state: done' HEAD^{tree}); git update-ref refs/heads/work $c",
    ];
    for way in ways {
        let life = asked(way);
        let ran = ticked(&life, &[]);
        assert_eq!(result(&ran), (Some(0), "own"), "{way}: {ran:?}");
        let all = states(&life, "work");
        assert_eq!((&*all[0], &**all.last().unwrap()), ("done", "build"), "{way}");
        assert_eq!((ran.1["next"].as_str(), life.attempts()), (Some("done"), vec![]), "{way}");
        life.repo.assert_sound();
    }
}

/// K29, K22: the command goes on after its outcome, and what others made of that stands.
#[test]
fn a_command_that_advanced_may_finish() {
    for how in ["", "; git push -q . HEAD:work"] {
        let life = asked(&format!(
            "trap 'echo term >\"$T/term\"' TERM; state done{how}; echo $$ >\"$T/up\"; read x <\"$T/gate\"; echo late >>file"
        ));
        let mut gate = life.gate("gate");
        let tick = life.start_tick(&["--json", "work"]);
        let pid = life.hear("up");
        eventually("the outcome", || (states(&life, "work")[0] == "done").then_some(()));
        let outcome = life.rev("work");
        let next = life.event_at("work", "a person\n", None);
        // Longer than a look takes.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert!(lives(&pid));
        gate.open();
        let report = tick.done().expect(0).json();
        assert_eq!((report["result"].as_str(), report["commit"].as_str()), (Some("own"), Some(&*outcome)));
        assert_eq!((life.rev("work"), life.said("term")), (next, String::new()));
        // K26: what it did afterwards is not on the branch, and not lost.
        assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nlate");
    }
}

/// K29: once there is an outcome the run writes no more.
#[test]
fn nothing_is_forwarded_after_the_outcome() {
    let life = asked("state done; echo up >\"$T/up\"; read x <\"$T/gate\"; state more");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    eventually("the outcome", || (states(&life, "work")[0] == "done").then_some(()));
    gate.open();
    let report = tick.done().expect(0).json();
    assert_eq!(states(&life, "work"), ["done", "working", "build"]);
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.rev(&format!("{attempt}^")), life.rev("work"));
}

/// K29, K24
#[test]
fn a_head_that_does_not_descend_is_kept_and_not_forwarded() {
    let ways = [
        "git checkout -q --detach main; echo w >>file; git commit -qam done -m 'aynig-state: done'",
        // Over a heartbeat that is on the branch already.
        "beat; echo up >\"$T/up\"; read x <\"$T/gate\"; git commit -q --amend --allow-empty -m again -m 'aynig-state: done'",
    ];
    for way in ways {
        let life = asked(way);
        let mut gate = life.gate("gate");
        let tick = life.start_tick(&["--json", "work"]);
        if way.contains("gate") {
            eventually("the heartbeat", || (states(&life, "work").len() == 3).then_some(()));
            gate.open();
        }
        let report = tick.done().expect(0).json();
        assert_eq!(report["result"].as_str(), Some("lease-left"), "{way}: {report}");
        assert!(note_with(&report, "does not descend from the lease").is_some(), "{report}");
        assert_eq!(states(&life, "work")[0], "working");
        // What could have been an outcome of this lease is kept as it is, anything else below a commit of ours.
        let attempt = report["attempt"].as_str().unwrap();
        let kept = if way.contains("gate") { attempt.to_owned() } else { format!("{attempt}^2") };
        assert!(life.body(&kept).contains("aynig-state: done"), "{way}");
    }
}

/// K29: commits that may not become the head.
#[test]
fn only_a_state_event_of_this_run_is_forwarded() {
    let ways = [
        ("say x 'aynig-state: working'", Some("without the run's id")),
        ("say x 'aynig-state: working' 'aynig-run-id: other'", Some("without the run's id")),
        ("say x 'aynig-state: done' 'aynig-run-id: other'", Some("id of another run")),
        ("say x 'aynig-state: done' 'aynig-recovery-id: r'", Some("or of a recovery")),
        ("say x 'dwp-state: done'", Some("of the dwp dialect")),
        ("say x 'aynig-state: done' 'dwp-state: done'", Some("of the dwp dialect")),
        ("plain x", None),
        ("state done; plain after", None),
        ("git checkout -q --detach HEAD~1", None),
        ("rm -f .git", None),
    ];
    for (way, why) in ways {
        let life = asked(way);
        let ran = ticked(&life, &[]);
        assert_eq!(result(&ran), (Some(0), "lease-left"), "{way}: {ran:?}");
        assert_eq!(states(&life, "work"), ["working", "build"], "{way}");
        assert_eq!(ran.1["notes"].as_array().unwrap().len(), usize::from(why.is_some()), "{way}: {ran:?}");
        assert!(why.is_none_or(|why| note_with(&ran.1, why).is_some()), "{way}: {ran:?}");
        // K26: what is not on the branch is kept.
        let kept = way.contains("say") || way.contains("plain");
        assert_eq!((ran.1["attempt"].is_string(), life.attempts().len()), (kept, usize::from(kept)), "{way}");
    }
}

/// K29: what is looked at again and again is said once.
#[test]
fn a_commit_that_is_passed_over_is_said_once() {
    let life = asked("say x 'aynig-state: working'; echo $$ >\"$T/up\"; sleep 2.5; state done");
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
    assert_eq!(ran.1["notes"].as_array().unwrap().len(), 1, "{ran:?}");
    assert_eq!(states(&life, "work"), ["done", "working", "working", "build"]);
}

/// K29, K11: of many runners one takes the branch, and one outcome comes of it.
#[test]
fn of_many_runners_one_takes_the_branch() {
    let life = asked("echo x >>\"$T/runs\"; beat; state done");
    let ticks: Vec<_> = (0..6).map(|_| life.start_tick(&["--json", "work"])).collect();
    let codes: Vec<_> = ticks.into_iter().map(|tick| tick.done().code).collect();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))), "{codes:?}");
    assert_eq!(life.said("runs"), "x\n");
    assert_eq!(states(&life, "work"), ["done", "working", "working", "build"]);
}

/// K29, K18: a head that the command did not write stops it, whatever that says.
#[test]
fn another_head_stops_the_command() {
    for (what, message) in [
        ("a plain commit", "somebody\n"),
        ("a state without an id", "somebody\n\naynig-state: other\n"),
        ("another run's", "somebody\n\naynig-state: other\naynig-run-id: x\n"),
        ("the other dialect", "somebody\n\ndwp-state: other\n"),
        ("another lease", "somebody\n\naynig-state: working\naynig-run-id: x\n"),
        ("nothing", ""),
    ] {
        let (life, tick) = waiting();
        let head = if message.is_empty() {
            let rewound = life.rev("work~1");
            life.git(&["update-ref", "refs/heads/work", &rewound]);
            rewound
        } else {
            life.event_at("work", message, None)
        };
        life.hear("term");
        let report = tick.done().expect(3).json();
        assert_eq!(report["result"].as_str(), Some("fenced"), "{what}: {report}");
        assert_eq!(life.rev("work"), head, "{what}");
        assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw", "{what}");
        assert!(!lives(life.said("up").trim()), "{what}");
    }
}

/// Says when it is up and what it was stopped by; its work is a commit and a file.
fn waiting() -> (Life, crate::support::life::Running) {
    let script = "trap 'echo term >\"$T/term\"; exit 9' TERM; plain p; echo w >>file; echo $$ >\"$T/up\"; read x <\"$T/gate\"; state done";
    let life = asked(script);
    std::mem::forget(life.gate("gate"));
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    (life, tick)
}

/// K44: the ref of a run that lives is its runner's, whatever else its lease is copied to.
#[test]
fn canceling_a_copy_takes_nothing_from_the_run() {
    let life = asked("echo $$ >\"$T/up\"; read x <\"$T/gate\"; state done");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    let run = life.trailer("work", "aynig-run-id").unwrap();
    life.git(&["branch", "copy", "work"]);
    life.run(&["cancel", "copy"]).expect(0);
    assert_eq!(life.rev(&format!("refs/aynig/run/{run}")), life.rev("work"));
    assert_eq!(states(&life, "copy")[0], "canceled");
    gate.open();
    assert_eq!(tick.done().expect(0).json()["result"].as_str(), Some("own"));
    assert_eq!(states(&life, "work"), ["done", "working", "build"]);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
}

/// K44: a command is told at once that its branch was canceled, also where its runner is stopped.
#[test]
fn cancel_removes_the_ref_of_its_own_run_at_once() {
    let life = asked("echo $$ >\"$T/up\"; read x <\"$T/gate\"; state done");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    tick.signal(nix::sys::signal::Signal::SIGSTOP);
    life.run(&["cancel", "work"]).expect(0);
    let refs = life.git(&["for-each-ref", "refs/aynig/run"]);
    tick.signal(nix::sys::signal::Signal::SIGCONT);
    gate.open();
    tick.done();
    assert_eq!(refs, "");
}

/// K29, K24: `cancel` carries no run id, and is no outcome of the command's.
#[test]
fn cancel_is_felt_at_once_and_says_whose_lease_it_was() {
    let (life, tick) = waiting();
    let lease = life.trailers("work");
    life.run(&["cancel", "work"]).expect(0);
    life.hear("term");
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"), "{report}");
    assert_eq!(states(&life, "work"), ["canceled", "working", "build"]);
    let trailers = life.trailers("work");
    for key in ["aynig-origin-state", "aynig-trigger", "aynig-hop"] {
        assert_eq!(trailers[key], lease[key]);
    }
    assert!(trailers.keys().all(|key| key.starts_with("aynig-")) && !trailers.contains_key("aynig-run-id"));
    assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw");
    // The plain commit below it is kept with it.
    assert!(life.git(&["log", "--format=%s", report["attempt"].as_str().unwrap()]).contains("\np\n"));
    // The next lease is any runner's.
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    assert_eq!(life.trailer("work", "aynig-state").as_deref(), Some("build"));
}
