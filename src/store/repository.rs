//! One repository as found from a folder: where its parts are, and which store serves it.
//!
//! Refuses what Git refuses (another owner's repository, an unknown extension) in Git's words, before
//! anything of the repository is read. Whether there is one at all is decided by the file system. The store
//! is picked by configuration, never after another one failed. Implements K33 (ownership), K37.

use crate::protocol::flow::Claim;
use crate::protocol::id::ObjectId;
use crate::store::backends::gix_store::{
    Backend, GixStore, Options, backend_for, git_store, keep_delta_bases,
};
use crate::store::config::protected::{DOT_GIT_MAX, Site, standing_in};
use crate::store::disk::{Shared, is_there};
use crate::store::git::calls::RepoGit;
use crate::store::git::command::Git;
use crate::store::refs::reading::{is_absent, target_of};
use crate::store::remote::news::News;
use crate::store::{RefName, Store, StoreError, io_error, read_plain, write_aside};
use crate::supervisor::interrupt::ForceStop;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many commits of flows are kept with what they say of branches.
const CLAIMS_MAX: usize = 256;

/// A repository and where it is.
pub struct Repository {
    /// The Git directory of this worktree.
    pub(crate) git_dir: PathBuf,
    /// The Git directory that all worktrees share; absolute.
    pub(crate) common_dir: PathBuf,
    /// The working tree that this process is in, if any.
    pub(crate) work_dir: Option<PathBuf>,
    /// The main working tree; `None` where the repository is bare, or where the tree is not known.
    pub(crate) main_dir: Option<PathBuf>,
    /// True where `core.bare` says that there is no main working tree.
    pub(crate) bare: bool,
    /// Where the repository lies, for deciding which configuration counts.
    pub(crate) site: Site,
    /// The store that serves the repository.
    pub(crate) backend: Backend,
    /// True where refs are not kept in files.
    pub(crate) reftable: bool,
    /// True where what is reported must survive power loss.
    pub(crate) durable: bool,
    /// The `git` binary, for this repository.
    pub(crate) git: RepoGit,
    pub(super) hash: gix::hash::Kind,
    pub(super) shared: Shared,
    /// What this process learned of each remote's branches, by the name of the remote.
    news: Mutex<HashMap<String, Arc<News>>>,
    /// What commits of flows say of branches, kept because every step of a branch needs it.
    claims: Mutex<HashMap<(RefName, ObjectId), Arc<Claim>>>,
    /// The repository as gix opened it, for what it says of itself. Another handle on its objects costs as much as
    /// reading a configuration file does, so that none is made for that.
    gix: Mutex<gix::Repository>,
}

/// Why there is no repository to work on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No repository was found in the folder or above it.
    #[error("not a git repository (or any of the parent directories): '{}'", from.display())]
    NotFound {
        /// Where the search began.
        from: PathBuf,
    },
    /// Git refuses the repository; its own words.
    #[error("{message}")]
    Refused {
        /// What Git says.
        message: String,
        /// What stands in a repository's place and leads to none, where that is why.
        stray: Option<Stray>,
    },
    /// There is no `git` to ask, or the store can't serve the repository.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A file `.git` that leads to no repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stray {
    /// This file, which nothing else is known of.
    File(PathBuf),
    /// That of a linked working tree, which its repository has no note of any more.
    Unknown {
        /// The working tree.
        dir: PathBuf,
        /// A folder of the repository.
        repo: PathBuf,
    },
    /// That of a linked working tree whose repository is gone from where it was.
    Moved(PathBuf),
}

impl OpenError {
    /// True where Git sees no repository, rather than one that it refuses or that is broken.
    pub(crate) fn is_nowhere(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Refused { .. } | Self::Store(_) => false,
        }
    }
}

