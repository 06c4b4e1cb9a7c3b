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

/// What a process has for its standard input.
#[derive(Debug)]
pub enum Input<'a> {
    /// What it is to read, which may be nothing.
    Bytes(&'a [u8]),
    /// A file, for its lock: both processes hold it while this one passes it on.
    File(File),
}

/// Starts a process that outlives this one, with this standard input. The process writes both streams to
/// `log`; with `held`, it has that file as its standard output instead, and writes nothing there. The process
/// is to call [`leave_caller`]: like a guardian, it leaves this session, and so it is remembered as a child
/// of this process, and is no orphan of a run.
pub fn start(mut command: Command, input: Input<'_>, log: File, held: Option<File>) -> io::Result<()> {
    let (stdin, bytes): (Stdio, &[u8]) = match input {
        Input::Bytes([]) => (Stdio::null(), &[]),
        Input::Bytes(bytes) => (Stdio::piped(), bytes),
        Input::File(file) => (file.into(), &[]),
    };
    let output = held.map_or_else(|| log.try_clone(), Ok)?;
    command.stdin(stdin).stdout(output).stderr(log);
    let mut child = orphans::started(|| command.spawn(), std::process::Child::id)?;
    match child.stdin.take() {
        // The process reads its input before it does anything else, so this waits no longer than the start
        // takes.
        Some(mut pipe) => pipe.write_all(bytes),
        None => Ok(()),
    }
}
