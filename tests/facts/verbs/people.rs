//! What people read while they work: who it is about, why, for how long, and what to type from where they stand.

use crate::support::net::Net;
use crate::verbs::rig::Rig;
use std::process::Command;

impl Rig {
    /// A shell in some folder, which says in `PWD` where it is.
    fn shell(&self, script: &str) -> Command {
        let mut shell = self.world.command("sh", &self.dir);
        let path = format!("{}:{}", self.world.root().join("bin").display(), std::env::var("PATH").unwrap());
        shell.args(["-ec", script]).env("PATH", path);
        shell
    }
}

#[test]
fn a_run_says_how_long_it_has_been_running_and_its_lease_only_when_asked() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let text = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(text.contains(", running ") && !text.contains("left") && !text.contains("lease"), "{text}");
    let text = rig.aynig(&["-v", "status", "work"]).expect(0).out;
    assert!(text.contains(", running ") && text.contains(", its lease ends in "), "{text}");
    let [status] = &rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[..] else { panic!() };
    assert!(status["began"].as_i64().unwrap() > 0);
    rig.go();
    assert!(held.wait_with_output().unwrap().status.success());
}

/// K18: a renewal does not begin the run again.
#[test]
fn a_run_that_was_renewed_began_with_its_first_lease() {
    let rig = Rig::new();
    let began = crate::support::world::now() - 7200;
    let lease = |run: &str| format!("x\n\ndwp-state: working\ndwp-run-id: {run}\ndwp-lease-seconds: 86400\n");
    rig.git(&["branch", "work", "main"]);
    for (after, run) in [(0, "r0"), (600, "r1"), (4000, "r1"), (7000, "r1")] {
        let id =
            rig.world.raw_commit_dated(&rig.dir, "next", &(began + after).to_string(), lease(run).as_bytes());
        let tree = rig.git(&["rev-parse", &format!("{id}^{{tree}}")]);
        let date = format!("@{} +0000", began + after);
        let mut commit = rig.world.command("git", &rig.dir);
        commit.args(["commit-tree", &tree, "-p", "work", "-m", lease(run).trim_end()]);
        let id = commit.env("GIT_COMMITTER_DATE", date).output().unwrap().stdout;
        rig.git(&["update-ref", "refs/heads/work", String::from_utf8(id).unwrap().trim()]);
    }
    let [status] = &rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[..] else { panic!() };
    assert_eq!(status["began"].as_u64(), Some(began + 600));
    let text = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(text.contains("in run r1 by unknown, running 1h 50m"), "{text}");
}

#[test]
fn a_stalled_branch_says_why() {
    let rig = Rig::new();
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    let text = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(text.contains(": exit 3; waits for git aynig retry work"), "{text}");
    let [status] = &rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[..] else { panic!() };
    assert_eq!(status["why"], "exit 3");
}

#[test]
fn what_several_commands_print_at_once_says_whose_it_is() {
    let rig = Rig::new();
    let script = "#!/bin/sh\nprintf 'one\\ntwo'\necho bad >&2\necho\nprintf 'last'\nexit 1\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/say", script)], "say");
    rig.set("a", "say");
    rig.set("b", "say");
    let said = rig.aynig(&["run", "--tee", "-j", "2"]).expect(1);
    for branch in ["a", "b"] {
        let of = |text: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{branch} | ")));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&said.out), ["one", "two", "last"], "{}", said.out);
        assert_eq!(of(&said.err), ["bad"], "{}", said.err);
    }
    // One alone is passed on as it is.
    rig.aynig(&["retry", "a"]).expect(0);
    let said = rig.aynig(&["tick", "--tee", "-j", "2", "a"]).expect(1);
    assert!(said.out.starts_with("one\ntwo\nlast"), "{}", said.out);
}

#[test]
fn nothing_to_do_is_said_once_and_not_of_what_was_done() {
    let rig = Rig::new();
    rig.git(&["branch", "nt", "main"]);
    for verb in ["run", "tick"] {
        let said = rig.aynig(&[verb, "nt"]).expect(0);
        assert_eq!(said.out, "nt: nothing to do: the head is no state event\n");
    }
    rig.set("work", "ok");
    let said = rig.aynig(&["run", "work"]).expect(0);
    assert!(said.out.starts_with("work: ok -> done (") && said.out.lines().count() == 1, "{}", said.out);
}

