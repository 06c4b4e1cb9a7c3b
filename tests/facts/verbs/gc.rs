use crate::support::world::now;
use crate::verbs::rig::Rig;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "aynig.gc/1";

impl Rig {
    /// Runs gc with these settings; kind and name of what was removed.
    fn gc(&self, args: &[&str]) -> Vec<(String, String)> {
        let args = [&["gc", "--json"], args].concat();
        let text = |o: &serde_json::Value, key: &str| o[key].as_str().unwrap().to_owned();
        self.json(&args, 0, SCHEMA).iter().map(|o| (text(o, "kind"), text(o, "name"))).collect()
    }

    fn worktrees(&self) -> usize {
        self.git(&["worktree", "list"]).lines().count()
    }

    fn own(&self, name: &str) -> PathBuf {
        self.git_dir().join("aynig").join(name)
    }
}

fn of_kind<'a>(removed: &'a [(String, String)], kind: &str) -> Vec<&'a str> {
    removed.iter().filter(|(k, _)| k == kind).map(|(_, name)| name.as_str()).collect()
}

/// K44: a look makes nothing, and yet tells of a slot whose notes are gone.
#[test]
fn a_dry_run_makes_nothing() {
    let rig = Rig::new();
    assert_eq!(rig.gc(&["-n"]), []);
    assert!(!rig.own("slots").exists());
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    std::fs::remove_dir_all(rig.own("slots")).unwrap();
    assert_eq!(of_kind(&rig.gc(&["-n"]), "slot").len(), 1);
    assert!(!rig.own("slots").exists());
    assert_eq!(of_kind(&rig.gc(&[]), "slot").len(), 1);
    assert_eq!(rig.worktrees(), 1);
}

#[test]
fn an_idle_slot_goes_and_the_next_tick_makes_another() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    assert_eq!(rig.worktrees(), 2);
    let dry = rig.gc(&["-n"]);
    assert_eq!(of_kind(&dry, "slot").len(), 1);
    assert!(Path::new(of_kind(&dry, "slot")[0]).join("made.txt").exists());
    assert_eq!(rig.worktrees(), 2);
    assert_eq!(rig.gc(&[]), dry);
    assert_eq!(rig.worktrees(), 1);
    assert!(!Path::new(of_kind(&dry, "slot")[0]).exists());
    assert_eq!(rig.gc(&[]), []);
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    rig.world.assert_sound(&rig.dir);
}

#[test]
fn a_registration_whose_folder_is_gone_goes() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    std::fs::remove_dir_all(rig.world.home().join(".cache")).unwrap();
    std::fs::remove_dir_all(rig.own("slots")).unwrap();
    assert_eq!(of_kind(&rig.gc(&[]), "slot").len(), 1);
    assert_eq!(rig.worktrees(), 1);
}

#[test]
fn nothing_of_a_living_run_is_touched() {
    let rig = Rig::new();
    let held = rig.hold("work");
    // Whatever its age: logs, run folder, copies of commands.
    for folder in [rig.dir.join(".aynig/logs"), rig.own("runs"), rig.own("commands")] {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            rig.age(&path, 400);
            if path.is_dir() && folder.ends_with("runs") {
                std::fs::read_dir(&path).unwrap().for_each(|e| rig.age(&e.unwrap().path(), 400));
                rig.age(&path, 400);
            }
        }
    }
    rig.git(&["checkout", "-q", "--detach"]);
    rig.git(&["config", "aynig.attemptExpire", "0"]);
    assert_eq!(rig.gc(&[]), []);
    rig.go();
    let output = held.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(rig.git(&["show", "work:made.txt"]), "x");
    assert!(rig.aynig(&["logs", "work"]).expect(0).out.starts_with("one\ntwo\n"));
}

#[test]
fn work_of_a_killed_runner_is_kept_before_its_slot_goes() {
    let rig = Rig::new();
    let mut held = rig.hold("work");
    let run = rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[0]["run_id"].clone();
    held.kill().unwrap();
    assert_eq!(held.wait().unwrap().signal(), Some(9));
    let attempt = format!("refs/aynig/attempts/{}", run.as_str().unwrap());
    let objects = rig.json(&["gc", "--json"], 0, SCHEMA);
    let slot = objects.iter().find(|o| o["kind"] == "slot").expect("the slot was not removed");
    assert_eq!(slot["kept"], *attempt);
    assert_eq!(rig.git(&["show", &format!("{attempt}:made.txt")]), "x");
    assert_eq!(rig.worktrees(), 1);
    // Its lease is still the head: only time ends it.
    assert_eq!(rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[0]["standing"], "leased");
}

