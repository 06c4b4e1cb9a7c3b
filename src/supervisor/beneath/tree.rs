//! What is in a folder below a root, from the opened folder alone. Implements K16.

use super::{Dir, Entry, SAFE, kind_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fstatat};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

/// What is in an opened folder, in no order; `None` where that is more than `limit`.
pub(super) fn entries(folder: BorrowedFd<'_>, limit: usize) -> nix::Result<Option<Vec<Entry>>> {
    let mut found = Vec::new();
    // Opened anew: the descriptor at hand may be one that can't be read, and keeps a place of its own.
    let mut open = Dir::openat(folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | SAFE, Mode::empty())?;
    for entry in open.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == limit {
            return Ok(None);
        }
        match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => found.push(Entry { name: name.to_owned(), kind: kind_of(&stat) }),
            // Removed meanwhile.
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(Some(found))
}
