//! What a swap meets where names, locks and other programs stand in its way, and what is left then.
//! Implements the proof of K11, K30, K43.

use crate::support::life::LONG;
use crate::support::net::Net;
use crate::support::{Repo, git_that, lock_of_a_killed_child};
use aynig::protocol::id::ObjectId;
use aynig::store::binary::GitStore;
use aynig::store::git_command::Git;
use aynig::store::gix_store::{GixStore, Options};
use aynig::store::memory::MemoryStore;
use aynig::store::repository::Repository;
use aynig::store::swap::{compare_and_swap, create_ref, delete_ref, put_ref};
use aynig::store::{
    Commit, Expected, NewCommit, Part, RefChange, RefName, Scan, Signature, Store, StoreError, Swap,
    TreeEntry,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn by() -> Signature {
    Signature { name: "Ada".into(), email: "ada@example.com".into(), seconds: 1_700_000_000 }
}

fn id(hex: &str) -> ObjectId {
    hex.parse().unwrap()
}

fn store(repo: &Repo) -> GixStore {
    store_with(repo, true, Duration::from_millis(100))
}

fn store_with(repo: &Repo, durable: bool, lock_wait: Duration) -> GixStore {
    let options = Options { durable, lock_wait, isolated: true };
    GixStore::open(&repo.path(), Git::find(repo.env()).unwrap(), &options).unwrap()
}

/// A branch that another process moves away and back again around the first attempts.
struct Flickering {
    memory: MemoryStore,
    away: Cell<usize>,
    attempts: Cell<usize>,
}

impl Store for Flickering {
    fn try_swaps(&self, changes: &[RefChange], by: &Signature, log: &str) -> Result<(), StoreError> {
        self.attempts.set(self.attempts.get() + 1);
        if self.away.get() > 0 {
            self.away.set(self.away.get() - 1);
            let RefChange { name, expected, .. } = changes[0].clone();
            return Err(StoreError::Moved { name, expected, found: None });
        }
        self.memory.try_swaps(changes, by, log)
    }

    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.memory.tip(name)
    }

    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError> {
        self.memory.scan_all(prefix)
    }

    fn history_ends_at(&self, id: ObjectId) -> Result<bool, StoreError> {
        self.memory.history_ends_at(id)
    }

    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        self.memory.read_commit(id)
    }

    fn read_tree(&self, id: ObjectId) -> Result<Vec<TreeEntry>, StoreError> {
        self.memory.read_tree(id)
    }

    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.memory.read_blob(id)
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        self.memory.blob_size(id)
    }

    fn write_part(&self, part: Part, content: &[u8]) -> Result<ObjectId, StoreError> {
        self.memory.write_part(part, content)
    }

    fn write_commit(&self, commit: &NewCommit) -> Result<ObjectId, StoreError> {
        self.memory.write_commit(commit)
    }
}

/// K11: a head that is as expected again is tried again; where that has no end the verdict is that there is none.
#[test]
fn a_head_that_was_elsewhere_for_a_moment_is_no_lost_race() {
    let work = RefName::branch("work");
    for (away, won) in [(1, true), (2, true), (1000, false)] {
        let memory = MemoryStore::new();
        let store = Flickering { memory: memory.clone(), away: Cell::new(away), attempts: Cell::new(0) };
        let write = |parents: &[ObjectId], message: &str| {
            let tree = id("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
            let new = NewCommit { tree, parents: parents.to_vec(), signature: by(), message: message.into() };
            store.write_commit(&new).unwrap()
        };
        let first = write(&[], "first\n");
        let next = write(&[first], "next\n");
        memory.force(&work, Some(first));
        let verdict = compare_and_swap(&store, &work, Expected::At(first), next, &by(), "").unwrap();
        if won {
            assert_eq!((verdict, store.attempts.get()), (Swap::Won, away + 1));
            assert_eq!(memory.tip(&work).unwrap(), Some(next));
        } else {
            assert!(matches!(verdict, Swap::Unknown { .. }), "{verdict:?}");
            assert!((2..20).contains(&store.attempts.get()), "{} attempts", store.attempts.get());
            assert_eq!(memory.tip(&work).unwrap(), Some(first));
        }
    }
}

/// K11: what is no ref, and stands in the folder that the ref's file would replace.
#[test]
fn a_file_in_the_refs_place_is_named_and_nothing_else_is_left() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let store = store(&repo);
    let place = repo.git_dir().join("refs/heads/a");
    std::fs::create_dir_all(place.join("empty")).unwrap();
    std::fs::write(place.join("b.lock"), "").unwrap();
    let name = RefName::branch("a");
    let refused = compare_and_swap(&store, &name, Expected::Missing, first, &by(), "").unwrap_err();
    assert!(matches!(&refused, StoreError::Io { .. }), "{refused:?}");
    assert!(refused.to_string().contains(&place.display().to_string()), "{refused}");
    assert_eq!(store.tip(&name).unwrap(), None);
    assert!(!repo.git_dir().join("refs/heads/a.lock").exists());
    assert!(place.join("b.lock").exists());
    // As soon as it is gone the name is free.
    std::fs::remove_file(place.join("b.lock")).unwrap();
    assert_eq!(compare_and_swap(&store, &name, Expected::Missing, first, &by(), "").unwrap(), Swap::Won);
    assert_eq!(repo.git(&["rev-parse", "a"]), first.to_string());
    repo.assert_sound();
}

