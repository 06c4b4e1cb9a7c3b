//! What of a slot becomes part of an outcome: files, commits, the index.

use crate::support::life::Life;
use serde_json::Value;
use std::path::Path;

const NEXT: &str = "\necho 'SET_STATE {\"state\":\"next\"}'";

fn once(script: &str) -> (Life, Value) {
    let life = Life::new(&[("build", &format!("{script}{NEXT}"))]);
    life.event("work", "build", "");
    let report = life.report(&["work"]).1;
    (life, report)
}

fn stalled(script: &str, why: &str) -> (Life, Value) {
    let (life, report) = once(script);
    assert_eq!(report["result"].as_str(), Some("stalled"), "{report}");
    assert!(report["why"].as_str().unwrap().contains(why), "{report}");
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    (life, report)
}

/// K25
#[test]
fn commits_of_a_command_are_the_second_parent_of_its_outcome() {
    let (life, report) =
        once("echo a >>file; git commit -qam first; echo b >>file; git commit -qam second; echo c >rest");
    assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
    let log = life.git(&["log", "--format=%s", "work^1..work^2"]);
    assert_eq!(log, "second\nfirst");
    let lease = life.rev("work^1");
    assert_eq!(life.trailer(&lease, "dwp-state").as_deref(), Some("working"));
    assert_eq!(life.rev("work~1^1"), life.rev("work^2~2^1"), "both begin at the lease");
    assert_eq!((life.show("work", "file"), life.show("work", "rest")), ("one\na\nb".into(), "c".into()));
    // A commit's own hooks and identity are the user's, and nothing else moved.
    assert_eq!(life.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/heads/work");
    life.repo.assert_sound();
}

/// K25: what is written in the second in which the slot was filled, at the same size, is seen in a later one: Git
/// compares times by the second.
#[test]
fn a_change_of_the_same_size_in_the_same_second_is_part_of_the_outcome() {
    let life = Life::new(&[("build", &format!("printf 'two\n' >file; sleep 1.2{NEXT}"))]);
    for (branch, slot) in [("fresh", "fresh"), ("again", "reused"), ("third", "reused")] {
        life.event(branch, "build", "");
        crate::support::life::begin_of_a_second();
        life.tick(&[branch]).expect(0);
        assert_eq!(life.show(branch, "file"), "two", "{slot}");
    }
}

/// K25: the same of a file that the command had staged.
#[test]
fn a_change_after_git_add_in_the_same_second_is_part_of_the_outcome() {
    let (life, _) = once("printf 'two\n' >file; git add file; printf 'six\n' >file; sleep 1.2");
    assert_eq!(life.show("work", "file"), "six");
}

/// K25: renewals between do not matter: the tree is the command's own.
#[test]
fn commits_of_a_command_meet_a_renewed_lease() {
    let life = Life::new(&[(
        "build",
        &format!("echo a >>file; git commit -qam first; echo up >\"$T/up\"; read x <\"$T/gate\"{NEXT}"),
    )]);
    life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--lease", "5s", "work"]);
    life.hear("up");
    crate::support::life::eventually("a renewal", || (life.states("work").len() == 3).then_some(()));
    gate.open();
    tick.done().expect(0);
    assert_eq!(life.states("work"), ["next", "working", "working", "build"]);
    assert_eq!((life.rev("work^2^1"), life.show("work", "file")), (life.rev("work~2"), "one\na".into()));
}

/// K26, K31: what is finished is kept where its branch can't be written, and is not done again.
#[test]
fn an_outcome_that_cannot_be_written_is_kept_and_landed_by_retry() {
    let lock = "$(git rev-parse --path-format=absolute --git-common-dir)/refs/heads/work.lock";
    let script = format!("echo x >>\"$T/runs\"; echo built >result; : >\"{lock}\"{NEXT}");
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    let done = life.tick(&["--lease", "5s", "work"]).expect(75);
    assert!(done.stderr.contains("its outcome is kept in refs/aynig/attempts/"), "{done:?}");
    assert_eq!(life.states("work"), ["working", "build"]);
    std::fs::remove_file(life.path(".git/refs/heads/work.lock")).unwrap();
    crate::support::life::eventually("the recovery", || {
        life.tick(&["work"]);
        (life.state("work") == "stalled").then_some(())
    });
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), life.show("work", "result").as_str()), ("next", "built"));
    assert_eq!(life.said("runs"), "x\n");
    life.repo.assert_sound();
}

/// Section 8, row 4
#[test]
fn a_command_that_advances_the_branch_itself_gets_its_outcome_on_top() {
    let (life, report) =
        once("git checkout -q work && echo a >>file && git commit -qam mine && echo rest >rest");
    assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
    assert_eq!(life.git(&["log", "--first-parent", "--format=%s", "-2", "work"]), "chore: set next\nmine");
    assert_eq!(life.git(&["rev-list", "--merges", "work"]), "");
    assert_eq!((life.show("work", "file"), life.show("work", "rest")), ("one\na".into(), "rest".into()));
    life.git(&["checkout", "-q", "work"]);
}

