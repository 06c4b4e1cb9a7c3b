//! Commands that end well and say nothing, or nothing that could be understood; and what our commits say of it.

use crate::support::life::{Life, eventually, lives};
use crate::support::world::World;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// K21, K26: no process is left in the slot, so the next run has it; the lease lives on, and says why
#[test]
fn a_command_that_declares_nothing_and_leaves_nobody_gives_its_slot_back() {
    let life = Life::new(&[
        ("build", "echo w >>file; echo 'set_state {\"state\":\"done\"}'; echo said"),
        ("quick", "pwd >\"$T/where\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["--jobs", "1", "--lease", "5s", "work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(0), Some("lease-kept")), "{report}");
    let body = life.body("work");
    for part in ["declared nothing", "    set_state {\"state\":\"done\"}", "its worktree is free again"] {
        assert!(body.contains(part), "{body}");
    }
    assert!(!body.contains("said"), "{body}");
    let log = std::fs::read_to_string(report["stderr_log"].as_str().unwrap()).unwrap();
    assert!(log.contains("aynig: The command ended with exit 0 and declared nothing"), "{log}");
    assert_eq!(life.trailers("work")["dwp-state"], "working");
    // What it did is kept, and its slot is the next one's.
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.show(attempt, "file"), "one\nw");
    life.event("other", "quick", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
    assert_eq!(life.said("where").trim_end(), life.slot(0).to_str().unwrap());
    assert_eq!(life.show("other", "file"), "one");
    // The runner that finds the lease at its end says it too.
    let over = eventually("expiry", || Some(life.tick(&["--json", "work"])).filter(|d| d.code != Some(3)));
    over.expect(1);
    let body = life.body("work");
    assert!(body.contains("declared nothing") && body.contains(attempt), "{body}");
    life.repo.assert_sound();
}

/// K21: the run is not over for a process that knows its id: the state that it sets has what the slot held
#[test]
fn a_state_that_is_set_once_the_slot_was_given_back_has_what_the_command_did() {
    let script = "echo w >>file; env | grep -E \"^AYNIG_(RUN_|BRANCH|HOP)\" >\"$T/env\"; exit 0";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let mut later = life.aynig(&["set-state", "done", "-b", "work"]);
    for line in life.said("env").lines() {
        let (name, value) = line.split_once('=').unwrap();
        later.env(name, value);
    }
    let said = later.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!((life.state("work"), life.show("work", "file")), ("done".into(), "one\nw".into()));
}

/// K19, K21: a declaration that was meant and is none ends the run at once, and says what is wrong with it
#[test]
fn a_declaration_that_is_none_ends_stalled_at_once() {
    for (line, why) in [
        ("SET_STATE {state: done}", "not valid JSON"),
        ("SET_STATE {\"stat\":\"done\"}", "'state' is missing"),
        ("SET_STATE {\"state\":\"working\"}", "is reserved"),
    ] {
        let life = Life::new(&[("build", &format!("echo w >>file; echo '{line}'"))]);
        life.event("work", "build", "");
        let (done, report) = life.report(&["work"]);
        assert_eq!((done.code, life.state("work")), (Some(1), "stalled".into()), "{report}");
        assert!(report["why"].as_str().unwrap().contains(why), "{report}");
        let body = life.body("work");
        assert!(body.contains("its SET_STATE line is no declaration") && body.contains(why), "{body}");
        assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw");
    }
    // Of several each is named.
    let life =
        Life::new(&[("build", "echo 'SET_STATE {state: done}'; echo 'SET_STATE {\"stat\":\"done\"}'")]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(1);
    let body = life.body("work");
    for said in ["SET_STATE {state: done}", "not valid JSON", "SET_STATE {\"stat\":", "'state' is missing"] {
        assert!(body.split("Last lines").next().unwrap().contains(said), "{said}: {body}");
    }
    // One that is valid counts, whatever else was printed.
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'; echo 'SET_STATE oops'")]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "done");
}

/// K2, K10, K20, K23: the older contract's runners read the body alone, and take its first paragraph for a title
#[test]
fn every_commit_that_is_written_here_is_read_by_the_rule_of_the_older_contract() {
    for prefix in ["dwp", "aynig"] {
        let next = match prefix {
            "dwp" => "printf %s \"$BODY\" >>\"$T/body\"; echo 'SET_STATE {\"state\":\"end\"}'".to_owned(),
            _ => "printf %s \"$BODY\" >>\"$T/body\"; git commit -q --allow-empty -m \"end\n\nEnd.\n\naynig-state: end\"".into(),
        };
        let life = Life::new(&[("build", &next), ("fail", "exit 3"), ("silent", "exit 0")]);
        life.run(&["set-state", "build", "-b", "work", "--dialect", prefix, "--no-tick"]).expect(0);
        life.run(&["set-state", "fail", "-b", "bad", "--dialect", prefix, "--no-tick"]).expect(0);
        life.run(&["set-state", "silent", "-b", "kept", "--dialect", prefix, "--no-tick"]).expect(0);
        for branch in ["work", "bad", "kept"] {
            life.tick(&["--lease", "300s", branch]);
        }
        life.run(&["retry", "bad", "--no-tick"]);
        life.run(&["cancel", "kept", "--no-tick"]).expect(0);
        assert_eq!(life.said("body"), "", "a body that nobody wrote is none");
        let mut seen = Vec::new();
        for branch in ["work", "bad", "kept"] {
            for commit in life.git(&["rev-list", branch]).lines() {
                let message = life.git(&["log", "-1", "--format=%B", commit]);
                let key = format!("\n{prefix}-state: ");
                let Some(state) = message.split(&key).nth(1).and_then(|rest| rest.lines().next()) else {
                    continue;
                };
                // Title: the first paragraph. Body: all that follows.
                let body = message.split_once("\n\n").map_or("", |(_, body)| body);
                life.write("as-read", body);
                let input = std::fs::File::open(life.path("as-read")).unwrap();
                let read =
                    life.repo.command("git").args(["interpret-trailers", "--parse"]).stdin(input).output();
                let parsed = String::from_utf8(read.unwrap().stdout).unwrap();
                assert!(parsed.contains(&format!("{prefix}-state: {state}")), "{commit}: {message}");
                let whole = life.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit]);
                assert_eq!(parsed.lines().count(), whole.trim().lines().count(), "{message}");
                seen.push(state.to_owned());
            }
        }
        for state in ["build", "working", "end", "canceled"] {
            assert!(seen.iter().any(|s| s == state), "{prefix}: {seen:?}");
        }
        assert!(prefix == "aynig" || seen.iter().any(|s| s == "stalled"), "{seen:?}");
    }
}

