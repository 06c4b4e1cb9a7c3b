//! Lists a folder below a root through its opened descriptor alone. Implements K16.

use super::{Dir, Entry, SAFE, kind_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fstatat};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

/// Returns the entries of an opened folder, in no order; `None` if there are more than `limit`.
pub(super) fn entries(folder: BorrowedFd<'_>, limit: usize) -> nix::Result<Option<Vec<Entry>>> {
    let mut found = Vec::new();
    // The folder is opened anew because the descriptor at hand may be one that can't be read (`O_PATH`), and
    // because its read position is not to be moved.
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
            // The entry was removed meanwhile.
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(Some(found))
}