impl Repository {
    /// Finds the repository that `from` is in, or the one that `GIT_DIR` names.
    pub fn discover(from: &Path, git_dir: Option<&Path>) -> Result<Self, OpenError> {
        let program = Git::find_here()?;
        let opened = match git_dir {
            Some(dir) => {
                gix::ThreadSafeRepository::open_opts(from.join(dir), options().open_path_as_is(true))
            }
            None => {
                let trust = gix::sec::trust::Mapping { full: options(), reduced: options() };
                gix::ThreadSafeRepository::discover_opts(from, Default::default(), trust)
            }
        };
        let gix = match opened {
            Ok(repo) => repo.to_thread_local(),
            Err(_) => return Err(refusal(&program, from, git_dir)),
        };
        // gix takes the owner's word and `safe.directory` for this; what resets that list on the command line is
        // heard by Git alone, so Git is asked wherever the owner is another account.
        let owned = |path: &Path| is_full(gix::sec::Trust::from_path_ownership(path));
        let foreign = gix.git_dir_trust() != gix::sec::Trust::Full
            || !owned(gix.git_dir())
            || !gix.workdir().is_none_or(owned);
        let backend = backend_for(&gix);
        // A bare repository that was found on the way up may be files of a branch. Git decides whether to
        // take it, because Git knows `safe.bareRepository` and its default.
        let met = git_dir.is_none() && gix.workdir().is_none();
        if foreign || met || backend.is_err() {
            ask_git(&program, from, git_dir)?;
        }
        Ok(Self::from_gix(gix, backend?, program, from))
    }