/// K26: a folder that can't be looked at, or is gone for a while as a disk is that is not mounted, is no folder that the
/// command removed
#[test]
fn work_that_is_out_of_sight_is_not_forgotten() {
    for hidden in [false, true] {
        let rig = Rig::new();
        let (trees, away) = (rig.world.root().join("trees"), rig.world.root().join("away"));
        rig.git(&["config", "--global", "aynig.worktreeDir", trees.join("in").to_str().unwrap()]);
        let mut held = rig.hold("work");
        let run = rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[0]["run_id"].clone();
        let run = run.as_str().unwrap();
        held.kill().unwrap();
        held.wait().unwrap();
        std::fs::rename(&trees, &away).unwrap();
        if hidden {
            // No process can look through a link that leads to itself, whatever its account.
            std::os::unix::fs::symlink(&trees, &trees).unwrap();
            let said = rig.aynig(&["gc"]).expect(128);
            assert!(said.err.contains("trees/in"), "{said:?}");
            std::fs::remove_file(&trees).unwrap();
        } else {
            assert_eq!(of_kind(&rig.gc(&["-n"]), "slot").len(), 1);
            assert_eq!(of_kind(&rig.gc(&[]), "slot").len(), 1);
            assert_eq!(rig.gc(&[]), []);
        }
        std::fs::rename(&away, &trees).unwrap();
        let removed = rig.gc(&[]);
        assert_eq!(of_kind(&removed, "slot").len(), 1, "{removed:?}");
        if hidden {
            assert_eq!(rig.git(&["show", &format!("refs/aynig/attempts/{run}:made.txt")]), "x");
        } else {
            let slots = std::fs::read_dir(trees.join("in")).unwrap().next().unwrap().unwrap().path();
            let aside = std::fs::read_dir(slots).unwrap().next().unwrap().unwrap().path();
            assert_eq!(std::fs::read_to_string(aside.join("made.txt")).unwrap(), "x\n", "{aside:?}");
        }
        assert_eq!(rig.worktrees(), 1);
    }
}

/// K26: nor is it by the runs that come meanwhile, which make a folder in its place
#[test]
fn a_folder_that_comes_back_to_a_slot_in_use_is_put_aside() {
    let rig = Rig::new();
    let (trees, away) = (rig.world.root().join("trees"), rig.world.root().join("away"));
    rig.git(&["config", "--global", "aynig.worktreeDir", trees.join("in").to_str().unwrap()]);
    let mut held = rig.hold("work");
    held.kill().unwrap();
    held.wait().unwrap();
    std::fs::rename(&trees, &away).unwrap();
    for (branch, back) in [("first", false), ("second", true)] {
        if back {
            std::fs::remove_dir_all(&trees).unwrap();
            std::fs::rename(&away, &trees).unwrap();
        }
        rig.set(branch, "ok");
        let said = rig.aynig(&["tick", "--jobs", "1", branch]).expect(0);
        assert_eq!(said.err.contains("its folder was gone for a while"), back, "{said:?}");
    }
    let slots = std::fs::read_dir(trees.join("in")).unwrap().next().unwrap().unwrap().path();
    let aside = std::fs::read_dir(slots).unwrap().flatten().map(|entry| entry.path());
    let aside: Vec<_> = aside.filter(|path| path.to_str().unwrap().contains(".aside-")).collect();
    assert_eq!(std::fs::read_to_string(aside[0].join("made.txt")).unwrap(), "x\n", "{aside:?}");
}

/// K8, K26: a lease is recovered though what its run left can't be looked at, and that stays the run's
#[test]
fn a_lease_ends_though_its_work_is_out_of_sight() {
    let rig = Rig::new();
    let (trees, away) = (rig.world.root().join("trees"), rig.world.root().join("away"));
    rig.git(&["config", "--global", "aynig.worktreeDir", trees.join("in").to_str().unwrap()]);
    rig.git(&["config", "aynig.leaseDuration", "2s"]);
    let mut held = rig.hold("work");
    let run = rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[0]["run_id"].clone();
    held.kill().unwrap();
    held.wait().unwrap();
    std::fs::rename(&trees, &away).unwrap();
    std::os::unix::fs::symlink(&trees, &trees).unwrap();
    let body = crate::support::life::eventually("the lease has ended", || {
        rig.aynig(&["tick", "work"]);
        let body = rig.git(&["log", "-1", "--format=%B", "work"]);
        body.contains("dwp-state: stalled").then_some(body)
    });
    assert!(body.contains("can't look at its worktree") && body.contains("trees/in"), "{body}");
    std::fs::remove_file(&trees).unwrap();
    std::fs::rename(&away, &trees).unwrap();
    rig.aynig(&["gc"]).expect(0);
    let attempt = format!("refs/aynig/attempts/{}:made.txt", run.as_str().unwrap());
    assert_eq!(rig.git(&["show", &attempt]), "x");
}

