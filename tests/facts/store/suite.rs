//! One suite of facts over every store: in process and by `git`, sha1 and sha256, files and reftable,
//! and in memory. The real git is the judge. Implements the proof of K11, K37, K42, K43.

use crate::support::{Repo, child_test, skipped};
use aynig::protocol::id::ObjectId;
use aynig::store::binary::GitStore;
use aynig::store::git_command::Git;
use aynig::store::gix_store::{GixStore, Options};
use aynig::store::locks::{self, RefLock};
use aynig::store::memory::{Failure, MemoryStore};
use aynig::store::swap::{compare_and_swap, create_ref, delete_ref, put_ref};
use aynig::store::{Commit, Expected, NewCommit, RefName, Signature, Store, StoreError, Swap};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(super) const LOG: &str = "aynig: claim work";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Gix,
    GixSha256,
    GixBare,
    Git,
    GitReftable,
    GitSha256Reftable,
    Memory,
}

pub(super) const ALL: [How; 7] =
    [How::Gix, How::GixSha256, How::GixBare, How::Git, How::GitReftable, How::GitSha256Reftable, How::Memory];

/// A store with what is behind it.
pub(super) struct World {
    pub(super) how: How,
    pub(super) repo: Option<Repo>,
    pub(super) memory: MemoryStore,
    pub(super) store: Box<dyn Store>,
    pub(super) tree: ObjectId,
}

pub(super) fn by() -> Signature {
    Signature { name: "rünner <x>".into(), email: "runner@host".into(), seconds: 1_700_000_000 }
}

pub(super) fn options(durable: bool) -> Options {
    Options { durable, lock_wait: Duration::from_secs(5), isolated: true }
}

pub(super) fn id(hex: &str) -> ObjectId {
    hex.parse().unwrap()
}

pub(super) fn work() -> RefName {
    RefName::branch("work")
}

pub(super) fn gix_store(repo: &Repo, durable: bool) -> GixStore {
    GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &options(durable)).unwrap()
}

