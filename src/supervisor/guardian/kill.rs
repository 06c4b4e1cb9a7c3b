//! Ends every process of the run: who they are, who is asked, and when they are killed.
//!
//! The guardian is a child subreaper: whatever a descendant's parents do, its chain of parents leads here,
//! so a walk over `/proc` finds it, `setsid` and double forks included. Signals go to whole process groups
//! at once, because no fork escapes those; every group of a descendant lies in a session that a descendant
//! made. SIGTERM is sent once to each group, SIGKILL again and again until `wait` knows no child: a process that
//! is orphaned by it comes to the guardian, and is met there at once. `ask`, then `tick` whenever it is
//! `due`, and `child_died` after each death. Implements K17.

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
    /// Between two rounds of SIGKILL.
    const ROUND: Duration = Duration::from_millis(10);
    /// After this long, those who are left cannot be killed: another user's, or stuck in the kernel.
    const FUTILE: Duration = Duration::from_secs(1);
    const FUTILE_ROUND: Duration = Duration::from_millis(250);

    /// Ends nothing yet.
    pub fn new(command: Pid) -> Self {
        Self { command, phase: Phase::Calm, asked: HashSet::new() }
    }

    /// Sends SIGTERM to each process that was not asked before, and SIGKILL to all after `grace`, or earlier if an
    /// earlier call said so.
    pub fn ask(&mut self, now: Duration, grace: Duration) {
        let kill_at = match self.phase {
            Phase::Calm => now.saturating_add(grace),
            Phase::Asked { kill_at } => kill_at.min(now.saturating_add(grace)),
            Phase::Killing { .. } => return,
        };
        self.phase = Phase::Asked { kill_at };
        let fresh: Vec<_> =
            descendants(self.command).into_iter().filter(|p| !self.asked.contains(p)).collect();
        // A group with a member that was asked was asked as a whole: its new members are its clean-up.
        let old_groups: HashSet<i32> = self.asked.iter().map(|p| p.group).collect();
        self.asked.extend(&fresh);
        let to_ask: Vec<_> = fresh.into_iter().filter(|p| !old_groups.contains(&p.group)).collect();
        signal(&to_ask, Signal::SIGTERM);
        // A stopped process can't answer before it goes on.
        signal(&to_ask, Signal::SIGCONT);
    }

    /// When `tick` has something to do.
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

    /// Meets the orphans that a death has brought.
    pub fn child_died(&self) {
        match self.phase {
            Phase::Killing { .. } => kill_children(),
            Phase::Calm | Phase::Asked { .. } => {}
        }
    }

    /// How many outlive SIGKILL, once that is clear.
    pub fn survivors(&self, now: Duration) -> Option<u32> {
        match self.phase {
            Phase::Killing { since, .. } if now >= since + Self::FUTILE => {
                Some(descendants(self.command).len() as u32)
            }
            Phase::Calm | Phase::Asked { .. } | Phase::Killing { .. } => None,
        }
    }
}

/// Kills the guardian's own children, again while there are new ones. This takes microseconds where the
/// walk over all processes takes milliseconds, in which a storm of forks is a generation further. Kernels
/// without this file have the walk alone.
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

/// Kills every descendant, also those whose parents may not be killed; again while there are new ones.
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

/// Sends a signal to the groups of these processes; each is a process and its group.
pub(in crate::supervisor) fn signal_groups(processes: impl Iterator<Item = (i32, i32)>, signal: Signal) {
    let own = getpgrp().as_raw();
    let mut groups: HashSet<i32> = HashSet::new();
    for (pid, group) in processes {
        if group > 1 && group != own {
            if groups.insert(group) {
                // A process that is gone needs no signal, and one that may not be signalled is counted later.
                let _ = killpg(Pid::from_raw(group), signal);
            }
        } else {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// Every process below this one. Without `/proc` (macOS) only the command's group can be named.
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
        // Taken out, not looked up: a table that was read while it changed may have circles.
        let below = children.remove(&parent).unwrap_or_default();
        parents.extend(below.iter().map(|process| process.pid));
        found.extend(below);
    }
    found
}

/// Parent and process group in a `/proc/<pid>/stat`. The name in it may hold anything, brackets and line
/// breaks included, so fields count from its last bracket.
pub(in crate::supervisor) fn parse_stat(stat: &[u8]) -> Option<(i32, i32)> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    let mut fields = std::str::from_utf8(after).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The state in a `/proc/<pid>/stat`: one letter.
pub(in crate::supervisor) fn state(stat: &[u8]) -> Option<u8> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    after.trim_ascii_start().first().copied()
}

/// True for a process that a signal stopped. One that is traced is not: a look at it goes by.
pub(in crate::supervisor) fn is_stopped(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| state(&stat) == Some(b'T'))
}

/// The signal that killed a zombie, where `wait` has no name for it (real-time signals).
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
