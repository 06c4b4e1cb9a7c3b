//! Commands that mend what went wrong, in a form that can be pasted.
//!
//! A name that came from a repository is quoted as one shell word, whatever it holds: otherwise a user who
//! can push a branch could write a command that another user pastes. The command for a branch of a remote
//! names the remote, or it would look for the branch in this repository. Implements K36.

use crate::protocol::flow::slug_of;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::RunnerError;
use crate::runner::home::Home;
use crate::runner::report::{Report, is_full};
use crate::store::command_start::Unfit;
use crate::store::disk::is_of_another_account;
use crate::store::{RefName, RemoteFailure, StoreError, Unread, tracking};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;

/// Where this process says that refs are to be moved. Whoever puts refs in the way could put one there too if the
/// name could be guessed, and whatever was moved before stays.
static MOVED: LazyLock<String> =
    LazyLock::new(|| format!("refs/moved-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]));

/// Returns the command that moves a ref out of the way, which keeps what the ref holds.
pub(super) fn move_ref_away(name: &RefName) -> String {
    let rest = name.as_bytes().strip_prefix(b"refs/").unwrap_or(name.as_bytes());
    let (word, to) = (shell_word(name.as_bytes()), shell_word(&[MOVED.as_bytes(), b"/", rest].concat()));
    format!("git update-ref {to} {word} '' && git update-ref --no-deref -d {word}")
}

/// A branch, in the forms that people are shown and that commands take.
pub struct Addressed {
    /// The short name, escaped for people.
    pub shown: String,
    /// The name as one shell word.
    pub word: String,
    /// The remote that the branch is of, as a shell word; `None` for a branch of this repository.
    remote: Option<String>,
    /// The prefix of the branch's name among the refs of this repository.
    prefix: String,
    branch: RefName,
}

impl Addressed {
    /// Addresses a branch of a remote or, for `None` and `.`, of this repository.
    pub fn new(branch: &RefName, remote: Option<&str>) -> Self {
        let remote = remote.filter(|name| *name != ".");
        let prefix = remote.map(tracking).unwrap_or_default();
        let remote = remote.map(|name| shell_word(name.as_bytes()));
        Self {
            shown: escape(branch.short()),
            word: branch_word(branch.short()),
            remote,
            prefix,
            branch: branch.clone(),
        }
    }
    /// Returns the ref of this repository that holds the branch's head, as a shell word.
    pub fn here(&self) -> String {
        match &*self.prefix {
            "" => branch_word(self.branch.short()),
            prefix => shell_word(&[prefix.as_bytes(), self.branch.short()].concat()),
        }
    }
    /// Addresses a report's branch, in the repository or remote where it was evaluated.
    pub fn of(report: &Report) -> Self {
        Self::new(&report.branch, report.remote.as_deref())
    }
    /// Returns the call of a verb on the branch.
    pub fn call(&self, verb: &str) -> String {
        format!("git aynig {verb}{} {}", self.option(), self.word)
    }
    /// Returns the command that takes back pauses in the repository or remote that the branch is of.
    pub fn resume(&self) -> String {
        format!("git aynig resume{}", self.option())
    }
    /// Returns the command that resumes the flow that the branch may be a node of; `None` where its name is
    /// no node's.
    pub fn resume_flow(&self) -> Option<String> {
        let slug = slug_of(self.branch.short())?;
        Some(format!("git aynig flow resume{} {slug}", self.option()))
    }
    /// Returns the command that lands the branch.
    pub fn land(&self) -> String {
        format!("git aynig land{} {}", self.option(), self.word)
    }
    /// Returns the command that gives the branch another state.
    pub fn set(&self, state: &str) -> String {
        format!("git aynig set-state {state}{} -b {}", self.option(), self.word)
    }
    /// Returns the command that shows what the run that answered `trigger` printed. For a branch of a remote
    /// it names the commit: `logs` asks no remote, but finds a run by its commits.
    pub fn logs_of(&self, trigger: &str, stderr_log: &Path) -> String {
        let whose = if self.remote.is_some() { trigger } else { &self.word };
        // Where the command printed nothing to standard error, what it printed is on standard output.
        let silent = stderr_log.symlink_metadata().is_ok_and(|log| log.len() == 0);
        format!("git aynig logs {}{whose}", if silent { "" } else { "--stderr " })
    }
    /// Returns the command that lists the branches of the remote, or of this repository.
    pub fn list(&self) -> String {
        match &self.remote {
            Some(remote) => format!("git ls-remote --heads {remote}"),
            None => "git branch --list".to_owned(),
        }
    }
    /// Returns the hint for a change to commands, committed where commands come from. Where that is this
    /// branch, the state is asked for again after the commit.
    pub fn commit(&self, home: &Home, change: &str, state: &str) -> String {
        format!("hint: {}{}", commit(home, change, Some(&self.branch)), self.again(home, state))
    }
    /// Returns the commands that make a state's command one that can be started, commit that, and ask for the
    /// state again as [`Addressed::commit`] does.
    pub fn mend(&self, home: &Home, path: &str, why: &Unfit, state: &str) -> String {
        mend(home, &format!(".aynig/{path}"), why, Some(&self.branch), &self.again(home, state))
    }
    /// Returns what asks for the state again, where its command is committed to this very branch: that commit
    /// becomes the head, and so takes the request away. Empty where commands come from elsewhere.
    fn again(&self, home: &Home, state: &str) -> String {
        match home.is(&self.branch) {
            true => format!(" && {}", self.set(state)),
            false => String::new(),
        }
    }
    /// Returns the command that makes the branch again, at this commit.
    pub fn create(&self, commit: &str) -> String {
        match &self.remote {
            Some(remote) => {
                let to = shell_word(&[commit.as_bytes(), b":", self.branch.as_bytes()].concat());
                format!("git push {remote} {to}")
            }
            None => format!("git branch -- {} {commit}", shell_word(self.branch.short())),
        }
    }
    /// Returns the command that pushes a ref to the branch's remote; `None` for a branch of this repository.
    pub fn push(&self, name: &str) -> Option<String> {
        self.remote.as_ref().map(|remote| format!("git push {remote} {}", shell_word(name.as_bytes())))
    }
    fn option(&self) -> String {
        self.remote.as_ref().map(|remote| format!(" --remote {remote}")).unwrap_or_default()
    }
}

/// Returns the shell commands that make a change and commit it where commands come from. Where each branch
/// brings its own commands, the commit is for `branch` or, for `None`, for whichever branch is checked out. A
/// commit on a branch that waits takes its request away: [`Addressed::commit`] then asks for the state again.
pub fn commit(home: &Home, change: &str, branch: Option<&RefName>) -> String {
    let Some(from) = home.from.as_ref().or(branch) else { return format!("{change} && git commit") };
    if !from.as_bytes().starts_with(b"refs/heads/") {
        return format!("in {}: {change} && git commit", escape(from.as_bytes()));
    }
    let word = shell_word(from.short());
    let line = format!("git switch {word} && {change} && git commit");
    match &home.remote {
        _ if !home.has_work_tree => format!("in a clone: {line} && git push"),
        Some(remote) => format!("{line} && git push {} {word}", shell_word(remote.as_bytes())),
        None => line,
    }
}

/// Returns the commands that make a command's file one that can be started, and commit that as [`commit`]
/// does; `again` follows the commit.
pub fn mend(home: &Home, file: &str, why: &Unfit, branch: Option<&RefName>, again: &str) -> String {
    let file = shell_word(file.as_bytes());
    let edit = format!("$(git var GIT_EDITOR) {file} && git add {file}");
    let (first, change) = match why {
        Unfit::NotExecutable => ("", format!("chmod +x {file} && git add --chmod=+x {file}")),
        Unfit::Leaves | Unfit::Links | Unfit::Nowhere => {
            ("with the path of a file inside .aynig/: ", format!("ln -sf <path> {file} && git add {file}"))
        }
        Unfit::CarriageReturn(_) => ("", format!("sed -i 's/\\r$//' {file} && git add {file}")),
        Unfit::Words(_) => ("", format!("sed -i '1s/env /env -S /' {file} && git add {file}")),
        Unfit::NoProgram => {
            ("name in its first line what env is to start, after -S where there are several words: ", edit)
        }
        Unfit::TooMany => ("", "git rm -r .aynig/<folder>".to_owned()),
        Unfit::Empty | Unfit::NoInterpreter | Unfit::BadLine => {
            ("begin it with #!/bin/sh, or with what it is written for: ", edit)
        }
        Unfit::Interpreter(_) | Unfit::Program(_) => ("install that, or name another program: ", edit),
        Unfit::Relative(_) => ("name it from the root on, or begin with #!/usr/bin/env: ", edit),
    };
    format!("{first}{}{again}", commit(home, &change, branch))
}

/// Returns a folder as a hint names it, so that the hint works wherever it is pasted.
pub fn place(dir: &Path) -> String {
    // A name that cannot be shown as it is cannot be pasted either: the hint is then for a user who stands in
    // the folder.
    let shown = dir.to_str().filter(|dir| escape(dir.as_bytes()) == *dir);
    let quoted = shown.and_then(|dir| shlex::try_quote(dir).ok());
    quoted.map_or_else(|| ".".to_owned(), |quoted| quoted.into_owned())
}

/// Returns the command that comes before one with paths from the top of a working tree, where the user stands elsewhere.
pub fn to_top(work_dir: Option<&Path>) -> Option<String> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok()?;
    let top = work_dir?.canonicalize().ok().filter(|top| *top != here)?;
    Some(format!("cd {}", place(&top)))
}

/// Returns the option that names a remote, with a blank before it; empty where there is no remote.
pub fn remote_option(remote: Option<&str>) -> String {
    remote.map(|name| format!(" --remote {}", shell_word(name.as_bytes()))).unwrap_or_default()
}

/// Returns the call of this very process with the remote named: a remote that is named is asked before trust,
/// too (K34).
pub fn same_with_remote(remote: &str) -> String {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|arg| shell_word(arg.as_encoded_bytes())).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, format!("--remote {}", shell_word(remote.as_bytes())));
    format!("git aynig {}", words.join(" "))
}

