//! What a command commits in a submodule of its slot is kept, and what its remote has anyway is not.

use crate::support::life::Life;
use nix::sys::signal::Signal;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const NEXT: &str = "echo 'SET_STATE {\"state\":\"next\"}'";
const FILL: &str = "git -c protocol.file.allow=always submodule --quiet update --init libs/lib";
const COMMIT: &str =
    "git -C libs/lib commit -q --allow-empty -m inside; git -C libs/lib rev-parse HEAD >\"$T/made\"";

/// A repository with a submodule, and commands of these names.
fn with_submodule(commands: &[(&str, &str)]) -> Life {
    let life = Life::new(commands);
    let lib = life.shared().join("lib");
    let lib = lib.to_str().unwrap();
    life.git(&["init", "-q", lib]);
    life.git(&["-C", lib, "commit", "-q", "--allow-empty", "-m", "lib"]);
    life.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "libs/lib"]);
    life.git(&["commit", "-qm", "a submodule"]);
    life
}

/// The folders in which repositories of submodules are kept.
fn kept(life: &Life) -> Vec<PathBuf> {
    let entries = fs::read_dir(life.repo.git_dir().join("aynig/submodules")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn modules(life: &Life) -> PathBuf {
    life.repo.git_dir().join("worktrees/aynig-slot-0/modules")
}

/// K14, K26: the outcome names a commit of a submodule; that commit is not lost with the slot.
#[test]
fn commits_in_a_submodule_are_kept_and_named() {
    let life = with_submodule(&[("build", &format!("{FILL}; {COMMIT}; {NEXT}")), ("look", NEXT)]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["--jobs", "1", "work"]);
    let made = life.said("made").trim_end().to_owned();
    assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
    assert_eq!(life.rev("work:libs/lib"), made);
    let [place] = &kept(&life)[..] else { panic!("{:?}", kept(&life)) };
    assert!(place.ends_with(report["run_id"].as_str().unwrap()), "{place:?}");
    let notes = report["notes"].to_string();
    let git_dir = place.join("libs/lib");
    let push = format!("git --git-dir='{}' push origin HEAD:refs/heads/aynig-", git_dir.display());
    assert!(notes.contains(&push), "{notes}");
    // Another run in the same slot, and its end, change nothing of it.
    life.event("other", "look", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
    assert!(!modules(&life).exists());
    life.run(&["gc"]).expect(0);
    // As the hints say.
    let git_dir = git_dir.to_str().unwrap();
    let all = life.git(&["--git-dir", git_dir, "log", "--format=%H", "--all", "--not", "--remotes"]);
    assert_eq!(all.trim_end(), made);
    life.git(&["--git-dir", git_dir, "push", "-q", "origin", "HEAD:refs/heads/aynig-1"]);
    life.git(&["checkout", "-q", "work"]);
    life.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "update"]);
    assert_eq!(life.git(&["-C", "libs/lib", "rev-parse", "HEAD"]).trim_end(), made);
    // What is kept goes as attempts go.
    let old = SystemTime::now() - Duration::from_secs(91 * 24 * 3600);
    fs::File::open(place).unwrap().set_modified(old).unwrap();
    let gone = life.run(&["gc"]).expect(0).stdout;
    assert!(gone.contains(&format!("removed submodules '{}'", place.display())), "{gone}");
    assert!(kept(&life).is_empty());
}

/// K14: a submodule that is as its remote has it is no work.
#[test]
fn what_the_remote_of_a_submodule_has_is_not_kept() {
    let push = "git -C libs/lib push -q origin HEAD:refs/heads/pushed";
    let life = with_submodule(&[
        ("fill", &format!("{FILL}; {NEXT}")),
        ("push", &format!("{FILL}; {COMMIT}; {push} && {NEXT}")),
    ]);
    for state in ["fill", "push"] {
        life.event(state, state, "");
        let (_, report) = life.report(&["--jobs", "1", state]);
        assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
        assert!(report["notes"].as_array().is_none_or(Vec::is_empty), "{report}");
        assert!(kept(&life).is_empty() && !modules(&life).exists(), "{state}");
    }
}

/// K14: nor is the commit that the slot was filled with, though no branch of the remote has it.
#[test]
fn what_a_submodule_was_filled_with_is_not_kept() {
    let fill = format!("{FILL}; git -C libs/lib rev-parse HEAD >\"$T/had\"; {NEXT}");
    let life = with_submodule(&[("fill", &fill)]);
    let lib = life.shared().join("lib");
    let lib = lib.to_str().unwrap();
    life.git(&["-C", lib, "config", "uploadpack.allowAnySHA1InWant", "true"]);
    life.git(&["-C", "libs/lib", "commit", "-q", "--allow-empty", "-m", "of no branch"]);
    life.git(&["-C", "libs/lib", "push", "-q", "origin", "HEAD:refs/pull/1"]);
    life.git(&["commit", "-qam", "of no branch"]);
    life.event("work", "fill", "");
    let (_, report) = life.report(&["--jobs", "1", "work"]);
    assert_eq!(life.said("had").trim_end(), life.rev("HEAD:libs/lib"), "{report}");
    assert!(report["notes"].as_array().is_none_or(Vec::is_empty), "{report}");
    assert!(kept(&life).is_empty() && !modules(&life).exists());
}

/// K14: a link leads to what is not the command's: that stays where it is, and as it is.
#[test]
fn a_link_among_the_repositories_of_submodules_is_not_followed() {
    let admin = "a=$(git rev-parse --absolute-git-dir); m=$(git rev-parse --path-format=absolute --git-common-dir)/modules";
    let links = [
        format!("{admin}; ln -s \"$m\" \"$a/modules\"; rm -rf \"$PWD\""),
        format!("{admin}; {FILL}; ln -s \"$m/libs\" \"$a/modules/libs/lib/modules\""),
        format!("{admin}; {FILL}; {COMMIT}; ln -s \"$m/libs\" \"$a/modules/libs/lib/modules\""),
    ];
    for link in links {
        let life = with_submodule(&[("build", &format!("{link}; {NEXT}")), ("look", NEXT)]);
        life.git(&["-C", "libs/lib", "commit", "-q", "--allow-empty", "-m", "the user's"]);
        let own = life.git(&["-C", "libs/lib", "rev-parse", "HEAD"]);
        life.event("work", "build", "");
        life.tick(&["--jobs", "1", "work"]);
        life.event("other", "look", "");
        life.tick(&["--jobs", "1", "other"]).expect(0);
        assert_eq!(life.git(&["-C", "libs/lib", "rev-parse", "HEAD"]), own, "{link}");
        assert!(!modules(&life).exists());
    }
}

/// K26: a runner that was killed loses nothing of it either; the runner that has the slot next keeps it.
#[test]
fn commits_in_a_submodule_of_a_killed_runner_are_kept() {
    for next in [&["tick", "--jobs", "1", "other"][..], &["gc"]] {
        let held = format!("{FILL}; {COMMIT}; echo >\"$T/began\"; sleep 60");
        let life = with_submodule(&[("build", &held), ("look", NEXT)]);
        life.event("work", "build", "");
        let tick = life.start_tick(&["--jobs", "1", "work"]);
        life.hear("began");
        tick.signal(Signal::SIGKILL);
        assert_eq!(tick.done().code, None);
        assert!(modules(&life).exists() && kept(&life).is_empty());
        life.event("other", "look", "");
        life.run(next).expect(0);
        let [place] = &kept(&life)[..] else { panic!("{next:?}: {:?}", kept(&life)) };
        let made = life.said("made").trim_end().to_owned();
        let git_dir = place.join("libs/lib");
        assert_eq!(
            life.git(&["--git-dir", git_dir.to_str().unwrap(), "cat-file", "-t", &made]).trim_end(),
            "commit"
        );
    }
}

/// K26: nor does a broken index keep the rest of the work from being kept.
#[test]
fn work_beside_a_submodule_is_kept_though_the_index_is_broken() {
    let broken = "echo x >file; echo x >\"$(git rev-parse --git-dir)/index\"; exit 1";
    let life = with_submodule(&[("build", &format!("{FILL}; {COMMIT}; {broken}")), ("look", NEXT)]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["--jobs", "1", "work"]);
    assert_eq!(report["result"].as_str(), Some("stalled"), "{report}");
    let attempt = report["attempt"].as_str().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(life.show(attempt, "file"), "x");
    assert_eq!(life.rev(&format!("{attempt}:libs/lib")), life.said("made").trim_end());
    assert_eq!(kept(&life).len(), 1);
    life.event("other", "look", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
}

/// K14: what is no repository any more, or never was one, holds no run up and is kept as it is.
#[test]
fn a_repository_that_cannot_be_read_is_kept_as_it_is() {
    let spoil = "cd \"$(git rev-parse --git-dir)/modules/libs/lib\"; rm packed-refs; mkfifo packed-refs; cd - >/dev/null";
    let life = with_submodule(&[("build", &format!("{FILL}; {COMMIT}; {spoil}; {NEXT}")), ("look", NEXT)]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["--jobs", "1", "work"]);
    assert!(report["notes"].to_string().contains("libs/lib"), "{report}");
    let [place] = &kept(&life)[..] else { panic!("{:?}", kept(&life)) };
    let made = life.said("made").trim_end().to_owned();
    assert!(place.join("libs/lib/objects").join(&made[..2]).join(&made[2..]).exists());
    life.event("other", "look", "");
    life.tick(&["--jobs", "1", "other"]).expect(0);
}

/// K25: beside a submodule, too, a file that is changed at the same size in the second in which it was staged is taken as it
/// is.
#[test]
fn a_change_in_the_second_of_the_index_is_taken_beside_a_submodule() {
    let same = format!("git add -A; printf 'two\n' >file; sleep 1.2; {NEXT}");
    let life = with_submodule(&[("build", &same)]);
    for branch in ["fresh", "again"] {
        life.event(branch, "build", "");
        crate::support::life::begin_of_a_second();
        life.tick(&[branch]).expect(0);
        assert_eq!(life.show(branch, "file"), "two", "{branch}");
        assert_eq!(life.rev(&format!("{branch}:libs/lib")), life.rev("main:libs/lib"), "{branch}");
    }
}

/// K25: a submodule stays where a command narrowed its slot to other folders, goes where it was removed, and is what it was
/// staged as where its place is empty.
#[test]
fn a_submodule_stays_unless_it_was_removed() {
    let ways = [
        ("git sparse-checkout set --cone dir; echo x >dir/new", true),
        ("echo x >dir/new; git add -A", true),
        ("echo x >dir/new", true),
        ("rm -r libs", false),
        ("git rm -q libs/lib", false),
        ("rmdir libs/lib; echo x >libs/lib", false),
        ("rm -r libs; echo x >libs", false),
        ("rm -r libs; ln -s dir libs", false),
    ];
    for (way, stays) in ways {
        let life = with_submodule(&[("build", &format!("mkdir -p dir; {way}; {NEXT}"))]);
        life.event("work", "build", "");
        let (_, report) = life.report(&["work"]);
        assert_eq!(report["result"].as_str(), Some("advanced"), "{way}: {report}");
        let entry = life.git(&["ls-tree", "work", "libs/lib"]);
        assert_eq!(entry.starts_with("160000 commit"), stays, "{way}: {entry}");
        // What stands in the place of the folder above it is the command's work.
        if way.ends_with("dir libs") || way.ends_with(">libs") {
            let entry = life.git(&["ls-tree", "work", "libs"]);
            assert!(entry.contains(" blob "), "{way}: {entry}");
        }
    }
}

/// K25: a repository below what a command staged as a submodule, and that is no repository itself, is left out and named.
#[test]
fn a_repository_in_a_folder_that_was_staged_as_a_submodule_ends_no_run() {
    let staged =
        "mkdir s; git init -q s/x; git update-index --add --cacheinfo \"160000,$(git rev-parse HEAD),s\"";
    let life = Life::new(&[("build", &format!("echo work >work.txt; {staged}; {NEXT}"))]);
    life.event("work", "build", "");
    let (_, report) = life.report(&["work"]);
    assert_eq!(report["result"].as_str(), Some("advanced"), "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("left out") && notes.contains("s/x"), "{notes}");
    assert_eq!(
        (life.show("work", "work.txt"), life.files("work").contains(&"s".into())),
        ("work".into(), true)
    );
}
