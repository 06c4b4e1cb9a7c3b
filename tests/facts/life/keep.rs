//! What stays in a slot between runs of one branch, what is copied into it, and what prepares it. K58.

use crate::support::life::{Life, eventually};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// A repository that ignores `target/` and `.env`, with a command that adds a line to `target/log` and says what is
/// there, and others.
fn life(more: &[(&str, &str)]) -> Life {
    let look =
        format!("mkdir -p target; echo \"$AYNIG_BRANCH\" >>target/log; cat target/log >\"$T/log\"; {DONE}");
    let list =
        format!("find . -name .git -prune -o -type f -print | sort | grep -v .aynig >\"$T/list\"; {DONE}");
    let life = Life::new(&[&[("look", &*look), ("list", &*list)], more].concat());
    life.write(".gitignore", "target/\n.env\nnode_modules\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "ignore"]);
    life
}

fn tick(life: &Life, branch: &str, state: &str) {
    life.event(branch, state, "");
    life.tick(&["--jobs", "1", branch]).expect(0);
}

fn log(life: &Life, branch: &str) -> String {
    tick(life, branch, "look");
    assert!(!life.files(branch).iter().any(|file| file.starts_with("target")), "{branch}");
    life.said("log").lines().collect::<Vec<_>>().join(" ")
}

/// K58
#[test]
fn k58_what_is_kept_stays_with_its_branch_and_meets_no_other() {
    let life = life(&[]);
    assert_eq!((log(&life, "a"), log(&life, "a")), ("a".into(), "a".into()), "by default nothing is kept");
    life.git(&["config", "aynig.keep", "target/"]);
    assert_eq!(log(&life, "a"), "a", "the repository's own configuration does not say it");
    life.config("aynig.keep", "target/");
    assert_eq!(
        (log(&life, "a"), log(&life, "a"), log(&life, "a")),
        ("a".into(), "a a".into(), "a a a".into())
    );
    assert_eq!((log(&life, "b"), log(&life, "b")), ("b".into(), "b b".into()));
    assert_eq!(log(&life, "a"), "a", "what was kept is gone, and not with the other branch");
    // A change of a file leaves it, and so does a commit of the user's.
    life.write("file", "changed\n");
    life.git(&["commit", "-qam", "changed"]);
    life.git(&["branch", "-f", "a", "main"]);
    assert_eq!(log(&life, "a"), "a a");
    // What it takes on disk is said, by who looks and by who removes it.
    let big = life.slot(0).join("target/big");
    fs::write(&big, vec![7; 3 << 20]).unwrap();
    fs::File::open(&big).unwrap().sync_all().unwrap();
    let doctor = life.run(&["doctor"]);
    let said = doctor.stdout.split("keeps 1 files or folders of refs/heads/a, ").nth(1);
    let size = said.and_then(|said| said.split(" MiB").next()?.parse::<u64>().ok());
    assert!(size.is_some_and(|size| (3..6).contains(&size)), "{doctor:?}");
    let aside = life.slot_root().join(".kept-0");
    let gc = life.run(&["gc"]).expect(0);
    assert!(gc.stdout.contains("of files kept for its branch"), "{gc:?}");
    assert!(!aside.exists());
    assert_eq!(log(&life, "a"), "a");
    life.repo.assert_sound();
}

/// K58
#[test]
fn k58_with_keep_across_branches_share_and_it_is_nobody_s_work() {
    let life = life(&[("show", &format!("rm .gitignore; echo mine >mine; {DONE}"))]);
    life.config("aynig.keep", "target");
    life.config("aynig.keepAcross", "true");
    assert_eq!((log(&life, "a"), log(&life, "b")), ("a".into(), "a b".into()));
    tick(&life, "c", "show");
    assert_eq!(life.show("c", "mine"), "mine");
    assert!(!life.files("c").iter().any(|file| file.starts_with("target")), "{:?}", life.files("c"));
    tick(&life, "c", "list");
    assert!(!life.said("list").contains("target"), "its rules ignore it no more: {}", life.said("list"));
}

/// K58
#[test]
fn k58_what_a_commit_does_not_ignore_or_has_itself_is_not_brought_back() {
    let life = life(&[]);
    life.config("aynig.keep", "target/");
    for change in ["unignored", "tracked"] {
        assert!(log(&life, "a").starts_with('a'));
        match change {
            "unignored" => life.write(".gitignore", "nothing\n"),
            _ => life.write("target/log", "of the commit\n"),
        }
        life.git(&["add", "-A", "-f", "."]);
        life.git(&["commit", "-qm", change]);
        life.git(&["branch", "-f", "a", "main"]);
        tick(&life, "a", "list");
        let (list, files) = (life.said("list"), life.files("a"));
        assert_eq!(list.contains("target/"), change == "tracked", "{change}: {list}");
        assert_eq!(files.contains(&"target/log".to_owned()), change == "tracked", "{change}: {files:?}");
        if change == "tracked" {
            assert_eq!(life.show("a", "target/log"), "of the commit");
        }
        life.git(&["reset", "-q", "--hard", "HEAD~1"]);
        life.git(&["branch", "-f", "a", "main"]);
    }
}

/// K58, K14: a command puts a link in the place of a folder that patterns go through.
#[test]
fn k58_no_link_leads_what_is_kept_or_copied_elsewhere() {
    let life = life(&[
        ("link", &format!("rm -rf web; ln -s \"$T/victim\" web; ln -s \"$T/victim\" target; {DONE}; exit 1")),
        ("dirs", &format!("mkdir -p web/node_modules; echo x >web/node_modules/x; {DONE}")),
    ]);
    life.config("aynig.keep", "target");
    life.git(&["config", "--global", "--add", "aynig.keep", "*/node_modules"]);
    life.config("aynig.include", "out/.env");
    let victim = life.shared().join("victim");
    fs::create_dir_all(victim.join("node_modules")).unwrap();
    fs::write(victim.join("node_modules/mine"), "mine").unwrap();
    fs::write(victim.join(".env"), "secret").unwrap();
    symlink(&victim, life.path("out")).unwrap();
    life.event("a", "link", "");
    life.tick(&["--jobs", "1", "a"]).expect(1);
    life.git(&["branch", "-f", "a", "main"]);
    tick(&life, "a", "dirs");
    tick(&life, "a", "list");
    assert!(life.said("list").contains("./web/node_modules/x"), "{}", life.said("list"));
    assert!(
        !life.said("list").contains("mine") && !life.said("list").contains("env"),
        "{}",
        life.said("list")
    );
    assert!(victim.join("node_modules/mine").exists() && victim.join(".env").exists());
}

/// K58
#[test]
fn k58_ignored_files_of_the_main_working_tree_are_there_and_in_no_outcome() {
    let expose =
        format!("cat .env >\"$T/env\"; stat -c %a .env >\"$T/mode\"; rm .gitignore; echo x >new; {DONE}");
    let fail = "cat .env; rm .gitignore; echo x >new; exit 1";
    let life = life(&[("expose", &expose), ("fail", fail)]);
    life.write(".env", "TOKEN=1\n");
    fs::set_permissions(life.path(".env"), PermissionsExt::from_mode(0o600)).unwrap();
    life.write("notes", "not ignored\n");
    for pattern in [".env", "notes", "file", "missing"] {
        life.git(&["config", "--global", "--add", "aynig.include", pattern]);
    }
    tick(&life, "a", "expose");
    assert_eq!((life.said("env"), life.said("mode")), ("TOKEN=1\n".into(), "600\n".into()));
    assert_eq!(life.files("a").iter().filter(|f| *f == ".env" || *f == "notes").count(), 0);
    assert!(life.files("a").contains(&"new".to_owned()));
    life.event("b", "fail", "");
    life.tick(&["--jobs", "1", "b"]).expect(1);
    let attempts = life.attempts();
    assert!(!attempts.is_empty());
    for attempt in attempts {
        assert!(
            life.files(&attempt).contains(&"new".to_owned())
                && !life.files(&attempt).contains(&".env".into())
        );
    }
    // Where nothing else is left the outcome has the tree of its trigger, without a look at what was copied.
    tick(&life, "c", "list");
    assert!(life.said("list").contains("./.env"));
    assert_eq!(life.rev("c^{tree}"), life.rev("main^{tree}"));
    // Taken away again with the key.
    life.git(&["config", "--global", "--unset-all", "aynig.include"]);
    tick(&life, "c", "list");
    assert!(!life.said("list").contains(".env"));
    for wrong in ["/etc/passwd", "../x", ".git/config", "a/../../x"] {
        life.config("aynig.include", wrong);
        life.event("d", "list", "");
        let done = life.tick(&["d"]).expect(128);
        assert!(done.stderr.contains("'aynig.include'"), "{done:?}");
    }
}

/// K58, K26: killed at any moment, nothing of it is another branch's.
#[test]
fn k58_what_a_killed_run_kept_is_its_own_branch_s() {
    let hold = "echo held >>target/log; echo work >work; echo $$ >\"$T/held\"; sleep 100";
    let life = life(&[("hold", hold)]);
    life.config("aynig.keep", "target/");
    assert_eq!(log(&life, "a"), "a");
    life.event("a", "hold", "");
    let run = life.start_tick(&["--jobs", "1", "--lease", "4s", "a"]);
    life.hear("held");
    run.signal(Signal::SIGKILL);
    eventually("the slot to be free", || {
        life.event("b", "look", "");
        (life.tick(&["--jobs", "1", "b"]).code == Some(0) && life.state("b") == "done").then_some(())
    });
    assert_eq!(life.said("log"), "b\n");
    let attempts = life.attempts();
    assert_eq!(attempts.len(), 1);
    assert!(life.files(&attempts[0]).contains(&"work".to_owned()));
    assert!(!life.files(&attempts[0]).iter().any(|file| file.starts_with("target")));
}

/// K58
#[test]
fn k58_a_slot_is_prepared_where_what_prepares_it_changed() {
    let command = format!("cat node_modules/made >\"$T/made\" 2>/dev/null; {DONE}");
    let life = life(&[("build", &command)]);
    let prepare = "#!/bin/sh\n# depends: lock\necho p >>\"$T/prepared\"; mkdir -p node_modules; cat lock >node_modules/made\n\
                   echo 'SET_STATE {\"state\":\"wrong\"}'; echo '{\"state\":\"wrong\"}' >\"$AYNIG_RESULT\"; sleep 0.1 &\n";
    life.write(".aynig/prepare", prepare);
    fs::set_permissions(life.path(".aynig/prepare"), PermissionsExt::from_mode(0o755)).unwrap();
    life.write("lock", "one\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "prepare"]);
    let mut prepared = 0;
    let mut run = |branch: &str, times: usize, why: &str| {
        tick(&life, branch, "build");
        prepared += times;
        assert_eq!(life.said("prepared").lines().count(), prepared, "{why}");
        assert_eq!(
            (life.state(branch), life.said("made")),
            ("done".into(), life.show(branch, "lock") + "\n"),
            "{why}"
        );
    };
    run("a", 1, "nothing is kept");
    run("a", 1, "nothing is kept");
    life.config("aynig.keep", "node_modules");
    run("a", 1, "not yet kept");
    run("a", 0, "kept");
    life.write("file", "else\n");
    life.git(&["commit", "-qam", "else"]);
    life.git(&["branch", "-f", "a", "main"]);
    run("a", 0, "nothing that it depends on");
    life.write("lock", "two\n");
    life.git(&["commit", "-qam", "lock"]);
    life.git(&["branch", "-f", "a", "main"]);
    run("a", 1, "the file that it depends on");
    run("a", 0, "kept");
    life.write(".aynig/prepare", &prepare.replace("echo p", "echo again"));
    life.git(&["commit", "-qam", "prepare"]);
    life.git(&["branch", "-f", "a", "main"]);
    run("a", 1, "it changed itself");
    run("b", 1, "another branch");
    run("a", 1, "another branch had the slot");
    fs::remove_dir_all(life.slot(0).join("node_modules")).unwrap();
    run("a", 1, "what it made is gone");
    run("a", 0, "kept");
}

/// K58
#[test]
fn k58_a_preparation_that_fails_ends_its_run_as_a_command_does() {
    let life = life(&[("build", &format!("echo ran >\"$T/ran\"; {DONE}"))]);
    life.config("aynig.keep", "target");
    for (script, why) in [
        ("#!/bin/sh\necho no network >&2\nexit 7\n", "no network"),
        ("#!/bin/sh\nsleep 100\n", "timed out"),
        ("#!/nowhere/sh\n", "interpreter"),
        ("#!/bin/sh\ngit aynig set-state review >\"$T/set\" 2>&1\n", ""),
    ] {
        life.write(".aynig/prepare", script);
        fs::set_permissions(life.path(".aynig/prepare"), PermissionsExt::from_mode(0o755)).unwrap();
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "prepare"]);
        life.git(&["branch", "-f", "a", "main"]);
        life.event("a", "build", "");
        let done = life.tick(&["--jobs", "1", "--timeout", "5s", "a"]);
        let state = life.state("a");
        match why {
            "" => assert_eq!((done.code, &*state), (Some(0), "review"), "{done:?} {}", life.said("set")),
            why => {
                assert_eq!((done.code, &*state), (Some(1), "stalled"), "{done:?}");
                assert!(life.body("a").contains(why), "{}", life.body("a"));
                assert!(life.body("a").contains("'.aynig/prepare' ended after"), "{}", life.body("a"));
            }
        }
        assert_eq!(life.said("ran"), "", "{script}");
    }
}

