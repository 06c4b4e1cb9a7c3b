//! Starts a program with default signal handling, exactly three descriptors, and its own session if asked
//! for.
//!
//! Whatever the program should not inherit is close-on-exec already. Uses `posix_spawn`, where the attributes
//! say that every signal is to be default: the standard library would query the handler of each signal first.
//! Implements K17.

use nix::errno::Errno;
use nix::libc;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

/// Starts `argv[0]`, which is searched for in `PATH` if it has no slash. If a variable occurs twice in `env`,
/// the last value counts.
pub(super) fn exec(
    argv: &[OsString],
    env: impl Iterator<Item = (OsString, OsString)>,
    descriptors: [BorrowedFd<'_>; 3],
    own_session: bool,
) -> nix::Result<Pid> {
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| Errno::EINVAL);
    let args = argv.iter().map(|a| text(a.clone().into_vec())).collect::<Result<Vec<_>, _>>()?;
    let variable =
        |(key, value): (OsString, OsString)| text([key.as_bytes(), b"=", value.as_bytes()].concat());
    let env = env.collect::<BTreeMap<_, _>>().into_iter().map(variable).collect::<Result<Vec<_>, _>>()?;

    let mut actions = PosixSpawnFileActions::init()?;
    for (number, descriptor) in (0..).zip(descriptors) {
        actions.add_dup2(descriptor.as_raw_fd(), number)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    let mut flags = PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    flags.set(PosixSpawnFlags::from_bits_retain(SETSID.into()), own_session);
    attributes.set_flags(flags)?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;

    // A command file that was just written can still be open for writing in a process that another thread
    // of its writer forked and that has not reached its exec yet. That passes within milliseconds.
    for _ in 0..20 {
        match posix_spawnp(&args[0], &actions, &attributes, &args, &env) {
            Err(Errno::ETXTBSY) => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    posix_spawnp(&args[0], &actions, &attributes, &args, &env)
}

#[cfg(not(target_vendor = "apple"))]
const SETSID: libc::c_short = libc::POSIX_SPAWN_SETSID as libc::c_short;
// The libc crate lacks this constant; `spawn.h` of macOS 10.15 and later has it.
#[cfg(target_vendor = "apple")]
const SETSID: libc::c_short = 0x0400;

/// A child that [`exec`] started, and that this process has to wait for.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    over: bool,
}

impl Child {
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, over: false }
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw() as u32
    }

    /// Kills the child, unless it was waited for: its process id may belong to another process by then.
    pub(super) fn kill(&self) {
        if !self.over {
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }

    /// Waits until the child has exited.
    pub(super) fn wait(&mut self) -> nix::Result<()> {
        self.reap(None).map(drop)
    }

    /// Waits until the child has exited, at most this long; true once it has, or where it can't be waited for.
    pub(super) fn is_over_within(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while !self.is_over() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// True once the child has exited, or where it can't be waited for.
    pub(super) fn is_over(&mut self) -> bool {
        self.reap(Some(WaitPidFlag::WNOHANG)).unwrap_or(true)
    }

    fn reap(&mut self, flags: Option<WaitPidFlag>) -> nix::Result<bool> {
        while !self.over {
            match waitpid(self.pid, flags) {
                Ok(WaitStatus::StillAlive) => return Ok(false),
                // A status with a signal that nix has no name for (`EINVAL`) is an end too.
                Ok(_) | Err(Errno::EINVAL) => self.over = true,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(true)
    }
}
