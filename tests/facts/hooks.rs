//! Hooks: what lands starts its chain once, whichever command brought it, and no command waits for it.

use crate::support::life::{BIN, Life, done, eventually, now};
use crate::support::{Repo, git_that};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Three states in a row; each run is noted.
const STEPS: [(&str, &str); 4] = [
    (
        "build",
        "echo \"build $AYNIG_BRANCH\" >>\"$T/runs\"; echo b >>steps; echo 'SET_STATE {\"state\":\"test\"}'",
    ),
    ("test", "echo \"test $AYNIG_BRANCH\" >>\"$T/runs\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    (
        "slow",
        "echo \"slow $AYNIG_BRANCH\" >>\"$T/runs\"; timeout 150 sh -c 'read x <\"$T/gate\"'; echo 'SET_STATE {\"state\":\"done\"}'",
    ),
    ("fail", "test -e \"$T/mended\" || exit 3; echo 'SET_STATE {\"state\":\"done\"}'"),
];

fn life() -> Life {
    let life = Life::new(&STEPS);
    life.run(&["hooks", "install"]).expect(0);
    life
}

/// git as a user types it: with the program on PATH, and `$T` for commands.
fn git_in(life: &Life, dir: &Path) -> Command {
    let mut command = life.repo.command("git");
    let bin = Path::new(BIN).parent().unwrap().display();
    command.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap())).env("T", life.shared());
    command.current_dir(dir);
    command
}

/// True where the Git at hand runs hooks that its configuration names (2.54 and later).
fn configured() -> bool {
    let output = Command::new("git").arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    let mut numbers = version.split([' ', '.']).filter_map(|part| part.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(2), Some(54))
}

#[track_caller]
fn ok(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn git(life: &Life, args: &[&str]) -> String {
    let mut command = git_in(life, &life.repo.path());
    command.args(args);
    ok(command)
}

fn commit(life: &Life, state: &str) {
    git(life, &["commit", "-q", "--allow-empty", "-m", "go", "--trailer", &format!("dwp-state: {state}")]);
}

fn done_on(life: &Life, branch: &str) {
    eventually(branch, || (life.state(branch) == "done").then_some(()));
}

fn runs(life: &Life, of: &str) -> usize {
    life.said("runs").lines().filter(|line| *line == of).count()
}

/// Waits until no chain of this repository is under way, its last look included: it would take the next event.
fn chains_ended(life: &Life) {
    let ours = [b"T=", life.shared().as_os_str().as_bytes()].concat();
    let is_ours = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == ours)
    };
    let any = || std::fs::read_dir("/proc").is_ok_and(|all| all.flatten().any(is_ours));
    eventually("the chains' ends", || (!any()).then_some(()));
}

/// Nothing is started: whatever would have been has come to its end.
fn nothing_starts(life: &Life, what: impl FnOnce()) {
    let before = life.said("runs");
    what();
    chains_ended(life);
    assert_eq!(life.said("runs"), before);
    assert!(!life.repo.path().join(".aynig/logs/hook.log").exists() || before == life.said("runs"));
}

/// K38, K40
#[test]
fn a_commit_starts_its_chain_and_returns() {
    let life = life();
    let mut gate = life.gate("gate");
    commit(&life, "slow");
    assert_ne!(life.state("main"), "done");
    eventually("started", || (runs(&life, "slow main") == 1).then_some(()));
    gate.open();
    done_on(&life, "main");
    commit(&life, "build");
    done_on(&life, "main");
    assert_eq!((runs(&life, "build main"), runs(&life, "test main")), (1, 1));
    assert_eq!(life.states("main")[..5], ["done", "working", "test", "working", "build"].map(String::from));
    // The outcome came into the working tree, and no command's exit status changed.
    assert_eq!(life.read("steps"), "b\n");
    let log = eventually("log", || {
        Some(life.read(".aynig/logs/hook.log")).filter(|log| log.contains("main: build -> test"))
    });
    // Each line says when.
    let is_dated = |line: &str| {
        line.len() > 22
            && line.as_bytes()[4] == b'-'
            && line.as_bytes()[13] == b':'
            && line[19..].starts_with("Z  ")
    };
    assert!(log.lines().all(is_dated), "{log}");
    // What was watched is there as well.
    chains_ended(&life);
    git(&life, &["config", "aynig.hooks", "wait"]);
    commit(&life, "test");
    let log = life.read(".aynig/logs/hook.log");
    assert!(log.lines().last().unwrap().contains("  main: test -> done ("), "{log}");
}

