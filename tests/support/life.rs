//! A trusted repository with commands, and the real binary on it.
//!
//! `Life::new(&[("build", "echo hi")])` has the commands on `main`; `life.event("work", "build", "")` puts
//! a state event on a branch; `life.tick(&["work"])` runs `git aynig tick` and says what came of it.
//! Commands find `$T`, a folder to talk through, and `git aynig` on their PATH. Nothing sleeps to wait:
//! [`eventually`] looks for a fact until a deadline, and a [`Gate`] holds a command until it is opened.
#![allow(dead_code, reason = "each test file uses its own part")]

use super::{Kind, Repo};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const BIN: &str = env!("CARGO_BIN_EXE_git-aynig");
/// Nothing here takes so long, on the slowest machine; a test that waits for this has failed. A command that is to be ended
/// sleeps longer.
pub const LONG: Duration = Duration::from_secs(180);

pub struct Life {
    pub repo: Repo,
}

/// How a process of ours ended and what it said.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    /// The signal that ended it, where it did not exit.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A process of ours that is killed with the test.
pub struct Running(Option<Child>);

/// Holds commands that run `read x <"$T/<name>"`, until opened.
pub struct Gate(File);

impl Life {
    /// A repository on `main` with these commands (the rest of a `/bin/sh` script each) and two files.
    pub fn new(commands: &[(&str, &str)]) -> Self {
        Self::of(Repo::build(), commands)
    }

    pub fn of(kind: Kind, commands: &[(&str, &str)]) -> Self {
        let repo = kind.create().unwrap();
        let life = Self { repo };
        fs::create_dir(life.shared()).unwrap();
        life.config("aynig.commandsFrom", "branch");
        life.write("file", "one\n");
        life.write("dir/other", "two\n");
        for (state, script) in commands {
            life.command(state, script);
        }
        life.repo.git(&["add", "-A"]);
        life.repo.git(&["commit", "-qm", "start"]);
        life
    }

