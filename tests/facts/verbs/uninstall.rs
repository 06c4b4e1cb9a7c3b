//! `uninstall`: everything of ours goes, nothing of a user's does, and work stays unless it is asked for.

use crate::support::skipped;
use crate::verbs::rig::Rig;
use nix::fcntl::{Flock, FlockArg};

/// What a repository of Git's alone has in its Git directory.
fn ours(rig: &Rig) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["aynig", "worktrees", "hooks/post-commit"] {
        found.extend(rig.git_dir().join(name).exists().then(|| name.to_owned()));
    }
    found.extend(rig.dir.join(".aynig/logs").exists().then(|| "logs".to_owned()));
    let refs = rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]);
    found.extend(refs.lines().map(str::to_owned));
    let config = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
    found.extend(
        config.lines().filter(|line| line.contains("aynig") || line.contains("advertise")).map(str::to_owned),
    );
    found
}

/// K26, K46: a message may be the only one to name what it hands over.
#[test]
fn work_that_a_message_hands_over_and_no_branch_has_stays_unless_asked_for() {
    let rig = Rig::new();
    rig.set("there", "nothing");
    let work = rig.git(&["commit-tree", "-m", "only here", "main^{tree}"]);
    rig.aynig(&["send", "there", "-m", "take it", "--attach", &work]).expect(0);
    rig.aynig(&["send", "there", "-m", "a word alone"]).expect(0);
    let list = || rig.git(&["for-each-ref", "--format=%(refname) %(parent)", "refs/aynig"]);
    assert_eq!(list().lines().count(), 2);
    rig.aynig(&["uninstall", "--force", "--trust"]).expect(0);
    let left = list();
    assert!(left.lines().count() == 1 && left.ends_with(&work), "{left}");
    rig.aynig(&["uninstall", "--force", "--attempts"]).expect(0);
    assert_eq!(list(), "");
}

/// K16, K44: neither `gc` nor `uninstall` takes a file from the folder of logs that a branch has committed, or that the
/// user made.
#[test]
fn files_of_the_users_in_the_folder_of_logs_stay() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let logs = rig.dir.join(".aynig/logs");
    rig.git(&["add", "-f", ".aynig/logs"]);
    rig.git(&["commit", "-qm", "logs"]);
    std::fs::write(logs.join("notes.log"), "mine").unwrap();
    rig.set("more", "ok");
    rig.aynig(&["tick", "more"]).expect(0);
    let count = || std::fs::read_dir(&logs).unwrap().count();
    let before = count();
    std::fs::read_dir(&logs).unwrap().for_each(|entry| rig.age(&entry.unwrap().path(), 60));
    rig.aynig(&["gc"]).expect(0);
    assert_eq!((rig.git(&["status", "--short", "--", ".aynig"]), count()), (String::new(), before - 2));
    rig.set("again", "ok");
    rig.aynig(&["tick", "again"]).expect(0);
    rig.aynig(&["uninstall", "--force", "--trust"]).expect(0);
    assert_eq!((rig.git(&["status", "--short", "--", ".aynig"]), count()), (String::new(), before - 2));
    assert_eq!(rig.aynig(&["uninstall"]).expect(0).out, "");
}

/// K41: a symbolic ref among ours goes, wherever it leads, and nothing that it leads to.
#[test]
fn a_symbolic_ref_among_ours_goes_alone() {
    let rig = Rig::new();
    rig.set("there", "nothing");
    let branches = rig.git(&["for-each-ref", "refs/heads"]);
    for (name, target) in [("heard/one", "refs/heads/gone"), ("inbox/there", "refs/heads/there")] {
        rig.git(&["symbolic-ref", &format!("refs/aynig/{name}"), target]);
    }
    let dry = rig.aynig(&["uninstall", "--dry-run"]).expect(0).out;
    for name in ["heard/one", "inbox/there"] {
        assert!(dry.contains(&format!("remove ref refs/aynig/{name}\n")), "{dry}");
    }
    rig.aynig(&["uninstall", "--force", "--trust"]).expect(0);
    for name in ["heard/one", "inbox/there"] {
        assert!(!rig.git_dir().join("refs/aynig").join(name).exists());
    }
    assert_eq!(ours(&rig), [""; 0]);
    assert_eq!(rig.git(&["for-each-ref", "refs/heads"]), branches);
    assert_eq!(rig.aynig(&["uninstall"]).expect(0).out, "");
}

