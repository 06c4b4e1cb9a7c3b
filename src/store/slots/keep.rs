//! What stays in a slot between two runs of one branch, and what is copied into it from the main working
//! tree.
//!
//! What is kept is moved out of the slot before the slot is filled, and back afterwards, so that filling and
//! verifying a slot works as ever, byte for byte. Before anything else is done the record says whose files
//! they are, so a process that is killed in between leaves nothing to another branch. Only what the commit at
//! hand does not contain, and its rules ignore, is moved back or copied. Implements K58.

use super::fill::Filled;
use super::find::{bytes_of, cannot, files, find};
use super::{Occupant, Slot};
use crate::protocol::id::ObjectId;
use crate::store::beneath::{Kind, Root};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, remove_tree};
use gix::bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of one file that is copied into a slot.
const INCLUDE_MAX: u64 = 64 << 20;

/// What is to be kept and copied, by this account's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keeping {
    /// Patterns for what stays in a slot between runs of one branch.
    pub keep: Vec<String>,
    /// True where it stays for other branches too.
    pub across: bool,
    /// Patterns for what is copied from the main working tree.
    pub include: Vec<String>,
}

/// The branch whose files are kept in a slot, and what prepared the slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keeps {
    branch: Vec<u8>,
    remote: Option<String>,
    /// True where some of the kept files may be another branch's.
    #[serde(default)]
    mixed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prepared: Option<Prepared>,
}

/// A preparation of the slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prepared {
    pub(super) key: String,
    /// The paths that were kept then: once one of them is gone, the preparation counts as lost.
    pub(super) paths: Vec<Vec<u8>>,
}

impl Keeps {
    fn of(branch: &[u8], remote: Option<&str>, mixed: bool) -> Self {
        Self { branch: branch.to_vec(), remote: remote.map(str::to_owned), mixed, prepared: None }
    }

    pub(super) fn is_of(&self, branch: &[u8], remote: Option<&str>) -> bool {
        self.branch == branch && self.remote.as_deref() == remote
    }
}

/// Returns a path as a record has it: folders end in a slash.
fn noted(path: &Path, kind: Kind) -> Vec<u8> {
    let slash: &[u8] = if kind == Kind::Folder { b"/" } else { b"" };
    [path.as_os_str().as_bytes(), slash].concat()
}

fn path_of(raw: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(raw)).to_owned()
}

impl Slot {
    /// Brings the slot to a commit, with nothing else in it.
    pub(crate) fn fill(
        &mut self,
        repo: &Repository,
        commit: ObjectId,
        tree: ObjectId,
    ) -> Result<Filled, StoreError> {
        self.forget_kept()?;
        self.bring(repo, commit, tree)
    }

    /// Brings the slot to a commit for this run, with what is kept for its branch and what is copied into the
    /// slot.
    pub(crate) fn fill_for(
        &mut self,
        repo: &Repository,
        (commit, tree): (ObjectId, ObjectId),
        run: &Occupant,
        keeping: &Keeping,
    ) -> Result<Filled, StoreError> {
        if keeping.keep.is_empty() && keeping.include.is_empty() {
            return self.fill(repo, commit, tree);
        }
        let (branch, remote) = (run.branch_name(), run.remote.as_deref());
        let own = self.record.keeps.as_ref().is_some_and(|kept| kept.is_of(branch.as_bytes(), remote));
        let kept = own || keeping.across && self.record.keeps.is_some();
        // Files of another account are not this one's to write, wherever they are moved.
        let stays = !keeping.keep.is_empty() && kept && self.is_own();
        if stays {
            self.put_aside(repo, &keeping.keep)?;
        } else {
            self.forget_kept()?;
            // An earlier version may have left the folder.
            self.drop_aside()?;
        }
        let filled = self.bring(repo, commit, tree)?;
        let mut back = Vec::new();
        if stays {
            back = self.put_back(repo, &keeping.keep)?;
        }
        let included = self.include(repo, &keeping.include)?;
        self.record.beside = back.iter().chain(&included).cloned().collect();
        let mixed = stays && (!own || self.record.keeps.as_ref().is_some_and(|kept| kept.mixed));
        // What another branch may have left is never the work of this one.
        self.record.included = if mixed { self.record.beside.clone() } else { included };
        if !keeping.keep.is_empty() {
            let kept = self.record.keeps.take().filter(|_| own);
            self.record.keeps = Some(kept.unwrap_or_else(|| Keeps::of(branch.as_bytes(), remote, mixed)));
        }
        self.save()?;
        Ok(filled)
    }

    /// Notes that nothing in the slot is kept any more, and removes what was moved aside.
    fn forget_kept(&mut self) -> Result<(), StoreError> {
        let record = &mut self.record;
        if record.keeps.is_none() && record.beside.is_empty() && record.included.is_empty() {
            return Ok(());
        }
        record.keeps = None;
        record.beside.clear();
        record.included.clear();
        self.save()?;
        self.drop_aside()
    }

