//! Outcomes that could not arrive in a working tree, and what the user's next command makes of it (K28).

use crate::support::git_that;
use crate::support::life::{Life, tree_of};
use std::ffi::OsString;
use std::fs;

const DONE: &str = "rm dir/other; echo more >>file; mkdir new; echo n >new/file; ln -s file link; chmod +x exec\n\
                    echo 'SET_STATE {\"state\":\"done\"}'";

/// A repository that stands on `work`, whose head asks for `build`.
fn checked_out(script: &str) -> Life {
    let life = Life::new(&[("build", script)]);
    life.write("exec", "x\n");
    life.git(&["add", "exec"]);
    life.git(&["commit", "-qm", "exec"]);
    life.git(&["checkout", "-qb", "work"]);
    life.event("work", "build", "");
    life
}

/// A `git` that does this before it fails, wherever it is to change a working tree, until there is a file `mended`.
fn failing_git(life: &Life, first: &str) -> OsString {
    let script = format!(
        "case \"$*\" in *'read-tree -m -u '[!-]*) if ! [ -e '{}' ]; then {first}\n\
         echo 'fatal: unable to write new index file' >&2; exit 128; fi ;; esac\nexec \"$real\" \"$@\"",
        life.shared().join("mended").display(),
    );
    git_that(&life.shared(), &script)
}

/// Writes every file, and no index.
const NO_INDEX: &str = "cp \"$GIT_INDEX_FILE\" \"$GIT_INDEX_FILE.was\"; \"$real\" \"$@\"; mv \"$GIT_INDEX_FILE.was\" \"$GIT_INDEX_FILE\"";
/// Writes some of it: one file is there, one is begun, one is gone.
const HALF: &str = "printf 'one\\nmore\\n' >file; mkdir -p new; printf n >new/file; rm -f dir/other";

fn ticked(life: &Life, path: &OsString) -> crate::support::life::Done {
    crate::support::life::done(life.aynig(&["tick", "--json", "work"]).env("PATH", path).output().unwrap())
}