impl World {
    pub(super) fn new(how: How) -> Option<Self> {
        let kind = match how {
            How::Gix | How::Git => Repo::build(),
            How::GixSha256 => Repo::build().sha256(),
            How::GixBare => Repo::build().bare(),
            How::GitReftable => Repo::build().reftable(),
            How::GitSha256Reftable => Repo::build().sha256().reftable(),
            How::Memory => {
                let memory = MemoryStore::new();
                let tree = id("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
                return Some(Self { how, repo: None, store: Box::new(memory.clone()), memory, tree });
            }
        };
        let repo = kind.create()?;
        let tree = id(&repo.empty_tree());
        let memory = MemoryStore::new();
        let store = open(how, Some(&repo), &memory);
        Some(Self { how, repo: Some(repo), memory, store, tree })
    }

    /// Every kind that this machine can make.
    pub(super) fn each(kinds: &[How], fact: impl Fn(&World)) {
        for how in kinds {
            if let Some(world) = World::new(*how) {
                fact(&world);
                if let Some(repo) = &world.repo {
                    repo.assert_sound();
                }
            }
        }
    }

    pub(super) fn repo(&self) -> &Repo {
        self.repo.as_ref().unwrap()
    }

    pub(super) fn another(&self) -> Box<dyn Store> {
        open(self.how, self.repo.as_ref(), &self.memory)
    }

    /// Writes a commit on top of these; no two are the same.
    pub(super) fn commit(&self, parents: &[ObjectId]) -> ObjectId {
        self.commit_with(parents, b"chore: x\n")
    }

    pub(super) fn commit_with(&self, parents: &[ObjectId], message: &[u8]) -> ObjectId {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = format!("\ndwp-run-id: {}\n", COUNT.fetch_add(1, Ordering::Relaxed));
        let message = [message, unique.as_bytes()].concat();
        let new = NewCommit { tree: self.tree, parents: parents.to_vec(), signature: by(), message };
        self.store.write_commit(&new).unwrap()
    }

    pub(super) fn swap(&self, name: &RefName, expected: Expected, new: ObjectId) -> Result<Swap, StoreError> {
        compare_and_swap(&*self.store, name, expected, new, &by(), LOG)
    }

    /// A branch with one commit.
    #[track_caller]
    pub(super) fn start(&self, name: &RefName) -> ObjectId {
        let first = self.commit(&[]);
        assert_eq!(self.swap(name, Expected::Missing, first).unwrap(), Swap::Won, "{:?}", self.how);
        first
    }

    #[track_caller]
    pub(super) fn assert_tip(&self, name: &RefName, tip: Option<ObjectId>) {
        assert_eq!(self.store.tip(name).unwrap(), tip, "{:?}", self.how);
        if let Some(repo) = &self.repo {
            let full = String::from_utf8_lossy(name.as_bytes()).into_owned();
            let output = repo.try_git(&["rev-parse", "-q", "--verify", &full]);
            let seen = String::from_utf8(output.stdout).unwrap();
            assert_eq!(seen.trim_end(), tip.map(|id| id.to_string()).unwrap_or_default(), "{:?}", self.how);
        }
    }
}

fn open(how: How, repo: Option<&Repo>, memory: &MemoryStore) -> Box<dyn Store> {
    match (how, repo) {
        (How::Gix | How::GixSha256 | How::GixBare, Some(repo)) => Box::new(gix_store(repo, true)),
        (How::Git | How::GitReftable | How::GitSha256Reftable, Some(repo)) => {
            Box::new(GitStore::open(Git::find(repo.env()).unwrap(), &repo.git_dir(), true).unwrap())
        }
        (How::Memory, _) => Box::new(memory.clone()),
        (_, None) => unreachable!("only memory has no repository"),
    }
}

pub(super) const FILES: [How; 4] = [How::Gix, How::GixSha256, How::GixBare, How::Git];

#[test]
fn a_swap_wins_once_and_the_second_loses_with_the_others_tip() {
    World::each(&ALL, |w| {
        let first = w.start(&work());
        let (a, b) = (w.commit(&[first]), w.commit(&[first]));
        assert_eq!(w.swap(&work(), Expected::At(first), a).unwrap(), Swap::Won);
        assert_eq!(w.swap(&work(), Expected::At(first), b).unwrap(), Swap::Lost { tip: Some(a) });
        w.assert_tip(&work(), Some(a));
        // Asked again after it won, and after others went on from it: still won.
        assert_eq!(w.swap(&work(), Expected::At(first), a).unwrap(), Swap::Won);
        let c = w.commit(&[a]);
        assert_eq!(w.swap(&work(), Expected::At(a), c).unwrap(), Swap::Won);
        assert_eq!(w.swap(&work(), Expected::At(first), a).unwrap(), Swap::Won);
        assert_eq!(w.store.scan("refs/heads/").unwrap(), [(work(), c)]);
    });
}

#[test]
fn a_deleted_branch_is_never_created_again() {
    World::each(&ALL, |w| {
        let first = w.start(&work());
        let next = w.commit(&[first]);
        match &w.repo {
            Some(repo) => drop(repo.git(&["update-ref", "-d", "refs/heads/work"])),
            None => w.memory.force(&work(), None),
        }
        assert_eq!(w.swap(&work(), Expected::At(first), next).unwrap(), Swap::Lost { tip: None });
        w.assert_tip(&work(), None);
        assert!(w.store.scan("refs/heads/").unwrap().is_empty());
    });
}

#[test]
fn missing_means_missing() {
    World::each(&ALL, |w| {
        let first = w.start(&work());
        let other = w.commit(&[]);
        assert_eq!(w.swap(&work(), Expected::Missing, other).unwrap(), Swap::Lost { tip: Some(first) });
        w.assert_tip(&work(), Some(first));
        assert!(
            matches!(
                w.store.try_swap(&work(), Expected::At(first), None, &by(), ""),
                Err(StoreError::RefusedName { .. })
            ),
            "no branch is ever deleted"
        );
    });
}

#[test]
fn a_ref_that_is_packed_is_read_and_moved() {
    World::each(&FILES, |w| {
        let names: Vec<RefName> = (0..20).map(|i| RefName::branch(format!("b{i}/x"))).collect();
        let firsts: Vec<ObjectId> = names.iter().map(|n| w.start(n)).collect();
        w.repo().git(&["tag", "-a", "-m", "peeled", "t", &firsts[0].to_string()]);
        w.repo().git(&["pack-refs", "--all"]);
        for (name, first) in names.iter().zip(&firsts) {
            w.assert_tip(name, Some(*first));
            let next = w.commit(&[*first]);
            assert_eq!(w.swap(name, Expected::Missing, next).unwrap(), Swap::Lost { tip: Some(*first) });
            assert_eq!(w.swap(name, Expected::At(*first), next).unwrap(), Swap::Won);
            // Packed (old) and loose (new): the loose one counts.
            w.assert_tip(name, Some(next));
            assert_eq!(
                w.swap(name, Expected::At(*first), w.commit(&[*first])).unwrap(),
                Swap::Lost { tip: Some(next) }
            );
        }
        assert_eq!(w.store.scan("refs/heads/").unwrap().len(), 20);
        w.repo().git(&["pack-refs", "--all"]);
        assert_eq!(w.store.scan("refs/heads/").unwrap().len(), 20);
        assert_eq!(w.store.scan("refs/heads/b1/").unwrap().len(), 1);
    });
}

#[test]
fn a_symbolic_ref_is_refused_and_left_alone() {
    World::each(&ALL, |w| {
        let alias = RefName::branch("alias");
        let first = w.start(&work());
        let next = w.commit(&[first]);
        match &w.repo {
            Some(repo) => drop(repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/work"])),
            None => w.memory.make_symbolic(&alias, &work()),
        }
        let is_refused = |r: Result<Swap, StoreError>| match r {
            Err(StoreError::SymbolicRef { target, .. }) => target == work(),
            _ => false,
        };
        assert!(is_refused(w.swap(&alias, Expected::At(first), next)), "{:?}", w.how);
        assert!(is_refused(w.swap(&alias, Expected::Missing, next)), "{:?}", w.how);
        w.assert_tip(&work(), Some(first));
        assert_eq!(w.store.scan("refs/heads/").unwrap(), [(work(), first)]);
        if let Some(repo) = &w.repo {
            assert_eq!(repo.git(&["symbolic-ref", "refs/heads/alias"]), "refs/heads/work");
            // One that leads nowhere is not missing either.
            repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/nowhere"]);
            assert!(
                matches!(w.swap(&alias, Expected::Missing, next), Err(StoreError::SymbolicRef { .. })),
                "{:?}",
                w.how
            );
            repo.git(&["symbolic-ref", "-d", "refs/heads/alias"]);
        }
    });
}

#[test]
fn the_reflog_is_the_one_git_would_write() {
    World::each(&[How::Gix, How::GixSha256, How::Git, How::GitReftable, How::GixBare], |w| {
        let repo = w.repo();
        let (first, other) = (w.commit(&[]), RefName::branch("other"));
        let next = w.commit(&[first]);
        let message = "aynig:  two\n\tlines\r\n0000 forged ";
        repo.git(&["symbolic-ref", "HEAD", "refs/heads/work"]);
        let swap = |e, n| compare_and_swap(&*w.store, &work(), e, n, &by(), message).unwrap();
        assert_eq!(swap(Expected::Missing, first), Swap::Won);
        assert_eq!(swap(Expected::At(first), next), Swap::Won);
        for step in [first, next] {
            let step = step.to_string();
            let done = repo
                .command("git")
                .args(["update-ref", "-m", message, "refs/heads/other", &step])
                .envs([("GIT_COMMITTER_NAME", "rünner <x>"), ("GIT_COMMITTER_EMAIL", "runner@host")])
                .env("GIT_COMMITTER_DATE", "@1700000000 +0000")
                .status();
            assert!(done.unwrap().success());
        }
        let show = |of: &str| repo.git(&["log", "-g", "--format=%H %gs %gn %ge %gd", "--date=raw", of]);
        let (ours, gits) = (show("refs/heads/work"), show("refs/heads/other"));
        assert_eq!(ours.replace("work@", "other@"), gits, "{:?}", w.how);
        assert_eq!(ours.lines().count(), if w.how == How::GixBare { 0 } else { 2 });
        assert_eq!(show("HEAD").lines().count(), ours.lines().count(), "{:?}", w.how);
        let read = |name: &RefName| std::fs::read(repo.git_dir().join("logs").join(name.to_string())).ok();
        if w.how != How::GitReftable {
            assert_eq!(read(&RefName::new("refs/heads/work")), read(&other));
            let file = |name: &str| std::fs::read(repo.git_dir().join("logs").join(name)).ok();
            assert_eq!(file("refs/heads/work"), file("refs/heads/other"), "{:?}", w.how);
            assert_eq!(file("HEAD"), file("refs/heads/other"), "{:?}", w.how);
        }
    });
}

#[test]
fn a_reflog_is_written_only_where_git_would() {
    for (setting, bare, logs) in [("true", true, true), ("false", false, false), ("always", true, true)] {
        let repo = if bare { Repo::build().bare().create().unwrap() } else { Repo::new() };
        repo.git(&["config", "core.logAllRefUpdates", setting]);
        let first = id(&repo.commit("main", "x"));
        let store = gix_store(&repo, false);
        let own = RefName::new("refs/aynig/run/1");
        assert_eq!(
            compare_and_swap(&store, &work(), Expected::Missing, first, &by(), LOG).unwrap(),
            Swap::Won
        );
        assert_eq!(create_ref(&store, &own, first, &by(), LOG).unwrap(), Swap::Won);
        assert_eq!(repo.git_dir().join("logs/refs/heads/work").exists(), logs, "{setting}");
        assert_eq!(repo.git_dir().join("logs/refs/aynig/run/1").exists(), setting == "always", "{setting}");
    }
}

#[test]
fn a_linked_worktrees_head_log_gets_a_line_too() {
    let repo = Repo::new();
    let first = id(&repo.commit("main", "x"));
    repo.git(&["worktree", "add", "-q", "-b", "side", "../side", "main"]);
    let store = GixStore::open(&repo.path().join("../side"), Git::find(repo.env()).unwrap(), &options(false))
        .unwrap();
    let next = id(&repo.commit("main", "y"));
    let side = RefName::branch("side");
    assert_eq!(compare_and_swap(&store, &side, Expected::At(first), next, &by(), LOG).unwrap(), Swap::Won);
    let log = std::fs::read_to_string(repo.git_dir().join("worktrees/side/logs/HEAD")).unwrap();
    assert!(log.lines().last().unwrap().contains(&next.to_string()), "{log}");
    let main = std::fs::read_to_string(repo.git_dir().join("logs/HEAD")).unwrap();
    assert!(!main.contains(LOG), "{main}");
    assert!(repo.git(&["rev-parse", "side"]) == next.to_string(), "the ref is in the common folder");
}

#[test]
fn odd_names_are_names() {
    World::each(&ALL, |w| {
        let long = "n".repeat(200);
        let odd: [&[u8]; 7] = [
            "ümläut".as_bytes(),
            b"\xff\xfe",
            b"a;id",
            b"$(x)",
            b"deep/er/and/deeper",
            b"-x",
            long.as_bytes(),
        ];
        for short in odd {
            let name = RefName::branch(short);
            let first = w.start(&name);
            let next = w.commit(&[first]);
            assert_eq!(w.swap(&name, Expected::At(first), next).unwrap(), Swap::Won, "{name}");
            assert_eq!(w.store.tip(&name).unwrap(), Some(next));
        }
        assert_eq!(w.store.scan("refs/heads/").unwrap().len(), odd.len());
        assert_eq!(w.store.read_heads("refs/heads/").unwrap().heads.len(), odd.len());
        let first = w.commit(&[]);
        for bad in
            [&b"a b"[..], b"../../x", b"a..b", b"x.lock", b".x", b"a//b", b"x/", b"a\nb", b"@{x", b"a*"]
        {
            let name = RefName::branch(bad);
            let refused = w.swap(&name, Expected::Missing, first);
            assert!(matches!(refused, Err(StoreError::RefusedName { .. })), "{name}: {refused:?}");
        }
    });
}

#[test]
fn a_name_that_is_a_folder_of_another_is_refused() {
    World::each(&ALL, |w| {
        let pack = |w: &World| w.repo.as_ref().map(|r| r.git(&["pack-refs", "--all"]));
        let (ab, deep) = (RefName::branch("a/b"), RefName::branch("c"));
        w.start(&ab);
        w.start(&deep);
        for packed in [false, true] {
            if packed {
                pack(w);
            }
            let first = w.commit(&[]);
            for short in ["a", "a/b/c", "a/b/c/d", "c/d"] {
                let refused = w.swap(&RefName::branch(short), Expected::Missing, first);
                let conflict = matches!(refused, Err(StoreError::NameConflict { .. }));
                assert!(conflict, "{:?} {short} packed={packed}: {refused:?}", w.how);
            }
            assert_eq!(w.store.scan("refs/heads/").unwrap().len(), 2);
        }
        // Once it is gone the name is free, whatever empty folders it left.
        if let Some(repo) = &w.repo {
            repo.git(&["update-ref", "-d", "refs/heads/a/b"]);
            if w.how == How::Gix {
                std::fs::create_dir_all(repo.git_dir().join("refs/heads/a/b/empty")).unwrap();
                std::fs::create_dir_all(repo.git_dir().join("logs/refs/heads/a/b/empty")).unwrap();
            }
            w.start(&RefName::branch("a"));
        }
    });
}

#[test]
fn own_refs_come_and_go_and_only_they() {
    World::each(&ALL, |w| {
        let run = RefName::new("refs/aynig/run/2f0c");
        let first = w.commit(&[]);
        let next = w.commit(&[first]);
        let store = &*w.store;
        assert_eq!(create_ref(store, &run, first, &by(), "").unwrap(), Swap::Won);
        assert_eq!(create_ref(store, &run, first, &by(), "").unwrap(), Swap::Won);
        assert_eq!(create_ref(store, &run, next, &by(), "").unwrap(), Swap::Lost { tip: Some(first) });
        assert_eq!(put_ref(store, &run, next, &by(), "").unwrap(), Swap::Won);
        assert_eq!(delete_ref(store, &run, first, &by()).unwrap(), Swap::Lost { tip: Some(next) });
        w.assert_tip(&run, Some(next));
        assert_eq!(delete_ref(store, &run, next, &by()).unwrap(), Swap::Won);
        w.assert_tip(&run, None);
        assert_eq!(delete_ref(store, &run, next, &by()).unwrap(), Swap::Won);
        for foreign in ["refs/heads/work", "refs/aynig/run/a/b", "refs/aynig/x", "refs/tags/t"] {
            let name = RefName::new(foreign);
            assert!(
                matches!(delete_ref(store, &name, first, &by()), Err(StoreError::RefusedName { .. })),
                "{foreign}"
            );
        }
        if let Some(repo) = &w.repo {
            // Packed only; then packed with a newer loose one.
            for both in [false, true] {
                create_ref(store, &run, first, &by(), "").unwrap();
                repo.git(&["pack-refs", "--all"]);
                let tip = if both { next } else { first };
                put_ref(store, &run, tip, &by(), "").unwrap();
                assert_eq!(delete_ref(store, &run, tip, &by()).unwrap(), Swap::Won);
                w.assert_tip(&run, None);
                assert_eq!(repo.git(&["for-each-ref"]), "");
            }
        }
    });
}

fn race(w: &World, runners: usize, rounds: usize) {
    let mut tip = w.start(&work());
    for _ in 0..rounds {
        let barrier = Barrier::new(runners);
        let news: Vec<ObjectId> = (0..runners).map(|_| w.commit(&[tip])).collect();
        let verdicts: Vec<Swap> = std::thread::scope(|scope| {
            let start = |new: &ObjectId| {
                let (store, new, barrier) = (w.another(), *new, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    compare_and_swap(&*store, &work(), Expected::At(tip), new, &by(), LOG).unwrap()
                })
            };
            let running: Vec<_> = news.iter().map(start).collect();
            running.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let winners: Vec<usize> = (0..runners).filter(|i| verdicts[*i] == Swap::Won).collect();
        assert_eq!(winners.len(), 1, "{:?} {verdicts:?}", w.how);
        let won = news[winners[0]];
        assert!(verdicts.iter().all(|v| *v == Swap::Won || *v == Swap::Lost { tip: Some(won) }));
        tip = won;
        w.assert_tip(&work(), Some(tip));
    }
}

#[test]
fn of_many_at_once_exactly_one_wins() {
    World::each(&[How::Gix, How::GixSha256, How::Memory], |w| race(w, 32, 5));
    World::each(&[How::Git, How::GitReftable], |w| race(w, 8, 1));
}

#[test]
fn packing_meanwhile_changes_no_verdict() {
    World::each(&[How::Gix], |w| {
        let (done, repo) = (&AtomicBool::new(false), w.repo());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    repo.try_git(&["pack-refs", "--all"]);
                }
            });
            // The packer is told to stop even where the race fails.
            let raced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                race(w, 8, 15);
                for i in 0..25 {
                    // Never the same name and value twice: git's packer would prune the second as the
                    // first, with git's own deletion too. Run ids are unique.
                    let run = RefName::new(format!("refs/aynig/run/{i}"));
                    let first = w.commit(&[]);
                    assert_eq!(create_ref(&*w.store, &run, first, &by(), "").unwrap(), Swap::Won);
                    assert_eq!(w.store.scan("refs/").unwrap().len(), 2);
                    assert_eq!(delete_ref(&*w.store, &run, first, &by()).unwrap(), Swap::Won);
                    assert_eq!(w.store.tip(&run).unwrap(), None);
                }
            }));
            done.store(true, Ordering::Relaxed);
            raced.unwrap();
        });
    });
}

