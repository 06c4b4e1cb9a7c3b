//! Merges that are asked of the `git` binary: into a working tree, and of trees alone.
//!
//! No file of the user's is overwritten: what stands in the way is reported in Git's words. Implements K28.

use super::calls::RepoGit;
use super::trace::EventTrace;
use crate::protocol::id::ObjectId;
use crate::protocol::text::shell_word;
use crate::store::StoreError;
use crate::store::checkout::index_lock::IndexLock;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The result of a merge of trees.
#[derive(Debug)]
pub(crate) enum Merged {
    /// The merged tree, and the paths where the second side's version was taken.
    Tree(ObjectId, Vec<Overruled>),
    /// Paths that are a file on one side and a folder on the other, and that neither side removed.
    Apart(Vec<String>),
}

/// What became of paths that a merge of trees left unmerged.
enum Resolved {
    /// All are resolved; at these the second side's version was taken.
    All(Vec<Overruled>),
    /// These are a file on one side and a folder on the other.
    Apart(Vec<String>),
}

/// The result of a merge of commits.
#[derive(Debug)]
pub(crate) enum Joined {
    /// The tree that holds both sides' work.
    Tree(ObjectId),
    /// The commits conflict, in these paths where Git names any.
    Conflicts(Vec<String>),
    /// The merge took longer than it may: a history of few commits can be made so that
    /// merging would take years.
    Late,
}

/// Longest merge of two commits, for which other branches wait.
pub(crate) const MERGE_PATIENCE: Duration = Duration::from_secs(60);

/// A path where the second side's version was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overruled {
    /// The path.
    pub(crate) path: String,
    /// What the two sides had done to it.
    pub(crate) why: Why,
}

/// How the changes of two sides conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Both changed the same lines; the others were merged.
    Lines,
    /// Both changed the path, and it has no lines to merge.
    Whole,
    /// The first changed what the second removed.
    Removed,
    /// The first removed what the second changed.
    BackAgain,
}

/// One side's version of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Side {
    mode: String,
    id: String,
}

impl Side {
    fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }
}

/// What came of moving a working tree from one commit to another.
#[derive(Debug)]
pub(crate) enum CheckedOut {
    /// It was moved; Git's warning where a file could not be removed, and is untracked now.
    Done(Option<String>),
    /// Nothing was written, because something of the user's would be lost; Git's message.
    InTheWay(String),
    /// The move failed, and may have been done in part where it was not only tried; Git's message.
    Failed(String),
}

/// How the formats of the messages start by which `read-tree` refuses, before it writes the first file, to lose a file
/// of the user's or a conflict that is not resolved.
const IN_THE_WAY: [&str; 4] =
    ["Entry '", "Untracked working tree file '", "Updating '", "You need to resolve your current index"];

impl RepoGit {
    /// Moves a working tree, which is a Git directory, a folder and an index, from one commit to another, keeping
    /// local changes that are not in the way. The child keeps `lock`, the lock of the index, because the child may
    /// outlive this process. Without a lock the move is only tried, and nothing is changed.
    pub(crate) fn two_tree_merge(
        &self,
        place: (&Path, &Path, &Path),
        (old, new): (ObjectId, ObjectId),
        lock: Option<&IndexLock>,
    ) -> Result<CheckedOut, StoreError> {
        if let Some(words) = self.untracked_in_the_way(place, (old, new))? {
            return Ok(CheckedOut::InTheWay(words));
        }
        self.merge_tracked(place, (old, new), lock)
    }

