//! Fills a slot with a commit's tree: what is there is verified, what differs is replaced.
//!
//! There are three ways. A slot that has the same tree is compared file by file, and used again. One that was
//! changed, or that needs another tree, is brought there by Git's own `read-tree` and `clean`. A new slot
//! gets a fresh checkout, in process where possible. A slot that can't be brought to the tree, or whose
//! attributes change with it, is given up and made anew once. Another thread may stop the filling
//! ([`Slot::stopper`]). No hook runs, no file system monitor, and on a server no filter. Implements K14.

use super::{FileId, Slot, attributes, bomb, scan};
use crate::protocol::id::ObjectId;
use crate::store::backends::gix_report::gix_write_error;
use crate::store::backends::gix_store::Backend;
use crate::store::disk::{Shared, is_made_by_another};
use crate::store::repository::Repository;
use crate::store::{StoreError, copy_file, copy_index, io_error};
use nix::unistd::geteuid;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// From this many files on a checkout uses several threads.
const PARALLEL_FROM: usize = 500;

/// How a slot was filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The slot had the tree; every file was verified.
    Reused,
    /// The slot was brought to the tree.
    Updated,
    /// The slot was made anew.
    Fresh,
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

impl Slot {
    /// Brings the slot to `commit`, whose tree is `tree`, with nothing else in it.
    pub(super) fn bring(
        &mut self,
        repo: &Repository,
        commit: ObjectId,
        tree: ObjectId,
    ) -> Result<Filled, StoreError> {
        if self.admin.symlink_metadata().is_ok() && !self.is_registered() {
            let taken = std::io::ErrorKind::AlreadyExists.into();
            return Err(io_error("register the slot as", &self.admin)(taken));
        }
        self.go_home(repo);
        let known = self.record.tree.is_some() && self.is_folder();
        let is_own = self.is_own();
        self.record.account = Some(geteuid().as_raw());
        if known && is_own && self.opened_admin().is_ok() {
            match self.refill(repo, commit, tree) {
                Ok(filled) => return Ok(filled),
                Err(error) => {
                    self.retire(repo)?;
                    if self.is_stopped() {
                        return Err(error);
                    }
                }
            }
        } else if self.dir.symlink_metadata().is_ok() || self.admin.symlink_metadata().is_ok() {
            self.retire(repo)?;
        }
        if let Err(error) = self.fill_fresh(repo, commit, tree) {
            // A slot that is filled in part is of no use, and its registration may name no commit yet.
            let _ = self.retire(repo);
            return Err(error);
        }
        Ok(Filled::Fresh)
    }

    /// True where all files are this account's: it made the folder, and was the last to fill it. A command could not
    /// write those of another account, root's among them. Root could, and uses the slot of a repository's one account
    /// as it is; where several share a repository, whoever may write a slot has chosen what a command of root's would
    /// find in it.
    pub(super) fn is_own(&self) -> bool {
        let own = geteuid();
        let was_own = self.record.account.is_none_or(|last| last == own.as_raw());
        was_own && !is_made_by_another(&self.dir) || own.is_root() && self.shared == Shared::Umask
    }

    fn refill(&mut self, repo: &Repository, commit: ObjectId, tree: ObjectId) -> Result<Filled, StoreError> {
        let failed = |why: &str| StoreError::Gix { what: "refill the slot", message: why.into() };
        self.drop_modules(repo)?;
        self.register(repo, commit)?;
        if self.record.tree.as_deref() == Some(&*tree.to_string()) && self.verify(repo)? {
            // Every file was just seen to be as the index says. So the index gets a new time stamp, which
            // spares Git from comparing the files again.
            self.restore_index(|mut copy, index| copy_file(&mut copy, index).map(drop))?;
            self.detach(repo, commit)?;
            return Ok(Filled::Reused);
        }
        if !self.remove_repositories(repo)? {
            return Err(failed("a repository is in it"));
        }
        self.restore_index(copy_index)?;
        self.detach(repo, commit)?;
        let index = self.admin.join("index");
        let rules = attributes::of_index(self.index(repo.hash)?);
        // This comes before the checkout, as Git would obey a file of attributes that is not committed.
        self.clean(repo)?;
        self.held(|hold| repo.git.read_tree(&self.admin, &self.dir, tree, repo.bare, (hold, &self.stop)))?;
        let now = scan::read_index(&index, repo.hash)?;
        if attributes::of_index(&now) != rules {
            // Git does not write a file again where only the rules for writing it changed.
            return Err(failed("the attributes changed"));
        }
        self.note(&index, tree)?;
        let _ = self.index.set(now);
        // A filter driver may have left files.
        if self.verify(repo)? || self.clean(repo).is_ok() && self.verify(repo)? {
            Ok(Filled::Updated)
        } else {
            Err(failed("files differ after the checkout"))
        }
    }

    fn switch_tree(&self, repo: &Repository, tree: ObjectId) -> Result<(), StoreError> {
        self.held(|hold| repo.git.read_tree(&self.admin, &self.dir, tree, repo.bare, (hold, &self.stop)))?;
        self.clean(repo)
    }

    fn clean(&self, repo: &Repository) -> Result<(), StoreError> {
        self.held(|hold| repo.git.clean(&self.admin, &self.dir, repo.bare, (hold, &self.stop)))
    }

    /// True where the slot is byte for byte what the runner's index copy says.
    fn verify(&mut self, repo: &Repository) -> Result<bool, StoreError> {
        let started = now_ns();
        let hash = repo.hash;
        let clean = self.scan(hash)?.clean;
        if clean {
            self.record.verified_at = started;
            self.save()?;
        }
        Ok(clean)
    }

