//! Branches that a user has checked out: an outcome arrives, or nothing of the user's moves.

use crate::support::life::{BIN, Done, Life, begin_of_a_second, differences, done, eventually};
use crate::support::skipped;
use nix::sys::signal::Signal;
use std::fs;
use std::path::PathBuf;

const NONE: Vec<PathBuf> = Vec::new();

const EDITS: &str = "echo x >>\"$T/runs\"; echo run >>file; mkdir -p new; echo n >new/file; rm dir/other\n\
    echo 'SET_STATE {\"state\":\"next\"}'";

/// A repository that stands on `work`, whose head asks for `build`.
fn checked_out(script: &str) -> Life {
    let life = Life::new(&[("build", script)]);
    life.git(&["checkout", "-qb", "work"]);
    life.event("work", "build", "");
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    life
}

/// K28, K45
#[test]
fn a_move_without_a_change_is_not_seen_in_the_working_tree() {
    let life = checked_out("echo 'SET_STATE {\"state\":\"next\"}'");
    life.write("file", "edited\n");
    life.write("staged", "s\n");
    life.git(&["add", "staged"]);
    let ours = [
        ".git/objects",
        ".git/aynig",
        ".git/refs/aynig",
        ".git/refs/heads/work",
        ".git/logs/refs/heads/work",
        ".git/logs/HEAD",
        ".git/worktrees",
        ".aynig/logs",
    ];
    let (before, status) = (life.snapshot(&ours), life.git(&["status", "--porcelain=v2"]));
    life.tick(&["work"]).expect(0);
    assert_eq!(differences(&before, &life.snapshot(&ours)), NONE);
    assert_eq!(life.git(&["status", "--porcelain=v2"]), status);
    assert_eq!(life.state("work"), "next");
}

/// K28
#[test]
fn an_outcome_arrives_beside_edits_that_it_does_not_touch() {
    let life = checked_out(EDITS);
    life.write("mine", "untracked\n");
    life.write("staged", "s\n");
    life.git(&["add", "staged"]);
    life.tick(&["work"]).expect(0);
    assert_eq!(
        (life.read("file"), life.read("new/file"), life.path("dir").exists()),
        ("one\nrun\n".into(), "n\n".into(), false)
    );
    assert_eq!(life.git(&["status", "--porcelain"]), "A  staged\n?? mine");
    // An edited file that the outcome does not touch stays edited.
    life.write("new/file", "mine\n");
    life.command("again", "echo 2 >>file; echo 'SET_STATE {\"state\":\"last\"}'");
    life.git(&["add", ".aynig"]);
    life.git(&["commit", "-qm", "again", ".aynig"]);
    life.event("work", "again", "");
    life.tick(&["work"]).expect(0);
    assert_eq!((life.read("new/file"), life.read("file")), ("mine\n".into(), "one\nrun\n2\n".into()));
    assert_eq!(life.git(&["status", "--porcelain"]), " M new/file\nA  staged\n?? mine");
    assert_eq!(fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count(), 0);
}

/// K28: an edit of the same size, in the second in which Git wrote the file, is an edit.
#[test]
fn an_edit_in_the_second_of_the_checkout_is_in_the_way() {
    let life = checked_out("printf 'run\n' >file; sleep 1.2; echo 'SET_STATE {\"state\":\"next\"}'");
    begin_of_a_second();
    fs::remove_file(life.path("file")).unwrap();
    life.git(&["checkout", "-q", "--", "file"]);
    life.write("file", "ane\n");
    life.tick(&["work"]).expect(1);
    assert_eq!((life.read("file"), life.state("work").as_str()), ("ane\n".into(), "stalled"));
}

