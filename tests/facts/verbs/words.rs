//! What is said when something went wrong: whose branch, how that leaves it, and a command that mends it.
//!
//! The commands are not only read: they are pasted into a shell.

use crate::support::net::Net;
use crate::support::world::{Said, now};
use crate::verbs::rig::Rig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The commands that were hinted at, as they are pasted.
fn hints(said: &Said) -> Vec<String> {
    said.err.lines().filter_map(|line| line.strip_prefix("hint: ")).map(str::to_owned).collect()
}

/// Pastes a command.
fn paste(rig: &Rig, command: &str) -> Said {
    rig.world.run("sh", &rig.dir, &["-c", command])
}

fn state(rig: &Rig, branch: &str) -> String {
    rig.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", branch]).trim().to_owned()
}

/// K36: a user who can push a branch does not write what another user pastes.
#[test]
fn a_branch_is_one_word_of_a_command_whatever_its_name() {
    let rig = Rig::new();
    for branch in ["a;touch${IFS}PWNED", "it's", "b&c|`d`", "plain/one"] {
        rig.set(branch, "fail");
        let said = rig.aynig(&["tick", branch]).expect(1);
        let [logs, retry] = &hints(&said)[..] else { panic!("{}", said.err) };
        assert_eq!(paste(&rig, logs).expect(0).out, "broken\n");
        paste(&rig, retry).expect(0);
        assert_eq!(state(&rig, branch), "fail");
        assert!(!rig.dir.join("PWNED").exists());
    }
    let lock = rig.git_dir().join("refs/heads/it's.lock");
    std::fs::write(&lock, "").unwrap();
    let said = rig.aynig(&["tick", "it's"]).expect(75);
    assert!(said.err.contains("\nit's: nothing was claimed\n"), "{}", said.err);
    let hint = &hints(&said)[0];
    paste(&rig, hint.strip_prefix("if no git process is at work: ").unwrap()).expect(0);
    assert!(!lock.exists());
}

/// K36: what is named in a call is named in the command that mends it; a hint changes no other branch
#[test]
fn a_hint_is_about_the_branch_that_was_named() {
    let rig = Rig::new();
    let refused = rig.aynig(&["set-state", "working", "-b", "work"]).expect(129);
    assert_eq!(hints(&refused), ["git aynig set-working -b work"]);
    let refused = rig.aynig(&["set-state", "working", "-b", "work", "--remote", "far"]).expect(129);
    assert_eq!(hints(&refused), ["git aynig set-working --remote far -b work"]);
    rig.set("work", "drafted");
    // What is no attempt is not made one by what is pasted.
    for verb in ["compare", "choose"] {
        let refused = rig.aynig(&[verb, "work"]).expect(128);
        assert_eq!(hints(&refused), ["git aynig status work"], "{verb}");
    }
    let refused = rig.aynig(&["compare", "nowhere"]).expect(128);
    assert!(refused.err.contains("branch 'nowhere' does not exist"), "{}", refused.err);
    let refused = rig.aynig(&["send", "work", "--kind", "answer", "-m", "yes"]).expect(2);
    assert_eq!(hints(&refused), ["git aynig answer work <choice>"]);
}

/// K16, K36: a file where a folder is to be made is named with the command that moves it
#[test]
fn a_file_in_the_place_of_our_folder_is_moved_by_its_hint() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let folder = rig.git_dir().join("aynig");
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    std::fs::write(&folder, "").unwrap();
    let refused = rig.aynig(&["tick", "work"]).expect(128);
    paste(&rig, &hints(&refused)[0]).expect(0);
    rig.aynig(&["tick", "work"]).expect(0);
}

/// K8, K23: the commit itself says what to type, for who reads nothing else.
#[test]
fn a_stalled_branch_says_how_it_is_asked_again() {
    let rig = Rig::new();
    rig.set("work", "fail");
    let refused = rig.aynig(&["set-state", "stalled", "-b", "work"]).expect(129);
    assert_eq!(hints(&refused), ["git aynig set-state blocked -b work"]);
    let by_hand = ["commit-tree", "-p", "work", "-m", "x\n\ndwp-state: stalled", "work^{tree}"];
    let by_hand = rig.git(&by_hand).trim().to_owned();
    rig.git(&["update-ref", "refs/heads/work", &by_hand]);
    let status = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(status.contains("waits for a person"), "nothing to ask for again: {status}");
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    let body = rig.git(&["log", "-1", "--format=%b", "work"]);
    assert!(body.contains("\ngit aynig retry work asks for it again.\n"), "{body}");
    let status = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(status.contains("; waits for git aynig retry work;"), "{status}");
    let again = rig.aynig(&["tick", "work"]).expect(0);
    assert_eq!(hints(&again), ["git aynig retry work"]);
}

