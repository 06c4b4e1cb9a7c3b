//! Puts a marked block into a shell hook, and takes it out again byte for byte.
//!
//! The block stands after the first line, which names the shell. A hook that holds nothing but our block was
//! made by us, and is deleted with it. Implements K41 (older Git).

use crate::store::disk::{Shared, write_beside};
use crate::store::{StoreError, io_error};
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const BEGIN: &[u8] = b"# >>> aynig";
const END: &[u8] = b"# <<< aynig";

/// What became of a hook file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Nothing,
    /// The file was written.
    Written,
    /// The file held nothing but the block, and was deleted.
    Removed,
}

/// Reads a hook file, or the file that a link leads to; `None` where there is none, as in a `core.hooksPath` that is no
/// folder, or where something else than a file is.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match path.metadata().and_then(|meta| meta.is_file().then(|| std::fs::read(path)).transpose()) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        read => read.map_err(io_error("read", path)),
    }
}

/// Returns the block's place, as a range of bytes that covers whole lines.
fn range(content: &[u8]) -> Option<std::ops::Range<usize>> {
    let starts = |at: usize, mark: &[u8]| content[at..].starts_with(mark);
    let lines = || {
        std::iter::once(0).chain(content.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1))
    };
    let begin = lines().find(|at| starts(*at, BEGIN))?;
    let end = lines().find(|at| *at > begin && starts(*at, END))?;
    let rest = content[end..].iter().position(|b| *b == b'\n');
    Some(begin..rest.map_or(content.len(), |n| end + n + 1))
}

/// True where a hook holds our block.
pub(super) fn has(content: &[u8]) -> bool {
    range(content).is_some()
}

/// Returns the block within one of our own whole scripts.
pub(super) fn block_of(script: &[u8]) -> &[u8] {
    range(script).map_or(script, |range| &script[range])
}

/// Returns the program that our block calls first.
pub(super) fn program(content: &[u8]) -> Option<PathBuf> {
    let block = std::str::from_utf8(block_of(content)).ok()?;
    let after = block.split("[ -x ").nth(1)?.split(" ]; then").next()?;
    Some(PathBuf::from(shlex::split(after)?.into_iter().next()?))
}

/// True where a script's first line names a shell that runs POSIX shell code.
pub(super) fn is_shell(content: &[u8]) -> bool {
    let first = content.split(|b| *b == b'\n').next().unwrap_or_default();
    let Some(line) = first.strip_prefix(b"#!").and_then(|l| std::str::from_utf8(l).ok()) else {
        return false;
    };
    let mut words = line.split([' ', '\t']).filter(|w| !w.is_empty());
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut shell = words.next().map(base).unwrap_or_default();
    if shell == "env" {
        shell = words.find(|w| !w.starts_with('-')).map(base).unwrap_or_default();
    }
    // A name that ends in a carriage return matches none of these, and the system finds no such shell either.
    matches!(shell.as_str(), "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh")
}

/// Puts the block of `script` into a hook, or creates the hook where it is missing. A hook that is there keeps its
/// mode.
pub(super) fn insert(path: &Path, script: &[u8], shared: Shared) -> Result<Edit, StoreError> {
    let Some(old) = read(path)? else {
        if let Some(folder) = path.parent() {
            shared.make(folder)?;
        }
        return create(path, script, shared);
    };
    let mut new = old.clone();
    let block = block_of(script);
    match range(&old) {
        Some(range) => {
            let unended = !old[range.clone()].ends_with(b"\n");
            let block = if unended { block.strip_suffix(b"\n").unwrap_or(block) } else { block };
            drop(new.splice(range, block.iter().copied()));
        }
        None => match old.iter().position(|b| *b == b'\n') {
            Some(end) => drop(new.splice(end + 1..end + 1, block.iter().copied())),
            None => {
                // A first line without a line feed gets one, and the block's last line goes without. By that
                // `remove` knows that it must take the added line feed out again.
                new.push(b'\n');
                new.extend_from_slice(block.strip_suffix(b"\n").unwrap_or(block));
            }
        },
    }
    if new == old { Ok(Edit::Nothing) } else { rewrite(path, &new) }
}

