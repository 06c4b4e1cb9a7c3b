//! What is killed outright, whichever process it was, stands in no other's way and loses nothing. Each of these was
//! found by the fault campaign (`tests/campaign`), which looks at every system call.

use crate::support::life::{BIN, Life, Running, eventually};
use crate::support::net::Net;
use crate::support::{Repo, git_that};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;

const DONE: &str = "echo done >result; echo 'SET_STATE {\"state\":\"done\"}'";

/// A `git` for the runner that dies outright, once, when it is called with arguments like these, after `first`.
fn deadly_git(life: &Life, arguments: &str, first: &str) -> std::ffi::OsString {
    let script = format!(
        "case \"$*\" in {arguments}) if mkdir '{0}/died' 2>/dev/null; then {first}; kill -9 $$; fi ;; esac\n\
         exec \"$real\" \"$@\"",
        life.shared().display(),
    );
    git_that(&life.shared(), &script)
}

/// For [`deadly_git`]: kills the runner, and is the real one once there is a file `go`.
fn late(go: &std::path::Path) -> String {
    let until = format!("until [ -e '{}' ] || ! [ -e \"$0\" ]; do sleep 0.01; done", go.display());
    format!("kill -9 $PPID; {until}; \"$real\" \"$@\"")
}

/// K26: the work of a run is kept at once, even where the `git` that stages it was killed with a lock.
#[test]
fn work_is_kept_though_the_git_that_stages_it_is_killed() {
    let life = Life::new(&[("build", DONE)]);
    life.event("work", "build", "");
    let path = deadly_git(&life, "*' add '*", ": >\"$GIT_INDEX_FILE.lock\"");
    let mut tick = life.aynig(&["tick", "--json", "work"]);
    let report = crate::support::life::done(tick.env("PATH", path).output().unwrap()).expect(1).json();
    assert_eq!(report["result"].as_str(), Some("stalled"), "{report}");
    let attempt = report["attempt"].as_str().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(life.show(attempt, "result"), "done");
    let staging = fs::read_dir(life.repo.git_dir().join("aynig/slots")).unwrap().flatten();
    let staging: Vec<_> = staging.filter(|e| e.file_name().to_string_lossy().contains("staging")).collect();
    assert!(staging.is_empty(), "{staging:?}");
    life.run(&["retry", "work"]).expect(0);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "done");
}

/// K14: a `git` that fills a slot, and is slower than the death of its runner, writes into no other run.
#[test]
fn a_git_that_outlives_its_runner_keeps_its_slot() {
    for (kind, call) in
        [(Repo::build(), "*' read-tree '*"), (Repo::build().reftable(), "*' update-ref --no-deref HEAD '*")]
    {
        if kind.create().is_none() {
            continue;
        }
        let life = Life::of(kind, &[("build", &format!("echo >\"$T/began\"; {DONE}"))]);
        life.event("first", "build", "");
        life.tick(&["--jobs", "1", "first"]).expect(0);
        fs::remove_file(life.shared().join("began")).unwrap();
        let trigger = life.event("work", "build", "");
        life.write("of another tree", "x\n");
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "another tree"]);
        life.event("late", "build", "");
        let go = life.shared().join("go");
        let path = deadly_git(&life, call, &late(&go));
        let mut late = life.aynig(&["tick", "--jobs", "1", "late"]);
        assert_eq!(late.env("PATH", path).status().unwrap().code(), None, "it was killed");
        let tick = life.start_tick(&["--jobs", "1", "work"]);
        // Longer than a slot is asked to be left.
        std::thread::sleep(Duration::from_millis(2500));
        assert!(!life.shared().join("began").exists(), "{call}: the slot is not free yet");
        fs::write(&go, "").unwrap();
        tick.done().expect(0);
        assert_eq!(life.git(&["diff", "--name-only", &trigger, "work"]).trim_end(), "result", "{call}");
        life.repo.assert_sound();
    }
}

