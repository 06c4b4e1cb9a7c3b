//! What is asked of the `git` binary beyond refs and commits: working trees, ancestry, signatures.
//!
//! Every call names its Git directory and index; none depends on the folder that the process stands in.
//! Answers are exit statuses and machine formats, never wording.

use super::children::MayLock;
use super::command::{Git, GitCommand, GitOutput};
use super::confined::of_signatures;
use crate::protocol::id::ObjectId;
use crate::protocol::text::escape;
use crate::store::refs::locks::age_of;
use crate::store::{NewCommit, RefName, StoreError, commit};
use crate::supervisor::interrupt::ForceStop;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The `git` binary for one repository.
#[derive(Debug, Clone)]
pub(crate) struct RepoGit {
    pub(crate) git: Git,
    pub(crate) common_dir: PathBuf,
    pub(crate) durable: bool,
    /// The configuration keys of all filter drivers; read at first use.
    drivers: Arc<OnceLock<Vec<Vec<u8>>>>,
}

impl RepoGit {
    pub(crate) fn new(git: Git, common_dir: PathBuf, durable: bool) -> Self {
        Self { git, common_dir, durable, drivers: Arc::default() }
    }

    /// Returns the program and environment of children.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn ended_by(&mut self, force_stop: ForceStop) {
        self.git.ended_by(force_stop);
    }

    pub(crate) fn confine(&mut self) {
        self.git.confine();
    }

    /// Refuses to push to a path, whose hooks would run, where this repository is not trusted and the account
    /// does not allow such pushes.
    pub(crate) fn may_push_to_paths(&self) -> Result<(), StoreError> {
        match self.git.kept_from(&self.common_dir)? {
            Some(found) if !found.pushes_to_paths => {
                Err(StoreError::Untrusted { what: "the hooks of a repository at a path" })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses where filter drivers that are not trusted would read or write files. Without those drivers the
    /// files would have other content, so that they can't just be switched off.
    pub(crate) fn with_plain_files(&self, git_dir: &Path) -> Result<(), StoreError> {
        match self.git.kept_from(git_dir)? {
            Some(found) if found.filters => Err(StoreError::Untrusted { what: "its filter drivers" }),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn set_durable(&mut self, durable: bool) {
        self.durable = durable;
    }

    pub(crate) fn here(&self) -> GitCommand {
        self.git.command(&self.common_dir)
    }

    /// Returns a child that works on a whole working tree, whatever the configuration says about sparse
    /// checkouts. With `no_filters` it runs no filter driver.
    pub(crate) fn tree_command(
        &self,
        git_dir: &Path,
        dir: &Path,
        no_filters: bool,
    ) -> Result<GitCommand, StoreError> {
        let mut command = self.git.command(git_dir).config("core.sparseCheckout=false");
        // The runner copies its index files, so each of them has to be whole.
        command = command.config("core.splitIndex=false");
        if no_filters {
            // On a server no program runs that a pushed attribute names. An empty `--attr-source` would also
            // hide attributes that run nothing (eol, encodings), and Git before 2.41 has no such option.
            command = command.settings(self.drivers()?.iter().map(|key| {
                let value = if key.ends_with(b".required") { "false" } else { "" };
                (OsString::from_vec(key.clone()), value.into())
            }));
        }
        Ok(command.work_tree(dir))
    }

    /// Returns the keys that give filter drivers a program, or demand one.
    fn drivers(&self) -> Result<&[Vec<u8>], StoreError> {
        if let Some(known) = self.drivers.get() {
            return Ok(known);
        }
        let command = self.here().verb("config").args(["-z", "--name-only", "--get-regexp", "^filter\\."]);
        let output = command.output()?;
        // Exit status 1: there is none.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(StoreError::Git { verb: "config".into(), message: output.message });
        }
        let keys = output.stdout.split(|b| *b == 0).filter(|key| !key.is_empty()).map(<[u8]>::to_vec);
        Ok(self.drivers.get_or_init(|| keys.collect()))
    }

    /// Returns `git config --list` with scopes and files, NUL-separated.
    pub(crate) fn config_list(&self, git_dir: &Path) -> Result<Vec<u8>, StoreError> {
        // What the caller said by `git -c` is the point of this call.
        let command = self.git.at_liberty().plain(Some(git_dir)).said_by_caller();
        command.verb("config").args(["--list", "--show-scope", "--show-origin", "-z"]).ok()
    }

    /// Writes one key of the account's own configuration; `None` removes it. A lock that is in the way is an error, also
    /// one that the child left because it was killed.
    pub(crate) fn set_global(&self, key: &str, value: Option<&str>) -> Result<GitOutput, StoreError> {
        let locks = self.git.locks_of_account();
        let mut command = self.git.plain(None);
        // The note's folder is ours: an uninstallation, which removes keys last, makes it no more.
        if value.is_some() || self.common_dir.join("aynig").is_dir() {
            command = command.may_lock(MayLock::files(&self.common_dir, locks.clone()));
        }
        let command = command.verb("config").args(["--global"]);
        let output = match value {
            Some(value) => command.args([key, value]).output(),
            None => command.args(["--unset-all", key]).output(),
        }?;
        // Status 5: there was nothing to remove.
        let failed = !matches!(output.status.code(), Some(0 | 5));
        match locks.into_iter().find(|lock| failed && lock.symlink_metadata().is_ok()) {
            Some(path) => {
                Err(StoreError::LockHeld { name: RefName::new("config"), age: age_of(&path), path })
            }
            None => Ok(output),
        }
    }

    /// Deletes refs, all or none, if each still holds this value. Only an uninstallation deletes such refs.
    pub(crate) fn delete_refs(&self, git_dir: &Path, refs: &[(RefName, ObjectId)]) -> Result<(), StoreError> {
        let lines = refs.iter().map(|(name, at)| {
            [b"delete ", name.as_bytes(), b"\0", at.to_string().as_bytes(), b"\0"].concat()
        });
        let input = lines.collect::<Vec<_>>().concat();
        let command = self.git.command(git_dir).verb("update-ref").args(["--no-deref", "-z", "--stdin"]);
        command.stdin(input).ok().map(drop)
    }

    /// Deletes a symbolic ref, and not what it points to.
    pub(crate) fn delete_symbolic_ref(&self, name: &RefName) -> Result<(), StoreError> {
        let args = [OsStr::new("-d"), OsStr::from_bytes(name.as_bytes())];
        self.here().verb("symbolic-ref").args(args).ok().map(drop)
    }

    /// Removes one key of the repository's own configuration.
    pub(crate) fn unset_own(&self, git_dir: &Path, key: &str) -> Result<GitOutput, StoreError> {
        self.git.plain(Some(git_dir)).verb("config").args(["--local", "--unset-all", key]).output()
    }

    /// Returns the branch that HEAD names; `None` where HEAD is detached.
    pub(crate) fn symbolic_head(&self, git_dir: &Path) -> Result<Option<RefName>, StoreError> {
        self.symbolic_ref(git_dir, "HEAD")
    }

    /// Returns the target of a symbolic ref; `None` where the ref is no symbolic one.
    pub(crate) fn symbolic_ref(&self, git_dir: &Path, name: &str) -> Result<Option<RefName>, StoreError> {
        target(self.git.command(git_dir), name)
    }

    /// Returns the target of a slot's HEAD of this name; `None` where it is detached.
    pub(crate) fn target_in_slot(
        &self,
        common_dir: &Path,
        head: &str,
    ) -> Result<Option<RefName>, StoreError> {
        target(self.git.command(common_dir).of_an_enemy(), head)
    }

    /// Returns the commit that a slot's HEAD of this name names, through other refs too.
    pub(crate) fn head_of_slot(&self, common_dir: &Path, head: &str) -> Result<ObjectId, StoreError> {
        let commit = format!("{head}^{{commit}}");
        let command = self.git.command(common_dir).of_an_enemy().verb("rev-parse");
        command.args(["--verify", "--quiet", "--end-of-options", &commit]).id()
    }

    pub(crate) fn set_detached_head(
        &self,
        git_dir: &Path,
        id: ObjectId,
        hold: Option<&File>,
    ) -> Result<(), StoreError> {
        let id = id.to_string();
        let command = self.git.command(git_dir).holding(hold)?.verb("update-ref");
        command.args(["--no-deref", "HEAD", &id]).ok().map(drop)
    }

    /// Returns the branches that are symbolic refs, each with its target.
    pub(crate) fn symbolic_branches(&self) -> Result<Vec<(RefName, RefName)>, StoreError> {
        let args = ["--format=%(refname)%00%(symref)", "refs/heads/"];
        let printed = self.here().verb("for-each-ref").args(args).ok()?;
        let pairs = printed.split(|b| *b == b'\n').filter_map(|line| {
            let nul = line.iter().position(|b| *b == 0)?;
            Some((&line[..nul], &line[nul + 1..]))
        });
        let symbolic = pairs.filter(|(_, target)| !target.is_empty());
        Ok(symbolic.map(|(name, target)| (RefName::new(name), RefName::new(target))).collect())
    }

    /// Returns a ref's log, oldest entry first: what the ref held afterwards, and what was done.
    /// Empty where there is no log.
    pub(crate) fn reflog(&self, name: &RefName) -> Result<Vec<(ObjectId, Vec<u8>)>, StoreError> {
        let args = ["--walk-reflogs", "--no-show-signature", "--format=%H %gs"].map(OsStr::new);
        let name = [OsStr::from_bytes(name.as_bytes()), OsStr::new("--")];
        let printed = self.here().verb("log").args(args.into_iter().chain(name)).ok()?;
        let newest_first = printed.split(|b| *b == b'\n').filter_map(|line| {
            let space = line.iter().position(|b| *b == b' ')?;
            Some((ObjectId::from_hex(&line[..space]).ok()?, line[space + 1..].to_vec()))
        });
        let mut lines: Vec<_> = newest_first.collect();
        lines.reverse();
        Ok(lines)
    }

    /// Returns the remote that `git push` would take for a branch; `None` where the configuration names none.
    pub(crate) fn push_remote(&self, branch: &RefName) -> Result<Option<String>, StoreError> {
        let name = OsStr::from_bytes(branch.as_bytes());
        let args = [OsStr::new("--format=%(push:remotename)"), name];
        let printed = self.here().verb("for-each-ref").args(args).ok()?;
        let line = printed.split(|b| *b == b'\n').next().filter(|name| !name.is_empty());
        let name = line.map(|name| String::from_utf8(name.to_vec())).transpose();
        name.map_err(|error| StoreError::Git {
            verb: "push".into(),
            message: format!("the name of its remote, '{}', is not UTF-8", escape(error.as_bytes())),
        })
    }

    /// Returns a child that works on a working tree, started in its top folder.
    pub(crate) fn in_tree(&self, git_dir: &Path, dir: &Path) -> GitCommand {
        self.git.command(git_dir).work_tree(dir).in_dir(dir)
    }

    /// Returns the object that a name stands for.
    pub(crate) fn rev_parse(&self, git_dir: &Path, name: &str) -> Result<ObjectId, StoreError> {
        let args = ["--verify", "--quiet", "--end-of-options", name];
        self.git.command(git_dir).verb("rev-parse").args(args).id()
    }

    /// True where `old` is reachable from `new`.
    pub(crate) fn is_ancestor(&self, old: ObjectId, new: ObjectId) -> Result<bool, StoreError> {
        let (old, new) = (old.to_string(), new.to_string());
        let output = self.here().verb("merge-base").args(["--is-ancestor", &old, &new]).output()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(StoreError::Git { verb: "merge-base".into(), message: output.message }),
        }
    }

    /// True where a local branch has this commit.
    pub(crate) fn is_on_a_branch(&self, id: ObjectId) -> Result<bool, StoreError> {
        let contains = format!("--contains={id}");
        let args = ["--count=1", "--format=%(refname)", &contains, "refs/heads/"];
        Ok(!self.here().verb("for-each-ref").args(args).ok()?.is_empty())
    }

    /// True where a submodule's repository has commits that can be reached neither from the commits in
    /// `known` nor from the branches of its remotes, as last fetched or pushed.
    pub(crate) fn has_unpublished(&self, git_dir: &Path, known: &[ObjectId]) -> Result<bool, StoreError> {
        let command = self.of_a_command(git_dir).verb("rev-list");
        let all =
            ["--max-count=1", "--ignore-missing", "--exclude=refs/tags/*", "--all", "--not", "--remotes"];
        let known = known.iter().map(ObjectId::to_string);
        Ok(!command.args(all).args(known).of_an_enemy().ok()?.is_empty())
    }

    /// Returns the commit that is checked out in a submodule. Nothing else is asked of
    /// that submodule's repository.
    pub(crate) fn head_of_submodule(&self, git_dir: &Path) -> Result<ObjectId, StoreError> {
        let command = self.of_a_command(git_dir).verb("rev-parse");
        command.args(["--verify", "--quiet", "HEAD^{commit}"]).of_an_enemy().id()
    }

    /// Returns a child that reads a repository which a command made. Git does not look for its working tree,
    /// which may be gone, and fetches no missing object by a program that the repository names.
    fn of_a_command(&self, git_dir: &Path) -> GitCommand {
        let command =
            self.git.command(git_dir).env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
        command.work_tree(git_dir)
    }

    /// Returns what a configuration file that a command wrote says, without the files that it includes.
    pub(crate) fn config_file(&self, file: &Path) -> Result<Vec<u8>, StoreError> {
        let command = self.git.plain(None).verb("config").args([OsStr::new("--file"), file.as_os_str()]);
        command.args(["--no-includes", "--list", "-z"]).of_an_enemy().ok()
    }

    /// Returns the paths that a working tree's index has at or below `below`, from the top of the tree on.
    pub(crate) fn tracked(
        &self,
        git_dir: &Path,
        dir: &Path,
        below: &str,
    ) -> Result<HashSet<Vec<u8>>, StoreError> {
        let command = self.in_tree(git_dir, dir);
        let pathspec = format!(":(top,literal){below}");
        let listed = command.verb("ls-files").args(["-z", "--", &pathspec]).ok()?;
        Ok(listed.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// True where `git verify-commit` accepts the commit.
    pub(crate) fn verify_commit(&self, id: ObjectId) -> Result<bool, StoreError> {
        Ok(self.objection(id)?.is_none())
    }

    /// Returns what `git verify-commit` says against the commit, in one line, which is empty for a commit
    /// that is not signed; `None` where Git accepts the commit.
    pub(crate) fn objection(&self, id: ObjectId) -> Result<Option<String>, StoreError> {
        let id = id.to_string();
        // Whose signatures are believed is not for the repository to say.
        let command = self.here().settings(of_signatures(&self.git, &self.common_dir)?);
        let output = command.verb("verify-commit").args([&id]).output()?;
        Ok((!output.status.success()).then_some(output.message))
    }

    /// Writes a commit that is signed as the user's configuration says.
    pub(crate) fn commit_signed(&self, new: &NewCommit) -> Result<ObjectId, StoreError> {
        commit::encode(new)?;
        let command = self.here().settings(of_signatures(&self.git, &self.common_dir)?);
        let mut command = command.durable(self.durable).identity(&new.signature).verb("commit-tree");
        command = command.args(["-S".to_owned(), new.tree.to_string()]);
        for parent in &new.parents {
            command = command.args(["-p".to_owned(), parent.to_string()]);
        }
        command.args(["-F", "-"]).stdin(new.message.clone()).id()
    }

    /// Sets the index and the files of a slot to a tree.
    pub(crate) fn read_tree(
        &self,
        git_dir: &Path,
        dir: &Path,
        tree: ObjectId,
        no_filters: bool,
        (hold, stop): (Option<&File>, &Arc<AtomicBool>),
    ) -> Result<(), StoreError> {
        let command =
            self.tree_command(git_dir, dir, no_filters)?.in_dir(dir).holding(hold)?.stopped_by(stop);
        command.verb("read-tree").args(["--reset", "-u", &tree.to_string()]).ok().map(drop)
    }

    /// Removes every file that the index does not have, ignored or not.
    pub(crate) fn clean(
        &self,
        git_dir: &Path,
        dir: &Path,
        no_filters: bool,
        (hold, stop): (Option<&File>, &Arc<AtomicBool>),
    ) -> Result<(), StoreError> {
        let command =
            self.tree_command(git_dir, dir, no_filters)?.in_dir(dir).holding(hold)?.stopped_by(stop);
        command.config("clean.requireForce=false").verb("clean").args(["-ffdxq"]).ok().map(drop)
    }

    /// Writes files as blobs, without filters. Their names must have no line breaks.
    pub(crate) fn hash_files(&self, files: &[PathBuf]) -> Result<Vec<ObjectId>, StoreError> {
        let names: Vec<&[u8]> = files.iter().map(|file| file.as_os_str().as_bytes()).collect();
        let command = self.here().durable(self.durable).verb("hash-object");
        let printed = command.args(["-w", "--no-filters", "--stdin-paths"]).stdin(names.join(&b'\n')).ok()?;
        let ids = printed.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(ObjectId::from_hex);
        let ids: Vec<ObjectId> = ids.filter_map(Result::ok).collect();
        if ids.len() == files.len() {
            return Ok(ids);
        }
        Err(StoreError::Git { verb: "hash-object".into(), message: "it printed no object id".into() })
    }

    /// Writes the tree `base` with the files `put` in place of everything at or below `paths`, except those
    /// entries that `stays` says are kept. The index file is the caller's, for this use.
    pub(crate) fn tree_with(
        &self,
        index: &Path,
        base: ObjectId,
        paths: &[String],
        stays: impl Fn(&Path) -> bool,
        put: &[(&Path, &str, ObjectId)],
    ) -> Result<ObjectId, StoreError> {
        let on = |verb: &str| self.here().verb(verb).env("GIT_INDEX_FILE", index);
        on("read-tree").args([&base.to_string()]).ok()?;
        let literal = paths.iter().map(|path| format!(":(top,literal){path}"));
        let listed = on("ls-files").args(["-z", "--"]).args(literal).ok()?;
        let nothing = base.to_string().replace(|_: char| true, "0");
        let mut lines = Vec::new();
        // Removals come first, because a folder may stand where a file was.
        let goes = |path: &&[u8]| !path.is_empty() && !stays(Path::new(OsStr::from_bytes(path)));
        for path in listed.split(|b| *b == 0).filter(goes) {
            lines.extend_from_slice(&[format!("0 {nothing}\t").as_bytes(), path, b"\0"].concat());
        }
        for (path, mode, id) in put {
            let path = path.as_os_str().as_bytes();
            lines.extend_from_slice(&[format!("{mode} {id}\t").as_bytes(), path, b"\0"].concat());
        }
        on("update-index").args(["-z", "--replace", "--index-info"]).stdin(lines).ok()?;
        self.write_tree(&self.common_dir, index)
    }

    /// Writes the tree of an index file.
    pub(crate) fn write_tree(&self, git_dir: &Path, index: &Path) -> Result<ObjectId, StoreError> {
        self.git.command(git_dir).verb("write-tree").env("GIT_INDEX_FILE", index).id()
    }

    /// Brings the stat data of an index, or of a copy of it, up to date with a working tree.
    pub(crate) fn refresh_index(&self, git_dir: &Path, dir: &Path, index: &Path) -> Result<(), StoreError> {
        let command = self.in_tree(git_dir, dir).verb("update-index").args(["-q", "--refresh"]);
        let output = command.env("GIT_INDEX_FILE", index).output()?;
        match output.status.code() {
            // Exit status 1: a path is not merged, which the caller finds out.
            Some(0 | 1) => Ok(()),
            _ => Err(StoreError::Git { verb: "update-index".into(), message: output.message }),
        }
    }

    /// Returns the address of the remote of this name; `None` where there is none.
    pub(crate) fn remote_url(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.address(&["get-url", name])
    }

    /// Returns the first address that pushes to the remote of this name go to; `None` where there is none.
    pub(crate) fn push_url(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.address(&["get-url", "--push", name])
    }

    fn address(&self, args: &[&str]) -> Result<Option<Vec<u8>>, StoreError> {
        let output = self.here().verb("remote").args(args).output()?;
        let line = output.stdout.split(|b| *b == b'\n').next().unwrap_or_default();
        Ok(output.status.success().then(|| line.to_vec()))
    }

    /// Asks for a key of the configuration that applies in a folder. The exit status is 1
    /// where the key is not set.
    pub(crate) fn setting_at(&self, dir: &Path, key: &str) -> Result<GitOutput, StoreError> {
        self.git.plain(None).in_dir(dir).verb("config").args(["--get", key]).output()
    }

    /// Asks a remote for its HEAD, without a prompt.
    pub(crate) fn ask_remote(
        &self,
        name: &str,
        home: &Path,
        patience: Duration,
    ) -> Result<GitOutput, StoreError> {
        let args = ["--end-of-options", name, "HEAD"];
        // A relative address is taken from `home`.
        self.here().verb("ls-remote").args(args).in_dir(home).within(patience).output()
    }

    /// Tries an atomic push of two refs, without a prompt or a hook. It is a dry run, which changes nothing.
    pub(crate) fn try_atomic_push(
        &self,
        name: &str,
        home: &Path,
        commit: ObjectId,
        patience: Duration,
    ) -> Result<GitOutput, StoreError> {
        let args = ["--dry-run", "--atomic", "--porcelain", "--no-verify", "--no-signed"];
        let command = self.here().config("push.followTags=false").verb("push").args(args);
        let refs = ["a", "b"].map(|end| format!("{commit}:refs/aynig/heard/doctor-{end}"));
        let command = command.args(["--recurse-submodules=no", "--end-of-options", name]).args(refs);
        command.in_dir(home).within(patience).output()
    }

    /// Returns what changed between two commits, as text; no diff program that a configuration names is run.
    pub(crate) fn diff(&self, old: ObjectId, new: ObjectId) -> Result<Vec<u8>, StoreError> {
        let args = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"];
        let (old, new) = (old.to_string(), new.to_string());
        self.here().verb("diff").args(args).args([&*old, &*new, "--"]).ok()
    }

    pub(crate) fn version(&self) -> Result<String, StoreError> {
        let printed = self.git.plain(None).verb("version").ok()?;
        Ok(String::from_utf8_lossy(printed.trim_ascii()).into_owned())
    }
}

/// Returns the full ref name of a branch name that Git would accept (`git
/// check-ref-format --branch`), else `None`. A branch that a push named `HEAD` goes by its full name alone.
pub(crate) fn branch_from_arg(arg: &OsStr) -> Option<RefName> {
    let raw = arg.as_bytes();
    let name = if raw.starts_with(b"refs/heads/") { RefName::new(raw) } else { RefName::branch(raw) };
    (name.is_valid() && !raw.starts_with(b"-") && raw != b"HEAD").then_some(name)
}

/// Returns the target of a symbolic ref; `None` where the ref is no symbolic one.
fn target(command: GitCommand, name: &str) -> Result<Option<RefName>, StoreError> {
    let output = command.verb("symbolic-ref").args(["-q", name]).output()?;
    Ok(output.status.success().then(|| RefName::new(output.stdout.trim_ascii_end().to_vec())))
}
