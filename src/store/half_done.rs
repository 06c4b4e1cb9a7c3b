//! A checkout that was killed half way, before it wrote its index: files that are the outcome's already, or
//! the beginning of it, and would be taken for the user's own changes.
//!
//! Only a path that the outcome changes, whose index entry is still the old one, and whose file is the new
//! content or a part of it from its start, is taken on: nothing is in it that will not be there. Implements K28.

use super::git_calls::{RepoGit, with_value};
use super::git_command::GitCommand;
use super::in_the_way::first_in_the_way;
use super::{StoreError, io_error};
use crate::protocol::id::ObjectId;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One file that an outcome adds or changes.
struct Change {
    /// Mode and blob before; `None` where it is new.
    old: Option<(String, String)>,
    mode: String,
    blob: String,
    path: Vec<u8>,
}

impl RepoGit {
    /// Takes on, in a copy of the index, what an earlier checkout from `old` to `new` had written already. True
    /// where that was anything.
    pub(super) fn take_on(
        &self,
        git_dir: &Path,
        dir: &Path,
        index: &Path,
        (old, new): (ObjectId, ObjectId),
    ) -> Result<bool, StoreError> {
        let here = || {
            let command = self.git.command(git_dir).global([with_value("--work-tree=", dir)]).in_dir(dir);
            command.env("GIT_INDEX_FILE", index)
        };
        let (mut arrived, mut begun) = (Vec::new(), false);
        for change in self.changes(old, new)? {
            let path = OsStr::from_bytes(&change.path);
            let file = dir.join(path);
            if first_in_the_way(dir, &change.path).as_deref() != Some(path)
                || !file.symlink_metadata().is_ok_and(|m| m.is_file())
                || staged(here(), path)? != change.old
            {
                continue;
            }
            let hashed = here().verb("hash-object").args([OsStr::new("--"), path]).ok()?;
            if hashed.trim_ascii() == change.blob.as_bytes() {
                arrived.extend_from_slice(format!("{} {}\t", change.mode, change.blob).as_bytes());
                arrived.extend_from_slice(&change.path);
                arrived.push(0);
            } else {
                let mut name = OsString::from(format!("{new}:"));
                name.push(path);
                let whole = here().verb("cat-file").args([OsStr::new("--filters"), &name]).ok()?;
                let part = std::fs::read(&file).map_err(io_error("read", &file))?;
                if whole.starts_with(&part) {
                    std::fs::remove_file(&file).map_err(io_error("remove", &file))?;
                    begun = true;
                }
            }
        }
        let some = !arrived.is_empty();
        if some {
            here().verb("update-index").args(["-z", "--index-info"]).stdin(arrived).ok()?;
            self.refresh_index(git_dir, dir, index)?;
        }
        Ok(some || begun)
    }

    fn changes(&self, old: ObjectId, new: ObjectId) -> Result<Vec<Change>, StoreError> {
        let (old, new) = (old.to_string(), new.to_string());
        let args = ["-r", "-z", "--no-renames", "--raw", "--no-abbrev", &old, &new];
        let printed = self.here().verb("diff-tree").args(args).ok()?;
        let mut fields = printed.split(|b| *b == 0);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head).into_owned();
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            if let [old_mode, mode, old_blob, blob, _] = words[..]
                && mode.starts_with("100")
            {
                let old = (old_mode != "000000").then(|| (old_mode.to_owned(), old_blob.to_owned()));
                changes.push(Change {
                    old,
                    mode: mode.to_owned(),
                    blob: blob.to_owned(),
                    path: path.to_vec(),
                });
            }
        }
        Ok(changes)
    }
}

/// Mode and blob of a path in the index; `None` where it is not there.
fn staged(git: GitCommand, path: &OsStr) -> Result<Option<(String, String)>, StoreError> {
    let listed = git.global(["--literal-pathspecs"]).verb("ls-files");
    let listed = listed.args([OsStr::new("-s"), OsStr::new("-z"), OsStr::new("--"), path]).ok()?;
    let line = String::from_utf8_lossy(&listed).into_owned();
    let mut words = line.split([' ', '\t']);
    Ok(words.next().filter(|mode| !mode.is_empty()).map(str::to_owned).zip(words.next().map(str::to_owned)))
}
