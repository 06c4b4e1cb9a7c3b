//! A working tree that a user or an agent works in, as Git sees it: for judging what was done there.
//!
//! [`Workspace::find`], then [`Workspace::status`] and [`Workspace::changed_since`]. Files that Git was told
//! to overlook (assumed unchanged, left out of a sparse checkout) are looked at all the same. No hook and no
//! monitor runs, nothing that a repository inside the working tree configures, and on a server nothing that
//! pushed attributes name. Implements K14, K25 (how a turn is judged).

use crate::protocol::id::ObjectId;
use crate::store::config::protected::standing_in;
use crate::store::git::calls::RepoGit;
use crate::store::git::command::{Git, GitCommand};
use crate::store::git::staging::ignored_among;
use crate::store::repository::{OpenError, Repository};
use crate::store::slots::scan;
use crate::store::{StoreError, beneath, io_error, is_plain};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a working tree is, and its repository, as they were before anything was done there.
#[derive(Debug)]
pub(crate) struct KnownTree {
    git_dir: PathBuf,
    common_dir: PathBuf,
    top: PathBuf,
    /// The commit that it was filled with, in hex.
    filled_with: Option<String>,
}

impl KnownTree {
    /// Returns the working tree of this repository that a folder lies in, which was filled with this commit; `None`
    /// where it lies in none.
    pub(crate) fn of(repo: &Repository, folder: &Path, filled_with: Option<ObjectId>) -> Option<Self> {
        let top = standing_in(&std::fs::canonicalize(folder).ok()?, &repo.git_dir)?;
        let filled_with = filled_with.map(|id| id.to_string());
        Some(Self { git_dir: repo.git_dir.clone(), common_dir: repo.common_dir.clone(), top, filled_with })
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    pub(crate) fn filled_with(&self) -> Option<&str> {
        self.filled_with.as_deref()
    }
}

/// The working tree that a folder lies in.
#[derive(Debug)]
pub(crate) struct Workspace {
    git: RepoGit,
    git_dir: PathBuf,
    top: PathBuf,
    bare: bool,
    /// The index that Git reads: the working tree's own, or a copy of it.
    index: PathBuf,
    /// Where the index is a copy: a folder, and the path of the copy below it.
    copy: Option<(PathBuf, PathBuf)>,
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some((folder, aside)) = &self.copy {
            let _ = beneath::Root::open(folder).and_then(|folder| folder.remove(aside));
        }
    }
}

impl Workspace {
    /// Finds the working tree that a folder lies in; `None` where Git sees none. `aside` is the path,
    /// below that folder, of a copy of the index that may exist while this value lives. No link is
    /// followed when the copy is written.
    ///
    /// # Errors
    /// A repository that Git refuses, or that is broken.
    pub(crate) fn find(folder: &Path, git: Option<Git>, aside: &Path) -> Result<Option<Self>, OpenError> {
        let repo = match Repository::discover(folder, None) {
            Ok(repo) => repo,
            Err(error) if error.is_nowhere() => return Ok(None),
            Err(error) => return Err(error),
        };
        let whole = std::fs::canonicalize(folder).map_err(io_error("find", folder))?;
        // The working tree is found by its place: the repository's own configuration may call
        // another folder its working tree.
        let Some(top) = standing_in(&whole, &repo.git_dir) else { return Ok(None) };
        Self::of(repo, top, folder, git, aside).map(Some)
    }

    /// Opens the working tree that a folder is known to lie in. Nothing in the folder says where its repository is.
    ///
    /// # Errors
    /// A repository that Git refuses, that is broken, or that has another common Git directory by now.
    pub(crate) fn known(
        tree: &KnownTree,
        folder: &Path,
        git: Option<Git>,
        aside: &Path,
    ) -> Result<Self, OpenError> {
        let repo = Repository::discover(&tree.top, Some(&tree.git_dir))?;
        if repo.common_dir != tree.common_dir {
            let message = format!("'{}' leads to another repository", tree.git_dir.display());
            return Err(StoreError::Git { verb: "status".to_owned(), message }.into());
        }
        Self::of(repo, tree.top.clone(), folder, git, aside)
    }

    fn of(
        repo: Repository,
        top: PathBuf,
        folder: &Path,
        git: Option<Git>,
        aside: &Path,
    ) -> Result<Self, OpenError> {
        let git = match git {
            Some(git) => RepoGit::new(git, repo.common_dir.clone(), repo.durable),
            None => repo.git.clone(),
        };
        let index = repo.git_dir.join("index");
        let mut found = Self { git, git_dir: repo.git_dir, top, bare: repo.bare, index, copy: None };
        if is_plain(&found.index) && scan::hides(&found.index, repo.hash) {
            found.unhide(folder, aside)?;
        }
        Ok(found)
    }