/// K11: many who make the same folders at once, and a process that takes the empty ones away again, as Git does.
#[test]
fn folders_that_come_and_go_fail_no_swap() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let heads = repo.git_dir().join("refs/heads");
    let (makers, rounds) = (4, 300);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = std::fs::remove_dir(heads.join("a/b"));
                let _ = std::fs::remove_dir(heads.join("a"));
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let make = |maker: usize| {
            let store = store_with(&repo, false, Duration::from_secs(20));
            let name = RefName::branch(format!("a/b/{maker}"));
            let (by, path) = (by(), repo.git_dir().join(format!("refs/heads/a/b/{maker}")));
            move || {
                (0..rounds).for_each(|_| {
                    store.try_swap(&name, Expected::Missing, Some(first), &by, "").unwrap();
                    std::fs::remove_file(&path).unwrap();
                });
            }
        };
        let threads: Vec<_> = (0..makers).map(|maker| scope.spawn(make(maker))).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        over.store(true, Ordering::Relaxed);
        remover.join().unwrap();
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_eq!(repo.git(&["for-each-ref", "refs/heads/a"]), "");
    repo.assert_sound();
}

/// K43: who packs refs may still hold what was deleted; who never ends is reported, and is not robbed.
#[test]
fn a_deletion_waits_for_who_packs_and_says_whose_lock_stays() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let store = store(&repo);
    let run = RefName::new("refs/aynig/run/2f0c");
    let packed = repo.git_dir().join("packed-refs.lock");
    create_ref(&store, &run, first, &by(), "").unwrap();
    std::fs::write(&packed, "").unwrap();
    match store.try_swap(&run, Expected::At(first), None, &by(), "") {
        Err(StoreError::LockHeld { path, .. }) => {
            assert_eq!(path.canonicalize().unwrap(), packed.canonicalize().unwrap());
        }
        other => panic!("{other:?}"),
    }
    assert!(packed.exists());
    // The ref itself is gone, and that is the verdict.
    assert_eq!(delete_ref(&store, &run, first, &by()).unwrap(), Swap::Won);
    std::fs::remove_file(&packed).unwrap();
    // One that ends in time holds up nothing but the answer.
    create_ref(&store, &run, first, &by(), "").unwrap();
    std::fs::write(&packed, "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            std::fs::remove_file(&packed).unwrap();
        });
        let patient = store_with(&repo, true, LONG);
        patient.try_swap(&run, Expected::At(first), None, &by(), "").unwrap();
    });
    assert_eq!(repo.git(&["for-each-ref", "refs/aynig"]), "");
    repo.assert_sound();
}

