//! Processes in the background: [`start`] starts one; the new process calls [`leave_caller`] to cut its ties
//! with the process that started it (the terminal, signals meant for that process's group, inherited
//! descriptors).
//!
//! This matters because Git's hooks, make and terminals leave pipes open in their children, and wait until
//! each of these pipes is closed. [`leave_caller`] is called before the process opens anything of its own.
//! Implements K18, K40.

use super::orphans;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Leaves the caller's session, and closes every descriptor but the three standard ones.
pub fn leave_caller() {
    // `setsid` fails only if this process leads a process group already, and then the group is its own
    // anyway.
    let _ = nix::unistd::setsid();
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| *fd > 2) {
        // The descriptor of the listing itself is in the list too, and closed already.
        let _ = nix::unistd::close(fd);
    }
}

/// Starts a process that outlives this one. The process reads `input`. Both of its output streams go to
/// `log`; with `held`, that file is its standard output instead, and the process writes nothing there. It is
/// expected to call [`leave_caller`], and it is remembered as a child of this process, as a guardian is, so
/// that it never counts as an orphan of a run.
pub fn start(mut command: Command, input: &[u8], log: File, held: Option<File>) -> io::Result<()> {
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let output = held.map_or_else(|| log.try_clone(), Ok)?;
    command.stdin(stdin).stdout(output).stderr(log);
    let mut child = orphans::started(|| command.spawn(), std::process::Child::id)?;
    match child.stdin.take() {
        // The process reads its input before it does anything else, so this waits no longer than the process
        // takes to start.
        Some(mut pipe) => pipe.write_all(input),
        None => Ok(()),
    }
}