/// K14, K21, K37: a branch whose name is no UTF-8 keeps its slot and the process that lives on in it
#[test]
fn a_run_lives_on_on_a_branch_whose_name_is_no_text() {
    let world = World::any();
    let mut world = world;
    let shared = world.root();
    world.set("T", &shared);
    let script = "(echo $$; exec sh -c 'echo $$ >\"$T/pid\"; exec sleep 300') >/dev/null 2>&1 &\nuntil [ -s \"$T/pid\" ]; do sleep 0.01; done";
    let dir = crate::support::flow::repo(
        &world,
        &[("linger", script), ("quick", "echo 'SET_STATE {\"state\":\"done\"}'")],
    );
    let branch = OsStr::from_bytes(b"w\xffrk");
    let words = |args: &[&str]| args.iter().map(|a| OsStr::new(*a).to_owned()).collect::<Vec<_>>();
    let set = [words(&["set-state", "linger", "-b"]), vec![branch.to_owned()]].concat();
    world.aynig(&dir, &set).expect(0);
    world.aynig(&dir, &[words(&["tick", "--jobs", "1"]), vec![branch.to_owned()]].concat()).expect(0);
    let pid = std::fs::read_to_string(shared.join("pid")).unwrap();
    let pid = pid.trim();
    assert!(lives(pid));
    world.aynig(&dir, &["set-state", "quick", "-b", "other"]).expect(0);
    world.aynig(&dir, &["tick", "--jobs", "2", "other"]).expect(0);
    assert!(lives(pid), "it lost its slot while its lease lives");
    // And a later look at the first one's slot leaves it, too.
    world.aynig(&dir, &["gc"]).expect(0);
    assert!(lives(pid), "gc took its slot");
    world.aynig(&dir, &[words(&["cancel"]), vec![branch.to_owned()]].concat()).expect(0);
    world.aynig(&dir, &["gc"]);
    eventually("its end", || (!lives(pid)).then_some(()));
}

/// K36: what is hinted at for such a branch can be pasted.
#[test]
fn a_hint_for_a_branch_whose_name_is_no_text_can_be_pasted() {
    let world = World::any();
    let dir = crate::support::flow::repo(&world, &[("quiet", "exit 0")]);
    let branch = OsStr::from_bytes(b"w\xffr%k").to_owned();
    let words = |args: &[&str]| args.iter().map(|a| OsStr::new(*a).to_owned()).collect::<Vec<_>>();
    world.aynig(&dir, &[words(&["set-state", "quiet", "-b"]), vec![branch.clone()]].concat()).expect(0);
    let said = world.aynig(&dir, &[words(&["tick"]), vec![branch]].concat()).expect(0).err;
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: git aynig ")).unwrap();
    let mut shell = world.command("sh", &dir);
    let pasted =
        shell.args(["-c", &format!("'{}' {hint}", env!("CARGO_BIN_EXE_git-aynig"))]).output().unwrap();
    assert!(pasted.status.success(), "{hint}: {pasted:?}");
}

/// K23: why a declaration is none quotes it, and what is quoted is masked as what was printed.
#[test]
fn a_secret_in_a_declaration_that_is_none_is_in_no_commit() {
    let line = "echo \"SET_STATE {\\\"state\\\":\\\"bad $MY_TOKEN\\\"}\"";
    for script in [line.to_owned(), format!("{line}; {line}")] {
        let life = Life::new(&[("build", &script)]);
        life.event("work", "build", "");
        let mut tick = life.aynig(&["tick", "work"]);
        tick.env("MY_TOKEN", "hunter2secretvalue99").output().unwrap();
        let body = life.body("work");
        assert!(body.contains("is no declaration") && !body.contains("hunter2"), "{body}");
    }
}
