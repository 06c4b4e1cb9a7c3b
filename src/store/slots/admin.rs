//! The administrative folder of a slot under `worktrees/` in the Git directory: its registration.
//!
//! The folder is built aside and renamed into place, because an incomplete one (with an empty `commondir`,
//! say) makes every Git command of the user fail. What a command left in it (the state of an unfinished
//! rebase or merge, its own configuration, refs) is removed before the next run. Implements K14.

use super::{Occupant, Slot};
use crate::protocol::id::ObjectId;
use crate::store::disk::{Shared, is_there};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, read_plain, write_aside};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names that belong in the folder; everything else is a command's. The content of `modules` is removed
/// separately, once nothing is read from the slot any more ([`Slot::drop_modules`]).
const OURS: &[&str] = &["HEAD", "commondir", "gitdir", "index", "locked", "modules", "refs", "reftable"];

/// The prefix of the names of a split index's shared parts. Such a part must stay for as long as the index
/// that needs it: with one of the two alone, every `git gc` and `git fsck` of the user's fails.
const SHARED_INDEX: &str = "sharedindex.";
/// Most bytes of a HEAD, which is one line. Git would read all of a file of zeros, whose size costs its writer nothing.
const HEAD_MAX: u64 = 64 << 10;

impl Slot {
    /// Makes the slot's registration, and the `.git` file that leads to it, exactly what they must be,
    /// whatever a command did to them.
    pub(super) fn register(&self, repo: &Repository, commit: ObjectId) -> Result<(), StoreError> {
        // The folder of all slots is the group's where it is in the Git directory; a slot is its account's own.
        if let Some(all) = self.dir.parent().filter(|all| all.starts_with(repo.aynig_dir())) {
            repo.make(all)?;
        }
        std::fs::create_dir_all(&self.dir).map_err(io_error("create", &self.dir))?;
        self.clean_admin(repo, commit)?;
        let link = self.dir.join(".git");
        let content = [b"gitdir: ", self.admin.as_os_str().as_bytes(), b"\n"].concat();
        if !is_content(&link, &content) {
            if link.symlink_metadata().is_ok_and(|m| m.is_dir()) {
                crate::store::remove_tree(&link).map_err(io_error("remove", &link))?;
            }
            write_aside(&link, &content, Shared::Umask)?;
        }
        Ok(())
    }

    /// Returns the files of the registration, each with the content it must have. HEAD is the last, as it
    /// makes the folder valid.
    fn files(&self, repo: &Repository) -> Vec<(&'static str, Vec<u8>)> {
        let gitdir = [self.dir.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        let mut files = vec![
            ("commondir", b"../..\n".to_vec()),
            ("gitdir", gitdir),
            ("locked", super::place::REASON.to_vec()),
        ];
        if repo.reftable {
            files.push(("refs/heads", b"this repository uses the reftable format\n".to_vec()));
            files.push(("HEAD", b"ref: refs/heads/.invalid\n".to_vec()));
        }
        files
    }

    fn build_admin(&self, repo: &Repository, commit: ObjectId) -> Result<(), StoreError> {
        let aside = repo.aynig_dir().join("slots").join(format!(".new-{}", uuid::Uuid::new_v4()));
        let built = self.build_aside(repo, commit, &aside);
        if built.is_err() {
            let _ = std::fs::remove_dir_all(&aside);
        }
        built
    }

    fn build_aside(&self, repo: &Repository, commit: ObjectId, aside: &Path) -> Result<(), StoreError> {
        let make = |path: &Path| std::fs::create_dir_all(path).map_err(io_error("create", path));
        is_there(&repo.common_dir)?;
        make(aside)?;
        if repo.reftable {
            make(&aside.join("refs"))?;
            make(&aside.join("reftable"))?;
            let tables = aside.join("reftable/tables.list");
            std::fs::write(&tables, b"").map_err(io_error("write", &tables))?;
            repo.share(&tables);
        } else {
            let head = aside.join("HEAD");
            // HEAD names a commit from the first moment, as `git fsck` complains about one that points at
            // nothing.
            std::fs::write(&head, format!("{commit}\n")).map_err(io_error("write", &head))?;
        }
        for (name, content) in self.files(repo) {
            let path = aside.join(name);
            std::fs::write(&path, content).map_err(io_error("write", &path))?;
            repo.share(&path);
        }
        let parent = repo.common_dir.join("worktrees");
        repo.make(&parent)?;
        self.share_admin(repo, aside);
        std::fs::rename(aside, &self.admin).map_err(io_error("create", &self.admin))
    }

    fn share_admin(&self, repo: &Repository, folder: &Path) {
        if self.shared == Shared::Umask {
            return;
        }
        repo.share(folder);
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            repo.share(&entry.path());
        }
    }