/// Not a fact: a process of its own that takes a lock and keeps it, or makes one swap.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os("AYNIG_TEST_REPO").map(PathBuf::from) else { return };
    let git = Git::find_here().unwrap();
    let durable = std::env::var_os("AYNIG_TEST_DURABLE").is_some_and(|v| v == "yes");
    let store = GixStore::open(&path, git, &options(durable)).unwrap();
    let tip = store.tip(&work()).unwrap().unwrap();
    if std::env::var_os("AYNIG_TEST_HOLD").is_some() {
        let lock = RefLock::take(store.refs(), &work(), format!("{tip}\n").as_bytes()).unwrap();
        println!("\nheld {}", lock.path().display());
        loop {
            std::thread::park();
        }
    }
    let tree = store.read_commit(tip).unwrap().tree;
    let new = NewCommit { tree, parents: vec![tip], signature: by(), message: b"chore: child\n".to_vec() };
    let new = store.write_commit(&new).unwrap();
    let won = compare_and_swap(&store, &work(), Expected::At(tip), new, &by(), LOG).unwrap();
    assert_eq!(won, Swap::Won);
}

/// A child that never outlives its test.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A process that holds the lock of `work` until this value is dropped, by SIGKILL.
fn holder(repo: &Repo) -> Holder {
    let mut command = child_test(
        "store::suite::child_process",
        &[("AYNIG_TEST_REPO", &repo.path()), ("AYNIG_TEST_HOLD", Path::new("1"))],
    );
    // Its environment is the repository's, so that no configuration of this machine's user is read.
    let mut child = Holder(command.envs(repo.env()).stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("held ")), "the child took the lock");
    child
}

