//! The one builder of `git` children.
//!
//! `git` is found once ([`Git::find`]), from an environment that is passed in: `$GIT_EXEC_PATH/git`
//! where that is set (the git that runs `git aynig`), else along `PATH`. A child gets that environment
//! without any `GIT_*` variable beyond a short list, the Git directory by flag, and configuration
//! pinned so that it runs no hook, starts no maintenance and prints the same text everywhere.
//! An exit status is the answer; what a child says is only quoted.
//!
//! Calling sequence: `git.command(dir).args(..)`, then `GitCommand::output`, `GitCommand::ok` or
//! `GitCommand::spawn`. Implements K15 (end), K37, K43 (children of ours).

use super::children::{self, MayLock};
use super::confined::{Confined, Found, Settings, own_alone};
use super::pins::{PINNED, is_passed_on};
use crate::protocol::id::ObjectId;
use crate::store::disk::Shared;
use crate::store::{RefName, Signature, StoreError, commit, disk, io_error};
use crate::supervisor::SupervisorError;
use crate::supervisor::bounded::{Bounded, Input, Output, Verdict};
use crate::supervisor::confine::Confinement;
use crate::supervisor::interrupt::ForceStop;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The `git` program and the environment of its children.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    /// Shared by all copies: each store has one.
    env: Arc<[(OsString, OsString)]>,
    force_stop: ForceStop,
    /// Set where the repository is not trusted, so that children start nothing that its configuration names.
    confined: Option<Arc<Confined>>,
    /// The mode of what this program writes in the repository's `aynig/`.
    pub(crate) shared: Shared,
}

/// How long a child may read what a command wrote: for a fifo Git would wait for ever.
const ON_AN_ENEMYS: Duration = Duration::from_secs(10);
/// How much memory such a child may take: Git takes a whole file where it expects one line, and a file of zeros of any
/// size costs its writer nothing.
const MEMORY_MAX: u64 = 1 << 30;

/// Most of a child's error output that is kept, in bytes.
const SAID_MAX: usize = 64 << 10;

/// How a child ended and what it printed.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// Its error output, as one line of at most 500 characters, or why the child was ended; for reports.
    pub(crate) message: String,
    /// Its error output as it came, for telling one failure from another where only
    /// the report depends on that.
    pub(crate) said: Vec<u8>,
    /// True where the child was ended at its deadline.
    pub(crate) late: bool,
}

impl GitOutput {
    /// Returns why a child of this verb failed: what it said or, where it said nothing, how it ended.
    pub(crate) fn refusal(self, verb: &str) -> String {
        let silent = self.message.is_empty();
        if silent { format!("git {verb}: {}", self.status) } else { self.message }
    }

    /// Leaves what a remote's hooks said out of the message, for callers that show those lines themselves.
    pub(crate) fn without_hooks_words(mut self) -> Self {
        if self.message == one_line(&self.said) {
            let lines = self.said.split(|b| matches!(b, b'\n' | b'\r'));
            let own: Vec<&[u8]> = lines.filter(|line| !line.starts_with(b"remote: ")).collect();
            self.message = one_line(&own.join(&b'\n'));
        }
        self
    }

    /// Returns what the child printed. Any exit status but 0 is an error: that of a full disk, where the disk
    /// is full at one of these places.
    fn printed(self, verb: String, places: &[PathBuf]) -> Result<Vec<u8>, StoreError> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let message = if self.message.is_empty() { self.status.to_string() } else { self.message };
        let full = |place: &PathBuf| disk::full("write to", place, &format!("git {verb}: {message}"));
        Err(places.iter().find_map(full).unwrap_or(StoreError::Git { verb, message }))
    }
}

impl Git {
    /// Finds `git` in this environment, usually `std::env::vars_os()`.
    pub fn find(env: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, StoreError> {
        let all: Vec<(OsString, OsString)> = env.into_iter().collect();
        let value = |name: &str| all.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_os_str());
        let exec_path = value("GIT_EXEC_PATH").map(PathBuf::from).filter(|p| p.join("git").is_file());
        let program = match &exec_path {
            Some(folder) => folder.join("git"),
            None => which::which_in("git", value("PATH"), "/").map_err(|error| StoreError::Git {
                verb: "--version".to_owned(),
                message: format!("git was not found on PATH: {error}"),
            })?,
        };
        let mut env: Vec<_> = all.into_iter().filter(|(name, _)| is_passed_on(name)).collect();
        // A `git` that was found by `GIT_EXEC_PATH` may need the variable to find its own parts.
        env.extend(exec_path.map(|folder| (OsString::from("GIT_EXEC_PATH"), folder.into_os_string())));
        let (force_stop, shared) = (ForceStop::default(), Shared::Umask);
        Ok(Self { program, env: env.into(), force_stop, confined: None, shared })
    }