    fn from_gix(gix: gix::Repository, backend: Backend, program: Git, from: &Path) -> Self {
        let absolute =
            |path: &Path| std::fs::canonicalize(from.join(path)).unwrap_or_else(|_| from.join(path));
        // Each component of a path costs a call, and most of these paths are one folder or right below it, so
        // that folder is resolved once.
        let resolved = std::fs::canonicalize(from).ok();
        let here = resolved.clone().unwrap_or_else(|| from.to_owned());
        let folder_here = || {
            let name = gix.git_dir().file_name().filter(|_| gix.git_dir().parent() == Some(from));
            let folder = here.join(name?);
            folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()).then_some(folder)
        };
        let git_dir = folder_here().unwrap_or_else(|| absolute(gix.git_dir()));
        let common_dir =
            if gix.common_dir() == gix.git_dir() { git_dir.clone() } else { absolute(gix.common_dir()) };
        let config = gix.config_snapshot();
        let bare = config.boolean("core.bare").unwrap_or(false);
        let work_dir =
            gix.workdir().map(|dir| if from.join(dir) == from { here.clone() } else { absolute(dir) });
        // A hook is told of the Git directory alone, and runs in the working tree.
        let work_dir = work_dir.or_else(|| if bare { None } else { standing_in(&here, &git_dir) });
        let main_dir =
            if bare { None } else { main_dir(&config, &git_dir, &common_dir, work_dir.as_deref()) };
        let reftable =
            config.string("extensions.refStorage").is_some_and(|v| !v.eq_ignore_ascii_case(b"files"));
        let (hash, shared) = (gix.object_hash(), Shared::of(&gix));
        let git = RepoGit::new(program.shares(shared), common_dir.clone(), true);
        let site = Site::find(resolved.as_deref(), &git_dir, &common_dir);
        Self {
            git_dir,
            common_dir,
            work_dir,
            main_dir,
            bare,
            site,
            backend,
            reftable,
            durable: true,
            git,
            hash,
            shared,
            news: Mutex::default(),
            claims: Mutex::default(),
            gix: Mutex::new(gix),
        }
    }

    /// Opens the repository again, with its present configuration. It is searched for anew only where the
    /// search could have another result. The result is for its configuration alone: packs are not looked for,
    /// so that no object is found in one.
    pub(crate) fn again(&self, from: &Path, git_dir: Option<&Path>) -> Result<Self, OpenError> {
        let full = |path: &Path| is_full(gix::sec::Trust::from_path_ownership(path));
        let plain = |gix: &gix::Repository| {
            gix.git_dir_trust() == gix::sec::Trust::Full && gix.workdir().is_some_and(full)
        };
        let (owned, dir) = {
            let gix = self.as_opened();
            (plain(&gix) && full(&self.git_dir) && full(&self.common_dir), gix.git_dir().to_owned())
        };
        let opened = (owned && dir.is_absolute()).then(|| {
            let none = gix::odb::store::init::Slots::Given(0);
            let options = options().object_store_slots(none).open_path_as_is(true);
            gix::ThreadSafeRepository::open_opts(dir, options).ok()
        });
        let now = opened.flatten().map(|gix| gix.to_thread_local()).filter(plain);
        match now.map(|gix| (backend_for(&gix), gix)) {
            Some((Ok(backend), gix)) => {
                let again = Self::from_gix(gix, backend, self.git.git().clone(), from);
                let moved = again.git_dir != self.git_dir || again.common_dir != self.common_dir;
                if moved { Self::discover(from, git_dir) } else { Ok(again) }
            }
            Some((Err(_), _)) | None => Self::discover(from, git_dir),
        }
    }

    /// Switches syncing off or on (`aynig.fsync`).
    pub(crate) fn set_durable(&mut self, durable: bool) {
        self.durable = durable;
        self.git.set_durable(durable);
    }

    /// Has `git` children start nothing that the repository's own configuration names, and fetch no missing
    /// object merely because they look at it, because the repository is not trusted.
    pub(crate) fn confine(&mut self) {
        self.git.confine();
    }

    /// Has `git` children end at a second Ctrl-C (K17).
    pub(crate) fn ended_by(&mut self, force_stop: ForceStop) {
        self.git.ended_by(force_stop);
    }

    /// Opens refs and objects. `durable` decides whether what it reports survives power loss.
    pub fn open_store(&self, durable: bool) -> Result<Box<dyn Store>, StoreError> {
        let git = self.git.git().clone();
        let options = Options { durable, ..Options::default() };
        Ok(match self.backend {
            Backend::Gix => Box::new(GixStore::from_repo(self.gix(), git, &options)?),
            Backend::Git(_) => Box::new(git_store(&self.gix(), git, &options)),
        })
    }

    /// Opens the store for refs that only protect objects while a run lives. What becomes of them in a
    /// power loss does not matter, except on reftable, where one file holds all refs: a write that is not
    /// synced would take others along.
    pub(crate) fn open_scratch(&self) -> Result<Box<dyn Store>, StoreError> {
        self.open_store(self.durable && self.reftable)
    }

    /// Opens the branches of a remote as a store, over the refs and objects of this repository.
    pub fn open_remote(&self, name: &str, durable: bool) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(crate::store::remote::RemoteStore::open(self, name, self.open_store(durable)?)?))
    }

    /// Returns what this process learned of a remote's branches.
    pub(super) fn news(&self, remote: &str) -> Arc<News> {
        let mut all = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(remote.to_owned()).or_default().clone()
    }

    /// Returns what this commit of a flow says of branches; `None` where this process has not read it.
    pub(crate) fn known_claim(&self, flow: &RefName, commit: ObjectId) -> Option<Arc<Claim>> {
        let known = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(flow.clone(), commit)).cloned()
    }

    /// Keeps what a commit of a flow says of branches, and returns it. With many flows none is kept for long.
    pub(crate) fn keep_claim(&self, flow: &RefName, commit: ObjectId, claim: Arc<Claim>) -> Arc<Claim> {
        let mut known = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLAIMS_MAX {
            known.clear();
        }
        known.insert((flow.clone(), commit), claim.clone());
        claim
    }

    /// Opens the branches of a remote as they were last fetched. The remote is not asked.
    pub(crate) fn recall_remote(&self, name: &str) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(crate::store::remote::RemoteStore::open(self, name, self.open_store(false)?)?.offline()))
    }

    /// Returns the branch that HEAD names in this worktree; `None` where HEAD is detached.
    pub(crate) fn current_branch(&self) -> Result<Option<RefName>, StoreError> {
        if self.reftable {
            return self.git.symbolic_head(&self.git_dir);
        }
        let path = self.git_dir.join("HEAD");
        let raw = match std::fs::read(&path) {
            Err(error) if is_absent(&error) => Vec::new(),
            read => read.map_err(io_error("read", &path))?,
        };
        Ok(target_of(&raw))
    }

    /// True where the configuration has a remote of this name, which must not begin with `-`.
    pub(crate) fn has_remote(&self, name: &str) -> bool {
        let known = self.as_opened().remote_names().iter().any(|n| **n == *name.as_bytes());
        known && !name.starts_with('-')
    }

    /// Returns the names of the configured remotes, except those that are not UTF-8 or begin with `-`.
    pub(crate) fn remotes(&self) -> Vec<String> {
        let names = self.as_opened().remote_names();
        let text = names.iter().filter_map(|name| std::str::from_utf8(name).ok());
        text.filter(|name| !name.starts_with('-')).map(str::to_owned).collect()
    }

    /// Returns the path on this machine that a push to this remote goes to; `None` where it goes elsewhere.
    pub(crate) fn push_path(&self, remote: &str) -> Option<PathBuf> {
        let gix = self.as_opened();
        let found = gix.find_remote(remote).ok();
        let url = found.as_ref().and_then(|remote| remote.url(gix::remote::Direction::Push));
        let path = url.filter(|url| url.scheme == gix::url::Scheme::File).map(|url| url.path.clone());
        path.map(|path| PathBuf::from(OsString::from_vec(path.into())))
    }

    /// Returns the commit that a ref of this name stands for which holds `id`: of an annotated tag the one that it names.
    pub(crate) fn peeled(&self, name: &RefName, id: ObjectId) -> Result<ObjectId, StoreError> {
        // Git writes no tag object to a branch, and to look for one costs a process.
        match name.as_bytes().starts_with(b"refs/tags/") {
            true => self.git.rev_parse(&self.common_dir, &format!("{id}^{{commit}}")),
            false => Ok(id),
        }
    }

    /// Returns the folder in the Git directory that holds everything of this tool's.
    pub(crate) fn aynig_dir(&self) -> PathBuf {
        self.common_dir.join("aynig")
    }

    /// True where some branch waits for a slot.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending().next().is_some()
    }

    /// Returns the notes of branches that wait for a slot; an empty file is none.
    pub(crate) fn pending(&self) -> impl Iterator<Item = std::fs::DirEntry> {
        let entries = std::fs::read_dir(self.aynig_dir().join("pending")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.metadata().is_ok_and(|meta| meta.len() > 0))
    }

    /// Returns the tree without entries, which Git knows without its object.
    pub(crate) fn empty_tree(&self) -> Result<ObjectId, StoreError> {
        let id = gix::ObjectId::empty_tree(self.hash);
        crate::store::backends::gix_store::from_gix(&id)
    }

    /// Returns the repository as gix opened it, for its configuration; no other thread has it meanwhile, and this
    /// one must not ask for it again before it has given it back.
    pub(super) fn as_opened(&self) -> MutexGuard<'_, gix::Repository> {
        self.gix.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the repository as gix sees it, for this thread. Objects are what was hashed, not
    /// what `refs/replace` shows.
    pub(super) fn gix(&self) -> gix::Repository {
        let mut repo = self.as_opened().clone();
        repo.objects.ignore_replacements = true;
        keep_delta_bases(&mut repo.objects);
        repo
    }

    /// True for the id of a commit that this repository has.
    pub(crate) fn is_commit(&self, id: ObjectId) -> bool {
        let id = gix::ObjectId::from_bytes_or_panic(id.as_bytes());
        self.gix().find_header(id).is_ok_and(|found| found.kind().is_commit())
    }

    /// Returns the tree of a commit; an error where this repository does not have the one and the other.
    pub(crate) fn tree_of(&self, id: ObjectId) -> Result<ObjectId, StoreError> {
        let cannot = |cause: String| StoreError::Object { id, cause };
        let gix = self.gix();
        let commit = gix.find_commit(gix::ObjectId::from_bytes_or_panic(id.as_bytes()));
        let commit = commit.map_err(|e| cannot(e.to_string()))?;
        let tree = commit.tree_id().map_err(|e| cannot(e.to_string()))?;
        match gix.find_header(tree).is_ok_and(|found| found.kind().is_tree()) {
            true => ObjectId::from_bytes(tree.as_bytes()).map_err(|e| cannot(e.to_string())),
            false => Err(cannot(format!("its tree {tree} is missing"))),
        }
    }

    /// Returns which bits a new file or folder at this path gets: those that `core.sharedRepository` asks for
    /// below the Git directory, and the umask's in a working tree, as with Git. A bare repository may contain the
    /// working tree. The path is compared as it is spelled.
    pub(crate) fn shared_at(&self, path: &Path) -> Shared {
        let trees = [&self.work_dir, &self.main_dir].into_iter().flatten();
        let mut inner = trees.filter(|tree| **tree != self.common_dir && tree.starts_with(&self.common_dir));
        let is_git = path.starts_with(&self.common_dir) && !inner.any(|tree| path.starts_with(tree));
        if is_git { self.shared } else { Shared::Umask }
    }

    /// Gives a file or folder below the Git directory the mode that `core.sharedRepository` asks for. Only
    /// for what does not belong to one run.
    pub(crate) fn share(&self, path: &Path) {
        self.shared.give(path);
    }

    /// Creates a folder where it is missing, and what is missing above it, with the mode of its place. The Git directory
    /// itself is never made.
    pub(crate) fn make(&self, folder: &Path) -> Result<(), StoreError> {
        if !folder.is_dir() && folder.starts_with(&self.common_dir) {
            is_there(&self.common_dir)?;
        }
        self.shared_at(folder).make(folder)
    }

    /// Writes a file of the Git directory as [`write_aside`] does, with that mode.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        write_aside(path, content, self.shared)
    }

    /// Does what [`Repository::share`] does for `aynig/` and each entry of it, which earlier versions
    /// made with the mode of the umask.
    pub(super) fn share_folders(&self) {
        if self.shared == Shared::Umask {
            return;
        }
        let own = self.aynig_dir();
        self.share(&own);
        for entry in std::fs::read_dir(&own).into_iter().flatten().flatten() {
            self.share(&entry.path());
        }
    }

    /// True where the working tree that this process is in may have configuration of its own.
    pub(super) fn has_own_settings(&self) -> bool {
        let said = self.as_opened().config_snapshot().boolean("extensions.worktreeConfig");
        said.unwrap_or(false) && self.git_dir.join("config.worktree").symlink_metadata().is_ok()
    }

    /// Returns a name for this repository, made from its path, that is the same in every process.
    pub(crate) fn id(&self) -> String {
        use std::os::unix::ffi::OsStrExt;
        let path = self.common_dir.as_os_str().as_bytes();
        let digest = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, path);
        let digest = digest.map(|id| id.to_string()).unwrap_or_default();
        let dir = if self.common_dir.ends_with(".git") {
            self.common_dir.parent()
        } else {
            Some(&*self.common_dir)
        };
        let name: String = dir
            .and_then(Path::file_name)
            .map(|n| {
                n.to_string_lossy()
                    .chars()
                    .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
                    .collect()
            })
            .unwrap_or_default();
        format!("{}-{}", name.trim_start_matches('.'), &digest[..12.min(digest.len())])
    }
}

