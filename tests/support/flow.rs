//! The basic flow, the same in every kind of repository: a command edits a file and declares a state.
//!
//! `Place::new(&world, dir)` says where and how to call; `place.seed()` commits the command, `place.flow()`
//! sets the state, ticks, and checks everything that must hold whatever the kind.

use super::world::World;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What answers `build`: looks around in its slot, edits, declares.
pub const BUILD: &str = r#"#!/bin/sh
set -eu
test "$(git rev-parse HEAD)" = "$AYNIG_LEASE_COMMIT"
test -z "$(git --no-optional-locks status --porcelain --ignored)"
test "$(pwd -P)" = "$(cd "$WORKTREE_PATH" && pwd -P)"
test -x "$AYNIG_DIR/command/build"
cat file.txt
echo edited >>file.txt
mkdir -p deep/er
echo new >deep/er/made.txt
echo complaint >&2
echo 'SET_STATE {"state":"review","subject":"build: done"}'
"#;

/// Files of every seed.
pub const FILES: &[(&str, &str)] =
    &[(".aynig/command/build", BUILD), ("file.txt", "one\n"), ("sub/other.txt", "other\n")];

/// A trusted repository with the usual command and these others: (state, script).
pub fn repo(world: &World, commands: &[(&str, &str)]) -> PathBuf {
    let dir = world.init("repo");
    Place::new(world, &dir).seed();
    for (state, script) in commands {
        let path = format!(".aynig/command/{state}");
        world.commit_files(&dir, "main", &[(&path, &format!("#!/bin/sh\n{script}\n"))], state);
    }
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    dir
}

/// The commit that a branch is at.
pub fn head(world: &World, dir: &Path, branch: &str) -> String {
    world.git(dir, &["rev-parse", &format!("refs/heads/{branch}")])
}

/// A repository, and how `git aynig` is called on it.
pub struct Place<'a> {
    pub world: &'a World,
    /// Where git works on it.
    pub dir: PathBuf,
    /// Program and arguments before the verb.
    pub call: Vec<OsString>,
    /// Where they are called from.
    pub from: PathBuf,
    pub branch: OsString,
    /// Where logs are expected.
    pub logs: PathBuf,
    pub bare: bool,
    /// Say `aynig trust --ref main` first; off where the test trusts otherwise.
    pub trust: bool,
}

impl<'a> Place<'a> {
    /// A repository with a working tree, called as `git-aynig` from it.
    pub fn new(world: &'a World, dir: &Path) -> Self {
        Self {
            world,
            dir: dir.to_owned(),
            call: vec![world.root().join("bin/git-aynig").into()],
            from: dir.to_owned(),
            branch: "work".into(),
            logs: dir.join(".aynig/logs"),
            bare: false,
            trust: true,
        }
    }

    pub fn bare(world: &'a World, dir: &Path) -> Self {
        Self { logs: dir.join("aynig/logs"), bare: true, ..Self::new(world, dir) }
    }

    /// Called as `git <args> aynig`.
    pub fn by_git<S: AsRef<OsStr>>(mut self, args: &[S]) -> Self {
        self.call = vec!["git".into()];
        self.call.extend(args.iter().map(|a| a.as_ref().into()));
        self.call.push("aynig".into());
        self
    }

    pub fn from(mut self, dir: &Path) -> Self {
        self.from = dir.to_owned();
        self
    }

    pub fn on(mut self, branch: impl AsRef<OsStr>) -> Self {
        self.branch = branch.as_ref().into();
        self
    }

    /// Commits the command on `main`, and checks it out where there is a working tree.
    pub fn seed(&self) -> &Self {
        self.world.commit_files(&self.dir, "main", FILES, "seed");
        if !self.bare {
            self.world.git(&self.dir, &["reset", "-q", "--hard", "main"]);
        }
        self
    }

    pub fn say<S: AsRef<OsStr>>(&self, args: &[S]) -> super::world::Said {
        let mut command = self.world.command(&self.call[0], &self.from);
        command.args(&self.call[1..]).args(args);
        command.output().unwrap().into()
    }

    fn branch_ref(&self) -> OsString {
        OsString::from_vec([b"refs/heads/", self.branch.as_bytes()].concat())
    }

    fn git(&self, args: &[&str]) -> String {
        self.world.git(&self.dir, args)
    }