/// K14, K40: a linked working tree may go while a chain that began there is at work, and branches wait for it.
#[test]
fn a_chain_outlives_the_linked_working_tree_that_it_began_in() {
    let life = life();
    let mut gate = life.gate("gate");
    let linked = life.shared().join("linked");
    let there = linked.to_str().unwrap();
    git(&life, &["worktree", "add", "-q", "-b", "first", there]);
    let commit = |branch: &str, state: &str| {
        let mut switch = git_in(&life, &linked);
        switch.args(["switch", "-q", "-C", branch]);
        ok(switch);
        let mut commit = git_in(&life, &linked);
        commit.args([
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "go",
            "--trailer",
            &format!("dwp-state: {state}"),
        ]);
        ok(commit);
    };
    commit("first", "slow");
    eventually("started", || (runs(&life, "slow first") == 1).then_some(()));
    commit("second", "test");
    let notes = || std::fs::read_dir(life.path(".git/aynig/pending")).map_or(0, Iterator::count);
    eventually("its note", || (notes() == 1).then_some(()));
    git(&life, &["worktree", "remove", "--force", there]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    gate.open();
    done_on(&life, "first");
    done_on(&life, "second");
    eventually("nothing waits", || (notes() == 0).then_some(()));
}

/// K38, K40
#[test]
fn whatever_brings_an_event_starts_it_once() {
    let life = life();
    let event = |branch: &str| {
        git(&life, &["switch", "-q", "-c", branch, "main"]);
        git(
            &life,
            &[
                "-c",
                "aynig.hooks=off",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "go",
                "--trailer",
                "dwp-state: build",
            ],
        );
    };
    event("topic");
    // A merge that only moves the branch, one that makes a commit of its own, and a pick.
    git(&life, &["switch", "-q", "-c", "ff", "main"]);
    git(&life, &["merge", "-q", "topic"]);
    done_on(&life, "ff");
    git(&life, &["switch", "-q", "-c", "real", "main"]);
    git(&life, &["merge", "-q", "--no-ff", "-m", "m", "-m", "dwp-state: build", "topic"]);
    done_on(&life, "real");
    git(&life, &["switch", "-q", "-c", "pick", "main"]);
    git(&life, &["cherry-pick", "--allow-empty", "topic"]);
    done_on(&life, "pick");
    git(&life, &["switch", "-q", "-c", "amend", "main"]);
    git(&life, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&life, &["commit", "-q", "--amend", "--allow-empty", "-m", "go", "-m", "dwp-state: build"]);
    done_on(&life, "amend");
    // A rebase that ends with the event.
    git(&life, &["switch", "-q", "main"]);
    life.write("base", "b\n");
    git(&life, &["add", "base"]);
    git(&life, &["commit", "-qm", "base"]);
    git(&life, &["switch", "-q", "-c", "rebased", "topic"]);
    git(&life, &["rebase", "-q", "main"]);
    done_on(&life, "rebased");
    // A pull, by way of a clone.
    let clone = life.repo.home().join("clone");
    git(&life, &["clone", "-q", "-b", "main", ".", clone.to_str().unwrap()]);
    ok({
        let mut command = git_in(&life, &clone);
        command.args(["aynig", "hooks", "install"]);
        command
    });
    git(&life, &["switch", "-q", "main"]);
    git(
        &life,
        &[
            "-c",
            "aynig.hooks=off",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "go",
            "--trailer",
            "dwp-state: build",
        ],
    );
    ok({
        let mut command = git_in(&life, &clone);
        command.args(["pull", "-q"]);
        command
    });
    eventually("the clone's run", || (runs(&life, "build main") == 1).then_some(()));
    // Verbs do what the hook would have done.
    life.run(&["set-state", "build", "-b", "verb"]).expect(0);
    done_on(&life, "verb");
    life.run(&["set-state", "fail", "-b", "again"]).expect(0);
    eventually("stalled", || (life.state("again") == "stalled").then_some(()));
    std::fs::write(life.shared().join("mended"), "").unwrap();
    life.run(&["retry", "again"]).expect(0);
    done_on(&life, "again");
    life.run(&["set-state", "build", "-b", "quiet", "--no-tick"]).expect(0);
    for branch in ["ff", "real", "pick", "amend", "rebased", "verb"] {
        assert_eq!(runs(&life, &format!("build {branch}")), 1, "{branch}");
    }
    assert_eq!((runs(&life, "build quiet"), life.state("quiet")), (0, "build".to_owned()));
    life.repo.assert_sound();
}

/// K38
#[test]
fn where_nothing_is_to_start_nothing_starts() {
    let life = life();
    nothing_starts(&life, || {
        git(&life, &["commit", "-q", "--allow-empty", "-m", "plain"]);
        git(
            &life,
            &[
                "-c",
                "aynig.hooks=off",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "go",
                "--trailer",
                "dwp-state: build",
            ],
        );
        let mut off = git_in(&life, &life.repo.path());
        off.env("AYNIG", "0").args([
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "go",
            "--trailer",
            "dwp-state: build",
        ]);
        ok(off);
        git(&life, &["switch", "-q", "--detach"]);
        commit(&life, "build");
        git(&life, &["switch", "-q", "-c", "ten", "main~2"]);
        for n in 0..10 {
            life.write(&format!("f{n}"), "x\n");
            git(&life, &["add", "-A"]);
            git(&life, &["-c", "aynig.hooks=off", "commit", "-qm", "go", "--trailer", "dwp-state: build"]);
        }
        life.write("last", "x\n");
        git(&life, &["add", "-A"]);
        git(&life, &["-c", "aynig.hooks=off", "commit", "-qm", "plain"]);
        git(&life, &["rebase", "-q", "main"]);
    });
}

/// K40: whatever pipes the caller's callers left open, their ends do not wait for a chain.
#[test]
fn a_chain_holds_no_descriptor_of_its_callers() {
    let life = life();
    let bin = Path::new(BIN).parent().unwrap().display();
    let mut shell = life.repo.command("/bin/sh");
    shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap())).env("T", life.shared());
    let script = "exec 9>&1 >/dev/null 2>&1; git commit -q --allow-empty -m go --trailer 'dwp-state: slow'";
    let mut gate = life.gate("gate");
    // Ends when nothing holds the other end of descriptor 9.
    assert!(shell.args(["-c", script]).output().unwrap().status.success());
    assert_ne!(life.state("main"), "done");
    gate.open();
    done_on(&life, "main");
}

/// K34
#[test]
fn where_nobody_said_what_may_run_the_hook_says_so_in_one_line() {
    let life = life();
    life.git(&["config", "--global", "--unset", "aynig.commandsFrom"]);
    let said = git_in(&life, &life.repo.path())
        .args(["commit", "-q", "--allow-empty", "-m", "go", "--trailer", "dwp-state: build"])
        .output()
        .unwrap();
    assert!(said.status.success());
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.contains("aynig trust"), "{said}");
    assert_eq!(life.state("main"), "build");
}

/// K40: a run starts nothing itself; what it set elsewhere is looked at when it is over.
#[test]
fn what_a_run_set_elsewhere_goes_on_when_it_is_over() {
    let life = life();
    life.command("split", "git aynig set-state build -b other; echo 'SET_STATE {\"state\":\"done\"}'");
    git(&life, &["add", "-A"]);
    git(&life, &["commit", "-qm", "split"]);
    life.event("work", "split", "");
    life.tick(&["work"]).expect(0);
    done_on(&life, "other");
    assert_eq!(runs(&life, "build other"), 1);
}