#[test]
fn old_logs_go_with_their_run_folders() {
    let rig = Rig::new();
    for branch in ["old", "new"] {
        // Said differently: the same event in the same second would be one commit for both.
        rig.aynig(&["set-state", "ok", "-b", branch, "-m", branch]).expect(0);
        rig.aynig(&["tick", branch]).expect(0);
    }
    let path = |args: &[&str]| PathBuf::from(rig.aynig(args).expect(0).out.trim_end());
    let (old, new) = (path(&["logs", "--path", "old"]), path(&["logs", "--path", "new"]));
    let run = |branch: &str| {
        let status = rig.json(&["status", branch, "--json"], 0, "aynig.status/1");
        rig.own("runs").join(status[0]["run_id"].as_str().unwrap())
    };
    let (old_run, new_run) = (run("old"), run("new"));
    rig.age(&old, 31);
    for entry in std::fs::read_dir(&old_run).unwrap() {
        rig.age(&entry.unwrap().path(), 31);
    }
    rig.age(&old_run, 31);
    rig.age(&new, 29);
    let mine = rig.dir.join(".aynig/logs/notes.txt");
    std::fs::write(&mine, "mine").unwrap();
    rig.age(&mine, 400);
    let removed = rig.gc(&[]);
    assert_eq!(of_kind(&removed, "log"), [old.to_str().unwrap()]);
    assert_eq!(of_kind(&removed, "run-folder"), [old_run.to_str().unwrap()]);
    assert!(new.exists() && new_run.exists() && mine.exists());
    rig.git(&["config", "aynig.logExpire", "never"]);
    rig.age(&new, 4000);
    assert!(of_kind(&rig.gc(&[]), "log").is_empty());
    rig.git(&["config", "aynig.logExpire", "28 days"]);
    assert!(of_kind(&rig.gc(&[]), "log").contains(&new.to_str().unwrap()));
}

#[test]
fn attempts_go_by_the_date_of_their_commit() {
    let rig = Rig::new();
    let day = 24 * 3600;
    for (name, days) in [("old", 91), ("young", 89)] {
        let mut command = rig.world.command("git", &rig.dir);
        command.env("GIT_COMMITTER_DATE", format!("@{} +0000", now() - days * day));
        let made = command.args(["commit-tree", "-m", name, "HEAD^{tree}"]).output().unwrap();
        let id = String::from_utf8(made.stdout).unwrap();
        rig.git(&["update-ref", &format!("refs/aynig/attempts/{name}"), id.trim_end()]);
    }
    assert_eq!(of_kind(&rig.gc(&["-n"]), "attempt"), ["refs/aynig/attempts/old"]);
    assert_eq!(of_kind(&rig.gc(&[]), "attempt"), ["refs/aynig/attempts/old"]);
    assert_eq!(rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]), "refs/aynig/attempts/young");
    rig.git(&["config", "aynig.attemptExpire", "80 days"]);
    assert_eq!(of_kind(&rig.gc(&[]), "attempt"), ["refs/aynig/attempts/young"]);
}

#[test]
fn what_stands_in_the_way_of_many_is_said_once() {
    let rig = Rig::new();
    let commit = |message: &str, parent: &str| {
        rig.git(&["commit-tree", "-m", message, "-p", parent, "HEAD^{tree}"]).trim_end().to_owned()
    };
    let lost = commit("lost", "HEAD");
    for name in ["one", "two", "three"] {
        rig.git(&["update-ref", &format!("refs/aynig/attempts/{name}"), &commit(name, &lost)]);
    }
    std::fs::remove_file(rig.git_dir().join("objects").join(&lost[..2]).join(&lost[2..])).unwrap();
    let said = rig.aynig(&["gc"]);
    assert!(said.code != 0, "{}", said.out);
    assert_eq!(said.err.matches(&lost).count(), 1, "{}", said.err);
    assert_eq!(said.err.matches("error: ").count(), 1, "{}", said.err);
    assert_eq!(rig.git(&["for-each-ref", "refs/aynig/attempts"]).lines().count(), 3);
}