/// Returns how a repository is opened.
fn options() -> gix::open::Options {
    let mut permissions = gix::open::Permissions::default();
    // Without `HOME`, Git has no configuration of the user's; gix would look up the home folder.
    if std::env::var_os("HOME").is_none() {
        permissions.env.home = gix::sec::Permission::Deny;
    }
    gix::open::Options::default().permissions(permissions)
}

/// Returns the main working tree, where Git would look for it: `core.worktree` counts. No decision
/// about trust depends on it.
fn main_dir(
    config: &gix::config::Snapshot<'_>,
    git_dir: &Path,
    common_dir: &Path,
    work_dir: Option<&Path>,
) -> Option<PathBuf> {
    if git_dir == common_dir && work_dir.is_some() {
        return work_dir.map(Path::to_owned);
    }
    if let Some(dir) = config.trusted_path("core.worktree").ok().flatten() {
        return std::fs::canonicalize(common_dir.join(dir)).ok();
    }
    common_dir.ends_with(".git").then(|| common_dir.parent().map(Path::to_owned)).flatten()
}

/// Lets Git judge a repository that gix would open all the same.
fn ask_git(git: &Git, from: &Path, git_dir: Option<&Path>) -> Result<(), OpenError> {
    let output =
        git.plain(git_dir).said_by_caller().verb("rev-parse").args(["--git-dir"]).in_dir(from).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = output.message.trim_start_matches("fatal: ").to_owned();
    let stray = if git_dir.is_none() { stray(from) } else { None };
    Err(OpenError::Refused { message, stray })
}