    /// Removes from the registration what is not ours, and writes our files again where they differ. A
    /// registration that is gone, or is no folder any more, is built anew.
    fn clean_admin(&self, repo: &Repository, commit: ObjectId) -> Result<(), StoreError> {
        if self.opened_admin().is_err() {
            crate::store::remove_tree(&self.admin).map_err(io_error("remove", &self.admin))?;
            return self.build_admin(repo, commit);
        }
        let entries = std::fs::read_dir(&self.admin).map_err(io_error("read", &self.admin))?;
        for entry in entries {
            let entry = entry.map_err(io_error("read", &self.admin))?;
            let name = entry.file_name();
            let ours = name.to_str().is_some_and(|n| {
                OURS.contains(&n) && (repo.reftable || !n.starts_with("ref")) || is_shared(&name)
            });
            if !ours {
                crate::store::remove_tree(&entry.path()).map_err(io_error("remove", &entry.path()))?;
            }
        }
        for (name, content) in self.files(repo) {
            let path = self.admin.join(name);
            if name != "HEAD" && !is_content(&path, &content) {
                repo.write(&path, &content)?;
            }
        }
        self.share_admin(repo, &self.admin);
        Ok(())
    }

    /// Removes the shared parts of a split index that was replaced.
    pub(super) fn drop_shared_index(&self) {
        let entries = std::fs::read_dir(&self.admin).into_iter().flatten().flatten();
        for entry in entries.filter(|e| is_shared(&e.file_name())) {
            let _ = crate::store::remove_tree(&entry.path());
        }
    }

    /// Removes from the registration what would lead any Git that reads it elsewhere: a configuration,
    /// another repository, links, fifos, which Git opens without a check and would wait for, and a HEAD without end,
    /// which Git would take into memory. What belongs there is written again; HEAD gets `commit` where it could not be
    /// read.
    pub(super) fn disarm(&self, repo: &Repository, commit: ObjectId) -> Result<(), StoreError> {
        if self.opened_admin().is_err() {
            // It is not known what the command committed. The files are kept when the registration is made
            // anew.
            let message = "its registration is no folder any more".into();
            return Err(StoreError::Git { verb: "rev-parse".into(), message });
        }
        let _ = crate::store::remove_tree(&self.admin.join("config.worktree"));
        for (name, content) in self.files(repo) {
            let path = self.admin.join(name);
            if name != "HEAD" && !name.contains('/') && !is_content(&path, &content) {
                crate::store::remove_tree(&path).map_err(io_error("remove", &path))?;
                repo.write(&path, &content)?;
            }
        }
        let Ok(entries) = std::fs::read_dir(&self.admin) else { return Ok(()) };
        let mut read = Ok(());
        for entry in entries.flatten() {
            let is_index = entry.file_name() == "index";
            let fits = |file: std::fs::Metadata| entry.file_name() != "HEAD" || file.len() <= HEAD_MAX;
            let is_fit = |kind: std::fs::FileType| match kind.is_file() {
                true => entry.metadata().is_ok_and(fits),
                false => kind.is_dir() && !is_index,
            };
            if entry.file_type().is_ok_and(is_fit) {
                continue;
            }
            let _ = crate::store::remove_tree(&entry.path());
            if is_index {
                // It is not known what the command staged. Without an index all of the branch's files would
                // count as deleted, so this is an error.
                read = Err(io_error("read", &entry.path())(std::io::ErrorKind::InvalidData.into()));
            }
            let mut files = self.files(repo);
            if !repo.reftable {
                files.push(("HEAD", format!("{commit}\n").into_bytes()));
            }
            for (_, content) in files.iter().filter(|(name, _)| entry.file_name() == *name) {
                repo.write(&entry.path(), content)?;
            }
        }
        read
    }

