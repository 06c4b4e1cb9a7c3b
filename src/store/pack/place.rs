//! Puts a pack's files into a working tree, each as a whole or not at all.
//!
//! A plan is made first: which files are new, which are written over, and which are already as they should
//! be. The installation is refused where anything in `.aynig/` is not committed, so that `git restore` brings
//! back whatever was written over. All new content is then written and synced in one folder whose
//! `.gitignore` covers the folder itself, and renamed from there, file by file. `.aynig/logs/` is neither
//! read nor written.

use super::{File, Kind, Pack, PackError, Refusal};
use crate::store::commands::tree::FOLDER;
use crate::store::git::command::GitCommand;
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, remove_tree, sync};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder below `.aynig/` where new content waits. The next installation removes what a killed one left
/// there.
pub(super) const STAGE: &str = ".installing";

/// A working tree that can be installed into, locked against other installations.
pub(crate) struct Site {
    root: PathBuf,
    /// The committed paths below `.aynig/`, without that folder.
    committed: HashSet<Vec<u8>>,
    durable: bool,
    _lock: Flock<std::fs::File>,
}

impl Site {
    /// Locks the working tree, and checks that nothing stands in the way of an installation. `work_dir` is
    /// the repository's working tree in which the command was started.
    pub(crate) fn take(repo: &Repository, work_dir: &Path) -> Result<Self, PackError> {
        let lock = lock(repo)?;
        repo.git.with_plain_files(&repo.git_dir)?;
        let root = work_dir.join(FOLDER);
        if let Some(meta) = look(&root)?.filter(|meta| !meta.is_dir()) {
            let why = if meta.is_symlink() { "a symbolic link here" } else { "a file here" };
            return Err(PackError::InTheWay(vec![Refusal { path: Vec::new(), why }]));
        }
        let git = || {
            let command = repo.git.git().command(&repo.git_dir);
            command.work_tree(work_dir).in_dir(work_dir)
        };
        check_committed(git())?;
        Ok(Self { root, committed: committed(git())?, durable: repo.durable, _lock: lock })
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }
}

/// What an installation will do.
pub(crate) struct Plan<'a> {
    site: &'a Site,
    pack: &'a Pack,
    /// The pack's files that the working tree does not have yet.
    pub(crate) new: Vec<&'a File>,
    /// The pack's files that are written over committed ones.
    pub(crate) overwritten: Vec<&'a File>,
    /// How many of the pack's files are in the working tree already, as they should be.
    pub(crate) unchanged: usize,
}

impl<'a> Plan<'a> {
    /// Compares the pack with the working tree.
    pub(crate) fn new(site: &'a Site, pack: &'a Pack) -> Result<Self, PackError> {
        let mut plan = Plan { site, pack, new: Vec::new(), overwritten: Vec::new(), unchanged: 0 };
        let mut in_the_way = Vec::new();
        for file in &pack.files {
            if let Some(why) = plan.judge(file)? {
                in_the_way.push(Refusal { path: file.path.clone(), why });
            }
        }
        if in_the_way.is_empty() { Ok(plan) } else { Err(PackError::InTheWay(in_the_way)) }
    }