/// Returns the commands that mend what stopped a verb, or the evaluation of a branch.
pub fn of(error: &RunnerError, branch: Option<&RefName>) -> Vec<String> {
    match error {
        RunnerError::Store(store) => of_store(store, branch),
        RunnerError::Unready { what, path, source } => {
            let (word, mut hints) =
                (shell_word(path.as_os_str().as_encoded_bytes()), of_system(source, None));
            if hints.is_empty() {
                let other = "git config --global aynig.worktreeDir <folder>";
                hints.extend((*what == "worktrees").then(|| other.to_owned()));
                // Where worktrees are kept may be a folder of the system's.
                let is_theirs = *what != "worktrees" && is_of_another_account(path);
                hints.push(match (in_place_of_a_folder(path), is_theirs) {
                    (Some(file), _) => move_aside(file),
                    (None, true) => take_over(path),
                    (None, false) => format!("ls -ld {word}; mkdir -p {word} && chmod u+rwx {word}"),
                });
            }
            hints
        }
        RunnerError::Io { path, source, .. } => of_system(source, Some(path)),
        RunnerError::Supervisor(inner) => {
            inner.system_error().map_or_else(Vec::new, |source| of_system(source, None))
        }
        RunnerError::NoWrapper { .. } => vec![format!("git {}", show_key("aynig.exec"))],
        RunnerError::SlotNote { note, dir, .. } => vec![move_slot_aside(note, dir)],
        RunnerError::Signing { .. } => vec!["git config --get-regexp '^(gpg|user)\\.'".to_owned()],
        RunnerError::Closed { .. } | RunnerError::Unknown { .. } | RunnerError::Message { .. } => Vec::new(),
    }
}

