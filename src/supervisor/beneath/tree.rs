//! Folders below a root as a whole: what is in one, and removing one with all that is in it.
//!
//! Works from opened folders alone, one descriptor for each level; refuses more levels than any project has, so
//! that neither descriptors nor the stack run out. Implements K16.

use super::{Dir, Entry, Kind, SAFE, kind_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

/// How many folders lie in each other, at most.
pub(super) const DEEPEST: usize = 256;

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

/// Removes this name of an opened folder, and all below it; false where that is too deep. Nothing is done
/// through a link: the link itself is removed.
pub(super) fn remove(folder: BorrowedFd<'_>, name: &OsStr) -> nix::Result<bool> {
    remove_below(folder, name, 0)
}

fn remove_below(folder: BorrowedFd<'_>, name: &OsStr, depth: usize) -> nix::Result<bool> {
    let kind = match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => kind_of(&stat),
        Err(Errno::ENOENT) => return Ok(true),
        Err(errno) => return Err(errno),
    };
    if kind != Kind::Folder {
        return gone(unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)).map(|()| true);
    }
    if depth == DEEPEST {
        return Ok(false);
    }
    let open = || openat(folder, name, OFlag::O_RDONLY | OFlag::O_DIRECTORY | SAFE, Mode::empty());
    // Removing what is in a folder takes every right to it, which its owner may have taken away.
    let mut opened = open();
    if opened.as_ref().is_err_and(|errno| *errno == Errno::EACCES) {
        fchmodat(folder, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
        opened = open();
    }
    let opened = opened?;
    let mut all = true;
    // In pieces: a folder may hold more names than fit in memory.
    loop {
        let names = some(opened.as_fd())?;
        if names.is_empty() || !all {
            break;
        }
        for name in &names {
            all &= match remove_below(opened.as_fd(), name, depth + 1) {
                Err(Errno::EACCES) => {
                    nix::sys::stat::fchmod(&opened, Mode::S_IRWXU)?;
                    remove_below(opened.as_fd(), name, depth + 1)?
                }
                removed => removed?,
            };
        }
    }
    if !all {
        return Ok(false);
    }
    gone(unlinkat(folder, name, UnlinkatFlags::RemoveDir)).map(|()| true)
}

/// Some of the names in a folder.
fn some(folder: BorrowedFd<'_>) -> nix::Result<Vec<std::ffi::OsString>> {
    const PIECE: usize = 4096;
    let mut open = Dir::openat(folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | SAFE, Mode::empty())?;
    let names =
        open.iter().map(|entry| entry.map(|e| OsStr::from_bytes(e.file_name().to_bytes()).to_owned()));
    names.filter(|name| !name.as_ref().is_ok_and(|n| n == "." || n == "..")).take(PIECE).collect()
}

fn gone(removed: nix::Result<()>) -> nix::Result<()> {
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}