fn expired(rig: &Rig, branch: &str) {
    rig.git(&["branch", branch, "main"]);
    let trigger = rig.world.raw_commit(&rig.dir, branch, b"x\n\ndwp-state: ok\n");
    let lease = format!(
        "x\n\ndwp-state: working\ndwp-origin-state: ok\ndwp-run-id: r1\ndwp-lease-seconds: 60\n\
         dwp-trigger: {}\n",
        trigger.trim()
    );
    rig.world.raw_commit_dated(&rig.dir, branch, &(now() - 400).to_string(), lease.as_bytes());
}

/// K8, K40
#[test]
fn a_recovered_lease_says_how_the_branch_goes_on() {
    let rig = Rig::new();
    expired(&rig, "one");
    let said = rig.aynig(&["tick", "one"]).expect(1);
    let [retry] = &hints(&said)[..] else { panic!("{}", said.err) };
    let body = rig.git(&["log", "-1", "--format=%b", "one"]);
    assert!(body.contains("\ngit aynig retry one asks for it again.\n"), "{body}");
    paste(&rig, retry).expect(0);
    assert_eq!(state(&rig, "one"), "ok");
    // A chain of another branch recovers it too, and does not take it for a branch that is not there.
    expired(&rig, "two");
    rig.set("other", "ok");
    let said = rig.aynig(&["chain", "--", "refs/heads/other"]);
    let lines: Vec<&str> = said.out.lines().filter(|line| line.starts_with("two")).collect();
    assert_eq!(lines, ["two: ok stalled: the lease of run r1 expired"], "{}", said.err);
    assert_eq!(hints(&said), ["git aynig retry two"]);
}

/// K7, K4
#[test]
fn what_a_tick_can_make_nothing_of_names_the_command_that_mends_it() {
    let rig = Rig::new();
    rig.world.raw_commit(&rig.dir, "odd", b"x\n\ndwp-state: working\ndwp-run-id: r1\n");
    let said = rig.aynig(&["tick", "odd"]).expect(3);
    assert_eq!(hints(&said), ["git aynig cancel odd"]);
    paste(&rig, &hints(&said)[0]).expect(0);
    rig.world.raw_commit(&rig.dir, "bad", b"x\n\ndwp-state: ../x\n");
    let said = rig.aynig(&["tick", "bad"]).expect(0);
    assert_eq!(hints(&said), ["git aynig set-state <state> -b bad"]);
    rig.set("one", "ok");
    let said = rig.aynig(&["set-state", "ok", "-b", "one/two"]).expect(128);
    assert_eq!(hints(&said), ["another name, or first: git branch -m one <new name>"]);
    // As Git reads it, a HEAD needs no blank.
    let head = rig.git_dir().join("HEAD");
    let before = std::fs::read(&head).unwrap();
    std::fs::write(&head, "ref:refs/heads/one\n").unwrap();
    rig.aynig(&["events"]).expect(0);
    std::fs::write(&head, before).unwrap();
    rig.git(&["checkout", "-q", "--detach"]);
    for (verb, naming) in [("events", "events"), ("logs", "logs"), ("set-working", "set-working -b")] {
        let hint = format!("git aynig {naming} <branch>");
        assert_eq!(hints(&rig.aynig(&[verb]).expect(129)), [hint]);
    }
    let said = rig.aynig(&["tick", "--current-branch", "only"]).expect(0);
    assert_eq!(said.err, "HEAD is detached: no branch is the current one\nhint: git switch <branch>\n");
}

/// K13
#[test]
fn a_command_that_is_not_executable_is_made_so_by_the_hint() {
    let rig = Rig::new();
    std::fs::write(rig.dir.join(".aynig/command/plain"), "#!/bin/sh\n").unwrap();
    rig.git(&["add", "."]);
    rig.git(&["commit", "-q", "-m", "bad"]);
    rig.set("work", "plain");
    let said = rig.aynig(&["tick", "work"]).expect(2);
    let [mend] = &hints(&said)[..] else { panic!("{}", said.err) };
    paste(&rig, &format!("{mend} -q -m good")).expect(0);
    rig.aynig(&["tick", "work"]).expect(0);
}