    /// Switches to a copy of the index that hides no change, and that is put at `aside` below this folder.
    fn unhide(&mut self, folder: &Path, aside: &Path) -> Result<(), StoreError> {
        self.copy_index(folder, aside).map_err(io_error("copy", &self.index))?;
        self.index = folder.join(aside);
        self.copy = Some((folder.to_owned(), aside.to_owned()));
        self.git.unhide(&self.git_dir, &self.top, &self.index, self.bare)
    }

    /// Copies the index with its modification time, by which Git knows which files
    /// it must compare by content.
    fn copy_index(&self, folder: &Path, aside: &Path) -> std::io::Result<()> {
        let (own, name) = beneath::apart(&self.index)?;
        let index = own.file(name)?;
        let (place, meta) = (beneath::Root::open(folder)?, index.metadata()?);
        beneath::found(place.remove(aside))?;
        let mut copy = place.create_new(aside, 0o600)?;
        std::io::copy(&mut index.take(meta.len()), &mut copy)?;
        copy.set_permissions(meta.permissions())?;
        copy.set_modified(meta.modified()?)
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    fn command(&self) -> Result<GitCommand, StoreError> {
        let command = self.git.tree_command(&self.git_dir, &self.top, self.bare)?;
        Ok(command.env("GIT_INDEX_FILE", &self.index).in_dir(&self.top))
    }

    /// Returns the `git status` of a folder in the working tree, NUL-separated.
    ///
    /// # Errors
    /// What Git says.
    pub(crate) fn status(&self, folder: &Path) -> Result<Vec<u8>, StoreError> {
        let args = ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
        // Git does not look into a repository inside the working tree, and so runs
        // nothing that it configures.
        let args = args.into_iter().chain(["--ignore-submodules=dirty", "--", "."]);
        self.command()?.in_dir(folder).verb("status").args(args).ok()
    }

    /// Returns the tracked files below a folder in the working tree that differ from a commit, relative to
    /// that folder and NUL-separated.
    ///
    /// # Errors
    /// What Git says, also of a commit that is gone.
    pub(crate) fn changed_since(&self, folder: &Path, commit: &str) -> Result<Vec<u8>, StoreError> {
        let args =
            ["--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "--relative"];
        let args = args.into_iter().chain(["-z", commit, "--", "."]);
        self.command()?.in_dir(folder).verb("diff").args(args).ok()
    }

    /// Returns those of these paths, relative to a folder in the working tree, that are ignored. A path that
    /// the index has is never among them.
    ///
    /// # Errors
    /// What Git says.
    pub(crate) fn ignored(&self, folder: &Path, paths: &[String]) -> Result<Vec<String>, StoreError> {
        ignored_among(self.command()?.in_dir(folder), paths)
    }
}

/// True where a folder and a file in it belong to this account, or where `safe.directory` names the folder.
///
/// # Errors
/// What Git says.
pub(crate) fn is_safe(
    git: impl FnOnce() -> Result<Git, StoreError>,
    folder: &Path,
    file: &Path,
) -> Result<bool, StoreError> {
    let euid = nix::unistd::geteuid().as_raw();
    // As in Git, the account that called sudo counts too.
    let sudo = || std::env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok());
    let is_ours = |uid: u32| uid == euid || euid == 0 && sudo() == Some(uid);
    let owner = |place: &Path| place.symlink_metadata().map(|meta| meta.uid());
    if [folder, file].iter().all(|place| owner(place).is_ok_and(is_ours)) {
        return Ok(true);
    }
    // `GIT_DIR` names no repository, because no repository's own configuration counts.
    let command = git()?.plain(None).in_dir(Path::new("/")).env("GIT_DIR", "/dev/null").verb("config");
    let output = command.args(["-z", "--get-all", "safe.directory"]).output()?;
    let listed = output.stdout.strip_suffix(b"\0").unwrap_or(&output.stdout);
    let mut is_safe = false;
    for value in listed.split(|b| *b == 0) {
        let value = Path::new(std::ffi::OsStr::from_bytes(value));
        is_safe = match (value.as_os_str().as_bytes(), value.file_name()) {
            (b"", _) => false,
            (b"*", _) => true,
            (_, Some(last)) if last == "*" => {
                is_safe || value.parent().is_some_and(|p| folder.starts_with(p))
            }
            _ => is_safe || value == folder,
        };
    }
    Ok(is_safe)
}