/// K28, K43: a checkout whose runner was killed goes on under its lock, and no process begins it a second time.
#[test]
fn a_checkout_that_outlives_its_runner_is_left_to_its_git() {
    let life = Life::new(&[("build", &format!("{DONE}; echo more >>file"))]);
    life.event("work", "build", "");
    life.git(&["checkout", "-q", "work"]);
    let (go, lock) = (life.shared().join("go"), life.path(".git/index.lock"));
    let path = deadly_git(&life, "*'read-tree -m -u '[!-]*", &late(&go));
    let killed = life.aynig(&["tick", "work"]).env("PATH", path).status().unwrap();
    assert_eq!((killed.code(), life.state("work").as_str()), (None, "working"));
    life.tick(&[]).expect(0);
    assert!(lock.exists() && life.read("file") == "one\n", "it is not ours to do");
    fs::write(&go, "").unwrap();
    // It takes the old file away before it writes the new one.
    let whole = || fs::read(life.path("file")).is_ok_and(|file| file == b"one\nmore\n");
    eventually("the late git is through", || whole().then_some(()));
    eventually("the next tick puts it back", || {
        life.tick(&[]).expect(0);
        life.git(&["status", "--porcelain"]).is_empty().then_some(())
    });
    assert!(!lock.exists() && life.read("file") == "one\n");
    life.repo.assert_sound();
}

/// K28, K43: a child that was killed in a checkout leaves nothing of the user's locked.
#[test]
fn a_checkout_whose_git_was_killed_is_put_back_and_landed_by_retry() {
    let life = Life::new(&[("build", &format!("{DONE}; echo more >>file"))]);
    life.event("work", "build", "");
    life.git(&["checkout", "-q", "work"]);
    let path = deadly_git(&life, "*'read-tree -m -u '[!-]*", ": >\"$GIT_INDEX_FILE.lock\"");
    let mut tick = life.aynig(&["tick", "--json", "work"]);
    crate::support::life::done(tick.env("PATH", path).output().unwrap()).expect(1);
    assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("stalled", "one\n"));
    assert!(!life.path(".git/index.lock").exists());
    let left = fs::read_dir(life.path(".git/aynig")).unwrap().flatten().map(|e| e.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("merge-")).collect();
    assert!(left.is_empty(), "{left:?}");
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K43: a child that was killed is noted, and one that ended is not.
#[test]
fn only_a_git_child_that_was_killed_stays_noted() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let machine = net.machine("a");
    let notes = || fs::read_dir(machine.dir.join(".git/aynig/children")).map_or(0, Iterator::count);
    machine.tick(&["work"]).expect(0);
    assert_eq!(notes(), 0);
    let lock = "refs/aynig/remote/origin/work.lock";
    let path = deadly_git(
        &net.life,
        "*' fetch '*",
        &format!("mkdir -p .git/refs/aynig/remote/origin; : >.git/{lock}"),
    );
    machine.aynig(&["tick", "--remote", "origin"]).env("PATH", path).output().unwrap();
    assert_eq!(notes(), 1);
    let lock = machine.dir.join(".git").join(lock);
    assert!(lock.exists());
    // Where the heads of remotes are kept no other process makes one: it goes with the next verb, and none waits for it.
    let users = machine.dir.join(".git/refs/heads/mine.lock");
    fs::write(&users, "").unwrap();
    crate::support::life::done(machine.aynig(&["status"]).output().unwrap()).expect(0);
    assert!(!lock.exists() && users.exists());
    machine.tick(&[]).expect(0);
}

/// K43: own locks are gone after the next tick, whichever branch that is for.
#[test]
fn the_next_tick_removes_the_locks_of_a_dead_runner() {
    let life = Life::new(&[("build", DONE)]);
    life.event("work", "build", "");
    let (locks, lock) =
        (life.repo.git_dir().join("aynig/locks"), life.repo.git_dir().join("refs/heads/other.lock"));
    fs::create_dir_all(&locks).unwrap();
    fs::write(locks.join("twin"), "x\n").unwrap();
    fs::hard_link(locks.join("twin"), &lock).unwrap();
    let foreign = life.repo.git_dir().join("refs/heads/foreign.lock");
    fs::write(&foreign, "").unwrap();
    life.tick(&["--dry-run", "work"]);
    assert!(lock.exists());
    life.tick(&["work"]).expect(0);
    assert!(!lock.exists() && fs::read_dir(&locks).unwrap().count() == 0);
    assert!(foreign.exists());
}

