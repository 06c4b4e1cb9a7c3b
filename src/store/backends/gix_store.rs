//! The in-process store: gix reads and writes objects, `refs::files` reads and swaps refs.
//!
//! Refuses to open what gix would silently misread: reftable and unknown extensions (gix sees no refs there
//! and would write stray files). `backend_for` leaves partial clones to [`super::binary`] too. `refs/replace`
//! is ignored: an id stands for the content that was hashed.
//!
//! A durable store has a written commit on disk before a ref names it: the object file, its folder and the
//! content of the ref's lock are synced together. A torn object that a crash left under the same id is
//! replaced; gix would keep it. The store is single-threaded on purpose: where two threads use a cold object
//! database, gix may report to one of them that an object is missing (the second thread of `bulk` has one of its own). Implements K37,
//! K42 (objects).

use super::binary::GitStore;
use super::bulk;
use super::gix_report::{gix_error, gix_write_error};
use super::small_object;
use crate::protocol::id::ObjectId;
use crate::store::disk::Shared;
use crate::store::git::command::Git;
use crate::store::refs::files::{FilesRefs, Policy};
use crate::store::refs::reflog::LogRefs;
use crate::store::{
    Commit, Heads, NewCommit, Part, RefChange, RefName, Scan, Signature, Store, StoreError, Visit, commit,
    io_error,
};
use gix::objs::{Kind, Write as _};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size of the cache of delta bases while many commits are read, in bytes; the default of 64 slots misses on
/// most of them.
pub(super) const DELTA_BASES: usize = 96 << 20;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Sync what was written before reporting success (`aynig.fsync`).
    pub durable: bool,
    /// How long a held ref lock is waited for.
    pub lock_wait: Duration,
    /// Read the repository's own configuration only, as tests do.
    pub isolated: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { durable: true, lock_wait: Duration::from_secs(1), isolated: false }
    }
}

/// Which store a repository's configuration asks for (K37).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    /// [`GixStore`].
    Gix,
    /// [`super::binary::GitStore`], and why.
    Git(String),
}

/// Decides which store serves a repository, by its configuration alone, never after another store failed.
///
/// # Errors
/// [`StoreError::Unsupported`] for an extension that neither Git nor this tool knows.
pub(crate) fn backend_for(repo: &gix::Repository) -> Result<Backend, StoreError> {
    let config = repo.config_snapshot();
    let mut backend = Backend::Gix;
    for section in config.plumbing().sections_by_name("extensions").into_iter().flatten() {
        for key in section.value_names() {
            let value = section.value(&key).map(|v| v.to_string()).unwrap_or_default();
            match key.to_ascii_lowercase().as_str() {
                "objectformat" | "worktreeconfig" | "preciousobjects" | "noop" | "noop-v1"
                | "relativeworktrees" | "compatobjectformat" => {}
                "refstorage" if value.eq_ignore_ascii_case("files") => {}
                "refstorage" => backend = Backend::Git(format!("extensions.refStorage is {value}")),
                "partialclone" => {}
                unknown => {
                    let cause = format!("unknown repository extension '{unknown}'");
                    return Err(StoreError::Unsupported { path: repo.common_dir().to_owned(), cause });
                }
            }
        }
    }
    Ok(is_promised(repo).map_or(backend, |why| Backend::Git(why.to_owned())))
}

/// Returns why objects may be missing, which Git fetches when they are asked for; `None` where all are there.
fn is_promised(repo: &gix::Repository) -> Option<&'static str> {
    let config = repo.config_snapshot();
    for section in config.plumbing().sections_by_name("remote").into_iter().flatten() {
        let promisor = section.value("promisor").map(|v| v.to_string().to_ascii_lowercase());
        // `promisor` alone, without `= true`, is true too.
        let named = section.value_names().any(|k| k.eq_ignore_ascii_case("promisor"));
        if named && !matches!(promisor.as_deref(), Some("false" | "no" | "off" | "0")) {
            return Some("it has a promisor remote");
        }
    }
    let mut extensions = config.plumbing().sections_by_name("extensions").into_iter().flatten();
    let is_partial =
        extensions.any(|all| all.value_names().any(|key| key.eq_ignore_ascii_case("partialclone")));
    is_partial.then_some("it is a partial clone")
}