    /// Adds one file of the pack to the plan, or returns why it can't be put in its place.
    fn judge(&mut self, file: &'a File) -> Result<Option<&'static str>, PackError> {
        for (end, _) in file.path.iter().enumerate().filter(|(_, b)| **b == b'/') {
            match look(&self.site.place(&file.path[..end]))? {
                None => break,
                Some(meta) if meta.is_dir() => {}
                Some(_) => return Ok(Some("the pack has a folder where a file is here")),
            }
        }
        let place = self.site.place(&file.path);
        let Some(meta) = look(&place)? else {
            self.new.push(file);
            return Ok(None);
        };
        if !meta.is_file() && !meta.is_symlink() {
            return Ok(Some("the pack has a file where something else is here"));
        }
        if is_same(&place, &meta, file.kind, &self.pack.content(file)?)? {
            self.unchanged += 1;
        } else if self.site.committed.contains(&file.path) {
            self.overwritten.push(file);
        } else {
            return Ok(Some("it is not committed here, and would be lost"));
        }
        Ok(None)
    }

    /// Returns what the plan changes, as `git diff --stat --summary` shows it.
    pub(crate) fn stat(&self) -> Result<Vec<u8>, PackError> {
        let mut before = Vec::new();
        for file in &self.overwritten {
            let place = self.site.place(&file.path);
            let content = read(&place)?;
            let hash = self.pack.command().verb("hash-object").args(["-w", "--stdin"]).stdin(content).ok()?;
            let kind = kind_of(&look(&place)?.ok_or_else(|| gone(&place))?);
            add_line(&mut before, kind, hash.trim_ascii(), &file.path);
        }
        let mut after = Vec::new();
        for file in self.changes() {
            add_line(&mut after, file.kind, file.id.to_string().as_bytes(), &file.path);
        }
        let (before, after) = (self.tree("before", before)?, self.tree("after", after)?);
        let args = ["-r", "--stat", "--summary", "--no-renames", "--no-ext-diff", "--no-textconv"];
        Ok(self.pack.command().verb("diff-tree").args(args).args([before, after]).ok()?)
    }

    fn changes(&self) -> impl Iterator<Item = &'a File> {
        self.new.iter().chain(&self.overwritten).copied()
    }

    /// Writes a tree of these index lines into the pack's own repository, and returns its id.
    fn tree(&self, name: &str, lines: Vec<u8>) -> Result<String, StoreError> {
        let index = self.pack.folder().join(format!("aynig-{name}"));
        let git = || self.pack.command().env("GIT_INDEX_FILE", &index);
        git().verb("update-index").args(["-z", "--index-info"]).stdin(lines).ok()?;
        Ok(git().verb("write-tree").id()?.to_string())
    }

    pub(crate) fn carry_out(&self) -> Result<(), PackError> {
        let stage = self.site.root.join(STAGE);
        remove_tree(&stage).map_err(io_error("remove", &stage))?;
        std::fs::create_dir_all(&stage).map_err(io_error("create", &stage))?;
        let done = self.fill(&stage).and_then(|()| self.rename_from(&stage));
        let cleared = remove_tree(&stage).map_err(io_error("remove", &stage));
        done?;
        Ok(cleared?)
    }

    fn fill(&self, stage: &Path) -> Result<(), StoreError> {
        // This comes first: whatever happens next, Git ignores what waits in the folder.
        self.write(&stage.join(".gitignore"), Kind::Plain, b"*\n")?;
        for (number, file) in self.changes().enumerate() {
            self.write(&stage.join(number.to_string()), file.kind, &self.pack.content(file)?)?;
        }
        if self.site.durable { sync(stage) } else { Ok(()) }
    }

    fn write(&self, path: &Path, kind: Kind, content: &[u8]) -> Result<(), StoreError> {
        let mode = match kind {
            Kind::Link => {
                let target = OsStr::from_bytes(content);
                return std::os::unix::fs::symlink(target, path).map_err(io_error("create", path));
            }
            Kind::Plain => 0o666,
            Kind::Executable => 0o777,
        };
        let file = std::fs::File::options().write(true).create_new(true).mode(mode).open(path);
        let mut file = file.map_err(io_error("create", path))?;
        file.write_all(content).map_err(io_error("write", path))?;
        if self.site.durable { file.sync_all().map_err(io_error("sync", path)) } else { Ok(()) }
    }

    fn rename_from(&self, stage: &Path) -> Result<(), StoreError> {
        let mut folders = BTreeSet::from([self.site.root.clone()]);
        for (number, file) in self.changes().enumerate() {
            let place = self.site.place(&file.path);
            let parent = place.parent().unwrap_or(&self.site.root);
            std::fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            folders.extend(
                parent.ancestors().take_while(|p| p.starts_with(&self.site.root)).map(Path::to_owned),
            );
            let aside = stage.join(number.to_string());
            std::fs::rename(&aside, &place).map_err(io_error("write", &place))?;
        }
        match self.site.durable {
            true => folders.iter().try_for_each(|folder| sync(folder)),
            false => Ok(()),
        }
    }
}

