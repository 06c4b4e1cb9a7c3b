//! `land` by several at once, and by runners that are killed: every commit lands once.

use super::{CHECK, assert_landed_once, commit, life, work};
use crate::support::git_that;
use crate::support::life::{LONG, Running, eventually};
use crate::support::net::{Machine, Net};
use std::process::Command;
use std::time::Instant;

/// So often at least a landing that was killed is asked for again before it counts as one that never comes.
const ROUNDS: usize = 20;

/// K60: many branches, some of which fail or conflict, and four runners. `AYNIG_MANY=1`: 100 of them.
#[test]
fn many_branches_land_once_each_by_four_runners() {
    let count = if std::env::var_os("AYNIG_MANY").is_some() { 100 } else { 16 };
    let life = life(CHECK, "check: check\n");
    let mut wanted = Vec::new();
    for n in 0..count {
        let branch = format!("b{n:03}");
        match n % 8 {
            5 => drop(work(&life, &branch, "bad", "x\n")),
            _ => {
                work(&life, &branch, &format!("f{n}"), "x\n");
                wanted.push(format!("{branch}: f{n}"));
            }
        }
        let history = if n % 2 == 0 { "--merge" } else { "--linear" };
        life.run(&["land", &branch, history, "--no-tick"]).expect(0);
    }
    let runner = |_: usize| life.start(&["run", "--jobs", "2"]);
    let mut runners: Vec<Running> = (0..4).map(runner).collect();
    // One that finds all others waiting has nothing to do, and is called again, as a timer would.
    let is_open =
        || (0..count).any(|n| matches!(&*life.state(&format!("b{n:03}")), "land" | "check" | "working"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(600);
    while is_open() {
        assert!(std::time::Instant::now() < until, "they don't land");
        for at in &mut runners {
            if at.is_over() {
                *at = runner(0);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut stalled = 0;
    for n in 0..count {
        let state = life.state(&format!("b{n:03}"));
        assert_eq!(state, if n % 8 == 5 { "stalled" } else { "landed" }, "b{n:03}");
        stalled += usize::from(state == "stalled");
    }
    println!("{} of {count} landed, {stalled} failed their check", wanted.len());
    drop(runners);
    // Each as it was asked: by a merge of its own, or its own commit on the target's line.
    let line = life.git(&["log", "--first-parent", "--format=%P/%s", "main"]);
    for (n, landed) in (0..count).filter(|n| n % 8 != 5).map(|n| (n, format!("b{n:03}"))) {
        let subject = match n % 2 {
            0 => format!("/Merge branch '{landed}'"),
            _ => format!("/{landed}: f{n}"),
        };
        let found: Vec<&str> = line.lines().filter(|commit| commit.ends_with(&subject)).collect();
        let parents = if n % 2 == 0 { 1 } else { 0 };
        assert!(matches!(found[..], [one] if one.matches(' ').count() >= parents), "{subject}: {found:?}");
    }
    assert_landed_once(&life, &wanted);
}

/// K60: killed at any rename or link of a file (which is how refs, locks and indexes move), and asked for again: it lands once.
/// A sample; `AYNIG_MANY=1`: each of them. With strace.
#[test]
fn killed_anywhere_and_asked_again_it_lands_once() {
    if Command::new("strace").arg("-V").output().is_err() {
        return crate::support::skipped("strace is not here");
    }
    let step = if std::env::var_os("AYNIG_MANY").is_some() { 1 } else { 7 };
    let mut points = 0;
    for (call, first) in [("rename", 1), ("link,linkat", 3), ("renameat,renameat2", 2)] {
        for n in (first..).step_by(step) {
            let life = life(CHECK, "check: check\n");
            life.config("aynig.leaseDuration", "3s");
            life.config("aynig.fsync", "false");
            work(&life, "topic", "new", "x\n");
            let landing = life.aynig(&["land", "topic"]);
            let mut killed = life.repo.command("strace");
            let inject = format!("inject={call}:signal=SIGKILL:when={n}");
            killed.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]).arg(landing.get_program());
            killed.args(landing.get_args());
            killed.envs(landing.get_envs().filter_map(|(key, value)| Some((key, value?))));
            if killed.output().unwrap().status.success() {
                assert_landed_once(&life, &["topic: new".into()]);
                break;
            }
            points += 1;
            let (until, mut rounds) = (Instant::now() + LONG, 0);
            loop {
                let went_on = life.run(&["run"]);
                let rests = matches!(&*life.state("topic"), "" | "stalled");
                let again = rests.then(|| life.run(&["land", "topic"]));
                if again.as_ref().is_some_and(|again| again.code == Some(0))
                    || life.state("topic") == "landed"
                {
                    break;
                }
                rounds += 1;
                // On a busy machine a few verbs take as long: it has failed once that many of them were of no use, too.
                assert!(
                    Instant::now() < until || rounds < ROUNDS,
                    "never: it lands, killed at {call} {n}: {went_on:?}, {again:?}"
                );
            }
            assert_landed_once(&life, &["topic: new".into()]);
        }
    }
    println!("killed at {points} points");
    assert!(points > 2, "{points}");
}

/// Two branches that change the first and another line of one file, or both the first.
fn of_one_file(second: &str) -> crate::support::life::Life {
    let life = life(CHECK, "check: check\n");
    life.write("a", "1\n2\n3\n4\n5\n6\n7\n");
    commit(&life, "base");
    work(&life, "one", "a", "one\n2\n3\n4\n5\n6\n7\n");
    work(&life, "two", "a", second);
    life
}

const OTHER_LINE: &str = "1\n2\n3\n4\n5\n6\nseven\n";
const SAME_LINE: &str = "uno\n2\n3\n4\n5\n6\n7\n";

/// K28, K60: a target that moves in its working tree between the check and the landing has no local changes: the branch is
/// merged anew, and lands or conflicts.
#[test]
fn a_target_that_moves_at_the_last_moment_is_merged_anew() {
    for (second, ends) in [(OTHER_LINE, "landed"), (SAME_LINE, "stalled")] {
        let life = of_one_file(second);
        // Before the first look at the working tree.
        let script = format!(
            "case \"$*\" in *'--work-tree={dir}'*'update-index -q --refresh'*) if ! [ -e '{seen}' ]; then : >'{seen}'\n\
             (unset GIT_INDEX_FILE; \"$real\" -C '{dir}' merge -q --no-edit one); fi ;; esac\nexec \"$real\" \"$@\"",
            dir = life.repo.path().display(),
            seen = life.shared().join("seen").display(),
        );
        let mut landing = life.aynig(&["land", "two"]);
        landing.env("PATH", git_that(&life.shared(), &script));
        let said = crate::support::life::done(landing.output().unwrap());
        assert!(life.shared().join("seen").exists() && !said.stdout.contains("local changes"), "{said:?}");
        life.run(&["run"]);
        assert_eq!(life.state("two"), ends, "{said:?}");
        assert_eq!(life.body("two").contains("conflict"), ends == "stalled", "{}", life.body("two"));
        assert_eq!(life.git(&["status", "--porcelain"]), "", "{ends}");
        life.repo.assert_sound();
    }
}

/// K28, K60: nor has one that another runner is moving just then.
#[test]
fn two_landings_at_once_are_no_local_changes_to_each_other() {
    for round in 0..6 {
        let (second, ends) = [(OTHER_LINE, "landed"), (SAME_LINE, "stalled")][round % 2];
        let life = of_one_file(second);
        let said = life.run(&["land", "one", "two"]);
        life.run(&["run"]);
        let mut states = [life.state("one"), life.state("two")];
        states.sort();
        assert_eq!(states, ["landed", ends], "{said:?}");
        assert!(!said.stdout.contains("local changes") && !said.stdout.contains("git process"), "{said:?}");
        assert_eq!(life.git(&["status", "--porcelain"]), "");
        life.repo.assert_sound();
    }
}

/// K60, K53: a conflict is told all the same where the process that was to tell it was killed.
#[test]
fn a_conflict_is_told_by_the_next_verb_where_its_notice_was_killed() {
    let life = life(CHECK, "check: check\n");
    let script = "if mkdir \"$HOME/first\" 2>/dev/null; then kill -9 $PPID $$; fi; cat >>\"$HOME/told\"";
    life.config("aynig.notify", &format!("sh -c '{script}'"));
    work(&life, "apart", "file", "theirs\n");
    life.write("file", "ours\n");
    commit(&life, "ours");
    life.run(&["land", "apart"]).expect(1);
    let read = || std::fs::read_to_string(life.repo.home().join("told")).unwrap_or_default();
    let text = eventually("the notice", || {
        life.run(&["status"]).expect(0);
        Some(read()).filter(|text| text.ends_with('\n'))
    });
    let one: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&one["kind"], &one["commit"]), (&"stalled".into(), &life.rev("apart").into()));
    assert_eq!(one["run_id"], serde_json::Value::Null);
}

/// A branch of the remote with one commit of one file, made in a clone.
fn pushed(machine: &Machine<'_>, branch: &str) {
    machine.git(&["checkout", "-q", "-b", branch, "origin/main"]);
    std::fs::write(machine.dir.join(branch), "x\n").unwrap();
    machine.git(&["add", "-A"]);
    machine.git(&["commit", "-qm", &format!("{branch}: {branch}")]);
    machine.git(&["push", "-q", "origin", branch]);
    machine.git(&["checkout", "-q", "main"]);
}

/// K60: of a remote the target is the remote's: who comes second lands on what the first has landed.
#[test]
fn two_clones_land_onto_one_remote_main() {
    for (rules, merges) in [("check: check\n", 6), ("check: check\nhistory: linear\n", 0)] {
        let net = Net::new(&[("check", &format!("{CHECK}; echo x >>\"$T/checks\""))]);
        net.life.write(".aynig/land", rules);
        commit(&net.life, "rules");
        net.life.git(&["push", "-q", "origin", "main"]);
        let start = net.rev("main");
        let machines = [net.machine("a"), net.machine("b")];
        let all = [["one", "two", "three"], ["four", "five", "six"]];
        for (machine, branches) in machines.iter().zip(all) {
            branches.iter().for_each(|branch| pushed(machine, branch));
        }
        let call = |machine: &Machine<'_>, branches: [&str; 3]| {
            Running::of(machine.aynig(&[&["land", "--remote", "origin"], &branches[..]].concat()))
        };
        let landing: Vec<Running> =
            machines.iter().zip(all).map(|(machine, branches)| call(machine, branches)).collect();
        for running in landing {
            let done = running.done();
            assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
        }
        // Whose turn it was not is looked at again, as a timer would.
        eventually("all land", || {
            machines.iter().for_each(|machine| drop(machine.run(&["run", "--remote", "origin"])));
            all.iter().flatten().all(|branch| net.states(branch)[0] == "landed").then_some(())
        });
        let subjects = net.git(&["log", "--format=%s", &format!("{start}..main")]);
        for branch in all.iter().flatten() {
            let subject = format!("{branch}: {branch}");
            assert_eq!(subjects.lines().filter(|line| **line == *subject).count(), 1, "{subjects}");
        }
        let made = net.git(&["rev-list", "--merges", "--count", &format!("{start}..main")]);
        assert_eq!(made, merges.to_string(), "{subjects}");
        for machine in &machines {
            assert_eq!(machine.git(&["status", "--porcelain"]), "");
        }
        net.git(&["fsck", "--strict", "--no-dangling"]);
    }
}
