//! Real repositories for tests, in a cleared environment.
//!
//! `Repo::new()` makes one in a temporary folder; `Repo::build().bare().sha256().reftable().create()`
//! the other kinds (`None` where this machine's git can't). `repo.git(&["log"])` runs the real git
//! and panics with what it said. HOME is in the temporary folder, no system configuration is read.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod faketime;
pub mod flow;
pub mod judge;
pub mod leaving;
pub mod life;
mod measured;
pub mod net;
mod skipped;
pub mod world;

pub use skipped::skipped;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Writes a `git` of the test's own below this folder, a shell script that has the real one's path in `$real`.
/// Returns a PATH that finds it first.
pub fn git_that(folder: &Path, script: &str) -> OsString {
    let (bin, real) = (folder.join("bin"), which::which("git").unwrap());
    std::fs::create_dir_all(&bin).unwrap();
    write_program(&bin.join("git"), &format!("#!/bin/sh\nreal='{}'\n{script}\n", real.display()));
    let path = std::env::var_os("PATH").unwrap();
    std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// Writes a script that is started at once. Another process writes it: a file that this one has open for writing is open
/// in each child too that another thread forks meanwhile, and until that child's exec no script starts from it.
pub fn write_program(path: &Path, content: &str) {
    let mut install = Command::new("install");
    let mut child =
        install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", path.display());
}

/// A repository that goes away with this value.
pub struct Repo {
    folder: tempfile::TempDir,
    kind: Kind,
}

/// Which repository to make.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kind {
    bare: bool,
    sha256: bool,
    reftable: bool,
}

impl Kind {
    pub fn bare(self) -> Self {
        Self { bare: true, ..self }
    }
    pub fn sha256(self) -> Self {
        Self { sha256: true, ..self }
    }
    pub fn reftable(self) -> Self {
        Self { reftable: true, ..self }
    }

    /// Makes it; `None`, with a line saying so, where this git can't.
    pub fn create(self) -> Option<Repo> {
        let folder = tempfile::Builder::new().prefix("aynig test ").tempdir().unwrap();
        let repo = Repo { folder, kind: self };
        std::fs::create_dir(repo.home()).unwrap();
        let config = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n";
        std::fs::write(repo.home().join(".gitconfig"), measured::config(config, &repo.home())).unwrap();
        let mut command = repo.command("git");
        command.current_dir(repo.folder.path()).arg("init").arg("-q");
        if self.bare {
            command.arg("--bare");
        }
        if self.sha256 {
            command.arg("--object-format=sha256");
        }
        if self.reftable {
            command.arg("--ref-format=reftable");
        }
        if !command.arg(repo.path()).output().unwrap().status.success() {
            skipped(&format!("this git can't make {self:?}"));
            return None;
        }
        Some(repo)
    }
}

impl Repo {
    /// A plain one: sha1, files, with a worktree, nothing in it.
    pub fn new() -> Self {
        Self::build().create().unwrap()
    }

    pub fn build() -> Kind {
        Kind::default()
    }

    /// The worktree, or the bare repository.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("rëpo")
    }

    pub fn git_dir(&self) -> PathBuf {
        if self.kind.bare { self.path() } else { self.path().join(".git") }
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The whole environment of everything that a test starts.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        [
            ("PATH", path),
            ("HOME", self.home().into_os_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("LC_ALL", "C".into()),
        ]
        .into_iter()
        .chain(measured::variable())
        .map(|(k, v)| (k.into(), v))
        .collect()
    }

    /// A command in that environment, in the repository once it exists.
    ///
    /// It is looked up here: a name that is left to the `PATH` of the new process has this one copied by `fork`, threads, memory
    /// and all, for each of the thousands of times that a test calls Git.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let program = program.as_ref();
        let mut command = Command::new(which::which(program).unwrap_or_else(|_| program.into()));
        command.env_clear().envs(self.env());
        if self.path().exists() {
            command.current_dir(self.path());
        }
        command
    }

    pub fn try_git<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.command("git").args(args).output().unwrap()
    }

    /// Runs git; its standard output without the last line feed.
    #[track_caller]
    pub fn git<S: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[S]) -> String {
        let output = self.try_git(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {} {said}", output.status);
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Puts a commit with this message and an empty tree on a branch, and returns its id.
    #[track_caller]
    pub fn commit(&self, branch: &str, message: &str) -> String {
        let tree = self.empty_tree();
        let tip = self.try_git(&["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")]);
        let tip = String::from_utf8(tip.stdout).unwrap();
        let mut args = vec!["commit-tree", "-m", message, &tree];
        if !tip.is_empty() {
            args.extend(["-p", tip.trim_end()]);
        }
        let id = self.git(&args);
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &id]);
        id
    }

    pub fn empty_tree(&self) -> String {
        self.git(&["hash-object", "-t", "tree", "-w", "/dev/null"])
    }

    /// Everything is sound, by git's own judgement.
    #[track_caller]
    pub fn assert_sound(&self) {
        let output = self.try_git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // Notices say that HEAD is unborn and the like.
        let bad = said.lines().any(|line| !line.contains("notice:"));
        assert!(output.status.success() && !bad, "fsck: {said}");
    }
}

/// Runs a part of the calling test file in a process of its own: the test of this name, with these
/// variables set. Let that test return at once where they are not.
pub fn child_test(name: &str, vars: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    for (key, value) in vars {
        command.env(key, value);
    }
    command
}

/// A lock of this age, in seconds, as a `git` child of a runner left it that was killed 5 s after that.
pub fn lock_of_a_killed_child(common_dir: &Path, lock: &Path, age: u64) {
    let now = std::time::SystemTime::now();
    let at = |seconds: u64| now - std::time::Duration::from_secs(seconds);
    let since = |seconds| at(seconds).duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let children = common_dir.join("aynig/children");
    std::fs::create_dir_all(&children).unwrap();
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::File::create(lock).unwrap().set_modified(at(age)).unwrap();
    let (begun, ended) = (since(age + 5), since(age - 5));
    let note = format!("begun {begun}\nlife 3600\nlock {}\0\nended {ended}\n", lock.display());
    std::fs::write(children.join("note"), note).unwrap();
}
