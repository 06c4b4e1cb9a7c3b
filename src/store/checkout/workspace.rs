//! A working tree that a user or an agent works in, as Git sees it: for judging what was done there.
//!
//! [`Workspace::find`], then [`Workspace::status`] and [`Workspace::changed_since`]. What Git was told to
//! overlook there (assumed unchanged, left out of a sparse checkout) is looked at all the same. No hook and no
//! monitor runs, nothing of a repository inside, and on a server nothing that pushed attributes name.
//! Implements K14, K25 (how a turn is judged).

use crate::store::config::protected::standing_in;
use crate::store::git::calls::RepoGit;
use crate::store::git::command::{Git, GitCommand};
use crate::store::repository::{OpenError, Repository};
use crate::store::slots::scan;
use crate::store::{StoreError, beneath, io_error, is_plain};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The working tree that a folder lies in.
#[derive(Debug)]
pub(crate) struct Workspace {
    git: RepoGit,
    git_dir: PathBuf,
    top: PathBuf,
    bare: bool,
    /// The index to go by.
    index: PathBuf,
    /// Where that is a copy: a folder, and its place below it.
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
    /// The working tree that a folder lies in; `None` where Git sees none. `aside` is where below that folder a
    /// copy of its index may be while this value lives: written through no link.
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
        // By where it is: what the repository's own configuration calls its working tree may be elsewhere.
        let Some(top) = standing_in(&whole, &repo.git_dir) else { return Ok(None) };
        let git = match git {
            Some(git) => RepoGit::new(git, repo.common_dir.clone(), repo.durable),
            None => repo.git.clone(),
        };
        let index = repo.git_dir.join("index");
        let mut found = Self { git, git_dir: repo.git_dir, top, bare: repo.bare, index, copy: None };
        if is_plain(&found.index) && scan::hides(&found.index, repo.hash) {
            found.unhide(folder, aside)?;
        }
        Ok(Some(found))
    }

    /// Goes by a copy of the index, put there below that folder, which hides nothing.
    fn unhide(&mut self, folder: &Path, aside: &Path) -> Result<(), StoreError> {
        self.copy_index(folder, aside).map_err(io_error("copy", &self.index))?;
        self.index = folder.join(aside);
        self.copy = Some((folder.to_owned(), aside.to_owned()));
        self.git.unhide(&self.git_dir, &self.top, &self.index, self.bare)
    }

    /// With its time, by which Git knows whose content it must look at.
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

    /// `git status` of a folder in it, NUL-separated.
    ///
    /// # Errors
    /// What Git says.
    pub(crate) fn status(&self, folder: &Path) -> Result<Vec<u8>, StoreError> {
        let args = ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
        // What a repository inside is configured to run is not run here.
        let args = args.into_iter().chain(["--ignore-submodules=dirty", "--", "."]);
        self.command()?.in_dir(folder).verb("status").args(args).ok()
    }

    /// The tracked files below a folder in it that are not as in a commit, named from that folder, NUL-separated.
    ///
    /// # Errors
    /// What Git says, also of a commit that is gone.
    pub(crate) fn changed_since(&self, folder: &Path, commit: &str) -> Result<Vec<u8>, StoreError> {
        let args =
            ["--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "--relative"];
        let args = args.into_iter().chain(["-z", commit, "--", "."]);
        self.command()?.in_dir(folder).verb("diff").args(args).ok()
    }

    /// Those of these paths below a folder in it that rules for ignoring hide; none that the index knows.
    ///
    /// # Errors
    /// What Git says.
    pub(crate) fn ignored(&self, folder: &Path, paths: &[String]) -> Result<Vec<String>, StoreError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let command = self.command()?.in_dir(folder).verb("check-ignore").args(["--stdin", "-z"]);
        let output = command.stdin(input).output()?;
        match output.status.code() {
            // 1: none is.
            Some(0 | 1) => {
                let is_hidden =
                    |path: &String| output.stdout.split(|b| *b == 0).any(|p| p == path.as_bytes());
                Ok(paths.iter().filter(|path| is_hidden(path)).cloned().collect())
            }
            _ => Err(StoreError::Git { verb: "check-ignore".into(), message: output.message }),
        }
    }
}

/// True for a folder and a file in it that are the account's own, or whose folder `safe.directory` names.
///
/// # Errors
/// What Git says.
pub(crate) fn is_safe(
    git: impl FnOnce() -> Result<Git, StoreError>,
    folder: &Path,
    file: &Path,
) -> Result<bool, StoreError> {
    let euid = nix::unistd::geteuid().as_raw();
    // As Git has it: under sudo the account before it counts too.
    let sudo = || std::env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok());
    let is_ours = |uid: u32| uid == euid || euid == 0 && sudo() == Some(uid);
    let owner = |place: &Path| place.symlink_metadata().map(|meta| meta.uid());
    if [folder, file].iter().all(|place| owner(place).is_ok_and(is_ours)) {
        return Ok(true);
    }
    // No repository's own configuration counts.
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