    /// Finds `git` in the environment of this process.
    pub fn find_here() -> Result<Self, StoreError> {
        Self::find(std::env::vars_os())
    }

    /// Has notes of children get the mode that this repository's configuration asks for.
    pub(crate) fn shares(self, shared: Shared) -> Self {
        Self { shared, ..self }
    }

    /// Has children end at a second Ctrl-C.
    pub(crate) fn ended_by(&mut self, force_stop: ForceStop) {
        self.force_stop = force_stop;
    }

    /// True once a signal asked this process to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.force_stop.stopped()
    }

    /// Has children start nothing that the repository's own configuration names, and fetch no missing object of a
    /// partial clone by themselves (Git 2.45 and later know this).
    pub(crate) fn confine(&mut self) {
        self.confined = Some(Arc::default());
    }

    /// Returns this `git` unconfined, for children that only read configuration, or that do not work on
    /// the untrusted repository.
    pub(crate) fn at_liberty(&self) -> Self {
        Self { confined: None, ..self.clone() }
    }

    /// Returns what children on this Git directory are kept from; `None` where the repository is trusted.
    pub(crate) fn kept_from(&self, git_dir: &Path) -> Result<Option<Arc<Found>>, StoreError> {
        let found = |confined: &Arc<Confined>| confined.found(&self.at_liberty(), git_dir);
        self.confined.as_ref().map(found).transpose()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the `PATH` of children.
    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str())
    }

    /// Returns the lock files of the account's configuration: Git writes the file that there is, through links.
    pub(crate) fn locks_of_account(&self) -> Vec<PathBuf> {
        let value = |name: &str| {
            let value = self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            // Git takes an empty variable for one that is not set.
            value.filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        let home = value("HOME");
        let xdg = value("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let files = match value("GIT_CONFIG_GLOBAL") {
            Some(file) => vec![file],
            None => home
                .map(|home| home.join(".gitconfig"))
                .into_iter()
                .chain(xdg.map(|xdg| xdg.join("git/config")))
                .collect(),
        };
        let lock = |file: PathBuf| {
            let mut lock = file.canonicalize().unwrap_or(file).into_os_string();
            lock.push(".lock");
            PathBuf::from(lock)
        };
        files.into_iter().map(lock).collect()
    }

    /// Returns a child that works on this Git directory.
    pub(crate) fn command(&self, git_dir: &Path) -> GitCommand {
        let mut inner = Command::new(&self.program);
        inner.env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        // Messages come in one language, no prompt may hang, and `status` takes no
        // lock that it can do without.
        inner.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        // Objects are what was hashed, not what `refs/replace` and grafts show in their place. The file of
        // grafts must not exist, because Git warns about each one that it can open.
        inner.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null/none");
        inner.arg("--no-pager").arg(joined("--git-dir=", git_dir.as_os_str()));
        let git_dir = Some(git_dir.to_owned());
        let mut command = self.child(inner, git_dir);
        for pin in PINNED {
            command = command.config(pin);
        }
        command
    }

    /// Returns a child that finds its repository itself, or uses this one, and sees
    /// configuration as the user does.
    pub(crate) fn plain(&self, git_dir: Option<&Path>) -> GitCommand {
        let mut inner = Command::new(&self.program);
        inner.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).env("LC_ALL", "C");
        inner.arg("--no-pager");
        if let Some(git_dir) = git_dir {
            inner.arg(joined("--git-dir=", git_dir.as_os_str()));
        }
        self.child(inner, git_dir.map(Path::to_owned))
    }

    fn child(&self, inner: Command, git_dir: Option<PathBuf>) -> GitCommand {
        let force_stop = self.force_stop.clone();
        let confined = self.confined.as_ref().map(|_| self.clone());
        // The child has a group of its own: Ctrl-C goes to the runner, which ends its children in order and
        // so leaves no lock behind.
        GitCommand {
            inner,
            git_dir,
            confined,
            settings: Settings::new(),
            verb: String::new(),
            stdin: Input::Null,
            own_group: true,
            alone: false,
            force_stop,
            deadline: None,
            memory: None,
            only_asks: false,
            may_lock: None,
            shared: self.shared,
            stop: None,
            sandbox: None,
        }
    }

    /// Deletes refs that may be packed too, all or none, if each of them still holds this value.
    pub(crate) fn delete_refs(
        &self,
        git_dir: &Path,
        refs: &[(&RefName, ObjectId)],
        durable: bool,
    ) -> Result<(), StoreError> {
        let lines = refs.iter().map(|(name, old)| {
            [b"option no-deref\0delete ", name.as_bytes(), b"\0", old.to_string().as_bytes(), b"\0"].concat()
        });
        self.command(git_dir)
            .durable(durable)
            .may_lock(MayLock::these_refs(git_dir, refs.iter().map(|(name, _)| name.as_bytes())))
            .verb("update-ref")
            .args(["-z", "--stdin"])
            .stdin(lines.collect::<Vec<_>>().concat())
            .ok()
            .map(drop)
    }
}