/// K26, K41, K45
#[test]
fn all_that_is_ours_goes_and_work_and_trust_stay_unless_asked_for() {
    let rig = Rig::new();
    let config = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
    rig.set("bad", "fail");
    rig.aynig(&["tick", "bad"]).expect(1);
    rig.aynig(&["hooks", "install"]).expect(0);
    rig.git(&["config", "aynig.jobs", "2"]);
    rig.git(&["update-ref", "refs/aynig/remote/origin/x", "main"]);
    let by_tree = format!("aynig.{}.maxhops", rig.dir.display());
    rig.git(&["config", "--global", &by_tree, "9"]);
    let branches = rig.git(&["for-each-ref", "refs/heads"]);
    let attempt = rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts"]);
    assert!(!attempt.is_empty());
    // Shown first, and nothing is done where no user says yes.
    let dry = rig.aynig(&["uninstall", "--dry-run"]).expect(0).out;
    let folder = rig.dir.join(".aynig/logs").display().to_string();
    for line in [
        &format!("remove folder '{folder}'"),
        "remove ref refs/aynig/remote/origin/x",
        "remove configuration aynig.jobs",
        &format!("keep   work in {attempt}"),
        "keep   your configuration aynig.",
        &format!("keep   your configuration {by_tree}"),
    ] {
        assert!(dry.contains(line), "{line}: {dry}");
    }
    let before = ours(&rig);
    let said = rig.aynig(&["uninstall"]).expect(2);
    assert!(said.out == dry && said.err.contains("hint: git aynig uninstall --force"), "{}", said.err);
    assert_eq!(ours(&rig), before);
    let said = rig.aynig(&["uninstall", "--force"]).expect(0);
    assert_eq!(said.err.matches("hint: git config --global --unset-all ").count(), 2, "{}", said.err);
    assert!(said.err.contains(&by_tree), "{}", said.err);
    assert_eq!(ours(&rig), [&*attempt]);
    assert_eq!(std::fs::read_to_string(rig.git_dir().join("config")).unwrap(), config);
    assert_eq!(rig.git(&["for-each-ref", "refs/heads"]), branches);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    // Work and trust go where that is said; after that there is nothing.
    rig.aynig(&["uninstall", "--force", "--attempts", "--trust"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
    assert_eq!(rig.aynig(&["trust", "--list"]).expect(0).out, "");
    let global = std::fs::read_to_string(rig.world.home().join(".gitconfig")).unwrap();
    assert!(!global.contains("aynig"), "{global}");
    assert_eq!(rig.aynig(&["uninstall"]).expect(0).out, "");
}

/// K14: no runner's run is taken from under it.
#[test]
fn while_a_run_lives_nothing_is_removed() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let before = ours(&rig);
    let said = rig.aynig(&["uninstall", "--force", "--attempts"]).expect(3);
    assert!(said.err.contains("a run lives"), "{}", said.err);
    assert_eq!(ours(&rig), before);
    rig.go();
    assert!(held.wait_with_output().unwrap().status.success());
    rig.aynig(&["uninstall", "--force"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
}

/// K14: while what is ours goes, no run begins; a user who asks for one is told, and may ask again.
#[test]
fn while_it_is_at_work_nothing_is_claimed() {
    let rig = Rig::new();
    let head = rig.set("work", "ok");
    let aynig = rig.git_dir().join("aynig");
    std::fs::create_dir_all(&aynig).unwrap();
    let file = std::fs::File::create(aynig.join("uninstall.lock")).unwrap();
    let at_work = Flock::lock(file, FlockArg::LockExclusive).unwrap();
    let said = rig.aynig(&["tick", "work"]).expect(75);
    assert!(said.err.contains("'git aynig uninstall' is at work"), "{}", said.err);
    assert_eq!(rig.git(&["rev-parse", "work"]), head);
    drop(at_work);
    // Killed, it leaves the file, and that is in no command's way.
    rig.aynig(&["tick", "work"]).expect(0);
    rig.aynig(&["uninstall", "--force"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
}

/// K14: whichever comes first, a trigger has one outcome, and nothing is taken from under a run.
#[test]
fn a_tick_beside_it_is_kept_out_or_keeps_it_out() {
    let rig = Rig::new();
    for round in 0..12 {
        let branch = format!("b{round}");
        rig.aynig(&["tick"]).expect(0);
        rig.set(&branch, "ok");
        let (tick, gone) = (rig.spawn(&["tick", &branch]), rig.spawn(&["uninstall", "--force"]));
        let (tick, gone) = (tick.wait_with_output().unwrap(), gone.wait_with_output().unwrap());
        let told = format!("{tick:?}\n{gone:?}");
        assert!(matches!(tick.status.code(), Some(0 | 75)), "{told}");
        assert!(matches!(gone.status.code(), Some(0 | 3)), "{told}");
        rig.aynig(&["tick", &branch]).expect(0);
        let states = rig.world.states(&rig.dir, &branch, "main");
        assert_eq!(states, ["done", "working", "ok"], "{told}");
    }
    rig.aynig(&["uninstall", "--force"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
    rig.world.assert_sound(&rig.dir);
}

/// K26, K41, K45: killed at any step, it is called again and ends as if it had not been; so does a tick before that.
#[test]
fn killed_anywhere_the_next_one_ends_the_same() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return skipped("there is no strace here");
    }
    let rig = Rig::new();
    let config = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
    rig.set("bad", "fail");
    rig.set("good", "ok");
    rig.aynig(&["tick"]).expect(1);
    rig.set("next", "ok");
    rig.aynig(&["hooks", "install"]).expect(0);
    rig.git(&["config", "aynig.jobs", "2"]);
    rig.git(&["config", "aynig.hooks", "off"]);
    let (root, all) = (rig.world.root(), "repo home");
    let sh = |script: &str| rig.world.run("sh", &root, &["-c", script]).expect(0);
    sh(&format!("mkdir saved && cp -a {all} saved/"));
    let branches = rig.git(&["for-each-ref", "refs/heads"]);
    for (call, stride) in [("unlink", 9), ("rmdir", 3), ("rename", 1), ("flock", 2), ("clone|vfork", 1)] {
        for nth in (1..).step_by(stride) {
            assert!(nth < 600, "{call} never ends");
            let mut command = rig.world.command("strace", &rig.dir);
            let inject = format!("inject=/^({call}):signal=KILL:when={nth}");
            command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace=/^({call})"), "-e", &inject]);
            command.arg(root.join("bin/git-aynig")).args(["uninstall", "--force", "--attempts", "--trust"]);
            let ended = command.output().unwrap().status.success();
            let at = format!("{call} {nth}");
            assert_eq!(rig.git(&["for-each-ref", "refs/heads"]), branches, "{at}");
            rig.git(&["status", "--porcelain"]);
            if nth % 2 == 0 && !rig.aynig(&["trust", "--list"]).expect(0).out.is_empty() {
                let said = rig.aynig(&["tick", "next"]);
                assert_eq!(said.code, 0, "{at}: {}", said.err);
                assert_eq!(rig.world.states(&rig.dir, "next", "main"), ["done", "working", "ok"], "{at}");
            }
            let said = rig.aynig(&["uninstall", "--force", "--attempts", "--trust"]);
            assert_eq!(said.code, 0, "{at}: {}", said.err);
            assert_eq!(ours(&rig), [""; 0], "{at}");
            let after = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
            assert_eq!(after, config, "{at}");
            assert_eq!(rig.aynig(&["trust", "--list"]).expect(0).out, "", "{at}");
            assert_eq!(rig.git(&["status", "--porcelain"]), "", "{at}");
            sh(&format!("rm -rf {all} && cp -a saved/. ."));
            if ended {
                break;
            }
        }
    }
}