/// K44: the ref of a run that is over goes with the slot's next use.
#[test]
fn the_ref_of_a_killed_run_goes_when_its_slot_is_used_again() {
    let life = Life::new(&[("wait", "echo up >\"$T/up\"; read x <\"$T/gate\""), ("build", DONE)]);
    life.event("held", "wait", "");
    life.event("work", "build", "");
    let _gate = life.gate("gate");
    let tick = life.start_tick(&["held"]);
    life.hear("up");
    tick.signal(Signal::SIGKILL);
    drop(tick);
    assert!(!life.git(&["for-each-ref", "refs/aynig/run"]).is_empty());
    life.tick(&["--jobs", "1", "work"]).expect(0);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
}

/// K45: the folder of logs ignores itself, also where the process that made it was killed in between.
#[test]
fn a_log_folder_that_was_only_half_made_ignores_itself() {
    let life = Life::new(&[("build", DONE)]);
    life.event("work", "build", "");
    life.write(".aynig/logs/.gitignore", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.read(".aynig/logs/.gitignore"), "*\n");
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K28: a checkout that was killed half way is put back, and no part of it is taken for the user's work.
#[test]
fn a_checkout_that_was_killed_half_way_is_put_back() {
    let script = format!("{DONE}; echo more >>file; echo new >other; echo long >dir/other");
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    life.git(&["checkout", "-q", "work"]);
    // One file is there, one is begun, one is gone, and one is not there yet.
    let half = "printf 'one\\nmore\\n' >file; printf ne >other; rm dir/other";
    let path = deadly_git(&life, "*'read-tree -m -u '[!-]*", half);
    life.aynig(&["tick", "work"]).env("PATH", path).output().unwrap();
    assert_eq!(
        (life.state("work").as_str(), life.git(&["status", "--porcelain"])),
        ("stalled", String::new())
    );
    assert_eq!((life.read("file").as_str(), life.read("dir/other").as_str()), ("one\n", "two\n"));
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.read("file").as_str(), life.read("other").as_str()), ("one\nmore\n", "new\n"));
    assert_eq!((life.read("dir/other").as_str(), life.read("result").as_str()), ("long\n", "done\n"));
}

/// K28: what is the user's own stays, also where a checkout was killed.
#[test]
fn a_change_of_the_users_is_not_taken_for_half_a_checkout() {
    let life = Life::new(&[("build", &format!("{DONE}; echo more >>file"))]);
    life.event("work", "build", "");
    life.git(&["checkout", "-q", "work"]);
    let path = deadly_git(&life, "*'read-tree -m -u '[!-]*", "printf 'one\\nmine\\n' >file");
    life.aynig(&["tick", "work"]).env("PATH", path).output().unwrap();
    assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("stalled", "one\nmine\n"));
    let said = life.run(&["retry", "work"]).expect(1).stderr;
    assert!(said.contains("hint: commit or stash") && life.read("file") == "one\nmine\n", "{said}");
}

