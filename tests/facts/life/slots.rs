//! A slot that was used is byte for byte what a fresh one would be.

use crate::support::git_that;
use crate::support::life::{Life, differences, tree_of};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const NEXT: &str = "\necho 'SET_STATE {\"state\":\"next\"}'";

/// Everything that a checkout of a commit would be, made by `git archive`.
fn fresh(life: &Life, commit: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let dir = life.shared().join("fresh");
    fs::create_dir(&dir).unwrap();
    let tar = life.shared().join("fresh.tar");
    life.git(&["-c", "tar.umask=022", "archive", "-o", tar.to_str().unwrap(), commit]);
    let mut command = life.repo.command("tar");
    assert!(command.arg("-xf").arg(&tar).arg("-C").arg(&dir).status().unwrap().success());
    let all = tree_of(&dir);
    fs::remove_dir_all(&dir).unwrap();
    all
}

/// Runs `dirty` in the slot, then looks at what the next run finds there.
fn after(dirty: &str) -> Life {
    // The copy is made before anything else touches the slot; the links are Git's own view of it.
    let look = format!(
        "rm -rf \"$T/seen\" && cp -a . \"$T/seen\" && git status --porcelain --ignored >\"$T/status\" 2>&1\n\
         git ls-files -v >\"$T/flags\"; git rev-parse HEAD >\"$T/head\"; ls -A \"$(git rev-parse --git-dir)\" >\"$T/admin\"{NEXT}"
    );
    let life = Life::new(&[("dirty", dirty), ("look", &look)]);
    life.write(".gitignore", "*.o\nignored/\n");
    life.write("deep/er/file", "x\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "more"]);
    life.event("work", "dirty", "");
    let report = life.report(&["--jobs", "1", "work"]).1;
    assert_ne!(report["result"].as_str(), Some("failed"), "{report}");
    // The same tree again, and after it another one.
    for branch in ["same", "other"] {
        if branch == "other" {
            life.write("file", "different\n");
            life.git(&["commit", "-qam", "different"]);
        }
        let trigger = life.event(branch, "look", "");
        let done = life.tick(&["--jobs", "1", branch]);
        assert_eq!((done.code, life.state(branch)), (Some(0), "next".into()), "{dirty}: {done:?}");
        let mut seen = tree_of(&life.shared().join("seen"));
        let link = seen.remove(&PathBuf::from(".git")).unwrap();
        assert!(link.ends_with(b"/.git/worktrees/aynig-slot-0\n"), "{}", String::from_utf8_lossy(&link));
        let none: Vec<PathBuf> = Vec::new();
        assert_eq!(differences(&fresh(&life, &trigger), &seen), none, "{branch} after {dirty}");
        assert_eq!(life.said("status"), "", "{dirty}");
        assert!(life.said("flags").lines().all(|l| l.starts_with("H ")), "{dirty}: {}", life.said("flags"));
        assert_eq!(life.said("head").trim_end(), life.rev(&format!("{branch}~1")));
        let admin: Vec<&str> = life.said("admin").leak().lines().collect();
        assert!(
            admin
                .iter()
                .all(|n| ["HEAD", "ORIG_HEAD", "commondir", "gitdir", "index", "locked", "logs"].contains(n)),
            "{dirty}: {admin:?}"
        );
    }
    life.repo.assert_sound();
    life
}

/// K25: nor by the times of its files, where the user's Git believes those.
#[test]
fn a_change_is_seen_that_took_its_times_along() {
    let script = "t=$(stat -c %y file); printf 'two\\n' >file; touch -d \"$t\" file; echo 'SET_STATE {\"state\":\"done\"}'";
    let life = Life::new(&[("build", script), ("warm", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("core.trustctime", "false");
    life.event("first", "warm", "");
    life.tick(&["first"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.show("work", "file"), "two");
}

/// K25: `core.ignoreStat` is between Git and the user who set it: a slot that was brought to another tree is looked at.
#[test]
fn a_change_is_seen_where_git_was_told_not_to_look() {
    let life = Life::new(&[("build", "echo \"$AYNIG_BRANCH\" >file; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("core.ignoreStat", "true");
    for branch in ["first", "second", "third"] {
        life.event(branch, "build", "");
        life.tick(&[branch]).expect(0);
        assert_eq!(life.show(branch, "file"), branch);
    }
}

/// K14
#[test]
fn files_and_folders_of_an_earlier_run_are_gone() {
    after(&format!(
        "echo u >untracked; mkdir -p ignored/a; echo i >ignored/a/b; echo o >x.o; mkdir -p empty/one; rm -r deep; echo e >>file{NEXT}"
    ));
    after(
        "echo u >'new\nline'; ln -s / root; mkfifo pipe; rm file; mkdir file; echo x >file/x; rm -r dir; echo x >dir; exit 1",
    );
    after("rm -rf ./* ./.aynig ./.gitignore; exit 1");
}

/// K14
#[test]
fn permissions_are_restored() {
    after(&format!(
        "chmod 000 file; chmod 000 dir; mkdir shut; echo x >shut/x; chmod 000 shut; chmod +x deep/er/file{NEXT}"
    ));
    after("chmod 555 deep/er deep .; exit 1");
    after("umask 077; rm file; echo one >file; exit 1");
}

/// K14
#[test]
fn repositories_inside_the_slot_are_gone() {
    after(&format!(
        "git init -q inner; git -C inner commit -q --allow-empty -m x; git clone -q . deep/clone 2>/dev/null; git init -q ignored{NEXT}"
    ));
    after("rm .git; git init -q .; git add -A; git commit -qm mine; exit 1");
}

/// K14
#[test]
fn a_changed_git_link_leads_nowhere_else() {
    after("echo 'gitdir: /nowhere' >.git; exit 1");
    after("rm .git; exit 1");
    after("rm .git; ln -s \"$T\" .git; exit 1");
    after("rm .git; mkdir .git; echo x >.git/x; exit 1");
}

/// K14
#[test]
fn git_state_of_an_earlier_run_is_gone() {
    let admin = "$(git rev-parse --git-dir)";
    after(&format!(
        "git rev-parse HEAD >\"{admin}/MERGE_HEAD\"; echo m >\"{admin}/MERGE_MSG\"; mkdir \"{admin}/rebase-merge\"; exit 1"
    ));
    after(&format!(
        "printf '[core]\\n\\tsparseCheckout = true\\n\\tworktree = /\\n' >\"{admin}/config.worktree\"; exit 1"
    ));
    after(&format!(
        "mkdir -p \"{admin}/info\"; echo /file >\"{admin}/info/sparse-checkout\"; touch \"{admin}/index.lock\" \"{admin}/HEAD.lock\"; exit 1"
    ));
    after(
        "git update-index --assume-unchanged file; git update-index --skip-worktree deep/er/file; echo e >>file; rm deep/er/file; exit 1",
    );
    after("git checkout -q -b mine; git rm -q --cached file; git add -N .; git bisect start; exit 1");
    after(&format!(
        "echo x >\"{admin}/index\"; echo x >\"{admin}/HEAD\"; echo x >\"{admin}/commondir\"; echo x >\"{admin}/gitdir\"; exit 1"
    ));
    after(&format!("rm -rf \"{admin}\"; exit 1"));
}

/// K14: nothing that a command can forge is believed.
#[test]
fn a_changed_file_is_found_whatever_its_size_and_times() {
    after("t=$(stat -c %y file); printf 'two\n' >file; touch -d \"$t\" file; touch -d \"$t\" .; exit 1");
    // In place, through a new inode, and through a link to another file of the same content's size.
    after("t=$(stat -c %y file); printf 'two\n' >new; touch -d \"$t\" new; mv new file; exit 1");
    after("printf 'two\n' >file; git update-index --refresh; git add file; exit 1");
    after("rm file; ln -s dir/other file; exit 1");
    after("ln -f dir/other file; exit 1");
}

/// K14, K45: a slot that a command replaced by a link leads the runner nowhere.
#[test]
fn a_slot_that_became_a_link_does_not_harm_what_it_leads_to() {
    for ending in ["exit 1", "echo 'SET_STATE {\"state\":\"next\"}'"] {
        let life = Life::new(&[
            (
                "dirty",
                &format!(
                    "d=\"$PWD\"; mkdir \"$T/victim\"; echo mine >\"$T/victim/mine\"; cd /; rm -rf \"$d\"; ln -s \"$T/victim\" \"$d\"; {ending}"
                ),
            ),
            ("look", &format!("ls >\"$T/seen\"{NEXT}")),
        ]);
        life.event("work", "dirty", "");
        let report = life.report(&["--jobs", "1", "work"]).1;
        assert_eq!(report["result"].as_str(), Some("stalled"), "{report}");
        assert!(life.attempts().iter().all(|a| !life.files(a).contains(&"mine".to_owned())));
        life.event("other", "look", "");
        life.tick(&["--jobs", "1", "other"]).expect(0);
        assert_eq!((life.said("seen"), life.said("victim/mine")), ("dir\nfile\n".into(), "mine\n".into()));
        assert!(life.slot(0).symlink_metadata().unwrap().is_dir());
    }
}

/// K14: a command's own configuration never runs a program of ours to be.
#[test]
fn checking_out_runs_no_hook_and_no_monitor() {
    let life = Life::new(&[("build", &format!("echo x >>file; git commit -qam x --no-verify{NEXT}"))]);
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "post-commit"] {
        let path = life.path(&format!(".git/hooks/{hook}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            format!(
                "#!/bin/sh\necho {hook} \"$AYNIG_RUN_ID\" >>\"{}\"\n",
                life.shared().join("hooks").display()
            ),
        )
        .unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let monitor = life.shared().join("monitor");
    crate::support::write_program(
        &monitor,
        &format!("#!/bin/sh\necho ran >\"{}\"\n", life.shared().join("monitored").display()),
    );
    life.event("work", "build", "");
    let _ = fs::remove_file(life.shared().join("hooks"));
    life.git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    let _ = fs::remove_file(life.shared().join("monitored"));
    life.command("none", "");
    life.tick(&["work"]).expect(0);
    // Only what the command itself did with git ran a hook: it has the run's id.
    let said = life.said("hooks");
    assert!(said.lines().all(|l| l.split(' ').nth(1).is_some_and(|id| !id.is_empty())), "{said}");
    assert_eq!(life.show("work", "file"), "one\nx");
}

const DONE: &str = "\necho 'SET_STATE {\"state\":\"done\"}'";

/// Puts a file of attributes on `main`.
fn attributes(life: &Life, content: &str) {
    life.write(".gitattributes", content);
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "attributes"]);
}

/// K14, K25: wherever the attribute is named.
#[test]
fn an_encoding_of_the_working_tree_is_kept() {
    let rule = "*.rc working-tree-encoding=UTF-16LE-BOM\n";
    for place in ["tree", "info", "account"] {
        let look = format!("od -An -c text.rc >\"$T/seen\"; echo x >>file{DONE}");
        let life = Life::new(&[("build", &look)]);
        if place != "tree" {
            attributes(&life, "");
            let folder = life.repo.home().join(".config/git");
            fs::create_dir_all(&folder).unwrap();
            let info = life.repo.git_dir().join("info/attributes");
            fs::write(if place == "info" { info } else { folder.join("attributes") }, rule).unwrap();
        } else {
            attributes(&life, rule);
        }
        let blob = life.repo.git(&["hash-object", "-w", "--no-filters", "file"]);
        life.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},text.rc")]);
        life.git(&["commit", "-qm", "text"]);
        life.git(&["reset", "-q", "--hard"]);
        for branch in ["fresh", "again"] {
            life.event(branch, "build", "");
            life.tick(&["--jobs", "1", branch]).expect(0);
            let seen: Vec<String> = life.said("seen").split_whitespace().map(str::to_owned).collect();
            assert_eq!(seen, ["377", "376", "o", "\\0", "n", "\\0", "e", "\\0", "\\n", "\\0"], "{place}");
            assert_eq!(life.show(branch, "text.rc"), "one", "{place}");
        }
    }
}

/// K45: a filter driver works in the slot, and what it leaves there goes.
#[test]
fn a_filter_driver_leaves_nothing_with_the_user() {
    let life = Life::new(&[("build", &format!("echo x >>file; ls -A >\"$T/seen\"{DONE}"))]);
    attributes(&life, "file filter=mark\n");
    life.config("filter.mark.smudge", "cat; touch LEFT; pwd >>\"$T/where\"");
    life.config("filter.mark.clean", "cat");
    for branch in ["fresh", "again"] {
        life.event(branch, "build", "");
        life.tick(&["--jobs", "1", branch]).expect(0);
        assert_eq!(life.git(&["status", "--porcelain"]), "");
        assert!(!life.said("seen").contains("LEFT") && !life.files(branch).contains(&"LEFT".to_owned()));
    }
    let slot = fs::canonicalize(life.slot(0)).unwrap();
    let said = life.said("where");
    assert!(!said.is_empty() && said.lines().all(|line| slot == *line), "{said}");
}

/// K14: files that only their attributes changed.
#[test]
fn a_slot_follows_changed_attributes() {
    let look = format!("od -An -c text.txt | tr -d ' \\n' >\"$T/seen\"; echo x >>file{DONE}");
    let life = Life::new(&[("build", &look)]);
    life.write("text.txt", "one\n");
    let seen = |branch: &str, rule: &str, text: &str| {
        attributes(&life, rule);
        life.event(branch, "build", "");
        life.tick(&["--jobs", "1", branch]).expect(0);
        assert_eq!(life.said("seen"), text, "{branch}");
        assert_eq!(life.show(branch, "text.txt"), "one");
    };
    seen("plain", "\n", "one\\n");
    seen("crlf", "*.txt eol=crlf\n", "one\\r\\n");
    seen("lf", "*.txt eol=lf\n", "one\\n");
    seen("again", "*.txt text eol=crlf\n", "one\\r\\n");
    life.git(&["rm", "-q", ".gitattributes"]);
    life.write(".aynig/.gitattributes", "* -text\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "without"]);
    life.event("without", "build", "");
    life.tick(&["--jobs", "1", "without"]).expect(0);
    assert_eq!(life.said("seen"), "one\\n");
}

/// K25: what a command's own Git was told not to look at is looked at.
#[test]
fn a_change_is_seen_that_the_index_hides() {
    let sparse = "git sparse-checkout set a && ! test -e b && mkdir -p b && echo w >b/f";
    for (hide, ignore, path, now) in [
        ("git update-index --assume-unchanged file; echo two >file", "false", "file", "two"),
        ("echo one >>file; git add file; echo two >>file", "true", "file", "one\none\ntwo"),
        ("git update-index --skip-worktree file; echo two >file", "false", "file", "two"),
        (
            "git update-index --split-index; echo two >file; git add file; echo three >>file",
            "false",
            "file",
            "two\nthree",
        ),
        (sparse, "false", "b/f", "w"),
        (&sparse.replace("set", "set --sparse-index"), "false", "b/f", "w"),
    ] {
        let life = Life::new(&[("build", &format!("{hide}{DONE}"))]);
        for name in ["a/f", "b/f", "b/g"] {
            life.write(name, "v\n");
        }
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "more"]);
        // Only the command's own Git believes it.
        life.config("core.ignoreStat", ignore);
        life.event("work", "build", "");
        life.tick(&["work"]).expect(0);
        assert_eq!(life.show("work", path), now, "{hide}");
        assert_eq!(life.git(&["diff", "--name-only", "main", "work"]), path, "{hide}");
    }
}

/// K14, K45: a slot's index is whole, or all of it is there: Git reads those of all working trees.
#[test]
fn a_split_index_of_a_slot_does_not_break_the_user_s_git() {
    let life = Life::new(&[
        (
            "build",
            &format!("echo \"$AYNIG_BRANCH\" >file; git add file; git update-index --split-index{DONE}"),
        ),
        ("stall", "echo x >file; git add file; git update-index --split-index; exit 1"),
    ]);
    life.config("core.splitIndex", "true");
    for (branch, state) in [("one", "build"), ("two", "build"), ("three", "stall"), ("four", "build")] {
        life.event(branch, state, "");
        life.tick(&["--jobs", "1", branch]);
        if state == "build" {
            assert_eq!(life.show(branch, "file"), branch);
        }
        life.git(&["fsck"]);
        life.git(&["gc", "-q", "--prune=now"]);
        life.git(&["-C", life.slot(0).to_str().unwrap(), "status"]);
        life.write("dir/other", branch);
        life.git(&["commit", "-qam", "another tree"]);
    }
    after("git update-index --split-index; echo x >file; git add file; exit 1");
}

/// K14, K28, K45: what is a slot is not said by its name.
#[test]
fn a_worktree_of_the_user_that_is_named_as_a_slot_is_theirs() {
    let life = Life::new(&[("build", &format!("echo x >>file{DONE}"))]);
    for number in [0, 7] {
        let dir = life.repo.home().join(format!("aynig-slot-{number}"));
        life.git(&["worktree", "add", "-q", "-b", &format!("mine{number}"), dir.to_str().unwrap()]);
        life.event(&format!("mine{number}"), "build", "");
        life.git(&["-C", dir.to_str().unwrap(), "reset", "-q", "--hard"]);
        for jobs in ["1", "9"] {
            life.event("work", "build", "");
            life.tick(&["--jobs", jobs, "work"]).expect(0);
        }
        life.tick(&["--jobs", "1", &format!("mine{number}")]).expect(0);
        assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "one\nx\n", "the outcome is there");
        life.run(&["gc"]).expect(0);
        assert_eq!(life.git(&["-C", dir.to_str().unwrap(), "status", "--porcelain"]), "");
        assert_eq!(
            life.git(&["-C", dir.to_str().unwrap(), "branch", "--show-current"]),
            format!("mine{number}")
        );
    }
    // A slot stays one without its lock.
    life.command("build", "rm \"$(git rev-parse --git-dir)/locked\"; exit 1");
    life.git(&["commit", "-qam", "unlocks"]);
    life.event("unlocked", "build", "");
    life.tick(&["--jobs", "1", "unlocked"]);
    life.run(&["gc"]).expect(0);
    let left = fs::read_dir(life.repo.git_dir().join("worktrees")).unwrap();
    assert_eq!(left.count(), 2);
}

/// K14: no commit holds them, and what is written under them is too old, once Git is done, to be read again.
#[test]
fn attributes_of_an_earlier_run_are_gone_before_anything_is_written() {
    let leave = "echo '* eol=crlf' | tee dir/.gitattributes >.gitattributes; rm file dir/other; exit 1";
    let life = Life::new(&[("leave", leave), ("look", &format!("cat file dir/other >\"$T/seen\"{DONE}"))]);
    let slow = "\"$real\" \"$@\" || exit; case \"$*\" in *read-tree*) sleep 0.1 ;; esac";
    let path = git_that(&life.shared(), slow);
    for (branch, state) in [("first", "leave"), ("second", "look")] {
        life.event(branch, state, "");
        let mut tick = life.aynig(&["tick", "--jobs", "1", branch]);
        tick.env("PATH", &path).output().unwrap();
    }
    assert_eq!(life.said("seen"), "one\ntwo\n");
}

/// K26: `gc` says where it moved what can be kept in no other way.
#[test]
fn a_collection_says_where_it_moved_what_a_slot_held() {
    let deep = "p=.; for i in $(seq 1 25); do p=$(printf 'd%.0s' $(seq 200)); mkdir $p; cd -P $p; done; echo deep >deepfile; exit 1";
    let life = Life::new(&[("deep", deep)]);
    life.event("work", "deep", "");
    life.tick(&["work"]);
    assert_eq!(life.state("work"), "stalled");
    let said = life.run(&["gc"]).expect(0);
    let aside = said.stdout.split("; what it held is in '").nth(1).and_then(|rest| rest.split('\'').next());
    let aside = std::path::PathBuf::from(aside.unwrap_or_else(|| panic!("{said:?}")));
    assert!(aside.join("d".repeat(200)).is_dir(), "{aside:?}");
}