    /// Moves a working tree as [`RepoGit::two_tree_merge`] does, where the caller knows that no untracked
    /// file is in the way: Git itself would not ask.
    pub(crate) fn merge_tracked(
        &self,
        (git_dir, dir, index): (&Path, &Path, &Path),
        (old, new): (ObjectId, ObjectId),
        lock: Option<&IndexLock>,
    ) -> Result<CheckedOut, StoreError> {
        let (old, new) = (old.to_string(), new.to_string());
        let mut args = vec!["-m", "-u"];
        if lock.is_none() {
            args.push("-n");
        }
        args.extend([&*old, &*new]);
        let command = self.in_tree(git_dir, dir).holding(lock.and_then(IndexLock::file))?;
        let command = command.env("GIT_INDEX_FILE", index).verb("read-tree").args(args);
        let trace = EventTrace::new();
        let command =
            trace.variables().into_iter().fold(command, |command, (name, value)| command.env(name, value));
        let output = command.output()?;
        if !output.status.success() {
            let words = output.refusal("read-tree");
            return Ok(match trace.has_error(&IN_THE_WAY) {
                true => CheckedOut::InTheWay(self.told_of_overlooked((git_dir, dir, index), words)),
                false => CheckedOut::Failed(words),
            });
        }
        // Git goes on where the system lets it remove no file, says so, and leaves the file there untracked.
        let lines = output.said.split(|b| *b == b'\n').filter_map(|line| line.strip_prefix(b"warning: "));
        let is_left = |line: &&[u8]| {
            [&b"unable to unlink "[..], b"unable to rmdir "].iter().any(|w| line.starts_with(w))
        };
        let left: Vec<&[u8]> = lines.filter(is_left).collect();
        let first = left.first().map(|line| String::from_utf8_lossy(line).into_owned());
        let more = if left.len() > 1 { format!(" (and {} more)", left.len() - 1) } else { String::new() };
        Ok(CheckedOut::Done(first.map(|first| first + &more)))
    }

    /// Adds to what Git says of a file in the way how it is looked at again, where Git was told to overlook it: no
    /// `git stash` takes such a file.
    fn told_of_overlooked(&self, (git_dir, dir, index): (&Path, &Path, &Path), words: String) -> String {
        let path = words.split_once("Entry '").and_then(|(_, rest)| rest.split_once("' not uptodate"));
        let Some((path, _)) = path else { return words };
        let command = self.in_tree(git_dir, dir).global(["--literal-pathspecs"]).verb("ls-files");
        let listed =
            command.env("GIT_INDEX_FILE", index).args(["-v", "-z", "--", path]).ok().unwrap_or_default();
        let flag = match listed.first() {
            Some(b'S') => "--no-skip-worktree",
            Some(b's') => "--no-skip-worktree --no-assume-unchanged",
            Some(letter) if letter.is_ascii_lowercase() => "--no-assume-unchanged",
            Some(_) | None => return words,
        };
        format!(
            "{words} (Git was told to overlook it: git update-index {flag} -- {})",
            shell_word(path.as_bytes())
        )
    }

    /// Merges two commits as `git merge` does, without a working tree. Commits without a common history, and
    /// any commits with a Git before 2.38, which has no such merge, give a conflict without a path.
    pub(crate) fn join_commits(
        &self,
        ours: ObjectId,
        theirs: ObjectId,
        patience: Duration,
    ) -> Result<Joined, StoreError> {
        let (ours, theirs) = (ours.to_string(), theirs.to_string());
        let args = ["--write-tree", "--name-only", "--no-messages", "-z", &ours, &theirs];
        let command = self.here().durable(self.durable).within(patience);
        let output = command.verb("merge-tree").args(args).output()?;
        if output.late {
            return Ok(Joined::Late);
        }
        let mut words = output.stdout.split(|b| *b == 0).filter(|word| !word.is_empty());
        let tree = words.next().and_then(|tree| ObjectId::from_hex(tree.trim_ascii()).ok());
        match (output.status.code(), tree) {
            (Some(0), Some(tree)) => Ok(Joined::Tree(tree)),
            (Some(1), Some(_)) => {
                Ok(Joined::Conflicts(words.map(|path| String::from_utf8_lossy(path).into_owned()).collect()))
            }
            (Some(128 | 129), _) => Ok(Joined::Conflicts(Vec::new())),
            _ => Err(StoreError::Git { verb: "merge-tree".into(), message: output.message }),
        }
    }

