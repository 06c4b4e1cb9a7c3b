//! Reads what a command left in its slot, as a tree and a HEAD.
//!
//! Where nothing changed this costs one walk and no process. Otherwise the slot's index is copied, and Git
//! stages into the copy through a view of our own. The slot itself is left as it is, as a process may still
//! be at work in it. Implements K25, K58 (what is never a run's work).

use super::view::View;
use super::{FileId, Slot, scan};
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, is_plain, make_readable, read_plain};
use crate::supervisor::beneath::{Kind, Root};
use gix::bstr::BString;
use gix::index::entry::Mode;
use gix::validate::path::component;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which part of the slot's content becomes part of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// All files that are not ignored.
    All,
    /// Only what the command staged itself.
    Index,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Harvest {
    /// The tree of the slot's content.
    pub(crate) tree: ObjectId,
    /// The slot's HEAD: the lease, or the last commit that the command made.
    pub(crate) head: ObjectId,
    /// Repositories, and files that Git can't take, inside the slot that were left out of the tree.
    pub(crate) nested: Vec<BString>,
}

/// Why the slot's content can't be an outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HarvestError {
    /// HEAD does not descend from the lease.
    #[error("HEAD does not descend from the lease")]
    ForeignHead(ObjectId),
    /// The index has unmerged paths.
    #[error("the index has unmerged paths")]
    Unmerged,
    /// The content could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Slot {
    /// Reads what the command left. `lease` is the commit that the slot was filled with, `tree` its tree.
    pub(crate) fn harvest(
        &self,
        repo: &Repository,
        stage: Stage,
        lease: ObjectId,
        tree: ObjectId,
    ) -> Result<Harvest, HarvestError> {
        if !self.is_folder() {
            let gone = std::io::ErrorKind::NotADirectory;
            return Err(HarvestError::Store(io_error("read", &self.dir)(gone.into())));
        }
        self.disarm(repo, lease)?;
        let head = self.head(repo)?;
        if head != lease && !repo.git.is_ancestor(lease, head)? {
            return Err(HarvestError::ForeignHead(head));
        }
        let hash = repo.hash;
        let untouched = self.index_is_ours();
        let view = View::new(self, repo, lease);
        if !untouched && has_unmerged(&view.index()?, hash)? {
            return Err(HarvestError::Unmerged);
        }
        let mut nested = Vec::new();
        if stage == Stage::All {
            let mut found = self.scan(hash)?;
            if !found.closed.is_empty() {
                // Git skips a folder that it can't list, with a warning, so its content would be lost.
                let mut closed = self.not_ignored(&view, repo, std::mem::take(&mut found.closed))?;
                // Without the slot's lock the command may still run, and put a link in the place of a folder,
                // so no permissions are changed then.
                if self.lock.is_some() && !closed.is_empty() {
                    closed.iter().for_each(|path| make_readable(&self.dir.join(OsStr::from_bytes(path))));
                    found = self.scan(hash)?;
                    closed = self.not_ignored(&view, repo, std::mem::take(&mut found.closed))?;
                }
                if let Some(path) = closed.first() {
                    let path = self.dir.join(OsStr::from_bytes(path));
                    let cannot = std::io::ErrorKind::PermissionDenied.into();
                    return Err(HarvestError::Store(io_error("list", &path)(cannot)));
                }
            }
            if found.clean && untouched && head == lease {
                return Ok(Harvest { tree, head, nested });
            }
            nested = found.nested;
            let foreign = self.foreign();
            nested.retain(|path| !foreign.contains(path));
            nested = self.not_ignored(&view, repo, nested)?;
        } else if self.scan(hash).is_ok() && untouched && head == lease {
            return Ok(Harvest { tree, head, nested });
        }
        let tree = self.stage(&view, repo, stage, &nested)?;
        Ok(Harvest { tree, head, nested })
    }

    /// Reads the slot's content in whatever state it is, so that no work is lost (K26): unmerged paths as
    /// their files are, and a HEAD that need not descend from the lease.
    pub(crate) fn salvage(
        &self,
        repo: &Repository,
        stage: Stage,
        lease: ObjectId,
        tree: ObjectId,
    ) -> Result<Harvest, StoreError> {
        if self.record.tree.as_deref() != Some(&*tree.to_string()) {
            // The slot was never filled for this run.
            return Ok(Harvest { tree, head: lease, nested: Vec::new() });
        }
        if !self.is_there()? {
            // Somebody removed the folder. What the command had committed is still named by the registration.
            let (tree, head) = match self.gone(repo, lease) {
                Err(error) if repo.git.git().stopped() => return Err(error),
                found => found.unwrap_or((tree, lease)),
            };
            return Ok(Harvest { tree, head, nested: Vec::new() });
        }
        let first = self.harvest(repo, stage, lease, tree);
        // Where the command took away access rights, of the slot itself too, the second try comes after they
        // are restored.
        let again = first.or_else(|error| match error {
            HarvestError::Store(StoreError::TooLong { .. }) => Err(error),
            HarvestError::ForeignHead(_) | HarvestError::Unmerged => Err(error),
            HarvestError::Store(_) => {
                make_readable(&self.dir);
                self.harvest(repo, stage, lease, tree)
            }
        });
        let no_way = match again {
            Ok(found) => return Ok(found),
            Err(HarvestError::Store(StoreError::TooLong { .. })) => true,
            Err(HarvestError::Store(_)) => self.scan(repo.hash).is_ok_and(|found| !found.closed.is_empty()),
            Err(HarvestError::ForeignHead(_) | HarvestError::Unmerged) => false,
        };
        let nested = self.scan(repo.hash).map(|found| found.nested).unwrap_or_default();
        let view = View::new(self, repo, lease);
        let nested = self.not_ignored(&view, repo, nested.clone()).unwrap_or(nested);
        let head = self.head(repo).unwrap_or(lease);
        // Git can never stage some content, or would take for ever: a name that it reserves for itself, an
        // encoding that does not exist, a file of unlimited length, a folder that can't be listed. Then no
        // tree holds the slot's content, just as none holds a repository. It is reported as `nested`, so that
        // the slot need not be kept for it.
        let whole = || Ok(Harvest { tree, head, nested: self.all_names()? });
        if no_way {
            return whole();
        }
        let sound = view.index().and_then(|index| has_unmerged(&index, repo.hash));
        let staged = sound.and_then(|_| self.stage(&view, repo, stage, &nested));
        match staged.or_else(|_| self.stage_anew(&view, repo, &nested, head)) {
            Ok(tree) => Ok(Harvest { tree, head, nested }),
            Err(StoreError::TooLong { .. }) => whole(),
            Err(StoreError::Git { .. }) if !repo.git.git().stopped() => whole(),
            Err(other) => Err(other),
        }
    }

    /// Returns the tree and the id of the commit at the HEAD of a slot whose folder is gone; an error where Git could not
    /// walk from there, and so not go by it later either.
    fn gone(&self, repo: &Repository, lease: ObjectId) -> Result<(ObjectId, ObjectId), StoreError> {
        let head = self.head(repo)?;
        repo.git.is_ancestor(lease, head)?;
        Ok((repo.tree_of(head)?, head))
    }

    /// Returns all names at the top of the slot but `.git`, which makes it a worktree.
    fn all_names(&self) -> Result<Vec<BString>, StoreError> {
        let entries = std::fs::read_dir(&self.dir).map_err(io_error("read", &self.dir))?;
        let names: Result<Vec<BString>, _> =
            entries.map(|entry| entry.map(|entry| entry.file_name().into_vec().into())).collect();
        let mut names = names.map_err(io_error("read", &self.dir))?;
        names.retain(|name| name != ".git");
        names.sort();
        Ok(names)
    }

    /// Syncs the objects that the command wrote itself, where durable (K42).
    pub(crate) fn sync(&self, repo: &Repository) -> Result<(), StoreError> {
        if repo.durable { crate::store::sync_file_system(&repo.common_dir) } else { Ok(()) }
    }

    /// Returns `paths` without those that are ignored. A path in a submodule of the command's index stays: no
    /// rule of the slot can ignore it, and Git refuses to check it.
    fn not_ignored(
        &self,
        view: &View<'_>,
        repo: &Repository,
        paths: Vec<BString>,
    ) -> Result<Vec<BString>, StoreError> {
        if paths.is_empty() {
            return Ok(paths);
        }
        let links = self.staged_links(repo, view.dir()?, &view.index()?)?;
        let within = |path: &BString| {
            let within = |link: &[u8]| path.strip_prefix(link).is_some_and(|rest| rest.starts_with(b"/"));
            links.iter().any(|(link, _, _)| within(link))
        };
        let (mut inside, outside): (Vec<_>, Vec<_>) = paths.into_iter().partition(within);
        inside.extend(self.to_leave_out(view, repo, outside)?);
        inside.sort();
        Ok(inside)
    }

    /// Returns `paths` without those that are ignored anyway: Git refuses to exclude such a path. None of
    /// `paths` may lie beyond a link, or in a submodule of the view's index.
    fn to_leave_out(
        &self,
        view: &View<'_>,
        repo: &Repository,
        paths: Vec<BString>,
    ) -> Result<Vec<BString>, StoreError> {
        if paths.is_empty() {
            return Ok(paths);
        }
        let ignored = repo.git.ignored(view.dir()?, &self.dir, &paths)?;
        Ok(paths.into_iter().filter(|path| !ignored.contains(path)).collect())
    }

    fn stage(
        &self,
        view: &View<'_>,
        repo: &Repository,
        stage: Stage,
        nested: &[BString],
    ) -> Result<ObjectId, StoreError> {
        let (git_dir, copy) = (view.dir()?, view.index()?);
        let unhide = || match !self.index_is_ours() && may_hide(&copy, repo.hash) {
            true => repo.git.unhide(git_dir, &self.dir, &copy, repo.bare),
            false => Ok(()),
        };
        let staged = match stage {
            Stage::All => unhide().and_then(|()| self.add(view, repo, nested)),
            Stage::Index => Ok(()),
        };
        write_staged(view, repo, staged)
    }

    /// Stages all that Git may read, which the repositories of submodules are not, as they are the command's
    /// own. For a submodule in the index `git add` would look for changes in its repository, and so start
    /// programs that its configuration names. Therefore submodules are taken out of the index first and put
    /// back afterwards, whatever is in their places by then.
    fn add(&self, view: &View<'_>, repo: &Repository, nested: &[BString]) -> Result<(), StoreError> {
        let (git_dir, copy) = (view.dir()?, view.index()?);
        let staged = self.staged_links(repo, git_dir, &copy)?;
        let stays = self.links_that_stay(repo, &staged)?;
        let staged: Vec<(BString, ObjectId)> = staged.into_iter().map(|(path, id, _)| (path, id)).collect();
        let out =
            nested.iter().cloned().chain(stays.iter().map(|(path, _)| path.clone())).chain(self.foreign());
        let mut out: Vec<BString> = out.collect();
        out.sort();
        out.dedup();
        repo.git.drop_links(git_dir, &copy, &staged)?;
        let out = self.to_leave_out(view, repo, out)?;
        repo.git.add_all(git_dir, &self.dir, &copy, &out, repo.bare, self.reads.as_ref())?;
        repo.git.set_links(git_dir, &copy, &stays)
    }

    /// Returns the submodules that a copy of the command's index names, as Git reads it: in an index that an
    /// attacker wrote another reader might see others.
    fn staged_links(
        &self,
        repo: &Repository,
        git_dir: &Path,
        copy: &Path,
    ) -> Result<Vec<(BString, ObjectId, bool)>, StoreError> {
        if is_plain(copy) && std::fs::read(copy).ok() != std::fs::read(self.index_copy()).ok() {
            return repo.git.links_of(git_dir, copy);
        }
        // The copy is the runner's own index, or there is none.
        Ok(self.own_links(repo)?.into_iter().map(|(path, id)| (path, id, false)).collect())
    }

    /// Returns the submodules that the index has afterwards: those in whose place there is a folder, or
    /// something that can't be examined (one beyond a link or a file counts as gone). One whose place is
    /// empty stays only if it is outside of a sparse checkout. Each gets the commit that is checked out in
    /// it, if the runner knows it, or else the one that was staged.
    fn links_that_stay(
        &self,
        repo: &Repository,
        staged: &[(BString, ObjectId, bool)],
    ) -> Result<Vec<(BString, ObjectId)>, StoreError> {
        let mut stays: BTreeMap<BString, ObjectId> = BTreeMap::new();
        let slot = Root::open(&self.dir).ok();
        for (path, id, sparse) in staged {
            let place = Path::new(OsStr::from_bytes(path));
            let stay = match slot.as_ref().map(|slot| slot.kind(place)) {
                Some(Ok(Some(kind))) => kind == Kind::Folder,
                Some(Ok(None)) => *sparse,
                Some(Err(error)) => error.refusal().is_none(),
                None => true,
            };
            if stay {
                stays.insert(path.clone(), *id);
            }
        }
        let checked_out = self.submodules(repo)?.into_iter();
        stays.extend(checked_out.filter_map(|(path, head)| Some((path, head?))));
        Ok(stays.into_iter().collect())
    }

    /// Stages the files of a slot whose index, registration or permissions the command broke, with a new
    /// index.
    fn stage_anew(
        &self,
        view: &View<'_>,
        repo: &Repository,
        nested: &[BString],
        head: ObjectId,
    ) -> Result<ObjectId, StoreError> {
        self.register(repo, head)?;
        self.detach(repo, head)?;
        make_readable(&self.dir);
        // Every `git gc` and `git fsck` of the user's would fail for an index that can't be read.
        let theirs = self.admin.join("index");
        if has_unmerged(&theirs, repo.hash).is_err() {
            let _ = std::fs::remove_file(&theirs);
        }
        let (git_dir, copy) = (view.dir()?, view.index()?);
        for broken in ["index", "index.lock"] {
            let _ = std::fs::remove_file(git_dir.join(broken));
        }
        let foreign = self.to_leave_out(view, repo, self.foreign()).unwrap_or_else(|_| self.foreign());
        let out: Vec<BString> = nested.iter().cloned().chain(foreign).collect();
        let staged = repo.git.add_all(git_dir, &self.dir, &copy, &out, repo.bare, self.reads.as_ref());
        write_staged(view, repo, staged)
    }

    /// True where the slot's index is still the one that the runner put there.
    fn index_is_ours(&self) -> bool {
        let (ours, theirs) = (self.index_copy(), self.admin.join("index"));
        if self.placed.is_some() && self.placed == FileId::of(&theirs) {
            return true;
        }
        let sizes = (ours.metadata(), theirs.symlink_metadata());
        let (Ok(a), Ok(b)) = sizes else { return false };
        a.size() == b.size()
            && b.is_file()
            && std::fs::read(&ours).ok().zip(read_plain(&theirs, a.size()).ok()).is_some_and(|(a, b)| a == b)
    }
}