/// K43: what a killed child left since the last sweep holds up no swap; another process's lock stays.
#[test]
fn a_swap_by_git_clears_what_a_killed_child_left() {
    let repo = Repo::new();
    let first = id(&repo.commit("work", "x"));
    let store = GitStore::open(Git::find(repo.env()).unwrap(), &repo.git_dir(), false).unwrap();
    let run = RefName::new("refs/aynig/run/2f0c");
    let lock = repo.git_dir().join("refs/aynig/run/2f0c.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    let verdict = create_ref(&store, &run, first, &by(), "");
    assert!(!matches!(verdict, Ok(Swap::Won)) && lock.exists(), "{verdict:?}");
    // Not yet old enough: waited for.
    let begun = Instant::now();
    lock_of_a_killed_child(&repo.git_dir(), &lock, 7);
    assert_eq!(create_ref(&store, &run, first, &by(), "").unwrap(), Swap::Won);
    assert!(!lock.exists() && begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
    repo.assert_sound();
}

/// K37, K43: in a partial clone too the lock of a killed runner is known by its twin, and no process waits for it.
#[test]
fn refs_of_a_partial_clone_are_moved_under_locks_that_are_known() {
    let repo = Repo::new();
    let (first, second) = (id(&repo.commit("work", "x")), id(&repo.commit("work", "y")));
    repo.git(&["config", "core.repositoryFormatVersion", "1"]);
    repo.git(&["config", "remote.origin.url", "/nonexistent"]);
    repo.git(&["config", "remote.origin.promisor", "true"]);
    let options = Options { durable: true, lock_wait: Duration::from_millis(100), isolated: true };
    let git = Git::find(repo.env()).unwrap();
    let store = aynig::store::gix_store::open_store(&repo.git_dir(), git, &options).unwrap();
    let (work, lock) = (RefName::branch("work"), repo.git_dir().join("refs/heads/work.lock"));
    let twin = repo.git_dir().join("aynig/locks/twin");
    std::fs::create_dir_all(twin.parent().unwrap()).unwrap();
    std::fs::write(&twin, "").unwrap();
    std::fs::hard_link(&twin, &lock).unwrap();
    store.try_swap(&work, Expected::At(second), Some(first), &by(), "back").unwrap();
    assert!(!lock.exists() && !twin.exists());
    assert_eq!(repo.git(&["rev-parse", "work"]).trim(), first.to_string());
    // Another process's lock stays.
    std::fs::write(&lock, "").unwrap();
    let held = store.try_swap(&work, Expected::At(first), Some(second), &by(), "");
    assert!(matches!(held, Err(StoreError::LockHeld { .. })) && lock.exists(), "{held:?}");
    std::fs::remove_file(&lock).unwrap();
    // Nothing that is not there is pointed at.
    let nowhere = id(&"1".repeat(40));
    assert!(store.try_swap(&work, Expected::At(first), Some(nowhere), &by(), "").is_err());
    repo.assert_sound();
}

/// K43: where one lock is for all refs, that of a child which lives is waited for; any other process's is reported.
#[test]
fn the_lock_of_all_refs_is_waited_for_while_a_child_of_ours_holds_it() {
    let Some(repo) = Repo::build().reftable().create() else { return };
    let first = id(&repo.commit("work", "x"));
    let store = GitStore::open(Git::find(repo.env()).unwrap(), &repo.git_dir(), false).unwrap();
    let run = RefName::new("refs/aynig/run/2f0c");
    let lock = repo.git_dir().join("reftable/tables.list.lock");
    std::fs::write(&lock, "").unwrap();
    let held = create_ref(&store, &run, first, &by(), "");
    assert!(matches!(held, Err(StoreError::LockHeld { .. })), "{held:?}");
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let note = repo.git_dir().join("aynig/children/note");
    std::fs::create_dir_all(note.parent().unwrap()).unwrap();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let may = repo.git_dir().join("reftable");
    let told = format!("begun {}\nlife 3600\nlock {}\0\npid {}\n", since - 60, may.display(), child.id());
    std::fs::write(&note, told).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(4));
            std::fs::remove_file(&lock).unwrap();
        });
        assert_eq!(create_ref(&store, &run, first, &by(), "").unwrap(), Swap::Won);
    });
    child.kill().unwrap();
    child.wait().unwrap();
    repo.assert_sound();
}

