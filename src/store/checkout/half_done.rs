//! Recovery from an interrupted checkout: what it had written already would be taken for the user's changes.
//!
//! A path counts as written by the interrupted checkout only where the outcome changes it, its index entry is
//! still the old one, and its file has the new content, has a part of the new content from its start, or is
//! gone. Such a file has nothing in it that the finished checkout would not have. From there the checkout is
//! continued, or what it did is put back. Where an earlier process had begun to put its work back, a path counts as
//! put back where its file has the old content, has a part of the old content from its start, or is gone; its index
//! entry may be the old one or the new one then. Implements K28.

use super::in_the_way::first_in_the_way;
use super::index_lock::{Copy, IndexLock};
use super::stage::{Held, Stage};
use crate::protocol::id::ObjectId;
use crate::store::git::calls::RepoGit;
use crate::store::git::command::GitCommand;
use crate::store::git::merge::{CheckedOut, files_with_something_below};
use crate::store::{StoreError, io_error};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Mode and blob id of a path.
type Entry = (String, String);

/// One path that an outcome adds, changes or removes.
struct Change {
    /// The entry before; `None` where the path is new.
    old: Option<Entry>,
    /// The entry after; `None` where the path is removed.
    new: Option<Entry>,
    path: Vec<u8>,
}

/// What an earlier checkout was found to have written.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// True where the copy of the index has some of the outcome, from before or since [`RepoGit::take_on`].
    some: bool,
    /// Paths whose file was gone, or was half written and has been removed. The copy of the index
    /// still has their old entries.
    begun: Vec<Vec<u8>>,
}

impl Taken {
    /// True where the earlier checkout had written anything.
    pub(crate) fn is_any(&self) -> bool {
        self.some || !self.begun.is_empty()
    }
}

impl RepoGit {
    /// Enters into a copy of the index what an earlier checkout from `old` to `new` had written already, and
    /// removes the files that it had written in part. Where that checkout was being put back to `to`, enters also the
    /// paths that were put back already, and removes the files that were put back in part.
    pub(super) fn take_on(
        &self,
        (git_dir, dir, index): (&Path, &Path, &Path),
        (old, new): (ObjectId, ObjectId),
        to: ObjectId,
        stage: Stage,
    ) -> Result<Taken, StoreError> {
        let here = || self.in_tree(git_dir, dir).env("GIT_INDEX_FILE", index);
        let (staged, back) = (staged(here())?, stage == Stage::Back);
        // What is put back to something else than before has no entry of before.
        let other = if back && to != old { self.changes(old, to)? } else { Vec::new() };
        let other: HashSet<Vec<u8>> = other.into_iter().map(|change| change.path).collect();
        let (mut taken, mut under_old, mut under_new) = (Taken::default(), Vec::new(), Vec::new());
        for change in self.changes(old, new)? {
            let now = staged.get(&change.path);
            // A file that a sparse checkout leaves out is not missing.
            let left_out = now.is_some_and(|now| now.left_out);
            let now = now.map(|now| &now.entry);
            let is_new = now == change.new.as_ref();
            taken.some |= is_new;
            if now == change.old.as_ref() {
                under_old.push((change, left_out));
            } else if back && is_new && !left_out && !other.contains(&change.path) {
                under_new.push(change);
            }
        }
        let mut search = Search { here: &here, dir, old, new, back, taken, info: Vec::new() };
        search.under_old(under_old)?;
        search.under_new(under_new)?;
        let Search { mut taken, info, .. } = search;
        if !info.is_empty() {
            taken.some = true;
            here().verb("update-index").args(["-z", "--index-info"]).stdin(info).ok()?;
            self.refresh_index(git_dir, dir, index)?;
        }
        Ok(taken)
    }