pub fn of_store(error: &StoreError, branch: Option<&RefName>) -> Vec<String> {
    match error {
        StoreError::LockHeld { path, .. } => {
            let path = shell_word(path.as_os_str().as_encoded_bytes());
            vec![format!("if no git process is at work: rm {path}")]
        }
        // Below no other folder is a ref that the user could mean instead.
        StoreError::SymbolicRef { name, .. } if !name.as_bytes().starts_with(b"refs/heads/") => {
            vec![remove_symbolic_ref(name)]
        }
        StoreError::SymbolicRef { target, .. } => vec![format!("name the branch itself: '{target}'")],
        StoreError::Object { .. } => of_broken(branch),
        StoreError::UnreadableRef { name, cause: Unread::System(number) } => {
            let path = Path::new(OsStr::from_bytes(name.as_bytes()));
            of_system(&std::io::Error::from_raw_os_error(*number), Some(path))
        }
        StoreError::UnreadableRef { name, cause: Unread::Symbolic(_) } => {
            vec![remove_symbolic_ref(name)]
        }
        StoreError::UnreadableRef { cause: Unread::Tables(_), .. } => of_broken(None),
        // Git has no command that reads, moves or deletes a ref whose content it cannot read.
        StoreError::UnreadableRef { name, cause: Unread::Content(_) } => {
            let word = full_word(name);
            let rm = format!("rm \"$(git rev-parse --git-path {word})\"");
            vec![reflog_of(name), format!("{rm} && git update-ref {word} <commit>")]
        }
        StoreError::NameConflict { other, .. } => {
            if other.as_bytes().starts_with(b"refs/heads/") {
                let end = if other.short().starts_with(b"-") { "-- " } else { "" };
                let word = shell_word(other.short());
                return vec![format!("another name, or first: git branch -m {end}{word} <new name>")];
            }
            vec![move_ref_away(other)]
        }
        StoreError::Io { path, source, .. } => of_system(source, Some(path)),
        StoreError::Remote { failure: RemoteFailure::Other | RemoteFailure::Busy, message, .. }
            if is_broken_here(message) =>
        {
            of_broken(broken_ref(message).as_ref())
        }
        StoreError::Remote { remote, failure, .. } => of_remote(&shell_word(remote.as_bytes()), *failure),
        StoreError::Untrusted { .. } => vec!["git aynig trust".to_owned()],
        StoreError::NotText { .. } => {
            vec!["git config --show-origin --get-regexp '^(aynig|user)\\.'".to_owned()]
        }
        // Git's message says why it failed; `doctor` finds out whether the repository or the machine is at
        // fault.
        StoreError::Git { .. } | StoreError::TooLong { .. } | StoreError::Gix { .. } => {
            vec!["git aynig doctor".to_owned()]
        }
        StoreError::Moved { .. }
        | StoreError::RefusedName { .. }
        | StoreError::RefusedCommit { .. }
        | StoreError::Unsupported { .. } => Vec::new(),
    }
}