/// K11, K43: another runner that is slow with its swap is waited for longer than another program's lock.
#[test]
fn a_living_owner_of_our_own_is_given_time() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let next = id(&repo.commit("other", "y"));
    let mut store_options = options(true);
    store_options.lock_wait = Duration::from_secs(1);
    let store = GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &store_options).unwrap();
    let alive = holder(&repo);
    let lock = repo.git_dir().join("refs/heads/work.lock");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let since = std::time::Instant::now();
            while since.elapsed() < Duration::from_secs(2) && lock.exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            drop(alive);
        });
        assert_eq!(
            compare_and_swap(&store, &work(), Expected::At(first), next, &by(), LOG).unwrap(),
            Swap::Won
        );
    });
}

#[test]
fn a_dead_owners_lock_is_removed_and_a_living_ones_is_not() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let next = id(&repo.commit("other", "y"));
    let mut store_options = options(true);
    store_options.lock_wait = Duration::from_millis(200);
    let store = GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &store_options).unwrap();
    let swap = || compare_and_swap(&store, &work(), Expected::At(first), next, &by(), LOG);
    let lock = repo.git_dir().join("refs/heads/work.lock");

    let alive = holder(&repo);
    assert!(matches!(swap(), Err(StoreError::LockHeld { .. })), "a living owner's lock is not stolen");
    assert!(locks::sweep_stale_locks(&repo.git_dir()).unwrap().is_empty());
    assert!(lock.exists());
    assert!(
        !repo.try_git(&["update-ref", "refs/heads/work", &next.to_string()]).status.success(),
        "git sees it too"
    );
    drop(alive);
    assert!(locks::list_locks(&repo.git_dir()).unwrap()[0].ours);
    assert_eq!(swap().unwrap(), Swap::Won);
    assert!(!lock.exists());
    assert_eq!(std::fs::read_dir(repo.git_dir().join("aynig/locks")).unwrap().count(), 0);

    let dead = holder(&repo);
    drop(dead);
    assert_eq!(locks::sweep_stale_locks(&repo.git_dir()).unwrap(), std::slice::from_ref(&lock));
    assert!(!lock.exists());
    assert_eq!(repo.git(&["rev-parse", "work"]), next.to_string());
    repo.assert_sound();
}

