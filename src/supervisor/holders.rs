//! Who holds a slot whose runner is dead: guardians that were stopped, and so can't end their runs.
//!
//! A guardian is recognized by its command line and by the open lock file itself, not by a process id in a
//! file. A stopped one is woken first; it then ends its run by itself, as any guardian does whose runner is
//! gone. One that is stopped again and again is killed, but only after all processes below it, because only
//! while the guardian lives do they stay below it. Where the guardian was killed too, what is left of the run is
//! recognized by the run id in its environment. Besides, this module tells which processes of a program
//! may be at work in a folder. All of it needs `/proc`. Implements K14, K17, K43.

use super::guardian::kill::{is_stopped, parse_stat, session_without_terminal, signal_groups};
use super::guardian::options::ROLE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For how long the processes below a guardian are killed again and again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the process ids of the guardians that hold this lock file.
pub fn guardians(hold: &Path) -> Vec<u32> {
    let Ok(hold) = hold.symlink_metadata() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_guardian = line.split(|byte| *byte == 0).nth(1) == Some(ROLE.as_bytes());
        is_guardian && has_open(*pid, hold.dev(), hold.ino())
    })
    .collect()
}

fn has_open(pid: u32, device: u64, inode: u64) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::metadata(file.path()).ok())
        .any(|m| (m.dev(), m.ino()) == (device, inode))
}

/// Processes of a program, as far as this account can see them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AtWork {
    /// Processes whose working directory is in the folder, or whose arguments or environment contain its
    /// path.
    pub seen: Vec<u32>,
    /// Processes of other accounts: where these are at work can't be seen.
    pub hidden: Vec<u32>,
}

/// Returns the processes that may be at work in a folder, among those whose program name begins with `name`.
/// This process and its parent are left out. `None` without `/proc`.
pub fn at_work(name: &str, folder: &Path) -> Option<AtWork> {
    let mut found = AtWork::default();
    let told = folder.as_os_str().as_encoded_bytes();
    let us = [std::process::id(), std::os::unix::process::parent_id()];
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if us.contains(&pid) {
            continue;
        }
        let of = |file: &str| std::fs::read(entry.path().join(file));
        let state = super::guardian::kill::state(&of("stat").unwrap_or_default());
        if !of("comm").is_ok_and(|comm| comm.starts_with(name.as_bytes())) || state == Some(b'Z') {
            continue;
        }
        let is_told = |file| of(file).is_ok_and(|text| text.windows(told.len()).any(|part| part == told));
        match std::fs::read_link(entry.path().join("cwd")) {
            Ok(at) if at.starts_with(folder) || is_told("cmdline") || is_told("environ") => {
                found.seen.push(pid);
            }
            Ok(_) => {}
            // The process has ended meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => found.hidden.push(pid),
        }
    }
    Some(found)
}

/// Asks the guardians that hold this lock file to end their runs. Without `/proc` the process that was noted is asked,
/// which is the guardian as far as can be known.
pub fn ask_to_end(hold: &Path, noted: Option<u32>) {
    let known = match Path::new("/proc/self").exists() {
        true => guardians(hold),
        false => noted.into_iter().collect(),
    };
    // To the system the ids of 1 and less are its first process, groups, and all processes.
    for pid in known.into_iter().filter_map(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

/// Wakes the stopped guardians that hold this lock file; false if there is none.
pub fn wake(hold: &Path) -> bool {
    let stopped: Vec<u32> = guardians(hold).into_iter().filter(|pid| is_stopped(*pid)).collect();
    for pid in &stopped {
        let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGCONT);
    }
    !stopped.is_empty()
}

/// Kills the guardians of this lock file that are still stopped, or traced by a process of their runs, and before each of
/// them the processes below it. A runner that was stopped with its guardian is woken: it holds the slot, and what it
/// finds is a lost run.
pub fn end_stopped(hold: &Path) {
    for pid in guardians(hold) {
        // A stopped guardian does nothing from now on: its processes stay below it until it is killed itself.
        if !is_stopped(pid) && !is_traced_from_below(pid) {
            continue;
        }
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let runner = parse_stat(&stat).map(|(parent, _)| parent).filter(|parent| *parent > 1);
        kill_below(pid as i32);
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        if let Some(runner) = runner.filter(|runner| is_stopped(*runner as u32)) {
            let _ = kill(Pid::from_raw(runner), Signal::SIGCONT);
        }
    }
}

/// True for a process that one below it traces, and so keeps from doing anything. A debugger of a user's is none of these.
fn is_traced_from_below(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = tracer.and_then(|tracer| tracer.trim().parse::<i32>().ok()).filter(|tracer| *tracer > 0);
    tracer.is_some_and(|tracer| below(pid as i32).iter().any(|(pid, _)| *pid == tracer))
}

/// Kills all processes below this one, until none is left or for a second.
pub(super) fn kill_below(root: i32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let below = below(root);
        if below.is_empty() || Instant::now() >= until {
            return;
        }
        signal_groups(below.into_iter(), Signal::SIGKILL);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run, as the environment of its processes names it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    pub id: &'a str,
    /// The run's private folder. In a copy of a repository the run's id is the same, and its processes are none of the
    /// copy's.
    pub dir: &'a Path,
}

/// True while a process of this run lives that this account may see; it may be this one.
pub fn lives(run: Named<'_>) -> bool {
    is_of_run(Path::new("/proc/self"), run) || !of_run(run).is_empty()
}

/// Kills the processes of a run whose guardian and runner are both gone. A process of the run itself kills none.
pub fn end_run(run: Named<'_>) {
    let until = Instant::now() + PATIENCE;
    while !is_of_run(Path::new("/proc/self"), run) {
        let left = of_run(run);
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        // Not their groups: another process may be in one that does not belong to the run.
        for pid in left {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the process id of each process that was started with this run's id. A command has a session of its own and no
/// terminal, so one with a terminal is left out, and one in a session that a process outside of the run leads: a
/// user who tries by hand what a command did, or a job that calls a verb, may have its environment.
fn of_run(run: Named<'_>) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_it = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        if !is_of_run(&entry.path(), run) {
            return None;
        }
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        let leader = PathBuf::from(format!("/proc/{}", session_without_terminal(&stat)?));
        let is_alone = leader.exists() && !is_of_run(&leader, run);
        (!is_alone && super::guardian::kill::state(&stat) != Some(b'Z')).then_some(pid)
    });
    of_it.collect()
}

/// True for a process, by its folder in `/proc`, whose environment has this run's id, and names no other folder of it: one
/// that is still there, as the repository's that this one is a copy of.
fn is_of_run(process: &Path, run: Named<'_>) -> bool {
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    let value = |name: &[u8]| environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name));
    if value(b"AYNIG_RUN_ID=") != Some(run.id.as_bytes()) {
        return false;
    }
    let identity = |dir: &Path| dir.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let told = value(b"AYNIG_RUN_DIR=").and_then(|dir| identity(Path::new(OsStr::from_bytes(dir))));
    told.is_none_or(|told| identity(run.dir) == Some(told))
}

/// Returns the process id and process group of each process below `root` that is not dead already.
fn below(root: i32) -> Vec<(i32, i32)> {
    let mut children: HashMap<i32, Vec<(i32, i32, bool)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some((parent, group)) = parse_stat(&stat) {
            let dead = super::guardian::kill::state(&stat) == Some(b'Z');
            children.entry(parent).or_default().push((pid, group, dead));
        }
    }
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for (pid, group, dead) in children.remove(&parent).unwrap_or_default() {
            parents.push(pid);
            found.extend((!dead).then_some((pid, group)));
        }
    }
    found
}