/// A `git` child that was not started yet.
#[derive(Debug)]
pub(crate) struct GitCommand {
    inner: Command,
    git_dir: Option<PathBuf>,
    confined: Option<Git>,
    settings: Settings,
    verb: String,
    stdin: Input,
    own_group: bool,
    alone: bool,
    force_stop: ForceStop,
    deadline: Option<Instant>,
    memory: Option<u64>,
    only_asks: bool,
    may_lock: Option<MayLock>,
    shared: Shared,
    stop: Option<Arc<AtomicBool>>,
    sandbox: Option<Confinement>,
}

impl GitCommand {
    /// Adds `-c key=value`; only before [`GitCommand::verb`].
    pub(crate) fn config(mut self, setting: &str) -> Self {
        self.inner.arg("-c").arg(setting);
        self
    }

    /// Sets one key; only before [`GitCommand::verb`]. A key with a name that has a `=`, at which `-c` would
    /// end the key, is passed by variables, which Git before 2.31 does not know.
    pub(crate) fn config_of(self, key: &str, value: &str) -> Self {
        if key.contains('=') {
            return self.settings([(key.into(), value.into())]);
        }
        self.config(&format!("{key}={value}"))
    }

    /// Adds options of `git` itself; only before [`GitCommand::verb`].
    pub(crate) fn global<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(args);
        self
    }

    /// Has the child work on this working tree; only before [`GitCommand::verb`].
    pub(crate) fn work_tree(self, dir: &Path) -> Self {
        self.global([joined("--work-tree=", dir.as_os_str())])
    }

    /// Starts the child in this folder.
    pub(crate) fn in_dir(mut self, dir: &Path) -> Self {
        self.inner.current_dir(dir);
        self
    }

    /// Where `durable`, has Git sync objects and refs; only before [`GitCommand::verb`]. The
    /// caller syncs the folders.
    pub(crate) fn durable(self, durable: bool) -> Self {
        if durable { self.config("core.fsync=committed") } else { self }
    }

    pub(crate) fn verb(mut self, verb: &str) -> Self {
        self.inner.arg(verb);
        self.verb = verb.to_owned();
        // Of several values of `uploadpack` and `receivepack` Git takes the first, so that
        // only a flag overrides them.
        match verb {
            "fetch" | "ls-remote" if self.confined.is_some() => self.args(["--upload-pack=git-upload-pack"]),
            "push" if self.confined.is_some() => self.args(["--receive-pack=git-receive-pack"]),
            _ => self,
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets a variable of the child.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// Sets configuration whose keys may hold any byte, `=` included.
    pub(crate) fn settings(mut self, all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.settings.extend(all);
        self
    }

    /// Gives the child this configuration in place of the account's and the system's files. What the child is
    /// given by other calls overrides it.
    pub(crate) fn configured_by(mut self, all: Settings) -> Self {
        self.settings = [all, self.settings].concat();
        self.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// Gives the child what the caller of this process said by `git -c`.
    pub(crate) fn said_by_caller(mut self) -> Self {
        self.inner.envs(std::env::vars_os().filter(|(name, _)| is_said(name)));
        self
    }

    /// Returns the child as it is started: with what keeps it from starting programs of the repository's.
    fn ready(mut self) -> Result<Self, StoreError> {
        if let (Some(git), Some(git_dir)) = (self.confined.take(), self.git_dir.as_deref())
            && let Some(found) = git.kept_from(git_dir)?
        {
            self.inner.env("GIT_NO_LAZY_FETCH", "1");
            // The address that is asked is the repository's, not the user's.
            self.inner.env("GIT_PROTOCOL_FROM_USER", "0");
            self.inner.envs(found.env.iter().map(|(k, v)| (k, v)));
            // Where it is set, Git asks no configuration.
            let allowed = self.inner.get_envs().find(|(name, _)| *name == "GIT_ALLOW_PROTOCOL");
            if let Some(own) = allowed.and_then(|(_, value)| value).map(own_alone) {
                self.inner.env("GIT_ALLOW_PROTOCOL", own);
            }
            self.settings = [&found.settings[..], &self.settings].concat();
            if matches!(self.verb.as_str(), "fetch" | "ls-remote") {
                // Reading from a path runs nothing of that repository's; pushing to a path runs its hooks.
                self.settings.extend(found.reading.iter().cloned());
            }
        }
        for (n, (key, value)) in self.settings.iter().enumerate() {
            self.inner.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
        }
        if !self.settings.is_empty() {
            self.inner.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        }
        Ok(self)
    }

    /// Sets author and committer, and their moment.
    pub(crate) fn identity(mut self, by: &Signature) -> Self {
        let (name, email) = commit::clean(by);
        let date = format!("@{} +0000", by.seconds);
        for role in ["AUTHOR", "COMMITTER"] {
            self.inner.env(format!("GIT_{role}_NAME"), &name);
            self.inner.env(format!("GIT_{role}_EMAIL"), &email);
            self.inner.env(format!("GIT_{role}_DATE"), &date);
        }
        self
    }

    /// Sets another author than the one who commits.
    pub(crate) fn author(mut self, name: Vec<u8>, mail: Vec<u8>, date: Vec<u8>) -> Self {
        for (what, value) in [("NAME", name), ("EMAIL", mail), ("DATE", date)] {
            self.inner.env(format!("GIT_AUTHOR_{what}"), OsString::from_vec(value));
        }
        self
    }

    /// Gives the child this input; without it the input is empty.
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Input::Bytes(input.into());
        self
    }

    /// Has the child keep the lock on this file, so that the lock lasts as long as the child even if this
    /// process dies before. The file becomes the child's input.
    pub(crate) fn holding(mut self, lock: Option<&File>) -> Result<Self, StoreError> {
        if let Some(lock) = lock {
            let program = Path::new(self.inner.get_program());
            self.stdin = Input::File(lock.try_clone().map_err(io_error("keep a lock for", program))?);
        }
        Ok(self)
    }

    /// Keeps a network child in the terminal's foreground group and lets it prompt. Without a terminal
    /// there is no user to ask: the child stays in its own group, so that what it started (a transport
    /// that hangs) ends with it.
    pub(crate) fn foreground(mut self) -> Self {
        if File::open("/dev/tty").is_ok() {
            self.inner.env_remove("GIT_TERMINAL_PROMPT");
            self.own_group = false;
        }
        self
    }

    /// Ends the child after this long, with SIGTERM first.
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.deadline = Some(Instant::now() + patience);
        self
    }

    /// Bounds a child that reads what a command wrote, in time and in memory.
    pub(crate) fn of_an_enemy(self) -> Self {
        Self { memory: Some(MEMORY_MAX), ..self.within(ON_AN_ENEMYS) }
    }

    /// Where `only_asks`, ends the child at the first signal, whichever it is: the child only asks, and
    /// nothing depends on its answer yet.
    pub(crate) fn only_asks(mut self, only_asks: bool) -> Self {
        self.only_asks = only_asks;
        self
    }

    /// Ends the child once this is set: nothing depends on what it has not done yet.
    pub(crate) fn stopped_by(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Some(Arc::clone(stop));
        self
    }

    /// Has the kernel confine the child, and what it starts, to this.
    pub(crate) fn within_sandbox(mut self, sandbox: Confinement) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Where `alone`, sends the signals that end the child to the child only. What it started does not belong
    /// to this tool, and ends by itself once its input ends.
    pub(crate) fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Says which of Git's locks the child may take, so that one that it leaves when it is
    /// killed is known as this tool's.
    pub(crate) fn may_lock(mut self, locks: MayLock) -> Self {
        self.may_lock = Some(locks);
        self
    }

    /// Runs the child to its end, whatever its exit status.
    pub(crate) fn output(self) -> Result<GitOutput, StoreError> {
        run(self)
    }

    /// Runs the child and returns what it printed; any exit status but 0 is an error.
    pub(crate) fn ok(self) -> Result<Vec<u8>, StoreError> {
        let (verb, places) = (self.verb.clone(), self.places());
        run(self)?.printed(verb, &places)
    }

    /// Runs the child as [`GitCommand::ok`] does, for at most `patience`; after that the error
    /// is [`StoreError::TooLong`].
    pub(crate) fn ok_within(self, patience: Duration) -> Result<Vec<u8>, StoreError> {
        let (verb, places) = (self.verb.clone(), self.places());
        let output = run(self.within(patience))?;
        if output.late { Err(StoreError::TooLong { verb, patience }) } else { output.printed(verb, &places) }
    }

    /// Runs the child and returns the object id that it printed.
    pub(crate) fn id(self) -> Result<ObjectId, StoreError> {
        let verb = self.verb.clone();
        let message = "it printed no object id".to_owned();
        ObjectId::from_hex(self.ok()?.trim_ascii()).map_err(|_| StoreError::Git { verb, message })
    }

    /// Returns the folders that the child may write to.
    fn places(&self) -> Vec<PathBuf> {
        let dir = self.inner.get_current_dir().map(Path::to_owned);
        self.git_dir.iter().cloned().chain(dir).collect()
    }

    /// Starts the child with pipes for its input and its output; its error output goes nowhere.
    pub(crate) fn spawn(self) -> Result<Child, StoreError> {
        let mut this = self.ready()?;
        this.inner.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let program = PathBuf::from(this.inner.get_program());
        if this.own_group {
            this.inner.process_group(0);
        }
        this.inner.spawn().map_err(io_error("start", &program))
    }
}