    /// Writes a command into the working tree.
    pub fn command(&self, state: &str, script: &str) {
        let path = format!(".aynig/command/{state}");
        self.write(&path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(&path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A file of the user's working tree.
    pub fn path(&self, name: &str) -> PathBuf {
        self.repo.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The folder that commands know as `$T`.
    pub fn shared(&self) -> PathBuf {
        self.repo.home().join("shared")
    }

    /// What a command wrote to `$T/<name>`, once it has.
    pub fn said(&self, name: &str) -> String {
        fs::read_to_string(self.shared().join(name)).unwrap_or_default()
    }

    /// Sets a key of the account's own configuration.
    pub fn config(&self, key: &str, value: &str) {
        self.repo.git(&["config", "--global", key, value]);
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.repo.git(args)
    }

    pub fn rev(&self, name: &str) -> String {
        self.repo.git(&["rev-parse", "--verify", name])
    }

    pub fn try_rev(&self, name: &str) -> Option<String> {
        let output = self.repo.try_git(&["rev-parse", "-q", "--verify", name]);
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    /// Puts a commit with `main`'s tree, or the branch's own, and these trailers on a branch.
    pub fn event(&self, branch: &str, state: &str, more: &str) -> String {
        self.event_at(branch, &format!("go\n\ndwp-state: {state}\n{more}"), None)
    }

    /// The same with a whole message, and a committer date in seconds since 1970.
    pub fn event_at(&self, branch: &str, message: &str, date: Option<u64>) -> String {
        let name = format!("refs/heads/{branch}");
        let parent = self.try_rev(&name).unwrap_or_else(|| self.rev("HEAD"));
        let tree = self.rev(&format!("{parent}^{{tree}}"));
        let mut command = self.repo.command("git");
        if let Some(date) = date {
            command.env("GIT_COMMITTER_DATE", format!("@{date} +0000"));
        }
        // No argument may be as long as a message.
        let text = self.shared().join(".message");
        fs::write(&text, message).unwrap();
        let output = command.args(["commit-tree", "-p", &parent, &tree, "-F"]).arg(text).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let id = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
        self.repo.git(&["update-ref", &name, &id]);
        id
    }

    /// Crafts a lease on top of a branch, `ago` seconds old, as another runner would have written it.
    pub fn lease(&self, branch: &str, state: &str, run_id: &str, seconds: u64, ago: u64) -> String {
        let trigger = self.rev(&format!("refs/heads/{branch}"));
        let message = format!(
            "aynig: working on {state}\n\ndwp-state: working\ndwp-origin-state: {state}\ndwp-run-id: {run_id}\n\
             dwp-runner-id: other-1\ndwp-lease-seconds: {seconds}\ndwp-trigger: {trigger}\ndwp-hop: 1\n"
        );
        self.event_at(branch, &message, Some(now() - ago))
    }

    /// The binary, in the test's environment.
    pub fn aynig<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.repo.command(BIN);
        let path = std::env::var("PATH").unwrap();
        let bin = Path::new(BIN).parent().unwrap().display();
        command.env("PATH", format!("{bin}:{path}")).env("T", self.shared()).args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        done(self.aynig(args).output().unwrap())
    }

    pub fn tick(&self, args: &[&str]) -> Done {
        self.run(&[&["tick"], args].concat())
    }

    /// A tick that ends well, and these calls of all its processes, as strace writes them; `None` where there is no strace.
    pub fn traced_tick(&self, calls: &str, args: &[&str]) -> Option<String> {
        if Command::new("strace").arg("-V").output().is_err() {
            super::skipped("there is no strace");
            return None;
        }
        let log = self.shared().join("strace");
        let mut traced = self.repo.command("strace");
        let tick = self.aynig(&[&["tick"], args].concat());
        traced.args(["-f", "-s", "100", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
        traced.arg(tick.get_program()).args(tick.get_args());
        traced.envs(tick.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert!(traced.output().unwrap().status.success());
        Some(fs::read_to_string(&log).unwrap())
    }

    /// A tick, and its only report.
    #[track_caller]
    pub fn report(&self, args: &[&str]) -> (Done, Value) {
        let done = self.tick(&[&["--json"], args].concat());
        let report = done.json();
        (done, report)
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::of(self.aynig(args))
    }

    pub fn start_tick(&self, args: &[&str]) -> Running {
        self.start(&[&["tick"], args].concat())
    }

    /// Makes the fifo `$T/<name>` and holds it.
    pub fn gate(&self, name: &str) -> Gate {
        let path = self.shared().join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        Gate(File::options().read(true).write(true).open(path).unwrap())
    }

    /// Waits until a command wrote a whole line to `$T/<name>`.
    #[track_caller]
    pub fn hear(&self, name: &str) -> String {
        eventually(name, || self.said(name).ends_with('\n').then(|| self.said(name).trim_end().to_owned()))
    }

    /// The value of a trailer; `None` where the commit has none.
    pub fn trailer(&self, commit: &str, key: &str) -> Option<String> {
        self.trailers(commit).get(key).cloned()
    }

    /// All trailers, as git reads them.
    pub fn trailers(&self, commit: &str) -> BTreeMap<String, String> {
        let text = self.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit]);
        text.lines().filter_map(|l| l.split_once(": ")).map(|(k, v)| (k.into(), v.into())).collect()
    }

    /// The state of a branch's head.
    pub fn state(&self, branch: &str) -> String {
        self.trailer(&format!("refs/heads/{branch}"), "dwp-state").unwrap_or_default()
    }

    pub fn body(&self, commit: &str) -> String {
        self.git(&["log", "-1", "--format=%B", commit])
    }

    /// The states of all events of a branch, newest first.
    pub fn states(&self, branch: &str) -> Vec<String> {
        let format = "--format=%(trailers:only,unfold,valueonly,key=dwp-state,separator=%x2C)";
        let all = self.git(&["log", "--first-parent", format, &format!("refs/heads/{branch}")]);
        all.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
    }

    /// A file's content in a commit.
    pub fn show(&self, commit: &str, path: &str) -> String {
        self.git(&["show", &format!("{commit}:{path}")])
    }

    pub fn files(&self, commit: &str) -> Vec<String> {
        let all = self.git(&["ls-tree", "-r", "--name-only", commit]);
        all.lines().filter(|l| !l.starts_with(".aynig/")).map(str::to_owned).collect()
    }

    /// Where attempts are kept, by ref name.
    pub fn attempts(&self) -> Vec<String> {
        let all = self.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
        all.lines().map(str::to_owned).collect()
    }

    /// The folder of the slots.
    pub fn slot_root(&self) -> PathBuf {
        self.slot(0).parent().unwrap().to_owned()
    }

    /// The worktree of a slot.
    pub fn slot(&self, number: usize) -> PathBuf {
        let folder = self.repo.home().join(".cache/aynig");
        let repo = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        repo.join(number.to_string())
    }

    /// A fact of the user's: everything in the working tree, and of the Git directory what is theirs.
    pub fn snapshot(&self, without: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        walk(&self.repo.path(), &self.repo.path(), &mut all);
        all.retain(|path, _| !without.iter().any(|w| path.starts_with(w)));
        all
    }
}

/// What a tick of `work` may write, its logs included: objects, its own folder and refs, the branch with its reflog,
/// the slot. All else is the user's (V15): the working tree, its index, HEAD, the configuration, other refs.
pub const NOT_THEIRS: &[&str] = &[
    ".git/objects",
    ".git/aynig",
    ".git/refs/aynig",
    ".git/refs/heads/work",
    ".git/logs/refs/heads/work",
    ".git/worktrees",
    ".aynig/logs",
];

/// The paths whose content differs between two snapshots.
pub fn differences(a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    a.keys()
        .chain(b.keys().filter(|k| !a.contains_key(*k)))
        .filter(|k| a.get(*k) != b.get(*k))
        .cloned()
        .collect()
}

fn walk(root: &Path, dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.strip_prefix(root).unwrap().to_owned();
        if kind.is_dir() {
            let mode = entry.metadata().unwrap().permissions().mode();
            all.insert(name, format!("folder {mode:o}").into_bytes());
            walk(root, &path, all);
        } else if kind.is_symlink() {
            all.insert(name, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            let mode = entry.metadata().unwrap().permissions().mode();
            all.insert(
                name,
                [format!("{mode:o} ").as_bytes(), &fs::read(&path).unwrap_or_default()].concat(),
            );
        }
    }
}

/// Everything below a folder, byte for byte, with modes; folders too.
pub fn tree_of(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    walk(dir, dir, &mut all);
    all
}

pub fn done(output: Output) -> Done {
    Done {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Done {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The last report on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_else(|| panic!("no report: {self:?}"));
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl Running {
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// The same, with what it says on stderr in a file as it says it.
    pub fn saying(mut command: Command, stderr: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(stderr).unwrap());
        Self(Some(command.spawn().unwrap()))
    }

    /// The same, with what it says on stderr added to a file, and its stdout thrown away.
    pub fn logging(mut command: Command, stderr: &Path) -> Self {
        let log = File::options().create(true).append(true).open(stderr).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(Some(command.spawn().unwrap()))
    }

    pub fn pid(&self) -> i32 {
        self.0.as_ref().unwrap().id() as i32
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub fn is_over(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for its end, at most [`LONG`].
    #[track_caller]
    pub fn done(mut self) -> Done {
        let until = Instant::now() + LONG;
        while !self.is_over() {
            if Instant::now() > until {
                let _ = self.0.as_mut().unwrap().kill();
                let said = done(self.0.take().unwrap().wait_with_output().unwrap());
                panic!("still running: {said:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        done(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Gate {
    /// Lets one `read` through.
    pub fn open(&mut self) {
        self.0.write_all(b"go\n").unwrap();
    }
}

pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// Waits until a second has just begun: Git compares the times of files by the second.
pub fn begin_of_a_second() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    if now.subsec_millis() > 200 {
        std::thread::sleep(std::time::Duration::from_millis(u64::from(1005 - now.subsec_millis())));
    }
}

/// Waits for a fact.
#[track_caller]
pub fn eventually<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LONG;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// True while a process of this id runs, and is no zombie.
pub fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|s| s != 'Z' && s != 'X')
}