/// K43: what could not be removed is still known for ours.
#[test]
fn a_lock_that_could_not_be_removed_goes_with_the_next_sweep() {
    let repo = Repo::new();
    repo.commit("work", "x");
    let git = Git::find(repo.env()).unwrap();
    let store = GixStore::open(&repo.path(), git, &options(true)).unwrap();
    let held = RefLock::take(store.refs(), &work(), b"x\n").unwrap();
    let (lock, aside) = (held.path().to_owned(), repo.git_dir().join("aside"));
    // Nothing can be unlinked where a folder is.
    std::fs::rename(&lock, &aside).unwrap();
    std::fs::create_dir(&lock).unwrap();
    held.release();
    std::fs::remove_dir(&lock).unwrap();
    std::fs::rename(&aside, &lock).unwrap();
    assert_eq!(locks::sweep_stale_locks(&repo.git_dir()).unwrap(), std::slice::from_ref(&lock));
    assert!(!lock.exists());
    assert_eq!(std::fs::read_dir(repo.git_dir().join("aynig/locks")).unwrap().count(), 0);
}

#[test]
fn a_foreign_lock_is_reported_with_its_age_and_never_removed() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let next = id(&repo.commit("other", "y"));
    let mut quick = options(true);
    quick.lock_wait = Duration::from_millis(50);
    let store = GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &quick).unwrap();
    let lock = repo.git_dir().join("refs/heads/work.lock");
    // Even with the very content of one of our own.
    std::fs::write(&lock, format!("{next}\n")).unwrap();
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(&lock).unwrap().set_modified(hour_ago).unwrap();
    match compare_and_swap(&store, &work(), Expected::At(first), next, &by(), LOG) {
        Err(StoreError::LockHeld { path, age, .. }) => {
            assert_eq!(path.canonicalize().unwrap(), lock.canonicalize().unwrap());
            assert!((3599..3700).contains(&age.as_secs()), "{age:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(locks::sweep_stale_locks(&repo.git_dir()).unwrap().is_empty());
    let found = locks::list_locks(&repo.git_dir()).unwrap();
    assert!(found.len() == 1 && !found[0].ours && found[0].path == lock);
    // Another branch is not blocked.
    let side = RefName::branch("side");
    assert_eq!(compare_and_swap(&store, &side, Expected::Missing, next, &by(), LOG).unwrap(), Swap::Won);
    assert!(lock.exists());
}

#[test]
fn an_owner_killed_after_the_rename_leaves_a_twin_that_costs_nothing() {
    let repo = Repo::new();
    repo.commit("work", "x");
    let twins = repo.git_dir().join("aynig/locks");
    std::fs::create_dir_all(&twins).unwrap();
    std::fs::hard_link(repo.git_dir().join("refs/heads/work"), twins.join("left")).unwrap();
    let tip = repo.git(&["rev-parse", "work"]);
    assert!(locks::sweep_stale_locks(&repo.git_dir()).unwrap().is_empty());
    assert_eq!(std::fs::read_dir(&twins).unwrap().count(), 0);
    assert_eq!(repo.git(&["rev-parse", "work"]), tip);
}

#[test]
fn verdicts_after_a_lost_answer_come_from_the_ref_alone() {
    let w = World::new(How::Memory).unwrap();
    let first = w.start(&work());
    let (a, b) = (w.commit(&[first]), w.commit(&[first]));
    let (beyond, aside) = (w.commit(&[a]), w.commit(&[b]));
    let merged_in = w.commit(&[aside, a]);
    let reset = || w.memory.force(&work(), Some(first));
    let move_to = |tip: Option<ObjectId>| -> Box<dyn FnOnce(&MemoryStore) + Send> {
        Box::new(move |m: &MemoryStore| m.force(&work(), tip))
    };
    let swap = |failure| {
        reset();
        w.memory.fail_next(failure);
        w.swap(&work(), Expected::At(first), a)
    };
    assert_eq!(swap(Failure::LostAnswer).unwrap(), Swap::Won);
    assert_eq!(swap(Failure::LostAnswerThen(move_to(Some(beyond)))).unwrap(), Swap::Won);
    assert_eq!(swap(Failure::LostAnswerThen(move_to(Some(aside)))).unwrap(), Swap::Lost { tip: Some(aside) });
    // Merged by others is not the branch's own line: the first parent decides.
    assert_eq!(
        swap(Failure::FailsAfter(move_to(Some(merged_in)))).unwrap(),
        Swap::Lost { tip: Some(merged_in) }
    );
    assert_eq!(swap(Failure::FailsAfter(move_to(Some(b)))).unwrap(), Swap::Lost { tip: Some(b) });
    assert_eq!(swap(Failure::FailsAfter(move_to(None))).unwrap(), Swap::Lost { tip: None });
    let rewound = w.commit(&[]);
    assert_eq!(swap(Failure::FailsAfter(move_to(Some(rewound)))).unwrap(), Swap::Lost { tip: Some(rewound) });
    // Still at the expected value: the error itself, never a lost race.
    assert!(matches!(swap(Failure::FailsAfter(Box::new(|_| ()))), Err(StoreError::Git { .. })));
    assert!(matches!(swap(Failure::LockHeld), Err(StoreError::LockHeld { .. })));
    // Nothing can be read: unknown, and the same swap again tells.
    let hide = |m: &MemoryStore| m.hide_tips(1);
    assert!(matches!(swap(Failure::LostAnswerThen(Box::new(hide))).unwrap(), Swap::Unknown { .. }));
    assert_eq!(w.swap(&work(), Expected::At(first), a).unwrap(), Swap::Won);
    let aside_and_unread = |m: &MemoryStore| m.force(&work(), Some(id(&"7".repeat(40))));
    assert!(matches!(swap(Failure::FailsAfter(Box::new(aside_and_unread))).unwrap(), Swap::Unknown { .. }));
}

#[test]
fn an_unreadable_ref_is_an_error_of_its_own_and_hides_no_other() {
    World::each(&[How::Gix, How::GixBare], |w| {
        let first = w.start(&work());
        let next = w.commit(&[first]);
        for bad in ["", "garbage\n", "0000000000000000000000000000000000000000\n"] {
            let broken = RefName::branch("broken");
            std::fs::write(w.repo().git_dir().join("refs/heads/broken"), bad).unwrap();
            for expected in [Expected::Missing, Expected::At(first)] {
                assert!(
                    matches!(w.swap(&broken, expected, next), Err(StoreError::UnreadableRef { .. })),
                    "{bad:?}"
                );
            }
            let scan = w.store.scan_all("refs/heads/").unwrap();
            assert_eq!((scan.refs, scan.unreadable.len()), (vec![(work(), first)], 1));
            let heads = w.store.read_heads("refs/heads/").unwrap();
            assert_eq!((heads.heads.len(), heads.failed.len()), (1, 1));
        }
        std::fs::remove_file(w.repo().git_dir().join("refs/heads/broken")).unwrap();
    });
    World::each(&[How::Git], |w| {
        let first = w.start(&work());
        let broken = w.repo().git_dir().join("refs/heads/broken");
        std::fs::write(&broken, "garbage\n").unwrap();
        let read = w.store.tip(&RefName::branch("broken"));
        assert!(matches!(read, Err(StoreError::UnreadableRef { .. })), "{read:?}");
        let scan = w.store.scan_all("refs/heads/").unwrap();
        assert_eq!((scan.refs, scan.unreadable.len()), (vec![(work(), first)], 1));
        std::fs::remove_file(&broken).unwrap();
    });
}

#[test]
fn commits_are_read_as_git_shows_them() {
    World::each(&ALL, |w| {
        let first = w.commit(&[]);
        let new = w.commit_with(&[first, w.commit(&[first])], "sübject\n\nbody\n".as_bytes());
        let read = w.store.read_commit(new).unwrap();
        assert_eq!((read.parents.len(), read.tree, read.committed), (2, w.tree, Some(1_700_000_000)));
        assert!(read.message.starts_with("sübject".as_bytes()));
        let absent = ObjectId::from_bytes(&vec![7; new.as_bytes().len()]).unwrap();
        assert!(matches!(w.store.read_commit(absent), Err(StoreError::Object { .. })));
        let refused = w.store.try_swap(&work(), Expected::Missing, Some(absent), &by(), "");
        assert!(refused.is_err(), "a branch never points at nothing");
        let Some(repo) = &w.repo else { return };
        assert!(matches!(w.store.read_commit(w.tree), Err(StoreError::Object { .. })));
        assert_eq!(
            repo.git(&["log", "-1", "--format=%an|%ae|%ad|%cn", "--date=raw", &new.to_string()]),
            "rünner x|runner@host|1700000000 +0000|rünner x"
        );
        let raw = repo.git(&[
            "-c",
            "i18n.commitEncoding=ISO-8859-1",
            "commit-tree",
            "-m",
            "x",
            &w.tree.to_string(),
        ]);
        let text = repo.git(&["cat-file", "commit", &raw]);
        let odd = repo.path().join("odd");
        let latin = [text.rsplit_once("\n\n").unwrap().0.as_bytes(), b"\n\n\xfc\x80\n"].concat();
        std::fs::write(&odd, latin).unwrap();
        let odd_id = repo.git(&["hash-object", "-t", "commit", "-w", odd.to_str().unwrap()]);
        let read = w.store.read_commit(id(&odd_id)).unwrap();
        let shown = repo.git(&["log", "-1", "--format=%B", &odd_id]);
        assert_eq!(String::from_utf8(read.message).unwrap().trim_end(), shown.trim_end());
        // What `refs/replace` would show instead is not what was hashed.
        repo.git(&["replace", &new.to_string(), &first.to_string()]);
        assert_eq!(w.another().read_commit(new).unwrap().parents.len(), 2, "{:?}", w.how);
        repo.git(&["replace", "-d", &new.to_string()]);
    });
}

#[test]
fn many_heads_are_read_in_one_go() {
    // So many that a second thread reads, too.
    const COUNT: usize = 5_000;
    World::each(&[How::Gix, How::GixSha256, How::Git, How::GitReftable], |w| {
        let repo = w.repo();
        let mut input = String::new();
        for i in 0..COUNT {
            input += &format!(
                "commit refs/heads/b{i:04}\ncommitter A <a@b> {} +0000\ndata 12\nnumber {i:04}\n\n",
                1000 + i
            );
        }
        let mut import =
            repo.command("git").args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut import.stdin.take().unwrap(), input.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success());
        for packed in [false, true] {
            if packed {
                repo.git(&["repack", "-adfq"]);
                repo.git(&["pack-refs", "--all"]);
                w.swap(
                    &RefName::branch("b0007"),
                    Expected::At(w.store.tip(&RefName::branch("b0007")).unwrap().unwrap()),
                    w.commit(&[w.store.tip(&RefName::branch("b0007")).unwrap().unwrap()]),
                )
                .unwrap();
            }
            let heads = w.store.read_heads("refs/heads/").unwrap();
            assert_eq!((heads.heads.len(), heads.failed.len()), (COUNT, 0), "{:?}", w.how);
            for (i, (name, commit)) in heads.heads.iter().enumerate() {
                assert_eq!(name.to_string(), format!("b{i:04}"));
                if i != 7 {
                    assert_eq!(commit.committed, Some(1000 + i as i64));
                }
            }
            let mut seen = HashMap::new();
            let mut visit = |name: RefName, read: Result<Commit, StoreError>| {
                *seen.entry((name, read.unwrap().id)).or_insert(0) += 1;
            };
            w.store.visit_heads("refs/heads/", &mut visit).unwrap();
            let read: HashMap<_, _> = heads.heads.into_iter().map(|(name, c)| ((name, c.id), 1)).collect();
            assert_eq!(seen, read, "{:?}: each once", w.how);
        }
        // One that can't be read hides no other.
        let broken = w.store.tip(&RefName::branch("b0007")).unwrap().unwrap().to_string();
        let object = repo.git_dir().join("objects").join(&broken[..2]).join(&broken[2..]);
        let aside = object.with_extension("aside");
        std::fs::rename(&object, &aside).unwrap();
        let heads = w.another().read_heads("refs/heads/").unwrap();
        let failed: Vec<_> = heads.failed.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!((heads.heads.len(), failed), (COUNT - 1, vec!["b0007".to_owned()]), "{:?}", w.how);
        std::fs::rename(&aside, &object).unwrap();
    });
}

#[test]
fn a_shallow_history_ends_where_it_ends() {
    let server = Repo::new();
    for i in 0..3 {
        server.commit("work", &format!("c{i}"));
    }
    let repo = Repo::new();
    let url = format!("file://{}", server.path().display());
    repo.git(&["fetch", "-q", "--depth=1", &url, "work:work"]);
    let store = gix_store(&repo, false);
    let tip = store.tip(&work()).unwrap().unwrap();
    let tree = store.read_commit(tip).unwrap().tree;
    let write = |n: u8| {
        let message = vec![b'0' + n];
        store.write_commit(&NewCommit { tree, parents: vec![tip], signature: by(), message }).unwrap()
    };
    let (a, b) = (write(1), write(2));
    server.commit("work", "c3");
    repo.git(&["fetch", "-q", "--depth=1", &url, "+work:work"]);
    let there = store.tip(&work()).unwrap();
    let fresh = gix_store(&repo, false);
    for (store, new) in [(&store, a), (&fresh, b)] {
        let verdict = compare_and_swap(store, &work(), Expected::At(tip), new, &by(), LOG).unwrap();
        assert_eq!(verdict, Swap::Lost { tip: there });
    }
}

#[test]
fn a_torn_object_of_the_same_id_is_replaced() {
    let repo = Repo::new();
    let store = gix_store(&repo, true);
    let tree = id(&repo.empty_tree());
    let new = NewCommit { tree, parents: vec![], signature: by(), message: b"chore: torn\n".to_vec() };
    let written = store.write_commit(&new).unwrap();
    let hex = written.to_string();
    let path = repo.git_dir().join("objects").join(&hex[..2]).join(&hex[2..]);
    for torn in [&b""[..], b"\0\0\0\0\0\0\0\0"] {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, torn).unwrap();
        assert_eq!(gix_store(&repo, true).write_commit(&new).unwrap(), written);
        repo.assert_sound();
    }
}

