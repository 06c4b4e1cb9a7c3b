//! The swap over a push: what others did to the branch meanwhile is never undone, whether or not the new commit
//! would be a fast-forward of what they left. Implements the proof of K12.

mod support;

use aynig::protocol::id::ObjectId;
use aynig::store::repository::Repository;
use aynig::store::swap::compare_and_swap;
use aynig::store::{Expected, RefName, Signature, StoreError, Swap};
use support::net::{Machine, Net};

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
    let repo = Repository::discover(&machine.dir, None).unwrap();
    let store = repo.open_remote("origin", false).unwrap();
    compare_and_swap(&*store, &RefName::branch("work"), Expected::At(id(old)), id(new), &by(), "aynig: test")
}

/// K12: the branch's head, however, must be the one that was seen.
#[test]
fn a_push_takes_nothing_back_that_others_did_meanwhile() {
    let net = Net::new(&[]);
    let below = net.rev("main");
    let seen = net.event("work", "build", "");
    let machine = net.machine("a");
    let new = commit(&machine, &seen, "new");
    // Rewound: a plain push would bring back what somebody took away.
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