/// K28: in a linked worktree as well.
#[test]
fn an_outcome_arrives_in_a_linked_worktree() {
    let life = Life::new(&[("build", EDITS)]);
    let other = life.repo.home().join("linked tree");
    life.git(&["worktree", "add", "-q", "-b", "work", other.to_str().unwrap()]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "one\nrun\n");
    assert_eq!(life.git(&["-C", other.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(life.read("file"), "one\n");
}

/// The run ended `stalled` for a conflict, and everything of the user's is as it was.
fn blocked(prepare: impl Fn(&Life)) -> Life {
    let life = checked_out(EDITS);
    prepare(&life);
    let ours = [
        ".git/objects",
        ".git/aynig",
        ".git/refs/aynig",
        ".git/refs/heads/work",
        ".git/logs/refs/heads/work",
        ".git/logs/HEAD",
        ".git/worktrees",
        ".git/index",
        ".aynig/logs",
    ];
    let (before, status) = (life.snapshot(&ours), life.git(&["status", "--porcelain=v2", "--ignored"]));
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(1), Some("stalled")), "{report}");
    assert!(report["why"].as_str().unwrap().starts_with("checkout: "), "{report}");
    assert_eq!(differences(&before, &life.snapshot(&ours)), NONE);
    let logs = |text: &str| {
        text.lines().filter(|l| !l.contains(".aynig/logs")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(logs(&life.git(&["status", "--porcelain=v2", "--ignored"])), logs(&status));
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.show(attempt, "file"), "one\nrun");
    assert_eq!(life.trailer(attempt, "dwp-state").as_deref(), Some("next"));
    assert!(life.body("work").contains(attempt));
    life
}

/// K28, K55
#[test]
fn local_edits_in_the_way_end_stalled_and_retry_lands_after_a_stash() {
    let life = blocked(|life| life.write("file", "mine\n"));
    // Still in the way: nothing moves.
    let head = life.rev("work");
    life.run(&["retry", "work"]).expect(1);
    assert_eq!((life.rev("work"), life.read("file")), (head, "mine\n".into()));
    life.git(&["stash", "-q"]);
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(
        (life.state("work"), life.read("file"), life.said("runs")),
        ("next".into(), "one\nrun\n".into(), "x\n".into())
    );
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    assert_eq!(life.attempts(), Vec::<String>::new());
    // What was landed by hand is the run's work all the same.
    let shown = life.run(&["diff", "work", "--", "--stat"]).expect(0);
    assert!(shown.stdout.contains("new/file") && shown.stderr.is_empty(), "{shown:?}");
    life.run(&["diff", &life.trailer("work", "dwp-run-id").unwrap()]).expect(0);
}

/// K28
#[test]
fn after_a_commit_of_the_edits_retry_lands_on_top_of_it() {
    let life = blocked(|life| life.write("dir/other", "mine\n"));
    life.git(&["commit", "-qam", "my edits"]);
    let mine = life.rev("work");
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.state("work"), life.said("runs")), ("next".into(), "x\n".into()));
    assert_eq!(life.rev("work^"), mine);
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    assert_eq!(life.show("work", "file"), "one\nrun");
}

/// K28: files that Git does not know are the user's work too, ignored ones as well.
#[test]
fn untracked_and_ignored_files_are_not_written_over() {
    blocked(|life| life.write("new/file", "mine\n"));
    blocked(|life| {
        // Only here: what the whole repository ignores is in no outcome.
        life.write(".gitignore", "new/\n.gitignore\n");
        life.write("new/file", "mine, and ignored\n");
    });
    blocked(|life| {
        life.write(".gitignore", "new\n.gitignore\n");
        life.write("new", "a file where a folder comes\n");
    });
}

/// K28
#[test]
fn a_branch_that_is_rebased_or_bisected_is_skipped() {
    let life = checked_out(EDITS);
    let trigger = life.rev("work");
    life.git(&["bisect", "start"]);
    let (done, report) = life.report(&["work"]);
    assert_eq!(
        (done.code, report["result"].as_str(), report["why"].as_str()),
        (Some(3), Some("busy"), Some("bisected"))
    );
    life.git(&["bisect", "reset"]);
    diverge(&life);
    let head = life.event("work", "build", "");
    life.repo.try_git(&["rebase", "--keep-empty", "main"]);
    let (_, report) = life.report(&["work"]);
    assert_eq!(
        (report["result"].as_str(), report["why"].as_str()),
        (Some("busy"), Some("rebased")),
        "{report}"
    );
    life.tick(&[]).expect(0);
    assert_eq!(life.rev("refs/heads/work"), head);
    life.git(&["rebase", "--abort"]);
    life.tick(&["work"]).expect(0);
    assert_ne!(life.rev("work"), trigger);
}

/// A repository that stands on `work`, which a rebase onto `main` stops at a conflict.
fn in_conflict(script: &str) -> Life {
    let life = checked_out(script);
    diverge(&life);
    life
}

/// Changes one line on `work` and on `main`: a rebase stops at the conflict.
fn diverge(life: &Life) {
    life.git(&["checkout", "-q", "main"]);
    life.write("file", "other\n");
    life.git(&["commit", "-qam", "other"]);
    life.git(&["checkout", "-q", "work"]);
    life.write("file", "mine\n");
    life.git(&["commit", "-qam", "mine"]);
}

