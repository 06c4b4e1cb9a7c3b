//! The file operations of governed runs: each is done as a whole or not at all, and synced where the root
//! says so.
//!
//! The user who pushes a branch, or the worker of a turn, decides what its files are and where its links
//! lead. So every file below the root is opened by this module, through the one opener that follows no link,
//! waits for no fifo and reads no more than a given limit ([`beneath`]). Every operation that changes a file
//! is one system call per step, so that a test can end the process between any two of them. A file that is
//! written whole is first written aside, below `.agentxchain/transactions/`, and then renamed into place; the
//! next operation removes what a killed process left aside. Implements G1, G13.

use super::error::not_text;
use super::root::Root;
use super::{GovernedError, io};
pub(crate) use crate::supervisor::beneath::Kind;
use crate::supervisor::beneath::{self, BeneathError, Refusal, found};
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder of journals, and of files that are being written.
pub(super) const TRANSACTIONS: &str = ".agentxchain/transactions";
/// The end of the name of a file that is being written.
const ASIDE: &str = ".aside";
/// The most bytes of a file that is read whole.
const FILE_MAX: u64 = 256 << 20;
/// The most entries of a folder that is listed.
const ENTRIES_MAX: usize = 100_000;

/// Marks where the next file operation begins: a test may end the process at this point.
#[inline]
fn step() {
    #[cfg(test)]
    super::crash::step();
}

/// Opens the root, and returns a path's place below it.
fn below<'p>(root: &Root, path: &'p Path) -> Result<(beneath::Root, &'p Path), GovernedError> {
    let outside = |_| GovernedError::Outside { path: path.to_owned() };
    let relative = path.strip_prefix(root.folder()).map_err(outside)?;
    Ok((beneath::Root::open(root.folder()).map_err(cannot)?, relative))
}

fn cannot(error: BeneathError) -> GovernedError {
    match error {
        BeneathError::Refused { why: Refusal::Outside | Refusal::Link, path, .. } => {
            GovernedError::Outside { path }
        }
        BeneathError::Refused { what, ref path, .. } | BeneathError::Io { what, ref path, .. } => {
            io(what, &path.clone())(error.into())
        }
    }
}

/// Makes `None` of the error that something does not exist, or that a folder on its path is not a folder.
fn there<T>(result: Result<T, BeneathError>) -> Result<Option<T>, GovernedError> {
    match result {
        Err(error) if error.refusal() == Some(Refusal::NotFolder) => Ok(None),
        result => found(result).map_err(cannot),
    }
}

/// Returns what stands at a path; a link stands for itself. `None` where nothing does.
pub(crate) fn kind(root: &Root, path: &Path) -> Result<Option<Kind>, GovernedError> {
    let (open, path) = below(root, path)?;
    Ok(there(open.kind(path))?.flatten())
}

/// Creates the folders of a path, and syncs them into their parents.
pub(super) fn make_dirs(root: &Root, folder: &Path) -> Result<(), GovernedError> {
    let (open, path) = below(root, folder)?;
    let mut made = PathBuf::new();
    for part in path.components() {
        made.push(part);
        if open.kind(&made).map_err(cannot)?.is_none() {
            step();
            open.create_dirs(&made, 0o777).map_err(cannot)?;
            sync_parent(root, &root.join(&made))?;
        }
    }
    // Checks also the folders that existed already: each must be a folder, not a link.
    open.create_dirs(path, 0o777).map_err(cannot)
}

/// Syncs the folder that holds this path.
pub(super) fn sync_parent(root: &Root, path: &Path) -> Result<(), GovernedError> {
    match path.parent() {
        Some(folder) if root.syncs() => {
            let (open, folder) = below(root, folder)?;
            step();
            open.sync(folder).map_err(cannot)
        }
        Some(_) | None => Ok(()),
    }
}

fn sync(root: &Root, file: &File, path: &Path) -> Result<(), GovernedError> {
    if root.syncs() {
        step();
        file.sync_data().map_err(io("sync", path))?;
    }
    Ok(())
}