/// Returns what gets an obstacle out of a working tree's way, as a part of a sentence.
pub fn of_obstacle(by: &Obstacle) -> String {
    match by {
        Obstacle::Changes(_) => "commit or stash".to_owned(),
        Obstacle::Lock(path) => {
            let word = shell_word(path.as_os_str().as_bytes());
            format!("if no git process is at work there: rm {word}")
        }
        // Nothing that the branch holds is lost by that, and it helps also where the branch has moved since, which keeps
        // the rebase from ending. Inside a run nobody's rebase is the command's to end.
        Obstacle::Rebase(_) if std::env::var_os("AYNIG_RUN_ID").is_some() => {
            "wait until that is over".to_owned()
        }
        Obstacle::Rebase(dir) => {
            format!("finish the rebase, or: git -C {} rebase --quit", shell_word(dir.as_os_str().as_bytes()))
        }
        Obstacle::Failed(_) => "mend that".to_owned(),
    }
}

/// True where Git's message says that this repository failed, and not the remote.
fn is_broken_here(message: &str) -> bool {
    broken_ref(message).is_some() || message.contains("error: object file ")
}

/// Returns the ref of this repository that Git's message calls broken.
fn broken_ref(message: &str) -> Option<RefName> {
    let (_, rest) = message.split_once("bad object refs/")?;
    let name = rest.split_whitespace().next()?;
    Some(RefName::new(format!("refs/{name}")))
}

/// Returns what mends objects that can't be read, and the ref that leads to them where it is known.
fn of_broken(name: Option<&RefName>) -> Vec<String> {
    let fsck = "git fsck --full".to_owned();
    let Some(name) = name else { return vec![fsck] };
    let word = full_word(name);
    // A ref that only records what a remote has is deleted, since the next fetch brings it again.
    if [&b"refs/aynig/remote/"[..], b"refs/remotes/"].iter().any(|p| name.as_bytes().starts_with(p)) {
        return vec![format!("git update-ref -d {word} || rm \"$(git rev-parse --git-path {word})\"")];
    }
    vec![fsck, reflog_of(name), format!("git update-ref {word} <commit>")]
}

fn full_word(name: &RefName) -> String {
    shell_word(name.as_bytes())
}

/// Returns the command that shows where a ref pointed before, whether or not Git can still read the ref.
fn reflog_of(name: &RefName) -> String {
    let log = [b"logs/", name.as_bytes()].concat();
    format!("tail -n 2 \"$(git rev-parse --git-path {})\"", shell_word(&log))
}

