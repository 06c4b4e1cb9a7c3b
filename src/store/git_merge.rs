//! Merges that are asked of the `git` binary: into a working tree, and of trees alone.
//!
//! Nothing of the user's is written over: what stands in the way is said in Git's words. Implements K28.

use super::StoreError;
use super::git_calls::{RepoGit, with_value};
use super::index_lock::IndexLock;
use crate::protocol::id::ObjectId;
use std::ffi::OsString;
use std::path::Path;

impl RepoGit {
    /// Moves a working tree from one commit to another, keeping local changes that are not in the way. Says Git's
    /// words where something is in the way. The child keeps the lock of the index: it may outlive us. `None`: only
    /// tried, nothing is changed.
    pub(super) fn two_tree_merge(
        &self,
        git_dir: &Path,
        dir: &Path,
        index: &Path,
        (old, new): (ObjectId, ObjectId),
        lock: Option<&IndexLock>,
    ) -> Result<Option<String>, StoreError> {
        if let Some(words) = self.untracked_in_the_way(git_dir, dir, index, (old, new))? {
            return Ok(Some(words));
        }
        let (old, new) = (old.to_string(), new.to_string());
        let mut args = vec!["-m", "-u"];
        if lock.is_none() {
            args.push("-n");
        }
        args.extend([&*old, &*new]);
        let command = self.git.command(git_dir).global([with_value("--work-tree=", dir)]);
        let command = command.holding(lock.and_then(IndexLock::file))?.env("GIT_INDEX_FILE", index);
        let output = command.verb("read-tree").args(args).in_dir(dir).output()?;
        Ok((!output.status.success()).then_some(output.message))
    }

    /// Merges two commits' trees by Git's own merge; the tree, and the paths in conflict with the
    /// second's version taken.
    pub fn merge_trees(
        &self,
        base: ObjectId,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<(ObjectId, Vec<String>), StoreError> {
        let (base, ours_hex, theirs_hex) = (base.to_string(), ours.to_string(), theirs.to_string());
        let scratch = self.common_dir.join("aynig").join(format!("merge-{}.index", uuid::Uuid::new_v4()));
        let read = self.here().verb("read-tree").env("GIT_INDEX_FILE", &scratch);
        let outcome = read
            .args(["-i", "-m", "--aggressive", &base, &ours_hex, &theirs_hex])
            .ok()
            .and_then(|_| self.resolve_unmerged(&scratch))
            .and_then(|conflicts| Ok((self.write_tree(&self.common_dir, &scratch)?, conflicts)));
        let _ = std::fs::remove_file(&scratch);
        outcome
    }

    /// Resolves what a three-way `read-tree` left unmerged: line by line, the second side where both
    /// changed the same lines. Names the paths where it had to choose.
    fn resolve_unmerged(&self, index: &Path) -> Result<Vec<String>, StoreError> {
        let listed = self.here().verb("ls-files").args(["-u", "-z"]).env("GIT_INDEX_FILE", index).ok()?;
        let mut stages: std::collections::BTreeMap<Vec<u8>, [Option<(String, String)>; 3]> =
            Default::default();
        for entry in listed.split(|b| *b == 0).filter(|e| !e.is_empty()) {
            let Some(tab) = entry.iter().position(|b| *b == b'\t') else { continue };
            let head = String::from_utf8_lossy(&entry[..tab]).into_owned();
            let mut words = head.split(' ');
            if let (Some(mode), Some(id), Some(stage)) = (words.next(), words.next(), words.next())
                && let Ok(stage @ 1..=3) = stage.parse::<usize>()
            {
                stages.entry(entry[tab + 1..].to_vec()).or_default()[stage - 1] =
                    Some((mode.into(), id.into()));
            }
        }
        let (mut conflicts, mut info) = (Vec::new(), Vec::new());
        for (path, stage) in stages {
            let name = String::from_utf8_lossy(&path).into_owned();
            let (mode, id, chosen) = self.resolve_path(stage)?;
            if chosen {
                conflicts.push(name);
            }
            info.extend_from_slice(format!("0 {}\t", "0".repeat(id.len())).as_bytes());
            info.extend_from_slice(&path);
            info.push(0);
            if mode != "0" {
                info.extend_from_slice(format!("{mode} {id} 0\t").as_bytes());
                info.extend_from_slice(&path);
                info.push(0);
            }
        }
        let command = self.here().verb("update-index").args(["-z", "--index-info"]);
        command.env("GIT_INDEX_FILE", index).stdin(info).ok()?;
        Ok(conflicts)
    }

    /// The mode and blob of one unmerged path, and whether one side had to be chosen.
    fn resolve_path(
        &self,
        stage: [Option<(String, String)>; 3],
    ) -> Result<(String, String, bool), StoreError> {
        let [base, ours, theirs] = stage;
        let blank = |id: &str| "0".repeat(id.len());
        match (base, ours, theirs) {
            (base, Some((_, ours)), Some((mode, theirs))) if mode.starts_with("100") => {
                let base = match base {
                    Some((_, id)) => id,
                    None => self.empty_blob()?,
                };
                let plain = self.merge_blobs(&ours, &base, &theirs, None)?;
                let (id, chosen) = match plain {
                    Some(id) => (id, false),
                    None => {
                        (self.merge_blobs(&ours, &base, &theirs, Some("--theirs"))?.unwrap_or(theirs), true)
                    }
                };
                Ok((mode, id, chosen))
            }
            (_, _, Some((mode, id))) => Ok((mode, id, true)),
            (Some((_, id)), _, None) | (None, Some((_, id)), None) => Ok(("0".into(), blank(&id), true)),
            (None, None, None) => Ok(("0".into(), String::new(), true)),
        }
    }

    fn empty_blob(&self) -> Result<String, StoreError> {
        let printed = self.here().verb("hash-object").args(["-w", "--stdin"]).stdin(Vec::new()).ok()?;
        Ok(String::from_utf8_lossy(printed.trim_ascii()).into_owned())
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
        std::fs::create_dir_all(&folder).map_err(super::io_error("create", &folder))?;
        let merged = (|| {
            for (name, id) in [("ours", ours), ("base", base), ("theirs", theirs)] {
                let content = self.here().verb("cat-file").args(["blob", id]).ok()?;
                let path = folder.join(name);
                std::fs::write(&path, content).map_err(super::io_error("write", &path))?;
            }
            let mut args: Vec<OsString> = vec!["-p".into()];
            args.extend(favor.map(OsString::from));
            args.extend(["ours", "base", "theirs"].map(|name| folder.join(name).into_os_string()));
            let output = self.here().verb("merge-file").args(args).output()?;
            if !output.status.success() {
                return Ok(None);
            }
            let written = self.here().durable(self.durable).verb("hash-object").args(["-w", "--stdin"]);
            let printed = written.stdin(output.stdout).ok()?;
            Ok(Some(String::from_utf8_lossy(printed.trim_ascii()).into_owned()))
        })();
        let _ = std::fs::remove_dir_all(&folder);
        merged
    }
}