    /// Removes the folder of [`Slot::aside`]; one that another account left, which can't be removed, is moved out of
    /// the way.
    pub(super) fn drop_aside(&self) -> Result<(), StoreError> {
        let aside = self.aside();
        let removed = remove_tree(&aside);
        removed.or_else(|why| self.moved_out(&aside).map(drop).map_err(|_| io_error("remove", &aside)(why)))
    }

    /// Returns the folder in which kept files wait while the slot is filled. It is beside the slot, so that
    /// they can be renamed there and back.
    fn aside(&self) -> PathBuf {
        self.home.with_file_name(self.aside_name())
    }

    fn aside_name(&self) -> String {
        format!(".kept-{}", self.number)
    }

    /// True where the index has this path, something below it, or a file, a link or a submodule in the place
    /// of a folder above it: then the commit's ignore rules do not apply to the path, and Git refuses to
    /// check it.
    fn is_tracked(&self, repo: &Repository, path: &Path) -> Result<bool, StoreError> {
        let index = self.index(repo.hash)?;
        let path: &BStr = path.as_os_str().as_bytes().as_bstr();
        let below = BString::from([path.as_bytes(), b"/"].concat());
        let has = |path: &BStr| {
            let from = index.entries().partition_point(|e| e.path(index) < path);
            index.entries().get(from).is_some_and(|e| e.path(index) == path)
        };
        let at = has(path) || path.find_iter("/").any(|end| has(path[..end].as_bstr()));
        let from = index.entries().partition_point(|e| e.path(index) < below.as_bstr());
        Ok(at || index.entries().get(from).is_some_and(|e| e.path(index).starts_with(&below)))
    }

    /// Moves what is to be kept out of the slot. What can't be moved is not kept.
    fn put_aside(&mut self, repo: &Repository, patterns: &[String]) -> Result<(), StoreError> {
        self.record.beside.clear();
        self.record.included.clear();
        self.save()?;
        let (Some(parent), true) = (self.home.parent(), self.dir == self.home && self.is_folder()) else {
            return Ok(());
        };
        let root = Root::open(parent).map_err(cannot)?;
        let (slot, aside) = (PathBuf::from(self.number.to_string()), PathBuf::from(self.aside_name()));
        for path in find(&root, &slot, patterns, &self.stop).into_keys() {
            self.unless_stopped()?;
            if self.record.tree.is_some() && self.is_tracked(repo, &path).unwrap_or(true) {
                continue;
            }
            let to = aside.join(&path);
            let made = root.create_dirs(to.parent().unwrap_or(&aside), 0o700);
            // Where a file waits under this name already, a process that was killed had moved it.
            if made.is_ok() && matches!(root.kind(&to), Ok(None)) {
                let _ = root.rename(&slot.join(&path), &to);
            }
        }
        Ok(())
    }