/// Opens the store that the repository of this Git directory asks for.
pub fn open_store(git_dir: &Path, git: Git, options: &Options) -> Result<Box<dyn Store>, StoreError> {
    let repo = open_repo(git_dir, options)?;
    Ok(match backend_for(&repo)? {
        Backend::Gix => Box::new(GixStore::from_repo(repo, git, options)?),
        Backend::Git(_) => Box::new(git_store(&repo, git, options)),
    })
}

/// Opens the `git` binary's store for a repository that gix can't serve.
pub(crate) fn git_store(repo: &gix::Repository, git: Git, options: &Options) -> GitStore {
    let common_dir =
        std::fs::canonicalize(repo.common_dir()).unwrap_or_else(|_| repo.common_dir().to_owned());
    let hex_len = repo.object_hash().len_in_hex();
    let store = GitStore::of(git, common_dir, hex_len, options.durable).with_files(policy(repo, options));
    if is_promised(repo).is_some() { store.lazy() } else { store }
}

/// Opens with gix, refusing a repository of another owner as Git does.
pub(crate) fn open_repo(git_dir: &Path, options: &Options) -> Result<gix::Repository, StoreError> {
    let base = if options.isolated { gix::open::Options::isolated() } else { gix::open::Options::default() };
    let opened = gix::open_opts(git_dir, base.bail_if_untrusted(true));
    let mut repo = opened.map_err(gix_error("open the repository"))?;
    keep_delta_bases(&mut repo.objects);
    Ok(repo)
}

/// Has a handle on objects keep what others are deltas of, as far as Git does, whatever the configuration says. An
/// override of the configuration would say the same, at the price of reading a file of it.
pub(crate) fn keep_delta_bases(objects: &mut gix::odb::Handle) {
    objects.set_pack_cache(|| Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(DELTA_BASES)));
}

/// A repository with the files backend, served in process.
pub struct GixStore {
    repo: gix::Repository,
    objects_dir: PathBuf,
    loose: gix::odb::loose::Store,
    refs: FilesRefs,
    durable: bool,
    /// The commits that were read last: a tick reads the same few again at each step, and the content of an
    /// id does not change. Whether a commit still exists is checked when a ref is to name it.
    recent: RefCell<VecDeque<Commit>>,
}

/// How many commits are kept: a head, a lease and an outcome, for each of two branches.
const RECENT: usize = 6;

impl GixStore {
    /// Opens the repository of this Git directory or worktree.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where `backend_for` asks for `git`.
    pub fn open(path: &Path, git: Git, options: &Options) -> Result<Self, StoreError> {
        Self::from_repo(open_repo(path, options)?, git, options)
    }

    /// Makes the store of a repository that is open already.
    pub(crate) fn from_repo(
        mut repo: gix::Repository,
        git: Git,
        options: &Options,
    ) -> Result<Self, StoreError> {
        if let Backend::Git(cause) = backend_for(&repo)? {
            return Err(StoreError::Unsupported { path: repo.common_dir().to_owned(), cause });
        }
        repo.make_paths_absolute().map_err(gix_error("find the repository's folder"))?;
        repo.objects.ignore_replacements = true;
        let hash = repo.object_hash();
        let objects_dir = repo.objects.store_ref().path().to_owned();
        let policy = policy(&repo, options);
        let refs = FilesRefs::new(repo.common_dir(), hash.len_in_hex(), policy, git);
        let loose = gix::odb::loose::Store::at(objects_dir.clone(), hash);
        let recent = RefCell::default();
        Ok(Self { repo, objects_dir, loose, refs, durable: options.durable, recent })
    }

    /// Returns the refs without the objects.
    pub fn refs(&self) -> &FilesRefs {
        &self.refs
    }

    fn read_raw(&self, id: ObjectId, want: Kind) -> Result<Vec<u8>, StoreError> {
        read_raw(&self.repo.objects, id, want)
    }

