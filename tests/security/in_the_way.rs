//! Names that stand in the way, and names that look like something else. Row S34.

use crate::support::life::{BIN, Life};
use crate::support::net::Net;
use crate::support::skipped;
use std::os::unix::fs::PermissionsExt;

fn life() -> Life {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'"), ("fail", "exit 1")]);
    ["one", "two", "three"].iter().for_each(|name| drop(life.event(name, "build", "")));
    life
}

/// What refs hold that a hint has moved, given a repository's refs: `git for-each-ref` with ids and names.
fn moved(refs: &str, name: &str) -> Vec<String> {
    let rest = name.strip_prefix("refs/").unwrap();
    let of = |line: &str| {
        let (id, place) = line.split_once(' ').unwrap();
        let (_, to) = place.strip_prefix("refs/moved-")?.split_once('/')?;
        (to == rest).then(|| id.to_owned())
    };
    refs.lines().filter_map(of).collect()
}

const REFS: [&str; 2] = ["for-each-ref", "--format=%(objectname) %(refname)"];

/// The command of the first hint, as a person pastes it.
fn paste(life: &Life, said: &str) {
    let hint =
        said.lines().find_map(|l| l.trim_start().strip_prefix("hint: ")).unwrap_or_else(|| panic!("{said}"));
    let mut command = life.repo.command("sh");
    let output = command.current_dir(life.repo.path()).args(["-c", hint]).output().unwrap();
    assert!(output.status.success(), "{hint}: {output:?}");
}

/// K44: a user's ref has the name of the folder that ours are in.
#[test]
fn s34_a_ref_in_the_way_is_told_once_and_nothing_is_claimed() {
    for name in ["refs/aynig/run", "refs/aynig/attempts", "refs/aynig"] {
        let life = life();
        let main = life.rev("main");
        life.git(&["update-ref", name, &main]);
        let said = life.tick(&["--jobs", "1"]).expect(128);
        let error = format!("'{name}' is in the way");
        assert_eq!(said.stderr.matches(&error).count(), 1, "{said:?}");
        let said = life.tick(&["one", "two"]).expect(128);
        assert_eq!(said.stderr.matches(&error).count(), 1, "{said:?}");
        for branch in ["one", "two", "three"] {
            assert_eq!(life.states(branch), ["build"]);
        }
        let found = life.run(&["doctor"]);
        assert!(found.stdout.contains(&error), "{found:?}");
        paste(&life, &said.stderr);
        assert_eq!((life.try_rev(name), moved(&life.git(&REFS), name)), (None, vec![main.clone()]));
        // It comes again, and refs stand where others might be moved to.
        for other in ["refs/moved", "refs/moved-aynig", name] {
            life.git(&["update-ref", other, &main]);
        }
        paste(&life, &life.tick(&["two"]).expect(128).stderr);
        life.git(&["update-ref", name, &main]);
        paste(&life, &life.run(&["doctor"]).stdout);
        assert_eq!((life.try_rev(name), moved(&life.git(&REFS), name)), (None, vec![main; 3]));
        // Another one comes, which the first is not in the way of.
        if name == "refs/aynig" {
            life.git(&["update-ref", "refs/aynig/attempts", "HEAD"]);
            paste(&life, &life.tick(&[]).expect(128).stderr);
        }
        life.tick(&[]).expect(0);
        assert_eq!(life.states("three"), ["done", "working", "build"]);
        assert!(!life.run(&["doctor"]).stdout.contains("in the way"));
    }
}

/// K43: `doctor` names each of several refs in the way at once.
#[test]
fn s34_each_ref_in_the_way_is_named_by_doctor() {
    let life = life();
    for name in ["refs/aynig/run", "refs/aynig/attempts", "refs/aynig/asked", "refs/aynig/flows"] {
        life.git(&["update-ref", name, "main"]);
    }
    let said = life.run(&["doctor"]).stdout;
    said.lines().filter(|line| line.contains("hint: ")).for_each(|line| paste(&life, line));
    let said = life.run(&["doctor"]).stdout;
    assert!(!said.contains("in the way"), "{said}");
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/"]), "");
}

