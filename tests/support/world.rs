//! A world of its own for one test: a HOME, a PATH with a chosen git and our binary, folders for repositories.
//!
//! `for git in gits() { let world = World::new(&git); world.git(&dir, &["log"]); world.aynig(&dir, &["tick"]) }`.
//! The environment of everything that is started is cleared and set here; nothing of this machine's
//! configuration is read. `DEFAULT_GIT` alone is enough where the fact does not depend on git's version.

use super::measured;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// One git of this machine.
#[derive(Debug, Clone)]
pub struct GitProgram {
    pub program: PathBuf,
    pub version: String,
}

/// Every git of this machine, the one that PATH finds first.
pub fn gits() -> Vec<GitProgram> {
    let mut found: Vec<GitProgram> = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/local/bin".into(), "/usr/bin".into()]);
    for dir in places {
        let Ok(program) = std::fs::canonicalize(dir.join("git")) else { continue };
        let Ok(output) = Command::new(&program).arg("--version").output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !version.is_empty() && !found.iter().any(|g| g.version == version) {
            found.push(GitProgram { program, version });
        }
    }
    assert!(!found.is_empty(), "no git on this machine");
    found
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// It ended with this code, and says what it said if not.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

/// A temporary folder with everything that a test starts in it.
pub struct World {
    folder: tempfile::TempDir,
    pub vars: BTreeMap<OsString, OsString>,
    pub git: GitProgram,
}

impl World {
    pub fn new(git: &GitProgram) -> Self {
        Self::below(git, &std::env::temp_dir())
    }

    /// With the git that PATH finds first.
    pub fn any() -> Self {
        Self::new(&gits()[0])
    }

    /// A world in a folder of this place.
    pub fn below(git: &GitProgram, place: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("aynig-").tempdir_in(place).unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let (bin, home) = (root.join("bin"), root.join("home"));
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&git.program, bin.join("git")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_git-aynig"), bin.join("git-aynig")).unwrap();
        let config = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n\
                      [protocol \"file\"]\n\tallow = always\n";
        std::fs::write(home.join(".gitconfig"), measured::config(config, &home)).unwrap();
        let mut path = bin.into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let vars = [
            ("PATH", path),
            ("HOME", home.into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("TMPDIR", root.into()),
        ];
        let vars = vars.into_iter().chain(measured::variable()).map(|(k, v)| (k.into(), v)).collect();
        Self { folder, vars, git: git.clone() }
    }

    pub fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.vars.insert(name.into(), value.as_ref().into());
    }

    /// True where its Git is this version or a later one.
    pub fn git_is(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.git.version.split([' ', '.']).filter_map(|part| part.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
    }

    pub fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.vars).current_dir(dir).stdin(Stdio::null());
        // A command is looked up along the PATH of this process, not of its own.
        if command.get_program() == "git" {
            let mut git = Command::new(self.root().join("bin/git"));
            git.env_clear().envs(&self.vars).current_dir(dir).stdin(Stdio::null());
            return git;
        }
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, dir: &Path, args: &[S]) -> Said {
        self.command(program, dir).args(args).output().unwrap().into()
    }

    pub fn try_git<S: AsRef<OsStr>>(&self, dir: &Path, args: &[S]) -> Said {
        self.run("git", dir, args)
    }

    /// Runs git; its standard output without the last line feed.
    #[track_caller]
    pub fn git<S: AsRef<OsStr> + std::fmt::Debug>(&self, dir: &Path, args: &[S]) -> String {
        let said = self.try_git(dir, args);
        assert_eq!(said.code, 0, "git {args:?} in {dir:?}: {} {}", said.out, said.err);
        said.out.trim_end_matches('\n').to_owned()
    }

    /// Runs git with this on its standard input.
    #[track_caller]
    pub fn git_in(&self, dir: &Path, args: &[&str], input: &[u8]) -> String {
        let mut command = self.command("git", dir);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "git {args:?}: {} {}", said.out, said.err);
        said.out.trim_end_matches('\n').to_owned()
    }

    /// Runs `git-aynig` itself.
    pub fn aynig<S: AsRef<OsStr>>(&self, dir: &Path, args: &[S]) -> Said {
        self.run(self.root().join("bin/git-aynig"), dir, args)
    }

    /// Makes a repository in a folder of this name; `None`, with a line saying so, where this git can't.
    pub fn try_init(&self, name: impl AsRef<OsStr>, args: &[&str]) -> Option<PathBuf> {
        let dir = self.root().join(name.as_ref());
        let mut command = self.command("git", &self.root());
        let made = command.args(["init", "-q"]).args(args).arg(&dir).output().unwrap();
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            let (git, why) = (&self.git.version, said.lines().next().unwrap_or(""));
            super::skipped(&format!("{git} can't init {args:?}: {why}"));
            return None;
        }
        Some(dir)
    }

    /// Makes a plain repository.
    pub fn init(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.try_init(name, &[]).unwrap()
    }

    /// Commits these files (executable where the path has `/command/` in it) on a branch, on top of it.
    /// Works in every kind of repository; no working tree is touched.
    pub fn commit_files(&self, dir: &Path, branch: &str, files: &[(&str, &str)], message: &str) -> String {
        let tip = self.try_git(dir, &["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")]).out;
        let mut stream = format!(
            "commit refs/heads/{branch}\ncommitter Ada <ada@example.com> {} +0000\ndata {}\n{message}\n",
            now(),
            message.len()
        );
        if !tip.is_empty() {
            stream += &format!("from {}\n", tip.trim_end());
        }
        for (path, content) in files {
            let mode = if path.contains("/command/") { "100755" } else { "100644" };
            stream += &format!("M {mode} inline {path}\ndata {}\n{content}\n", content.len());
        }
        self.git_in(dir, &["fast-import", "--quiet", "--date-format=raw"], stream.as_bytes());
        self.git(dir, &["rev-parse", &format!("refs/heads/{branch}")])
    }

    /// Puts a commit object with this message on top of a branch, whatever is in the message; its id.
    pub fn raw_commit(&self, dir: &Path, branch: &str, message: &[u8]) -> String {
        self.raw_commit_dated(dir, branch, &now().to_string(), message)
    }

    /// The same, with the committer's date as written.
    pub fn raw_commit_dated(&self, dir: &Path, branch: &str, date: &str, message: &[u8]) -> String {
        let base = self.git(dir, &["rev-parse", "HEAD"]);
        let tip = self.try_git(dir, &["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")]).out;
        let parent = if tip.is_empty() { base } else { tip.trim_end().to_owned() };
        let tree = self.git(dir, &["rev-parse", &format!("{parent}^{{tree}}")]);
        let mut raw =
            format!("tree {tree}\nparent {parent}\nauthor Ada <ada@example.com> 1 +0000\n").into_bytes();
        raw.extend_from_slice(format!("committer Ada <ada@example.com> {date} +0000\n\n").as_bytes());
        raw.extend_from_slice(message);
        self.raw_object(dir, branch, &raw)
    }

    /// Writes a commit of these very bytes and points a branch at it; its id.
    pub fn raw_object(&self, dir: &Path, branch: &str, raw: &[u8]) -> String {
        let id = self.git_in(dir, &["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], raw);
        let git_dir = PathBuf::from(self.git(dir, &["rev-parse", "--absolute-git-dir"]));
        // Git would not point a ref at some of these; a file does.
        let path = git_dir.join("refs/heads").join(OsStr::from_bytes(branch.as_bytes()));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{id}\n")).unwrap();
        id
    }

    /// The states along the first parents from a branch down to a commit, newest first.
    pub fn states(&self, dir: &Path, branch: &str, down_to: &str) -> Vec<String> {
        let range = format!("{down_to}..refs/heads/{branch}");
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=%x2c)";
        let printed = self.git(dir, &["log", "--first-parent", format, &range]);
        printed.lines().map(str::to_owned).collect()
    }

    /// Everything is sound, by git's own judgement.
    #[track_caller]
    pub fn assert_sound(&self, dir: &Path) {
        let said = self.try_git(dir, &["fsck", "--strict", "--no-dangling", "--no-progress"]);
        let all = format!("{}{}", said.out, said.err);
        let bad = all.lines().any(|line| !line.contains("notice:"));
        assert!(said.code == 0 && !bad, "fsck: {all}");
    }
}

pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// True where this process is root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
