//! Notices: who is told what, once, and that no process waits for it.

use crate::support::life::{Life, eventually};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

fn next(state: &str) -> String {
    format!("echo 'SET_STATE {{\"state\":\"{state}\"}}'")
}

/// A program for `aynig.notify`, in a folder whose name has a blank.
fn program(life: &Life, script: &str) -> PathBuf {
    let path = life.repo.home().join("my notify");
    crate::support::write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    path
}

/// A repository where notices are lines of `$HOME/told`.
fn told_of(commands: &[(&str, &str)]) -> Life {
    let life = Life::new(commands);
    let told = life.repo.home().join("told");
    let program = program(&life, &format!("cat >>'{}'", told.display()));
    life.config("aynig.notify", &format!("'{}'", program.display()));
    life
}

fn told(life: &Life) -> Vec<Value> {
    let text = fs::read_to_string(life.repo.home().join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until nothing is owed any more: who gives a notice settles it.
fn settled(life: &Life) {
    let notices = life.repo.git_dir().join("aynig/notices");
    eventually("no notice is owed", || (fs::read_dir(&notices).unwrap().count() == 0).then_some(()));
}

fn hook_log(life: &Life) -> String {
    fs::read_to_string(life.path(".aynig/logs/hook.log")).unwrap_or_default()
}

/// K53: of a branch that waits for a person, a question, a run that stalled, a chain that is too long; of no end, and
/// of nothing that a command answers.
#[test]
fn a_person_is_told_what_waits_for_one() {
    let asks = "echo 'SET_STATE {\"state\":\"deploy\",\"trailers\":[\"dwp-question: 0192f0a0-1234-7abc-8def-0123456789ab\"]}'";
    let life = told_of(&[
        ("wait", &next("review")),
        ("ask", asks),
        ("fail", "echo broken >&2; exit 3"),
        ("end", &next("done")),
        ("on", &next("end")),
        ("loop", &next("loop")),
    ]);
    life.config("aynig.maxHops", "3");
    for state in ["wait", "ask", "fail", "end", "on", "loop"] {
        life.event(state, state, "");
    }
    life.run(&["run"]);
    let all = eventually("four notices", || Some(told(&life)).filter(|all| all.len() >= 4));
    let mut kinds: Vec<_> =
        all.iter().map(|n| (n["branch"].as_str().unwrap(), n["kind"].as_str().unwrap())).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [("ask", "question"), ("fail", "stalled"), ("loop", "hop-limit"), ("wait", "waiting")]);
    for notice in &all {
        assert_eq!(notice["schema"], "aynig.notice/1");
        let branch = notice["branch"].as_str().unwrap();
        assert_eq!(notice["commit"], life.rev(branch), "{notice}");
        assert_eq!(notice["repository"], life.repo.path().to_str().unwrap());
    }
    let stalled = all.iter().find(|n| n["kind"] == "stalled").unwrap();
    assert_eq!((&stalled["why"], &stalled["origin_state"]), (&"exit 3".into(), &"fail".into()));
    assert!(stalled["body"].as_str().unwrap().contains("broken"));
    settled(&life);
    // Another look at what stands as it stood tells no user again.
    life.run(&["run"]);
    life.run(&["status"]).expect(0);
    assert_eq!(told(&life).len(), 4);
}

/// K49, K53: a question at which a running command waits is told while it waits.
#[test]
fn a_question_is_told_while_its_command_waits() {
    let life = told_of(&[(
        "build",
        &format!("git aynig ask 'Deploy it?' --choice yes --wait || exit 1\n{}", next("done")),
    )]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    let all = eventually("the question", || Some(told(&life)).filter(|all| !all.is_empty()));
    assert_eq!(
        (&all[0]["kind"], &all[0]["subject"], &all[0]["state"]),
        (&"question".into(), &"Deploy it?".into(), &"working".into())
    );
    let id = all[0]["question"].as_str().unwrap();
    assert_eq!(all[0]["commit"], life.rev(&format!("refs/aynig/asked/{id}")));
    life.run(&["answer", "work", "yes"]).expect(0);
    tick.done().expect(0);
    assert_eq!((life.state("work").as_str(), told(&life).len()), ("done", 1));
}

/// K53: a program that hangs, fails, floods, reads nothing or is not there delays no tick; what went wrong is one line.
#[test]
fn nobody_waits_for_the_program() {
    for (what, script, said) in [
        ("hangs", "echo $$ >\"$HOME/pid\"; sleep 1000 & exec sleep 1000", "took longer than 10 s"),
        (
            "fails",
            "echo one >&2; printf 'two\\033[31m\\n' >&2; exit 3",
            "failed (exit status: 3): two\\x1b[31m",
        ),
        ("floods", "yes; exit 1", "took longer than 10 s"),
        ("missing", "", "No such file"),
    ] {
        let life = Life::new(&[("build", &next("review"))]);
        let program = program(&life, script);
        if what == "missing" {
            fs::remove_file(&program).unwrap();
        }
        life.config("aynig.notify", &format!("'{}' --flag", program.display()));
        life.event("work", "build", "");
        life.tick(&["work"]).expect(0);
        assert!(!hook_log(&life).contains("took longer"), "{what}: it was waited for");
        assert_eq!(life.state("work"), "review");
        let log = eventually(what, || Some(hook_log(&life)).filter(|log| log.contains("aynig.notify")));
        assert!(log.contains(said) && log.lines().count() == 1, "{what}: {log}");
    }
}

/// K53: a runner that is killed between its commit and its notice leaves that to the next verb, which gives it once.
#[test]
fn a_notice_that_a_killed_runner_owed_is_given_once() {
    let life = told_of(&[(
        "build",
        "echo $PPID >\"$T/guardian\"; git aynig set-state review; echo up >\"$T/up\"; read x <\"$T/gate\"",
    )]);
    life.event("work", "build", "");
    let _gate = life.gate("gate");
    let tick = life.start_tick(&["work"]);
    life.hear("up");
    tick.signal(nix::sys::signal::Signal::SIGKILL);
    assert_eq!(life.state("work"), "review");
    eventually("the notice", || {
        life.run(&["status"]).expect(0);
        (!told(&life).is_empty()).then_some(())
    });
    let all = told(&life);
    assert_eq!(
        (all.len(), &all[0]["kind"], &all[0]["commit"]),
        (1, &"waiting".into(), &life.rev("work").into())
    );
    settled(&life);
    life.run(&["status"]).expect(0);
    assert_eq!(told(&life).len(), 1);
}

/// K53: who gives a notice settles it: killed while the program runs, all at once, it is left to the next verb, which gives it
/// once more; and no other process gives it meanwhile.
#[test]
fn a_notice_outlives_the_process_that_gives_it_and_its_program() {
    for (what, kill, is_told_twice) in [
        ("before it was told", "kill -9 $PPID $$", false),
        ("after it was told", "cat >>\"$HOME/told\"; kill -9 $PPID $$", true),
        ("the program alone", "kill -9 $$", false),
    ] {
        let life = Life::new(&[("build", &next("review"))]);
        let once = format!("if mkdir \"$HOME/first\" 2>/dev/null; then read x <\"$HOME/gate\"; {kill}; fi");
        let program = program(&life, &format!("{once}\ncat >>\"$HOME/told\""));
        life.config("aynig.notify", &format!("'{}'", program.display()));
        let gate = life.repo.home().join("gate");
        nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
        life.event("work", "build", "");
        life.tick(&["work"]).expect(0);
        let notices = life.repo.git_dir().join("aynig/notices");
        let left = || fs::read_dir(&notices).unwrap().count();
        eventually(what, || life.repo.home().join("first").exists().then_some(()));
        // A process that comes by while it is given leaves it to the one that gives it.
        life.run(&["status"]).expect(0);
        assert_eq!((told(&life).len(), left()), (0, 1), "{what}");
        fs::write(&gate, "x\n").unwrap();
        let wanted = 1 + usize::from(is_told_twice);
        eventually(what, || {
            life.run(&["status"]).expect(0);
            (told(&life).len() == wanted && left() == 0).then_some(())
        });
        life.run(&["status"]).expect(0);
        let all = told(&life);
        assert_eq!(all.len(), wanted, "{what}: {all:?}");
        assert!(all.iter().all(|one| one["commit"] == life.rev("work")), "{what}: {all:?}");
    }
}

/// K53: a notice that was cut off, as its runner was killed while it handed it over, is told by no process, and is
/// owed still.
#[test]
fn a_notice_that_was_cut_off_is_not_given_and_stays_owed() {
    let life = told_of(&[]);
    let name = "0192f0a0-1234-4abc-8def-0123456789ab";
    let note = life.repo.git_dir().join("aynig/notices").join(name);
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    fs::write(&note, "{}").unwrap();
    let whole = "{\"schema\":\"aynig.notice/1\"}";
    for (said, is_given) in [("", false), (&whole[..20], false), (whole, true)] {
        let input = life.repo.home().join("input");
        fs::write(&input, said).unwrap();
        let mut giver = life.aynig(&["notify", "--owed", name]);
        assert!(giver.stdin(fs::File::open(&input).unwrap()).status().unwrap().success());
        assert_eq!((told(&life).len(), note.exists()), (usize::from(is_given), !is_given), "{said:?}");
    }
}

/// K53, K8: a recovery is told of by who makes it, and what is left of a note that no process understands goes.
#[test]
fn a_recovery_is_told_and_a_foreign_note_is_nothing() {
    let life = told_of(&[("build", &next("review"))]);
    life.event("work", "build", "");
    life.lease("work", "build", "0192f0a0-1234-4abc-8def-0123456789ab", 1, 60);
    let notices = life.repo.git_dir().join("aynig/notices");
    fs::create_dir_all(&notices).unwrap();
    fs::write(notices.join("nonsense"), "{").unwrap();
    life.tick(&["work"]);
    let all = eventually("the notice", || Some(told(&life)).filter(|all| !all.is_empty()));
    assert_eq!((all.len(), &all[0]["kind"]), (1, &"stalled".into()));
    settled(&life);
}