/// K21: what a command that forgot to say leaves, for how long, and how it is ended.
#[test]
fn a_lease_that_lives_on_says_for_how_long() {
    let rig = Rig::new();
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/quiet", "#!/bin/sh\n")], "quiet");
    rig.set("work", "quiet");
    let said = rig.aynig(&["tick", "--lease", "90s", "--grace", "60s", "work"]).expect(0);
    let lives = ["for 150s (", "for 149s (", "for 148s ("].iter().any(|s| said.out.contains(s));
    assert!(lives && said.out.contains("its lease lives on"), "{}", said.out);
    assert_eq!(hints(&said), ["git aynig cancel work"]);
    // A runner that comes later is told as much.
    let why = "; its command has ended without an outcome";
    let said = rig.aynig(&["tick", "work"]).expect(3);
    assert!(said.out.contains(&format!("s more{why}\n")), "{}", said.out);
    assert_eq!(hints(&said), ["git aynig cancel work"]);
    let status = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(status.contains(", its lease ends in "), "{status}");
    assert!(status.ends_with(&format!("s{why}: git aynig cancel work ends it now\n")), "{status}");
    let canceled = paste(&rig, &hints(&said)[0]).expect(0);
    assert_eq!(state(&rig, "work"), "canceled");
    assert_eq!(
        canceled.err,
        "work: git aynig set-state quiet -b work asks for it again, without its text and trailers\n"
    );
}

/// K17: a branch whose runner was killed says so while its lease lives, and how it is freed.
#[test]
fn a_lease_whose_runner_was_killed_says_so() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let status = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(status.contains(", running "), "somebody works on it: {status}");
    kill(Pid::from_raw(held.id() as i32), Signal::SIGKILL).unwrap();
    held.wait_with_output().unwrap();
    let said = rig.aynig(&["tick", "work"]).expect(3);
    assert!(said.out.contains("s more; its runner has ended\n"), "{}", said.out);
    let status = rig.aynig(&["status", "work"]).expect(0).out;
    assert!(status.contains("; its runner has ended: git aynig cancel work ends it now\n"), "{status}");
    paste(&rig, &hints(&said)[0]).expect(0);
    assert_eq!(state(&rig, "work"), "canceled");
}

/// K16, K24: a person's commit, or a branch that is gone, in the place of a lease: what it is now, and what to do.
#[test]
fn a_lease_that_a_person_took_says_what_the_branch_is_now() {
    let rig = Rig::new();
    for gone in [false, true] {
        let held = rig.hold("work");
        if gone {
            rig.git(&["update-ref", "-d", "refs/heads/work"]);
        } else {
            let plain = rig.git(&["commit-tree", "-p", "work", "-m", "mine", "work^{tree}"]);
            rig.git(&["update-ref", "refs/heads/work", plain.trim()]);
        }
        let said: Said = held.wait_with_output().unwrap().into();
        let said = said.expect(3);
        if gone {
            assert!(said.out.contains("to the branch; the branch is gone ("), "{}", said.out);
            paste(&rig, &hints(&said)[0]).expect(0);
            assert_eq!(state(&rig, "work"), "wait", "as it was before the run: {}", said.err);
        } else {
            let head = rig.git(&["rev-parse", "--short=8", "work"]);
            let is = format!("to the branch; its head is {}, no state event (", head.trim());
            assert!(said.out.contains(&is), "{}", said.out);
            assert_eq!(hints(&said)[0], "git aynig set-state wait -b work");
            paste(&rig, &hints(&said)[0]).expect(0);
            assert_eq!(state(&rig, "work"), "wait");
        }
    }
}

/// K16, K36: a user's event in the place of a lease.
#[test]
fn a_lease_that_an_event_took_says_of_which_state() {
    let rig = Rig::new();
    let held = rig.hold("work");
    rig.aynig(&["cancel", "work"]).expect(0);
    let said: Said = held.wait_with_output().unwrap().into();
    let said = said.expect(3);
    let head = rig.git(&["rev-parse", "--short=8", "work"]);
    let is = format!("to the branch; its head is {}, state 'canceled' (", head.trim());
    assert!(said.out.contains(&is), "{}", said.out);
}