/// A repository whose `config/` has a tracked file and, in the main working tree alone, one that is copied.
fn with_secret(commands: &[(&str, &str)]) -> Life {
    let life = life(commands);
    life.write("config/k", "k\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "config"]);
    life.write("config/.env", "SECRET\n");
    life.config("aynig.include", "config/.env");
    life
}

/// The commit of `main` with this in the place of a path, on a branch.
fn replaced(life: &Life, branch: &str, mode: &str, id: &str, path: &str) {
    life.git(&["rm", "-rq", "--cached", path]);
    life.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{path}")]);
    let tree = life.git(&["write-tree"]);
    life.git(&["reset", "-q"]);
    let parent = life.try_rev(&format!("refs/heads/{branch}")).unwrap_or_else(|| life.rev("main"));
    let id = life.git(&["commit-tree", "-p", &parent, "-m", "replaced", &tree]);
    life.git(&["update-ref", &format!("refs/heads/{branch}"), &id]);
}

/// K58, K25: what stands in the place of a folder with copied files is the command's work, as is all else that it left.
#[test]
fn k58_what_a_command_puts_in_the_place_of_a_folder_with_copied_files_is_its_work() {
    let work = "test -f config/.env || exit 3; echo hours >work.txt";
    for (way, mode, path) in [
        ("rm -rf config; ln -s cfg config", "120000", "config"),
        ("mv config cfg; rm cfg/.env; ln -s cfg config", "120000", "config"),
        ("rm -rf config; echo file >config", "100644", "config"),
        ("rm .gitignore config/.env; ln -s k config/.env", "120000", "config/.env"),
        ("rm .gitignore config/.env; mkdir config/.env; echo x >config/.env/x", "100644", "config/.env/x"),
        (
            "git rm -rq --cached config; git update-index --add --cacheinfo \"160000,$(git rev-parse HEAD),config\"",
            "160000",
            "config",
        ),
    ] {
        let life = with_secret(&[
            ("work", &format!("{work}; {way}; {DONE}")),
            ("fail", &format!("{work}; {way}; exit 1")),
        ]);
        tick(&life, "a", "work");
        assert_eq!(life.state("a"), "done", "{way}: {}", life.body("a"));
        life.event("b", "fail", "");
        life.tick(&["--jobs", "1", "b"]).expect(1);
        let attempts = life.attempts();
        assert_eq!(attempts.len(), 1, "{way}: {}", life.body("b"));
        for commit in ["a", &attempts[0]] {
            assert_eq!(life.show(commit, "work.txt"), "hours", "{way}");
            assert_eq!(
                life.git(&["ls-tree", "--format=%(objectmode)", commit, path]),
                mode,
                "{way}: {commit}"
            );
            assert!(
                life.repo.try_git(&["grep", "-q", "SECRET", commit]).status.code() == Some(1),
                "{way}: {commit}"
            );
        }
        assert!(!life.repo.git_dir().join("aynig/submodules").exists(), "{way}");
    }
}

/// K58: where the commit has something else in the place of a folder, nothing is copied below it, and it runs.
#[test]
fn k58_below_a_link_a_file_or_a_submodule_of_the_commit_nothing_is_copied() {
    let life = with_secret(&[]);
    let elsewhere = life.shared().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let target = life.shared().join("target");
    fs::write(&target, elsewhere.to_str().unwrap()).unwrap();
    let target = life.git(&["hash-object", "-w", target.to_str().unwrap()]);
    for (branch, mode, id) in [
        ("link", "120000", target.clone()),
        ("file", "100644", target),
        ("submodule", "160000", life.rev("main")),
    ] {
        replaced(&life, branch, mode, &id, "config");
        tick(&life, branch, "list");
        assert_eq!(life.state(branch), "done", "{branch}: {}", life.body(branch));
        assert!(!life.said("list").contains(".env"), "{branch}: {}", life.said("list"));
        assert_eq!(
            life.rev(&format!("{branch}^{{tree}}")),
            life.rev(&format!("{branch}~2^{{tree}}")),
            "{branch}"
        );
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    tick(&life, "whole", "list");
    assert!(life.said("list").contains("./config/.env"), "{}", life.said("list"));
}

/// K58: nor below a link that is kept, whose target is not the slot's.
#[test]
fn k58_below_a_link_that_is_kept_nothing_is_copied() {
    let life = life(&[("link", &format!("mkdir -p target; ln -s \"$T\" target/sub; {DONE}"))]);
    life.write("target/sub/conf", "SECRET\n");
    life.config("aynig.keep", "target");
    life.config("aynig.include", "target/sub/conf");
    tick(&life, "a", "list");
    assert!(life.said("list").contains("./target/sub/conf"), "{}", life.said("list"));
    life.git(&["config", "--global", "--unset-all", "aynig.include"]);
    tick(&life, "b", "link");
    life.config("aynig.include", "target/sub/conf");
    tick(&life, "b", "list");
    assert_eq!(life.state("b"), "done", "{}", life.body("b"));
    assert!(
        !life.said("list").contains("conf") && !life.shared().join("conf").exists(),
        "{}",
        life.said("list")
    );
    assert!(life.slot(0).join("target/sub").is_symlink(), "what is kept is as it was");
}

/// K58: what was kept in a folder that is a submodule by now is not the commit's any more, and goes.
#[test]
fn k58_what_was_kept_where_a_submodule_is_by_now_is_left_out() {
    let life = life(&[("make", &format!("mkdir -p config/target; echo x >config/target/x; {DONE}"))]);
    life.write("config/k", "k\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "config"]);
    life.config("aynig.keep", "*/target");
    tick(&life, "a", "make");
    tick(&life, "a", "list");
    assert!(life.said("list").contains("./config/target/x"), "{}", life.said("list"));
    replaced(&life, "a", "160000", &life.rev("main"), "config");
    // What a command makes there is the submodule's, and is not kept either.
    for state in ["list", "make", "list"] {
        tick(&life, "a", state);
        assert_eq!(life.state("a"), "done", "{state}: {}", life.body("a"));
        assert!(!life.said("list").contains("target"), "{state}: {}", life.said("list"));
    }
    assert!(!life.slot_root().join(".kept-0").exists());
}

/// K58, K25: a folder that is taken is taken without what was copied into it; what is named itself is not left out.
#[test]
fn k58_a_folder_that_is_taken_has_nothing_that_was_copied() {
    let declare = |paths: &str, rest: &str| {
        let more = "echo made >config/made; echo mine >config/node_modules";
        let declared = format!("{{\"state\":\"done\",\"take\":{{\"paths\":[{paths}],\"rest\":\"{rest}\"}}}}");
        format!("{more}; echo 'SET_STATE {declared}'")
    };
    for rest in ["kept", "all"] {
        let life = with_secret(&[
            ("folder", &declare("\"config\"", rest)),
            ("exposed", &format!("rm .gitignore; {}", declare("\"config\"", rest))),
            ("named", &declare("\"config\",\"config/.env\"", rest)),
            ("alone", &declare("\"config/.env\"", rest)),
            ("staged", &format!("git add -f config/.env; {}", declare("\"config\"", rest))),
            (
                "own",
                &format!(
                    "rm config/.env; mkdir config/.env; echo x >config/.env/x; {}",
                    declare("\"config\"", rest)
                ),
            ),
        ]);
        life.write("config/node_modules", "k\n");
        for (state, is_there) in [
            ("folder", false),
            ("exposed", false),
            ("named", true),
            ("alone", true),
            // It is what the command staged, by its name, and `kept` takes nothing of that.
            ("staged", rest == "all"),
        ] {
            tick(&life, state, state);
            assert_eq!(life.state(state), "done", "{rest}: {}", life.body(state));
            let files = life.files(state);
            assert_eq!(files.contains(&"config/.env".to_owned()), is_there, "{state} {rest}: {files:?}");
            assert!(files.contains(&"config/k".to_owned()), "{state} {rest}: {files:?}");
            // Past every rule for ignoring, as ever.
            let folder = state != "alone";
            assert_eq!(
                files.contains(&"config/node_modules".to_owned()),
                folder,
                "{state} {rest}: {files:?}"
            );
            if !is_there && state != "staged" {
                for attempt in life.attempts() {
                    assert!(!life.files(&attempt).contains(&"config/.env".to_owned()), "{state} {rest}");
                }
            }
        }
        tick(&life, "own", "own");
        assert!(life.files("own").contains(&"config/.env/x".to_owned()), "{rest}: {:?}", life.files("own"));
    }
}

/// K58, K25: nor has it what another branch left.
#[test]
fn k58_a_folder_that_is_taken_has_nothing_of_another_branch() {
    let take = |path: &str| {
        let make = "mkdir -p web/target; echo made >web/made; echo \"$AYNIG_BRANCH\" >>web/target/log";
        format!(
            "{make}; echo 'SET_STATE {{\"state\":\"done\",\"take\":{{\"paths\":[\"{path}\"],\"rest\":\"kept\"}}}}'"
        )
    };
    let life = life(&[("folder", &take("web")), ("named", &take("web/target/log"))]);
    life.config("aynig.keep", "*/target");
    life.config("aynig.keepAcross", "true");
    tick(&life, "a", "folder");
    assert_eq!((life.show("a", "web/made"), life.show("a", "web/target/log")), ("made".into(), "a".into()));
    tick(&life, "b", "folder");
    assert_eq!(life.show("b", "web/made"), "made");
    assert!(!life.files("b").contains(&"web/target/log".to_owned()), "{:?}", life.files("b"));
    tick(&life, "c", "named");
    assert_eq!(life.show("c", "web/target/log"), "a\nb\nc");
}
