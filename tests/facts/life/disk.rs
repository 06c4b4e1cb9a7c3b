//! A disk that fills up at any step: a clear error, a sound repository, nothing that blocks afterwards.
//!
//! The disks are small memory file systems; without the right to mount they are skipped, and that is said.

use crate::support::flow::{FILES, files_below};
use crate::support::world::{Said, World, gits};
use std::path::{Path, PathBuf};

/// A file system of a few megabytes that goes away with this value.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(world: &World, name: &str, kib: u64) -> Option<Self> {
        let at = world.root().join(name);
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={kib}k,mode=755");
        let mount =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output();
        if !mount.as_ref().is_ok_and(|m| m.status.success()) {
            crate::support::skipped(&format!("this user can't mount a disk: {mount:?}"));
            return None;
        }
        Some(Self { at })
    }

    /// Fills it up to this many KiB.
    fn leave(&self, kib: u64) {
        let stat = nix::sys::statvfs::statvfs(&self.at).unwrap();
        let free = stat.blocks_available() * stat.fragment_size() / 1024;
        assert!(free >= kib, "{free} KiB are free");
        let _ = std::fs::write(self.at.join("filler"), vec![1; (free - kib) as usize * 1024]);
    }

    fn free(&self) {
        std::fs::remove_file(self.at.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// A trusted repository on the disk, `work` asking for the command; a copy of it elsewhere to start over.
fn template(world: &World, disk: &Disk, args: &[&str]) -> Option<(PathBuf, PathBuf)> {
    let dir = disk.at.join("repo");
    let name = dir.strip_prefix(world.root()).unwrap();
    world.try_init(name, &[&["--template="], args].concat())?;
    world.commit_files(&dir, "main", FILES, "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&world.root(), &["config", "--global", "--add", "safe.directory", "*"]);
    let kept = world.root().join("template");
    copy(&dir, &kept);
    Some((dir, kept))
}

/// One tick on a disk with this much room, and what must hold whatever came of it. Says how it ended.
fn one(world: &World, disk: &Disk, dir: &Path, kib: u64) -> i32 {
    world.aynig(dir, &["set-state", "build", "-b", "work"]).expect(0);
    let trigger = world.git(dir, &["rev-parse", "work"]);
    disk.leave(kib);
    let said = world.aynig(dir, &["tick", "work", "--lease", "4s"]);
    let about = format!("{kib} KiB: {}: {}{}", said.code, said.out, said.err);
    assert!([0, 1, 75].contains(&said.code), "{about}");
    let full =
        |text: &str| text.contains("No space left") || text.contains("no space") || text.contains("full");
    if said.code != 0 {
        assert!(full(&said.err) || full(&said.out), "{about}");
    }
    world.assert_sound(dir);
    let mut states = world.states(dir, "work", &trigger);
    // On a busy machine its lease is renewed.
    states.dedup();
    let fine: &[&[&str]] = &[&[], &["working"], &["stalled", "working"], &["review", "working"]];
    assert!(fine.contains(&&*states.iter().map(String::as_str).collect::<Vec<_>>()), "{states:?} {about}");
    match said.code {
        0 => assert_eq!(states[0], "review", "{about}"),
        1 => assert_eq!(states[0], "stalled", "{about}"),
        _ => {}
    }
    disk.free();
    again(world, dir, &about);
    said.code
}

/// With room again the branch goes on, at the latest when the lease is over.
fn again(world: &World, dir: &Path, about: &str) {
    let state = || world.states(dir, "work", "work~1").pop().unwrap();
    for _ in 0..2000 {
        if state() == "stalled" {
            world.aynig(dir, &["retry", "work"]).expect(0);
        }
        if state() == "review" {
            break;
        }
        let said = world.aynig(dir, &["tick", "work"]);
        assert!([0, 1, 3].contains(&said.code), "after {about}\n{}: {}{}", said.code, said.out, said.err);
    }
    assert_eq!(state(), "review", "after {about}");
    world.assert_sound(dir);
    assert_eq!(world.git(dir, &["cat-file", "blob", "work:file.txt"]), "one\nedited", "after {about}");
    // A run's own ref that could not be removed for want of room protects objects, and blocks nothing.
    let refs = world.git(dir, &["for-each-ref", "refs/aynig/run"]);
    assert!(refs.lines().count() <= 1, "{refs} after {about}");
    let locks = files_below(&dir.join(".git"), &|name| name.ends_with(b".lock"));
    let locks: Vec<_> = locks.iter().filter(|p| !p.starts_with(dir.join(".git/aynig"))).collect();
    assert!(locks.is_empty(), "{locks:?} after {about}");
}

fn sweep(world: &World, args: &[&str], room: impl Iterator<Item = u64>) {
    let Some(disk) = Disk::mount(world, "disk", 4096) else { return };
    let Some((dir, kept)) = template(world, &disk, args) else { return };
    let mut codes = std::collections::BTreeMap::<i32, u32>::new();
    for kib in room {
        std::fs::remove_dir_all(&dir).unwrap_or_else(|_| {
            // The copies that commands start from are read-only.
            let freed = std::process::Command::new("chmod").args(["-R", "u+w"]).arg(&dir).status();
            assert!(freed.unwrap().success());
            std::fs::remove_dir_all(&dir).unwrap();
        });
        let _ = std::fs::remove_dir_all(world.home().join(".cache"));
        copy(&kept, &dir);
        *codes.entry(one(world, &disk, &dir, kib)).or_default() += 1;
    }
    eprintln!("ended with (exit code: how often) {codes:?}");
    assert!(
        codes.contains_key(&75) && codes.contains_key(&0),
        "the sweep goes from nothing to enough: {codes:?}"
    );
}

/// K11, K14, K42: the repository's disk fills up at any step of a first tick
#[test]
fn a_full_disk_at_any_step_breaks_nothing() {
    sweep(&World::any(), &[], (0..200).step_by(8));
}

/// K28: a part of an outcome that a full disk leaves in a working tree, and keeps from being put back, is said with what
/// puts it back.
#[test]
fn what_a_full_disk_leaves_of_an_outcome_in_a_working_tree_is_said() {
    let world = World::any();
    let Some(disk) = Disk::mount(&world, "disk", 3072) else { return };
    let mut said_of = 0;
    for kib in [200, 250, 300, 350] {
        let dir = disk.at.join("repo");
        let name = dir.strip_prefix(world.root()).unwrap().to_owned();
        if world.try_init(&name, &["--template="]).is_none() {
            return;
        }
        let write = "#!/bin/sh\nhead -c 150000 /dev/urandom >big; echo more >>file.txt; rm sub/other.txt\n\
                     echo 'SET_STATE {\"state\":\"review\"}'\n";
        world.commit_files(&dir, "main", &[FILES, &[(".aynig/command/write", write)]].concat(), "seed");
        world.git(&dir, &["reset", "-q", "--hard"]);
        world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
        world.git(&dir, &["checkout", "-q", "-b", "work"]);
        world.aynig(&dir, &["set-state", "write"]).expect(0);
        disk.leave(kib);
        let said = world.aynig(&dir, &["tick", "work", "--lease", "4s"]);
        let left = world.git(&dir, &["--no-optional-locks", "status", "--porcelain", "-uno"]);
        let is_said = said.err.contains("still has part of it") && said.err.contains("git aynig status");
        let on_it = world.git(&dir, &["log", "-1", "--format=%B"]).contains("still has part of it");
        assert!(left.is_empty() || is_said || on_it, "{kib} KiB: {left}\n{}{}", said.out, said.err);
        said_of += u32::from(!left.is_empty() && is_said);
        disk.free();
        world.aynig(&dir, &["status"]).expect(0);
        assert_eq!(world.git(&dir, &["status", "--porcelain", "--untracked-files=no"]), "", "{kib} KiB");
        let cleared = std::process::Command::new("chmod").args(["-R", "u+w"]).arg(&dir).status();
        assert!(cleared.unwrap().success());
        std::fs::remove_dir_all(&dir).unwrap();
    }
    assert!(said_of > 0, "the disk was never full for the branch too");
}

/// The same where git writes refs
#[test]
fn a_full_disk_at_any_step_breaks_no_reftable_repository() {
    let git = gits().into_iter().find(|g| !g.version.contains(" 2.3")).unwrap_or_else(|| gits()[0].clone());
    sweep(&World::new(&git), &["--ref-format=reftable"], (12..168).step_by(12).chain([280]));
}

/// K14: no room for a slot ends the run `stalled` with that reason; the branch is not held
#[test]
fn a_full_disk_below_the_slots_ends_the_run_stalled() {
    let world = World::any();
    let Some(disk) = Disk::mount(&world, "slots", 256) else { return };
    let dir = world.init("repo");
    let large: String = "0123456789abcdef".repeat(32 * 1024);
    world.commit_files(&dir, "main", &[FILES, &[("large.txt", &large)]].concat(), "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    let place = disk.at.to_str().unwrap().to_owned();
    world.git(&dir, &["config", "--global", "aynig.worktreeDir", &place]);
    world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    let trigger = world.git(&dir, &["rev-parse", "work"]);
    let said = world.aynig(&dir, &["tick", "work"]).expect(1);
    assert!(said.out.contains("No space left on device"), "{}{}", said.out, said.err);
    assert_eq!(world.states(&dir, "work", &trigger), ["stalled", "working"]);
    let body = world.git(&dir, &["log", "-1", "--format=%B", "work"]);
    assert!(body.contains("No space left on device"), "{body}");
    // A second time it is the same: nothing half-made is taken for a slot.
    world.aynig(&dir, &["retry", "work"]).expect(0);
    world.aynig(&dir, &["tick", "work"]).expect(1);
    world.git(
        &dir,
        &["config", "--global", "aynig.worktreeDir", world.root().join("roomy").to_str().unwrap()],
    );
    world.aynig(&dir, &["retry", "work"]).expect(0);
    let said: Said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}", said.out);
    world.assert_sound(&dir);
}

/// K14: a slot that filled up while its command wrote is cleared for the next run
#[test]
fn a_command_that_fills_the_disk_of_the_slots_stalls_and_the_next_run_has_room() {
    let world = World::any();
    let Some(disk) = Disk::mount(&world, "slots", 1024) else { return };
    let dir = world.init("repo");
    let fill = "#!/bin/sh\nhead -c 4000000 /dev/zero >zeros || exit 7\n";
    world.commit_files(&dir, "main", &[FILES, &[(".aynig/command/fill", fill)]].concat(), "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["config", "--global", "aynig.worktreeDir", disk.at.to_str().unwrap()]);
    world.git(&dir, &["config", "--global", "aynig.jobs", "1"]);
    world.aynig(&dir, &["set-state", "fill", "-b", "greedy"]).expect(0);
    world.aynig(&dir, &["tick", "greedy"]).expect(1);
    world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
    world.assert_sound(&dir);
}

/// K28: an outcome for which a working tree's disk has no room is taken out of it again, and lands once there is some
#[test]
fn an_outcome_that_does_not_fit_into_a_working_tree_is_put_back() {
    let world = World::any();
    let Some(disk) = Disk::mount(&world, "trees", 2048) else { return };
    let dir = world.init("repo");
    let large = "#!/bin/sh\nrm old.txt\nfor n in 1 2 3 4 5 6 7 8; do yes large$n | head -c 65536 >large$n; done\n\
                 echo more >>file.txt\necho 'SET_STATE {\"state\":\"done\"}'\n";
    let files = [FILES, &[(".aynig/command/large", large), ("old.txt", "old\n")]].concat();
    world.commit_files(&dir, "main", &files, "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.aynig(&dir, &["set-state", "large", "-b", "work"]).expect(0);
    let tree = disk.at.join("tree");
    world.git(&dir, &["worktree", "add", "-q", tree.to_str().unwrap(), "work"]);
    for kib in [300, 4] {
        disk.leave(kib);
        let said = world.aynig(&dir, &["tick", "work"]);
        assert_eq!(said.code, 1, "{kib}: {}{} {}", said.out, said.err, disk.at.display());
        let body = world.git(&dir, &["log", "-1", "--format=%B", "work"]);
        assert!(body.contains("checkout") && !body.contains("could not be put back"), "{kib}: {body}");
        assert_eq!(world.git(&tree, &["status", "--porcelain"]), "", "{kib}");
        let before = world.git(&dir, &["rev-parse", "work^{tree}"]);
        world.git(&tree, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(world.git(&dir, &["rev-parse", "work^{tree}"]), before, "{kib}: nothing came or went");
        disk.free();
        if kib == 300 {
            world.aynig(&dir, &["set-state", "large", "-b", "work"]).expect(0);
        }
    }
    world.aynig(&dir, &["retry", "work"]).expect(0);
    assert_eq!(world.git(&tree, &["status", "--porcelain"]), "");
    assert!(tree.join("large8").exists() && !tree.join("old.txt").exists());
    world.assert_sound(&dir);
}

/// K26: a repository that a command left and for which the other disk has no room is moved aside; no slot is kept for it.
#[test]
fn a_repository_that_does_not_fit_takes_no_slot() {
    let world = World::any();
    let Some(disk) = Disk::mount(&world, "disk", 8192) else { return };
    let dir = disk.at.join("repo");
    if world.try_init("disk/repo", &["--template="]).is_none() {
        return;
    }
    let clone = "#!/bin/sh\ngit init -q n && git -C n -c user.name=a -c user.email=a@b commit -q --allow-empty -m u\n\
                 head -c 12000000 /dev/urandom >n/big; exit 3\n";
    world.commit_files(&dir, "main", &[FILES, &[(".aynig/command/clone", clone)]].concat(), "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["config", "--global", "aynig.jobs", "1"]);
    world.aynig(&dir, &["set-state", "clone", "-b", "greedy"]).expect(0);
    world.aynig(&dir, &["tick", "greedy"]).expect(1);
    world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("build -> review") && said.err.contains(".aside-"), "{}{}", said.out, said.err);
    let caches = world.home().join(".cache/aynig");
    let kept = std::fs::read_dir(std::fs::read_dir(caches).unwrap().next().unwrap().unwrap().path()).unwrap();
    let kept: Vec<_> =
        kept.flatten().map(|entry| entry.path().join("n/big")).filter(|big| big.exists()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].metadata().unwrap().len(), 12_000_000);
}