    /// Points the slot's HEAD at a commit, detached.
    pub(super) fn detach(&self, repo: &Repository, commit: ObjectId) -> Result<(), StoreError> {
        if repo.reftable {
            return self.held(|hold| repo.git.set_detached_head(&self.admin, commit, hold));
        }
        let content = format!("{commit}\n");
        let path = self.admin.join("HEAD");
        if !is_content(&path, content.as_bytes()) {
            repo.write(&path, content.as_bytes())?;
        }
        Ok(())
    }

    /// Moves a detached HEAD from one commit to another of the same tree. Does nothing where HEAD is not at
    /// `from`.
    pub(crate) fn move_head(
        &self,
        repo: &Repository,
        from: ObjectId,
        to: ObjectId,
    ) -> Result<(), StoreError> {
        let raw = read_plain(&self.admin.join("HEAD"), HEAD_MAX).unwrap_or_default();
        let detached = match repo.reftable {
            true => repo.git.target_in_slot(&repo.common_dir, &self.head_name())?.is_none(),
            false => ObjectId::from_hex(raw.trim_ascii_end()).is_ok(),
        };
        if detached && self.head(repo)? == from { self.detach(repo, to) } else { Ok(()) }
    }

    /// Removes what a run left in the registration that would be in the user's way: a branch that is checked
    /// out, or is in a rebase, can't be checked out, renamed or deleted elsewhere.
    pub(crate) fn leave(&self, repo: &Repository, lease: ObjectId) -> Result<(), StoreError> {
        if !self.is_registered() {
            return Ok(());
        }
        self.clean_admin(repo, lease)?;
        // Git refuses every push, and every `git gc`, while a HEAD names what is not there.
        self.detach(repo, self.head(repo).unwrap_or(lease))?;
        self.drop_modules(repo)
    }

    /// Returns the name of the slot's HEAD in the main repository. Git resolves this name without reading any
    /// configuration of the slot.
    fn head_name(&self) -> String {
        format!("worktrees/{}{}/HEAD", super::ADMIN_PREFIX, self.number)
    }

    /// Returns the commit that the slot's HEAD names, through a branch if the command checked one out.
    pub(crate) fn head(&self, repo: &Repository) -> Result<ObjectId, StoreError> {
        // Git would wait for ever for a fifo, and take a file without end into memory.
        let raw = read_plain(&self.admin.join("HEAD"), HEAD_MAX).map_err(|error| {
            let message = format!("HEAD can't be read: {error}");
            StoreError::Git { verb: "rev-parse".into(), message }
        })?;
        let lease = self.record.run.as_ref().and_then(Occupant::lease_id);
        match ObjectId::from_hex(raw.trim_ascii_end()) {
            // Nothing may stand on a commit that is not there, or that is none but by its name.
            Ok(id) if lease == Some(id) || repo.tree_of(id).is_ok() => Ok(id),
            Ok(id) => {
                let message = format!("HEAD names {id}, which is no commit here");
                Err(StoreError::Git { verb: "rev-parse".into(), message })
            }
            Err(_) => repo.git.head_of_slot(&repo.common_dir, &self.head_name()),
        }
    }
}

/// True for the name of a split index's shared part.
pub(super) fn is_shared(name: &OsStr) -> bool {
    name.as_bytes().starts_with(SHARED_INDEX.as_bytes())
}

fn is_content(path: &Path, content: &[u8]) -> bool {
    read_plain(path, content.len() as u64).is_ok_and(|found| found == content)
}