    /// Sets the state, ticks, checks; the trigger's id.
    #[track_caller]
    pub fn flow(&self) -> String {
        if self.trust {
            self.say(&["trust", "--ref", "main"]).expect(0);
        }
        let set = [OsStr::new("set-state"), OsStr::new("build"), OsStr::new("-b"), &self.branch];
        self.say(&set).expect(0);
        let branch = self.branch_ref();
        let trigger = self.world.git(&self.dir, &[OsStr::new("rev-parse"), OsStr::new("--verify"), &branch]);
        let before = self.snapshot();
        let said = self.say(&["tick"]).expect(0);
        assert!(said.out.contains(": build -> review ("), "out: {}\nerr: {}", said.out, said.err);
        let after = self.snapshot();
        for (what, old) in &before {
            assert_eq!(old, &after[what], "{what} changed");
        }
        self.check_branch(&trigger);
        self.check_logs(&trigger);
        self.check_rest();
        trigger
    }

    #[track_caller]
    fn check_branch(&self, trigger: &str) {
        let range = OsString::from_vec([trigger.as_bytes(), b"..", self.branch_ref().as_bytes()].concat());
        let format = "--format=%H %T %P|%(trailers:key=dwp-state,valueonly,separator=%x2c)";
        let log = self.world.git(&self.dir, &[OsStr::new("log"), OsStr::new(format), &range]);
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), 2, "exactly a lease and an outcome: {log}");
        let words = |line: &str| line.split(['|', ' ']).map(str::to_owned).collect::<Vec<_>>();
        let (outcome, lease) = (words(lines[0]), words(lines[1]));
        let tree = self.git(&["rev-parse", &format!("{trigger}^{{tree}}")]);
        assert_eq!(lease[1..], [tree, trigger.to_owned(), "working".to_owned()], "the lease");
        assert_eq!(outcome[2..], [lease[0].clone(), "review".to_owned()], "the outcome");
        let content = self.git(&["cat-file", "blob", &format!("{}:file.txt", outcome[0])]);
        assert_eq!(content, "one\nedited", "the edit is in the outcome");
        let changed = self.git(&["diff-tree", "-r", "--name-status", &lease[0], &outcome[0]]);
        assert_eq!(changed, "A\tdeep/er/made.txt\nM\tfile.txt", "and nothing else is");
    }

    #[track_caller]
    fn check_logs(&self, trigger: &str) {
        let read = |kind: &str| {
            let path = self.logs.join(format!("{trigger}.{kind}.log"));
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        assert!(read("stdout").starts_with("one\nSET_STATE {"), "{}", read("stdout"));
        assert_eq!(read("stderr"), "complaint\n");
    }

    #[track_caller]
    fn check_rest(&self) {
        self.world.assert_sound(&self.dir);
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        assert!(!worktrees.contains("prunable"), "{worktrees}");
        assert_eq!(self.git(&["for-each-ref", "refs/aynig"]), "", "no ref of ours is left");
        assert_eq!(self.git(&["ls-files", "--", ".aynig/logs"]), "");
        let common = self.git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        // Below `aynig/` they are files that flock is used on: they stay.
        let mut locks = files_below(Path::new(&common), &|name| name.ends_with(b".lock"));
        locks.retain(|path| !path.starts_with(Path::new(&common).join("aynig")));
        assert!(locks.is_empty(), "locks are left: {locks:?}");
    }

    /// What a tick must leave as it is (K45).
    fn snapshot(&self) -> BTreeMap<&'static str, Vec<u8>> {
        let mut all = BTreeMap::new();
        let work = self.branch_ref();
        let refs = self.world.command("git", &self.dir).args(["for-each-ref"]).output().unwrap().stdout;
        let others: Vec<&[u8]> =
            refs.split(|b| *b == b'\n').filter(|line| !line.ends_with(work.as_bytes())).collect();
        all.insert("refs", others.join(&b'\n'));
        let git_dir = self.world.command("git", &self.dir).args(["rev-parse", "--absolute-git-dir"]).output();
        let git_dir = PathBuf::from(OsString::from_vec(git_dir.unwrap().stdout.trim_ascii_end().to_vec()));
        for file in ["HEAD", "index", "config", "logs/HEAD", "ORIG_HEAD", "FETCH_HEAD"] {
            all.insert(file, std::fs::read(git_dir.join(file)).unwrap_or_default());
        }
        if !self.bare {
            let mut status = self.world.command("git", &self.dir);
            status.args(["--no-optional-locks", "status", "--porcelain=v2", "--branch", "-uall"]);
            all.insert("status", status.output().unwrap().stdout);
            let stash = self.world.try_git(&self.dir, &["stash", "list"]).out;
            all.insert("stash", stash.into_bytes());
        }
        all
    }
}

/// Files below a folder whose name is accepted.
pub fn files_below(dir: &Path, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.extend(files_below(&entry.path(), wanted));
        } else if wanted(entry.file_name().as_bytes()) {
            found.push(entry.path());
        }
    }
    found
}