    /// Returns the tree from which a merge to `to` starts, in an index that has a part of `to` already. It is `from`;
    /// where a file and a folder take each other's place, it is `from` with that part of `to`. Git refuses a merge from
    /// a tree with a path that the index lacks where anything has the path's place in the working tree: there it would
    /// take the new file, or the new folder, for the user's.
    pub(super) fn start(
        &self,
        (git_dir, dir, index): (&Path, &Path, &Path),
        (from, to): (ObjectId, ObjectId),
    ) -> Result<ObjectId, StoreError> {
        let changes = self.changes(from, to)?;
        let paths: BTreeSet<&[u8]> = changes.iter().map(|change| &*change.path).collect();
        if files_with_something_below(&paths).is_empty() {
            return Ok(from);
        }
        let staged = staged(self.in_tree(git_dir, dir).env("GIT_INDEX_FILE", index))?;
        let is_done =
            |change: &&Change| staged.get(&change.path).map(|now| &now.entry) == change.new.as_ref();
        // What is removed comes first, since the index can't have a path below a file.
        let (added, removed): (Vec<_>, Vec<_>) =
            changes.iter().filter(is_done).partition(|change| change.new.is_some());
        let info: Vec<u8> =
            removed.into_iter().chain(added).flat_map(|change| change.info(&change.new)).collect();
        self.in_scratch_index(|scratch| {
            let here = || self.here().env("GIT_INDEX_FILE", scratch);
            here().verb("read-tree").args([from.to_string()]).ok()?;
            here().verb("update-index").args(["-z", "--index-info"]).stdin(info).ok()?;
            self.write_tree(&self.common_dir, scratch)
        })
    }

    /// Reverts what a checkout from `old` to `new` did in a working tree, and in its index, of which it is given a
    /// copy, to what `to` holds. The note says where an earlier call was cut short, and from the first write on that
    /// this one may be.
    pub(super) fn put_back(
        &self,
        (git_dir, dir, copy): (&Path, &Path, Copy),
        (old, new): (ObjectId, ObjectId),
        to: ObjectId,
        note: &mut Held,
        lock: &IndexLock,
    ) -> Result<CheckedOut, StoreError> {
        let (index, stage) = (copy.path(), note.stage());
        let place = (git_dir, dir, index);
        self.refresh_index(git_dir, dir, index)?;
        let taken = self.take_on(place, (old, new), to, stage)?;
        if !taken.is_any() {
            return Ok(CheckedOut::Done(None));
        }
        let start = self.start(place, (new, to))?;
        if let Some(words) = self.untracked_in_the_way(place, (start, to))? {
            return Ok(CheckedOut::InTheWay(words));
        }
        // A note that can't be renamed does not keep the working tree as it is.
        let _ = note.enter(Stage::Back);
        let kept = match self.merge_tracked(place, (start, to), Some(lock))? {
            CheckedOut::Done(kept) => kept,
            CheckedOut::InTheWay(words) => {
                let _ = note.enter(stage);
                return Ok(CheckedOut::InTheWay(words));
            }
            failed @ CheckedOut::Failed(_) => return Ok(failed),
        };
        if !taken.begun.is_empty() {
            let here = || self.in_tree(git_dir, dir).env("GIT_INDEX_FILE", index);
            // A path that `to` does not have stays away.
            let there = staged(here())?;
            let is_there = |path: &&Vec<u8>| there.get(*path).is_some_and(|now| !now.left_out);
            let paths = taken.begun.iter().filter(is_there);
            let paths: Vec<u8> = paths.flat_map(|path| [path, &b"\0"[..]].concat()).collect();
            // What a user has put there meanwhile is not written over.
            let command = here().verb("checkout-index").args(["-u", "-z", "--stdin"]);
            let output = command.stdin(paths).output()?;
            if !output.status.success() {
                return Ok(CheckedOut::Failed(output.refusal("checkout-index")));
            }
        }
        copy.put(lock).map(|()| CheckedOut::Done(kept))
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
                && mode != "160000"
            {
                let entry =
                    |mode: &str, blob: &str| (mode != "000000").then(|| (mode.to_owned(), blob.to_owned()));
                changes.push(Change {
                    old: entry(old_mode, old_blob),
                    new: entry(mode, blob),
                    path: path.to_vec(),
                });
            }
        }
        Ok(changes)
    }
}

/// What has a path's place in the working tree.
enum Place {
    Nothing,
    /// Something has the place of a folder above the path.
    Above,
    /// A file, a link or a folder has the path.
    Here,
}

/// The search for what an earlier checkout from `old` to `new` has written.
struct Search<'a> {
    /// Calls Git with the copy of the index.
    here: &'a dyn Fn() -> GitCommand,
    dir: &'a Path,
    old: ObjectId,
    new: ObjectId,
    /// True where the checkout was being put back.
    back: bool,
    taken: Taken,
    /// What is to be entered into the copy of the index, as `update-index -z --index-info` reads it.
    info: Vec<u8>,
}