#[test]
fn a_shared_repository_gets_gits_modes() {
    use std::os::unix::fs::PermissionsExt;
    let modes = |shared: &str, by_git: bool| {
        let repo = Repo::new();
        repo.git(&["config", "core.sharedRepository", shared]);
        let first = repo.commit("main", "x");
        let name = RefName::branch("new/deep/ref");
        let tree = repo.git(&["rev-parse", "main^{tree}"]);
        let object = if by_git {
            repo.git(&["update-ref", "refs/heads/new/deep/ref", &first]);
            repo.git(&["commit-tree", "-m", "object", &tree])
        } else {
            let store = gix_store(&repo, false);
            compare_and_swap(&store, &name, Expected::Missing, id(&first), &by(), "").unwrap();
            let new =
                NewCommit { tree: id(&tree), parents: vec![], signature: by(), message: "object\n".into() };
            store.write_commit(&new).unwrap().to_string()
        };
        let folder = format!("objects/{}", &object[..2]);
        let file = format!("{folder}/{}", &object[2..]);
        ["refs/heads/new", "refs/heads/new/deep", "refs/heads/new/deep/ref", "logs/refs/heads/new/deep/ref"]
            .into_iter()
            .chain([folder.as_str(), file.as_str()])
            .map(|f| std::fs::metadata(repo.git_dir().join(f)).unwrap().permissions().mode())
            .map(|mode| format!("{mode:o}"))
            .collect::<Vec<_>>()
    };
    for shared in ["umask", "group", "all", "0600", "0640", "0664"] {
        assert_eq!(modes(shared, false), modes(shared, true), "{shared}");
    }
}