/// K7: whose it is, for who wonders whether that machine still lives.
#[test]
fn a_lease_is_told_with_its_runner() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let [status] = &rig.json(&["status", "work", "--json"], 0, "aynig.status/1")[..] else { panic!() };
    let said = rig.aynig(&["tick", "work"]).expect(3);
    let (run, runner) = (status["run_id"].as_str().unwrap(), status["runner_id"].as_str().unwrap());
    let line = format!("work: leased by run {run} by {runner} for ");
    assert!(said.out.starts_with(&line) && said.out.ends_with("s more\n"), "{}", said.out);
    rig.go();
    assert!(held.wait_with_output().unwrap().status.success());
}

/// K28: where, what, and what to do.
#[test]
fn local_changes_in_the_way_are_named_with_their_working_tree() {
    let rig = Rig::new();
    rig.git(&["checkout", "-q", "-b", "work"]);
    rig.set("work", "ok");
    std::fs::write(rig.dir.join("made.txt"), "mine\n").unwrap();
    let said = rig.aynig(&["tick", "work"]).expect(1);
    let dir = rig.git(&["rev-parse", "--show-toplevel"]);
    let place = format!("\nwork: in '{}': untracked 'made.txt' would be overwritten\n", dir.trim());
    assert!(said.err.contains(&place), "{}", said.err);
    let way = "git stash -u; or commit, but where both changed a line the run's wins";
    assert_eq!(hints(&said), [format!("once that is out of the way ({way}): git aynig retry work")]);
    let body = rig.git(&["log", "-1", "--format=%b", "work"]);
    let lands = "\nOnce the local changes are out of the way, git aynig retry work lands the outcome.\n";
    assert!(body.contains(lands), "{body}");
    paste(&rig, "git stash -q -u && git aynig retry work").expect(0);
    assert_eq!(state(&rig, "work"), "done");
    assert_eq!(std::fs::read_to_string(rig.dir.join("made.txt")).unwrap(), "x\n");
}

/// K28: what no `git stash` takes is named with what does.
#[test]
fn what_is_overlooked_or_unmerged_in_a_checkouts_way_is_mended_by_the_hint() {
    for flag in ["skip-worktree", "assume-unchanged"] {
        let rig = Rig::new();
        rig.git(&["checkout", "-q", "-b", "work"]);
        std::fs::write(rig.dir.join("made.txt"), "y\n").unwrap();
        rig.git(&["add", "made.txt"]);
        rig.git(&["commit", "-qm", "made"]);
        rig.set("work", "ok");
        rig.git(&["update-index", &format!("--{flag}"), "made.txt"]);
        std::fs::write(rig.dir.join("made.txt"), "mine\n").unwrap();
        let said = rig.aynig(&["tick", "work"]).expect(1);
        let mend = said.err.split("overlook it: ").nth(1).and_then(|rest| rest.split(')').next());
        let mend = mend.unwrap_or_else(|| panic!("{flag}: {}", said.err));
        paste(&rig, &format!("{mend} && git stash -q -u && git aynig retry work")).expect(0);
        assert_eq!(state(&rig, "work"), "done", "{flag}");
    }
    let rig = Rig::new();
    for (branch, text) in [("side", "theirs\n"), ("work", "ours\n")] {
        rig.git(&["checkout", "-q", "-b", branch, "main"]);
        std::fs::write(rig.dir.join("both"), text).unwrap();
        rig.git(&["add", "both"]);
        rig.git(&["commit", "-qm", "both"]);
    }
    rig.set("work", "ok");
    rig.world.run("git", &rig.dir, &["merge", "-q", "side"]);
    let said = rig.aynig(&["tick", "work"]).expect(1);
    assert!(hints(&said)[0].contains("finish or abort what 'git status' names"), "{}", said.err);
    rig.git(&["merge", "--abort"]);
    rig.aynig(&["retry", "work"]).expect(0);
    assert_eq!(state(&rig, "work"), "done");
}

/// K33: numbers with which nothing could run, or that would take for ever, are none.
#[test]
fn numbers_that_are_out_of_bounds_are_named() {
    let rig = Rig::new();
    rig.set("work", "ok");
    for (key, value) in [("jobs", "99999999999"), ("jobs", "10001"), ("jobs", "0"), ("role", "a/b")] {
        rig.git(&["config", "--global", &format!("aynig.{key}"), value]);
        let said = rig.aynig(&["tick", "work"]).expect(128);
        assert!(said.err.contains(&format!("bad value '{value}' for 'aynig.{key}'")), "{}", said.err);
        rig.git(&["config", "--global", "--unset", &format!("aynig.{key}")]);
    }
    rig.aynig(&["tick", "--jobs", "18446744073709551615", "work"]).expect(129);
    // One name given often is one branch.
    let said = rig.aynig(&["tick", "work", "refs/heads/work", "work"]).expect(0);
    assert_eq!(said.out.matches("ok -> done").count(), 1, "{}", said.out);
    assert_eq!(said.err, "", "{}", said.out);
}

