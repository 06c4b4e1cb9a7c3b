//! The file operations of this room: each is whole or not there, and synced where the root says so.
//!
//! Every operation that changes a file goes through here, one system call a step, so that a test can end the
//! process between any two of them. A file that is written whole is written aside below
//! `.agentxchain/transactions/` and renamed in; what a killed process left aside is removed by the next
//! operation. Implements G1.

use super::root::Root;
use super::{GovernedError, io};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};

/// Where journals are, and what is being written.
pub(super) const TRANSACTIONS: &str = ".agentxchain/transactions";
/// How the name of a file that is being written ends.
const ASIDE: &str = ".aside";

/// The next file operation: a test may end the process here.
#[inline]
fn step() {
    #[cfg(test)]
    super::crash::step();
}

/// Refuses a path that is not below the root or leads through a symbolic link. Who pushes a branch decides
/// what its files hold and where its links lead: nothing else of the account is theirs to write.
pub(super) fn within(root: &Root, path: &Path) -> Result<(), GovernedError> {
    let outside = || GovernedError::Outside { path: path.to_owned() };
    let below = path.strip_prefix(root.folder()).map_err(|_| outside())?;
    let mut place = root.folder().to_owned();
    for part in below.components() {
        let Component::Normal(name) = part else { return Err(outside()) };
        place.push(name);
        if place.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(outside());
        }
    }
    Ok(())
}

/// The same for what is replaced or removed as a whole: it may be a link itself.
fn within_folder(root: &Root, path: &Path) -> Result<(), GovernedError> {
    match path.parent() {
        Some(folder) if path.file_name().is_some() => within(root, folder),
        Some(_) | None => Err(GovernedError::Outside { path: path.to_owned() }),
    }
}

/// Creates the folders of a path, and syncs them into their parents.
pub(super) fn make_dirs(root: &Root, folder: &Path) -> Result<(), GovernedError> {
    within(root, folder)?;
    make_all(root, folder)
}

fn make_all(root: &Root, folder: &Path) -> Result<(), GovernedError> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_all(root, parent)?;
    }
    step();
    match fs::create_dir(folder) {
        Ok(()) => sync_parent(root, folder),
        Err(e) if e.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(e) => Err(io("create", folder)(e)),
    }
}

/// Syncs the folder that holds this path.
pub(super) fn sync_parent(root: &Root, path: &Path) -> Result<(), GovernedError> {
    match path.parent() {
        Some(folder) if root.syncs() => {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            step();
            File::open(folder).and_then(|f| f.sync_all()).map_err(io("sync", folder))
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

/// Writes the bytes; a test has them written in several pieces.
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

/// Writes a whole file: aside, synced, renamed in, its folder synced.
pub(super) fn write_whole(root: &Root, path: &Path, bytes: &[u8]) -> Result<(), GovernedError> {
    let transactions = root.join(TRANSACTIONS);
    make_dirs(root, &transactions)?;
    if let Some(folder) = path.parent() {
        make_dirs(root, folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ASIDE);
    let aside = transactions.join(name);
    within(root, &aside)?;
    step();
    let mut file = File::create(&aside).map_err(io("create", &aside))?;
    write(&mut file, &aside, bytes)?;
    sync(root, &file, &aside)?;
    step();
    fs::rename(&aside, path).map_err(io("write", path))?;
    sync_parent(root, path)
}

/// Writes a whole file that needs no renaming: nobody reads it before its folder is complete.
pub(super) fn write_new(root: &Root, path: &Path, bytes: &[u8]) -> Result<(), GovernedError> {
    within(root, path)?;
    step();
    let mut file = File::create(path).map_err(io("create", path))?;
    write(&mut file, path, bytes)?;
    sync(root, &file, path)
}

/// Removes what a killed process was writing.
pub(super) fn sweep(root: &Root) -> Result<(), GovernedError> {
    let folder = root.join(TRANSACTIONS);
    for name in names(&folder)? {
        if name.ends_with(ASIDE) {
            remove_tree(root, &folder.join(name))?;
        }
    }
    Ok(())
}

/// Appends to a file, creating it where there is none.
pub(super) fn append(root: &Root, path: &Path, text: &str) -> Result<(), GovernedError> {
    within(root, path)?;
    let is_new = !path.exists();
    if is_new && let Some(folder) = path.parent() {
        make_dirs(root, folder)?;
    }
    step();
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(io("open", path))?;
    write(&mut file, path, text.as_bytes())?;
    sync(root, &file, path)?;
    if is_new { sync_parent(root, path) } else { Ok(()) }
}

/// Cuts a file to a length.
pub(super) fn cut(root: &Root, path: &Path, length: u64) -> Result<(), GovernedError> {
    within(root, path)?;
    let file = OpenOptions::new().write(true).open(path).map_err(io("open", path))?;
    step();
    file.set_len(length).map_err(io("cut", path))?;
    sync(root, &file, path)
}

/// A file's length, 0 where there is none, and whether what is appended must begin a new line.
pub(super) fn end(path: &Path) -> Result<(u64, bool), GovernedError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok((0, false)),
        Err(e) => return Err(io("read", path)(e)),
    };
    let length = file.metadata().map_err(io("read", path))?.len();
    if length == 0 {
        return Ok((0, false));
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(io("read", path))?;
    Ok((length, last != *b"\n"))
}

/// A file's bytes from an offset on; empty where there is none.
pub(super) fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>, GovernedError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io("read", path)(e)),
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(io("read", path))?;
    Ok(bytes)
}

/// A file's bytes; `None` where there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, GovernedError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(io("read", path)(e)),
    }
}

/// The names in a folder, sorted; none where there is no folder.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, GovernedError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(e) => return Err(io("list", folder)(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(io("list", folder))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Moves a file; done already where the source is gone.
pub(super) fn rename(root: &Root, from: &Path, to: &Path) -> Result<(), GovernedError> {
    within_folder(root, from)?;
    if let Some(folder) = to.parent() {
        make_dirs(root, folder)?;
    }
    step();
    match fs::rename(from, to) {
        Ok(()) => sync_parent(root, to).and_then(|()| sync_parent(root, from)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(io("move", from)(e)),
    }
}

/// Removes a file; done already where there is none.
pub(super) fn remove_file(root: &Root, path: &Path) -> Result<(), GovernedError> {
    within_folder(root, path)?;
    unlink(path)
}

fn unlink(path: &Path) -> Result<(), GovernedError> {
    step();
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(io("remove", path)(e)),
    }
}

/// Removes a file, or a folder with everything in it; a symbolic link itself, never what it names.
pub(super) fn remove_tree(root: &Root, path: &Path) -> Result<(), GovernedError> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    within_folder(root, path)?;
    remove_below(path, meta.is_dir())?;
    sync_parent(root, path)
}

/// How often a folder is emptied that somebody, such as a worker, writes into at that moment.
const TRIES: usize = 20;

fn remove_below(path: &Path, is_dir: bool) -> Result<(), GovernedError> {
    if !is_dir {
        return unlink(path);
    }
    let mut left = TRIES;
    loop {
        let entries = match fs::read_dir(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(io("list", path))?,
        };
        for entry in entries {
            let entry = entry.map_err(io("list", path))?;
            let is_dir = entry.file_type().map_err(io("read", path))?.is_dir();
            remove_below(&entry.path(), is_dir)?;
        }
        step();
        left -= 1;
        match fs::remove_dir(path) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty && left > 0 => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            removed => return removed.map_err(io("remove", path)),
        }
    }
}