#[test]
fn what_gix_would_misread_is_refused() {
    if let Some(repo) = Repo::build().reftable().create() {
        let opened = GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &options(true));
        assert!(matches!(opened, Err(StoreError::Unsupported { .. })));
        let store = aynig::store::gix_store::open_store(
            &repo.git_dir(),
            Git::find(repo.env()).unwrap(),
            &options(true),
        );
        assert_eq!(store.unwrap().scan("refs/").unwrap(), []);
    }
    for setting in ["remote.origin.promisor", "extensions.partialClone", "extensions.newThing"] {
        let repo = Repo::new();
        repo.git(&["config", "core.repositoryFormatVersion", "1"]);
        repo.git(&["config", setting, "true"]);
        let opened = GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &options(true));
        assert!(matches!(opened, Err(StoreError::Unsupported { .. })), "{setting}");
    }
}

#[test]
fn a_child_gets_nothing_of_the_callers_git_environment() {
    let repo = Repo::new();
    let tip = repo.commit("work", "x");
    let mut env = repo.env();
    for (name, value) in [("GIT_DIR", "/nonexistent"), ("GIT_NAMESPACE", "x"), ("GIT_CONFIG_COUNT", "x")] {
        env.push((name.into(), value.into()));
    }
    let store = GitStore::open(Git::find(env).unwrap(), &repo.git_dir(), false).unwrap();
    assert_eq!(store.tip(&work()).unwrap(), Some(id(&tip)));
    assert!(Git::find([]).is_err());
}

