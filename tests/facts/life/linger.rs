//! Commands that write the outcome themselves, or leave it to a process that outlives them.

use crate::support::life::{Life, Running, eventually, lives};
use crate::support::skipped;

/// Leaves a process in the background that goes on at the gate, and says who it is.
fn background(then: &str) -> String {
    format!(
        "echo early >>file; (echo $$; exec sh -c 'echo $$ >\"$T/pid\"; read x <\"$T/gate\"; {then}') >/dev/null 2>&1 &\nexit 0"
    )
}

fn lingering(then: &str, args: &[&str]) -> (Life, crate::support::life::Gate, String) {
    let life = Life::new(&[
        ("build", &background(then)),
        ("quick", "pwd >>\"$T/where\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    life.event("work", "build", "dwp-role: b\n");
    let gate = life.gate("gate");
    let (done, report) = life.report(&[&["work", "--jobs", "1"], args].concat());
    assert_eq!((done.code, report["result"].as_str()), (Some(0), Some("lease-kept")), "{report}");
    let pid = life.hear("pid");
    (life, gate, pid)
}

/// K14, K17: a copy of a repository has the same runs noted, and none of their processes.
#[test]
fn a_copy_of_a_repository_ends_nothing_of_the_originals() {
    let script =
        "echo late >>file; echo $$ >\"$T/pid\"; read x <\"$T/go\"; echo 'SET_STATE {\"state\":\"done\"}'";
    for verbs in [&[&["gc"][..], &["doctor"]][..], &[&["tick"]], &[&["uninstall", "--force"]]] {
        let life = Life::new(&[("build", script)]);
        let mut gate = life.gate("go");
        life.event("work", "build", "");
        let tick = life.start_tick(&["work"]);
        let pid = life.hear("pid");
        let copy = life.shared().join("copy");
        let from = life.repo.path();
        let copied = std::process::Command::new("cp").arg("-a").args([&*from, &*copy]).status().unwrap();
        assert!(copied.success());
        for verb in verbs {
            let said = life.run(&[&["-C", copy.to_str().unwrap()], *verb].concat());
            assert!(!said.stdout.contains("has processes of run"), "{said:?}");
        }
        assert!(lives(&pid), "{verbs:?}");
        gate.open();
        tick.done().expect(0);
        assert_eq!((life.state("work").as_str(), life.show("work", "file").as_str()), ("done", "one\nlate"));
    }
}

/// K44: what a command left behind asks whether its run holds the branch; where no process is left nothing else ends it.
#[test]
fn a_run_that_is_canceled_after_its_command_ended_has_no_ref() {
    let asks = "git rev-parse -q --verify refs/aynig/run/$AYNIG_RUN_ID; echo $? >\"$T/asked\"";
    let (life, mut gate, _) = lingering(asks, &[]);
    let runs = || life.git(&["for-each-ref", "--format=%(objectname)", "refs/aynig/run"]);
    assert_eq!(runs(), life.rev("work"));
    life.run(&["cancel", "work"]).expect(0);
    assert_eq!(runs(), "");
    gate.open();
    assert_eq!(life.hear("asked"), "1");
    let life = Life::new(&[("build", "exit 0")]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    life.run(&["cancel", "work"]).expect(0);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
}

/// K21
#[test]
fn a_process_that_outlives_its_command_ends_the_run_with_the_slots_changes() {
    let (life, mut gate, pid) = lingering(
        "echo late >>file; echo n >new; git aynig set-state --keep-trailers done -m finished; echo $? >\"$T/set\"",
        &[],
    );
    assert!(lives(&pid));
    assert_eq!(life.states("work"), ["working", "working", "build"]);
    assert_eq!(life.trailers("work"), life.trailers("work~1"));
    let lease = life.trailers("work");
    // Its slot is taken: another branch waits for one.
    life.event("other", "quick", "");
    let command = life.aynig(&["tick", "--jobs", "1", "other"]);
    let other = Running::saying(command, &life.shared().join("waits"));
    let waits = "other: all worktrees are in use; waiting for one (git aynig doctor says who has them)";
    assert_eq!(life.hear("waits"), waits);
    life.config("aynig.jobs", "1");
    // While the waiting tick looks at the slot, which it does again and again, it holds the slot's lock.
    eventually("doctor says who keeps the slot, and who waits", || {
        let found = life.run(&["doctor"]).expect(0).stdout;
        let parts = [
            "on refs/heads/work, whose command has ended",
            "a tick waits for a lease to end",
            "git aynig cancel work",
        ];
        parts.iter().all(|part| found.contains(part)).then_some(())
    });
    life.git(&["config", "--global", "--unset", "aynig.jobs"]);
    life.tick(&["work"]).expect(3);
    assert_eq!((life.state("other"), lives(&pid)), ("quick".into(), true));
    gate.open();
    assert_eq!(life.hear("set"), "0");
    assert_eq!(life.states("work"), ["done", "working", "working", "build"]);
    assert_eq!(life.git(&["log", "-1", "--format=%s", "work"]), "finished");
    assert_eq!(
        (life.show("work", "file"), life.show("work", "new")),
        ("one\nearly\nlate".into(), "n".into())
    );
    let trailers = life.trailers("work");
    for key in ["dwp-run-id", "dwp-origin-state", "dwp-trigger", "dwp-hop", "dwp-role"] {
        assert_eq!(trailers[key], lease[key], "{key}");
    }
    // The slot is free again, and clean.
    other.done().expect(0);
    assert_eq!(life.said("where").trim_end(), life.slot(0).to_str().unwrap());
    assert_eq!(
        (life.state("other"), life.files("other")),
        ("done".into(), vec!["dir/other".into(), "file".into()])
    );
    assert_eq!((life.attempts(), life.git(&["for-each-ref", "refs/aynig/run"])), (vec![], String::new()));
    life.repo.assert_sound();
}

/// K14, K21: its branch has moved, its slot has no note of that yet, and a tick waits for the slot.
#[test]
fn a_process_that_writes_its_outcome_slowly_still_ends_by_itself() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return skipped("strace is not installed");
    }
    let slow = "strace -f -qq -o /dev/null -e trace=/^rename -e inject=/^rename:delay_exit=300000";
    let then = format!("echo late >>file; {slow} git aynig set-state done; echo $? >\"$T/set\"");
    let (life, mut gate, _) = lingering(&then, &[]);
    life.event("other", "quick", "");
    let other = Running::saying(life.aynig(&["tick", "--jobs", "1", "other"]), &life.shared().join("waits"));
    life.hear("waits");
    gate.open();
    other.done().expect(0);
    assert_eq!((&*life.said("set"), &*life.state("work")), ("0\n", "done"));
    assert_eq!(life.attempts(), Vec::<String>::new());
}

/// K14, K21: without another free slot nothing takes the one of a run that lives on.
#[test]
fn a_second_slot_is_used_beside_a_run_that_lives_on() {
    let (life, _gate, pid) = lingering("true", &[]);
    life.event("other", "quick", "");
    life.tick(&["--jobs", "2", "other"]).expect(0);
    assert_eq!(life.said("where").trim_end(), life.slot(1).to_str().unwrap());
    assert!(lives(&pid));
}

/// K21, K8, K26
#[test]
fn a_process_that_dies_leaves_its_lease_to_expire_and_its_work_as_an_attempt() {
    let (life, mut gate, pid) = lingering("echo late >>file", &["--lease", "4s"]);
    let run = life.trailer("work", "dwp-run-id").unwrap();
    gate.open();
    eventually("its end", || (!lives(&pid)).then_some(()));
    let over = eventually("expiry", || Some(life.tick(&["--json", "work"])).filter(|d| d.code != Some(3)));
    let report = over.expect(1).json();
    let attempt = format!("refs/aynig/attempts/{run}");
    assert_eq!(report["recovered"][0]["attempt"].as_str(), Some(&*attempt), "{report}");
    assert_eq!(life.show(&attempt, "file"), "one\nearly\nlate");
    assert!(life.body("work").contains(&attempt));
    assert_eq!(life.states("work"), ["stalled", "working", "working", "build"]);
}

/// K14, K21: once the lease is over, what still runs in the slot has to go when it is needed.
#[test]
fn a_process_whose_lease_is_over_is_ended_when_its_slot_is_needed() {
    let (life, _gate, pid) = lingering("true", &["--lease", "4s"]);
    life.run(&["cancel", "work"]).expect(0);
    life.event("other", "quick", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
    assert!(!lives(&pid));
    let attempts = life.attempts();
    assert_eq!((attempts.len(), life.show(&attempts[0], "file")), (1, "one\nearly".into()));
}

/// K14, K17: also one that wrote the outcome and goes on all the same.
#[test]
fn a_process_that_goes_on_after_its_outcome_does_not_block_the_slot() {
    let (life, mut gate, pid) =
        lingering("git aynig set-state done; echo more >>file; echo ok >\"$T/ok\"; read x <\"$T/gate\"", &[]);
    gate.open();
    life.hear("ok");
    life.event("other", "quick", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
    assert!(!lives(&pid));
    // What it changed after its outcome is kept beside it (K22).
    let attempts = life.attempts();
    assert_eq!((attempts.len(), life.show(&attempts[0], "file")), (1, "one\nearly\nmore".into()));
    assert_eq!(life.show("work", "file"), "one\nearly");
}

/// K22, K26
#[test]
fn a_command_that_sets_the_state_itself_has_written_the_outcome() {
    for (ending, code) in [("exit 0", 0), ("exit 3", 3), ("echo 'SET_STATE {\"state\":\"declared\"}'", 0)] {
        for (after, kept) in [("echo more >>file", true), ("true", false)] {
            let script = format!(
                "echo w >>file; git aynig set-state review -m 'my own' >\"$T/out\" || exit 50\n{after}\n{ending}"
            );
            let life = Life::new(&[("build", &script)]);
            life.event("work", "build", "");
            let (done, report) = life.report(&["work"]);
            assert_eq!((done.code, report["result"].as_str()), (Some(0), Some("own")), "{report}");
            assert_eq!(report["exit"].as_str(), Some(&*format!("exit {code}")));
            assert_eq!(
                (report["next"].as_str(), report["commit"].as_str()),
                (Some("review"), Some(&*life.rev("work")))
            );
            assert_eq!(life.states("work"), ["review", "working", "build"]);
            assert_eq!(
                (life.show("work", "file"), life.git(&["log", "-1", "--format=%s", "work"])),
                ("one\nw".into(), "my own".into())
            );
            assert_eq!(life.trailer("work", "dwp-run-id"), life.trailer("work~1", "dwp-run-id"));
            assert_eq!(life.trailer("work", "dwp-hop"), Some("1".into()));
            assert_eq!(life.attempts().len(), usize::from(kept), "{after}; {ending}");
            if kept {
                assert_eq!(life.show(&life.attempts()[0], "file"), "one\nw\nmore");
            }
        }
    }
}

/// K22, K18: the command may finish, however long it takes, and whichever process goes on from its outcome.
#[test]
fn an_outcome_that_others_go_on_from_is_still_the_commands_own() {
    let script = "git aynig set-state next; echo up >\"$T/up\"; trap 'echo term >\"$T/term\"' TERM; read x <\"$T/gate\"; exit 0";
    let life = Life::new(&[("build", script), ("next", "echo 'SET_STATE {\"state\":\"last\"}'")]);
    life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    let own = life.rev("work");
    life.tick(&["work"]).expect(0);
    // Longer than the runner's look at its branch.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(life.said("term"), "");
    gate.open();
    let report = tick.done().expect(0).json();
    assert_eq!(
        (report["result"].as_str(), report["commit"].as_str()),
        (Some("own"), Some(&*own)),
        "{report}"
    );
    assert_eq!(life.states("work"), ["last", "working", "next", "working", "build"]);
}

/// K9, K22: other branches too, with the hop of the run; a leased one is refused.
#[test]
fn a_command_may_set_other_branches() {
    let script = "git aynig set-state todo -b side --no-tick && git aynig set-state x -b held; echo $? >\"$T/code\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    life.event("held", "build", "");
    let held = life.lease("held", "build", "r", 300, 0);
    life.tick(&["work"]).expect(0);
    assert_eq!(
        (life.state("side"), life.trailer("side", "dwp-hop"), life.trailer("side", "dwp-run-id")),
        ("todo".into(), Some("2".into()), None)
    );
    assert_eq!((life.hear("code"), life.rev("held")), ("3".into(), held));
}

/// K18: a command that renews by hand is taken at its word.
#[test]
fn a_lease_renewed_by_the_command_is_still_the_runs() {
    let script = "git aynig set-working && git aynig set-working && echo w >>file && echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.states("work"), ["next", "working", "working", "working", "build"]);
    assert_eq!(life.show("work", "file"), "one\nw");
}

/// The run is found also where the repository was reached through a link.
#[test]
fn a_command_knows_its_run_where_the_repository_is_reached_through_a_link() {
    let life = Life::new(&[("build", "git aynig set-state next")]);
    life.event("work", "build", "");
    let link = life.repo.home().join("link");
    std::os::unix::fs::symlink(life.repo.path(), &link).unwrap();
    life.run(&["-C", link.to_str().unwrap(), "tick", "work"]).expect(0);
    assert_eq!(life.states("work"), ["next", "working", "build"]);
}

/// K22: a state that a command commits by itself is no run's outcome, and the runner says so
#[test]
fn a_state_that_a_command_commits_is_no_outcome_and_is_said() {
    let life = Life::new(&[("build", "git commit -q --allow-empty -m 'done' -m 'dwp-state: done'")]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!(done.code, Some(0), "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("its command committed 'dwp-state: done' and declared nothing"), "{report}");
    assert!(notes.contains("git aynig set-state done"), "{report}");
    // Other machines see the branch alone.
    let body = life.body("work");
    assert!(
        body.contains(
            "It committed 'dwp-state: done' itself, which is no outcome: 'git aynig set-state done'"
        ),
        "{body}"
    );
    assert_eq!(life.state("work"), "working");
}

/// K14, K21: also where it makes the folder of its slot anew, which is its work then.
#[test]
fn a_folder_that_what_was_left_behind_makes_anew_is_its_own() {
    let anew = "s=$(pwd) && cp -a \"$s\" \"$T/copy\" && rm -rf \"$s\" && mv \"$T/copy\" \"$s\" && cd \"$s\" && echo moved >\"$T/moved\"; read x <\"$T/go\"; echo late >>file; git aynig set-state done; echo $? >\"$T/set\"";
    let (life, mut gate, _) = lingering(anew, &[]);
    let mut go = life.gate("go");
    gate.open();
    life.hear("moved");
    life.event("other", "quick", "");
    let said = life.tick(&["--jobs", "2", "other"]).expect(0);
    assert!(!said.stderr.contains("its folder was gone"), "{said:?}");
    go.open();
    assert_eq!(life.hear("set"), "0");
    eventually("the run's end", || (life.state("work") == "done").then_some(()));
    assert_eq!(life.show("work", "file"), "one\nearly\nlate");
}

/// K14, K21: a process is asked to end for holding the slot, not for an id in a file, which may be anyone's by now.
#[test]
fn who_does_not_hold_the_slot_is_not_asked_to_end() {
    let (life, _gate, pid) = lingering("exit 0", &["--lease", "1s"]);
    let mut stranger = life.repo.command("sleep").arg("600").spawn().unwrap();
    let note = life.repo.git_dir().join("aynig/slots/0.json");
    let text = std::fs::read_to_string(&note).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(record["run"]["guardian"].is_u64(), "{text}");
    record["run"]["guardian"] = stranger.id().into();
    std::fs::write(&note, record.to_string()).unwrap();
    life.event("other", "quick", "");
    eventually("the slot", || {
        life.tick(&["--jobs", "1", "other"]);
        (life.state("other") == "done").then_some(())
    });
    assert!(!lives(&pid));
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// K14: what is kept for a run on a remote that was renamed since keeps no other branch from a slot.
#[test]
fn a_slot_of_a_remote_that_is_gone_stalls_no_branch() {
    let life = Life::new(&[
        ("build", "echo late >>file; (read x <\"$T/gate\") >/dev/null 2>&1 </dev/null & exit 0"),
        ("quick", "echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    assert!(life.repo.command("mkfifo").arg(life.shared().join("gate")).status().unwrap().success());
    life.event("work", "build", "");
    let bare = life.repo.home().join("far.git");
    life.git(&["clone", "-q", "--bare", life.repo.path().to_str().unwrap(), bare.to_str().unwrap()]);
    life.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    life.tick(&["--remote", "origin", "--jobs", "1", "work"]).expect(0);
    std::fs::write(life.shared().join("gate"), "\n").unwrap();
    life.git(&["remote", "rename", "origin", "upstream"]);
    life.event("other", "quick", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
    assert_eq!(life.state("other"), "done");
    let attempts = life.attempts();
    assert_eq!((attempts.len(), life.show(&attempts[0], "file").as_str()), (1, "one\nlate"), "{attempts:?}");
}

/// K14, K21: what a command leaves behind keeps its slot while it lives, and not for as long as the lease does after that.
#[test]
fn a_slot_is_free_once_what_was_left_behind_has_ended() {
    let keep = "echo work >kept; (read x <\"$T/gate\") >/dev/null 2>&1 </dev/null & echo $! >\"$T/pid\"";
    let life = Life::new(&[("keep", keep), ("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("aynig.jobs", "1");
    assert!(life.repo.command("mkfifo").arg(life.shared().join("gate")).status().unwrap().success());
    life.event("a", "keep", "");
    life.event("b", "build", "");
    life.tick(&["--lease", "1h", "a"]).expect(0);
    assert_eq!(life.state("a"), "working");
    let said = life.run(&["doctor"]).stdout;
    assert!(said.contains("all of them are kept"), "{said}");
    std::fs::write(life.shared().join("gate"), "\n").unwrap();
    life.tick(&["b"]).expect(0);
    assert_eq!((life.state("a").as_str(), life.state("b").as_str()), ("working", "done"));
    let attempts = life.attempts();
    assert_eq!((attempts.len(), life.show(&attempts[0], "kept").as_str()), (1, "work"), "{attempts:?}");
}