/// K28, K26: a rebase that began while the command ran is in the way of its outcome, which `retry` lands.
#[test]
fn an_outcome_waits_for_a_rebase_that_began_meanwhile() {
    let script =
        "echo up >\"$T/up\"; read -r _ <\"$T/gate\"; echo run >new\necho 'SET_STATE {\"state\":\"next\"}'";
    for end in ["--quit", "--abort"] {
        let life = in_conflict(script);
        life.event("work", "build", "");
        let mut gate = life.gate("gate");
        let tick = life.start_tick(&["--lease", "4s", "work"]);
        life.hear("up");
        life.repo.try_git(&["rebase", "--keep-empty", "main"]);
        // Its lease goes on meanwhile.
        let lease = life.rev("refs/heads/work");
        eventually("the lease to be renewed", || (life.rev("refs/heads/work") != lease).then_some(()));
        gate.open();
        let said = tick.done().expect(1);
        assert!(said.stderr.contains("is rebasing the branch"), "{said:?}");
        assert!(said.stderr.contains("rebase --quit): git aynig retry work"), "{said:?}");
        assert_eq!((life.states("work")[0].as_str(), life.attempts().len()), ("stalled", 1));
        let said = life.run(&["retry", "work"]).expect(1);
        assert!(said.stderr.contains("is being rebased in") && said.stderr.contains("--quit"), "{said:?}");
        life.git(&["rebase", end]);
        // What is given up has put the lease back, of which no run is left.
        eventually("the branch to be stalled", || {
            life.tick(&["work"]);
            (life.state("work") == "stalled").then_some(())
        });
        life.run(&["retry", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), life.show("work", "new")), ("next", "run".to_owned()));
        assert_eq!((life.show("work", "file"), life.attempts().len()), ("mine".into(), 0), "{end}");
    }
}

/// K28: what a rebase that is given up would drop, no verb writes. A lease goes on.
#[test]
fn nothing_is_written_on_a_branch_that_is_being_rebased() {
    let life = in_conflict("exit 3");
    life.event("work", "build", "");
    let refused = |verb: &[&str]| {
        let refs = life.git(&["for-each-ref"]);
        life.repo.try_git(&["rebase", "--keep-empty", "main"]);
        let said = life.run(verb).expect(1);
        assert!(said.stderr.contains("'work' is being rebased in"), "{said:?}");
        assert!(said.stderr.contains("rebase --quit"), "{said:?}");
        life.git(&["rebase", "--abort"]);
        assert_eq!(life.git(&["for-each-ref"]), refs);
    };
    refused(&["set-state", "next", "-b", "work"]);
    refused(&["fan", "work", "-n", "2"]);
    life.tick(&["work"]).expect(1);
    refused(&["retry", "work"]);
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(life.state("work"), "build");
    // Nor on an attempt that another one's choice would end.
    life.command("build", "echo x >x; echo 'SET_STATE {\"state\":\"done\"}'");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "it builds\n\ndwp-state: build"]);
    life.run(&["fan", "work", "-n", "2"]).expect(0);
    life.run(&["run", "work-1"]).expect(0);
    life.git(&["checkout", "-q", "work-2"]);
    life.write("file", "second\n");
    life.git(&["commit", "-qam", "second"]);
    let refs = life.git(&["for-each-ref", "refs/heads"]);
    life.repo.try_git(&["rebase", "--keep-empty", "main"]);
    let said = life.run(&["choose", "work-1"]).expect(1);
    assert!(said.stderr.contains("'work-2' is being rebased in"), "{said:?}");
    life.git(&["rebase", "--abort"]);
    assert_eq!(life.git(&["for-each-ref", "refs/heads"]), refs);
    life.git(&["checkout", "-q", "main"]);
    life.run(&["choose", "work-1"]).expect(0);
}