/// Writes a whole script, which anyone may execute whom the umask, or the setting of a shared repository, lets read it.
pub(super) fn create(path: &Path, script: &[u8], shared: Shared) -> Result<Edit, StoreError> {
    write(path, script, |aside| {
        let meta = aside.metadata().map_err(io_error("read", path))?;
        // Git ignores a hook that its owner may not execute.
        let executable = Permissions::from_mode(meta.permissions().mode() | 0o100);
        std::fs::set_permissions(aside, executable).map_err(io_error("change the mode of", path))?;
        shared.adjust(aside)
    })
}

/// Takes the block out of a hook again, and deletes a hook that holds nothing else.
pub(super) fn remove(path: &Path) -> Result<Edit, StoreError> {
    remove_asides(path);
    let Some(old) = read(path)? else { return Ok(Edit::Nothing) };
    let Some(range) = range(&old) else { return Ok(Edit::Nothing) };
    let unended = range.end == old.len() && !old.ends_with(b"\n");
    let mut new = old.clone();
    let _ = new.splice(range.start - usize::from(unended && range.start > 0)..range.end, []);
    if new == b"#!/bin/sh\n" && !unended {
        std::fs::remove_file(path).map_err(io_error("remove", path))?;
        return Ok(Edit::Removed);
    }
    rewrite(path, &new)
}

/// Returns the beginning of the path that a hook is written to before it is renamed into place; what follows is the
/// process's id.
fn aside(path: &Path) -> OsString {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".aynig-new.");
    aside
}

/// Removes what crashes left beside a hook.
fn remove_asides(path: &Path) {
    let aside = aside(path);
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let (path, aside) = (entry.path(), aside.as_bytes());
        let id = path.as_os_str().as_bytes().strip_prefix(aside);
        if id.is_some_and(|id| id.iter().all(u8::is_ascii_digit)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes a hook anew with the mode that it has.
fn rewrite(path: &Path, content: &[u8]) -> Result<Edit, StoreError> {
    let permissions = path.metadata().map_err(io_error("read", path))?.permissions();
    write(path, content, |aside| {
        std::fs::set_permissions(aside, permissions).map_err(io_error("change the mode of", path))
    })
}

/// Writes a script beside its place, gives it its mode, and renames it in: Git never runs half of it.
fn write(
    path: &Path,
    content: &[u8],
    give_mode: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<Edit, StoreError> {
    // Another process may write the same hook.
    let mut aside = aside(path);
    aside.push(std::process::id().to_string());
    write_beside(path, Path::new(&aside), content, 0o777, give_mode)?;
    Ok(Edit::Written)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &[u8] = b"#!/bin/sh\n# >>> aynig: x\necho us\n# <<< aynig\n";

    /// K41
    #[test]
    fn what_was_inserted_is_removed_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook");
        for before in
            ["#!/bin/sh\necho me\n", "#!/bin/bash", "#!/bin/sh\r\nx\r\n", "#!/usr/bin/env bash\n\nexec x"]
        {
            std::fs::write(&path, before).unwrap();
            assert_eq!(insert(&path, SCRIPT, Shared::Umask).unwrap(), Edit::Written);
            assert!(has(&std::fs::read(&path).unwrap()));
            assert_eq!(insert(&path, SCRIPT, Shared::Umask).unwrap(), Edit::Nothing);
            remove(&path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), before.as_bytes(), "{before:?}");
        }
        std::fs::remove_file(&path).unwrap();
        insert(&path, SCRIPT, Shared::Umask).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), SCRIPT);
        assert_eq!(remove(&path).unwrap(), Edit::Removed);
        assert!(!path.exists());
    }

    #[test]
    fn shells_are_told_from_others() {
        for yes in
            ["#!/bin/sh\n", "#! /usr/bin/env bash\n", "#!/usr/bin/env -S sh -e\n", "#!/usr/bin/dash -e\n"]
        {
            assert!(is_shell(yes.as_bytes()), "{yes:?}");
        }
        for no in ["", "echo\n", "#!/usr/bin/python3\n", "#!/bin/sh\r\n", "#!/usr/bin/env node\n", "\x7fELF"]
        {
            assert!(!is_shell(no.as_bytes()), "{no:?}");
        }
    }
}
