//! Several refs that move as one, over every store: all or nothing before the first move, the branch first, and what a
//! kill between two moves leaves. Implements the proof of K11, K37, K42, K43, K44.

use super::suite::{ALL, FILES, How, LOG, World, by, gix_store, hasty, id, killed_before, options, work};
use crate::support::{Repo, lock_of_a_killed_child};
use aynig::protocol::id::ObjectId;
use aynig::store::git_command::Git;
use aynig::store::gix_store::{GixStore, Options};
use aynig::store::locks;
use aynig::store::memory::Failure;
use aynig::store::swap::{compare_and_swap, compare_and_swap_with, create_ref, delete_ref};
use aynig::store::{Expected, NewCommit, RefChange, RefName, Store, StoreError, Swap};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

const ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";

fn inbox(branch: &str) -> RefName {
    RefName::new(format!("refs/aynig/inbox/{branch}/message/{ID}"))
}

fn heard() -> RefName {
    RefName::new(format!("refs/aynig/heard/{ID}"))
}

/// A message that waits for `work`, and what delivers it.
struct Scene {
    head: ObjectId,
    message: ObjectId,
    delivery: ObjectId,
    moves: Vec<RefChange>,
}

impl Scene {
    fn new(w: &World) -> Self {
        let head = w.start(&work());
        let message = w.commit(&[]);
        assert_eq!(create_ref(&*w.store, &inbox("work"), message, &by(), "").unwrap(), Swap::Won);
        let delivery = w.commit(&[head, message]);
        let moves = vec![RefChange::create(heard(), message), RefChange::delete(inbox("work"), message)];
        Self { head, message, delivery, moves }
    }

    fn deliver(&self, store: &dyn Store) -> Result<Swap, StoreError> {
        let at = Expected::At(self.head);
        compare_and_swap_with(store, &work(), at, self.delivery, &self.moves, &by(), LOG)
    }

    #[track_caller]
    fn assert_waits(&self, w: &World) {
        w.assert_tip(&work(), Some(self.head));
        w.assert_tip(&heard(), None);
        w.assert_tip(&inbox("work"), Some(self.message));
        if let Some(repo) = &w.repo {
            assert_no_lock(repo);
        }
    }

    #[track_caller]
    fn assert_delivered(&self, w: &World) {
        w.assert_tip(&work(), Some(self.delivery));
        w.assert_tip(&heard(), Some(self.message));
        w.assert_tip(&inbox("work"), None);
    }
}

#[track_caller]
fn assert_no_lock(repo: &Repo) {
    let found = locks::list_locks(&repo.git_dir()).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let twins = repo.git_dir().join("aynig/locks");
    assert_eq!(std::fs::read_dir(twins).map_or(0, Iterator::count), 0);
}

/// Puts a ref where another process does.
fn force(w: &World, name: &RefName, at: Option<ObjectId>) {
    match (&w.repo, at) {
        (Some(repo), Some(at)) => {
            repo.git(&["update-ref", &String::from_utf8_lossy(name.as_bytes()), &at.to_string()]);
        }
        (Some(repo), None) => {
            repo.git(&["update-ref", "-d", &String::from_utf8_lossy(name.as_bytes())]);
        }
        (None, at) => w.memory.force(name, at),
    }
}

#[test]
fn a_branch_and_other_refs_move_as_one() {
    World::each(&ALL, |w| {
        let scene = Scene::new(w);
        assert_eq!(scene.deliver(&*w.store).unwrap(), Swap::Won, "{:?}", w.how);
        scene.assert_delivered(w);
        // Asked again: won already, and nothing else is touched.
        assert_eq!(scene.deliver(&*w.store).unwrap(), Swap::Won, "{:?}", w.how);
        scene.assert_delivered(w);
        if let Some(repo) = &w.repo {
            assert_no_lock(repo);
            assert!(!repo.git_dir().join("refs/aynig/inbox/work").exists(), "{:?}", w.how);
        }
    });
}