/// K28: so is one that a rebase moves along with its own (`--update-refs`).
#[test]
fn a_branch_that_a_rebase_moves_along_is_skipped() {
    let life = Life::new(&[("build", EDITS)]);
    if life.repo.try_git(&["rebase", "--update-refs", "HEAD"]).status.code() == Some(129) {
        return crate::support::skipped("this Git has no 'rebase --update-refs'");
    }
    life.git(&["checkout", "-q", "-b", "work"]);
    life.write("file", "mine\n");
    life.git(&["commit", "-qam", "mine"]);
    let head = life.event("work", "build", "");
    life.git(&["checkout", "-q", "-b", "top"]);
    life.write("more", "x\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "more"]);
    life.git(&["checkout", "-q", "main"]);
    life.write("file", "other\n");
    life.git(&["commit", "-qam", "other"]);
    life.git(&["checkout", "-q", "top"]);
    life.repo.try_git(&["rebase", "--update-refs", "--keep-empty", "main"]);
    // As many come before it as there may be.
    let list = life.repo.git_dir().join("rebase-merge/update-refs");
    let id = life.rev("main");
    let many: String = (0..2000).map(|n| format!("refs/heads/other-{n}\n{id}\n{id}\n")).collect();
    let own = fs::read_to_string(&list).unwrap();
    fs::write(&list, many + &own).unwrap();
    let (_, report) = life.report(&["work"]);
    assert_eq!(
        (report["result"].as_str(), report["why"].as_str()),
        (Some("busy"), Some("rebased")),
        "{report}"
    );
    fs::write(&list, own).unwrap();
    assert_eq!(life.rev("refs/heads/work"), head);
    life.git(&["rebase", "--abort"]);
    life.tick(&["work"]).expect(0);
}

/// K28: the state between swap and checkout, as a crash leaves it, written by hand.
#[test]
fn a_checkout_that_was_noted_and_not_done_is_finished_by_the_next_tick() {
    let life = checked_out(EDITS);
    life.git(&["checkout", "-q", "--detach"]);
    life.tick(&["work"]).expect(0);
    let (old, new) = (life.rev("work~1"), life.rev("work"));
    // The working tree as it was before the swap, on the branch as it is after.
    life.git(&["read-tree", "--reset", "-u", &old]);
    life.git(&["symbolic-ref", "HEAD", "refs/heads/work"]);
    life.write("mine", "untracked\n");
    assert_ne!(life.git(&["status", "--porcelain"]), "?? mine");
    let bytes = |path: &std::path::Path| serde_json::to_string(path.as_os_str().as_encoded_bytes()).unwrap();
    let folder = life.path(".git/aynig/checkouts");
    fs::create_dir_all(&folder).unwrap();
    let note = folder.join("0.json");
    let at = life.repo.path().canonicalize().unwrap();
    let branch = serde_json::to_string(&b"refs/heads/work"[..]).unwrap();
    let (dir, git_dir) = (bytes(&at), bytes(&at.join(".git")));
    let json =
        format!(r#"{{"dir":{dir},"git_dir":{git_dir},"branch":{branch},"old":"{old}","new":"{new}"}}"#);
    fs::write(&note, json).unwrap();
    // And half a one, of a process that was killed while writing it.
    let half = folder.join("1.json.99");
    fs::write(&half, "{").unwrap();
    let old_enough = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for file in [&note, &half] {
        fs::File::options().write(true).open(file).unwrap().set_modified(old_enough).unwrap();
    }
    life.tick(&[]).expect(0);
    assert!(!half.exists());
    assert_eq!(life.git(&["status", "--porcelain"]), "?? mine");
    assert_eq!((life.read("file"), note.exists()), ("one\nrun\n".into(), false));
}

/// K28: the runner is killed at many moments around the swap; the next ticks make it whole.
#[test]
fn a_runner_killed_around_the_swap_leaves_nothing_half_done() {
    let life = checked_out("echo run >>file; echo 'SET_STATE {\"state\":\"next\"}'; echo up >\"$T/up\"");
    for n in 0..6 {
        let trigger = life.event("work", "build", "");
        let _ = fs::remove_file(life.shared().join("up"));
        let tick = life.start_tick(&["--lease", "4s", "work"]);
        life.hear("up");
        // From the command's last word on, a little later each time: the swap is a few milliseconds away.
        std::thread::sleep(std::time::Duration::from_millis(3 * n));
        tick.signal(Signal::SIGKILL);
        drop(tick);
        eventually("the branch to be nobody's", || {
            life.tick(&["work"]);
            (life.state("work") != "working").then_some(())
        });
        // A note counts once it is 2 s old: it may belong to a swap under way.
        let mut last = String::new();
        let finished = || {
            let said = life.tick(&["work"]);
            let left = fs::read_dir(life.path(".git/aynig/checkouts"));
            let left: Vec<_> = left.into_iter().flatten().flatten().map(|e| e.file_name()).collect();
            last = format!("{left:?} {said:?}");
            left.is_empty().then_some(())
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually("an end", finished)));
        assert!(ended.is_ok(), "the checkout was not finished in round {n}: {last}");
        assert_eq!(life.git(&["status", "--porcelain"]), "", "round {n}");
        assert!(["stalled", "next"].contains(&&*life.state("work")) && life.rev("work") != trigger);
    }
    life.repo.assert_sound();
}

/// K28: a user's `git add` at the wrong moment is no local change in the way.
#[test]
fn an_index_that_is_locked_for_a_moment_is_waited_for() {
    let life = checked_out(EDITS);
    let lock = life.path(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let tick = life.start_tick(&["work"]);
    eventually("it is about to land", || {
        let mut all = fs::read_dir(life.path(".git/aynig")).ok()?.flatten();
        all.any(|e| e.file_name().to_string_lossy().starts_with("merge-")).then_some(())
    });
    assert_eq!(life.states("work"), ["working", "build"]);
    fs::remove_file(&lock).unwrap();
    tick.done().expect(0);
    assert_eq!((life.state("work"), life.read("file")), ("next".into(), "one\nrun\n".into()));
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    assert!(!lock.exists());
}

/// K28, K43: the lock of a runner that was killed while its outcome arrived is known by its twin.
#[test]
fn an_index_lock_of_a_dead_runner_is_removed_and_no_other() {
    let life = checked_out(EDITS);
    let (lock, twin) = (life.path(".git/index.lock"), life.path(".git/aynig/locks/of-the-dead"));
    fs::create_dir_all(twin.parent().unwrap()).unwrap();
    fs::write(&twin, "").unwrap();
    fs::hard_link(&twin, &lock).unwrap();
    life.tick(&["work"]).expect(0);
    assert_eq!((life.state("work"), life.read("file")), ("next".into(), "one\nrun\n".into()));
    assert!(!lock.exists() && !twin.exists());
    // Another process's lock stays, and is named.
    life.event("work", "build", "");
    fs::write(&lock, "").unwrap();
    let (done, report) = life.report(&["work"]);
    assert_eq!(done.code, Some(1));
    assert!(report["why"].as_str().unwrap().contains("checkout"), "{report}");
    assert!(life.body("work").contains("index.lock"), "{}", life.body("work"));
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.state("work"), life.read("file")), ("next".into(), "one\nrun\nrun\n".into()));
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// Runs a tick of `work` under strace, which makes calls on this path fail; `None` where there is no strace.
fn tick_with(life: &Life, calls: &str, path: &str, error: &str) -> Option<Done> {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        skipped("strace is not installed");
        return None;
    }
    let mut traced = life.repo.command("strace");
    let inject = format!("inject={calls}:error={error}");
    // Git calls with paths from the top of the working tree on.
    traced.args(["-f", "-qq", "-o", "/dev/null", "-P", path, "-P"]).arg(life.path(path));
    traced.args(["-e", &format!("trace={calls}")]);
    traced.args(["-e", &inject, BIN, "tick", "work"]).env("T", life.shared());
    Some(done(traced.output().unwrap()))
}

