//! `diff`: which run is shown, and whose programs show it.

use crate::support::life::Life;
use crate::support::world::World;
use crate::verbs::rig::Rig;
use nix::sys::signal::Signal;
use std::io::Read;

/// K55
#[test]
fn a_run_is_its_branch_its_id_or_a_commit_of_it() {
    let rig = Rig::new();
    let trigger = rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let outcome = rig.git(&["rev-parse", "work"]);
    let lease = rig.git(&["rev-parse", "work~"]);
    let event = &rig.json(&["events", "work", "--json", "-n", "1"], 0, "aynig.events/1")[0];
    let run = event["run_id"].as_str().unwrap();
    let shown = rig.aynig(&["diff", "work"]).expect(0);
    assert_eq!(shown.out, rig.git(&["diff", &trigger, &outcome]) + "\n");
    assert!(shown.out.contains("+x") && shown.err.is_empty(), "{shown:?}");
    for what in [run, &run[..8], &trigger, &lease, &outcome, "work~", "refs/heads/work"] {
        assert_eq!(rig.aynig(&["diff", what]).expect(0).out, shown.out, "{what}");
    }
    assert_eq!(rig.aynig(&["diff", "work", "--", "--name-only"]).expect(0).out, "made.txt\n");
    assert_eq!(rig.aynig(&["diff", "work", "--", "--", "other.txt"]).expect(0).out, "");
    rig.aynig(&["diff", "work", "--", "--exit-code"]).expect(1);
    // What came after it changes nothing about the run.
    rig.set("work", "review");
    assert_eq!(rig.aynig(&["diff", "work"]).expect(0).out, shown.out);
    let said = rig.aynig(&["diff", "main"]).expect(128);
    assert!(said.err.contains("no command ran on 'main' yet"), "{}", said.err);
    for what in ["gone", "0123456789", "main~99", "--output=x"] {
        let said = rig.aynig(&["diff", what]);
        assert!([128, 129].contains(&said.code) && said.out.is_empty(), "{what}: {said:?}");
    }
}

/// K26, K55
#[test]
fn what_is_not_on_the_branch_is_shown_where_it_was_kept() {
    let rig = Rig::new();
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    let shown = rig.aynig(&["diff", "work", "--", "--stat"]).expect(0);
    assert!(shown.out.contains("made.txt"), "{shown:?}");
    assert!(shown.err.contains("did not finish: its work is kept in refs/aynig/attempts/"), "{}", shown.err);
    let attempt = rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
    assert_eq!(rig.aynig(&["diff", &attempt, "--", "--stat"]).expect(0).out, shown.out);
    // A canceled run is fenced: its work is kept too.
    let mut tick = rig.hold("held");
    let said = rig.aynig(&["diff", "held"]).expect(3);
    assert!(said.err.contains("has not ended"), "{}", said.err);
    assert!(said.err.contains("hint: git aynig wait held, or git aynig logs -f held"), "{}", said.err);
    rig.aynig(&["cancel", "held"]).expect(0);
    tick.wait().unwrap();
    let shown = rig.aynig(&["diff", "held", "--", "--name-only"]).expect(0);
    assert_eq!(shown.out, "made.txt\n", "{}", shown.err);
    // Another branch's attempt is no work of this one.
    rig.set("other", "fail");
    rig.aynig(&["-q", "diff", "other"]).expect(128);
}

/// K29, K55
#[test]
fn a_run_of_the_aynig_dialect_ends_where_its_command_wrote_so() {
    let world = World::any();
    let dir = world.init("repo");
    let command =
        "#!/bin/sh\necho new >new.txt\ngit add -A\ngit commit -qm 'more'\ngit aynig set-state done\n";
    world.commit_files(&dir, "main", &[(".aynig/command/go", command)], "commands");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["set-state", "go", "-b", "work", "--dialect", "aynig"]).expect(0);
    world.aynig(&dir, &["tick", "work"]).expect(0);
    let shown = world.aynig(&dir, &["diff", "work", "--", "--name-only"]).expect(0);
    assert_eq!(shown.out, "new.txt\n", "{}", shown.err);
}

