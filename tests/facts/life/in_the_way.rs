//! What is the user's and Git would not ask about: an outcome leaves it where it is, and says what is in the way.

use crate::support::life::{Done, Life};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const NEXT: &str = "\necho 'SET_STATE {\"state\":\"next\"}'";

/// A repository that stands on `work`, whose head asks for `build`; `prepare` makes its last commit before that.
fn checked_out(script: &str, prepare: impl Fn(&Life)) -> Life {
    let life = Life::new(&[("build", &format!("{script}{NEXT}"))]);
    life.git(&["checkout", "-qb", "work"]);
    prepare(&life);
    life.event("work", "build", "");
    life
}

fn ticks_to(life: &Life, state: &str) -> Done {
    let done = life.tick(&["work"]).expect(if state == "next" { 0 } else { 1 });
    assert_eq!(life.state("work"), state, "{done:?}");
    done
}

/// A repository inside the working tree, with a commit that is nowhere else.
fn nested(life: &Life, dir: &str) {
    life.git(&["init", "-q", dir]);
    life.write(&format!("{dir}/x"), "precious\n");
    life.git(&["-C", dir, "add", "x"]);
    life.git(&["-C", dir, "commit", "-qm", "unpushed"]);
}

/// K28: a file, or a link, in the place of a repository would take that with everything in it.
#[test]
fn a_repository_is_not_removed_for_a_file() {
    for script in ["rmdir lib; echo file >lib", "rmdir lib; ln -s x lib"] {
        let life = checked_out(script, |life| {
            nested(life, "lib");
            life.git(&["-c", "advice.addEmbeddedRepo=false", "add", "lib"]);
            life.git(&["commit", "-qm", "embedded"]);
        });
        life.write("lib/untracked", "u\n");
        let done = ticks_to(&life, "stalled");
        assert!(done.stderr.contains("repository 'lib' would be removed"), "{done:?}");
        assert_eq!((life.read("lib/x"), life.read("lib/untracked")), ("precious\n".into(), "u\n".into()));
        assert_eq!(life.git(&["-C", "lib", "log", "--format=%s"]), "unpushed");
        // One that was never filled is an empty folder.
        fs::remove_dir_all(life.path("lib")).unwrap();
        fs::create_dir(life.path("lib")).unwrap();
        life.run(&["retry", "work"]).expect(0);
        assert!(life.path("lib").symlink_metadata().is_ok_and(|meta| !meta.is_dir()));
    }
}

/// K28: nor are files of a repository written over that Git ignores.
#[test]
fn what_lies_in_an_ignored_repository_is_not_written_over() {
    for (script, dir) in [
        ("mkdir -p vendor/lib; echo run >vendor/lib/x; git add -f vendor", "vendor/lib"),
        ("echo >.gitignore; mkdir -p vendor/lib; echo run >vendor/lib/x", "vendor/lib"),
        ("echo run >vendor; git add -f vendor", "vendor"),
    ] {
        let life = checked_out(script, |life| {
            life.write(".gitignore", "vendor\n");
            life.git(&["add", ".gitignore"]);
            life.git(&["commit", "-qm", "ignored"]);
        });
        nested(&life, dir);
        let done = ticks_to(&life, "stalled");
        assert!(done.stderr.contains(&format!("untracked '{dir}/")), "{script}: {done:?}");
        assert_eq!(life.read(&format!("{dir}/x")), "precious\n", "{script}");
        assert_eq!(life.git(&["-C", dir, "log", "--format=%s"]), "unpushed", "{script}");
    }
}

/// K28: a folder that was moved elsewhere, and a link to it.
#[test]
fn a_link_in_the_place_of_a_folder_stays() {
    let life = checked_out("echo run >>dir/other", |_| {});
    let away = life.repo.home().join("away");
    fs::rename(life.path("dir"), &away).unwrap();
    symlink(&away, life.path("dir")).unwrap();
    ticks_to(&life, "stalled");
    assert_eq!(fs::read_link(life.path("dir")).unwrap(), away);
}

/// K28: an edit with the old size and the old times is one, whatever the user's Git was told to believe.
#[test]
fn an_edit_that_took_its_times_along_is_in_the_way() {
    let life = checked_out("printf 'run\\n' >file", |_| {});
    life.config("core.trustctime", "false");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    // From now on the index is younger than the file.
    life.write("mine", "m\n");
    life.git(&["add", "mine"]);
    let written = fs::metadata(life.path("file")).unwrap().modified().unwrap();
    life.write("file", "ane\n");
    fs::File::options().write(true).open(life.path("file")).unwrap().set_modified(written).unwrap();
    ticks_to(&life, "stalled");
    assert_eq!(life.read("file"), "ane\n");
}