/// K11: whichever of the refs does not hold what it should, none of them moves.
#[test]
fn one_ref_that_was_moved_keeps_all_where_they_are() {
    World::each(&ALL, |w| {
        let scene = Scene::new(w);
        let other = w.commit(&[scene.head]);
        // The branch: a race that is lost.
        force(w, &work(), Some(other));
        assert_eq!(scene.deliver(&*w.store).unwrap(), Swap::Lost { tip: Some(other) }, "{:?}", w.how);
        force(w, &work(), Some(scene.head));
        scene.assert_waits(w);
        // Another ref: an error that names it.
        let taken_by_others = [
            (heard(), Some(other), None),
            (inbox("work"), Some(other), Some(scene.message)),
            (inbox("work"), None, Some(scene.message)),
        ];
        for (name, found, before) in taken_by_others {
            force(w, &name, found);
            match scene.deliver(&*w.store) {
                Err(StoreError::Moved { name: moved, found: at, .. }) => {
                    assert_eq!((&moved, at), (&name, found), "{:?}", w.how);
                }
                other => panic!("{:?} {name:?}: {other:?}", w.how),
            }
            w.assert_tip(&name, found);
            force(w, &name, before);
            scene.assert_waits(w);
        }
        // A commit that is not here.
        let mut moves = scene.moves.clone();
        moves[0].new = Some(id(&"1".repeat(scene.head.to_string().len())));
        let at = Expected::At(scene.head);
        let refused = compare_and_swap_with(&*w.store, &work(), at, scene.delivery, &moves, &by(), LOG);
        assert!(matches!(refused, Err(StoreError::Object { .. })), "{:?} {refused:?}", w.how);
        scene.assert_waits(w);
    });
}

#[test]
fn what_can_not_be_moved_as_one_is_refused_before_anything_moves() {
    World::each(&ALL, |w| {
        let scene = Scene::new(w);
        let of = |changes: &[RefChange]| w.store.try_swaps(changes, &by(), LOG).unwrap_err();
        let is_refused = |error: &StoreError| matches!(error, StoreError::RefusedName { .. });
        let forward =
            RefChange { name: work(), expected: Expected::At(scene.head), new: Some(scene.delivery) };
        assert!(is_refused(&of(&[forward.clone(), forward.clone()])), "{:?}", w.how);
        let gone = RefChange::delete(work(), scene.head);
        assert!(is_refused(&of(&[gone, scene.moves[0].clone()])), "{:?}", w.how);
        let odd = RefChange::create(RefName::new("refs/aynig/heard/a b"), scene.message);
        assert!(is_refused(&of(&[forward.clone(), odd])), "{:?}", w.how);
        // Two that are new, of which one would be the other's folder.
        let below = RefChange::create(RefName::new(format!("refs/aynig/heard/{ID}/x")), scene.message);
        let both = of(&[forward, scene.moves[0].clone(), below]);
        assert!(matches!(both, StoreError::NameConflict { .. }), "{:?} {both:?}", w.how);
        scene.assert_waits(w);
        w.store.try_swaps(&[], &by(), LOG).unwrap();
    });
}

/// K43: a lock that one of them has keeps all where they are, and leaves no lock of ours.
#[test]
fn a_lock_on_one_of_them_stops_all() {
    World::each(&FILES[..3], |w| {
        let scene = Scene::new(w);
        let options = Options { lock_wait: Duration::from_millis(30), ..options(true) };
        let store = GixStore::open(&w.repo().path(), Git::find(w.repo().env()).unwrap(), &options).unwrap();
        for name in [work(), heard(), inbox("work")] {
            let path = w.repo().git_dir().join(String::from_utf8(name.as_bytes().to_vec()).unwrap());
            let lock = PathBuf::from(format!("{}.lock", path.display()));
            std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
            std::fs::write(&lock, "").unwrap();
            let held = scene.deliver(&store).unwrap_err();
            assert!(matches!(&held, StoreError::LockHeld { name: held, .. } if *held == name), "{held:?}");
            assert!(lock.exists(), "it is somebody else's");
            std::fs::remove_file(&lock).unwrap();
            scene.assert_waits(w);
            // One that a killed runner of ours left holds no process up.
            let twin = w.repo().git_dir().join("aynig/locks/twin");
            std::fs::write(&twin, "").unwrap();
            std::fs::hard_link(&twin, &lock).unwrap();
            store.try_swaps(&scene.moves, &by(), "").unwrap();
            let back =
                [RefChange::delete(heard(), scene.message), RefChange::create(inbox("work"), scene.message)];
            store.try_swaps(&back, &by(), "").unwrap();
            if name == work() {
                assert_eq!(locks::sweep_stale_locks(&w.repo().git_dir()).unwrap().len(), 1);
            }
            scene.assert_waits(w);
        }
        assert_eq!(scene.deliver(&store).unwrap(), Swap::Won);
        scene.assert_delivered(w);
    });
}

