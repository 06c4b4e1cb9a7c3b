//! The lock that says that a process lives which may write to a slot.
//!
//! The caller takes it, and the child is born with it: a runner that looks once the caller is dead finds it taken,
//! however slowly the child starts. It comes as one of the three descriptors that a child can be given and no
//! other child of the caller's inherits: a guardian's stderr, the input of a `git`. Calling sequence: [`take`],
//! start the child with it, and in a guardian [`received`]. Implements K14, K17.

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes the lock. It is held until the last copy of the file is closed, or one of them unlocks it; made with
/// mode 0600, never through a symlink. [`io::ErrorKind::WouldBlock`] where another process holds it.
pub fn take(path: &Path) -> io::Result<File> {
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = open.open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// True while a process holds it.
pub fn is_taken(path: &Path) -> io::Result<bool> {
    match take(path) {
        Ok(file) => file.unlock().map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// In the guardian: the lock that came as stderr, which is `/dev/null` from now on. Dropping it unlocks it, also
/// where a copy of the caller's is open for a moment in another child.
pub fn received() -> io::Result<Flock<File>> {
    let file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}
