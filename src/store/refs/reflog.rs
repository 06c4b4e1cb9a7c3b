//! Writes reflog lines as Git writes them, and only where Git would.
//!
//! A line is appended by one `write(2)`. White space in the message is folded as Git folds it, so no message
//! can forge a line. The line is written before the ref's file is renamed into place, as Git does it: so a
//! line alone does not prove an update. A branch that is checked out also gets a line in the `HEAD` reflog of
//! each worktree that has it.
//!
//! Implements K42 (reflog), K45.

use super::files::FilesRefs;
use super::reading::is_absent;
use crate::protocol::id::ObjectId;
use crate::store::{RefName, Signature, StoreError, commit, io_error};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The setting `core.logAllRefUpdates`: which refs get a log where they have none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogRefs {
    /// No new log is created; a ref that has a log keeps getting lines.
    Never,
    /// Branches, remote-tracking branches, notes and `HEAD`.
    Normal,
    /// Every ref.
    Always,
}

impl LogRefs {
    /// Returns the meaning of the setting's value; where it is unset, that depends on whether the repository
    /// is bare.
    pub(crate) fn from_config(value: Option<&[u8]>, bare: bool) -> Self {
        match value.map(<[u8]>::to_ascii_lowercase).as_deref() {
            None if bare => Self::Never,
            None => Self::Normal,
            Some(b"always") => Self::Always,
            Some(b"false" | b"no" | b"off" | b"0" | b"") => Self::Never,
            Some(_) => Self::Normal,
        }
    }

    fn creates_log_of(self, name: &[u8]) -> bool {
        match self {
            Self::Never => false,
            Self::Normal => {
                name == b"HEAD"
                    || [&b"refs/heads/"[..], b"refs/remotes/", b"refs/notes/"]
                        .iter()
                        .any(|p| name.starts_with(p))
            }
            Self::Always => true,
        }
    }
}

/// Returns one reflog line, with its line feed.
pub(crate) fn line(
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    hex_len: usize,
    by: &Signature,
    message: &str,
) -> Vec<u8> {
    let hex = |id: Option<ObjectId>| id.map_or_else(|| "0".repeat(hex_len), |id| id.to_string());
    let mut line = format!("{} {} {}", hex(old), hex(new), commit::person(by));
    let words: Vec<&str> = message
        .split(|c: char| c.is_ascii_whitespace() || c == '\x0b' || c == '\0')
        .filter(|w| !w.is_empty())
        .collect();
    if !words.is_empty() {
        line.push('\t');
        line.push_str(&words.join(" "));
    }
    line.push('\n');
    line.into_bytes()
}

/// Appends the line to the ref's log and to the `HEAD` logs of the worktrees that have it checked out.
pub(crate) fn append(refs: &FilesRefs, name: &RefName, line: &[u8]) -> Result<(), StoreError> {
    let log = log_path(refs.common_dir(), name);
    append_one(refs, &log, refs.log_refs().creates_log_of(name.as_bytes()), line)?;
    if !name.as_bytes().starts_with(b"refs/heads/") {
        return Ok(());
    }
    for folder in worktree_folders(refs.common_dir())? {
        if head_is(&folder, name) {
            append_one(refs, &folder.join("logs/HEAD"), refs.log_refs().creates_log_of(b"HEAD"), line)?;
        }
    }
    Ok(())
}

/// Removes the log of a ref that is deleted, as Git does.
pub(crate) fn remove(common_dir: &Path, name: &RefName) -> Result<(), StoreError> {
    let log = log_path(common_dir, name);
    match std::fs::remove_file(&log) {
        Ok(()) => Ok(()),
        Err(e) if is_absent(&e) => Ok(()),
        Err(e) => Err(io_error("remove", &log)(e)),
    }
}

fn log_path(common_dir: &Path, name: &RefName) -> PathBuf {
    common_dir.join("logs").join(OsStr::from_bytes(name.as_bytes()))
}

fn append_one(refs: &FilesRefs, log: &Path, create: bool, line: &[u8]) -> Result<(), StoreError> {
    let open = || OpenOptions::new().append(true).create(create).open(log);
    let new = create && !log.exists();
    if new && let Some(parent) = log.parent() {
        refs.make_dirs(parent)?;
    }
    let mut file = match open() {
        Ok(file) => file,
        Err(e) if is_absent(&e) && !create => return Ok(()),
        // The log's path is a folder: a deleted ref `<name>/x` left empty folders behind.
        Err(e) if e.kind() == ErrorKind::IsADirectory => {
            super::files::remove_empty_dirs(log);
            match open() {
                Ok(file) => file,
                Err(e) if !create && is_absent(&e) => return Ok(()),
                Err(e) => return Err(io_error("open", log)(e)),
            }
        }
        Err(e) => return Err(io_error("open", log)(e)),
    };
    if new {
        refs.shared().adjust(log)?;
    }
    file.write_all(line).map_err(io_error("append to", log))
}

/// Returns the Git directories of all worktrees: the main one's, and those of the linked ones.
fn worktree_folders(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut folders = vec![common_dir.to_owned()];
    let linked = common_dir.join("worktrees");
    match std::fs::read_dir(&linked) {
        Ok(entries) => folders.extend(entries.filter_map(|e| Some(e.ok()?.path()))),
        Err(e) if is_absent(&e) => {}
        Err(e) => return Err(io_error("list", &linked)(e)),
    }
    Ok(folders)
}

fn head_is(folder: &Path, name: &RefName) -> bool {
    let Ok(content) = crate::store::read_plain(&folder.join("HEAD"), 64 << 10) else { return false };
    super::reading::target_of(&content).is_some_and(|target| target == *name)
}