/// Section 8: the branch moved by the command, and no declaration or a failure: nothing is written over it.
#[test]
fn a_command_that_advances_the_branch_and_fails_is_fenced() {
    let life =
        Life::new(&[("build", "git checkout -q work && echo a >>file && git commit -qam mine; exit 4")]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!(
        (done.code, report["result"].as_str(), report["exit"].as_str()),
        (Some(3), Some("fenced"), Some("exit 4"))
    );
    assert_eq!(life.git(&["log", "-1", "--format=%s", "work"]), "mine");
}

/// K25, K26
#[test]
fn a_head_from_elsewhere_and_an_unmerged_index_end_stalled_with_the_work_kept() {
    let (life, report) = stalled(
        "git checkout -q --detach main~0 && echo a >>file && git commit -qam elsewhere && echo b >>file",
        "does not descend from the lease",
    );
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.show(attempt, "file"), "one\na\nb");
    assert_eq!(life.git(&["log", "-1", "--format=%s", &format!("{attempt}^2")]), "elsewhere");
    let orphan = "git checkout -q --orphan lonely && git rm -rfq . && echo x >x && git add x && git commit -qm lonely && git checkout -q --detach";
    let (life, report) = stalled(orphan, "does not descend from the lease");
    assert_eq!(life.files(report["attempt"].as_str().unwrap()), ["x"]);
    let conflict = "git checkout -q --detach && echo a >file && git commit -qam a && git checkout -q HEAD~1 && echo b >file && git commit -qam b\n\
        git merge -q HEAD@{2} >/dev/null 2>&1 || git ls-files -u >\"$T/unmerged\"";
    let (life, report) = stalled(conflict, "unmerged paths");
    assert!(life.said("unmerged").lines().count() == 3, "{}", life.said("unmerged"));
    assert!(life.show(report["attempt"].as_str().unwrap(), "file").contains("<<<<<<<"));
}

/// K26: an unborn HEAD, a broken index, a missing index: the files are kept.
#[test]
fn a_slot_that_git_cannot_read_keeps_its_files() {
    let index = "$(git rev-parse --git-path index)";
    for (script, ends) in [
        (format!("echo a >>file; echo broken >\"{index}\""), "stalled"),
        (format!("echo a >>file; rm \"{index}\""), "advanced"),
        ("echo a >>file; git symbolic-ref HEAD refs/heads/unborn".to_owned(), "stalled"),
        ("echo a >>file; rm .git".to_owned(), "advanced"),
        ("echo a >>file; rm -rf \"$(git rev-parse --git-dir)\"".to_owned(), "stalled"),
    ] {
        let (life, report) = once(&script);
        assert_eq!(report["result"].as_str(), Some(ends), "{script}: {report}");
        let kept = if ends == "stalled" {
            report["attempt"].as_str().unwrap_or_else(|| panic!("{script}: {report}"))
        } else {
            "work"
        };
        assert_eq!(life.show(kept, "file"), "one\na", "{script}");
        life.git(&["update-ref", "refs/heads/work", &life.rev("work~1^")]);
        // And the next run has a whole slot again.
        life.tick(&["work"]);
        assert_eq!(
            life.show(
                if ends == "stalled" { life.attempts().pop().unwrap() } else { "work".into() }.as_str(),
                "file"
            ),
            "one\na",
            "{script}"
        );
        life.git(&["worktree", "list"]);
    }
}