/// K28: a lock that was left is no local change, and the hint says what it is.
#[test]
fn a_lock_in_a_checkouts_way_is_named_and_mended_by_the_hint() {
    let rig = Rig::new();
    rig.git(&["checkout", "-q", "-b", "work"]);
    rig.set("work", "ok");
    let lock = rig.dir.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let said = rig.aynig(&["tick", "work"]).expect(1);
    let kind = "another git process is at work in the working tree";
    assert!(said.out.contains(&format!("stalled: checkout: {kind}")), "{}", said.out);
    assert!(said.err.contains(&format!("\nwork: '{}' is held by another git process\n", lock.display())));
    let [hint] = &hints(&said)[..] else { panic!("{}", said.err) };
    let rm = format!("if no git process is at work there: rm {}", lock.display());
    assert_eq!(*hint, format!("once that is out of the way ({rm}): git aynig retry work"));
    let said = rig.aynig(&["retry", "work"]).expect(1);
    assert_eq!(hints(&said), [format!("{rm}, then try again")]);
    paste(&rig, &format!("rm '{}' && git aynig retry work", lock.display())).expect(0);
    assert_eq!((state(&rig, "work").as_str(), rig.git(&["status", "--porcelain"]).as_str()), ("done", ""));
}

/// K11: what no second try changes is not called busy.
#[test]
fn a_branch_in_the_way_at_a_remote_is_no_busy_remote() {
    let net = Net::new(&[]);
    net.event("top/sub", "build", "");
    let said = net.machine("a").run(&["set-state", "build", "--remote", "origin", "-b", "top"]).expect(128);
    assert!(said.stderr.contains("another branch is in the way there"), "{said:?}");
    assert!(said.stderr.contains("'refs/heads/top/sub' exists"), "{said:?}");
    assert!(said.stderr.contains("\nhint: another name for this one\n"), "{said:?}");
}

/// K11: no command of Git's mends a ref that it can't read; ours are tried.
#[test]
fn a_ref_that_is_no_ref_is_mended_by_the_hints() {
    let rig = Rig::new();
    let head = rig.set("work", "ok");
    std::fs::write(rig.git_dir().join("refs/heads/work"), "garbage\n").unwrap();
    for args in [["tick", "work"], ["status", "work"]] {
        let said = rig.aynig(&args).expect(128);
        let [look, mend] = &hints(&said)[..] else { panic!("{}", said.err) };
        assert!(paste(&rig, look).expect(0).out.contains(head.trim()), "{look}");
        if args[0] == "status" {
            paste(&rig, &mend.replace("<commit>", head.trim())).expect(0);
        }
    }
    assert_eq!(rig.git(&["rev-parse", "work"]), head);
    let (folder, file) = head.trim().split_at(2);
    std::fs::remove_file(rig.git_dir().join("objects").join(folder).join(file)).unwrap();
    let said = rig.aynig(&["tick", "work"]).expect(128);
    assert!(said.err.contains("\nwork: nothing was claimed\n"), "{}", said.err);
    let [fsck, look, mend] = &hints(&said)[..] else { panic!("{}", said.err) };
    assert!(paste(&rig, fsck).err.contains(head.trim()) && paste(&rig, look).code == 0);
    paste(&rig, &mend.replace("<commit>", "main")).expect(0);
    assert_eq!(rig.git(&["rev-parse", "work"]), rig.git(&["rev-parse", "main"]));
}

/// A ref that the system does not give out now may be well: no hint throws it away.
#[test]
fn a_ref_that_cant_be_read_now_is_left_alone_by_the_hints() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let file = rig.git_dir().join("refs/heads/work");
    std::fs::rename(&file, file.with_extension("aside")).unwrap();
    std::os::unix::fs::symlink("work", &file).unwrap();
    for args in [&["tick"][..], &["tick", "work"], &["status", "work"]] {
        let said = rig.aynig(args).expect(128);
        assert!(said.err.contains("refs/heads/work") || said.err.contains("'work'"), "{}", said.err);
        assert!(said.err.contains("Too many levels of symbolic links"), "{}", said.err);
        assert_eq!(hints(&said), [""; 0], "{}", said.err);
    }
}

