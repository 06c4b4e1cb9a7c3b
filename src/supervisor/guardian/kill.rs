//! Ends every process of the run: finds them, asks them to end, and kills them.
//!
//! The guardian is a child subreaper: whatever becomes of a descendant's parents, its chain of parents leads
//! to the guardian, so a walk over `/proc` finds it, `setsid` and double forks included. Signals go to whole
//! process groups at once, because no fork escapes those; every group of a descendant lies in a session that
//! a descendant made. SIGTERM is sent once to each group, SIGKILL again and again until `wait` knows no
//! child: a process that is orphaned by it comes to the guardian, and is killed there at once. Call `ask`,
//! then `tick` whenever it is `due`, and `child_died` after each death. Implements K17.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

/// A process below the guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    group: i32,
}

enum Phase {
    Calm,
    Asked { kill_at: Duration },
    Killing { since: Duration, next: Duration },
}

/// The state of ending a run.
pub(super) struct Killer {
    command: Pid,
    phase: Phase,
    asked: HashSet<Process>,
}

impl Killer {
    /// The time between two rounds of SIGKILL.
    const ROUND: Duration = Duration::from_millis(10);
    /// Processes that are left after this time can't be killed: they are another user's, or stuck in the
    /// kernel.
    const FUTILE: Duration = Duration::from_secs(1);
    const FUTILE_ROUND: Duration = Duration::from_millis(250);

    /// Makes a killer that has not asked any process to end.
    pub fn new(command: Pid) -> Self {
        Self { command, phase: Phase::Calm, asked: HashSet::new() }
    }

    /// Sends SIGTERM to each process that was not asked before, and has all of them killed after `grace`, or
    /// earlier if an earlier call said so.
    pub fn ask(&mut self, now: Duration, grace: Duration) {
        let kill_at = match self.phase {
            Phase::Calm => now.saturating_add(grace),
            Phase::Asked { kill_at } => kill_at.min(now.saturating_add(grace)),
            Phase::Killing { .. } => return,
        };
        self.phase = Phase::Asked { kill_at };
        let fresh: Vec<_> =
            descendants(self.command).into_iter().filter(|p| !self.asked.contains(p)).collect();
        // A group with a member that was asked was asked as a whole: members that are new since then are part
        // of its clean-up.
        let old_groups: HashSet<i32> = self.asked.iter().map(|p| p.group).collect();
        self.asked.extend(&fresh);
        let to_ask: Vec<_> = fresh.into_iter().filter(|p| !old_groups.contains(&p.group)).collect();
        signal(&to_ask, Signal::SIGTERM);
        // A stopped process can't handle SIGTERM before it goes on.
        signal(&to_ask, Signal::SIGCONT);
    }

    /// Returns when `tick` has something to do.
    pub fn due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Calm => None,
            Phase::Asked { kill_at } => Some(kill_at),
            Phase::Killing { next, .. } => Some(next),
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Duration) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let since = match self.phase {
            Phase::Killing { since, .. } => since,
            Phase::Calm | Phase::Asked { .. } => now,
        };
        kill_children();
        kill_all(self.command);
        let round = if now - since < Self::FUTILE { Self::ROUND } else { Self::FUTILE_ROUND };
        self.phase = Phase::Killing { since, next: now + round };
    }

    /// Kills the orphans that a death has brought to the guardian.
    pub fn child_died(&self) {
        match self.phase {
            Phase::Killing { .. } => kill_children(),
            Phase::Calm | Phase::Asked { .. } => {}
        }
    }

    /// Returns how many processes outlive SIGKILL; `None` until they had time to die.
    pub fn survivors(&self, now: Duration) -> Option<u32> {
        match self.phase {
            Phase::Killing { since, .. } if now >= since + Self::FUTILE => {
                Some(descendants(self.command).len() as u32)
            }
            Phase::Calm | Phase::Asked { .. } | Phase::Killing { .. } => None,
        }
    }
}