/// Runs a child to its end; all children but those of [`GitCommand::spawn`] are run here. A first Ctrl-C does not reach the child, because it may
/// be doing the end of a run, or the start of one that is then given up in order. A second Ctrl-C ends it.
fn run(command: GitCommand) -> Result<GitOutput, StoreError> {
    let command = command.ready()?;
    let program = PathBuf::from(command.inner.get_program());
    let stopped = || command.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
    let asked =
        || command.force_stop.asked() || command.only_asks && command.force_stop.stopped() || stopped();
    let mut child = Bounded::new(command.inner);
    child.own_group = command.own_group;
    child.stdout = Output::Capture(usize::MAX);
    child.stderr = Output::Capture(SAID_MAX);
    child.interrupt = Some(&asked);
    child.deadline = command.deadline;
    child.memory = command.memory;
    child.alone = command.alone;
    child.input = command.stdin;
    child.confine = command.sandbox.as_ref();
    let ended = children::noted(command.may_lock.as_ref(), command.shared, child);
    let ended = ended.map_err(|error| match error {
        SupervisorError::NoHelper { program, source } => io_error("start", &program)(source),
        other => io_error("wait for", &program)(std::io::Error::other(other)),
    })?;
    let message = match ended.verdict {
        Verdict::Interrupted { .. } => "it was interrupted".to_owned(),
        Verdict::Deadline { .. } => "it took too long".to_owned(),
        Verdict::Ended => one_line(&ended.stderr.bytes),
    };
    let late = matches!(ended.verdict, Verdict::Deadline { .. });
    Ok(GitOutput {
        status: ended.status,
        stdout: ended.stdout.bytes,
        message,
        said: ended.stderr.bytes,
        late,
    })
}

/// True for a variable by which `git -c` and its like reach this process.
fn is_said(name: &OsStr) -> bool {
    let said = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
    said.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
}

fn one_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(|c| if c.is_control() { '?' } else { c }).take(500).collect()
}

fn joined(flag: &str, value: &OsStr) -> OsString {
    let mut whole = OsString::from(flag);
    whole.push(value);
    whole
}