/// K26: where slots live hangs on the environment of the caller.
#[test]
fn work_is_kept_that_is_in_another_place_than_slots_are_now() {
    for moved in [false, true] {
        let script = "echo mine >kept; echo up >\"$T/up\"; exec sleep 300";
        let life = Life::new(&[("build", script), ("next", DONE)]);
        life.event("work", "build", "");
        let tick = life.start_tick(&["--jobs", "1", "--lease", "5s", "work"]);
        life.hear("up");
        let old = life.slot(0);
        tick.signal(Signal::SIGKILL);
        drop(tick);
        let other = life.repo.home().join("other");
        let repo = life.shared().join("moved");
        if moved {
            // A copy is another repository: it takes nothing from the original.
            let mut copy = life.repo.command("cp");
            assert!(copy.arg("-a").arg(life.repo.path()).arg(&repo).status().unwrap().success());
            let mut gc = life.aynig(&["gc"]);
            gc.current_dir(&repo);
            crate::support::life::done(gc.output().unwrap()).expect(0);
            assert!(old.join("kept").exists(), "the original's");
            fs::remove_dir_all(&repo).unwrap();
            fs::rename(life.repo.path(), &repo).unwrap();
        }
        life_goes_on(&life, moved.then_some(&*repo), &other);
        assert!(!old.exists(), "the old folder is gone");
        if moved {
            fs::rename(&repo, life.repo.path()).unwrap();
        }
        let attempts = life.attempts();
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        assert_eq!(life.show(&attempts[0], "kept"), "mine");
        assert_eq!(life.show("late", "result"), "done");
        life.run(&["gc"]).expect(0);
        assert_eq!(life.attempts(), attempts);
        life.repo.assert_sound();
    }
}

/// Another branch wants the only slot, from another environment.
fn life_goes_on(life: &Life, moved: Option<&std::path::Path>, cache: &std::path::Path) {
    let repo = moved.map_or(life.repo.path(), std::path::Path::to_owned);
    for (args, code) in
        [(&["set-state", "next", "-b", "late", "--no-tick"][..], 0), (&["tick", "--jobs", "1", "late"], 0)]
    {
        let mut command = life.aynig(args);
        command.current_dir(&repo).env("XDG_CACHE_HOME", cache);
        crate::support::life::done(command.output().unwrap()).expect(code);
    }
}

/// K17: a runner goes on, with guardians of its own version, where another file took its program's place, or none did.
#[test]
fn a_runner_whose_program_was_replaced_goes_on() {
    for is_there in [true, false] {
        let begins = "echo >\"$T/begun\"; read x <\"$T/gate\"; echo 'SET_STATE {\"state\":\"next\"}'";
        let life = Life::new(&[("first", begins), ("next", "echo 'SET_STATE {\"state\":\"done\"}'")]);
        let (own, mut gate) = (life.shared().join("own-aynig"), life.gate("gate"));
        fs::copy(BIN, &own).unwrap();
        life.event("work", "first", "");
        let mut command = life.repo.command(&own);
        command.env("T", life.shared()).args(["run"]);
        let running = Running::of(command);
        life.hear("begun");
        if is_there {
            let other = life.shared().join("other");
            crate::support::write_program(&other, "#!/bin/sh\nexit 70\n");
            fs::rename(&other, &own).unwrap();
        } else {
            fs::remove_file(&own).unwrap();
        }
        gate.open();
        running.done().expect(0);
        assert_eq!(life.state("work"), "done", "{is_there}");
    }
}

/// K14, K17: a command whose runner and guardian were killed together (`pkill -9 git-aynig`) writes into no other run: it
/// ends before its slot is the next run's, and what it did is kept.
#[test]
fn a_command_whose_runner_and_guardian_were_killed_ends_before_the_next_run() {
    let leaf = "echo $$ >>\"$T/pids\"; while :; do echo spoilt >\"$1/spoilt\"; sleep 0.02; done";
    let both = format!(
        "echo mine >work; (setsid sh -c '{leaf}' sh \"$PWD\" &); echo $PPID >\"$T/guardian\"; sleep 300"
    );
    let life = Life::new(&[("both", &both), ("build", &format!("sleep 0.3; {DONE}"))]);
    life.event("work", "both", "");
    let trigger = life.event("next", "build", "");
    let tick = life.start_tick(&["--jobs", "1", "work"]);
    let guardian = eventually("the command is at work", || {
        let said = |name| fs::read_to_string(life.shared().join(name)).ok()?.trim().parse().ok();
        said("pids").and(said("guardian"))
    });
    // Neither may see the other's end.
    for (pid, signal) in
        [(guardian, Signal::SIGSTOP), (tick.pid(), Signal::SIGKILL), (guardian, Signal::SIGKILL)]
    {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    }
    let leaf = life.said("pids").trim().to_owned();
    assert!(crate::support::life::lives(&leaf));
    let found = life.run(&["doctor"]);
    assert!(found.stdout.contains("whose runner and guardian are gone"), "{found:?}");
    life.tick(&["--jobs", "1", "next"]).expect(0);
    assert!(!crate::support::life::lives(&leaf));
    assert_eq!(life.git(&["diff", "--name-only", &trigger, "next"]).trim_end(), "result");
    let kept = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts"]);
    assert_eq!(life.show(kept.trim(), "work"), "mine", "{kept}");
}

