//! The lock of a slot, held as long as a process lives that may write to the slot.
//!
//! The caller takes the lock, and the child inherits it at its start. So a runner that comes after the caller
//! has died finds it taken, however slowly the child starts. The lock travels as one of the three standard
//! descriptors, because no other child of the caller inherits those: a guardian's stderr, or the stdin of a
//! `git`. Calling sequence: [`take`], start the child with it, and in a guardian [`received`]. Implements
//! K14, K17.

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes the lock. It is held until the last copy of the descriptor is closed, or one of them is unlocked.
/// The file is made with mode 0600, and never opened through a symlink. [`io::ErrorKind::WouldBlock`] if
/// another process holds it.
pub fn take(path: &Path) -> io::Result<File> {
    lock(path, true)
}

/// True while a process holds the lock. Makes no file.
pub fn is_taken(path: &Path) -> io::Result<bool> {
    match lock(path, false) {
        Ok(file) => file.unlock().map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock(path: &Path, create: bool) -> io::Result<File> {
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(create).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = open.open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Returns, in the guardian, the lock that was passed as its stderr, and makes stderr `/dev/null`. Dropping
/// the returned lock unlocks it, even if another child of the caller has a copy open for a moment.
pub fn received() -> io::Result<Flock<File>> {
    let file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}