/// K7, K8, K40: where chains are all that looks, a lease that no runner can believe ends all the same.
#[test]
fn what_was_abandoned_elsewhere_is_recovered_by_whoever_comes_by() {
    let life = life();
    let message = "aynig: working\n\ndwp-state: working\ndwp-origin-state: build\n\
        dwp-run-id: 11111111-1111-4111-8111-111111111111\ndwp-runner-id: elsewhere-1\ndwp-lease-seconds: 120\n";
    let lease = life.event_at("held", message, Some(now() + 1_000_000));
    // The user did not allow this one, and it comes before.
    life.config("aynig.branches", "[fhs]*");
    let forbidden = life.event_at("abandoned", message, Some(now() - 1_000));
    let seen: String = b"refs/heads/held".iter().map(|b| format!("{b:02x}")).collect();
    let seen = life.repo.git_dir().join("aynig/seen").join(seen);
    life.git(&["switch", "-q", "-c", "first"]);
    commit(&life, "build");
    done_on(&life, "first");
    let note = eventually("a note of the first look", || std::fs::read(&seen).ok());
    assert_eq!(life.rev("held"), lease);
    // Two minutes, and one of grace, pass.
    let mut note: serde_json::Value = serde_json::from_slice(&note).unwrap();
    note["at"] = (note["at"].as_u64().unwrap() - 181).into();
    std::fs::write(&seen, note.to_string()).unwrap();
    life.git(&["switch", "-q", "-c", "second"]);
    commit(&life, "build");
    done_on(&life, "second");
    eventually("a recovery", || (life.state("held") == "stalled").then_some(()));
    assert_eq!((life.rev("held^"), life.rev("abandoned")), (lease, forbidden));
}

/// K40, K41, K43: where another process has the configuration locked nothing is installed, and nothing says that something
/// is; the lock is named, and to try again is all that is needed.
#[test]
fn a_locked_configuration_is_named_and_no_hook_is_made() {
    let life = Life::new(&STEPS);
    let git = life.repo.git_dir();
    let lock = git.join("config.lock");
    std::fs::write(&lock, "").unwrap();
    let said = life.run(&["hooks", "install"]).expect(75);
    let (named, mend) = (format!("'{}' is held (age ", lock.display()), format!("rm '{}'", lock.display()));
    assert!(said.stderr.contains(&named) && said.stderr.contains(&mend), "{said:?}");
    let made = std::fs::read_dir(git.join("hooks")).into_iter().flatten().flatten();
    let made: Vec<_> =
        made.map(|e| e.file_name()).filter(|n| !n.to_string_lossy().ends_with(".sample")).collect();
    assert!(made.is_empty() && lock.exists(), "{made:?}");
    std::fs::remove_file(&lock).unwrap();
    // Nothing says that there are hooks, either: an event waits until somebody ticks.
    assert!(!git.join("aynig/hooks-installed").exists());
    nothing_starts(&life, || drop(life.run(&["set-state", "test", "-b", "waits"]).expect(0)));
    life.run(&["hooks", "install"]).expect(0);
    assert!(git.join("hooks/post-commit").exists());
}