/// K29, K55: what a command had committed is on the branch, however its run ended.
#[test]
fn what_a_run_of_the_aynig_dialect_committed_is_shown_where_it_was_canceled() {
    let world = World::any();
    let dir = world.init("repo");
    let commits = "#!/bin/sh\necho new >new.txt\ngit add -A\ngit commit -qm 'more'\n";
    let says_so = format!("{commits}git aynig set-working\nexit 1\n");
    let files = [(".aynig/command/go", &*says_so), (".aynig/command/leave", &format!("{commits}exit 1\n"))];
    world.commit_files(&dir, "main", &files, "commands");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["reset", "-q", "--hard"]);
    for state in ["go", "leave"] {
        world.aynig(&dir, &["set-state", state, "-b", state, "--dialect", "aynig"]).expect(0);
        world.aynig(&dir, &["tick", state]).expect(1);
        world.aynig(&dir, &["cancel", state]).expect(0);
        let shown = world.aynig(&dir, &["diff", state, "--", "--name-only"]).expect(0);
        assert_eq!(shown.out, "new.txt\n", "{state}: {}", shown.err);
        // A shallow clone has less to tell, and says so.
        for depth in ["1", "2", "3"] {
            let (from, to) = (format!("file://{}", dir.display()), format!("{state}-{depth}"));
            world.git(&world.root(), &["clone", "-q", "--depth", depth, "-b", state, &from, &to]);
            let said = world.aynig(&world.root().join(&to), &["diff", state]);
            assert!(!said.err.contains("missing"), "{depth}: {said:?}");
        }
    }
}

/// K55: a run that is canceled has not ended before its runner has, and may leave work yet.
#[test]
fn a_run_that_is_being_ended_has_not_left_nothing() {
    let life = Life::new(&[("build", "echo mine >>file; echo up >\"$T/up\"; read x <\"$T/go\"")]);
    let _gate = life.gate("go");
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    life.hear("up");
    tick.signal(Signal::SIGSTOP);
    life.run(&["cancel", "work"]).expect(0);
    for verb in ["diff", "shell"] {
        let said = life.run(&[verb, "work"]).expect(3);
        assert!(said.stderr.contains("has not ended"), "{said:?}");
    }
    tick.signal(Signal::SIGCONT);
    tick.done();
    let shown = life.run(&["diff", "work", "--", "--name-only"]).expect(0);
    assert_eq!(shown.stdout, "file\n", "{shown:?}");
}

/// What a verb shows on a terminal of this kind.
pub fn on_a_terminal(rig: &Rig, kind: &str, args: &[&str]) -> String {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = rig.world.command(rig.world.root().join("bin/git-aynig"), &rig.dir);
    command.env("TERM", kind).args(args);
    let end = || terminal.slave.try_clone().unwrap();
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(terminal.slave);
    drop(command);
    let mut shown = Vec::new();
    // A terminal without a user at its other end is read to its end by an error.
    let _ = std::fs::File::from(terminal.master).read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}

/// K34, K55, S29: the user's own pager and drivers; a repository's only once it is trusted
#[test]
fn the_users_pager_shows_it_and_a_repositorys_only_once_it_is_trusted() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    rig.git(&["config", "--global", "core.pager", "sed 's/^/mine: /'"]);
    let shown = on_a_terminal(&rig, "xterm", &["diff", "work"]);
    assert!(shown.contains("mine: ") && shown.contains("+++ b/made.txt"), "{shown}");
    rig.git(&["config", "core.pager", "sed 's/^/theirs: /'"]);
    rig.git(&["config", "diff.external", "echo external"]);
    let shown = on_a_terminal(&rig, "xterm", &["diff", "work"]);
    assert!(shown.contains("theirs: external"), "{shown}");
    rig.aynig(&["trust", "--revoke"]).expect(0);
    let shown = on_a_terminal(&rig, "xterm", &["diff", "work"]);
    assert!(shown.contains("mine: ") && shown.contains("+++ b/made.txt"), "{shown}");
    let said = rig.aynig(&["diff", "work", "--", "--submodule=log"]).expect(2);
    assert!(said.err.contains("hint: git aynig trust"), "{}", said.err);
}