/// K44: so has a symbolic ref, wherever it leads; what it points to stays.
#[test]
fn s34_a_symbolic_ref_in_the_way_is_told_with_what_removes_it() {
    for (name, target) in [("refs/aynig/run", "refs/heads/main"), ("refs/aynig/attempts", "refs/heads/gone")]
    {
        let life = life();
        let main = life.rev("main");
        life.git(&["symbolic-ref", name, target]);
        let said = life.tick(&["one"]).expect(128);
        assert!(said.stderr.contains(&format!("'{name}': it is a symbolic ref")), "{said:?}");
        let hint = format!("hint: git symbolic-ref -d {name}");
        assert!(said.stderr.contains(&hint), "{said:?}");
        let found = life.run(&["doctor"]).stdout;
        assert!(found.contains(&hint), "{found}");
        paste(&life, &said.stderr);
        life.tick(&[]).expect(0);
        assert_eq!((life.state("one"), life.rev("main")), ("done".into(), main));
    }
}

/// K36, K46, K49, K50: nor is there another name to use for one of our refs that is made a symbolic one.
#[test]
fn s34_a_symbolic_ref_at_an_id_is_told_with_what_removes_it() {
    let id = "0197a4b0-7f00-7000-8000-000000000001";
    for (folder, verb) in [("asked", &["answer", id, "yes"][..]), ("paused", &["resume", id])] {
        let life = life();
        let (name, main) = (format!("refs/aynig/{folder}/{id}"), life.rev("main"));
        life.git(&["symbolic-ref", &name, "refs/heads/gone"]);
        let said = life.run(verb).stderr;
        assert!(said.contains(&format!("'{name}' is a symbolic ref to 'gone'")), "{said}");
        assert!(said.contains(&format!("hint: git symbolic-ref -d {name}\n")), "{said}");
        assert!(!said.contains("name the branch itself"), "{said}");
        paste(&life, &said);
        assert!(!life.run(verb).stderr.contains("symbolic ref"));
        assert_eq!(life.rev("main"), main);
    }
}

/// K39, K44: who pushes is not told of a run that can't begin.
#[test]
fn s34_a_pusher_is_told_what_is_in_the_way_of_runs() {
    let server = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    server.run(&["hooks", "install"]).expect(0);
    server.git(&["update-ref", "refs/aynig/attempts", "HEAD"]);
    server.event("work", "build", "");
    let push = |branch: &str| {
        let mut command = server.repo.command("git");
        let path = format!(
            "{}:{}",
            std::path::Path::new(BIN).parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let output = command.env("PATH", path).args(["push", ".", &format!("work:{branch}")]).output();
        String::from_utf8_lossy(&output.unwrap().stderr).into_owned()
    };
    let said = push("refs/heads/pushed");
    assert!(said.contains("'refs/aynig/attempts' is in the way"), "{said}");
    assert!(!said.contains("dispatched"), "{said}");
    server.git(&["update-ref", "-d", "refs/aynig/attempts"]);
    let said = push("refs/heads/again");
    assert!(said.contains("aynig: build dispatched on again"), "{said}");
}

/// K46, K49, K50: a run does without what messages, questions and pauses are in; `doctor` names what stands there.
#[test]
fn s34_a_ref_in_the_way_of_messages_is_named_by_doctor_alone() {
    for name in ["refs/aynig/inbox", "refs/aynig/heard", "refs/aynig/asked", "refs/aynig/paused"] {
        let life = life();
        let main = life.rev("main");
        life.git(&["update-ref", name, &main]);
        life.tick(&["one"]).expect(0);
        let found = life.run(&["doctor"]);
        assert!(found.stdout.contains(&format!("'{name}' is in the way")), "{found:?}");
        paste(&life, &found.stdout);
        assert_eq!(life.try_rev(name), None);
        assert!(!life.run(&["doctor"]).stdout.contains("in the way"));
    }
}

/// K30: a user's ref has the name of the folder that a remote's branches are heard in.
#[test]
fn s34_a_ref_in_the_way_of_what_a_remote_says_is_told_with_what_mends_it() {
    for name in ["refs/aynig/remote", "refs/aynig/remote/origin"] {
        let net = Net::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
        net.event("work", "build", "");
        let a = net.machine("a");
        let main = a.git(&["rev-parse", "HEAD"]);
        a.git(&["update-ref", name, &main]);
        let said = a.tick(&["work"]).expect(128);
        assert!(said.stderr.contains(&format!("'{name}' is in the way")), "{said:?}");
        assert_eq!(net.states("work"), ["build"]);
        let found = a.run(&["doctor"]);
        let error = format!("'{name}' is in the way");
        assert_eq!(found.stdout.matches(&error).count(), 1, "{found:?}");
        let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).expect("a hint");
        let mut command = net.life.repo.command("sh");
        assert!(command.current_dir(&a.dir).args(["-c", hint]).status().unwrap().success(), "{hint}");
        assert_eq!(moved(&a.git(&REFS), name), [main]);
        a.tick(&["work"]).expect(0);
        assert_eq!(net.states("work"), ["done", "working", "build"]);
        assert!(!a.run(&["doctor"]).stdout.contains("in the way"));
    }
}