#[test]
fn refs_of_runs_that_are_over_go() {
    let rig = Rig::new();
    let message = b"x\n\ndwp-state: working\ndwp-run-id: alive\ndwp-lease-seconds: 300\n";
    rig.world.raw_commit(&rig.dir, "work", message);
    for run in ["alive", "dead"] {
        rig.git(&["update-ref", &format!("refs/aynig/run/{run}"), "work"]);
    }
    assert_eq!(rig.gc(&[]), [("run-ref".to_owned(), "refs/aynig/run/dead".to_owned())]);
    assert_eq!(rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]), "refs/aynig/run/alive");
}

#[test]
fn copies_of_commands_go_when_they_are_old_and_not_current() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let current = std::fs::read_dir(rig.own("commands")).unwrap().next().unwrap().unwrap().path();
    let (old, young) = (rig.own("commands").join("1".repeat(40)), rig.own("commands").join("2".repeat(40)));
    for folder in [&old, &young] {
        std::fs::create_dir_all(folder.join("command")).unwrap();
    }
    rig.world.run("chmod", &rig.dir, &["-R", "a-w", old.to_str().unwrap()]).expect(0);
    rig.age(&old, 31);
    rig.age(&current, 31);
    assert_eq!(of_kind(&rig.gc(&[]), "commands"), [old.to_str().unwrap()]);
    assert!(current.exists() && young.exists());
}

#[test]
fn a_copy_in_use_is_marked_as_used() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let current = std::fs::read_dir(rig.own("commands")).unwrap().next().unwrap().unwrap().path();
    rig.age(&current, 31);
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let age = current.metadata().unwrap().modified().unwrap().elapsed().unwrap_or_default();
    assert!(age.as_secs() < 3600, "{age:?}");
}

#[test]
fn only_our_own_dead_locks_and_leftovers_go() {
    let rig = Rig::new();
    rig.git(&["branch", "work", "main"]);
    std::fs::create_dir_all(rig.own("locks")).unwrap();
    let [x, y] = [
        "slots/.new-9b0c3a52-6f0e-4c63-a1b7-40a1f6f5a3b1",
        "slots/.new-0b0c3a52-6f0e-4c63-a1b7-40a1f6f5a3b1",
    ];
    let merge = "merge-9b0c3a52-6f0e-4c63-a1b7-40a1f6f5a3b1.index";
    std::fs::create_dir_all(rig.own(x)).unwrap();
    std::fs::create_dir_all(rig.own(y)).unwrap();
    std::fs::create_dir_all(rig.own("seen")).unwrap();
    let (stale, foreign) =
        (rig.git_dir().join("refs/heads/work.lock"), rig.git_dir().join("refs/heads/main.lock"));
    std::fs::write(rig.own("locks/twin"), "").unwrap();
    std::fs::hard_link(rig.own("locks/twin"), &stale).unwrap();
    std::fs::write(&foreign, "").unwrap();
    let old = [x, "slots/0.staging-77", merge, "seen/aa", "mine", "slots/3.lock"];
    for name in old {
        if !rig.own(name).exists() {
            std::fs::write(rig.own(name), "").unwrap();
        }
        rig.age(&rig.own(name), 31);
    }
    rig.age(&foreign, 31);
    let removed = rig.gc(&[]);
    assert_eq!(of_kind(&removed, "lock"), [stale.to_str().unwrap()]);
    let mut leftovers = of_kind(&removed, "leftover");
    leftovers.sort_unstable();
    let mut want = [merge, "seen/aa", x, "slots/0.staging-77"].map(|n| rig.own(n));
    want.sort();
    assert_eq!(leftovers, want.each_ref().map(|p| p.to_str().unwrap()));
    assert!(foreign.exists() && rig.own("mine").exists() && rig.own(y).exists());
}