    /// Writes a loose object, replacing a torn one. A durable store syncs it before the next ref moves, not
    /// at once: an object that no ref names need not survive.
    fn write_object(&self, kind: Kind, data: &[u8]) -> Result<ObjectId, StoreError> {
        let id = gix::objs::compute_hash(self.repo.object_hash(), kind, data)
            .map_err(gix_error("hash the object"))?;
        let path = self.loose.object_path(&id);
        let folder = path.parent().unwrap_or(&self.objects_dir).to_owned();
        let mut is_there = path.exists();
        if is_there && !self.reads_back(&id, kind, data) {
            std::fs::remove_file(&path).map_err(io_error("remove the torn object", &path))?;
            is_there = false;
        }
        if !is_there {
            self.refs.make_dirs_unsynced(&folder)?;
            match small_object::stored(kind, data) {
                Some(file) => small_object::place(&self.objects_dir, &path, &file)?,
                None => self
                    .loose
                    .write_buf(kind, data)
                    .map(drop)
                    .map_err(gix_write_error("write the object to", &self.objects_dir))?,
            }
            self.refs.shared().adjust(&path)?;
        }
        if self.durable {
            self.refs.unsynced.add([path, folder, self.objects_dir.clone()]);
        }
        from_gix(&id)
    }

    fn parse_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        let raw = self.read_raw(id, Kind::Commit)?;
        commit::parse(id, &raw).map_err(|cause| StoreError::Object { id, cause: cause.to_owned() })
    }

    fn read_commits(&self, ids: &[ObjectId], visit: impl FnMut(usize, Result<Commit, StoreError>)) {
        let (dir, hash) = (&self.objects_dir, self.repo.object_hash());
        let multi_pack_index = self.repo.objects.store_ref().use_multi_pack_index();
        let open = || bulk::open_again(dir, hash, multi_pack_index);
        bulk::read_commits(&bulk::pack_order(dir, hash, ids), ids, open, |id| self.parse_commit(id), visit);
    }

    fn remember(&self, commit: Commit) {
        let mut recent = self.recent.borrow_mut();
        recent.truncate(RECENT - 1);
        recent.push_front(commit);
    }

    fn reads_back(&self, id: &gix::hash::oid, kind: Kind, data: &[u8]) -> bool {
        let mut buffer = Vec::new();
        match self.loose.try_find(id, &mut buffer) {
            Ok(Some(found)) => found.kind == kind && found.data == data,
            Ok(None) | Err(_) => false,
        }
    }
}

/// Reads an object of this kind with this object database.
pub(super) fn read_raw(
    objects: &impl gix::objs::Find,
    id: ObjectId,
    want: Kind,
) -> Result<Vec<u8>, StoreError> {
    let gix_id = to_gix(id)?;
    let mut buffer = Vec::new();
    // Looks twice, because a first miss may only mean that a pack was being replaced.
    for _ in 0..2 {
        let found = objects
            .try_find(&gix_id, &mut buffer)
            .map_err(|error| StoreError::Object { id, cause: error.to_string() })?;
        match found.map(|data| data.kind) {
            Some(kind) if kind == want => return Ok(buffer),
            Some(kind) => return Err(StoreError::Object { id, cause: format!("it is a {kind}") }),
            None => {}
        }
    }
    Err(StoreError::Object { id, cause: "it is missing".to_owned() })
}

fn policy(repo: &gix::Repository, options: &Options) -> Policy {
    let config = repo.config_snapshot();
    let value = |key: &str| config.string(key).map(|v| v.to_vec());
    // A key without `=` has no string value, and means true.
    let log = value("core.logAllRefUpdates")
        .or_else(|| config.boolean("core.logAllRefUpdates").map(|on| on.to_string().into_bytes()));
    Policy {
        durable: options.durable,
        log_refs: LogRefs::from_config(log.as_deref(), repo.is_bare()),
        shared: Shared::of(repo),
        lock_wait: options.lock_wait,
    }
}