/// Returns what is first on the way up in a repository's place, if that is a file that leads to none. Git goes
/// no further.
fn stray(from: &Path) -> Option<Stray> {
    let start = std::fs::canonicalize(from).ok()?;
    let dir = first_above(&start)?;
    let file = dir.join(".git");
    let is_long = file.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() > DOT_GIT_MAX);
    let text = if is_long { Vec::new() } else { read_plain(&file, DOT_GIT_MAX).ok()? };
    let path = text.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end).unwrap_or_default();
    if path.is_empty() {
        return Some(Stray::File(file));
    }
    let target = dir.join(OsString::from_vec(path.to_vec()));
    if ["HEAD", "commondir", "objects", "refs", "config"].iter().any(|name| !is_none(&target.join(name))) {
        return None;
    }
    let folder = target.parent().filter(|folder| folder.ends_with("worktrees"));
    Some(match folder.and_then(Path::parent) {
        Some(repo) if seems(repo) => {
            let repo = std::fs::canonicalize(repo).unwrap_or_else(|_| repo.to_owned());
            let tree = repo.parent().filter(|_| repo.ends_with(".git")).map(Path::to_owned);
            Stray::Unknown { dir: dir.to_owned(), repo: tree.unwrap_or(repo) }
        }
        Some(repo) if is_none(repo) => Stray::Moved(dir.to_owned()),
        Some(_) | None => Stray::File(file),
    })
}