/// Kills the guardian's own children, and repeats that while new ones come. This takes microseconds where the
/// walk over all processes takes milliseconds, in which a storm of forks gets a generation ahead. On kernels
/// without this file only the walk is left.
fn kill_children() {
    let mut met: HashSet<Process> = HashSet::new();
    for _ in 0..64 {
        let list = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        let found =
            pids.map(|pid| Process { pid, group: getpgid(Some(Pid::from_raw(pid))).map_or(0, Pid::as_raw) });
        let fresh: Vec<_> = found.filter(|process| met.insert(*process)).collect();
        if fresh.is_empty() {
            return;
        }
        signal(&fresh, Signal::SIGKILL);
    }
}

/// Kills every descendant, also those below processes that may not be killed; repeats that while new ones
/// come.
fn kill_all(command: Pid) {
    let mut met = HashSet::new();
    for _ in 0..16 {
        let found = descendants(command);
        signal(&found, Signal::SIGKILL);
        let before = met.len();
        met.extend(found);
        if met.len() == before {
            return;
        }
    }
}

fn signal(processes: &[Process], signal: Signal) {
    signal_groups(processes.iter().map(|process| (process.pid, process.group)), signal);
}

/// Sends a signal to the groups of these processes, each given as its process id and its group. A process
/// whose group is this process's own, or not known, gets the signal alone.
pub(in crate::supervisor) fn signal_groups(processes: impl Iterator<Item = (i32, i32)>, signal: Signal) {
    let own = getpgrp().as_raw();
    let mut groups: HashSet<i32> = HashSet::new();
    for (pid, group) in processes {
        if group > 1 && group != own {
            if groups.insert(group) {
                // A process that is gone needs no signal, and one that may not be signaled is counted as a
                // survivor later.
                let _ = killpg(Pid::from_raw(group), signal);
            }
        } else {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// Returns every process below this one. Without `/proc` (macOS) only the command's group can be named.
fn descendants(command: Pid) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return vec![Process { pid: command.as_raw(), group: command.as_raw() }];
    };
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some((parent, group)) = parse_stat(&stat) {
            children.entry(parent).or_default().push(Process { pid, group });
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![std::process::id() as i32];
    while let Some(parent) = parents.pop() {
        // Removed, not just looked up: a table that was read while it changed may contain cycles.
        let below = children.remove(&parent).unwrap_or_default();
        parents.extend(below.iter().map(|process| process.pid));
        found.extend(below);
    }
    found
}

/// Returns the parent and the process group in a `/proc/<pid>/stat`. The name in it may contain anything,
/// brackets and line breaks included, so the fields are counted from its last bracket.
pub(in crate::supervisor) fn parse_stat(stat: &[u8]) -> Option<(i32, i32)> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    let mut fields = std::str::from_utf8(after).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Returns the session in a `/proc/<pid>/stat`; `None` where the process has a controlling terminal.
pub(in crate::supervisor) fn session_without_terminal(stat: &[u8]) -> Option<i32> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    let mut fields = std::str::from_utf8(after).ok()?.split_ascii_whitespace().skip(3);
    let (session, device) = (fields.next()?.parse().ok()?, fields.next()?);
    (device == "0").then_some(session)
}

/// Returns the state in a `/proc/<pid>/stat`, which is one letter.
pub(in crate::supervisor) fn state(stat: &[u8]) -> Option<u8> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    after.trim_ascii_start().first().copied()
}

/// True for a process that a signal stopped. A traced process does not count: a debugger that looks at it
/// soon lets it go on.
pub(in crate::supervisor) fn is_stopped(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| state(&stat) == Some(b'T'))
}

/// Returns the signal that killed a zombie, where `wait` has no name for it (real-time signals).
#[cfg(target_os = "linux")]
pub(super) fn zombie_signal(pid: Pid) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    // Field 52 is the exit code as `wait` gives it; field 3 is the first after the name.
    let status: i32 = std::str::from_utf8(after).ok()?.split_ascii_whitespace().nth(49)?.parse().ok()?;
    Some(status & 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nasty_process_name_hides_nothing() {
        assert_eq!(parse_stat(b"7 (a) R 1 2\n) S 40 41 42 0 -1"), Some((40, 41)));
        assert_eq!(parse_stat(b"7 (\xff\xfe) S 40 41 42"), Some((40, 41)));
        assert_eq!(state(b"7 (a) T x) S 40 41 42"), Some(b'S'));
        assert_eq!(state(b"7 (a)"), None);
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"7 (a) S x"), None);
    }
}
