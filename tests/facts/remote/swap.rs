//! The swap over a push: what others did to the branch meanwhile is never undone, whether or not the new commit
//! would be a fast-forward of what they left. Implements the proof of K12.

use crate::support::life::{eventually, lives};
use crate::support::net::{Machine, Net};
use aynig::protocol::id::ObjectId;
use aynig::store::locks;
use aynig::store::repository::Repository;
use aynig::store::swap::compare_and_swap;
use aynig::store::{Expected, RefName, Signature, Store, StoreError, Swap};
use std::time::Duration;

const BRANCH: &str = "refs/heads/work";

fn by() -> Signature {
    Signature { name: "Ada".into(), email: "ada@example.com".into(), seconds: 1_700_000_000 }
}

/// A commit without changes on top of another, in a clone.
fn commit(machine: &Machine<'_>, parent: &str, message: &str) -> String {
    machine.git(&["commit-tree", "-m", message, "-p", parent, &format!("{parent}^{{tree}}")])
}

fn id(hex: &str) -> ObjectId {
    hex.parse().unwrap()
}

/// Replaces the remote's branch as a runner on that machine does.
fn swap(machine: &Machine<'_>, old: &str, new: &str) -> Result<Swap, StoreError> {
    swap_on(&*store(machine), old, new)
}

fn store(machine: &Machine<'_>) -> Box<dyn Store> {
    Repository::discover(&machine.dir, None).unwrap().open_remote("origin", false).unwrap()
}

fn swap_on(store: &dyn Store, old: &str, new: &str) -> Result<Swap, StoreError> {
    compare_and_swap(store, &RefName::branch("work"), Expected::At(id(old)), id(new), &by(), "aynig: test")
}

/// K12: the branch's head, however, must be the one that was seen.
#[test]
fn a_push_takes_nothing_back_that_others_did_meanwhile() {
    let net = Net::new(&[]);
    let below = net.rev("main");
    let seen = net.event("work", "build", "");
    let machine = net.machine("a");
    let new = commit(&machine, &seen, "new");
    // Rewound: a plain push would bring back what another process took away.
    net.git(&["update-ref", BRANCH, &below]);
    assert_eq!(swap(&machine, &seen, &new).unwrap(), Swap::Lost { tip: Some(id(&below)) });
    assert_eq!(net.rev(BRANCH), below);
    // Deleted: it would create it again.
    net.git(&["update-ref", "-d", BRANCH]);
    assert_eq!(swap(&machine, &seen, &new).unwrap(), Swap::Lost { tip: None });
    assert_eq!(net.git(&["for-each-ref", BRANCH]), "");
    // Moved on: here only a forced one would.
    let other = commit(&machine, &seen, "other");
    machine.git(&["push", "-q", "origin", &format!("{other}:{BRANCH}")]);
    assert_eq!(swap(&machine, &seen, &new).unwrap(), Swap::Lost { tip: Some(id(&other)) });
    assert_eq!(net.rev(BRANCH), other);
    assert_eq!(swap(&machine, &other, &commit(&machine, &other, "on it")).unwrap(), Swap::Won);
}

/// K12: the remote compares the old value only; what stands beside it would drop what is there.
#[test]
fn a_commit_beside_the_head_is_not_pushed() {
    let net = Net::new(&[]);
    let seen = net.event("work", "build", "");
    let machine = net.machine("a");
    let beside = commit(&machine, &net.rev("main"), "beside");
    assert!(matches!(swap(&machine, &seen, &beside), Err(StoreError::RefusedCommit { .. })));
    assert_eq!(net.rev(BRANCH), seen);
}

/// K12: whatever a remote that mirrors is called, one branch of it is pushed and nothing else.
#[test]
fn a_mirror_gets_the_one_branch() {
    let net = Net::new(&[]);
    let machine = net.machine("a");
    let mut seen = net.event("work", "build", "");
    machine.git(&["fetch", "-q", "origin"]);
    machine.git(&["branch", "mine", &net.rev("main")]);
    for name in ["plain", "a=b"] {
        machine.git(&["config", &format!("remote.{name}.url"), net.origin().to_str().unwrap()]);
        machine.git(&["config", &format!("remote.{name}.mirror"), "true"]);
        let store = Repository::discover(&machine.dir, None).unwrap().open_remote(name, false).unwrap();
        let new = commit(&machine, &seen, name);
        assert_eq!(swap_on(&*store, &seen, &new).unwrap(), Swap::Won, "{name}");
        assert_eq!(net.rev(BRANCH), new);
        assert_eq!(net.git(&["for-each-ref", "refs/heads/mine"]), "");
        seen = new;
    }
}

/// The same, by a store that waits no longer than it takes the other side to begin: on a slow machine more than at first.
fn swap_until(
    machine: &Machine<'_>,
    has_begun: impl Fn() -> bool,
    old: &str,
    new: &str,
) -> Result<Swap, StoreError> {
    let mut patience = Duration::from_secs(1);
    loop {
        let store = store(machine);
        store.set_patience(patience);
        let verdict = swap_on(&*store, old, new);
        if has_begun() {
            return verdict;
        }
        patience *= 2;
    }
}