fn of_system(error: &std::io::Error, path: Option<&Path>) -> Vec<String> {
    if is_full(error) {
        return vec!["free disk space ('df -h', 'df -i'), then tick again".to_owned()];
    }
    if matches!(error.kind(), std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists)
        && let Some(file) = path.and_then(in_place_of_a_folder)
    {
        return vec![move_aside(file)];
    }
    let path = path.map(|path| shell_word(path.as_os_str().as_encoded_bytes()));
    match (error.kind(), error.raw_os_error(), path) {
        (_, Some(23 | 24), _) => vec!["ulimit -n 1024, then try again".to_owned()],
        (_, Some(11), None) => vec!["too many processes ('ulimit -u'): end some, then try again".to_owned()],
        (_, Some(5), _) => vec!["the disk itself fails: look with dmesg, then git fsck --full".to_owned()],
        (std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied, _, Some(_)) => {
            vec!["git aynig doctor".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Returns the command that moves a file out of the way of a folder.
pub fn move_aside(file: &Path) -> String {
    let file = file.as_os_str().as_encoded_bytes();
    let aside = [file, b".aside"].concat();
    format!("mv {} {}", shell_word(file), shell_word(&aside))
}

/// Returns the command that removes a symbolic ref, and nothing of what it points to.
pub fn remove_symbolic_ref(name: &RefName) -> String {
    format!("git symbolic-ref -d {}", full_word(name))
}

/// Returns the command that keeps a worktree whose note can't be read, and that note, under names that nothing
/// else has: a new worktree takes its place. The note goes only once the worktree has, and the worktree leads to
/// the registration no more, which is the new one's.
pub fn move_slot_aside(note: &Path, dir: &Path) -> String {
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let aside = |path: &Path| {
        let path = path.as_os_str().as_encoded_bytes();
        (shell_word(path), shell_word(&[path, b".aside-", &unique.as_bytes()[..8]].concat()))
    };
    let ((dir_word, dir_aside), (note, note_aside)) = (aside(dir), aside(note));
    let note = format!("mv {note} {note_aside}");
    match dir.symlink_metadata() {
        Ok(_) => format!("mv {dir_word} {dir_aside} && rm -f {dir_aside}/.git && {note}"),
        Err(_) => note,
    }
}

/// Returns the arguments of `git` that show where a key is configured. One of ours may be set for one repository too,
/// as `aynig.<git dir>.<key>`.
pub fn show_key(key: &str) -> String {
    match key.strip_prefix("aynig.").filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric())) {
        Some(name) => {
            format!("config --show-origin --get-regexp '^aynig\\.(.*\\.)?{}$'", name.to_ascii_lowercase())
        }
        None => format!("config --show-origin --get-all {}", shell_word(key.as_bytes())),
    }
}

/// Returns the command that makes this account the owner of a folder.
pub fn take_over(folder: &Path) -> String {
    format!("sudo chown -R \"$(id -un)\" {}", shell_word(folder.as_os_str().as_encoded_bytes()))
}

/// Returns the nearest existing part of a path if that is a file, and so stands in a folder's place.
fn in_place_of_a_folder(path: &Path) -> Option<&Path> {
    let there = path.ancestors().find_map(|at| Some((at, at.metadata().ok()?)));
    // A program is where it belongs: a folder that it was to be started in is not.
    let is_program = |meta: &Metadata| meta.permissions().mode() & 0o111 != 0;
    there.filter(|(_, meta)| meta.is_file() && !is_program(meta)).map(|(at, _)| at)
}

fn of_remote(remote: &str, failure: RemoteFailure) -> Vec<String> {
    let look = format!("git ls-remote {remote}");
    let hint = match failure {
        RemoteFailure::NotConfigured => {
            return vec!["git remote -v".to_owned(), format!("git remote add {remote} <url>")];
        }
        RemoteFailure::Unreachable => {
            let address = format!("where its address is wrong: git remote set-url {remote} <url>");
            return vec![look, address];
        }
        RemoteFailure::Denied | RemoteFailure::TooLate => look,
        RemoteFailure::InTheWay => "another name for this one".to_owned(),
        RemoteFailure::Declined => "ask the remote's administrator what its hooks allow".to_owned(),
        RemoteFailure::NotAtomic => {
            "ask the remote's administrator for a Git that takes atomic pushes ('receive.advertiseAtomic')"
                .to_owned()
        }
        RemoteFailure::Busy | RemoteFailure::Other => {
            let again = "try again; where that does not help, what it says above is to be mended there";
            // A lock that stayed, here or in a remote by path, is among what `doctor` looks for.
            let locks = format!("git -c aynig.remote={remote} aynig doctor");
            let busy = failure == RemoteFailure::Busy;
            return std::iter::once(again.to_owned()).chain(busy.then_some(locks)).collect();
        }
    };
    vec![hint]
}