/// K26: what a command had committed is not lost with its slot's folder.
#[test]
fn commits_of_a_command_whose_slot_is_gone_are_kept() {
    let script = "echo a >>file; git commit -qam mine; echo b >>file; rm -rf \"$PWD\"";
    let (life, report) = stalled(script, "not a directory");
    assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\na");
    life.run(&["diff", "work"]).expect(0);
    life.repo.assert_sound();
    // What is a commit by its name alone is none, with the folder and without it: the slot is free all the same.
    let nowhere = "1234567890123456789012345678901234567890";
    let commit = |tree: &str, parent: &str| {
        let by = "a <a@example.com> 1700000000 +0000";
        format!("tree {tree}\\nparent {parent}\\nauthor {by}\\ncommitter {by}\\n\\nx\\n")
    };
    let (head, tree) = ("$(git rev-parse HEAD)", "$(git rev-parse HEAD:)");
    for (content, gone) in [
        ("hello\\n".to_owned(), false),
        ("hello\\n".to_owned(), true),
        (commit(nowhere, head), false),
        (commit(nowhere, head), true),
        (commit(tree, nowhere), false),
        (commit(tree, nowhere), true),
    ] {
        let has_parent = content != commit(tree, nowhere);
        let (gone, kept) = if gone { ("; rm -rf \"$PWD\"", false) } else { ("", true) };
        let forged = format!(
            "id=$(printf \"{content}\" | git hash-object -t commit -w --stdin --literally)\n\
                              echo $id >\"$(git rev-parse --git-dir)/HEAD\"; echo mine >>file"
        );
        let life = Life::new(&[("build", &format!("{forged}{gone}; exit 1"))]);
        for branch in ["one", "two"] {
            life.event(branch, "build", "");
            let report = life.report(&["--jobs", "1", branch]).1;
            assert_eq!(
                (&report["result"], report["attempt"].is_string()),
                (&"stalled".into(), kept),
                "{report}"
            );
            assert!(!report["notes"].to_string().contains("not kept"), "{report}");
        }
        if has_parent {
            life.git(&["rev-list", "--objects", "--quiet", "--all", "--reflog"]);
        }
    }
}

/// K24, K26: of a run that lost its lease nothing is dropped that its outcome would leave out.
#[test]
fn a_fenced_run_keeps_what_its_outcome_leaves_out() {
    let take = "{\"state\":\"next\",\"take\":{\"paths\":[\"mine\"],\"rest\":\"kept\"}}";
    let script = format!("echo a >mine; echo b >other; git branch -qf work main; echo 'SET_STATE {take}'");
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    let report = life.report(&["work"]).1;
    assert_eq!(report["result"].as_str(), Some("fenced"), "{report}");
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.show(attempt, "mine"), "a");
    let rejected = format!("{attempt}-rejected");
    assert_eq!(life.show(&rejected, "other"), "b");
    assert!(report["notes"].to_string().contains(&rejected), "{report}");
}

/// K22: what an outcome has in its history is not beyond it.
#[test]
fn an_outcome_whose_slot_is_gone_leaves_no_attempt() {
    let script =
        "git commit -q --allow-empty -m mine; echo b >>file; git aynig set-state next; rm -rf \"$PWD\"";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    let report = life.report(&["work"]).1;
    assert_eq!(report["result"].as_str(), Some("own"), "{report}");
    assert_eq!(life.show("work", "file"), "one\nb");
    assert!(report["attempt"].is_null(), "{report}");
}

/// K25
#[test]
fn nested_repositories_and_ignored_files_are_left_out() {
    let (life, report) = once(
        "echo '*.o' >.gitignore; echo o >x.o; mkdir -p sub/deep; echo k >sub/k; git init -q sub/deep/repo; echo in >sub/deep/repo/in\n\
         git -C sub/deep/repo add in; git -C sub/deep/repo commit -qm in\n\
         for name in ':!r' ':^r' ':(attr:x)r'; do git init -q \"$name\"; done",
    );
    assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
    assert_eq!(life.files("work"), [".gitignore", "dir/other", "file", "sub/k"]);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("left out") && notes.contains("sub/deep/repo") && notes.contains(":!r"),
        "{notes}"
    );
    life.repo.assert_sound();
}

/// K26: a repository that a run made is not lost with its slot, wherever that is, though no attempt can hold it.
#[test]
fn a_repository_of_a_run_that_stalled_is_kept_with_its_files() {
    let make = "mkdir -p sub; git init -q sub/made; cd sub/made; echo in >in; git add in; git commit -qm made; echo more >in\n\
                git config core.fsmonitor /bin/false; echo exit >.git/hooks/pre-commit; mkdir deep; echo 'gitdir: ../.git' >deep/.git; cd ../..";
    let rights = "chmod 500 sub/made sub/made/.git";
    let elsewhere =
        std::path::Path::new("/dev/shm").is_dir().then(|| tempfile::tempdir_in("/dev/shm").unwrap());
    for (script, dir, ends) in [
        (format!("{make}; exit 1"), None, "stalled"),
        (format!("{make}; {rights}; echo x >file; exit 1"), None, "stalled"),
        (format!("{make}; git branch -qf work main; {NEXT}"), None, "fenced"),
        (format!("{make}; exit 1"), elsewhere.as_ref(), "stalled"),
    ] {
        let life = Life::new(&[("build", &script)]);
        if let Some(dir) = dir {
            life.config("aynig.worktreeDir", dir.path().to_str().unwrap());
        }
        life.event("work", "build", "");
        let (_, report) = life.report(&["--jobs", "1", "work"]);
        assert_eq!(report["result"].as_str(), Some(ends), "{script}: {report}");
        let run_id = report["run_id"].as_str().unwrap();
        let kept = life.repo.git_dir().join("aynig/submodules").join(run_id);
        let git_dir = kept.join("sub/made/.git");
        assert!(report["notes"].to_string().contains(git_dir.to_str().unwrap()), "{script}: {report}");
        if ends == "stalled" {
            assert!(
                life.body("work").contains(&format!("aynig/submodules/{run_id}/")),
                "{}",
                life.body("work")
            );
        }
        assert_eq!(std::fs::read_to_string(kept.join("sub/made/in")).unwrap(), "more\n");
        let git_dir = git_dir.to_str().unwrap();
        assert_eq!(life.git(&["--git-dir", git_dir, "log", "--format=%s", "--all"]), "made");
        // A user who looks there starts nothing.
        assert!(!life.git(&["--git-dir", git_dir, "config", "--list", "--local"]).contains("fsmonitor"));
        assert!(!std::path::Path::new(git_dir).join("hooks").exists());
        assert!(!kept.join("sub/made/deep/.git").exists() && kept.join("sub/made/deep/dot-git").exists());
        // And the next run has a whole slot.
        life.event("other", "build", "");
        life.tick(&["--jobs", "1", "other"]);
        assert!(kept.join("sub/made/in").exists());
    }
}