/// K11, K37: where Git lists nothing because it can't read a table, no ref is taken for gone.
#[test]
fn a_table_that_cant_be_read_is_no_missing_ref() {
    let Some(repo) = Repo::build().reftable().create() else { return };
    let first = id(&repo.commit("work", "x"));
    let (work, tables) = (RefName::branch("work"), repo.git_dir().join("reftable/tables.list"));
    // A `git` that has the table right once it has failed at it. In one step, as Git does it: a list that is empty for a
    // moment says that there is no ref.
    let aside = tables.with_file_name("aside");
    let script = format!(
        "\"$real\" \"$@\"; code=$?\ncase \" $* \" in *' show-ref '*) [ ! -e '{0}' ] || mv '{0}' '{1}' ;; esac\nexit $code",
        aside.display(),
        tables.display()
    );
    let mut env = repo.env();
    let (_, path) = env.iter_mut().find(|(name, _)| name == "PATH").unwrap();
    *path = git_that(&repo.home(), &script);
    let store = GitStore::open(Git::find(env).unwrap(), &repo.git_dir(), false).unwrap();
    let good = std::fs::read_to_string(&tables).unwrap();
    std::fs::write(&tables, format!("{good}0x000000000001-0x000000000009-deadbeef.ref\n")).unwrap();
    assert_eq!(repo.git(&["for-each-ref"]), "", "otherwise there is nothing to show");
    let read = store.tip(&work);
    assert!(matches!(read, Err(StoreError::UnreadableRef { .. })), "{read:?}");
    std::fs::write(&aside, &good).unwrap();
    assert_eq!(store.tip(&work).unwrap(), Some(first));
    assert!(!aside.exists());
    assert_eq!(store.tip(&RefName::branch("other")).unwrap(), None);
}

/// K43: the same, of a fetch.
#[test]
fn a_fetch_clears_what_a_killed_child_left() {
    let net = Net::new(&[]);
    let machine = net.machine("a");
    let remote = Repository::discover(&machine.dir, None).unwrap().open_remote("origin", false).unwrap();
    let git_dir = machine.dir.join(".git");
    let lock = git_dir.join("refs/aynig/remote/origin/work.lock");
    for age in [55, 7] {
        let seen = net.event("work", "build", &format!("x-age: {age}"));
        lock_of_a_killed_child(&git_dir, &lock, age);
        remote.refresh().unwrap();
        assert_eq!(remote.known_tip(&RefName::branch("work")).unwrap(), Some(id(&seen)));
        assert!(!lock.exists());
    }
}