impl Store for GixStore {
    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.refs.tip(name)
    }

    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError> {
        self.refs.scan(prefix)
    }

    fn read_heads(&self, prefix: &str) -> Result<Heads, StoreError> {
        let scan = self.scan_all(prefix)?;
        let mut heads = Heads::from_unreadable(scan.unreadable);
        let ids: Vec<ObjectId> = scan.refs.iter().map(|(_, id)| *id).collect();
        let mut commits: Vec<Option<Result<Commit, StoreError>>> = ids.iter().map(|_| None).collect();
        self.read_commits(&ids, |at, read| commits[at] = Some(read));
        for ((name, id), read) in scan.refs.into_iter().zip(commits) {
            heads.push(name, read.unwrap_or_else(|| self.parse_commit(id)));
        }
        Ok(heads)
    }

    fn visit_heads(&self, prefix: &str, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let scan = self.scan_all(prefix)?;
        for (name, cause) in scan.unreadable {
            visit(name.clone(), Err(StoreError::UnreadableRef { name, cause }));
        }
        let ids: Vec<ObjectId> = scan.refs.iter().map(|(_, id)| *id).collect();
        let mut names: Vec<Option<RefName>> = scan.refs.into_iter().map(|(name, _)| Some(name)).collect();
        self.read_commits(&ids, |at, read| {
            if let Some(name) = names[at].take() {
                visit(name, read);
            }
        });
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.refs.unsynced.sync().map_err(io_error("sync", &self.objects_dir))
    }

    fn history_ends_at(&self, id: ObjectId) -> Result<bool, StoreError> {
        let ends = self.repo.shallow_commits().map_err(gix_error("read the shallow boundary"))?;
        Ok(ends.is_some_and(|ends| ends.iter().any(|end| end.as_slice() == id.as_bytes())))
    }

    fn try_swaps(&self, changes: &[RefChange], by: &Signature, log: &str) -> Result<(), StoreError> {
        // Git refuses a branch that would point at a missing object, or at something that is no
        // commit; so does this store.
        for new in changes.iter().filter_map(|change| change.new) {
            self.read_raw(new, Kind::Commit)?;
        }
        self.refs.try_swaps(changes, by, log)
    }

    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        if let Some(known) = self.recent.borrow().iter().find(|commit| commit.id == id) {
            return Ok(known.clone());
        }
        let commit = self.parse_commit(id)?;
        self.remember(commit.clone());
        Ok(commit)
    }

    fn read_tree(&self, id: ObjectId) -> Result<Vec<crate::store::TreeEntry>, StoreError> {
        super::parse_tree(id, &self.read_raw(id, Kind::Tree)?)
    }

    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.read_raw(id, Kind::Blob)
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        let found = gix::objs::FindHeader::try_header(&self.repo.objects, &to_gix(id)?)
            .map_err(|error| StoreError::Object { id, cause: error.to_string() })?;
        let missing = || StoreError::Object { id, cause: "it is missing".to_owned() };
        found.map(|header| header.size).ok_or_else(missing)
    }

    fn write_part(&self, part: Part, content: &[u8]) -> Result<ObjectId, StoreError> {
        let kind = match part {
            Part::Blob => Kind::Blob,
            Part::Tree => Kind::Tree,
        };
        self.write_object(kind, content)
    }

    fn write_commit(&self, new: &NewCommit) -> Result<ObjectId, StoreError> {
        // Git knows the empty tree without its object, and yet `git fsck` reports the object as missing.
        let empty = gix::ObjectId::empty_tree(self.repo.object_hash());
        if new.tree.as_bytes() == empty.as_bytes() && self.read_raw(new.tree, Kind::Tree).is_err() {
            self.write_object(Kind::Tree, b"")?;
        }
        let encoded = commit::encode(new)?;
        let id = self.write_object(Kind::Commit, &encoded)?;
        // What was just written is asked for next: to move a ref to it, and to report it.
        if let Ok(commit) = commit::parse(id, &encoded) {
            self.remember(commit);
        }
        Ok(id)
    }
}

pub(crate) fn to_gix(id: ObjectId) -> Result<gix::ObjectId, StoreError> {
    gix::ObjectId::try_from(id.as_bytes())
        .map_err(|_| StoreError::Object { id, cause: "its hash is unknown".to_owned() })
}

pub(crate) fn from_gix(id: &gix::hash::oid) -> Result<ObjectId, StoreError> {
    ObjectId::from_bytes(id.as_bytes())
        .map_err(|e| StoreError::Gix { what: "use the object id", message: e.to_string() })
}