/// K12, K31, K43: who receives a push by path goes on when its caller has gone, as on a server: what is signalled
/// right when it has made a lock leaves that lock, where no runner may remove it.
#[test]
fn a_push_that_takes_too_long_ends_on_this_side_only() {
    let net = Net::new(&[]);
    let seen = net.event("work", "build", "");
    let machine = net.machine("a");
    let (mut gate, said) = (net.life.gate("gate"), net.life.shared().join("said"));
    let (fifo, log) = (net.life.shared().join("gate"), said.display().to_string());
    let ended = format!("for s in TERM INT HUP; do trap \"echo $s >>'{log}'\" $s; done");
    net.hook("pre-receive", &format!("{ended}\necho begun >>'{log}'\nread x <'{}'\nexit 0", fifo.display()));
    let new = commit(&machine, &seen, "new");
    let begun = || net.life.said("said").lines().count();
    for by_path in [false, true] {
        if by_path {
            machine.git(&["remote", "set-url", "origin", net.origin().to_str().unwrap()]);
        }
        let before = begun();
        let verdict = swap_until(&machine, || begun() > before, &seen, &new);
        assert!(matches!(verdict, Err(StoreError::Remote { .. })), "{verdict:?}");
        assert_eq!(net.rev(BRANCH), seen);
    }
    // Nothing came of it yet; all go on now, also one that begins late, and one of them moves the branch.
    assert_eq!(net.life.said("said").replace("begun\n", ""), "");
    (0..20).for_each(|_| gate.open());
    eventually("the push", || (net.rev(BRANCH) == new).then_some(()));
    assert_eq!(swap(&machine, &seen, &new).unwrap(), Swap::Won);
    assert_eq!(net.life.said("said").replace("begun\n", ""), "");
    eventually("no lock", || locks::list_locks(&net.origin()).unwrap().is_empty().then_some(()));
}

/// K12: of a remote that is elsewhere this side is all that there is, and all of it ends.
#[test]
fn a_transport_that_hangs_ends_with_its_push() {
    let net = Net::new(&[]);
    let seen = net.event("work", "build", "");
    let machine = net.machine("a");
    let said = net.life.shared().join("said");
    let script = net.life.shared().join("ssh");
    crate::support::write_program(
        &script,
        &format!("#!/bin/sh\necho $$ >>'{}'\nexec sleep 300\n", said.display()),
    );
    machine.git(&["config", "core.sshCommand", &format!("'{}'", script.display())]);
    machine.git(&["remote", "set-url", "origin", "nobody@example.invalid:x.git"]);
    let new = commit(&machine, &seen, "new");
    let verdict = swap_until(&machine, || said.exists(), &seen, &new);
    assert!(!matches!(verdict, Ok(Swap::Won | Swap::Lost { .. })), "{verdict:?}");
    let transports = net.life.said("said");
    assert!(transports.lines().count() > 0);
    for pid in transports.lines() {
        eventually("its end", || (!lives(pid)).then_some(()));
    }
}

/// K12, K31: the same, of a whole tick whose branch is taken back while its command runs.
#[test]
fn an_outcome_does_not_bring_back_what_was_taken_away() {
    for (refspec, left) in [("+refs/remotes/origin/main:refs/heads/work", true), (":refs/heads/work", false)]
    {
        let build = format!("git push -q origin {refspec}; echo 'SET_STATE {{\"state\":\"done\"}}'");
        let net = Net::new(&[("build", &build)]);
        net.event("work", "build", "");
        let done = net.machine("a").tick(&["work"]);
        assert_ne!(done.code, Some(0), "{done:?}");
        let there = net.git(&["for-each-ref", "--format=%(objectname)", BRANCH]);
        assert_eq!(there, if left { net.rev("main") } else { String::new() }, "{done:?}");
    }
}

/// K8, K11, K32: another machine recovers the lease between this one's look and its push: the new head is judged.
#[test]
fn a_recovery_that_another_machine_was_quicker_with_is_judged_anew() {
    let net = Net::new(&[]);
    net.event("work", "build", "");
    let life = &net.life;
    life.git(&["fetch", "-q", "origin", "work:work"]);
    let lease = life.lease("work", "build", "r1", 60, 100);
    life.git(&["push", "-q", "origin", "work"]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let message = "aynig: build stalled\n\ndwp-state: stalled\ndwp-stalled-run: r1\ndwp-recovery-id: x\n";
    let recovery = commit(&b, &lease, message);
    // The other's push comes in when this one's begins.
    let (script, once) = (a.dir.join("receive"), a.dir.join("once"));
    let push = format!("git -C '{}' push -q origin {recovery}:{BRANCH}", b.dir.display());
    let text = format!(
        "#!/bin/sh\nmkdir '{}' 2>/dev/null && {push} >&2\nexec git-receive-pack \"$@\"\n",
        once.display()
    );
    crate::support::write_program(&script, &text);
    a.git(&["config", "remote.origin.receivepack", &format!("'{}'", script.display())]);
    let done = a.start_tick(&["work"]).done();
    assert_eq!((done.code, net.rev("work")), (Some(0), recovery), "{} {}", done.stdout, done.stderr);
}