/// K26: a commit that an outcome names is not lost with the repository that it was made in.
#[test]
fn a_repository_that_an_outcome_names_is_kept() {
    let make = "git init -q sub; echo in >sub/in; git -C sub add in; git -C sub commit -qm made; git add sub; git init -q aside";
    // A commit of its own each time.
    let anew = |what: &str| format!("rm -rf sub; {}", make.replace("-qm made", &format!("-qm {what}")));
    let scripts = [
        format!("{make}; {NEXT}"),
        format!("{}; {NEXT}", anew("again")),
        format!("{}; exit 1", anew("left")),
    ];
    let life = Life::new(&[("build", &scripts[0]), ("again", &scripts[1]), ("left", &scripts[2])]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["--jobs", "1", "work"]);
    let link = life.git(&["rev-parse", "work:sub"]);
    let kept = life.repo.git_dir().join("aynig/submodules").join(report["run_id"].as_str().unwrap());
    let git_dir = kept.join("sub/.git");
    assert_eq!(
        life.git(&["--git-dir", git_dir.to_str().unwrap(), "log", "--format=%H %s", "--all"]),
        format!("{link} made")
    );
    assert!(report["notes"].to_string().contains(git_dir.to_str().unwrap()), "{report}");
    assert!(!kept.join("aside").exists(), "the outcome does not name it");
    // Nor is one that the branch names already, and that the next run makes anew.
    for state in ["again", "left"] {
        life.event("work", state, "");
        let (_, report) = life.report(&["--jobs", "1", "work"]);
        let kept = life.repo.git_dir().join("aynig/submodules").join(report["run_id"].as_str().unwrap());
        assert!(kept.join("sub/.git/HEAD").exists(), "{state}: {report}");
    }
}

/// K26: nor where its runner was killed.
#[test]
fn a_repository_of_a_killed_runner_is_kept() {
    let made = "git init -q made; git -C made commit -q --allow-empty -m made; echo >\"$T/began\"; sleep 60";
    let life = Life::new(&[("build", made)]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["--jobs", "1", "work"]);
    life.hear("began");
    tick.signal(nix::sys::signal::Signal::SIGKILL);
    tick.done();
    let said = life.run(&["gc"]).expect(0).stderr;
    let kept = life.repo.git_dir().join("aynig/submodules");
    let [place] = &std::fs::read_dir(kept).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    assert_eq!(
        life.git(&["--git-dir", place.join("made/.git").to_str().unwrap(), "log", "--format=%s"]),
        "made"
    );
}

/// K25
#[test]
fn with_stage_index_only_what_was_staged_is_taken() {
    let life = Life::new(&[(
        "build",
        &format!("echo staged >>file; git add file; echo more >>file; echo u >untracked{NEXT}"),
    )]);
    life.config("aynig.stage", "index");
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(
        (life.show("work", "file"), life.files("work")),
        ("one\nstaged".into(), vec!["dir/other".into(), "file".into()])
    );
}