fn write_staged(
    view: &View<'_>,
    repo: &Repository,
    staged: Result<(), StoreError>,
) -> Result<ObjectId, StoreError> {
    let tree = staged.and_then(|()| repo.git.write_tree(view.dir()?, &view.index()?));
    if repo.durable {
        crate::store::sync_file_system(&repo.common_dir)?;
    }
    tree
}

/// True where flags that the command set in the index may hide a changed file from Git.
fn may_hide(index: &Path, hash: gix::hash::Kind) -> bool {
    is_plain(index) && scan::hides(index, hash)
}

/// True where a command's index has unmerged paths.
///
/// # Errors
/// An index that can't be read, or that holds what Git takes for no path: Git writes it into a tree unseen, and takes
/// that tree for damaged afterwards.
fn has_unmerged(path: &Path, hash: gix::hash::Kind) -> Result<bool, StoreError> {
    if !is_plain(path) {
        return Ok(false);
    }
    let index = scan::read_index(path, hash)?;
    let is_path = |entry: &gix::index::Entry| {
        // The folder of a sparse index ends in a slash.
        let path: &[u8] = entry.path(&index);
        let path = path.strip_suffix(b"/").filter(|_| entry.mode == Mode::DIR).unwrap_or(path);
        let kind = (entry.mode == Mode::SYMLINK).then_some(component::Mode::Symlink);
        let git = component::Options { protect_windows: false, ..component::Options::default() };
        path.split(|byte| *byte == b'/').all(|name| component(name.into(), kind, git).is_ok())
    };
    if !index.entries().iter().all(is_path) {
        let message = "it holds what is no path".to_owned();
        return Err(StoreError::Gix { what: "read the index", message });
    }
    Ok(index.entries().iter().any(|e| e.stage() != gix::index::entry::Stage::Unconflicted))
}