#[test]
fn help_and_version_are_words_too() {
    let rig = Rig::new();
    let page = rig.aynig(&["--help"]).expect(0).out;
    assert_eq!(rig.aynig(&["help"]).expect(0).out, page);
    assert_eq!(rig.aynig(&["help", "tick"]).expect(0).out, rig.aynig(&["tick", "--help"]).expect(0).out);
    assert_eq!(rig.aynig(&["version"]).expect(0).out, rig.aynig(&["--version"]).expect(0).out);
    rig.aynig(&["help", "nonsense"]).expect(129);
}

#[test]
fn outside_of_a_repository_each_verb_says_what_to_do() {
    let rig = Rig::new();
    for verb in ["status", "tick", "run", "gc", "trust"] {
        let said = rig.world.aynig(&rig.world.root().join("home"), &[verb]).expect(128);
        assert!(said.err.contains("hint: cd into a repository, or git init"), "{}", said.err);
    }
    // The file system says it, in whatever language Git does.
    let git = rig.world.root().join("bin/git");
    std::fs::remove_file(&git).unwrap();
    crate::support::write_program(&git, "#!/bin/sh\necho 'fatal: Kein Git-Repository' >&2\nexit 128\n");
    let said = rig.world.aynig(&rig.world.root().join("home"), &["status"]).expect(128);
    assert!(said.err.contains("hint: cd into a repository, or git init"), "{}", said.err);
    // One that can't be opened is not none.
    let broken = rig.world.root().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join(".git"), "gitdir: /nowhere\n").unwrap();
    let said = rig.world.aynig(&broken, &["status"]).expect(128);
    assert!(!said.err.contains("git init"), "{}", said.err);
}

/// K36: a hint can be pasted where its reader stands.
#[test]
fn hints_of_a_call_from_elsewhere_lead_there() {
    let rig = Rig::new();
    rig.set("work", "fail");
    let script = "cd /; git -C \"$1\" aynig tick work";
    let said = rig.shell(script).args(["sh", rig.dir.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    let hint =
        said.lines().find_map(|line| line.strip_prefix("hint: ").filter(|hint| hint.contains("retry")));
    let hint = hint.unwrap_or_else(|| panic!("{said}"));
    assert!(hint.starts_with("git -C "), "{hint}");
    let again = rig.shell(&format!("cd /; {hint}")).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    // Who stands there is told no detour.
    let said = rig.shell("git aynig tick work").output().unwrap();
    assert!(String::from_utf8(said.stderr).unwrap().contains("hint: git aynig retry work"));
}

/// K16, K30: the log of a run is where it ran, and that is said.
#[test]
fn a_log_of_another_machine_names_it() {
    let net = Net::new(&[("build", "echo hi; echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.event("work", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let run = |machine: &crate::support::net::Machine<'_>, args: &[&str]| {
        crate::support::life::done(machine.aynig(args).output().unwrap())
    };
    run(&a, &["tick", "--remote", "origin", "work"]).expect(0);
    assert!(run(&a, &["logs", "--remote", "origin", "work"]).expect(0).stdout.starts_with("hi\n"));
    let said = run(&b, &["logs", "--remote", "origin", "work"]).expect(128);
    assert!(said.stderr.contains("hint: it ran on '") && said.stderr.contains("'): look there"), "{said:?}");
}

/// K34: where only the repository's own configuration names the remote, the mend is to name it oneself.
#[test]
fn a_remote_that_is_not_asked_is_named_in_the_hint() {
    let net = Net::new(&[("build", "exit 1")]);
    net.event("work", "build", "");
    let machine = net.machine("a");
    machine.git(&["config", "--global", "--unset-all", "aynig.commandsFrom"]);
    machine.git(&["config", "aynig.remote", "origin"]);
    let run = |args: &[&str]| crate::support::life::done(machine.aynig(args).output().unwrap());
    for args in [&["status"][..], &["status", "work"], &["events", "work"], &["logs", "work"]] {
        let said = run(args).stderr;
        let hint = format!("hint: git aynig {} --remote origin\n", args.join(" "));
        assert!(said.contains(&hint) && !said.contains("set-state"), "{args:?}: {said}");
    }
    for args in [&["cancel", "work"][..], &["retry", "work"], &["set-state", "build", "-b", "work"]] {
        let said = run(args).expect(2).stderr;
        assert!(said.contains(&format!("hint: git aynig {} --remote origin\n", args.join(" "))), "{said}");
    }
    // Named, it is asked; what is still refused there is a matter of its own.
    let said = run(&["status", "work", "--remote", "origin"]).expect(0);
    assert!(said.stdout.starts_with("work  build"), "{said:?}");
}
