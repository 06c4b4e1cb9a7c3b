//! Refs of a remote that all machines share, and several of them that move by one push. Implements the proof of K11,
//! K12, K30, K31, K32.

use super::daemon::{Relay, serve};
use crate::support::life::eventually;
use crate::support::net::{Machine, Net};
use aynig::protocol::id::ObjectId;
use aynig::store::repository::Repository;
use aynig::store::swap::{compare_and_swap_with, create_ref, delete_ref};
use aynig::store::{Expected, RefChange, RefName, RemoteFailure, Signature, Store, StoreError, Swap};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";

fn by() -> Signature {
    Signature { name: "Ada".into(), email: "ada@example.com".into(), seconds: 1_700_000_000 }
}

fn id(hex: &str) -> ObjectId {
    hex.parse().unwrap()
}

fn work() -> RefName {
    RefName::branch("work")
}

fn waits() -> RefName {
    RefName::new(format!("refs/aynig/inbox/work/message/{ID}"))
}

fn heard() -> RefName {
    RefName::new(format!("refs/aynig/heard/{ID}"))
}

fn store(machine: &Machine<'_>) -> Box<dyn Store> {
    let store = Repository::discover(&machine.dir, None).unwrap().open_remote("origin", false).unwrap();
    store.set_patience(Duration::from_secs(30));
    store
}

/// A commit that changes nothing, in a clone.
fn write(machine: &Machine<'_>, text: &str, parents: &[&str]) -> String {
    let tree = machine.git(&["rev-parse", "main^{tree}"]);
    let mut args = vec!["commit-tree", "-m", text];
    parents.iter().for_each(|parent| args.extend(["-p", parent]));
    args.push(&tree);
    machine.git(&args)
}

/// A branch on the remote, a message that waits for it, and what delivers that.
struct Scene {
    head: ObjectId,
    message: ObjectId,
}

impl Scene {
    /// Sent from this machine.
    fn new(net: &Net, from: &Machine<'_>) -> Self {
        let head = id(&net.event("work", "build", ""));
        let message = id(&write(from, "hello", &[]));
        assert_eq!(create_ref(&*store(from), &waits(), message, &by(), "").unwrap(), Swap::Won);
        assert_eq!(there(net, &waits()), Some(message));
        Self { head, message }
    }

    fn moves(&self) -> [RefChange; 2] {
        [RefChange::create(heard(), self.message), RefChange::delete(waits(), self.message)]
    }

    /// Delivered by this machine, which hears of both first.
    fn deliver(&self, on: &Machine<'_>, store: &dyn Store, text: &str) -> Result<Swap, StoreError> {
        let new = id(&write(on, text, &[&self.head.to_string(), &self.message.to_string()]));
        let at = Expected::At(self.head);
        compare_and_swap_with(store, &work(), at, new, &self.moves(), &by(), "aynig: deliver")
    }

    #[track_caller]
    fn assert_waits(&self, net: &Net) {
        assert_eq!(there(net, &work()), Some(self.head));
        assert_eq!((there(net, &heard()), there(net, &waits())), (None, Some(self.message)));
    }

    #[track_caller]
    fn assert_delivered(&self, net: &Net) {
        assert_eq!((there(net, &heard()), there(net, &waits())), (Some(self.message), None));
        let parents = net.git(&["log", "-1", "--format=%P", "work"]);
        assert_eq!(parents, format!("{} {}", self.head, self.message));
    }
}

/// What the remote has.
fn there(net: &Net, name: &RefName) -> Option<ObjectId> {
    let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
    let all = net.git(&["for-each-ref", "--format=%(objectname) %(refname)", &name]);
    all.lines()
        .find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name))
        .map(|(hex, _)| id(hex))
}

fn names(scan: aynig::store::Scan) -> Vec<RefName> {
    assert!(scan.unreadable.is_empty());
    scan.refs.into_iter().map(|(name, _)| name).collect()
}