/// K11, K26: a repository that is away for a while, as on a disk that was unmounted, is no branch that is gone: nothing is
/// made in its place, and the run's work is there once it is back.
#[test]
fn a_repository_that_is_away_for_a_while_loses_no_work() {
    let life = Life::new(&[("build", "echo mine >work; : >\"$T/began\"; sleep 3; exit 1")]);
    life.event("work", "build", "");
    let git_dir = life.repo.git_dir();
    let away = git_dir.with_file_name("away");
    let tick = life.start_tick(&["--lease", "4s", "work"]);
    eventually("the command is at work", || life.shared().join("began").exists().then_some(()));
    fs::rename(&git_dir, &away).unwrap();
    let said = tick.done();
    assert!(!git_dir.exists() && !said.stderr.contains("gone"), "{said:?}");
    fs::rename(&away, &git_dir).unwrap();
    let report = eventually("the lease is over", || {
        let (_, report) = life.report(&["work"]);
        (life.state("work") == "stalled").then_some(report)
    });
    let [attempt] = &life.attempts()[..] else { panic!("{report}") };
    assert_eq!(life.git(&["diff", "--name-status", "main", attempt]).trim_end(), "A\twork", "{report}");
    life.repo.assert_sound();
}

/// K14, K17: nor is its slot free to what it starts itself, and a job of the user's that has the run's id is none of it.
#[test]
fn what_is_left_of_a_killed_run_is_told_from_what_is_not() {
    let nested = format!(
        "until [ -e \"$T/go\" ]; do sleep 0.05; done; setsid '{BIN}' tick --jobs 1 next & echo $! >\"$T/nested\"; wait"
    );
    let first =
        format!("echo $AYNIG_RUN_ID >\"$T/id\"; echo $$ >\"$T/own\"; echo $PPID >\"$T/guardian\"; {nested}");
    let life = Life::new(&[("first", &first), ("build", &format!(": >\"$T/began\"; {DONE}"))]);
    life.event("work", "first", "");
    life.event("next", "build", "");
    let tick = life.start_tick(&["--jobs", "1", "work"]);
    let said = |name: &str| fs::read_to_string(life.shared().join(name)).ok()?.trim().parse::<i32>().ok();
    let guardian = eventually("the command is at work", || said("guardian"));
    let signal = |pid, signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    for (pid, what) in
        [(guardian, Signal::SIGSTOP), (tick.pid(), Signal::SIGKILL), (guardian, Signal::SIGKILL)]
    {
        signal(pid, what);
    }
    fs::write(life.shared().join("go"), "").unwrap();
    let nested = eventually("it has started a tick", || said("nested"));
    std::thread::sleep(Duration::from_millis(700));
    assert!(!life.shared().join("began").exists(), "the slot is its own still");
    signal(nested, Signal::SIGKILL);
    // A job in a session of its own, one process of which has the id.
    let job = format!(
        "AYNIG_RUN_ID={} sleep 300 & echo $! >'{}'; wait",
        life.said("id").trim(),
        life.shared().join("job").display()
    );
    let mut job = std::process::Command::new("setsid").args(["sh", "-c", &job]).spawn().unwrap();
    let child = eventually("the job is at work", || said("job"));
    life.tick(&["--jobs", "1", "next"]).expect(0);
    assert!(!crate::support::life::lives(life.said("own").trim()));
    assert!(job.try_wait().unwrap().is_none() && crate::support::life::lives(&child.to_string()));
    signal(child, Signal::SIGKILL);
    job.wait().unwrap();
}