/// Takes the lock that allows one installation at a time in a repository. The system releases it when its
/// holder ends.
fn lock(repo: &Repository) -> Result<Flock<std::fs::File>, PackError> {
    let aynig = repo.aynig_dir();
    repo.make(&aynig)?;
    let path = aynig.join("install.lock");
    let opened = std::fs::File::options().write(true).create(true).truncate(false).open(&path);
    let opened = opened.map_err(io_error("open", &path))?;
    repo.share(&path);
    match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((_, Errno::EWOULDBLOCK)) => Err(PackError::Busy { path }),
        Err((_, errno)) => Err(io_error("lock", &path)(errno.into()).into()),
    }
}

/// Refuses where anything in `.aynig/` differs from HEAD or is not in HEAD. Of a submodule in there only the
/// commit is compared: to look for changes in it, Git would start programs that its configuration names.
fn check_committed(git: GitCommand) -> Result<(), PackError> {
    let args = ["--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"];
    let listed = git.verb("status").args(args).args(pathspecs()).ok()?;
    let lines = listed.split(|b| *b == 0).filter_map(|line| line.get(3..));
    let changed: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    if changed.is_empty() { Ok(()) } else { Err(PackError::Uncommitted(changed)) }
}

/// Returns the paths below `.aynig/` (without that folder) that the index holds and whose files Git examines.
fn committed(git: GitCommand) -> Result<HashSet<Vec<u8>>, PackError> {
    let listed = git.verb("ls-files").args(["-v", "-z"]).args(pathspecs()).ok()?;
    // Git does not examine entries with other letters (assume-unchanged, skip-worktree), so the content of
    // their files may not be committed.
    let known = listed.split(|b| *b == 0).filter_map(|line| line.strip_prefix(b"H .aynig/"));
    let known: HashSet<Vec<u8>> = known.map(<[u8]>::to_vec).collect();
    let ours = [STAGE.as_bytes(), b"/"].concat();
    match known.iter().find(|path| path.starts_with(&ours) || *path == STAGE.as_bytes()) {
        Some(path) => {
            let why = "a name that the installation itself uses";
            Err(PackError::InTheWay(vec![Refusal { path: path.clone(), why }]))
        }
        None => Ok(known),
    }
}

fn pathspecs() -> [&'static str; 3] {
    ["--", ":(top,literal).aynig", ":(top,literal,exclude).aynig/logs"]
}

fn look(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match path.symlink_metadata() {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("look at", path)(error)),
    }
}

fn gone(path: &Path) -> StoreError {
    io_error("look at", path)(ErrorKind::NotFound.into())
}

fn kind_of(meta: &Metadata) -> Kind {
    match (meta.is_symlink(), meta.permissions().mode() & 0o100 != 0) {
        (true, _) => Kind::Link,
        (false, true) => Kind::Executable,
        (false, false) => Kind::Plain,
    }
}

/// Returns the content of a file, or the target of a link.
fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    let is_link = look(path)?.is_some_and(|meta| meta.is_symlink());
    let content = match is_link {
        true => std::fs::read_link(path).map(|target| target.into_os_string().into_encoded_bytes()),
        false => std::fs::read(path),
    };
    content.map_err(io_error("read", path))
}

fn is_same(path: &Path, meta: &Metadata, kind: Kind, content: &[u8]) -> Result<bool, StoreError> {
    let same_length = meta.len() == content.len() as u64;
    Ok(kind_of(meta) == kind && same_length && read(path)? == content)
}

fn add_line(lines: &mut Vec<u8>, kind: Kind, id: &[u8], path: &[u8]) {
    for part in [kind.mode().as_bytes(), b" ", id, b"\t.aynig/", path, b"\0"] {
        lines.extend_from_slice(part);
    }
}