/// K28: what the system lets Git remove no more stays, untracked; that is told, as Git tells it
#[test]
fn a_file_that_cannot_be_removed_is_told() {
    let life = checked_out(EDITS);
    // The command removes its own by another call.
    let Some(said) = tick_with(&life, "unlink", "dir/other", "EPERM") else { return };
    assert_eq!((life.state("work"), life.read("file")), ("next".into(), "one\nrun\n".into()));
    assert_eq!(life.git(&["status", "--porcelain"]), "?? dir/");
    let told = said.stderr.contains("unable to unlink 'dir/other': Operation not permitted");
    assert!(said.code == Some(0) && told, "{said:?}");
}

/// K28, K43: the outcome arrived, and the user's next command would meet our lock.
#[test]
fn an_index_lock_that_cannot_be_removed_is_told_and_the_next_verb_removes_it() {
    let life = checked_out(EDITS);
    let Some(said) = tick_with(&life, "unlink,unlinkat", ".git/index.lock", "EACCES") else { return };
    assert_eq!((life.state("work"), life.read("file")), ("next".into(), "one\nrun\n".into()));
    assert!(life.path(".git/index.lock").exists());
    assert!(
        said.code == Some(1) && said.stderr.contains("cannot remove") && said.stderr.contains("index.lock"),
        "{said:?}"
    );
    life.tick(&["work"]).expect(0);
    assert!(!life.path(".git/index.lock").exists());
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    life.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
}

/// K42: a branch that has moved, and of which the disk has not taken that, is reported as such.
#[test]
fn a_move_that_could_not_be_synced_is_no_success() {
    let life = checked_out("echo 'SET_STATE {\"state\":\"next\"}'");
    life.config("aynig.fsync", "true");
    let Some(said) = tick_with(&life, "fsync,fdatasync", ".git/refs/heads", "EIO") else { return };
    assert!(said.code == Some(128) && said.stderr.contains("cannot sync"), "{said:?}");
    assert!(!said.stderr.contains("nothing was claimed"), "{said:?}");
}