/// K28: a working tree that can't follow is put back, nothing is on the branch, and `retry` lands the outcome
#[test]
fn an_outcome_that_cannot_arrive_is_put_back_and_landed_later() {
    for way in [NO_INDEX, HALF] {
        let life = checked_out(DONE);
        life.write("mine", "untracked\n");
        let before = tree_of(&life.path("dir"));
        // Only the first time: what puts it back works.
        let path = failing_git(&life, &format!(": >'{}'; {way}", life.shared().join("mended").display()));
        let done = ticked(&life, &path).expect(1);
        assert_eq!(done.json()["result"].as_str(), Some("stalled"), "{way}: {done:?}");
        assert!(life.body("work").contains("unable to write new index file"), "{}", life.body("work"));
        assert_eq!(life.git(&["status", "--porcelain"]), "?? mine", "{way}");
        assert_eq!((life.read("file"), tree_of(&life.path("dir"))), ("one\n".into(), before), "{way}");
        let tree = life.rev("work^{tree}");
        life.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(life.rev("work^{tree}"), tree, "{way}");
        life.run(&["retry", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
        assert_eq!(life.git(&["status", "--porcelain"]), "?? mine", "{way}");
    }
}

/// K28: what can't be put back either is told with the mend, stays noted, takes nothing back, and goes with any verb
#[test]
fn what_could_not_be_put_back_is_told_and_mended_by_the_next_verb() {
    let verbs: [&[&str]; 9] = [
        &["status"],
        &["events", "work"],
        &["logs", "work"],
        &["set-state", "other"],
        &["retry", "work"],
        &["gc"],
        &["hooks", "status"],
        &["tick"],
        &["run"],
    ];
    for (n, verb) in verbs.into_iter().enumerate() {
        let life = checked_out(DONE);
        let path = failing_git(&life, if n % 2 == 0 { NO_INDEX } else { HALF });
        ticked(&life, &path).expect(1);
        let body = life.body("work");
        let told = body.contains("could not be put back") && body.contains("git aynig status");
        assert!(told && life.state("work") == "stalled", "{body}");
        assert!(life.run(&["doctor"]).stdout.contains("is not all there, or not on the branch"), "{verb:?}");
        let tree = life.rev("work^{tree}");
        life.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(life.rev("work^{tree}"), tree, "{verb:?}: an ordinary commit changes nothing");
        fs::write(life.shared().join("mended"), "").unwrap();
        life.run(verb);
        let left = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count();
        assert_eq!((left, life.git(&["status", "--porcelain"])), (0, String::new()), "{verb:?}");
        let landed = if verb[0] == "retry" { "one\nmore\n" } else { "one\n" };
        assert_eq!(life.read("file"), landed, "{verb:?}");
    }
}

/// K28: what could be put back only in part, as on a disk that is full, is put back to the end by the next verb
#[test]
fn what_was_put_back_in_part_is_put_back_to_the_end() {
    for (file, other) in [("printf o >file", ": >dir/other"), (": >file", "printf tw >dir/other")] {
        let life = checked_out(DONE);
        let began = life.shared().join("began");
        let way =
            format!("if [ -e '{0}' ]; then {file}; {other}; else : >'{0}'; {HALF}; fi", began.display());
        let path = failing_git(&life, &way);
        ticked(&life, &path).expect(1);
        assert_eq!(life.state("work"), "stalled");
        assert_eq!(life.git(&["status", "--porcelain"]), " M dir/other\n M file", "{other}");
        fs::write(life.shared().join("mended"), "").unwrap();
        life.run(&["status"]).expect(0);
        let left = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count();
        assert_eq!((left, life.git(&["status", "--porcelain"])), (0, String::new()), "{other}");
        assert_eq!((life.read("file"), life.read("dir/other")), ("one\n".into(), "two\n".into()));
        life.run(&["retry", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
    }
}

/// K28: what a sparse checkout leaves out is not missing, and a link that a user has turned is the user's
#[test]
fn what_is_not_there_by_the_users_wish_is_not_put_back() {
    let life = Life::new(&[(
        "build",
        "echo more >>file; echo x >>dir/other; ln -sfn b link\necho 'SET_STATE {\"state\":\"done\"}'",
    )]);
    std::os::unix::fs::symlink("a", life.path("link")).unwrap();
    life.git(&["add", "link"]);
    life.git(&["commit", "-qm", "link"]);
    life.git(&["checkout", "-qb", "work"]);
    life.event("work", "build", "");
    life.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/dir/"]);
    let once = life.shared().join("mended");
    let half = "printf 'one\\nmo' >file; ln -sfn nowhere link";
    let path = failing_git(&life, &format!(": >'{}'; {half}", once.display()));
    ticked(&life, &path).expect(1);
    let left = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count();
    assert_eq!((life.state("work"), left, life.read("file")), ("stalled".into(), 0, "one\n".into()));
    assert_eq!(life.git(&["status", "--porcelain"]), " M link");
    assert!(!life.path("dir").exists());
}

/// K28: a file that a user has cut short before anything was put back is the user's, also where Git has more to say
#[test]
fn what_a_user_cut_short_meanwhile_is_not_put_back() {
    for alternates in ["", "/nowhere/at/all\n"] {
        let life = checked_out(DONE);
        life.write(".git/objects/info/alternates", alternates);
        let edits = "printf 'one\nmo' >file; rm dir/other; chmod +x exec";
        let script =
            format!("case \"$*\" in *'read-tree -m -u '[!-]*) {edits} ;; esac\nexec \"$real\" \"$@\"");
        ticked(&life, &git_that(&life.shared(), &script)).expect(1);
        assert_eq!((life.state("work"), life.read("file")), ("stalled".into(), "one\nmo".into()));
        life.run(&["status"]).expect(0);
        assert_eq!(life.git(&["status", "--porcelain"]), " D dir/other\n M exec\n M file", "{alternates}");
    }
}

/// K28: nor where `git` is a script that asks Git something first
#[test]
fn what_a_user_cut_short_is_not_put_back_where_git_is_a_script() {
    let life = checked_out(DONE);
    let script = "case \"$*\" in *'read-tree -m -u '[!-]*) printf 'one\\nmo' >file ;; esac\n\
                  \"$real\" config --get user.name >/dev/null; exec \"$real\" \"$@\"";
    ticked(&life, &git_that(&life.shared(), script)).expect(1);
    assert!(life.body("work").contains("Once the local changes are out of the way"), "{}", life.body("work"));
    life.run(&["status"]).expect(0);
    assert_eq!(
        (life.read("file"), life.git(&["status", "--porcelain"])),
        ("one\nmo".into(), " M file".into())
    );
}

/// K28: the same where the runner was killed once the index had the outcome
#[test]
fn what_a_user_cut_short_after_a_kill_is_not_put_back() {
    for alternates in ["", "/nowhere/at/all\n"] {
        let life = checked_out("echo other >file; echo 'SET_STATE {\"state\":\"done\"}'");
        life.write(".git/objects/info/alternates", alternates);
        let index = life.path(".git/index");
        let script = format!(
            "case \"$*\" in *'read-tree -m -u '[!-]*)\n\
             \"$real\" \"$@\"; cp \"$GIT_INDEX_FILE\" '{}'; kill -9 $PPID ;; esac\nexec \"$real\" \"$@\"",
            index.display()
        );
        assert_eq!(ticked(&life, &git_that(&life.shared(), &script)).code, None);
        for mine in ["mine\n", "on"] {
            life.write("file", mine);
            let said = life.run(&["status"]).expect(0);
            assert!(said.stderr.contains("not uptodate"), "{mine} {alternates}: {said:?}");
            assert_eq!(life.read("file"), mine, "{alternates}");
        }
        life.write("file", "other\n");
        life.run(&["status"]).expect(0);
        assert_eq!(
            (life.read("file"), life.git(&["status", "--porcelain"])),
            ("one\n".into(), String::new())
        );
    }
}

/// K28: a working tree that switches to the branch while it moves, and can't follow, commits nothing over it
#[test]
fn who_comes_late_and_cannot_follow_commits_nothing_over_the_outcome() {
    let life = checked_out(DONE);
    let other = life.repo.home().join("other");
    life.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    // Between the first working tree's checkout and the move of the branch the second one comes.
    let switch = format!(
        "cd '{}'; env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$real\" symbolic-ref HEAD refs/heads/work",
        other.display()
    );
    let path = failing_git(
        &life,
        &format!("case \"$*\" in *--work-tree=*other*) ;; *) ({switch}); exec \"$real\" \"$@\" ;; esac"),
    );
    let done = ticked(&life, &path);
    assert_eq!((done.code, life.state("work").as_str()), (Some(1), "done"), "{done:?}");
    assert!(done.stdout.contains("could not follow") && done.stdout.contains("hint:"), "{done:?}");
    let commit = life.repo.try_git(&["-C", other.to_str().unwrap(), "commit", "-qm", "mine"]);
    assert!(!commit.status.success(), "{commit:?}");
    fs::write(life.shared().join("mended"), "").unwrap();
    life.run(&["status"]).expect(0);
    assert_eq!(life.git(&["-C", other.to_str().unwrap(), "status", "--porcelain"]), "");
    life.git(&["-C", other.to_str().unwrap(), "commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(life.show("work", "file"), "one\nmore");
}

/// K28: nothing was written to a working tree that could not follow, so each change there is the user's
#[test]
fn who_comes_late_with_changes_keeps_them() {
    let life = checked_out(DONE);
    let other = life.repo.home().join("other");
    life.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    fs::write(other.join("file"), "").unwrap();
    let script = format!(
        "case \"$*\" in *--work-tree=*other*) ;; *'read-tree -m -u '[!-]*)\n\
         (cd '{}'; env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$real\" symbolic-ref HEAD refs/heads/work) ;; esac\n\
         exec \"$real\" \"$@\"",
        other.display()
    );
    let done = ticked(&life, &git_that(&life.shared(), &script)).expect(1);
    assert!(done.stdout.contains("could not follow"), "{done:?}");
    for _ in 0..2 {
        assert!(life.run(&["status"]).expect(0).stderr.contains("cannot follow its branch"));
        assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "");
    }
    fs::write(other.join("file"), "one\n").unwrap();
    life.run(&["status"]).expect(0);
    assert_eq!(life.git(&["-C", other.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "one\nmore\n");
}

/// K28: a swap is lost, and the runner is killed when the files are as before and the index is not yet
#[test]
fn what_was_put_back_below_the_index_of_the_outcome_is_put_back_to_the_end() {
    for cut in [":", "rm file; : >exec", "rm -rf new; rm dir/other"] {
        let life = checked_out(DONE);
        let began = life.shared().join("began");
        let script = format!(
            "case \"$*\" in *'read-tree -m -u '[!-]*)\n\
             if [ -e '{0}.again' ]; then exec \"$real\" \"$@\"; fi\n\
             if [ -e '{0}' ]; then : >'{0}.again'; \"$real\" \"$@\"; {cut}; kill -9 $PPID; exit 1; fi\n\
             : >'{0}'; \"$real\" \"$@\"\n\
             exec \"$real\" update-ref refs/heads/work $(\"$real\" commit-tree 'work^{{tree}}' -p work -m elsewhere) ;;\n\
             esac\nexec \"$real\" \"$@\"",
            began.display()
        );
        let path = git_that(&life.shared(), &script);
        life.aynig(&["tick", "work"]).env("PATH", &path).output().unwrap();
        assert!(began.with_extension("again").exists(), "{cut}");
        life.run(&["status"]).expect(0);
        let left = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count();
        assert_eq!((left, life.git(&["status", "--porcelain"])), (0, String::new()), "{cut}");
        assert_eq!((life.read("file"), life.read("dir/other")), ("one\n".into(), "two\n".into()), "{cut}");
    }
}

/// K28: a working tree is where Git says that it is
#[test]
fn a_working_tree_that_was_moved_is_put_back_where_it_is() {
    let life = checked_out(DONE);
    life.git(&["switch", "-q", "--detach"]);
    let [was, now] = ["was", "now"].map(|name| life.repo.home().join(name));
    life.git(&["worktree", "add", "-q", was.to_str().unwrap(), "work"]);
    let path = failing_git(&life, "printf 'one\\nmo' >file; kill -9 $PPID");
    life.aynig(&["tick", "work"]).env("PATH", &path).output().unwrap();
    life.git(&["worktree", "move", was.to_str().unwrap(), now.to_str().unwrap()]);
    fs::create_dir(&was).unwrap();
    fs::write(was.join("file"), "one").unwrap();
    life.run(&["status"]).expect(0);
    assert_eq!(life.git(&["-C", now.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(was.join("file")).unwrap(), "one");
    assert_eq!(fs::read_dir(&was).unwrap().count(), 1);
}

/// K28: a file that became a folder in part is a file again
#[test]
fn a_folder_in_the_place_of_a_file_goes_again() {
    let life = checked_out("rm exec; mkdir exec; echo y >exec/y; echo 'SET_STATE {\"state\":\"done\"}'");
    let once = life.shared().join("mended");
    let path = failing_git(&life, &format!(": >'{}'; rm exec; mkdir exec", once.display()));
    ticked(&life, &path).expect(1);
    assert_eq!((life.read("exec"), life.git(&["status", "--porcelain"])), ("x\n".into(), String::new()));
}

/// K28: where the system keeps a working tree from its branch, no change of the user's is blamed
#[test]
fn what_only_the_system_can_mend_is_no_local_change() {
    let life = checked_out(DONE);
    let began = life.shared().join("began");
    let half = format!("[ -e '{0}' ] || {{ : >'{0}'; {HALF}; kill -9 $PPID; }}", began.display());
    let path = failing_git(&life, &half);
    assert_eq!(ticked(&life, &path).code, None);
    let status = life.aynig(&["status"]).env("PATH", &path).output().unwrap();
    let said = String::from_utf8_lossy(&status.stderr);
    assert!(
        said.contains("unable to write") && said.contains("hint: mend that, then git aynig status"),
        "{said}"
    );
}

/// K28: Git names files in what it says, and a file's name is not what Git says
#[test]
fn a_file_that_is_named_like_a_refusal_is_none() {
    let names = [
        "not uptodate",
        "x would be overwritten",
        "would be removed",
        "resolve your current index",
        "already exists",
        "x\nerror: Entry 'file' not uptodate. Cannot merge.",
        "x\nfatal: You need to resolve your current index first",
    ];
    for name in names {
        let life = checked_out(&format!(
            "echo more >>file; head -c 9999 /dev/zero >\"$(printf \"{}\")\"\n\
             echo 'SET_STATE {{\"state\":\"done\"}}'",
            name.replace('\n', "\\n"),
        ));
        // The system lets Git write small files alone, the index excepted.
        let mended = life.shared().join("mended");
        let small = format!(
            "case \"$*\" in *'read-tree -m -u '[!-]*) [ -e '{}' ] || {{ trap '' XFSZ; ulimit -f 1; }} ;; esac\n\
             exec \"$real\" \"$@\"",
            mended.display()
        );
        let path = git_that(&life.shared(), &small);
        let done = ticked(&life, &path).expect(1);
        let body = life.body("work");
        assert!(body.contains("unable to write file") && !body.contains("local changes"), "{done:?} {body}");
        fs::write(mended, "").unwrap();
        life.run(&["status"]).expect(0);
        let left = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count();
        assert_eq!((left, life.git(&["status", "--porcelain"])), (0, String::new()), "{name}");
        life.run(&["retry", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
    }
}

/// K28: nor is what a filter says that Git starts, however much that is, and however Git ends
#[test]
fn what_a_filter_says_is_no_refusal() {
    let line = "echo \"error: Entry 'file' not uptodate. Cannot merge.\" >&2";
    for end in ["exit 1", "head -c 70000 /dev/zero | tr '\\0' . >&2; exit 1", "kill -9 $PPID; sleep 0.2"] {
        let life = checked_out(
            "echo more >>file; echo 'new filter=odd' >.gitattributes; echo n >new\n\
             echo 'SET_STATE {\"state\":\"done\"}'",
        );
        life.git(&["config", "filter.odd.required", "true"]);
        life.git(&["config", "filter.odd.clean", "cat"]);
        life.git(&["config", "filter.odd.smudge", &format!("{line}; {end}")]);
        life.tick(&["work"]).expect(1);
        assert!(life.body("work").contains("Once that is mended"), "{end}: {}", life.body("work"));
        life.git(&["config", "filter.odd.smudge", "cat"]);
        life.run(&["status"]).expect(0);
        assert_eq!(
            (life.read("file"), life.git(&["status", "--porcelain"])),
            ("one\n".into(), String::new())
        );
        life.run(&["retry", "work"]).expect(0);
        assert_eq!((life.state("work"), life.read("new")), ("done".into(), "n\n".into()), "{end}");
    }
}

/// K28: a refusal is one whatever else Git says, and whatever the user's file is called
#[test]
fn a_refusal_is_one_beside_other_errors() {
    let odd = "x\nerror: unable to write file y";
    let life =
        checked_out("for file in x*; do echo more >>\"$file\"; done; echo 'SET_STATE {\"state\":\"done\"}'");
    life.write(odd, "x\n");
    life.git(&["add", odd]);
    life.git(&["commit", "-qm", "odd"]);
    life.event("work", "build", "");
    life.write(odd, "mine\n");
    life.write(".git/objects/info/alternates", "/nowhere/at/all\n");
    life.tick(&["work"]).expect(1);
    let body = life.body("work");
    assert!(body.contains("Once the local changes are out of the way"), "{body}");
    assert_eq!((life.state("work"), life.read(odd)), ("stalled".into(), "mine\n".into()));
    life.git(&["checkout", "-q", "--", odd]);
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(life.read(odd), "x\nmore\n");
}

/// A file and a folder that take each other's place, beside a change.
const SWAPS: &str = "rm -r dir exec; echo f >dir; mkdir exec; echo y >exec/y; echo more >>file\n\
                     echo 'SET_STATE {\"state\":\"done\"}'";
/// How far the checkout of that may be. Git removes first, and then writes.
const SWAPPED: [&str; 8] = [
    ":",
    "rm -f dir/other",
    "rm -rf dir",
    "rm -rf dir exec",
    "rm -rf dir exec; printf f >dir",
    "rm -rf dir exec; echo f >dir; mkdir exec",
    "rm -rf dir exec; echo f >dir; mkdir exec; echo y >exec/y",
    "rm -rf dir exec; echo f >dir; mkdir exec; echo y >exec/y; printf 'one\nmore\n' >file",
];

/// K28: a file and a folder that take each other's place are put back from wherever the checkout stopped
#[test]
fn a_file_and_a_folder_in_each_others_place_are_put_back() {
    for (half, killed) in SWAPPED.into_iter().flat_map(|half| [(half, false), (half, true)]) {
        let life = checked_out(SWAPS);
        let (once, before) = (life.shared().join("mended"), tree_of(&life.path("dir")));
        let end = if killed { "kill -9 $PPID" } else { ":" };
        let path =
            failing_git(&life, &format!(": >'{}'; printf 'one\nmo' >file; {half}; {end}", once.display()));
        ticked(&life, &path);
        let said = life.run(&["status"]).expect(0);
        assert_eq!(life.git(&["status", "--porcelain"]), "", "{half} {killed}: {said:?}");
        assert_eq!(
            (life.read("exec"), tree_of(&life.path("dir"))),
            ("x\n".into(), before),
            "{half} {killed}"
        );
        assert_eq!(fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count(), 0, "{half} {killed}");
    }
}

/// K28: and so they are written to the end, where the branch has moved
#[test]
fn a_file_and_a_folder_in_each_others_place_are_checked_out_to_the_end() {
    for half in SWAPPED {
        let life = checked_out(SWAPS);
        let once = life.shared().join("mended");
        let path = failing_git(&life, &format!(": >'{}'; {half}; kill -9 $PPID", once.display()));
        ticked(&life, &path);
        let note = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().flatten().next().unwrap();
        let note: serde_json::Value = serde_json::from_slice(&fs::read(note.path()).unwrap()).unwrap();
        life.git(&["update-ref", "refs/heads/work", note["new"].as_str().unwrap()]);
        let said = life.run(&["status"]).expect(0);
        assert_eq!(life.git(&["status", "--porcelain"]), "", "{half}: {said:?}");
        assert_eq!(
            (life.read("dir"), life.read("exec/y"), life.read("file")),
            ("f\n".into(), "y\n".into(), "one\nmore\n".into())
        );
        assert_eq!(fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count(), 0, "{half}");
    }
}

/// K28: nor while it follows: its index is locked from before the first look at it
#[test]
fn who_comes_late_commits_nothing_over_the_outcome_while_it_follows() {
    let life = checked_out(DONE);
    let other = life.repo.home().join("other");
    life.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    let theirs = format!("cd '{}' && env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$real\"", other.display());
    let said = life.shared().join("said");
    let script = format!(
        "case \"$*\" in\n\
         *--work-tree=*other*) [ -e '{said}' ] || ({theirs} commit --allow-empty -qm mine) 2>'{said}' ;;\n\
         *'read-tree -m -u '[!-]*) ({theirs} symbolic-ref HEAD refs/heads/work) ;;\n\
         esac\nexec \"$real\" \"$@\"",
        said = said.display(),
    );
    let done = ticked(&life, &git_that(&life.shared(), &script)).expect(0);
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("index.lock"), "{said}");
    assert_eq!(
        (life.state("work").as_str(), life.show("work", "file").as_str()),
        ("done", "one\nmore"),
        "{done:?}"
    );
    assert_eq!(life.git(&["-C", other.to_str().unwrap(), "status", "--porcelain"]), "");
}

/// K28: nor where another process holds its index all the while: the next verb brings it the outcome.
#[test]
fn who_comes_late_and_is_locked_by_another_gets_the_outcome_by_the_next_verb() {
    let life = checked_out(DONE);
    let other = life.repo.home().join("other");
    life.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    let lock = life.path(".git/worktrees/other/index.lock");
    let script = format!(
        "case \"$*\" in *--work-tree=*other*) ;; *'read-tree -m -u '[!-]*)\n\
         (: >'{}'; cd '{}' && env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$real\" symbolic-ref HEAD refs/heads/work) ;;\n\
         esac\nexec \"$real\" \"$@\"",
        lock.display(),
        other.display()
    );
    let done = ticked(&life, &git_that(&life.shared(), &script));
    assert_eq!((done.code, life.state("work").as_str()), (Some(1), "done"), "{done:?}");
    assert!(done.stdout.contains("could not follow") && done.stdout.contains("hint:"), "{done:?}");
    fs::remove_file(lock).unwrap();
    life.run(&["status"]).expect(0);
    assert_eq!(life.git(&["-C", other.to_str().unwrap(), "status", "--porcelain"]), "");
    life.git(&["-C", other.to_str().unwrap(), "commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(life.show("work", "file"), "one\nmore");
}

/// K28: what is in the way of the index itself, once all files are there, is told as well; the note stays till then.
#[test]
fn an_index_that_cannot_take_its_place_is_told_and_put_back_by_the_next_verb() {
    let life = checked_out(DONE);
    // A file can't be renamed over a folder.
    let (index, aside) = (life.path(".git/index"), life.path(".git/index.aside"));
    let away = format!(
        "\"$real\" \"$@\"; mv '{0}' '{1}'; mkdir '{0}'; : >'{2}'; exit 0;",
        index.display(),
        aside.display(),
        life.shared().join("mended").display(),
    );
    let done = ticked(&life, &failing_git(&life, &away)).expect(1);
    let body = life.body("work");
    assert!(done.json()["result"].as_str() == Some("stalled") && life.state("work") == "stalled", "{done:?}");
    assert!(body.contains("Is a directory") && body.contains("git aynig status"), "{body}");
    assert_eq!(life.read("file"), "one\nmore\n");
    assert!(life.run(&["doctor"]).stdout.contains("is not all there, or not on the branch"));
    fs::remove_dir(&index).unwrap();
    fs::rename(&aside, &index).unwrap();
    life.run(&["status"]).expect(0);
    assert_eq!((life.read("file"), life.git(&["status", "--porcelain"])), ("one\n".into(), String::new()));
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(
        (life.read("file"), life.git(&["status", "--porcelain"])),
        ("one\nmore\n".into(), String::new())
    );
}

/// K28, K43: a `retry` that is killed around its swap; the next one lands the outcome, or finds it landed.
#[test]
fn a_retry_that_was_killed_is_finished_by_the_next() {
    for swapped in [false, true] {
        let life = checked_out(DONE);
        life.write("file", "mine\n");
        life.tick(&["work"]).expect(1);
        life.git(&["checkout", "-q", "--", "file"]);
        let mut retry = life.aynig(&["retry", "work"]);
        let killed = retry.env("PATH", killing_git(&life)).status().unwrap();
        assert_eq!((killed.code(), life.state("work").as_str()), (None, "stalled"));
        let mut notes = fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().flatten();
        let note = fs::read(notes.next().unwrap().path()).unwrap();
        let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
        assert!(life.path(".git/index.lock").exists() && life.read("file") == "one\nmore\n");
        if swapped {
            // As it is right after the branch has moved.
            let id = |key: &str| note[key].as_str().unwrap().to_owned();
            life.git(&["update-ref", "refs/heads/work", &id("new"), &id("old")]);
        }
        let again = crate::support::life::eventually("the git that was killed with it is gone", || {
            let again = life.run(&["retry", "work"]);
            (!life.path(".git/index.lock").exists()).then_some(again)
        });
        // One that was made already says so.
        assert_eq!(again.code, Some(0), "{swapped}: {again:?}");
        assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
        assert_eq!(life.git(&["status", "--porcelain"]), "", "{swapped}");
        assert_eq!(fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count(), 0);
        life.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(life.show("work", "file"), "one\nmore");
    }
}

/// K28: while the child of a `retry` that was killed still writes, its files are not taken for the user's.
#[test]
fn what_a_killed_retry_still_writes_is_no_change_of_the_user_s() {
    let life = checked_out(DONE);
    life.write("file", "mine\n");
    life.tick(&["work"]).expect(1);
    life.git(&["checkout", "-q", "--", "file"]);
    let go = life.shared().join("go");
    let script = format!(
        "case \"$*\" in *'read-tree -m -u '[!-]*) mkdir -p new; printf 'n\\n' >new/file; kill -9 $PPID\n\
         n=0; until [ -e '{}' ] || [ $n = 600 ]; do sleep 0.1; n=$((n+1)); done; exit 1 ;; esac\nexec \"$real\" \"$@\"",
        go.display()
    );
    let mut retry = life.aynig(&["retry", "work"]);
    assert_eq!(retry.env("PATH", git_that(&life.shared(), &script)).status().unwrap().code(), None);
    let said = life.run(&["retry", "work"]).expect(1);
    assert!(!said.stderr.contains("local changes"), "{said:?}");
    fs::write(go, "").unwrap();
    crate::support::life::eventually("it lands once that is over", || {
        (life.run(&["retry", "work"]).code == Some(0)).then_some(())
    });
    assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("done", "one\nmore\n"));
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// A `git` that kills its runner once it has changed a working tree.
fn killing_git(life: &Life) -> OsString {
    let script = "case \"$*\" in *'read-tree -m -u '[!-]*) \"$real\" \"$@\"; kill -9 $PPID; exit ;; esac\nexec \"$real\" \"$@\"";
    git_that(&life.shared(), script)
}

/// K28: a runner that is killed between its checkout and the move of the branch; the next verb puts it back
#[test]
fn what_a_killed_runner_brought_without_moving_the_branch_is_put_back() {
    let life = checked_out(DONE);
    // The first child after the checkout looks at the working trees: the index is there, the branch has not moved.
    let (path, tree) = (killing_git(&life), life.rev("work^{tree}"));
    assert_eq!(ticked(&life, &path).code, None);
    assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("working", "one\nmore\n"));
    assert!(life.path(".git/index.lock").exists());
    crate::support::life::eventually("the next verb puts it back", || {
        life.run(&["status"]).expect(0);
        life.git(&["status", "--porcelain"]).is_empty().then_some(())
    });
    assert!(!life.path(".git/index.lock").exists() && life.read("file") == "one\n");
    life.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(life.rev("work^{tree}"), tree);
}