/// A message of one branch has the name of another branch's inbox only where that branch is named for it.
#[test]
fn inboxes_of_branches_with_like_names_stand_beside_each_other() {
    World::each(&ALL, |w| {
        let create = |name: &RefName| {
            let message = w.commit(&[]);
            create_ref(&*w.store, name, message, &by(), "").map(|verdict| (verdict, message))
        };
        let names = ["a", "a/message", "a/message/b", "a/answer/message", "message", "ümläut/x"].map(inbox);
        let messages = names.each_ref().map(|name| create(name).unwrap().1);
        assert_eq!(w.store.scan("refs/aynig/inbox/").unwrap().len(), names.len(), "{:?}", w.how);
        assert_eq!(w.store.scan("refs/aynig/inbox/a/").unwrap().len(), 4, "{:?}", w.how);
        // The one name that is taken says by which.
        let nested = inbox(&format!("a/message/{ID}"));
        let refused = create(&nested);
        let by_a = matches!(&refused, Err(StoreError::NameConflict { other, .. }) if *other == names[0]);
        assert!(by_a, "{:?} {refused:?}", w.how);
        let change = RefChange::delete(names[0].clone(), messages[0]);
        assert_eq!(delete_ref(&*w.store, &change.name, messages[0], &by()).unwrap(), Swap::Won);
        let (verdict, message) = create(&nested).unwrap();
        assert_eq!(verdict, Swap::Won, "{:?}", w.how);
        // And the other way round; each goes by itself, and leaves no folder that is in the way.
        let refused = create(&names[0]);
        assert!(matches!(refused, Err(StoreError::NameConflict { .. })), "{:?} {refused:?}", w.how);
        assert_eq!(delete_ref(&*w.store, &nested, message, &by()).unwrap(), Swap::Won);
        for (name, message) in names.iter().zip(messages).skip(1) {
            assert_eq!(delete_ref(&*w.store, name, message, &by()).unwrap(), Swap::Won, "{:?}", w.how);
        }
        assert!(w.store.scan("refs/aynig/").unwrap().is_empty(), "{:?}", w.how);
        if let Some(repo) = w.repo.as_ref().filter(|_| w.how != How::Git) {
            assert!(!repo.git_dir().join("refs/aynig/inbox/a").exists(), "{:?}", w.how);
        }
    });
}

#[test]
fn only_what_is_ours_below_an_inbox_is_deleted() {
    let own = ["work/message/x", "a/b/answer/x", "x", "a/message/b/message/x"];
    let foreign = ["", "work/message", "a//b/c", "../../heads/x", "a/b/c.lock", "a b/message/x"];
    for below in own {
        assert!(RefName::new(format!("refs/aynig/inbox/{below}")).is_own(), "{below}");
    }
    for below in foreign {
        assert!(!RefName::new(format!("refs/aynig/inbox/{below}")).is_own(), "{below}");
    }
    for name in
        ["refs/heads/inbox/a/message/x", "refs/aynig/inboxes/a/message/x", "refs/aynig/run/a/message/x"]
    {
        assert!(!RefName::new(name).is_own(), "{name}");
    }
}

/// `git gc` packs these refs too.
#[test]
fn what_was_packed_is_moved_with_the_others() {
    World::each(&FILES, |w| {
        for again in [false, true] {
            let branch = RefName::branch(format!("packed-{again}"));
            let head = w.start(&branch);
            let ids: Vec<RefName> =
                (0..5).map(|n| RefName::new(format!("refs/aynig/inbox/{branch}/message/{n}"))).collect();
            let messages: Vec<ObjectId> = ids.iter().map(|_| w.commit(&[])).collect();
            let waits = ids.iter().zip(&messages);
            let create: Vec<_> = waits.clone().map(|(n, m)| RefChange::create(n.clone(), *m)).collect();
            w.store.try_swaps(&create, &by(), LOG).unwrap();
            w.repo().git(&["pack-refs", "--all"]);
            if again {
                // Packed, and in a file with a newer value.
                let newer = RefChange {
                    name: ids[1].clone(),
                    expected: Expected::At(messages[1]),
                    new: Some(messages[0]),
                };
                w.store.try_swaps(&[newer], &by(), LOG).unwrap();
            }
            let at = |n: usize| if again && n == 1 { messages[0] } else { messages[n] };
            let gone: Vec<_> =
                ids.iter().enumerate().map(|(n, name)| RefChange::delete(name.clone(), at(n))).collect();
            let next = w.commit(&[head]);
            let won = compare_and_swap_with(&*w.store, &branch, Expected::At(head), next, &gone, &by(), LOG);
            assert_eq!(won.unwrap(), Swap::Won, "{:?}", w.how);
            w.assert_tip(&branch, Some(next));
            assert!(w.store.scan("refs/aynig/").unwrap().is_empty(), "{:?}", w.how);
            assert_eq!(w.repo().git(&["for-each-ref", "refs/aynig"]), "", "{:?}", w.how);
        }
    });
}

