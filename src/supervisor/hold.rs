//! The lock that says that a process of a run lives.
//!
//! The caller takes it, and the guardian is born with it: whoever looks once the caller is dead finds it
//! taken, however slowly the guardian starts. It comes as the guardian's stderr, the one descriptor left that
//! a child can be given and no other child of the caller's inherits. Calling sequence: [`take`], start the
//! guardian with it, and there [`received`]. Implements K14, K17.

use super::ending::Ending;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes the lock. It is held until the last copy of the file is closed, or one of them unlocks it; made with
/// mode 0600, never through a symlink.
pub fn take(path: &Path) -> Result<File, Ending> {
    let failed = |errno: i32, why: &str| {
        let what = format!("hold '{}'{why}", path.display());
        Ending::NotStarted { errno, what }
    };
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = open.open(path).map_err(|e| failed(e.raw_os_error().unwrap_or(0), ""))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(failed(Errno::EWOULDBLOCK as i32, ", which another run has")),
        Err(TryLockError::Error(e)) => Err(failed(e.raw_os_error().unwrap_or(0), "")),
    }
}

/// In the guardian: the lock that came as stderr, which is `/dev/null` from now on. Dropping it unlocks it, also
/// where a copy of the caller's is open for a moment in another child.
pub fn received() -> io::Result<Flock<File>> {
    let file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}