    /// Moves back what the commit does not contain and its rules ignore; the rest is removed. Returns the
    /// paths that were moved back.
    fn put_back(&self, repo: &Repository, patterns: &[String]) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(parent) = self.home.parent() else { return Ok(Vec::new()) };
        let root = Root::open(parent).map_err(cannot)?;
        let (slot, aside) = (PathBuf::from(self.number.to_string()), PathBuf::from(self.aside_name()));
        let mut back = Vec::new();
        let waiting = find(&root, &aside, patterns, &self.stop);
        // Where this run was stopped, what waits there is left for the next run.
        self.unless_stopped()?;
        for (path, kind) in waiting {
            let to = slot.join(&path);
            if self.is_tracked(repo, &path)? || !matches!(root.kind(&to), Ok(None)) {
                continue;
            }
            let made = root.create_dirs(to.parent().unwrap_or(&slot), 0o777);
            if made.is_ok() && root.rename(&aside.join(&path), &to).is_ok() {
                back.push((path, kind));
            }
        }
        self.drop_aside()?;
        let names: Vec<BString> = back.iter().map(|(p, _)| p.as_os_str().as_bytes().into()).collect();
        let ignored = repo.git.ignored(&self.admin, &self.dir, &names)?;
        let ignored: BTreeSet<PathBuf> = ignored.iter().map(|path| path_of(path)).collect();
        let (stays, goes): (Vec<_>, Vec<_>) = back.into_iter().partition(|(path, _)| ignored.contains(path));
        for (path, _) in goes {
            let gone = self.dir.join(path);
            remove_tree(&gone).map_err(io_error("remove", &gone))?;
        }
        Ok(stays.into_iter().map(|(path, kind)| noted(&path, kind)).collect())
    }

    /// Copies files of the main working tree that this commit does not contain and ignores. Returns their
    /// paths.
    fn include(&self, repo: &Repository, patterns: &[String]) -> Result<Vec<Vec<u8>>, StoreError> {
        let (Some(main), false) = (&repo.main_dir, patterns.is_empty()) else { return Ok(Vec::new()) };
        let from = Root::open(main).map_err(cannot)?;
        let mut all = Vec::new();
        for path in find(&from, Path::new(""), patterns, &self.stop).into_keys() {
            self.unless_stopped()?;
            files(&from, &path, &mut all).map_err(cannot)?;
        }
        let to = Root::open(&self.dir).map_err(cannot)?;
        let mut names = Vec::new();
        for path in all {
            // A kept folder has the place of the file, or a link is above it: then there is no room for the
            // file, and Git is not asked, as it refuses to check what lies beyond a link.
            let room = matches!(to.kind(&path), Ok(None | Some(Kind::File | Kind::Link | Kind::Other)));
            if room && !self.is_tracked(repo, &path)? {
                names.push(BString::from(path.as_os_str().as_bytes()));
            }
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = repo.git.ignored(&self.admin, &self.dir, &names)?;
        let mut copied = Vec::new();
        for name in ignored {
            self.unless_stopped()?;
            let path = path_of(&name);
            if path.parent().is_some_and(|parent| to.create_dirs(parent, 0o777).is_err()) {
                continue;
            }
            let file = from.file(&path).map_err(cannot)?;
            let mode = file.metadata().map_err(io_error("read", &path))?.permissions().mode() & 0o777;
            let content = from.read(&path, INCLUDE_MAX).map_err(cannot)?;
            to.replace(&path, &content, mode).map_err(cannot)?;
            copied.push(noted(&path, Kind::File));
        }
        Ok(copied)
    }

    /// Returns the paths in the slot beside the commit that are never its run's work, if each is still the
    /// kind of file it was. What a command put in the place of one, or of a folder above it, is the command's
    /// own work; and Git refuses to check what lies beyond a link.
    pub(super) fn foreign(&self) -> Vec<BString> {
        let slot = Root::open(&self.dir).ok();
        let stands = |raw: &&Vec<u8>| {
            let was = if raw.ends_with(b"/") { Kind::Folder } else { Kind::File };
            match slot.as_ref().map(|slot| slot.kind(&path_of(raw))) {
                Some(Ok(kind)) => kind == Some(was),
                Some(Err(error)) => error.refusal().is_none(),
                None => true,
            }
        };
        let stands = self.record.included.iter().filter(stands);
        stands.map(|raw| raw.strip_suffix(b"/").unwrap_or(raw).into()).collect()
    }

    /// True where the slot was prepared with this key, and everything that was kept of that preparation is
    /// still there.
    pub(crate) fn is_prepared(&self, key: &str) -> bool {
        let prepared = self.record.keeps.as_ref().and_then(|kept| kept.prepared.as_ref());
        let beside: BTreeSet<&Vec<u8>> = self.record.beside.iter().collect();
        prepared.is_some_and(|prepared| {
            prepared.key == key && prepared.paths.iter().all(|path| beside.contains(path))
        })
    }

    /// Notes that the slot was prepared with this key. Does nothing where the slot keeps nothing, as then the
    /// next filling undoes the preparation.
    pub(crate) fn note_prepared(&mut self, key: String, patterns: &[String]) -> Result<(), StoreError> {
        if self.record.keeps.is_none() {
            return Ok(());
        }
        let root = Root::open(&self.dir).map_err(cannot)?;
        let kept = find(&root, Path::new(""), patterns, &self.stop);
        let paths: Vec<Vec<u8>> = kept.iter().map(|(path, kind)| noted(path, *kind)).collect();
        if let Some(kept) = &mut self.record.keeps {
            // Where no path matches, nothing of the preparation stays, and it is done again.
            kept.prepared = (!paths.is_empty()).then_some(Prepared { key, paths });
        }
        self.save()
    }

    /// Returns the id in hex of the blob that the slot's commit has at a path.
    pub(crate) fn blob_at(&self, repo: &Repository, path: &Path) -> Result<Option<String>, StoreError> {
        let index = self.index(repo.hash)?;
        let path: &BStr = path.as_os_str().as_bytes().as_bstr();
        Ok(index.entry_by_path(path).map(|entry| entry.id.to_string()))
    }

    /// Returns the branch whose files are kept in the slot, their paths, and how many bytes they take on
    /// disk.
    pub(crate) fn kept(&self, patterns: &[String]) -> Option<(Vec<u8>, Vec<PathBuf>, u64)> {
        let kept = self.record.keeps.as_ref()?;
        let root = Root::open(&self.dir).ok()?;
        let mut paths: Vec<PathBuf> = find(&root, Path::new(""), patterns, &self.stop).into_keys().collect();
        // The patterns may have changed since the files were noted.
        paths.extend(self.record.beside.iter().map(|raw| path_of(raw)));
        paths.sort();
        paths.dedup();
        let bytes = paths.iter().map(|path| bytes_of(&self.dir.join(path))).sum::<u64>();
        Some((kept.branch.clone(), paths, bytes + bytes_of(&self.aside())))
    }
}
