//! Staging what a command left in its slot, into an index file of the runner's own.
//!
//! What lies in the slot may be an attacker's: no repository in the slot is looked into, and where
//! the command may still be at work, Git is confined in what it reads of the machine. Implements K25,
//! K59 (what is handed over).

use super::calls::RepoGit;
use super::command::GitCommand;
use super::confined::Settings;
use crate::protocol::id::ObjectId;
use crate::store::{StoreError, io_error};
use crate::supervisor::confine::Confinement;
use gix::bstr::BString;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time for staging a slot: a file of any length costs a command nothing.
const STAGING_MAX: Duration = Duration::from_secs(1800);

impl RepoGit {
    /// Returns the configuration that Git has for this Git directory, in Git's order, for a child that can't
    /// read the account's files. Also returns the files that such a child may read all the same: those of the
    /// repository's own configuration, with what it includes, and the account's patterns
    /// (`core.excludesFile`, `core.attributesFile`).
    fn configuration(&self, git_dir: &Path) -> Result<(Settings, Vec<PathBuf>), StoreError> {
        let args = ["--list", "--show-scope", "--show-origin", "-z"];
        let listed = self.git.command(git_dir).verb("config").args(args).ok()?;
        let (mut settings, mut files) = (Settings::new(), BTreeSet::new());
        let mut fields = listed.split(|b| *b == 0);
        while let (Some(scope), Some(origin), Some(entry)) = (fields.next(), fields.next(), fields.next()) {
            if let (b"local" | b"worktree", Some(file)) = (scope, origin.strip_prefix(b"file:")) {
                files.insert(PathBuf::from(OsStr::from_bytes(file)));
            }
            let at = entry.iter().position(|b| *b == b'\n').unwrap_or(entry.len());
            let (key, value) = (&entry[..at], entry.get(at + 1..).unwrap_or(b"true"));
            // Included values are in the list themselves, and what was said by flag is said again.
            let included = key.starts_with(b"include.") || key.starts_with(b"includeif.");
            if scope != b"command" && !included {
                settings.push((OsStr::from_bytes(key).to_owned(), OsStr::from_bytes(value).to_owned()));
            }
        }
        for (key, file) in [("core.excludesFile", "ignore"), ("core.attributesFile", "attributes")] {
            let command = self.git.command(git_dir).verb("config").args(["--type=path", "-z", "--get", key]);
            let named = command.output()?.stdout;
            let named = named.split(|b| *b == 0).find(|path| !path.is_empty());
            files.extend(match named {
                Some(path) => Some(PathBuf::from(OsStr::from_bytes(path))),
                None => std::env::var_os("XDG_CONFIG_HOME")
                    .map(PathBuf::from)
                    .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".config")))
                    .map(|folder| folder.join("git").join(file)),
            });
        }
        // A file that is named relative to the current folder is the repository's own.
        Ok((settings, files.into_iter().filter(|file| file.is_absolute()).collect()))
    }

    /// Stages every file that is not ignored into the index file `index`, except the paths `nested`. `reads`
    /// is what Git may read of the machine meanwhile; `None`: everything.
    pub(crate) fn add_all(
        &self,
        git_dir: &Path,
        dir: &Path,
        index: &Path,
        nested: &[BString],
        no_filters: bool,
        reads: Option<&Confinement>,
    ) -> Result<(), StoreError> {
        self.with_plain_files(git_dir)?;
        let mut paths = b".\0".to_vec();
        for path in nested {
            paths.extend_from_slice(b":(exclude,top,literal)");
            paths.extend_from_slice(path);
            paths.push(0);
        }
        let mut command = self.tree_command(git_dir, dir, no_filters)?.config("advice.addEmbeddedRepo=false");
        if self.durable {
            // One sync of the whole file system follows; one for each file would cost more.
            command = command.config("core.fsync=none");
        }
        if let Some(reads) = reads {
            let (settings, files) = self.configuration(git_dir)?;
            command = command.configured_by(settings);
            command = command.within_sandbox(reads.clone().with(vec![git_dir.to_owned()], files));
        }
        let args = ["-A", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let command = command.verb("add").args(args).env("GIT_INDEX_FILE", index).in_dir(dir).stdin(paths);
        command.ok_within(STAGING_MAX).map(drop)
    }

    /// Has an index file hide no change: no entry stays assumed unchanged, and none stays out of a sparse
    /// checkout if its file is there. An entry whose file is absent keeps its content.
    pub(crate) fn unhide(
        &self,
        git_dir: &Path,
        dir: &Path,
        index: &Path,
        no_filters: bool,
    ) -> Result<(), StoreError> {
        let command = || {
            let command = self.tree_command(git_dir, dir, no_filters)?.env("GIT_INDEX_FILE", index);
            Ok::<_, StoreError>(command.in_dir(dir))
        };
        let listed = command()?.verb("ls-files").args(["-v", "-z"]).ok()?;
        let (mut unlooked, mut sparse) = (Vec::new(), Vec::new());
        for line in listed.split_inclusive(|b| *b == 0) {
            let Some((tag, path)) =
                line.split_first().and_then(|(t, rest)| Some((t, rest.strip_prefix(b" ")?)))
            else {
                continue;
            };
            if matches!(tag, b'h' | b's') {
                unlooked.extend_from_slice(path);
            }
            let there = || {
                dir.join(OsStr::from_bytes(path.strip_suffix(b"\0").unwrap_or(path)))
                    .symlink_metadata()
                    .is_ok()
            };
            if tag.eq_ignore_ascii_case(&b'S') && there() {
                sparse.extend_from_slice(path);
            }
        }
        for (flag, paths) in [("--no-assume-unchanged", unlooked), ("--no-skip-worktree", sparse)] {
            if !paths.is_empty() {
                let command = command()?.verb("update-index").args([flag, "-z", "--stdin"]);
                command.stdin(paths).ok()?;
            }
        }
        Ok(())
    }

    /// Returns those of these paths that are ignored.
    pub(crate) fn ignored(
        &self,
        git_dir: &Path,
        dir: &Path,
        paths: &[BString],
    ) -> Result<Vec<BString>, StoreError> {
        ignored_among(self.in_tree(git_dir, dir), paths)
    }

    /// Returns the submodules that an index file names, each once, with its commit and whether it is out of a
    /// sparse checkout. For a submodule that is not merged, that is the commit of our side, if there is one.
    pub(crate) fn links_of(
        &self,
        git_dir: &Path,
        index: &Path,
    ) -> Result<Vec<(BString, ObjectId, bool)>, StoreError> {
        let command = self.index_command(git_dir, index).verb("ls-files");
        let listed = command.args(["-s", "-t", "-z"]).ok()?;
        let mut links = BTreeMap::new();
        for entry in listed.split(|b| *b == 0) {
            let Some(tab) = entry.iter().position(|b| *b == b'\t') else { continue };
            let (words, path) = (entry[..tab].split(|b| *b == b' ').collect::<Vec<_>>(), &entry[tab + 1..]);
            let [tag, b"160000", id, stage] = words[..] else { continue };
            let id = ObjectId::from_hex(id).map_err(|_| StoreError::Git {
                verb: "ls-files".into(),
                message: "it printed no object id".into(),
            })?;
            if matches!(stage, b"0" | b"2") || !links.contains_key(path) {
                links.insert(path.to_owned(), (id, tag.eq_ignore_ascii_case(b"S")));
            }
        }
        Ok(links.into_iter().map(|(path, (id, sparse))| (path.into(), id, sparse)).collect())
    }

    /// Points submodules of an index file at commits.
    pub(crate) fn set_links(
        &self,
        git_dir: &Path,
        index: &Path,
        links: &[(BString, ObjectId)],
    ) -> Result<(), StoreError> {
        self.put_links(git_dir, index, "160000", links)
    }

    /// Takes submodules out of an index file.
    pub(crate) fn drop_links(
        &self,
        git_dir: &Path,
        index: &Path,
        links: &[(BString, ObjectId)],
    ) -> Result<(), StoreError> {
        self.put_links(git_dir, index, "0", links)
    }

    fn put_links(
        &self,
        git_dir: &Path,
        index: &Path,
        mode: &str,
        links: &[(BString, ObjectId)],
    ) -> Result<(), StoreError> {
        if links.is_empty() {
            return Ok(());
        }
        let entry =
            |(path, id): &(BString, ObjectId)| [format!("{mode} {id}\t").as_bytes(), path, b"\0"].concat();
        let input: Vec<u8> = links.iter().flat_map(entry).collect();
        // Git compares a file by its content if the file was written in the same second as the index. So that
        // this still applies, the index keeps its time.
        let written = index.metadata().and_then(|meta| meta.modified()).ok();
        let command = self.index_command(git_dir, index).verb("update-index");
        command.args(["-z", "--index-info"]).stdin(input).ok()?;
        let Some(written) = written else { return Ok(()) };
        let file = std::fs::File::options().write(true).open(index);
        file.and_then(|file| file.set_modified(written)).map_err(io_error("write", index))
    }

    /// Returns a child that works on an index file alone, and that keeps the whole index in that file.
    fn index_command(&self, git_dir: &Path, index: &Path) -> GitCommand {
        let command = self.git.command(git_dir).env("GIT_INDEX_FILE", index);
        ["core.splitIndex=false", "core.sparseCheckout=false", "index.sparse=false"]
            .iter()
            .fold(command, |command, setting| command.config(setting))
    }
}

/// Returns those of these paths that are ignored; `command` is one in the folder that they are relative to.
///
/// # Errors
/// What Git says.
pub(crate) fn ignored_among<P: AsRef<[u8]> + Clone>(
    command: GitCommand,
    paths: &[P],
) -> Result<Vec<P>, StoreError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    // A name that begins with a colon would be a pattern, and this verb of Git's knows no literal ones.
    let input: Vec<u8> = paths.iter().flat_map(|path| [b"./", path.as_ref(), b"\0"].concat()).collect();
    let output = command.verb("check-ignore").args(["--stdin", "-z"]).stdin(input).output()?;
    match output.status.code() {
        // Exit status 1: none of them is ignored.
        Some(0 | 1) => {
            let found: BTreeSet<&[u8]> =
                output.stdout.split(|b| *b == 0).filter_map(|path| path.strip_prefix(b"./")).collect();
            Ok(paths.iter().filter(|path| found.contains(path.as_ref())).cloned().collect())
        }
        _ => Err(StoreError::Git { verb: "check-ignore".into(), message: output.message }),
    }
}