    /// Merges two trees by Git's own merge, path by path. Where both sides changed a path in ways that
    /// conflict, the second side's version is taken.
    pub(crate) fn merge_trees(
        &self,
        base: ObjectId,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<Merged, StoreError> {
        let (base, ours_hex, theirs_hex) = (base.to_string(), ours.to_string(), theirs.to_string());
        self.in_scratch_index(|scratch| {
            let read = self.here().verb("read-tree").env("GIT_INDEX_FILE", scratch);
            read.args(["-i", "-m", "--aggressive", &base, &ours_hex, &theirs_hex]).ok()?;
            Ok(match self.resolve_unmerged(scratch)? {
                Resolved::All(overruled) => {
                    Merged::Tree(self.write_tree(&self.common_dir, scratch)?, overruled)
                }
                Resolved::Apart(apart) => Merged::Apart(apart),
            })
        })
    }

    /// Calls `work` with a path for an index, which is removed afterwards.
    pub(crate) fn in_scratch_index<T>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let scratch = self.common_dir.join("aynig").join(format!("merge-{}.index", uuid::Uuid::new_v4()));
        let done = work(&scratch);
        let _ = std::fs::remove_file(&scratch);
        done
    }

    /// Resolves the paths that a three-way `read-tree` left unmerged.
    fn resolve_unmerged(&self, index: &Path) -> Result<Resolved, StoreError> {
        let listed = self.here().verb("ls-files").args(["-s", "-z"]).env("GIT_INDEX_FILE", index).ok()?;
        let mut unmerged: BTreeMap<&[u8], [Option<Side>; 3]> = BTreeMap::new();
        let mut paths: BTreeSet<&[u8]> = BTreeSet::new();
        for entry in listed.split(|b| *b == 0).filter(|e| !e.is_empty()) {
            let Some(tab) = entry.iter().position(|b| *b == b'\t') else { continue };
            let (head, path) = (String::from_utf8_lossy(&entry[..tab]), &entry[tab + 1..]);
            let mut words = head.split(' ');
            if let (Some(mode), Some(id), Some(stage)) = (words.next(), words.next(), words.next()) {
                match stage.parse::<usize>() {
                    Ok(stage @ 1..=3) => {
                        let side = Side { mode: mode.into(), id: id.into() };
                        unmerged.entry(path).or_default()[stage - 1] = Some(side);
                    }
                    _ => drop(paths.insert(path)),
                }
            }
        }
        let (mut overruled, mut gone, mut info) = (Vec::new(), Vec::new(), Vec::new());
        for (path, stages) in unmerged {
            let blank = stages.iter().flatten().next().map_or(0, |side| side.id.len());
            let (side, why) = self.resolve_path(stages)?;
            if let Some(why) = why {
                overruled.push(Overruled { path: String::from_utf8_lossy(path).into_owned(), why });
            }
            gone.extend_from_slice(&[format!("0 {}\t", "0".repeat(blank)).as_bytes(), path, b"\0"].concat());
            if let Some(Side { mode, id }) = side {
                info.extend_from_slice(&[format!("{mode} {id} 0\t").as_bytes(), path, b"\0"].concat());
                paths.insert(path);
            }
        }
        let apart = files_with_something_below(&paths);
        if !apart.is_empty() {
            return Ok(Resolved::Apart(apart));
        }
        let command = self.here().verb("update-index").args(["-z", "--index-info"]);
        command.env("GIT_INDEX_FILE", index).stdin([gone, info].concat()).ok()?;
        Ok(Resolved::All(overruled))
    }