    fn restore_index(&mut self, put: fn(&File, &Path) -> std::io::Result<()>) -> Result<(), StoreError> {
        let (copy, index) = (self.index_copy(), self.admin.join("index"));
        let aside = self.admin.join("index.aynig");
        File::open(&copy).and_then(|copy| put(&copy, &aside)).map_err(io_error("copy", &copy))?;
        std::fs::rename(&aside, &index).map_err(io_error("write", &index))?;
        self.drop_shared_index();
        self.placed = FileId::of(&index);
        let _ = std::fs::remove_file(self.admin.join("index.lock"));
        Ok(())
    }

    /// Keeps a copy of the index, which describes the slot as it is now, and notes its tree in the record.
    fn note(&mut self, index: &Path, tree: ObjectId) -> Result<(), StoreError> {
        let copy = self.index_copy();
        let aside = copy.with_extension("index.new");
        File::open(index).and_then(|index| copy_index(&index, &aside)).map_err(io_error("copy", index))?;
        std::fs::rename(&aside, &copy).map_err(io_error("write", &copy))?;
        self.shared.give(&copy);
        self.shared.give(index);
        self.index = std::cell::OnceCell::new();
        self.placed = FileId::of(index);
        self.record.tree = Some(tree.to_string());
        self.record.verified_at = now_ns();
        self.save()
    }

    fn fill_fresh(&mut self, repo: &Repository, commit: ObjectId, tree: ObjectId) -> Result<(), StoreError> {
        self.register(repo, commit)?;
        self.detach(repo, commit)?;
        let folder = self.dir.symlink_metadata().ok();
        self.record.folder_mode = folder.as_ref().map(scan::folder_mode);
        self.record.made = folder.as_ref().map(super::made);
        let index = self.admin.join("index");
        match &repo.backend {
            Backend::Gix => self.checkout(repo, tree, &index)?,
            Backend::Git(_) => self.switch_tree(repo, tree)?,
        }
        self.note(&index, tree)
    }

    fn not_stopped(&self) -> Result<(), StoreError> {
        match self.is_stopped() {
            true => Err(StoreError::Gix { what: "fill the worktree", message: "it was stopped".into() }),
            false => Ok(()),
        }
    }

    /// Writes all files of a tree into the empty slot, in process where that is possible.
    fn checkout(&self, repo: &Repository, tree: ObjectId, path: &Path) -> Result<(), StoreError> {
        let failed = |e: gix::Error| gix_write_error("check out to", &self.dir)(e);
        let gix = repo.gix();
        let id = gix::ObjectId::from_bytes_or_panic(tree.as_bytes());
        bomb::defuse(&gix, id, &self.stop)?;
        let mut index = gix.index_from_tree(&id).map_err(failed)?;
        // Where working trees have settings of their own, gix knows those of the working tree in which we
        // were started. Git reads those of the slot, both when it fills the slot and when it stages its
        // content.
        if repo.has_own_settings() || attributes::ask_for_git(repo, &gix, &index) {
            return self.switch_tree(repo, tree);
        }
        let source = gix::worktree::stack::state::attributes::Source::IdMapping;
        let mut options = gix.checkout_options(source).map_err(failed)?;
        options.destination_is_initially_empty = false;
        options.overwrite_existing = true;
        // gix panics where the system gives it no thread; few files need none.
        if index.entries().len() < PARALLEL_FROM || std::thread::Builder::new().spawn(|| ()).is_err() {
            options.thread_limit = Some(1);
        }
        if repo.bare {
            options.filters = without_drivers(&gix, repo.hash)?;
        }
        // The first lookup must not happen in two threads at once, as gix may then miss objects that exist.
        let _ = gix.find_header(id);
        let objects = gix.objects.clone().into_arc().map_err(|e| StoreError::Io {
            what: "open the objects of",
            path: repo.common_dir.clone(),
            source: e,
        })?;
        self.not_stopped()?;
        let outcome = gix::worktree::state::checkout(
            &mut index,
            &self.dir,
            objects,
            &gix::progress::Discard,
            &gix::progress::Discard,
            &self.stop,
            options,
        )
        .map_err(failed)?;
        self.not_stopped()?;
        if let Some(first) = outcome.errors.into_iter().next() {
            let path = self.dir.join(OsStr::from_bytes(&first.path));
            return Err(gix_write_error("check out", &path)(first.error));
        }
        if let Some(first) = outcome.collisions.first() {
            let path = self.dir.join(OsStr::from_bytes(&first.path));
            let message = format!("'{}' collides with another file", path.display());
            return Err(StoreError::Gix { what: "check out the slot", message });
        }
        index.set_path(path);
        index.write(Default::default()).map_err(failed)
    }
}

/// Returns a filter pipeline that starts no program: a server does not run what a pushed attribute names.
fn without_drivers(
    gix: &gix::Repository,
    hash: gix::hash::Kind,
) -> Result<gix::filter::plumbing::Pipeline, StoreError> {
    let failed = |m: String| StoreError::Gix { what: "prepare the checkout", message: m };
    let mut options = gix::filter::Pipeline::options(gix).map_err(|e| failed(format!("{e:?}")))?;
    options.drivers.clear();
    let context = gix.command_context().map_err(|e| failed(format!("{e:?}")))?;
    Ok(gix::filter::plumbing::Pipeline::new(context, hash, options))
}