impl Search<'_> {
    /// Looks at paths of which the index has the entry of before, each with whether a sparse checkout leaves it
    /// out.
    fn under_old(&mut self, changes: Vec<(Change, bool)>) -> Result<(), StoreError> {
        let (mut files, mut removed) = (Vec::new(), Vec::new());
        for (change, left_out) in changes {
            match (&change.new, self.place(&change)) {
                // A folder has the place of a file for what the outcome has below it.
                (None, Place::Here) if !self.is_folder(&change) => removed.push(change),
                (None, _) => self.info.extend(change.info(&change.new)),
                (Some(_), Place::Here) => files.push(change),
                (Some(_), Place::Nothing) if change.old.is_some() && !left_out => {
                    self.taken.begun.push(change.path);
                }
                (Some(_), _) => {}
            }
        }
        // What the outcome removes is the user's where it can't be read.
        let removed = if self.back { self.hashed(removed).unwrap_or_default() } else { Vec::new() };
        for (change, hash) in self.hashed(files)?.into_iter().chain(removed) {
            if is_whole(&self.file(&change), &change.new, &hash) {
                self.info.extend(change.info(&change.new));
            } else if change.old.as_ref().is_none_or(|(_, old)| *old != hash)
                && (self.is_part(&change, &change.new, self.new)?
                    || self.back && self.is_part(&change, &change.old, self.old)?)
            {
                self.begin_again(change)?;
            }
        }
        Ok(())
    }

    /// Looks at paths of which the index has the entry of the outcome, while an earlier process was putting their files
    /// back to the content of before.
    fn under_new(&mut self, changes: Vec<Change>) -> Result<(), StoreError> {
        let mut files = Vec::new();
        for change in changes {
            match (&change.old, self.place(&change)) {
                (Some(_), Place::Here) => files.push(change),
                (Some(_), Place::Nothing) => {
                    self.info.extend(change.info(&change.old));
                    self.taken.begun.push(change.path);
                }
                (None, Place::Nothing | Place::Above) => self.info.extend(change.info(&change.old)),
                (Some(_), Place::Above) | (None, Place::Here) => {}
            }
        }
        for (change, hash) in self.hashed(files).unwrap_or_default() {
            let file = self.file(&change);
            if is_whole(&file, &change.new, &hash) {
                continue;
            }
            if is_whole(&file, &change.old, &hash) {
                self.info.extend(change.info(&change.old));
            } else if self.is_part(&change, &change.old, self.old)? {
                self.info.extend(change.info(&change.old));
                self.begin_again(change)?;
            }
        }
        Ok(())
    }

    fn file(&self, change: &Change) -> PathBuf {
        self.dir.join(OsStr::from_bytes(&change.path))
    }

    fn place(&self, change: &Change) -> Place {
        match first_in_the_way(self.dir, &change.path) {
            None => Place::Nothing,
            Some(path) if path == OsStr::from_bytes(&change.path) => Place::Here,
            Some(_) => Place::Above,
        }
    }

    fn is_folder(&self, change: &Change) -> bool {
        self.file(change).symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    fn hashed(&self, changes: Vec<Change>) -> Result<Vec<(Change, String)>, StoreError> {
        hashed(self.here, self.dir, changes)
    }

    /// True where a path's file has a part, from its start, of what this commit's entry becomes in a working tree.
    fn is_part(&self, change: &Change, entry: &Option<Entry>, commit: ObjectId) -> Result<bool, StoreError> {
        let file = self.file(change);
        // A link, with what it leads to, is written whole or not at all.
        let is_file = file.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if !is_file || !entry.as_ref().is_some_and(|(mode, _)| mode.starts_with("100")) {
            return Ok(false);
        }
        let part = std::fs::read(&file).map_err(io_error("read", &file))?;
        Ok(whole((self.here)(), commit, &change.path)?.starts_with(&part))
    }

    /// Removes a file that is written in part, and notes that it is to be written.
    fn begin_again(&mut self, change: Change) -> Result<(), StoreError> {
        let file = self.file(&change);
        std::fs::remove_file(&file).map_err(io_error("remove", &file))?;
        self.taken.begun.push(change.path);
        Ok(())
    }
}