/// K16, K43: folders of ours may be a user's too, and names may be anything: what is not known to be ours stays
#[test]
fn what_only_looks_like_ours_stays() {
    use std::os::unix::ffi::OsStrExt;
    let rig = Rig::new();
    let trees = rig.world.root().join("trees");
    rig.git(&["config", "--global", "aynig.worktreeDir", trees.to_str().unwrap()]);
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let trees = std::fs::read_dir(trees).unwrap().next().unwrap().unwrap().path();
    let logs = rig.dir.join(".aynig/logs");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(400 * 24 * 3600);
    let age = |path: &Path| std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    let odd = |name: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(name));
    let theirs = [
        trees.join("merge-the-two"),
        trees.join(".new-ideas"),
        trees.join("data.json.5"),
        trees.join(odd(b"\xff.staging-7")),
        logs.join("server.stdout.log"),
        logs.join(format!("{}.9.stdout.log", "c".repeat(40))),
        logs.join(odd(b"\xff.stdout.log")),
        rig.own("runs").join(odd(b"\xff")),
        rig.own("slots").join(odd(b"merge-\xff")),
    ];
    for path in &theirs {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("work"), "theirs").unwrap();
        age(&path.join("work"));
        age(path);
    }
    rig.git(&["config", "aynig.logExpire", "1d"]);
    assert_eq!(rig.gc(&[]).iter().filter(|(kind, _)| kind != "slot").count(), 0);
    for path in &theirs {
        assert!(path.join("work").exists(), "{path:?}");
    }
}

/// K44: between a claim on a remote and what is noted of it, only the run's own ref knows of the run
#[test]
fn the_ref_of_a_lease_that_is_fresh_stays() {
    let rig = Rig::new();
    let lease = |run: &str, seconds: u64, ago: u64| {
        let message = format!("x\n\ndwp-state: working\ndwp-run-id: {run}\ndwp-lease-seconds: {seconds}\n");
        rig.world.raw_commit_dated(&rig.dir, "aside", &(now() - ago).to_string(), message.as_bytes());
        rig.git(&["update-ref", &format!("refs/aynig/run/{run}"), "aside"]);
    };
    lease("fresh", 300, 0);
    lease("ended", 300, 400);
    rig.git(&["update-ref", "refs/aynig/run/other", "refs/aynig/run/fresh"]);
    rig.git(&["branch", "-q", "-D", "aside"]);
    let removed = rig.gc(&[]);
    assert_eq!(of_kind(&removed, "run-ref"), ["refs/aynig/run/ended", "refs/aynig/run/other"]);
    assert_eq!(rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]), "refs/aynig/run/fresh");
}

#[test]
fn branches_and_working_trees_are_as_they_were() {
    let rig = Rig::new();
    rig.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    std::fs::write(rig.dir.join("untracked"), "mine").unwrap();
    let look = || {
        let refs = rig.git(&["for-each-ref"]);
        let side = rig.world.git(&rig.world.root().join("side"), &["status", "--porcelain", "-b"]);
        (refs, rig.git(&["status", "--porcelain", "-b"]), side)
    };
    let before = look();
    rig.aynig(&["gc"]).expect(0);
    assert_eq!(look(), before);
    rig.world.assert_sound(&rig.dir);
}

/// K26: a ref that was pushed and can't be judged keeps no other from being collected.
#[test]
fn a_ref_that_cannot_be_judged_keeps_no_other() {
    let rig = Rig::new();
    let record = |id: &str, line: &str| {
        let tree = rig.world.git_in(&rig.dir, &["mktree"], line.as_bytes());
        let mut git = rig.world.command("git", &rig.dir);
        git.args(["commit-tree", tree.trim(), "-m", "x"]).env("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z");
        let commit = String::from_utf8(git.output().unwrap().stdout).unwrap();
        let name = format!("refs/aynig/turns/{id}");
        rig.git(&["update-ref", &name, commit.trim()]);
        name
    };
    let gone = "11111111-2222-4333-8444-555555555555";
    let text = format!("{{\"runId\":\"{gone}\"}}");
    let blob = rig.world.git_in(&rig.dir, &["hash-object", "-w", "--stdin"], text.as_bytes());
    let blob = blob.trim();
    let absent = "1".repeat(blob.len());
    let odd = record("aaaaaaaa-2222-4333-8444-555555555555", &format!("160000 commit {absent}\tturn.json\n"));
    let lost = record("bbbbbbbb-2222-4333-8444-555555555555", &format!("100644 blob {blob}\tturn.json\n"));
    let said = rig.aynig(&["gc"]).expect(0);
    assert!(said.out.contains(&lost) && !said.out.contains(&odd), "{said:?}");
    assert_eq!(rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/turns/"]), odd);
}