/// K11: of many that deliver the same message one does, and no process waits for ever whatever the order of the names.
#[test]
fn of_many_deliveries_of_one_message_exactly_one_is_made() {
    let deliver = |w: &World, runners: usize| {
        let scene = Scene::new(w);
        let barrier = Barrier::new(runners);
        let won: usize = std::thread::scope(|scope| {
            let start = |at: usize| {
                let delivery = w.commit(&[scene.head, scene.message]);
                let (store, barrier, scene) = (w.another(), &barrier, &scene);
                let mut moves = scene.moves.clone();
                if at.is_multiple_of(2) {
                    moves.reverse();
                }
                scope.spawn(move || {
                    barrier.wait();
                    let at = Expected::At(scene.head);
                    match compare_and_swap_with(&*store, &work(), at, delivery, &moves, &by(), LOG) {
                        Ok(Swap::Won) => 1,
                        Ok(Swap::Lost { tip: Some(_) }) | Err(StoreError::Moved { .. }) => 0,
                        other => panic!("{other:?}"),
                    }
                })
            };
            let running: Vec<_> = (0..runners).map(start).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1, "{:?}", w.how);
        w.assert_tip(&heard(), Some(scene.message));
        w.assert_tip(&inbox("work"), None);
    };
    World::each(&[How::Gix, How::GixSha256, How::Memory], |w| deliver(w, 16));
    World::each(&[How::GitReftable], |w| deliver(w, 6));
}

/// K11: the verdict is the branch's, whatever became of the answer.
#[test]
fn a_lost_answer_is_judged_by_the_branch() {
    let w = World::new(How::Memory).unwrap();
    let scene = Scene::new(&w);
    w.memory.fail_next(Failure::FailsAfter(Box::new(|_| {})));
    assert!(scene.deliver(&*w.store).is_err());
    scene.assert_waits(&w);
    w.memory.fail_next(Failure::LockHeld);
    assert!(matches!(scene.deliver(&*w.store), Err(StoreError::LockHeld { .. })));
    w.memory.fail_next(Failure::LostAnswer);
    assert_eq!(scene.deliver(&*w.store).unwrap(), Swap::Won);
    scene.assert_delivered(&w);
}

/// K43: where one lock is for all refs, what a killed child left is cleared for a transaction too.
#[test]
fn a_transaction_clears_what_a_killed_child_left() {
    World::each(&[How::GitReftable], |w| {
        let scene = Scene::new(w);
        let lock = w.repo().git_dir().join("reftable/tables.list.lock");
        std::fs::write(&lock, "").unwrap();
        lock_of_a_killed_child(&w.repo().git_dir(), &lock, 11);
        assert_eq!(scene.deliver(&*w.store).unwrap(), Swap::Won);
        scene.assert_delivered(w);
    });
}

/// Not a fact: a process of its own that delivers the one message that waits for `work`.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os("AYNIG_TEST_REPO").map(PathBuf::from) else { return };
    let store = GixStore::open(&path, Git::find_here().unwrap(), &options(true)).unwrap();
    let head = store.tip(&work()).unwrap().unwrap();
    let (name, message) = store.scan("refs/aynig/inbox/work/").unwrap().remove(0);
    let new = NewCommit {
        tree: store.read_commit(head).unwrap().tree,
        parents: vec![head, message],
        signature: by(),
        message: b"chore: deliver\n".to_vec(),
    };
    let new = store.write_commit(&new).unwrap();
    let heard =
        RefName::new([b"refs/aynig/heard/", name.as_bytes().rsplit(|b| *b == b'/').next().unwrap()].concat());
    let moves = [RefChange::create(heard, message), RefChange::delete(name, message)];
    let won = compare_and_swap_with(&store, &work(), Expected::At(head), new, &moves, &by(), LOG).unwrap();
    assert_eq!(won, Swap::Won);
}