    /// Returns what one unmerged path holds in the end, and why the second side was
    /// chosen, where it had to be.
    fn resolve_path(
        &self,
        [base, ours, theirs]: [Option<Side>; 3],
    ) -> Result<(Option<Side>, Option<Why>), StoreError> {
        // Git leaves a path that only one side touched unmerged where a folder of the same name is beside it.
        if theirs == base || ours == theirs {
            return Ok((ours, None));
        }
        if ours == base {
            return Ok((theirs, None));
        }
        Ok(match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours.is_file() && theirs.is_file() => {
                let (side, why) = self.merge_files(base.filter(Side::is_file), ours, theirs)?;
                (Some(side), why)
            }
            (Some(_), Some(theirs)) => (Some(theirs), Some(Why::Whole)),
            (None, Some(theirs)) => (Some(theirs), Some(Why::BackAgain)),
            (Some(_), None) => (None, Some(Why::Removed)),
            (None, None) => (None, None),
        })
    }

    /// Merges the mode and the content of a file, each by itself.
    fn merge_files(
        &self,
        base: Option<Side>,
        ours: Side,
        theirs: Side,
    ) -> Result<(Side, Option<Why>), StoreError> {
        let of_base = |what: fn(&Side) -> &String| base.as_ref().map(what);
        let (mode, unlike) = if of_base(|s| &s.mode) == Some(&theirs.mode) {
            (ours.mode, None)
        } else {
            let unlike = base.is_none() && ours.mode != theirs.mode;
            (theirs.mode, unlike.then_some(Why::Whole))
        };
        if ours.id == theirs.id || of_base(|s| &s.id) == Some(&theirs.id) {
            return Ok((Side { mode, id: ours.id }, unlike));
        }
        if of_base(|s| &s.id) == Some(&ours.id) {
            return Ok((Side { mode, id: theirs.id }, unlike));
        }
        let base = match base {
            Some(side) => side.id,
            None => self.empty_blob()?,
        };
        if let Some(id) = self.merge_blobs(&ours.id, &base, &theirs.id, None)? {
            return Ok((Side { mode, id }, unlike));
        }
        Ok(match self.merge_blobs(&ours.id, &base, &theirs.id, Some("--theirs"))? {
            Some(id) => (Side { mode, id }, Some(Why::Lines)),
            None => (Side { mode, id: theirs.id }, Some(Why::Whole)),
        })
    }

    fn empty_blob(&self) -> Result<String, StoreError> {
        let command = self.here().verb("hash-object").args(["-w", "--stdin"]);
        Ok(command.stdin(Vec::new()).id()?.to_string())
    }

    /// Merges three blobs by lines; `None` where lines conflict.
    fn merge_blobs(
        &self,
        ours: &str,
        base: &str,
        theirs: &str,
        favor: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let folder = self.common_dir.join("aynig").join(format!("merge-{}", uuid::Uuid::new_v4()));
        self.git.shared.make(&folder)?;
        let merged = (|| {
            for (name, id) in [("ours", ours), ("base", base), ("theirs", theirs)] {
                let content = self.here().verb("cat-file").args(["blob", id]).ok()?;
                let path = folder.join(name);
                std::fs::write(&path, content).map_err(crate::store::io_error("write", &path))?;
            }
            let mut args: Vec<OsString> = vec!["-p".into()];
            args.extend(favor.map(OsString::from));
            args.extend(["ours", "base", "theirs"].map(|name| folder.join(name).into_os_string()));
            let output = self.here().verb("merge-file").args(args).output()?;
            if !output.status.success() {
                return Ok(None);
            }
            let written = self.here().durable(self.durable).verb("hash-object").args(["-w", "--stdin"]);
            Ok(Some(written.stdin(output.stdout).id()?.to_string()))
        })();
        let _ = std::fs::remove_dir_all(&folder);
        merged
    }
}

/// Returns the paths that would be a file and a folder at once.
pub(crate) fn files_with_something_below(paths: &BTreeSet<&[u8]>) -> Vec<String> {
    let above = |path: &[u8]| {
        let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        ends.map(|at| path[..at].to_owned()).find(|part| paths.contains(&**part))
    };
    let apart: BTreeSet<Vec<u8>> = paths.iter().filter_map(|path| above(path)).collect();
    apart.into_iter().map(|path| String::from_utf8_lossy(&path).into_owned()).collect()
}