impl Change {
    /// Returns what `update-index -z --index-info` reads to give the path this entry, or none.
    fn info(&self, entry: &Option<Entry>) -> Vec<u8> {
        let blank = self.old.as_ref().or(self.new.as_ref()).map_or(40, |(_, blob)| blob.len());
        let head = match entry {
            Some((mode, blob)) => format!("{mode} {blob}\t"),
            None => format!("0 {}\t", "0".repeat(blank)),
        };
        [head.as_bytes(), &self.path, b"\0"].concat()
    }
}

/// A path in the index.
struct Staged {
    entry: Entry,
    /// True where a sparse checkout has no file there.
    left_out: bool,
}

/// Returns every path in the index that has no conflict.
fn staged(git: GitCommand) -> Result<HashMap<Vec<u8>, Staged>, StoreError> {
    let listed = git.verb("ls-files").args(["-t", "-s", "-z"]).ok()?;
    let entries = listed.split(|b| *b == 0).filter_map(|line| {
        let tab = line.iter().position(|b| *b == b'\t')?;
        let head = std::str::from_utf8(&line[..tab]).ok()?;
        let mut words = head.split(' ');
        let left_out = words.next()? == "S";
        let entry = (words.next()?.to_owned(), words.next()?.to_owned());
        (words.next() == Some("0")).then(|| (line[tab + 1..].to_vec(), Staged { entry, left_out }))
    });
    Ok(entries.collect())
}

/// Returns each change with the id of the blob that its file or link in the working tree would become. A path
/// that is neither is left out.
fn hashed(
    here: &dyn Fn() -> GitCommand,
    dir: &Path,
    changes: Vec<Change>,
) -> Result<Vec<(Change, String)>, StoreError> {
    let (mut many, mut found) = (Vec::new(), Vec::new());
    let text = |printed: Vec<u8>| String::from_utf8_lossy(&printed).trim_end().to_owned();
    for change in changes {
        let path = OsStr::from_bytes(&change.path);
        let file = dir.join(path);
        let Ok(meta) = file.symlink_metadata() else { continue };
        if meta.is_symlink() {
            let target = std::fs::read_link(&file).map_err(io_error("read", &file))?;
            let hash = here().verb("hash-object").args(["--stdin"]).stdin(target.as_os_str().as_bytes());
            found.push((change, text(hash.ok()?)));
        } else if meta.is_file() && !is_a_line(&change.path) {
            let hash = here().verb("hash-object").args([OsStr::new("--"), path]).ok()?;
            found.push((change, text(hash)));
        } else if meta.is_file() {
            many.push(change);
        }
    }
    if !many.is_empty() {
        let paths: Vec<u8> = many.iter().flat_map(|c| [&c.path, &b"\n"[..]].concat()).collect();
        let printed = here().verb("hash-object").args(["--stdin-paths"]).stdin(paths).ok()?;
        found.extend(many.into_iter().zip(text(printed).lines().map(str::to_owned)));
    }
    Ok(found)
}

/// True where Git reads this path unchanged from a line of `--stdin-paths`. Git takes a line feed for the end
/// of the line, a carriage return before that as a part of the line's end, and a quotation mark at the start
/// for the beginning of a quoted path.
fn is_a_line(path: &[u8]) -> bool {
    !path.contains(&b'\n') && !path.ends_with(b"\r") && !path.starts_with(b"\"")
}

/// True where a file with this hash is what an entry says.
fn is_whole(file: &Path, entry: &Option<Entry>, hash: &str) -> bool {
    entry.as_ref().is_some_and(|(mode, blob)| hash == blob && has_mode(file, mode))
}

/// Returns what a checkout writes for a path of a commit.
fn whole(git: GitCommand, commit: ObjectId, path: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut name = OsString::from(format!("{commit}:"));
    name.push(OsStr::from_bytes(path));
    git.verb("cat-file").args([OsStr::new("--filters"), &name]).ok()
}

/// True where the file is of the kind that the mode says, and is executable exactly where the mode says so.
fn has_mode(file: &Path, mode: &str) -> bool {
    file.symlink_metadata().is_ok_and(|meta| match mode {
        "120000" => meta.is_symlink(),
        "100755" => meta.is_file() && meta.permissions().mode() & 0o100 != 0,
        _ => meta.is_file() && meta.permissions().mode() & 0o100 == 0,
    })
}