/// K42, K43: a kill at any call leaves a message that waits, or a branch that has it; never a message that is gone
/// from both, nor one that counts as heard and is not on the branch. And no process is held up by it.
#[test]
fn killed_anywhere_in_a_transaction_nothing_is_lost() {
    let repo = Repo::new();
    repo.commit("work", "x");
    let store = gix_store(&repo, false);
    let tree = id(&repo.empty_tree());
    let (mut kills, mut halves, mut sent) = (0, 0, 0);
    for calls in ["link,linkat", "rename,renameat,renameat2", "unlink,unlinkat,rmdir", "fsync", "flock"] {
        for when in 1..200 {
            sent += 1;
            let message =
                NewCommit { tree, parents: vec![], signature: by(), message: format!("m {sent}\n").into() };
            let message = store.write_commit(&message).unwrap();
            let waits = RefName::new(format!("refs/aynig/inbox/work/message/{sent}"));
            let heard = RefName::new(format!("refs/aynig/heard/{sent}"));
            create_ref(&store, &waits, message, &by(), "").unwrap();
            let before = store.tip(&work()).unwrap().unwrap();
            let killed = match killed_before(&repo, "store::together::child_process", calls, when) {
                None => return,
                Some(killed) => killed,
            };
            let head = store.tip(&work()).unwrap().unwrap();
            let is_on_branch = head != before;
            if is_on_branch {
                assert_eq!(store.read_commit(head).unwrap().parents, [before, message], "{calls} {when}");
            }
            let (is_waiting, is_heard) =
                (store.tip(&waits).unwrap().is_some(), store.tip(&heard).unwrap().is_some());
            assert!(is_on_branch || is_waiting && !is_heard, "{calls} {when}: it waits, or it is there");
            assert!(is_heard || is_waiting, "{calls} {when}: one ref keeps it");
            halves += usize::from(is_on_branch && is_waiting);
            // Who comes next takes off what the branch has, or delivers it, at once.
            let hasty = hasty(&repo);
            let all = [
                (!is_heard).then(|| RefChange::create(heard.clone(), message)),
                is_waiting.then(|| RefChange::delete(waits.clone(), message)),
            ];
            let moves: Vec<RefChange> = all.into_iter().flatten().collect();
            if is_on_branch {
                hasty.try_swaps(&moves, &by(), "").unwrap();
            } else {
                let new = NewCommit {
                    tree,
                    parents: vec![before, message],
                    signature: by(),
                    message: format!("again {sent}\n").into(),
                };
                let new = store.write_commit(&new).unwrap();
                let at = Expected::At(before);
                let won = compare_and_swap_with(&hasty, &work(), at, new, &moves, &by(), LOG).unwrap();
                assert_eq!(won, Swap::Won, "{calls} {when}");
            }
            assert_eq!(store.tip(&heard).unwrap(), Some(message));
            assert_eq!(store.tip(&waits).unwrap(), None);
            locks::sweep_stale_locks(&repo.git_dir()).unwrap();
            assert_no_lock(&repo);
            if !killed {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills >= 20 && halves >= 3, "{kills} kills, {halves} between two moves");
    assert!(Path::new(&repo.git_dir().join("refs/heads/work")).exists());
    repo.assert_sound();
}

/// Two who answer one question: each makes the answer and takes the question away, and one of them does.
#[test]
fn of_two_that_take_the_same_ref_away_one_does() {
    World::each(&ALL, |w| {
        let asked = RefName::new(format!("refs/aynig/asked/{ID}"));
        let answer = RefName::new(format!("refs/aynig/inbox/work/answer/{ID}"));
        let question = w.commit(&[]);
        create_ref(&*w.store, &asked, question, &by(), "").unwrap();
        let give = |text: ObjectId| {
            let others = [RefChange::delete(asked.clone(), question)];
            compare_and_swap_with(&*w.store, &answer, Expected::Missing, text, &others, &by(), LOG)
        };
        let (yes, no) = (w.commit(&[]), w.commit(&[]));
        assert_eq!(give(yes).unwrap(), Swap::Won, "{:?}", w.how);
        assert_eq!(give(no).unwrap(), Swap::Lost { tip: Some(yes) }, "{:?}", w.how);
        // Taken in already: the question is gone, and says so.
        assert_eq!(delete_ref(&*w.store, &answer, yes, &by()).unwrap(), Swap::Won);
        let late = give(no);
        let gone = matches!(&late, Err(StoreError::Moved { name, found: None, .. }) if *name == asked);
        assert!(gone, "{:?} {late:?}", w.how);
        w.assert_tip(&answer, None);
        let plain = compare_and_swap(&*w.store, &answer, Expected::Missing, no, &by(), LOG);
        assert_eq!(plain.unwrap(), Swap::Won);
    });
}