/// K14: what no run could be prepared in is found before anything is claimed, and told once with what mends it.
#[test]
fn s34_a_runner_that_could_run_nothing_claims_nothing() {
    let life = life();
    let file = life.shared().join("file");
    std::fs::write(&file, "").unwrap();
    life.config("aynig.worktreeDir", file.join("below").to_str().unwrap());
    let runs = life.repo.git_dir().join("aynig/runs");
    for what in ["worktrees", "runs"] {
        let said = life.tick(&[]).expect(128);
        assert_eq!(said.stderr.matches(&format!("where {what} are kept")).count(), 1, "{said:?}");
        assert_eq!(said.stderr.matches("hint: ").count(), if what == "runs" { 1 } else { 2 }, "{said:?}");
        for branch in ["one", "two", "three"] {
            assert_eq!(life.states(branch), ["build"], "{what}");
        }
        assert!(!life.repo.git_dir().join("worktrees").exists());
        if what == "worktrees" {
            life.git(&["config", "--global", "--unset", "aynig.worktreeDir"]);
            std::fs::create_dir_all(runs.parent().unwrap()).unwrap();
            std::fs::write(&runs, "").unwrap();
        }
    }
    std::fs::remove_file(runs).unwrap();
    life.tick(&[]).expect(0);
    assert_eq!(life.state("two"), "done");
}

/// K13, K14: so is what a run would write to only once its branch is claimed, whether another thing stands in the place of the
/// folder or the folder is closed.
#[test]
fn s34_a_folder_that_a_run_would_fail_in_is_found_before_the_claim() {
    let places = [
        ("worktrees", "registrations of worktrees"),
        ("aynig/slots", "notes of worktrees"),
        ("aynig/commands", "copies of commands"),
    ];
    for (name, what) in places {
        for closed in [false, true] {
            if closed && nix::unistd::geteuid().is_root() {
                skipped("S34: root writes everywhere");
                continue;
            }
            let life = life();
            let place = life.repo.git_dir().join(name);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            if closed {
                std::fs::create_dir(&place).unwrap();
                std::fs::set_permissions(&place, PermissionsExt::from_mode(0o555)).unwrap();
            } else {
                std::fs::write(&place, "").unwrap();
            }
            let said = life.tick(&["--jobs", "1"]).expect(128);
            let error = format!("/{name}', where {what} are kept");
            assert_eq!(said.stderr.matches(&error).count(), 1, "{said:?}");
            assert_eq!(said.stderr.matches("hint: ").count(), 1, "{said:?}");
            for branch in ["one", "two", "three"] {
                assert_eq!(life.states(branch), ["build"], "{name}");
            }
            let found = life.run(&["doctor"]);
            let wrong = if closed { "cannot be written" } else { "is no folder" };
            assert!(found.stdout.contains(&format!("/{name}' {wrong}")), "{found:?}");
            paste(&life, &said.stderr);
            life.tick(&[]).expect(0);
            assert_eq!(life.state("three"), "done");
            assert!(!life.run(&["doctor"]).stdout.contains(&format!("/{name}' {wrong}")));
        }
    }
}

/// K36: git-aynig itself refuses such a name; a user may push it. `HEAD` is a ref of its own to Git, and to every verb.
#[test]
fn s34_a_branch_that_is_named_as_an_option_or_as_head_is_none_in_a_hint() {
    for name in ["--help", "HEAD"] {
        let life = life();
        let full = format!("refs/heads/{name}");
        let id = life.event("plain", "fail", "");
        life.git(&["update-ref", &full, &id]);
        let said = life.tick(&[]);
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains(name) && !said.contains(&format!("git aynig retry {name}")), "{said}");
        assert!(said.contains(&format!("git aynig retry {full}")), "{said}");
        life.run(&["retry", &full]).expect(0);
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
        assert_eq!(life.git(&["log", "-1", format, &full]), "fail");
        life.run(&["status", &full]).expect(0);
        assert_eq!(life.tick(&[&full]).expect(1).stderr.matches("retry").count(), 1);
        life.run(&["logs", &full]).expect(0);
        life.run(&["diff", &full]).expect(0);
        life.run(&["set-state", "next", "-b", &full]).expect(0);
        life.git(&["update-ref", "-d", &full]);
        let code = if name == "HEAD" { 128 } else { 0 };
        life.run(&["set-state", "next", "-b", &full]).expect(code);
    }
}