/// K25, K37: names and kinds of files that need care arrive as they are.
#[test]
fn every_kind_of_file_arrives() {
    let (life, _) = once(
        "printf 'a\\0b\\r\\n' >bytes; printf x >'new\nline'; printf x >':(top)x'; printf x >-n; ln -s file link; ln -s /nowhere dangling\n\
         printf '#!/bin/sh\\n' >tool; chmod +x tool; chmod +x file; rm -r dir; ln -s . dir; mkdir empty",
    );
    let listed = life.git(&["ls-tree", "-rz", "work"]);
    let mut names: Vec<&str> =
        listed.split('\0').filter_map(|l| l.split_once('\t')).map(|(_, n)| n).collect();
    names.retain(|n| !n.starts_with(".aynig"));
    names.sort_unstable();
    assert_eq!(names, ["-n", ":(top)x", "bytes", "dangling", "dir", "file", "link", "new\nline", "tool"]);
    let mode = |name: &str| life.git(&["ls-tree", "--format=%(objectmode)", "work", name]);
    assert_eq!(
        [mode("tool"), mode("file"), mode("link"), mode("dir")],
        ["100755", "100755", "120000", "120000"]
    );
    assert_eq!(life.git(&["cat-file", "-s", "work:bytes"]), "5");
    life.repo.assert_sound();
}

/// K25, K45: what a command stages with `git add` and takes back is no change.
#[test]
fn a_command_that_changes_nothing_leaves_the_tree() {
    let (life, report) = once("echo a >x; git add x; git rm -qf x; touch file; git status >/dev/null");
    assert_eq!(report["result"].as_str(), Some("advanced"));
    assert_eq!(life.rev("work^{tree}"), life.rev("work~1^{tree}"));
}