/// One that waits for no lock.
pub(super) fn hasty(repo: &Repo) -> GixStore {
    let options = Options { lock_wait: Duration::ZERO, ..options(false) };
    GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &options).unwrap()
}

/// Kills a child that makes one swap just before the `when`-th of these system calls. `None` without
/// strace; `Some(false)` where it came to its end.
pub(super) fn killed_before(repo: &Repo, child: &str, calls: &str, when: usize) -> Option<bool> {
    let inner = child_test(child, &[]);
    let done = repo
        .command("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={calls}:signal=KILL:when={when}")])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("AYNIG_TEST_REPO", repo.path())
        .env("AYNIG_TEST_DURABLE", "yes")
        .output();
    match done {
        Ok(output) if output.status.success() => Some(false),
        Ok(output) if output.status.signal() == Some(9) => Some(true),
        Ok(_) | Err(_) => {
            skipped("strace is not here or may not trace");
            None
        }
    }
}

#[test]
fn a_runner_killed_anywhere_in_a_swap_blocks_nobody() {
    let repo = Repo::new();
    repo.commit("work", "x");
    let store = gix_store(&repo, false);
    let tree = id(&repo.empty_tree());
    let mut kills = 0;
    for calls in ["link,linkat", "rename,renameat,renameat2", "unlink,unlinkat", "fsync", "flock"] {
        for when in 1..100 {
            let before = store.tip(&work()).unwrap().unwrap();
            match killed_before(&repo, "store::suite::child_process", calls, when) {
                None => return,
                Some(false) => break,
                Some(true) => kills += 1,
            }
            // The old value, or a commit on top of it; and the next runner goes on at once.
            let after = store.tip(&work()).unwrap().unwrap();
            assert!(
                after == before || store.read_commit(after).unwrap().parents == [before],
                "{calls} {when}"
            );
            let message = format!("chore: after {calls} {when}\n").into_bytes();
            let new = NewCommit { tree, parents: vec![after], signature: by(), message };
            let new = store.write_commit(&new).unwrap();
            let swap = compare_and_swap(&hasty(&repo), &work(), Expected::At(after), new, &by(), LOG);
            assert_eq!(swap.unwrap(), Swap::Won, "{calls} {when}");
            locks::sweep_stale_locks(&repo.git_dir()).unwrap();
            assert!(locks::list_locks(&repo.git_dir()).unwrap().is_empty());
            assert_eq!(std::fs::read_dir(repo.git_dir().join("aynig/locks")).unwrap().count(), 0);
        }
    }
    assert!(kills >= 8, "{kills} points");
    repo.assert_sound();
}

/// The calls of a child that makes one swap, as strace tells them; `None` without strace.
fn traced(repo: &Repo, durable: &str) -> Option<Vec<String>> {
    let out = repo.home().join("trace");
    let inner = child_test("store::suite::child_process", &[]);
    let done = repo
        .command("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat", "-o"])
        .arg(&out)
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("AYNIG_TEST_REPO", repo.path())
        .env("AYNIG_TEST_DURABLE", durable)
        .output();
    let ran = done.is_ok_and(|o| o.status.success());
    if !ran {
        skipped("strace is not here or may not trace");
        return None;
    }
    let trace = std::fs::read_to_string(&out).unwrap();
    let kept = trace.lines().filter(|l| l.contains("sync(") || l.contains("link") || l.contains("rename"));
    Some(kept.map(|l| l.replace(&repo.git_dir().display().to_string(), "")).collect())
}

#[test]
fn everything_is_synced_in_order_before_a_swap_is_reported() {
    let repo = Repo::new();
    repo.commit("work", "x");
    let Some(trace) = traced(&repo, "yes") else { return };
    let hex = repo.git(&["rev-parse", "work"]);
    let (folder, file) = (format!("/objects/{}>", &hex[..2]), &hex[2..]);
    let at = |call: &str, what: &str| {
        let found = trace.iter().position(|l| l.contains(call) && l.contains(what));
        found.unwrap_or_else(|| panic!("no {call} of {what} in\n{}", trace.join("\n")))
    };
    // The object and the lock's content wait for the disk together; both before any process sees the lock.
    for first in [at("fsync(", file), at("fsync(", "/aynig/locks/")] {
        let steps = [first, at("link", "work.lock"), at("rename", "work.lock"), at("fsync(", "/refs/heads>")];
        assert!(steps.is_sorted(), "{steps:?}\n{}", trace.join("\n"));
    }
    assert!([at("fsync(", file), at("fsync(", &folder), at("link", "work.lock")].is_sorted());
    let Some(trace) = traced(&repo, "no") else { return };
    assert!(!trace.iter().any(|l| l.contains("sync(")), "{}", trace.join("\n"));
}