/// K12, K30: what one machine sent another one hears of and delivers, by one push.
#[test]
fn a_message_that_was_sent_elsewhere_is_delivered_by_one_push() {
    let net = Net::new(&[]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let scene = Scene::new(&net, &a);
    let (here, elsewhere) = (store(&b), store(&a));
    assert_eq!(names(here.waiting(&work()).unwrap()), [waits()]);
    assert_eq!(here.read_commit(scene.message).unwrap().message, b"hello\n");
    here.refresh().unwrap();
    net.hook("update", "echo \"$1\" >>updates");
    assert_eq!(scene.deliver(&b, &*here, "one").unwrap(), Swap::Won);
    scene.assert_delivered(&net);
    // Known to who delivered, without asking; and to others who ask.
    assert!(here.scan("refs/aynig/inbox/").unwrap().is_empty());
    assert_eq!(here.known_tip(&heard()).unwrap(), Some(scene.message));
    assert_eq!(names(elsewhere.waiting(&work()).unwrap()), []);
    assert_eq!(elsewhere.tip(&heard()).unwrap(), Some(scene.message));
    assert_eq!(elsewhere.tip(&waits()).unwrap(), None);
    let updates = std::fs::read_to_string(net.origin().join("updates")).unwrap();
    assert_eq!(updates.lines().count(), 3, "{updates}");
    // Neither machine has any of it under its own names.
    for machine in [&a, &b] {
        let own = machine.git(&["for-each-ref", "refs/aynig/inbox", "refs/aynig/heard", "refs/heads/work"]);
        assert_eq!(own, "");
    }
}

/// K11, K12: whichever of the refs is not as it was seen, none of them moves.
#[test]
fn one_ref_that_moved_there_keeps_all_where_they_are() {
    let net = Net::new(&[]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let scene = Scene::new(&net, &a);
    let here = store(&b);
    here.refresh().unwrap();
    here.waiting(&work()).unwrap();
    let other = net.rev("main");
    let put = |name: &RefName, at: Option<&str>| {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        match at {
            Some(at) => net.git(&["update-ref", &name, at]),
            None => net.git(&["update-ref", "-d", &name]),
        }
    };
    let message = scene.message.to_string();
    let taken = [(heard(), Some(other.as_str()), None), (waits(), None, Some(message.as_str()))];
    for (name, found, before) in taken {
        put(&name, found);
        match scene.deliver(&b, &*here, "late") {
            Err(StoreError::Moved { name: moved, found: at, .. }) => {
                assert_eq!((moved, at), (name.clone(), found.map(id)));
            }
            other => panic!("{name:?}: {other:?}"),
        }
        put(&name, before);
        scene.assert_waits(&net);
    }
    put(&work(), Some(&other));
    assert_eq!(scene.deliver(&b, &*here, "later").unwrap(), Swap::Lost { tip: Some(id(&other)) });
    put(&work(), Some(&scene.head.to_string()));
    scene.assert_waits(&net);
    // What a hook of the remote declines for one it declines for all.
    net.hook("update", "case $1 in refs/aynig/heard/*) exit 1;; esac");
    let declined = scene.deliver(&b, &*here, "declined");
    let is_declined = matches!(&declined, Err(StoreError::Remote { failure: RemoteFailure::Declined, .. }));
    assert!(is_declined, "{declined:?}");
    scene.assert_waits(&net);
    std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
    assert_eq!(scene.deliver(&b, &*here, "at last").unwrap(), Swap::Won);
    scene.assert_delivered(&net);
}

/// K12: a remote that takes refs one by one only gets nothing that has to move as one.
#[test]
fn a_remote_without_atomic_pushes_gets_none() {
    let net = Net::new(&[]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let scene = Scene::new(&net, &a);
    net.git(&["config", "receive.advertiseAtomic", "false"]);
    let here = store(&b);
    here.refresh().unwrap();
    here.waiting(&work()).unwrap();
    let refused = scene.deliver(&b, &*here, "never");
    let is_said = matches!(&refused, Err(StoreError::Remote { failure: RemoteFailure::NotAtomic, .. }));
    assert!(is_said, "{refused:?}");
    scene.assert_waits(&net);
    // `doctor` says so where it may ask, and changes nothing.
    b.git(&["config", "aynig.remote", "origin"]);
    let before = net.git(&["for-each-ref"]);
    let doctor = || b.run(&["doctor", "--network"]).stdout;
    assert!(doctor().contains("'origin' takes no atomic pushes"), "{}", doctor());
    assert!(!b.run(&["doctor"]).stdout.contains("atomic"));
    net.git(&["config", "receive.advertiseAtomic", "true"]);
    assert!(!doctor().contains("atomic"), "{}", doctor());
    assert_eq!(net.git(&["for-each-ref"]), before);
    // One at a time it takes.
    assert_eq!(delete_ref(&*here, &waits(), scene.message, &by()).unwrap(), Swap::Won);
    assert_eq!(there(&net, &waits()), None);
}

/// K11, K32: of many machines that deliver one message at once one does.
#[test]
fn of_many_machines_that_deliver_one_message_one_does() {
    let net = Net::new(&[]);
    let machines = ["a", "b", "c", "d"].map(|name| net.machine(name));
    let scene = Scene::new(&net, &machines[0]);
    let barrier = Barrier::new(machines.len());
    let won: Vec<bool> = std::thread::scope(|scope| {
        let threads = machines.each_ref().map(|machine| {
            let (scene, barrier) = (&scene, &barrier);
            scope.spawn(move || {
                let here = store(machine);
                here.refresh().unwrap();
                here.waiting(&work()).unwrap();
                barrier.wait();
                match scene.deliver(machine, &*here, &machine.dir.display().to_string()) {
                    Ok(Swap::Won) => true,
                    Ok(Swap::Lost { tip: Some(_) }) | Err(StoreError::Moved { .. }) => false,
                    // Two pushes met at a lock there.
                    Err(StoreError::Remote {
                        failure: RemoteFailure::Busy | RemoteFailure::Declined,
                        ..
                    }) => false,
                    other => panic!("{other:?}"),
                }
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    scene.assert_delivered(&net);
}

/// Has every listing of a remote noted: the names that were asked for, one line each.
fn noted(machine: &Machine<'_>) -> PathBuf {
    let (script, log) = (machine.dir.join("upload"), machine.dir.join("asked"));
    let (said, call) = (log.display(), machine.dir.join("packets"));
    let text = format!(
        "#!/bin/sh\necho call >>'{said}'\nGIT_TRACE_PACKET='{0}' git-upload-pack \"$@\"\n\
         grep -o '< ref-prefix .*' '{0}' >>'{said}'\nrm -f '{0}'\n",
        call.display()
    );
    crate::support::write_program(&script, &text);
    machine.git(&["config", "remote.origin.uploadpack", &format!("'{}'", script.display())]);
    log
}

/// K30: pauses come with the heads, by no call of their own; and by themselves, by one that lists nothing else.
#[test]
fn pauses_are_heard_with_the_heads() {
    let net = Net::new(&[]);
    net.event("work", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let (pauses, paused) = ("refs/aynig/paused/", RefName::new(format!("refs/aynig/paused/{ID}")));
    let (here, elsewhere) = (store(&a), store(&b));
    let why = id(&write(&b, "lunch", &[]));
    let asked = noted(&a);
    let said = || std::fs::read_to_string(&asked).unwrap_or_default();
    let forget = || std::fs::write(&asked, "").unwrap();
    here.refresh().unwrap();
    assert!(here.scan(pauses).unwrap().is_empty());
    assert_eq!(create_ref(&*elsewhere, &paused, why, &by(), "").unwrap(), Swap::Won);
    assert_eq!(elsewhere.scan(pauses).unwrap(), [(paused.clone(), why)]);
    forget();
    here.refresh().unwrap();
    assert_eq!(said().lines().filter(|line| *line == "call").count(), 1, "{}", said());
    assert_eq!(here.scan(pauses).unwrap(), [(paused.clone(), why)]);
    assert_eq!(here.read_commit(why).unwrap().message, b"lunch\n");
    // Gone with the heads of one branch too.
    assert_eq!(delete_ref(&*elsewhere, &paused, why, &by()).unwrap(), Swap::Won);
    assert!(elsewhere.scan(pauses).unwrap().is_empty());
    here.fetch_heads(&[work()]).unwrap();
    assert!(here.scan(pauses).unwrap().is_empty());
    // Looked at by themselves.
    net.git(&["update-ref", &format!("refs/aynig/paused/{ID}"), &why.to_string()]);
    forget();
    here.hear_shared(&[pauses.as_bytes()]).unwrap();
    assert_eq!(said(), format!("call\n< ref-prefix {pauses}\n"));
    assert_eq!(here.scan(pauses).unwrap(), [(paused.clone(), why)]);
    // What is known without the network is what was heard last.
    let offline = Repository::discover(&a.dir, None).unwrap().open_remote("origin", true).unwrap();
    assert_eq!(offline.scan(pauses).unwrap(), [(paused.clone(), why)]);
    assert_eq!(offline.tip(&paused).unwrap(), Some(why));
}

/// K30: of many branches, whose heads come one by one, the same.
#[test]
fn pauses_are_heard_of_a_remote_with_many_branches() {
    let net = Net::new(&[]);
    let main = net.rev("main");
    (0..20).for_each(|n| drop(net.git(&["update-ref", &format!("refs/heads/b{n}"), &main])));
    let a = net.machine("a");
    store(&a).refresh().unwrap();
    let paused = format!("refs/aynig/paused/{ID}");
    net.git(&["update-ref", &paused, &main]);
    let (pauses, asked) = ("refs/aynig/paused/", noted(&a));
    // Nothing new but the pause.
    let here = store(&a);
    assert_eq!(here.hear().unwrap(), []);
    assert_eq!(here.scan(pauses).unwrap().len(), 1);
    // A head that is new brings it along, and forgets one that is gone.
    net.git(&["update-ref", "-d", &paused]);
    net.event("b3", "build", "");
    std::fs::write(&asked, "").unwrap();
    let here = store(&a);
    let unread: Vec<RefName> = here.hear().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(unread, [RefName::branch("b3")]);
    here.fetch_heads(&unread).unwrap();
    assert!(here.scan(pauses).unwrap().is_empty());
    let said = std::fs::read_to_string(&asked).unwrap();
    assert_eq!(said.lines().filter(|line| *line == "call").count(), 2, "{said}");
}

/// K11: two who answer one question from two machines: each makes the answer and takes the question away.
#[test]
fn of_two_machines_that_answer_one_question_one_does() {
    let net = Net::new(&[]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let asked = RefName::new(format!("refs/aynig/asked/{ID}"));
    let answer = RefName::new(format!("refs/aynig/inbox/work/answer/{ID}"));
    let question = id(&write(&a, "deploy?", &[]));
    assert_eq!(create_ref(&*store(&a), &asked, question, &by(), "").unwrap(), Swap::Won);
    let stores = [store(&a), store(&b)];
    for store in &stores {
        assert_eq!(store.tip(&asked).unwrap(), Some(question));
    }
    let give = |store: &dyn Store, text: &str| {
        let others = [RefChange::delete(asked.clone(), question)];
        compare_and_swap_with(store, &answer, Expected::Missing, id(text), &others, &by(), "").unwrap()
    };
    let (yes, no) = (write(&a, "yes", &[]), write(&b, "no", &[]));
    assert_eq!(give(&*stores[0], &yes), Swap::Won);
    assert_eq!(give(&*stores[1], &no), Swap::Lost { tip: Some(id(&yes)) });
    assert_eq!(stores[1].read_commit(id(&yes)).unwrap().message, b"yes\n");
}

/// K12, K31: wherever the answer to the push is cut off, all of it is there or none, and the branch is the verdict.
#[test]
fn a_delivery_that_is_cut_at_a_daemon_is_there_or_not() {
    let net = Net::new(&[]);
    let (a, relay) = (net.machine("a"), Arc::new(Relay::default()));
    a.git(&["remote", "set-url", "origin", &serve(&net, &relay)]);
    let served = || relay.served.load(Ordering::SeqCst);
    let wait = |count| eventually("it is served", || (served() > count).then_some(()));
    let scene = Scene::new(&net, &a);
    wait(0);
    let back = || {
        let lines = format!(
            "update refs/heads/work {}\ndelete refs/aynig/heard/{ID}\nupdate refs/aynig/inbox/work/message/{ID} {}\n",
            scene.head, scene.message
        );
        let file = net.origin().join("back");
        std::fs::write(&file, lines).unwrap();
        net.git(&["-c", "alias.back=!git update-ref --stdin <back", "back"]);
    };
    let play = |heard_of: Option<usize>, text: &str| {
        let here = store(&a);
        here.refresh().unwrap();
        here.waiting(&work()).unwrap();
        let before = served();
        *relay.heard.lock().unwrap() = heard_of;
        let verdict = scene.deliver(&a, &*here, text);
        wait(before);
        *relay.heard.lock().unwrap() = None;
        verdict
    };
    assert_eq!(play(None, "whole").unwrap(), Swap::Won);
    let whole = relay.answered.load(Ordering::SeqCst);
    scene.assert_delivered(&net);
    let mut unheard = 0;
    for heard_of in [whole - 1, whole - 5, whole - 40, whole - 100, whole / 2, 1] {
        back();
        scene.assert_waits(&net);
        let verdict = play(Some(heard_of), &format!("cut {heard_of}"));
        match (&verdict, there(&net, &work()) == Some(scene.head)) {
            (Err(StoreError::Remote { .. }), true) => scene.assert_waits(&net),
            (Ok(Swap::Won), false) => {
                scene.assert_delivered(&net);
                unheard += 1;
            }
            other => panic!("{heard_of} of {whole}: {other:?}"),
        }
    }
    assert!(unheard > 0, "otherwise nothing was shown");
}

/// K12: what is here can't be moved as one with what is there, and no branch of a remote is deleted.
#[test]
fn refs_here_and_there_are_not_moved_as_one() {
    let net = Net::new(&[]);
    let a = net.machine("a");
    let scene = Scene::new(&net, &a);
    let here = store(&a);
    here.refresh().unwrap();
    let of = |changes: &[RefChange]| here.try_swaps(changes, &by(), "").unwrap_err();
    let run = RefChange::create(RefName::new("refs/aynig/run/x"), scene.message);
    assert!(matches!(of(&[run, scene.moves()[0].clone()]), StoreError::RefusedName { .. }));
    let gone = RefChange::delete(work(), scene.head);
    assert!(matches!(of(&[gone, scene.moves()[0].clone()]), StoreError::RefusedName { .. }));
    let beside = RefChange { name: work(), expected: Expected::At(scene.head), new: Some(scene.message) };
    assert!(matches!(of(&[beside, scene.moves()[0].clone()]), StoreError::RefusedCommit { .. }));
    let odd = RefChange::create(RefName::new("refs/aynig/heard/a b"), scene.message);
    assert!(matches!(of(&[odd]), StoreError::RefusedName { .. }));
    scene.assert_waits(&net);
    // One that is there already, as it was to be, keeps no other from moving; one that is otherwise does.
    let name = String::from_utf8(heard().as_bytes().to_vec()).unwrap();
    net.git(&["update-ref", &name, &scene.head.to_string()]);
    assert!(matches!(of(&scene.moves()), StoreError::Moved { name, .. } if name == heard()));
    net.git(&["update-ref", &name, &scene.message.to_string()]);
    here.try_swaps(&scene.moves(), &by(), "").unwrap();
    assert_eq!((there(&net, &heard()), there(&net, &waits())), (Some(scene.message), None));
}
