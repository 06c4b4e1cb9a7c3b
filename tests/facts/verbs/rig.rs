//! A repository with commands that a test can hold and let go.
//!
//! `wait` says that it started through the pipe `started` and ends when `go` is written: no test sleeps.

use crate::support::world::{Said, World};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub const OK: &str =
    "#!/bin/sh\necho fine\necho bad >&2\necho x >>made.txt\necho 'SET_STATE {\"state\":\"done\"}'\n";
pub const FAIL: &str = "#!/bin/sh\necho x >>made.txt\necho broken >&2\nexit 3\n";
pub const WAIT: &str = "#!/bin/sh\necho one\necho x >>made.txt\necho >\"$HOME/started\"\nread x <\"$HOME/go\"\n\
                        echo two\necho 'SET_STATE {\"state\":\"done\"}'\n";

/// A world with one repository.
pub struct Rig {
    pub world: World,
    pub dir: PathBuf,
}

impl Rig {
    /// A repository with the three commands on `main`, trusted.
    pub fn new() -> Self {
        let rig = Self::untrusted();
        rig.aynig(&["trust", "--ref", "main"]).expect(0);
        rig
    }

    pub fn untrusted() -> Self {
        let world = World::any();
        let dir = world.init("repo");
        let files = [(".aynig/command/ok", OK), (".aynig/command/fail", FAIL), (".aynig/command/wait", WAIT)];
        world.commit_files(&dir, "main", &files, "commands");
        world.git(&dir, &["reset", "-q", "--hard"]);
        for name in ["started", "go"] {
            world.run("mkfifo", &dir, &[world.home().join(name)]).expect(0);
        }
        Self { world, dir }
    }

    pub fn aynig(&self, args: &[&str]) -> Said {
        self.world.aynig(&self.dir, args)
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.world.git(&self.dir, args)
    }

    pub fn git_dir(&self) -> PathBuf {
        self.dir.join(".git")
    }

    /// A state event on a branch that is made for it.
    pub fn set(&self, branch: &str, state: &str) -> String {
        self.aynig(&["set-state", state, "-b", branch]).expect(0);
        self.git(&["rev-parse", branch])
    }

    /// Starts `git aynig` with its output in a pipe.
    pub fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.world.command(self.world.root().join("bin/git-aynig"), &self.dir);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a tick of a branch whose command is `wait`, and returns once the command runs.
    pub fn hold(&self, branch: &str) -> Child {
        self.set(branch, "wait");
        let child = self.spawn(&["tick", branch]);
        let mut byte = String::new();
        std::fs::File::open(self.world.home().join("started")).unwrap().read_to_string(&mut byte).unwrap();
        child
    }

    /// Lets the command end.
    pub fn go(&self) {
        let go = std::fs::File::options().write(true).open(self.world.home().join("go"));
        go.unwrap().write_all(b"\n").unwrap();
    }

    /// Makes a file or folder look old.
    pub fn age(&self, path: &Path, days: u32) {
        let date = format!("{days} days ago");
        self.world.run("touch", &self.dir, &["-h", "-d", &date, path.to_str().unwrap()]).expect(0);
    }

    /// The objects that were printed, one a line, all of this schema.
    pub fn json(&self, args: &[&str], code: i32, schema: &str) -> Vec<serde_json::Value> {
        let said = self.aynig(args).expect(code);
        let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let objects: Vec<_> = said.out.lines().map(parse).collect();
        assert!(objects.iter().all(|o| o["schema"] == schema), "{}", said.out);
        objects
    }
}

/// No byte that a terminal would act on.
pub fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c == '\n' || c == '\t' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)))
}