/// K25: a merge that was not committed is its files, and no second parent.
#[test]
fn a_merge_that_was_not_committed_is_its_files() {
    let life = Life::new(&[(
        "build",
        "git merge -q --no-commit --no-ff side; echo 'SET_STATE {\"state\":\"next\"}'",
    )]);
    life.git(&["checkout", "-qb", "side"]);
    life.write("theirs", "t\n");
    life.git(&["add", "theirs"]);
    life.git(&["commit", "-qm", "theirs"]);
    life.git(&["checkout", "-q", "main"]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!((life.state("work"), life.show("work", "theirs")), ("next".into(), "t".into()));
    assert_eq!(life.git(&["rev-list", "--merges", "--count", "work"]), "0");
    // The next run in that slot has nothing of it.
    life.command(
        "look",
        "git status | grep -c merging >\"$T/merging\"; echo 'SET_STATE {\"state\":\"last\"}'",
    );
    life.git(&["add", ".aynig"]);
    life.git(&["commit", "-qm", "look"]);
    life.event("other", "look", "");
    life.tick(&["other"]).expect(0);
    assert_eq!((life.state("other"), life.said("merging")), ("last".into(), "0\n".into()));
}

/// K25: what is ignored, and what is a change, is as the user has configured Git.
#[test]
fn a_users_own_excludes_and_modes_count() {
    let script =
        "echo x >a.mine; echo x >b.mine; echo x >c; chmod +x file; echo 'SET_STATE {\"state\":\"next\"}'";
    for (set, files, mode) in [(false, "a.mine\nb.mine\nc", "100755"), (true, "c", "100644")] {
        let life = Life::new(&[("build", script)]);
        if set {
            let excludes = life.repo.home().join("excludes");
            std::fs::write(&excludes, "a.mine\n").unwrap();
            life.config("core.excludesFile", excludes.to_str().unwrap());
            std::fs::write(life.path(".git/info/exclude"), "b.mine\n").unwrap();
            life.git(&["config", "core.fileMode", "false"]);
        }
        life.event("work", "build", "");
        life.tick(&["work"]).expect(0);
        assert_eq!(life.git(&["diff", "--name-only", "--diff-filter=A", "work^", "work"]), files);
        assert!(life.git(&["ls-tree", "work", "file"]).starts_with(mode), "{set}");
    }
}

/// K26: a slot whose note can't be read may hold anyone's work: it is left as it is, and others are used.
#[test]
fn a_slot_whose_note_cannot_be_read_keeps_what_is_in_it() {
    let life = Life::new(&[
        ("build", "echo work >made; echo >\"$T/began\"; sleep 60"),
        ("next", "pwd >\"$T/where\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["--jobs", "1", "work"]);
    life.hear("began");
    tick.signal(nix::sys::signal::Signal::SIGKILL);
    tick.done();
    let note = life.repo.git_dir().join("aynig/slots/0.json");
    let content = std::fs::read(&note).unwrap();
    let dir = life.slot(0);
    let mend = |said: &str| {
        let hint = said.lines().find_map(|line| line.trim_start().strip_prefix("hint: mv "));
        let hint = hint.unwrap_or_else(|| panic!("{said}"));
        assert!(hint.contains(&format!("'{}'", dir.display())), "{hint}");
        assert!(hint.contains(&format!("&& mv '{}' ", note.display())), "{hint}");
        format!("mv {hint}")
    };
    for broken in [&b"{"[..], &content[..content.len() / 2]] {
        std::fs::write(&note, broken).unwrap();
        life.event("other", "next", "");
        let said = life.tick(&["--jobs", "1", "other"]);
        assert!(said.code == Some(128) && said.stderr.contains("slots/0.json"), "{said:?}");
        assert!(life.slot(0).join("made").exists());
        for verb in [&["gc"][..], &["gc", "--dry-run"], &["uninstall", "--dry-run"]] {
            let said = life.run(verb);
            assert!(said.code == Some(128) && said.stderr.contains("slots/0.json"), "{verb:?}: {said:?}");
            mend(&said.stderr);
        }
        let found = life.run(&["doctor"]).stdout;
        assert!(found.contains("0 is not used"), "{found}");
        mend(&found);
        assert!(life.slot(0).join("made").exists());
        life.tick(&["--jobs", "2", "other"]).expect(0);
        assert!(life.said("where").trim_end().ends_with("/1"), "{}", life.said("where"));
    }
    // Put right, it is found.
    std::fs::write(&note, content).unwrap();
    life.run(&["gc"]);
    assert_eq!(life.show(&life.attempts()[0], "made"), "work");
    // What is told mends it too, as often as it comes, and keeps what is there.
    for times in 1..4 {
        life.event("other", "next", "");
        life.tick(&["--jobs", "1", "other"]).expect(0);
        assert!(life.said("where").trim_end().ends_with("/0"), "{}", life.said("where"));
        std::fs::write(dir.join("made"), "other").unwrap();
        std::fs::write(&note, "{").unwrap();
        life.event("other", "next", "");
        let hint = mend(&life.tick(&["--jobs", "1", "other"]).expect(128).stderr);
        assert!(life.repo.command("sh").args(["-c", &hint]).status().unwrap().success());
        life.tick(&["--jobs", "1", "other"]).expect(0);
        assert_eq!(life.state("other"), "done");
        life.run(&["gc"]).expect(0);
        let all = std::fs::read_dir(dir.parent().unwrap()).unwrap().flatten().map(|entry| entry.path());
        let kept = all.filter(|path| path.join("made").exists() && !path.join(".git").exists());
        assert_eq!(kept.count(), times);
    }
}

/// K26: a note that a loss of power left without its content is none: the slot is made anew, and all verbs go on.
#[test]
fn a_slot_whose_note_a_power_loss_emptied_is_made_anew() {
    let life = Life::new(&[(
        "build",
        "pwd >>\"$T/where\"; ls >\"$T/there\"; echo 'SET_STATE {\"state\":\"done\"}'",
    )]);
    life.event("work", "build", "");
    life.tick(&["--jobs", "1", "work"]).expect(0);
    let note = life.repo.git_dir().join("aynig/slots/0.json");
    for (n, lost) in [Vec::new(), vec![0; 512]].into_iter().enumerate() {
        std::fs::write(life.slot(0).join("half"), "").unwrap();
        std::fs::write(&note, lost).unwrap();
        life.run(&["gc"]).expect(0);
        let branch = format!("next-{n}");
        life.event(&branch, "build", "");
        life.tick(&["--jobs", "1", &branch]).expect(0);
        assert_eq!(life.state(&branch), "done");
        assert!(!life.said("there").contains("half"), "{}", life.said("there"));
    }
    let slot = life.slot(0);
    assert_eq!(life.said("where").lines().filter(|dir| Path::new(dir) == slot).count(), 3);
}

/// K14, K26: what Git takes into no tree is moved away whole, and the slot serves the next run.
#[test]
fn what_git_refuses_keeps_no_slot() {
    let ways = [
        ("mkdir .GIT; echo mine >.GIT/config", ".GIT/config"),
        ("echo '* working-tree-encoding=none-such' >.gitattributes; echo mine >text", "text"),
        ("ln -s file .gitmodules; echo mine >rest", "rest"),
        // Ignored by rules of its own, and staged all the same.
        (
            "echo ign/ >.gitignore; git init -q ign/sub; git -C ign/sub commit -q --allow-empty -m s\n\
             git update-index --add --cacheinfo \"160000,$(git -C ign/sub rev-parse HEAD),ign/sub\"\n\
             git init -q ign; echo mine >rest; mkdir .Git; touch .Git/x",
            "rest",
        ),
    ];
    for (way, path) in ways {
        let life = Life::new(&[("build", &format!("{way}{NEXT}")), ("fine", NEXT)]);
        life.config("aynig.jobs", "1");
        life.event("work", "build", "");
        let (done, report) = life.report(&["work"]);
        assert_eq!((done.code, report["result"].as_str()), (Some(1), Some("stalled")), "{way}: {report}");
        let run = report["run_id"].as_str().unwrap();
        let kept = life.repo.git_dir().join("aynig/submodules").join(run).join(path);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine\n", "{way}");
        let (body, has) = (life.body("work"), way.contains("git init"));
        assert!(
            body.contains("Repositories that") == has && body.contains("no tree can hold") != has,
            "{body}"
        );
        for branch in ["next", "last"] {
            life.event(branch, "fine", "");
            life.tick(&[branch]).expect(0);
            assert_eq!(life.state(branch), "next", "{way}");
        }
        life.run(&["gc"]).expect(0);
        assert!(kept.exists(), "{way}");
    }
}

/// K26: where a user is sent to, nothing that a command made starts a program: not by what is a repository under another
/// name, nor by where it would push to.
#[test]
fn what_is_kept_is_tamed_whatever_it_is_called() {
    let plant = "printf '[core]\n\tpager = evil\n\tfsmonitor = evil\n\tbare = false\n\tworktree = .\n'";
    let script = format!(
        "git init -q --bare b; {plant} >>b/config; mkdir .GIT; cp -r b/. .GIT; git init -q --bare sub; {plant} >>sub/config\n\
         echo 'gitdir: nowhere' >sub/.git; git init -q other; git -C other commit -q --allow-empty -m own\n\
         git init -q --bare \"$(git rev-parse --git-common-dir)/objects/evil.git\"\n\
         git -C other remote add near ../b; git -C other remote add far https://example.com/far.git\n\
         git init -q --bare evil; git -C other remote add slot \"$PWD/evil\"; git -C other remote add own \"$(git rev-parse --git-common-dir)/objects/evil.git\"; exit 1"
    );
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!(done.code, Some(1), "{report}");
    let kept = life.repo.git_dir().join("aynig/submodules").join(report["run_id"].as_str().unwrap());
    for config in ["b/config", ".GIT/config", "sub/config", "other/.git/config"] {
        let said = std::fs::read_to_string(kept.join(config)).unwrap();
        assert!(
            !said.contains("evil") && !said.contains("worktree") && said.contains("bare = true"),
            "{config}: {said}"
        );
    }
    let said = std::fs::read_to_string(kept.join("other/.git/config")).unwrap();
    assert!(said.contains("far.git"), "{said}");
    for gone in ["../b", "evil", "/0/"] {
        assert!(!said.contains(gone), "{said}");
    }
}

/// K26: what stands in the place of a repository that leads elsewhere loses nothing that has its new name.
#[test]
fn a_repository_that_leads_elsewhere_is_renamed_over_nothing() {
    let life =
        Life::new(&[("build", "mkdir n; echo 'gitdir: nowhere' >n/.git; echo mine >n/dot-git; exit 1")]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["work"]);
    let kept =
        life.repo.git_dir().join("aynig/submodules").join(report["run_id"].as_str().unwrap()).join("n");
    let read = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    assert_eq!((read("dot-git"), read("dot-git-1")), ("mine\n".into(), "gitdir: nowhere\n".into()));
}

/// K14: a repository that a command left in an ignored folder, with a fifo where Git reads, holds up no later run.
#[test]
fn a_fifo_in_a_repository_that_was_left_holds_up_no_run() {
    let script =
        "echo build/ >.gitignore; mkdir -p build/n/.git/objects build/n/.git/refs; mkfifo build/n/.git/HEAD";
    let life = Life::new(&[("build", &format!("{script}{NEXT}")), ("fine", NEXT)]);
    life.config("aynig.jobs", "1");
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "next");
    for branch in ["other", "third"] {
        life.event(branch, "fine", "");
        let mut tick = life.start_tick(&[branch]);
        crate::support::life::eventually("the tick ends", || tick.is_over().then_some(()));
        tick.done().expect(0);
        assert_eq!(life.state(branch), "next");
    }
}

/// K25: an index that is no file is none that says that all is gone.
#[test]
fn an_index_that_is_no_file_ends_stalled() {
    for stage in ["index", "all"] {
        let life = Life::new(&[(
            "build",
            &format!("echo mine >rest; i=$(git rev-parse --git-path index); rm \"$i\"; mkfifo \"$i\"{NEXT}"),
        )]);
        life.config("aynig.stage", stage);
        life.event("work", "build", "");
        let (done, report) = life.report(&["work"]);
        assert_eq!((done.code, report["result"].as_str()), (Some(1), Some("stalled")), "{stage}: {report}");
        assert_eq!(life.show("work", "file"), "one", "{stage}");
        let attempts = life.attempts();
        assert_eq!(life.show(&attempts[0], "rest"), "mine", "{stage}: {report}");
    }
}

/// K25: a command may make its worktree sparse, and its index too; what is outside stays.
#[test]
fn a_sparse_index_of_a_command_is_read() {
    let script = "git sparse-checkout set --cone --sparse-index dir; echo more >>dir/other";
    let life = Life::new(&[("build", &format!("{script}{NEXT}"))]);
    life.write("outside/c/f", "deep\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "more"]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(0), Some("advanced")), "{report}");
    assert_eq!(
        (life.show("work", "outside/c/f").as_str(), life.show("work", "dir/other").as_str()),
        ("deep", "two\nmore")
    );
}

/// K25, S26: an index that names a file beside the tree makes no outcome that Git takes for damaged.
#[test]
fn an_index_with_what_is_no_path_ends_stalled() {
    let script = "b=$(git hash-object -w --stdin </dev/null); git update-index --add --cacheinfo 100644,$b,-a/esc\n\
         LC_ALL=C sed -i 's#-a/esc#../esc#' \"$(git rev-parse --git-path index)\"; echo mine >rest";
    for stage in ["index", "all"] {
        let life = Life::new(&[("build", &format!("{script}{NEXT}"))]);
        life.config("aynig.stage", stage);
        life.event("work", "build", "");
        let (done, report) = life.report(&["work"]);
        assert_eq!((done.code, report["result"].as_str()), (Some(1), Some("stalled")), "{stage}: {report}");
        assert_eq!(life.show(&life.attempts()[0], "rest"), "mine", "{stage}: {report}");
        life.repo.assert_sound();
    }
}

/// K25, K26: what lies deeper than Git reads is not lost with an outcome that has nothing of it.
#[test]
fn work_that_lies_deeper_than_any_path_is_not_lost() {
    let deep = "n=$(printf '%0250d' 0); i=0; mkdir d; cd d\n\
         while [ $i -lt 20 ]; do mkdir $n && cd -P $n || exit 2; i=$((i + 1)); done; echo mine >x";
    let life = Life::new(&[("build", &format!("{deep}{NEXT}")), ("fine", NEXT)]);
    life.config("aynig.jobs", "1");
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(1), Some("stalled")), "{report}");
    life.event("next", "fine", "");
    life.tick(&["next"]).expect(0);
    assert_eq!(life.state("next"), "next");
    let found = std::process::Command::new("find")
        .args([life.slot_root(), life.repo.git_dir().join("aynig/submodules")])
        .args(["-name", "x", "-type", "f"])
        .output()
        .unwrap();
    assert_eq!(found.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "{found:?}");
    // What is ignored is no run's work, however deep.
    let ignored = Life::new(&[("build", &format!("echo d/ >.gitignore; {deep}{NEXT}"))]);
    ignored.event("work", "build", "");
    ignored.tick(&["work"]).expect(0);
    assert_eq!(ignored.state("work"), "next");
}

/// K14, K26: what can't be kept in any other way is put aside as it is, and its slot serves the next run.
#[test]
fn what_cannot_be_kept_is_set_aside_with_its_slot_freed() {
    // Deeper than any path may be.
    let deep = "git init -q sub; cd sub; echo mine >rest; n=$(printf '%0250d' 0); i=0\n\
         while [ $i -lt 20 ]; do mkdir $n && cd -P $n || exit 2; i=$((i + 1)); done; exit 1";
    let life = Life::new(&[("build", deep), ("fine", NEXT)]);
    life.config("aynig.jobs", "1");
    life.event("work", "build", "");
    life.tick(&["work"]).expect(1);
    life.event("next", "fine", "");
    let said = life.tick(&["next"]).expect(0);
    assert_eq!(life.state("next"), "next");
    assert!(said.stderr.contains("could not be kept, and is as it was in"), "{said:?}");
    let aside: Vec<_> =
        std::fs::read_dir(life.slot_root()).unwrap().flatten().map(|entry| entry.path()).collect();
    let aside: Vec<_> = aside.iter().filter(|path| path.to_string_lossy().contains("/.aside-")).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(std::fs::read_to_string(aside[0].join("sub/rest")).unwrap(), "mine\n");
    // It goes when attempts go.
    life.run(&["gc"]).expect(0);
    assert!(aside[0].exists());
    life.config("aynig.attemptExpire", "0s");
    life.run(&["gc"]).expect(0);
    assert!(!aside[0].exists());
}

/// K14: a registration that a command broke below its submodules is made anew.
#[test]
fn a_folder_in_the_place_of_a_submodules_configuration_keeps_no_slot() {
    let script = "g=$(git rev-parse --absolute-git-dir); unset GIT_DIR; git init -q --bare \"$g/modules/m\"\n\
         rm \"$g/modules/m/config\"; mkdir -p \"$g/modules/m/config/x\"; exit 1";
    let life = Life::new(&[("build", script), ("fine", NEXT)]);
    life.config("aynig.jobs", "1");
    life.event("work", "build", "");
    life.tick(&["work"]).expect(1);
    life.event("next", "fine", "");
    life.tick(&["next"]).expect(0);
    assert_eq!(life.state("next"), "next");
    life.run(&["gc"]).expect(0);
}
