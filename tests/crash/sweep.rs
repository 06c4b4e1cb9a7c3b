//! Every operation, killed before each of its file operations, then what the next one finds.
//!
//! `AYNIG_STRACE=1` has acceptance killed by real system calls too, where `strace` is there. Implements G1.

use super::super::*;
use super::scenarios::{SCENARIOS, Scenario, accept, assigned, config, only, root};
use super::{LEFT, PASSED};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOLD: &str = "AYNIG_TEST_CRASH";

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

fn write(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Does a scenario's work, or only what a restart does, in a process that ends at a step; true if it ended
/// by itself.
fn killed_at(step: u64, folder: &Path, scenario: &str) -> bool {
    ended_by_itself(Command::new(std::env::current_exe().unwrap()), step, folder, scenario)
}

/// Does a scenario's work in a process that the system ends as the `n`th call of this name has returned.
fn killed_after(call: &str, n: u64, folder: &Path, scenario: &str) -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={call}:signal=SIGKILL:when={n}")]);
    strace.arg(std::env::current_exe().unwrap());
    ended_by_itself(strace, u64::MAX, folder, scenario)
}

fn ended_by_itself(mut command: Command, step: u64, folder: &Path, scenario: &str) -> bool {
    let child = command
        .args(["governed::crash::sweep::child", "--exact", "--ignored", "--nocapture"])
        .env(TOLD, format!("{scenario}\n{step}\n{}", folder.display()))
        .output()
        .unwrap();
    // A tracer ends as what it traced.
    if child.status.signal() == Some(9) || child.status.code() == Some(128 + 9) {
        return false;
    }
    assert!(child.status.success(), "{scenario} at {step}: {child:?}");
    true
}

/// G1
#[test]
#[ignore = "the process that is killed"]
fn child() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let mut told = told.splitn(3, '\n');
    let (scenario, step, folder) = (told.next().unwrap(), told.next().unwrap(), told.next().unwrap());
    let (root, config) = (root(Path::new(folder), 1 << 32), config());
    LEFT.set(Some(step.parse().unwrap()));
    match SCENARIOS.iter().find(|known| known.name == scenario) {
        Some(known) => match (known.work)(&root, &config) {
            Ok(()) | Err(GovernedError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        },
        None => drop(acquire_lock(&root).unwrap()),
    }
}

/// How many steps a scenario was killed at.
fn sweep(scenario: &Scenario) -> u64 {
    // Where there is no disk, syncing costs nothing; the steps are the same.
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let config = config();
    let fresh = |name: &str| {
        let folder = scratch.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let origin = fresh("origin");
    (scenario.before)(&root(&origin, 1), &config);
    let before = files(&origin);
    let whole = fresh("whole");
    write(&whole, &before);
    let done = |folder: &Path| (scenario.work)(&root(folder, 1 << 32), &config);
    assert!(matches!(done(&whole), Ok(()) | Err(GovernedError::Conflict { .. })));
    let after = files(&whole);
    assert_ne!(before, after, "{}", scenario.name);
    for step in 0.. {
        let folder = fresh(&format!("at-{step}"));
        write(&folder, &before);
        if killed_at(step, &folder, scenario.name) {
            assert_eq!(files(&folder), after, "{}, not killed", scenario.name);
            return step;
        }
        // The restart may be killed as well.
        killed_at(step * 5 % 23, &folder, "restart");
        drop(acquire_lock(&root(&folder, 1 << 40)).unwrap());
        let found = files(&folder);
        if found != before {
            assert_eq!(found, after, "{} killed at {step}: neither before nor after", scenario.name);
        } else if step % 4 == 0 {
            assert!(matches!(done(&folder), Ok(()) | Err(GovernedError::Conflict { .. })));
            assert_eq!(files(&folder), after, "{} killed at {step}, done again", scenario.name);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
    0
}

/// As [`sweep`], by real system calls; how many there were.
fn traced(scenario: &Scenario) -> u64 {
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let config = config();
    let origin = scratch.path().join("origin");
    let whole = scratch.path().join("whole");
    std::fs::create_dir_all(&origin).unwrap();
    (scenario.before)(&root(&origin, 1), &config);
    let before = files(&origin);
    write(&whole, &before);
    assert!((scenario.work)(&root(&whole, 1 << 32), &config).is_ok());
    let after = files(&whole);
    let mut points = 0;
    for call in ["openat", "write", "fdatasync", "fsync", "rename", "unlink", "rmdir", "mkdir"] {
        for n in 1.. {
            let folder = scratch.path().join(format!("{call}-{n}"));
            write(&folder, &before);
            if killed_after(call, n, &folder, scenario.name) {
                break;
            }
            points += 1;
            drop(acquire_lock(&root(&folder, 1 << 40)).unwrap());
            let found = files(&folder);
            assert!(found == before || found == after, "{} killed after {call} {n}", scenario.name);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
    points
}

#[test]
fn accepting_is_exactly_once_wherever_the_system_ends_it() {
    let is_wanted = std::env::var_os("AYNIG_STRACE").is_some();
    if !is_wanted || Command::new("strace").arg("-V").output().is_err() {
        return println!("skipped: AYNIG_STRACE=1 wants strace");
    }
    let points: u64 = SCENARIOS.iter().filter(|s| s.name.starts_with("accept")).map(traced).sum();
    println!("killed after each of {points} system calls");
    assert!(points >= 100, "{points}");
}

fn sweep_all(wanted: impl Fn(&str) -> bool) -> u64 {
    let mut all = 0;
    for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.name)) {
        let steps = sweep(scenario);
        println!("{}: killed at each of {steps} file operations", scenario.name);
        all += steps;
    }
    all
}

#[test]
fn accepting_is_exactly_once_wherever_it_is_killed() {
    let steps = sweep_all(|name| name.starts_with("accept"));
    assert!(steps >= 100, "{steps}");
}

#[test]
fn every_other_operation_is_whole_or_not_at_all_wherever_it_is_killed() {
    let steps = sweep_all(|name| !name.starts_with("accept"));
    assert!(steps >= 100, "{steps}");
    assert!(PASSED.get() > 0);
}

#[test]
fn a_turn_that_was_accepted_is_not_accepted_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, config) = (root(scratch.path(), 1), config());
    assigned(&root, &config);
    let turn = only(&root, &config);
    accept(&root, &config, &turn).unwrap();
    let before = files(scratch.path());
    let again = accept(&root, &config, &turn).unwrap_err();
    assert_eq!(again.code(), Some("not_found"));
    assert_eq!(files(scratch.path()), before);
}