/// K42: what was only heard of a remote is thrown away by the hint, whatever is wrong with it, and heard again.
#[test]
fn a_broken_copy_of_a_remotes_branch_is_mended_by_the_hint() {
    let net = Net::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.event("work", "build", "");
    let a = net.machine("a");
    a.tick(&["work"]).expect(0);
    let copy = a.dir.join(".git/refs/aynig/remote/origin/work");
    for broken in ["", "garbage\n", &format!("{}\n", "a".repeat(40))] {
        std::fs::write(&copy, broken).unwrap();
        net.event("work", "build", "");
        let said = a.tick(&["work"]).expect(75);
        let hints: Vec<&str> = said.stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
        let [mend] = hints[..] else { panic!("{said:?}") };
        net.life.repo.command("sh").current_dir(&a.dir).args(["-c", mend]).output().unwrap();
        a.tick(&["work"]).expect(0);
        assert_eq!(net.states("work")[0], "done");
    }
}

/// K26, K30, K31: a branch of a remote is named with it, or the command would look for it here.
#[test]
fn what_a_remote_declined_is_landed_by_the_hint() {
    let net = Net::new(&[("build", "echo done >result; echo 'SET_STATE {\"state\":\"done\"}'")]);
    let no = "if git cat-file -e \"$3:result\" 2>/dev/null; then echo 'no results here' >&2; exit 1; fi";
    net.hook("update", no);
    net.event("work", "build", "");
    let a = net.machine("a");
    let said = a.tick(&["work"]).expect(1);
    let hints: Vec<&str> = said.stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
    let [push, logs, retry] = hints[..] else { panic!("{said:?}") };
    assert_eq!(retry, "git aynig retry --remote origin work");
    let words = |hint: &str, program: &str| -> Vec<String> {
        hint.strip_prefix(program).unwrap().split(' ').map(str::to_owned).collect()
    };
    let run = |hint: &str| {
        let words = words(hint, "git aynig ");
        a.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let body = net.git(&["log", "-1", "--format=%b", "work"]);
    assert!(body.contains(&format!("\nOnce it is allowed, {retry} lands the outcome.\n")), "{body}");
    assert!(run("git aynig status --remote origin work").stdout.contains(&format!("waits for {retry};")));
    run(logs).expect(0);
    std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
    let push = words(push, "git ");
    a.git(&push.iter().map(String::as_str).collect::<Vec<_>>());
    run(retry).expect(0);
    assert_eq!(net.show("work", "result"), "done");
    // A claim that it declines leaves the branch as it was.
    net.event("next", "build", "");
    net.hook("update", "exit 1");
    let said = a.tick(&["next"]).expect(2);
    assert!(said.stderr.contains("\nnext: nothing was claimed\n"), "{said:?}");
    let said = a.run(&["cancel", "--remote", "origin", "next"]).expect(128);
    assert!(said.stderr.ends_with("hint: git aynig status --remote origin next\n"), "{said:?}");
}

/// Section 13: a file with half of the results must not be taken for all of them.
#[test]
fn results_that_can_not_be_written_are_told_as_git_tells_it() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let full = |args: &[&str]| {
        let mut command = rig.world.command("git", &rig.dir);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.arg("aynig").args(args).stdout(full).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let verbs: [&[&str]; 6] =
        [&["tick", "--json"], &["status"], &["status", "--json"], &["events", "work"], &["doctor"], &["-h"]];
    for verb in verbs {
        let (code, said) = full(verb);
        assert_eq!(code, Some(75), "{verb:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("error: cannot write to standard output: No space left"),
            "{verb:?}: {said}"
        );
    }
    // What was done is done all the same.
    assert_eq!(state(&rig, "work"), "done");
}

/// A message that begins with a dash is a message, as it is to `git commit`.
#[test]
fn a_message_may_begin_with_a_dash() {
    let rig = Rig::new();
    rig.aynig(&["set-state", "wait", "-b", "work", "-m", "- item", "-m", "--all"]).expect(0);
    let body = rig.world.git(&rig.dir, &["log", "-1", "--format=%B", "work"]);
    assert!(body.starts_with("- item\n\n--all\n"), "{body}");
    let said = rig.aynig(&["pause", "work", "-m", "- why"]).expect(0);
    let said = format!("{}{}", rig.aynig(&["status", "work"]).expect(0).out, said.out);
    assert!(said.contains("- why"), "{said}");
}