/// K43: what Git writes `packed-refs` anew in is no lock by its name, and keeps everyone out as one does.
#[test]
fn what_a_killed_child_packed_refs_into_goes_too() {
    if which::which("strace").is_err() {
        return crate::support::skipped("strace is not installed");
    }
    let net = Net::new(&[]);
    net.event("gone", "draft", "");
    net.event("work", "draft", "");
    let machine = net.machine("a");
    machine.run(&["status", "--remote", "origin"]).expect(0);
    machine.git(&["pack-refs", "--all"]);
    net.git(&["update-ref", "-d", "refs/heads/gone"]);
    let [new, lock] = ["packed-refs.new", "packed-refs.lock"].map(|name| machine.dir.join(".git").join(name));
    let mut strace = machine.net.life.repo.command("strace");
    strace.current_dir(&machine.dir).args(["-qqq", "-f", "-o", "/dev/null", "-P"]).arg(&new);
    strace.args(["-e", "trace=rename", "-e", "inject=rename:signal=SIGKILL:when=1"]);
    strace.arg(crate::support::life::BIN).args(["status", "--remote", "origin"]).output().unwrap();
    assert!(new.exists() && lock.exists(), "the fetch was killed while it packed refs");
    let said = machine.run(&["doctor"]).stdout;
    assert!(!said.contains("somebody else"), "{said}");
    // It waits until what was left is old enough.
    machine.run(&["status", "--remote", "origin"]).expect(0);
    assert!(!new.exists() && !lock.exists());
    assert_eq!(machine.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/remote/origin/gone"]), "");
    // Another program's is named with what removes it.
    std::fs::write(&new, "").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::options().write(true).open(&new).unwrap().set_modified(old).unwrap();
    let said = machine.run(&["doctor"]).expect(1).stdout;
    let remove = format!("rm '{}'", new.display());
    assert!(said.contains("packed-refs.new' is held by another process") && said.contains(&remove), "{said}");
}

/// K11: a ref that is where it should be is not written again.
#[test]
fn a_ref_that_is_there_needs_no_lock() {
    let repo = Repo::new();
    let (first, second) = (id(&repo.commit("work", "x")), id(&repo.commit("work", "y")));
    let store = store(&repo);
    let run = RefName::new("refs/aynig/run/2f0c");
    assert_eq!(put_ref(&store, &run, first, &by(), "").unwrap(), Swap::Won);
    std::fs::write(repo.git_dir().join("refs/aynig/run/2f0c.lock"), "").unwrap();
    assert_eq!(put_ref(&store, &run, first, &by(), "").unwrap(), Swap::Won);
    let held = put_ref(&store, &run, second, &by(), "");
    assert!(!matches!(held, Ok(Swap::Won)), "{held:?}");
}

/// K30: a shallow clone's history ends where that clone says.
#[test]
fn a_shallow_history_ends_where_it_was_cut() {
    let net = Net::new(&[]);
    let (below, tip) = (net.event("work", "one", ""), net.event("work", "two", ""));
    let machine = net.clone_as("a", &["--depth", "1", "--branch", "work"]);
    let remote = Repository::discover(&machine.dir, None).unwrap().open_remote("origin", false).unwrap();
    assert!(remote.history_ends_at(id(&tip)).unwrap());
    assert!(!remote.history_ends_at(id(&below)).unwrap());
}

/// K30: a branch that is deleted between the answer and the fetch is gone; a fetch that fails says why.
#[test]
fn a_branch_that_goes_away_before_it_is_fetched_is_gone() {
    let net = Net::new(&[]);
    net.event("work", "build", "");
    let work = RefName::branch("work");
    for (then, gone) in [("git update-ref -d refs/heads/work", true), ("exit 1", false)] {
        let machine = net.machine(if gone { "a" } else { "b" });
        net.event("work", "more", "");
        // Answers the first question as it is, and meets the second one so.
        let script = machine.dir.join("upload");
        let text = format!(
            "#!/bin/sh\ncd \"${{0%/*}}\"; n=$(cat calls 2>/dev/null)x; echo $n >calls\n\
             [ $n != xx ] || (cd \"$1\" && {then}) || exit\nexec git-upload-pack \"$@\"\n"
        );
        crate::support::write_program(&script, &text);
        machine.git(&["config", "remote.origin.uploadpack", &format!("'{}'", script.display())]);
        let remote = Repository::discover(&machine.dir, None).unwrap().open_remote("origin", false).unwrap();
        let tip = remote.tip(&work);
        if gone {
            assert_eq!(tip.unwrap(), None);
        } else {
            assert!(matches!(&tip, Err(StoreError::Remote { what: "fetch from", .. })), "{tip:?}");
        }
    }
}

/// K30: branches of a remote have their own names; refs of the runner's own are this repository's.
#[test]
fn a_remotes_branches_are_listed_by_their_own_names() {
    let net = Net::new(&[]);
    let seen = net.event("deep/work", "build", "");
    let main = net.rev("main");
    let machine = net.machine("a");
    // This repository's own branch of that name is somewhere else.
    machine.git(&["branch", "deep/work", &main]);
    let repo = Repository::discover(&machine.dir, None).unwrap();
    let remote = repo.open_remote("origin", false).unwrap();
    remote.refresh().unwrap();
    let own = RefName::new("refs/aynig/run/2f0c");
    create_ref(&*remote, &own, id(&main), &by(), "").unwrap();
    let all = [(RefName::branch("deep/work"), id(&seen)), (RefName::branch("main"), id(&main))];
    assert_eq!(remote.scan("refs/heads/").unwrap(), all);
    assert_eq!(remote.scan("refs/heads/deep/").unwrap(), all[..1]);
    assert_eq!(remote.scan("refs/aynig/run/").unwrap(), [(own, id(&main))]);
    assert_eq!(net.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]), "");
    let heads = remote.read_heads("refs/heads/").unwrap();
    let heads: Vec<_> = heads.heads.into_iter().map(|(name, commit)| (name, commit.id)).collect();
    assert_eq!(heads, all);
}