/// K41: hooks of others keep working, and are as before when ours are gone.
#[test]
fn hooks_of_others_are_left_as_they_were() {
    let life = Life::new(&STEPS);
    let hooks = life.repo.git_dir().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let theirs = |name: &str, text: &str, mode: u32| {
        std::fs::write(hooks.join(name), text).unwrap();
        std::fs::set_permissions(hooks.join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    theirs("post-commit", "#!/bin/sh\nset -eu\necho committed >>\"$T/theirs\"\nexec true", 0o755);
    theirs("post-rewrite", "#!/bin/bash\ncat >>\"$T/stdin\"", 0o755);
    theirs("post-merge", "#!/usr/bin/env python3\nprint('merged')\n", 0o750);
    theirs("post-receive", "#!/bin/sh\r\necho crlf\r\n", 0o755);
    let before: Vec<_> = std::fs::read_dir(&hooks).unwrap().flatten().map(|e| e.path()).collect();
    let content = |all: &[PathBuf]| -> Vec<_> {
        all.iter().map(|p| (std::fs::read(p).unwrap(), p.metadata().unwrap().permissions().mode())).collect()
    };
    let (config, was) = (std::fs::read(life.repo.git_dir().join("config")).unwrap(), content(&before));
    // Where Git runs hooks by configuration none of theirs is in the way.
    let code = i32::from(!configured());
    let said = life.run(&["hooks", "install"]).expect(code);
    if configured() {
        assert_eq!(content(&before), was);
    } else {
        assert!(said.stdout.contains("it is no shell script"), "{said:?}");
        assert!(said.stderr.contains("# >>> aynig"), "{said:?}");
    }
    let once = content(&before);
    life.run(&["hooks", "install"]).expect(code);
    assert_eq!(content(&before), once);
    life.run(&["hooks", "status"]).expect(code);
    commit(&life, "build");
    done_on(&life, "main");
    life.write("x", "y\n");
    git(&life, &["add", "-A"]);
    git(&life, &["commit", "-qm", "z"]);
    git(&life, &["commit", "-q", "--amend", "-m", "zz"]);
    assert_eq!(life.said("theirs").lines().count(), 3);
    assert_eq!(life.said("stdin").lines().count(), 1, "what git said came through");
    life.run(&["hooks", "uninstall"]).expect(0);
    assert_eq!(content(&before), was);
    assert_eq!(std::fs::read(life.repo.git_dir().join("config")).unwrap(), config);
    let after: Vec<_> = std::fs::read_dir(&hooks).unwrap().flatten().map(|e| e.path()).collect();
    assert_eq!(after.len(), before.len());
}

/// Returns a PATH with a Git that says that it is of this version.
fn git_of(life: &Life, version: &str) -> OsString {
    let says = "for last; do :; done; test \"$last\" != version || { echo git version VERSION; exit; }";
    git_that(&life.repo.home(), &format!("{}\nexec \"$real\" \"$@\"", says.replace("VERSION", version)))
}

/// K41: a Git that was upgraded, or is an older one again, starts each hook once, and the user's own lines stay.
#[test]
fn an_installation_by_another_git_replaces_the_one_before() {
    let life = Life::new(&STEPS);
    let hooks = life.repo.git_dir().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let script = |path: PathBuf, text: &str| {
        crate::support::write_program(&path, text);
    };
    let mine = "#!/bin/sh\necho mine >>\"$T/mine\"\n";
    script(hooks.join("post-commit"), mine);
    let installed_by = |version: &str| {
        let mut call = life.aynig(&["hooks", "install"]);
        done(call.env("PATH", git_of(&life, version)).output().unwrap()).expect(0);
        let included = life.repo.try_git(&["config", "--get-all", "include.path"]).status.success();
        let blocks = ["post-commit", "post-merge"]
            .map(|name| std::fs::read_to_string(hooks.join(name)).is_ok_and(|text| text.contains("aynig")));
        (included, blocks)
    };
    for (version, is_configured) in [("2.47.3", false), ("2.54.0", true), ("2.54.0", true), ("2.53.9", false)]
    {
        assert_eq!(installed_by(version), (is_configured, [!is_configured; 2]), "{version}");
        let text = std::fs::read_to_string(hooks.join("post-commit")).unwrap();
        assert!(text.ends_with(mine.strip_prefix("#!/bin/sh\n").unwrap()), "{version}: {text}");
        assert_eq!(life.repo.git_dir().join("aynig/hooks.gitconfig").exists(), is_configured, "{version}");
    }
    life.run(&["hooks", "uninstall"]).expect(0);
    assert_eq!(std::fs::read_to_string(hooks.join("post-commit")).unwrap(), mine);
}

/// K41
#[test]
fn a_hooks_path_inside_is_used_and_one_outside_is_not() {
    let life = Life::new(&STEPS);
    life.git(&["config", "core.hooksPath", ".husky/_"]);
    life.write(".husky/_/post-commit", "#!/usr/bin/env sh\necho shim >>\"$T/shim\"\n");
    std::fs::set_permissions(life.path(".husky/_/post-commit"), PermissionsExt::from_mode(0o755)).unwrap();
    life.run(&["hooks", "install"]).expect(0);
    commit(&life, "build");
    done_on(&life, "main");
    assert_eq!(life.said("shim"), "shim\n");
    life.run(&["hooks", "uninstall"]).expect(0);
    assert_eq!(life.read(".husky/_/post-commit"), "#!/usr/bin/env sh\necho shim >>\"$T/shim\"\n");
    assert!(!life.path(".husky/_/post-merge").exists());
    let outside = life.repo.home().join("hooks");
    // Whichever way it is spelled.
    std::os::unix::fs::symlink(&outside, life.path("nowhere")).unwrap();
    for path in [outside.to_str().unwrap(), "../home/hooks", "nowhere", "nothing/../.git/hooks"] {
        life.git(&["config", "core.hooksPath", path]);
        if configured() {
            life.run(&["hooks", "install"]).expect(0);
            commit(&life, "build");
            done_on(&life, "main");
        } else {
            let said = life.run(&["hooks", "install"]).expect(1);
            assert_eq!(said.stdout.matches("outside the repository").count(), 4, "{path}: {said:?}");
        }
        assert!(!outside.exists() && !life.path("nothing").exists(), "{path}");
    }
    let link = life.repo.home().join("link");
    std::os::unix::fs::symlink(life.path(""), &link).unwrap();
    life.git(&["config", "core.hooksPath", link.join(".git/own").to_str().unwrap()]);
    life.run(&["hooks", "install"]).expect(0);
    assert_eq!(life.repo.git_dir().join("own/post-commit").exists(), !configured());
}

/// K38, K56: the hook asks what was meant where the verbs do.
#[test]
fn a_merge_of_what_a_command_declared_is_no_slip() {
    let life = Life::new(&[("draft", "echo 'SET_STATE {\"state\":\"drafted\"}'")]);
    life.run(&["hooks", "install"]).expect(0);
    life.run(&["set-state", "--no-tick", "draft", "-b", "work"]).expect(0);
    life.tick(&["work"]).expect(0);
    let merged = life.repo.try_git(&["merge", "-q", "--ff-only", "work"]);
    let said = String::from_utf8_lossy(&merged.stderr).into_owned();
    assert!(merged.status.success() && !said.contains("did you mean"), "{said}");
    let slip = life.repo.try_git(&["commit", "--allow-empty", "-qm", "x\n\ndwp-state: darft"]);
    let said = String::from_utf8_lossy(&slip.stderr).into_owned();
    assert!(said.contains("did you mean 'draft'?"), "{said}");
}

/// K41: what can be no hook is named, and is no error: many turn all hooks off by a path that is no folder.
#[test]
fn what_is_no_hook_is_left_alone() {
    let life = Life::new(&STEPS);
    life.git(&["config", "core.hooksPath", "/dev/null"]);
    for verb in ["install", "status", "uninstall"] {
        let said = life.run(&["hooks", verb]);
        assert!(matches!(said.code, Some(0 | 1)) && !said.stderr.contains("mv "), "{verb}: {said:?}");
        assert!(configured() || verb == "uninstall" || said.stdout.contains("outside"), "{said:?}");
    }
    life.run(&["uninstall", "--force"]).expect(0);
    life.git(&["config", "--unset", "core.hooksPath"]);
    let hooks = life.repo.git_dir().join("hooks");
    std::fs::create_dir_all(hooks.join("post-commit")).unwrap();
    assert!(life.repo.command("mkfifo").arg(hooks.join("post-merge")).status().unwrap().success());
    let said = life.run(&["hooks", "install"]).expect(if configured() { 0 } else { 1 });
    assert!(configured() || said.stdout.matches("it is no file").count() == 2, "{said:?}");
    life.run(&["hooks", "status"]).expect(if configured() { 0 } else { 1 });
    life.run(&["hooks", "uninstall"]).expect(0);
}

/// K41: a link, and the file that it leads to, are the user's, also with lines of ours that the user put there.
#[test]
fn lines_that_the_user_put_into_a_hook_are_the_users_to_take_out() {
    if configured() {
        return crate::support::skipped("this git needs no lines in hooks");
    }
    let life = Life::new(&STEPS);
    let hooks = life.repo.git_dir().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    crate::support::write_program(&life.path("tracked"), "#!/bin/sh\necho mine\n");
    std::os::unix::fs::symlink(life.path("tracked"), hooks.join("post-commit")).unwrap();
    let said = life.run(&["hooks", "install"]).expect(1);
    let lines: String = said
        .stderr
        .lines()
        .skip_while(|line| !line.starts_with("# >>> aynig"))
        .map(|line| format!("{line}\n"))
        .collect();
    let pasted = format!("#!/bin/sh\n{lines}echo mine\n");
    std::fs::write(life.path("tracked"), &pasted).unwrap();
    let said = life.run(&["hooks", "status"]).expect(0);
    assert!(said.stdout.contains("post-commit' by hand: it is a symbolic link"), "{said:?}");
    let said = life.run(&["hooks", "uninstall"]).expect(1);
    assert!(said.stderr.contains("post-commit' is left alone: it is a symbolic link"), "{said:?}");
    assert!(hooks.join("post-commit").symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(life.path("tracked")).unwrap(), pasted);
    assert!(!hooks.join("post-merge").exists());
    let said = life.run(&["uninstall", "--force"]).expect(0);
    assert!(said.stdout.contains("lines of yours in"), "{said:?}");
    assert_eq!(std::fs::read_to_string(life.path("tracked")).unwrap(), pasted);
}

/// K41: of installations at once each succeeds, what they leave is one, and nothing is left beside it.
#[test]
fn hooks_are_installed_by_many_at_once() {
    let life = Life::new(&STEPS);
    let hooks = life.repo.git_dir().join("hooks");
    for _ in 0..4 {
        let install =
            || life.repo.command(BIN).args(["hooks", "install"]).stderr(Stdio::piped()).spawn().unwrap();
        let all: Vec<_> = (0..16).map(|_| install()).collect();
        for one in all {
            done(one.wait_with_output().unwrap()).expect(0);
        }
        commit(&life, "build");
        done_on(&life, "main");
        let beside = std::fs::read_dir(&hooks).unwrap().flatten();
        let beside =
            beside.filter(|entry| entry.file_name().as_bytes().windows(9).any(|name| name == b"aynig-new"));
        assert_eq!(beside.count(), 0);
        // What a killed one left goes with the hooks.
        std::fs::create_dir_all(&hooks).unwrap();
        let left = ["post-commit.aynig-new.1", "post-commit.aynig-newsletter", "post-commit.aynig-new.x"];
        left.iter().for_each(|name| std::fs::write(hooks.join(name), "").unwrap());
        life.run(&["hooks", "uninstall"]).expect(0);
        let mut rest =
            std::fs::read_dir(&hooks).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        rest.retain(|name| name.as_bytes().starts_with(b"post-commit"));
        rest.sort();
        assert_eq!(rest, ["post-commit.aynig-new.x", "post-commit.aynig-newsletter"]);
        rest.iter().for_each(|name| std::fs::remove_file(hooks.join(name)).unwrap());
    }
    let newer = git_of(&life, "2.54.0");
    let install = || life.aynig(&["hooks", "install"]).env("PATH", &newer).spawn().unwrap();
    let all: Vec<_> = (0..16).map(|_| install()).collect();
    all.into_iter().for_each(|mut one| assert!(one.wait().unwrap().success()));
    assert_eq!(life.git(&["config", "--get-all", "include.path"]), "aynig/hooks.gitconfig");
}

/// K41: `uninstall` gives back every byte of a configuration, however that is written, and a setting made since stays.
#[test]
fn uninstalling_gives_back_every_byte_of_the_configuration() {
    let life = Life::new(&STEPS);
    let (config, newer) = (life.repo.git_dir().join("config"), git_of(&life, "2.54.0"));
    let plain = std::fs::read_to_string(&config).unwrap();
    for end in [
        "",
        "# mine\n",
        "\n\n\n",
        "[receive]\n",
        "[Receive] # mine\n\n",
        "[a]\n\tb = c",
        "[include]\n\tpath = x\n# c\n",
    ] {
        for path in [None, Some(&newer)] {
            let run = |verb: &str| {
                let mut command = life.aynig(&["hooks", verb]);
                if let Some(path) = path {
                    command.env("PATH", path);
                }
                done(command.output().unwrap()).expect(0)
            };
            let was = format!("{plain}{end}");
            std::fs::write(&config, &was).unwrap();
            run("install");
            assert_eq!(life.git(&["config", "receive.advertisePushOptions"]), "true");
            run("install");
            run("uninstall");
            assert_eq!(std::fs::read_to_string(&config).unwrap(), was);
            run("install");
            life.git(&["config", "user.signingKey", "mine"]);
            run("uninstall");
            assert_eq!(life.git(&["config", "user.signingKey"]), "mine");
            assert!(!std::fs::read_to_string(&config).unwrap().contains("advertise"));
            let left = std::fs::read_dir(life.path(".git/aynig")).unwrap().flatten();
            let left: Vec<_> =
                left.map(|e| e.file_name()).filter(|n| n.as_bytes().starts_with(b"hooks")).collect();
            assert!(left.iter().all(|name| name == "hooks"), "{left:?}");
        }
    }
}

/// K41: what the configuration was is written over nothing, and read through nothing.
#[test]
fn what_lies_where_the_configuration_is_kept_is_not_followed() {
    let life = Life::new(&STEPS);
    let (config, kept) = (life.repo.git_dir().join("config"), life.path(".git/aynig/hooks-installed.config"));
    let (was, mine) = (std::fs::read_to_string(&config).unwrap(), life.shared().join("mine"));
    std::fs::write(&mine, "mine\n").unwrap();
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    for put in [
        |_: &Path, kept: &Path| nix::unistd::mkfifo(kept, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        |mine: &Path, kept: &Path| std::os::unix::fs::symlink(mine, kept).unwrap(),
    ] {
        put(&mine, &kept);
        life.run(&["hooks", "install"]).expect(0);
        assert!(kept.symlink_metadata().unwrap().is_file());
        std::fs::remove_file(&kept).unwrap();
        put(&mine, &kept);
        life.run(&["hooks", "uninstall"]).expect(0);
        assert_eq!(std::fs::read_to_string(&config).unwrap(), was);
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine\n");
        let _ = std::fs::remove_file(&kept);
    }
}

/// A bare repository with hooks, and a clone to push from.
/// K38, K41: hooks of each working tree that has a folder of its own for them go together.
#[test]
fn hooks_of_every_working_tree_go_at_once() {
    let life = Life::new(&STEPS);
    life.git(&["config", "core.hooksPath", ".githooks"]);
    let linked = life.repo.home().join("linked");
    git(&life, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let mut command = life.aynig(&["hooks", "install"]);
    done(command.current_dir(&linked).output().unwrap()).expect(0);
    let before = life.run(&["uninstall", "--dry-run"]).expect(0).stdout;
    assert!(configured() || before.contains("linked/.githooks/post-commit"), "{before}");
    life.run(&["hooks", "uninstall"]).expect(0);
    assert!(!linked.join(".githooks/post-commit").exists());
}

/// K40, K41: where one working tree has hooks, another's that can have none takes nothing away.
#[test]
fn hooks_of_one_working_tree_stay_where_another_can_have_none() {
    if configured() {
        return crate::support::skipped("this Git starts hooks by its configuration");
    }
    let life = Life::new(&STEPS);
    life.git(&["config", "core.hooksPath", ".githooks"]);
    life.run(&["hooks", "install"]).expect(0);
    let linked = life.repo.home().join("linked");
    git(&life, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    std::fs::create_dir(linked.join(".githooks")).unwrap();
    for name in ["post-commit", "post-merge", "post-rewrite", "post-receive"] {
        let path = linked.join(".githooks").join(name);
        std::fs::write(&path, "#!/usr/bin/python3\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    done(life.aynig(&["hooks", "install"]).current_dir(&linked).output().unwrap()).expect(1);
    life.run(&["set-state", "test", "-b", "work"]).expect(0);
    done_on(&life, "work");
}

/// K38: commits in a working tree of a bare repository start their chains too.
#[test]
fn a_bare_repository_with_working_trees_has_all_hooks() {
    let life = Life::new(&STEPS);
    let bare = life.repo.home().join("bare");
    git(&life, &["clone", "-q", "--bare", ".", bare.join(".bare").to_str().unwrap()]);
    std::fs::write(bare.join(".git"), "gitdir: ./.bare\n").unwrap();
    let tree = bare.join("side");
    let run = |args: &[&str], dir: &Path| done(life.aynig(args).current_dir(dir).output().unwrap());
    let git = |args: &[&str], dir: &Path| {
        let mut command = git_in(&life, dir);
        command.args(args);
        ok(command)
    };
    git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()], &bare);
    run(&["trust", "--ref", "main"], &bare).expect(0);
    let said = run(&["hooks", "install"], &tree).expect(0);
    assert!(said.stdout.contains("post-commit"), "{said:?}");
    git(&["commit", "-q", "--allow-empty", "-m", "go", "-m", "dwp-state: test"], &tree);
    eventually("the chain is over", || {
        let head = life.git(&["-C", tree.to_str().unwrap(), "log", "-1", "--format=%B"]);
        head.contains("dwp-state: done").then_some(())
    });
}

/// K40, K41: where no hook could be installed nothing says that there are some.
#[test]
fn hooks_that_could_not_be_installed_leave_no_trace() {
    if configured() {
        return crate::support::skipped("this Git starts hooks by its configuration");
    }
    let life = Life::new(&STEPS);
    let outside = life.repo.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    life.git(&["config", "core.hooksPath", outside.to_str().unwrap()]);
    life.run(&["hooks", "install"]).expect(1);
    assert!(!life.repo.git_dir().join("aynig/hooks-installed").exists());
    assert!(!life.git(&["config", "--list"]).contains("advertisepushoptions"));
    nothing_starts(&life, || drop(life.run(&["set-state", "test", "-b", "work"]).expect(0)));
}

fn server() -> (Repo, Life) {
    let life = Life::new(&STEPS);
    let server = Repo::build().bare().create().unwrap();
    let url = format!("file://{}", server.path().display());
    life.git(&["push", "-q", &url, "main"]);
    life.git(&["remote", "add", "origin", &url]);
    server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    let mut install = server.command(BIN);
    let installed = done(install.args(["hooks", "install"]).output().unwrap());
    assert_eq!(installed.code, Some(0), "{installed:?}");
    (server, life)
}

/// Pushes; what a push runs has the server's own home, and `$T`.
fn push(server: &Repo, life: &Life, args: &[&str]) -> Output {
    let mut command = git_in(life, &life.repo.path());
    let receive = format!("--receive-pack=env HOME='{}' git-receive-pack", server.home().display());
    command.args(["push", "-q", &receive]).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn state_there(server: &Repo, branch: &str) -> String {
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
    server.git(&["log", "-1", format, branch])
}

/// K39
#[test]
fn a_push_is_answered_and_nobody_is_held() {
    let (server, life) = server();
    server.git(&["config", "--global", "aynig.passEnv", "T"]);
    life.event("work", "slow", "");
    let mut gate = life.gate("gate");
    let output = push(&server, &life, &["origin", "work"]);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(state_there(&server, "work"), "done");
    gate.open();
    let answer = said(&output);
    assert!(answer.contains("aynig: slow dispatched on work (run "), "{answer}");
    let promised = answer.split("(run ").nth(1).unwrap()[..8].to_owned();
    eventually("done", || (state_there(&server, "work") == "done").then_some(()));
    let run = server.git(&["log", "-1", "--format=%(trailers:key=dwp-run-id,valueonly,separator=)", "work"]);
    assert!(run.starts_with(&promised), "{run} {promised}");
    // A branch that brings its own command does not bring it to run.
    life.git(&["switch", "-q", "-c", "evil", "main"]);
    life.command("build", "echo evil >\"$T/evil\"; echo 'SET_STATE {\"state\":\"done\"}'");
    life.git(&["commit", "-qam", "evil"]);
    life.event("evil", "build", "");
    push(&server, &life, &["origin", "evil"]);
    eventually("evil is done", || (state_there(&server, "evil") == "done").then_some(()));
    assert!(life.said("evil").is_empty() && runs(&life, "build evil") == 1);
    // What it prints, on request; nothing at all, on request.
    life.event("stream", "build", "");
    let output = push(&server, &life, &["-o", "aynig.wait", "origin", "stream"]);
    assert!(
        said(&output).contains("remote: | SET_STATE") && state_there(&server, "stream") == "done",
        "{}",
        said(&output)
    );
    life.event("skipped", "build", "");
    let output = push(&server, &life, &["-o", "aynig.skip", "origin", "skipped"]);
    assert!(!said(&output).contains("aynig:"), "{}", said(&output));
    // Plain pushes and deletions are no runner's business.
    let output = push(&server, &life, &["origin", "main:refs/heads/plain"]);
    assert!(output.status.success() && !said(&output).contains("aynig:"));
    assert!(!said(&push(&server, &life, &["origin", ":work"])).contains("aynig:"));
    assert_eq!((runs(&life, "build skipped"), state_there(&server, "skipped")), (0, "build".to_owned()));
    server.assert_sound();
}

/// K14 (pending), K39: what could not be started is no run that a pusher was promised; the next tick has it.
#[test]
fn what_could_not_go_on_in_the_background_is_said_and_waits() {
    let (server, life) = server();
    server.git(&["config", "--global", "aynig.passEnv", "T"]);
    life.event("work", "build", "");
    let logs = server.git_dir().join("aynig/logs");
    let _ = std::fs::remove_dir_all(&logs);
    std::fs::write(&logs, "").unwrap();
    let output = push(&server, &life, &["origin", "work"]);
    let answer = said(&output);
    assert!(output.status.success() && !answer.contains("dispatched on"), "{answer}");
    assert!(answer.contains("aynig: error: work: not dispatched: cannot "), "{answer}");
    assert!(answer.contains("aynig: hint: on the server: git aynig tick work"), "{answer}");
    assert_eq!(state_there(&server, "work"), "build");
    std::fs::remove_file(&logs).unwrap();
    // A tick of something else takes it on.
    life.event("other", "build", "");
    life.git(&["push", "-q", "--receive-pack=env AYNIG=0 git receive-pack", "origin", "other"]);
    let mut tick = server.command(BIN);
    assert!(tick.args(["tick", "other"]).output().unwrap().status.success());
    eventually("done", || (state_there(&server, "work") == "done").then_some(()));
}

/// K14 (pending), K39: many branches at once, one command at a time.
#[test]
fn a_push_of_many_branches_answers_each_once() {
    let many = if std::env::var_os("AYNIG_MANY").is_some() { 200 } else { 30 };
    let (server, life) = server();
    server.git(&["config", "--global", "aynig.passEnv", "T"]);
    let names: Vec<String> = (0..many).map(|n| format!("w{n:03}")).collect();
    names.iter().for_each(|name| drop(life.event(name, "build", &format!("dwp-name: {name}\n"))));
    let (first, second) = names.split_at(many / 2);
    let mut promised = Vec::new();
    for half in [first, second] {
        let mut args = vec!["origin"];
        args.extend(half.iter().map(String::as_str));
        let output = push(&server, &life, &args);
        // There is one slot: at most one of them goes on at once.
        let told = said(&output).replace("build queued on w", "build dispatched on w");
        assert_eq!(told.matches("dispatched on w").count(), half.len(), "{told}");
        assert!(said(&output).matches("build queued on w").count() >= half.len() - 1, "{}", said(&output));
        promised.extend(half.iter().map(|name| {
            let answer = format!("aynig: build dispatched on {name} (run ");
            told.split(&answer).nth(1).unwrap_or_else(|| panic!("{name}: {told}"))[..8].to_owned()
        }));
    }
    for name in &names {
        eventually(name, || (state_there(&server, name) == "done").then_some(()));
        assert_eq!(runs(&life, &format!("build {name}")), 1);
    }
    // Each branch that waited for the slot ran as the run that the pusher was told of.
    for (name, id) in names.iter().zip(&promised) {
        let format = "--format=%(trailers:key=dwp-run-id,valueonly,separator=)";
        let runs = server.git(&["log", "--grep", "^dwp-origin-state: build", format, name]);
        assert!(runs.lines().all(|run| run.starts_with(id)) && !runs.is_empty(), "{name}: {runs} {id}");
    }
    assert!(server.git_dir().join("aynig/slots/0.lock").exists());
    assert!(!server.git_dir().join("aynig/slots/1.lock").exists(), "one slot was enough");
    eventually("nothing is left waiting", || {
        std::fs::read_dir(server.git_dir().join("aynig/pending"))
            .map_or(true, |mut d| d.next().is_none())
            .then_some(())
    });
}

/// K33, K39: a push to a server whose commands come from a ref that is not there yet.
#[test]
fn whoever_pushes_is_told_that_the_ref_for_commands_is_missing() {
    let (server, life) = server();
    server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/nosuch"]);
    life.event("work", "test", "");
    let told = said(&push(&server, &life, &["origin", "work"]));
    assert!(told.contains("'refs/heads/nosuch', where commands come from, does not exist"), "{told}");
    // A pusher who asks for nothing need not know.
    life.git(&["branch", "plain", "main"]);
    assert_eq!(said(&push(&server, &life, &["origin", "plain"])), "");
}

/// K35, K39: what a tick will refuse is not promised.
#[test]
fn whoever_pushes_what_is_not_signed_as_asked_is_told_so() {
    let (server, life) = server();
    server.git(&["config", "--global", "aynig.requireSignature", "true"]);
    life.event("work", "test", "");
    let told = said(&push(&server, &life, &["origin", "work"]));
    assert!(told.contains("aynig: work: refused: its head carries no signature"), "{told}");
    assert!(!told.contains("dispatched") && !told.contains("queued"), "{told}");
    assert_eq!(state_there(&server, "work"), "test");
    // Of many the first are looked at.
    let id = life.rev("work");
    let many: Vec<String> = (0..70).map(|n| format!("{id}:refs/heads/many/{n}")).collect();
    let args: Vec<&str> = ["origin"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let told = said(&push(&server, &life, &args));
    assert_eq!(told.matches("carries no signature").count(), 64, "{told}");
}

/// K39: whatever environment Git gives it.
#[test]
fn the_hook_needs_nothing_of_its_environment() {
    let (server, life) = server();
    server.git(&["config", "--global", "--unset", "aynig.commandsFrom"]);
    let system = life.repo.home().join("system");
    std::fs::write(&system, "[aynig]\n\tcommandsFrom = refs/heads/main\n").unwrap();
    let id = life.event("work", "test", "");
    life.git(&["push", "-q", "--receive-pack=env AYNIG=0 git receive-pack", "origin", "work"]);
    let zero = "0".repeat(40);
    let script = format!(
        "umask 077; cd '{}' && echo '{zero} {id} refs/heads/work' | env -i GIT_DIR=. GIT_CONFIG_SYSTEM='{}' \
         GIT_QUARANTINE_PATH=/x GIT_INDEX_FILE=/y GIT_OBJECT_DIRECTORY= PATH='{}' ./{}/post-receive",
        server.path().display(),
        system.display(),
        std::env::var("PATH").unwrap(),
        if configured() { "aynig/hooks" } else { "hooks" },
    );
    let script = script.replace("GIT_OBJECT_DIRECTORY= ", "");
    let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success() && said(&output).contains("test dispatched on work"), "{output:?}");
    eventually("done", || (state_there(&server, "work") == "done").then_some(()));
}

/// K41: Git reads its configuration whenever we were killed.
#[test]
fn an_installation_that_is_killed_anywhere_leaves_a_working_repository() {
    if Command::new("strace").arg("-V").output().is_err() {
        return crate::support::skipped("strace is not installed");
    }
    let calls = ["rename", "openat", "write", "fchmodat,chmod", "mkdir", "unlink"];
    let limit = if std::env::var_os("AYNIG_MANY").is_some() { 60 } else { 6 };
    for call in calls {
        for nth in 1..limit {
            let life = Life::new(&[]);
            let mut strace = life.repo.command("strace");
            strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}")]);
            strace.args(["-e", &format!("inject={call}:signal=KILL:when={nth}"), BIN, "hooks", "install"]);
            let survived = strace.output().unwrap().status.success();
            git(&life, &["status", "--porcelain"]);
            git(&life, &["commit", "-q", "--allow-empty", "-m", "x"]);
            life.run(&["hooks", "install"]).expect(0);
            life.run(&["hooks", "uninstall"]).expect(0);
            let hooks = std::fs::read_dir(life.repo.git_dir().join("hooks")).unwrap().flatten();
            let ours =
                hooks.filter(|e| std::fs::read_to_string(e.path()).is_ok_and(|t| t.contains(">>> aynig")));
            assert_eq!(ours.count(), 0, "{call} {nth}");
            let left = life.repo.try_git(&["config", "--local", "receive.advertisePushOptions"]);
            assert!(left.stdout.is_empty(), "{call} {nth}: {left:?}");
            if survived {
                break;
            }
        }
    }
}

/// K41, K34: where a repository's own hooks are is asked before it is trusted too
#[test]
fn hooks_of_a_folder_of_the_repository_s_own_are_found_before_it_is_trusted() {
    let life = Life::new(&STEPS);
    let untrusted = || drop(life.git(&["config", "--global", "--unset-all", "aynig.commandsFrom"]));
    untrusted();
    life.git(&["config", "core.hooksPath", ".githooks"]);
    for name in ["post-commit", ".githooks/post-commit"] {
        life.write(name, "#!/bin/sh\necho mine\n");
        std::fs::set_permissions(life.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "tools"]);
    let said = life.run(&["hooks", "install"]).expect(0).stdout;
    assert!(configured() || said.contains(".githooks/post-commit"), "{said}");
    let changed = life.git(&["status", "--porcelain"]);
    assert!(
        changed.lines().all(|line| line.ends_with(".githooks/") || line.contains(" .githooks/")),
        "{changed}"
    );
    life.config("aynig.commandsFrom", "branch");
    life.run(&["hooks", "uninstall"]).expect(0);
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    let outside = life.shared().join("hooks");
    untrusted();
    life.git(&["config", "core.hooksPath", outside.to_str().unwrap()]);
    let said = life.run(&["hooks", "install"]);
    assert!(configured() || said.stdout.contains("outside") || said.stderr.contains("outside"), "{said:?}");
    assert!(!outside.exists());
}