/// Writes the bytes; in tests in several pieces, so that the process can end between them.
fn write(file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), GovernedError> {
    #[cfg(test)]
    let piece = (bytes.len() / 3).max(1);
    #[cfg(not(test))]
    let piece = bytes.len().max(1);
    for piece in bytes.chunks(piece) {
        step();
        file.write_all(piece).map_err(io("write", path))?;
    }
    Ok(())
}

/// Writes a whole file: writes it aside, syncs it, renames it into place and syncs its folder.
pub(crate) fn write_whole(root: &Root, path: &Path, bytes: &[u8]) -> Result<(), GovernedError> {
    let transactions = root.join(TRANSACTIONS);
    make_dirs(root, &transactions)?;
    if let Some(folder) = path.parent() {
        make_dirs(root, folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ASIDE);
    let aside = transactions.join(name);
    write_new(root, &aside, bytes)?;
    step();
    let (open, to) = below(root, path)?;
    let (_, from) = below(root, &aside)?;
    open.rename(from, to).map_err(cannot)?;
    sync_parent(root, path)
}

/// Writes a whole file without renaming it: for files that are read only once their folder is complete.
pub(super) fn write_new(root: &Root, path: &Path, bytes: &[u8]) -> Result<(), GovernedError> {
    let (open, name) = below(root, path)?;
    there(open.remove(name))?;
    step();
    let mut file = open.create_new(name, 0o666).map_err(cannot)?;
    write(&mut file, path, bytes)?;
    sync(root, &file, path)
}

/// Writes a file of this mode, its folders too, unless the file exists: then it stays as it is. True where it was
/// written.
pub(crate) fn scaffold(root: &Root, path: &Path, content: &str, mode: u32) -> Result<bool, GovernedError> {
    if let Some(folder) = path.parent() {
        make_dirs(root, folder)?;
    }
    let (open, name) = below(root, path)?;
    match open.create_new(name, mode) {
        Ok(mut file) => write(&mut file, path, content.as_bytes()).map(|()| true),
        Err(error) if error.is_there() => Ok(false),
        Err(error) => Err(cannot(error)),
    }
}

/// Removes the files that a killed process was writing.
pub(super) fn sweep(root: &Root) -> Result<(), GovernedError> {
    let folder = root.join(TRANSACTIONS);
    for name in names(root, &folder)? {
        if name.as_encoded_bytes().ends_with(ASIDE.as_bytes()) {
            remove_tree(root, &folder.join(name))?;
        }
    }
    Ok(())
}

/// Appends to a file; creates it where there is none.
pub(crate) fn append(root: &Root, path: &Path, text: &str) -> Result<(), GovernedError> {
    let is_new = kind(root, path)?.is_none();
    if is_new && let Some(folder) = path.parent() {
        make_dirs(root, folder)?;
    }
    step();
    let (open, name) = below(root, path)?;
    let mut file = open.append(name, 0o666).map_err(cannot)?;
    write(&mut file, path, text.as_bytes())?;
    sync(root, &file, path)?;
    if is_new { sync_parent(root, path) } else { Ok(()) }
}

/// Cuts a file to a length.
pub(super) fn cut(root: &Root, path: &Path, length: u64) -> Result<(), GovernedError> {
    let file = open_lock(root, path)?;
    step();
    file.set_len(length).map_err(io("cut", path))?;
    sync(root, &file, path)
}

/// Opens a file for reading and writing; creates it where there is none.
pub(super) fn open_lock(root: &Root, path: &Path) -> Result<File, GovernedError> {
    let (open, name) = below(root, path)?;
    open.lock_file(name, 0o666).map_err(cannot)
}

/// Opens a file for reading; `None` where there is none.
pub(super) fn open(root: &Root, path: &Path) -> Result<Option<File>, GovernedError> {
    let (open, name) = below(root, path)?;
    there(open.file(name))
}

/// Returns the target of a symbolic link, as the link has it.
pub(super) fn link(root: &Root, path: &Path) -> Result<std::ffi::OsString, GovernedError> {
    let (open, name) = below(root, path)?;
    open.link(name).map_err(cannot)
}

/// True where this path still names the opened file.
pub(super) fn is_same(root: &Root, path: &Path, opened: &File) -> bool {
    let of = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let named = open(root, path).ok().flatten().and_then(|file| of(&file));
    named.is_some() && named == of(opened)
}

/// Returns a file's length, 0 where there is none, and whether appended text must begin a new line.
pub(crate) fn end(root: &Root, path: &Path) -> Result<(u64, bool), GovernedError> {
    let Some(mut file) = open(root, path)? else { return Ok((0, false)) };
    let length = file.metadata().map_err(io("read", path))?.len();
    if length == 0 {
        return Ok((0, false));
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(io("read", path))?;
    Ok((length, last != *b"\n"))
}

/// Reads a file's bytes; `None` where there is none.
pub(crate) fn read(root: &Root, path: &Path) -> Result<Option<Vec<u8>>, GovernedError> {
    read_within(root, path, FILE_MAX)
}

/// Reads a file's bytes, `None` where there is none; a file of more than `limit` bytes is an error.
pub(super) fn read_within(root: &Root, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, GovernedError> {
    let (open, name) = below(root, path)?;
    there(open.read(name, limit))
}

/// Returns the names in a folder, sorted; none where there is no folder.
pub(crate) fn names(root: &Root, folder: &Path) -> Result<Vec<OsString>, GovernedError> {
    let (open, path) = below(root, folder)?;
    let entries = there(open.list(path, ENTRIES_MAX))?.unwrap_or_default();
    Ok(entries.into_iter().map(|entry| entry.name).collect())
}

/// Returns the names in a folder as text; a name that is no text is refused.
pub(crate) fn text_names(root: &Root, folder: &Path) -> Result<Vec<String>, GovernedError> {
    let text = |name: OsString| name.into_string().map_err(|name| not_text(&folder.join(name)));
    names(root, folder)?.into_iter().map(text).collect()
}

/// Moves a file. Does nothing where the source is gone: the move was done already.
pub(super) fn rename(root: &Root, from: &Path, to: &Path) -> Result<(), GovernedError> {
    if kind(root, from)?.is_none() {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        make_dirs(root, folder)?;
    }
    step();
    let (open, old) = below(root, from)?;
    let (_, new) = below(root, to)?;
    match there(open.rename(old, new))? {
        Some(()) => sync_parent(root, to).and_then(|()| sync_parent(root, from)),
        None => Ok(()),
    }
}

/// Removes a file. Does nothing where there is none: the removal was done already.
pub(super) fn remove_file(root: &Root, path: &Path) -> Result<(), GovernedError> {
    let (open, name) = below(root, path)?;
    step();
    there(open.remove(name)).map(drop)
}

/// Removes a lock file. This is not a step of an operation, at which a test could end the process.
pub(super) fn let_go(root: &Root, path: &Path) -> Result<(), GovernedError> {
    let (open, name) = below(root, path)?;
    there(open.remove(name)).map(drop)
}

/// Removes a file, or a folder with everything in it; of a symbolic link the link itself, never its target.
pub(super) fn remove_tree(root: &Root, path: &Path) -> Result<(), GovernedError> {
    let (open, name) = below(root, path)?;
    let Some(kind) = there(open.kind(name))?.flatten() else { return Ok(()) };
    remove_below(&open, name, kind)?;
    sync_parent(root, path)
}

/// How often a folder is emptied while another process, such as a worker, still writes into it.
const TRIES: usize = 20;

fn remove_below(open: &beneath::Root, path: &Path, kind: Kind) -> Result<(), GovernedError> {
    if kind != Kind::Folder {
        step();
        return there(open.remove(path)).map(drop);
    }
    let mut left = TRIES;
    loop {
        let Some(entries) = there(open.list(path, ENTRIES_MAX))? else { return Ok(()) };
        for entry in entries {
            remove_below(open, &path.join(entry.name), entry.kind)?;
        }
        step();
        left -= 1;
        match open.remove_dir(path) {
            Err(error) if error.io_kind() == Some(ErrorKind::DirectoryNotEmpty) && left > 0 => {}
            removed => return there(removed).map(drop),
        }
    }
}