/// K28: a HEAD that leads to the branch by another ref, or as a link, as the oldest Gits wrote it.
#[test]
fn a_head_that_leads_elsewhere_first_has_the_branch_checked_out() {
    for link in [false, true] {
        let life = checked_out("echo run >file", |_| {});
        if link {
            fs::remove_file(life.path(".git/HEAD")).unwrap();
            symlink("refs/heads/work", life.path(".git/HEAD")).unwrap();
        } else {
            life.git(&["symbolic-ref", "refs/heads/current", "refs/heads/work"]);
            life.git(&["symbolic-ref", "HEAD", "refs/heads/current"]);
        }
        ticks_to(&life, "next");
        assert_eq!(
            (life.read("file").as_str(), life.git(&["status", "--porcelain"]).as_str()),
            ("run\n", "")
        );
    }
}

fn tick_in(life: &Life, dir: &Path) -> Done {
    let mut tick = life.aynig(&["tick", "work"]);
    crate::support::life::done(tick.current_dir(dir).output().unwrap())
}

/// K28: a Git directory elsewhere does not say where its working tree is; a process that stands in that knows it.
#[test]
fn a_working_tree_that_nobody_finds_keeps_its_branch() {
    let life = checked_out("echo run >>file", |_| {});
    let git_dir = life.repo.home().join("elsewhere");
    life.git(&["init", "-q", "--separate-git-dir", git_dir.to_str().unwrap()]);
    let linked = life.repo.home().join("linked");
    life.git(&["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    for dir in [&git_dir, &linked] {
        let done = tick_in(&life, dir).expect(1);
        assert!(done.stderr.contains("has the branch checked out, and is not here"), "{done:?}");
        assert_eq!((life.state("work").as_str(), life.read("file").as_str()), ("stalled", "one\n"));
        assert_eq!(life.git(&["status", "--porcelain"]), "");
        life.event("work", "build", "");
    }
    ticks_to(&life, "next");
    assert_eq!(
        (life.read("file").as_str(), life.git(&["status", "--porcelain"]).as_str()),
        ("one\nrun\n", "")
    );
}

/// K28: a linked worktree on a disk that is not there now is locked, so that Git keeps it; one that was removed is not.
#[test]
fn a_locked_worktree_that_is_away_keeps_its_branch() {
    for locked in [true, false] {
        let life = Life::new(&[("build", &format!("echo run >>file{NEXT}"))]);
        let (linked, away) = (life.repo.home().join("linked"), life.repo.home().join("away"));
        life.git(&["worktree", "add", "-q", "-b", "work", linked.to_str().unwrap()]);
        if locked {
            life.git(&["worktree", "lock", linked.to_str().unwrap()]);
        }
        life.event("work", "build", "");
        fs::rename(&linked, &away).unwrap();
        if locked {
            ticks_to(&life, "stalled");
            fs::rename(&away, &linked).unwrap();
            life.run(&["retry", "work"]).expect(0);
            assert_eq!(fs::read_to_string(linked.join("file")).unwrap(), "one\nrun\n");
            assert_eq!(life.git(&["-C", linked.to_str().unwrap(), "status", "--porcelain"]), "");
        } else {
            ticks_to(&life, "next");
        }
    }
}

/// K28: what fails on arrival is no local change; `retry` brings it once that is mended.
#[test]
fn a_filter_that_fails_on_arrival_is_named_and_mended() {
    let life = checked_out("echo run >a.bin", |life| {
        life.write(".gitattributes", "*.bin filter=odd\n");
        life.git(&["add", ".gitattributes"]);
        life.git(&["commit", "-qm", "attributes"]);
    });
    let top = life.path("").canonicalize().unwrap();
    life.config("filter.odd.required", "true");
    life.config("filter.odd.clean", "cat");
    life.config("filter.odd.smudge", &format!("sh -c 'test \"$PWD\" != \"{}\" && cat'", top.display()));
    let done = life.tick(&["work"]).expect(1);
    assert_eq!((life.state("work"), life.git(&["status", "--porcelain"])), ("stalled".into(), String::new()));
    assert!(done.stdout.contains("could not follow") && !done.stderr.contains("commit or stash"), "{done:?}");
    life.config("filter.odd.smudge", "cat");
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.read("a.bin").as_str(), life.git(&["status", "--porcelain"]).as_str()), ("run\n", ""));
}