/// True where a path is known to be this account's own.
fn is_full<E>(trust: Result<gix::sec::Trust, E>) -> bool {
    trust.is_ok_and(|trust| trust == gix::sec::Trust::Full)
}

fn refusal(git: &Git, from: &Path, git_dir: Option<&Path>) -> OpenError {
    match ask_git(git, from, git_dir) {
        // Only Git's words tell that there is no repository from one that Git does not take, so
        // the file system is asked.
        Err(OpenError::Refused { .. }) if git_dir.is_none() && !is_one_above(from) => {
            OpenError::NotFound { from: from.to_owned() }
        }
        Err(refused) => refused,
        Ok(()) => OpenError::NotFound { from: from.to_owned() },
    }
}

/// True where a folder on the way up is a repository, or seems one, or can't be looked at.
fn is_one_above(from: &Path) -> bool {
    std::fs::canonicalize(from).map_or(true, |start| first_above(&start).is_some())
}

/// Returns the first folder on the way up that is a repository, or seems one, or can't be looked at. The search
/// goes as far as Git's does: to where another file system begins.
fn first_above(start: &Path) -> Option<&Path> {
    let device = |dir: &Path| dir.metadata().map(|meta| meta.dev()).ok();
    let here = device(start);
    start.ancestors().take_while(|dir| device(dir) == here).find(|dir| {
        let own = dir.join(".git");
        let is_folder = own.metadata().is_ok_and(|meta| meta.is_dir());
        if is_folder { seems(&own) || seems(dir) } else { !is_none(&own) || seems(dir) }
    })
}

fn is_none(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| is_absent(&error))
}

/// True for a folder that may be a Git directory. Git passes by one without these: it is a `git init` that was
/// cut short, or something else's.
fn seems(dir: &Path) -> bool {
    let has = |name| !is_none(&dir.join(name));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}
