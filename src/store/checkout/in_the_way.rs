//! Finds files of the user's where an outcome would write, and where Git itself would not object.
//!
//! `read-tree -m -u` looks at tracked files only: it overwrites ignored files and files in repositories
//! inside the working tree, and removes such a repository whole where a file takes its place. So every path
//! that the outcome writes is looked at, and what exists there must be in the index. Implements K28.

use crate::protocol::id::ObjectId;
use crate::store::StoreError;
use crate::store::git::calls::RepoGit;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The mode of a submodule: a repository inside the working tree.
const GITLINK: &[u8] = b"160000";

/// One path that an outcome writes.
struct Written<'a> {
    path: &'a [u8],
    added: bool,
    /// True where the path is a repository inside the working tree before the outcome, and not afterwards.
    was_gitlink: bool,
}

impl RepoGit {
    /// Describes what is in the way in a working tree with this index; `None` where nothing is.
    pub(crate) fn untracked_in_the_way(
        &self,
        (git_dir, dir, index): (&Path, &Path, &Path),
        (old, new): (ObjectId, ObjectId),
    ) -> Result<Option<String>, StoreError> {
        let (old, new) = (old.to_string(), new.to_string());
        let args = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AMT", &old, &new];
        let raw = self.here().verb("diff-tree").args(args).ok()?;
        let mut standing = BTreeSet::new();
        for written in written(&raw) {
            let path = OsStr::from_bytes(written.path);
            if written.was_gitlink && !is_empty(&dir.join(path)) {
                return Ok(Some(format!("repository '{}' would be removed", path.to_string_lossy())));
            }
            // Git itself looks at a tracked file at the path, but not at a file that took the
            // place of a folder above it.
            standing
                .extend(first_in_the_way(dir, written.path).filter(|stands| written.added || stands != path));
        }
        let standing: Vec<OsString> = standing.into_iter().collect();
        let mut found = Vec::new();
        // The arguments of one child are limited.
        for some in standing.chunks(500) {
            let command = self.in_tree(git_dir, dir).global(["--literal-pathspecs"]).verb("ls-files");
            let command = command.env("GIT_INDEX_FILE", index);
            let listed = command.args(["--cached", "-z", "--"]).args(some).ok()?;
            let tracked: HashSet<&[u8]> = listed.split(|b| *b == 0).collect();
            some.iter().for_each(|path| untracked(dir, path.as_bytes(), &tracked, &mut found));
        }
        let more = match found.len() {
            0 => return Ok(None),
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        Ok(Some(format!("untracked '{}'{more} would be overwritten", String::from_utf8_lossy(&found[0]))))
    }
}

/// Parses the entries of `diff-tree --raw -z`: `:<mode> <mode> <id> <id> <status>`, NUL, path, NUL.
fn written(raw: &[u8]) -> impl Iterator<Item = Written<'_>> {
    let mut fields = raw.split(|b| *b == 0);
    std::iter::from_fn(move || {
        let (head, path) = (fields.next()?.strip_prefix(b":")?, fields.next()?);
        let mut words = head.split(|b| *b == b' ');
        let (old, new) = (words.next()?, words.next()?);
        let was_gitlink = old == GITLINK && new != GITLINK;
        Some(Written { path, added: head.last() == Some(&b'A'), was_gitlink })
    })
}

/// Adds to `found` every file at or below a path that the index does not have.
fn untracked(dir: &Path, path: &[u8], tracked: &HashSet<&[u8]>, found: &mut Vec<Vec<u8>>) {
    if tracked.contains(path) {
        return;
    }
    let here = dir.join(OsStr::from_bytes(path));
    if !here.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return found.push(path.to_owned());
    }
    for entry in std::fs::read_dir(here).into_iter().flatten().flatten() {
        untracked(dir, &[path, b"/", entry.file_name().as_bytes()].concat(), tracked, found);
    }
}

/// True for a folder without anything in it, and for what is no folder.
fn is_empty(folder: &Path) -> bool {
    let is_folder = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    !is_folder || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Returns what stands in a working tree where this path would be written: the path itself, or a file where
/// the path needs a folder; `None` where nothing does.
pub(crate) fn first_in_the_way(dir: &Path, path: &[u8]) -> Option<OsString> {
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| i).chain([path.len()]);
    for end in ends {
        let part = OsStr::from_bytes(&path[..end]);
        let meta = dir.join(part).symlink_metadata().ok()?;
        if !meta.is_dir() || end == path.len() {
            return Some(part.to_owned());
        }
    }
    None
}
