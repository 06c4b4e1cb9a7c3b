//! Raw commits: every header is read, no date is more than a value, and what is decided of it never
//! overflows (K6, K7, K37).
//!
//! The bytes are a whole commit object, then the header of one below a sound tree line.
#![no_main]

use aynig::protocol::decide::{Head, Policy, Takeover, decide};
use aynig::protocol::event::Event;
use aynig::protocol::id::ObjectId;
use aynig::protocol::message::Message;
use aynig::store::commit::{encode, parse};
use aynig::store::{Commit, NewCommit, Signature};
use libfuzzer_sys::fuzz_target;

fn id() -> ObjectId {
    ObjectId::from_bytes(&[7; 20]).unwrap()
}

/// The date of the first committer line, read another way.
fn date(raw: &[u8]) -> Option<i64> {
    let end = raw.windows(2).position(|w| w == b"\n\n").unwrap_or(raw.len());
    let line = raw[..end].split(|b| *b == b'\n').skip(1).find(|l| l.starts_with(b"committer "))?;
    let text = String::from_utf8_lossy(&line[b"committer ".len()..]).into_owned();
    let word = text.rsplit_once('>')?.1.split_ascii_whitespace().next()?.to_owned();
    if word.starts_with('+') { None } else { word.parse().ok() }
}

fn check(raw: &[u8], commit: &Commit, seed: i64) {
    assert_eq!(commit.committed, date(raw));
    let event = Event::of(Message::parse(&commit.message));
    let head = Head { event: event.as_ref(), committed: commit.committed };
    for (takeover, grace) in [(Takeover::Date, 0), (Takeover::Observe, u64::MAX), (Takeover::Date, u64::MAX)] {
        let policy = Policy {
            grace,
            aynig_grace: grace,
            takeover,
            runner_id: "here-1",
            max_hops: 64,
            has_command: true,
        };
        for now in [0, seed, i64::MAX, i64::MIN, commit.committed.unwrap_or(1)] {
            for first_seen in [None, Some(seed), Some(i64::MIN), Some(i64::MAX)] {
                let _ = decide(head, first_seen, now, policy);
            }
        }
    }
}

fn check_written(data: &[u8], seconds: i64) {
    let text = String::from_utf8_lossy(data).into_owned();
    let (name, email) = text.split_once('|').unwrap_or((&text, ""));
    let signature = Signature { name: name.into(), email: email.into(), seconds };
    let new = NewCommit { tree: id(), parents: vec![id()], message: data.to_vec(), signature };
    let Ok(raw) = encode(&new) else {
        assert!(seconds < 0 || data.contains(&0));
        return;
    };
    let commit = parse(id(), &raw).unwrap();
    assert_eq!((commit.tree, &commit.parents[..], commit.committed), (id(), &[id()][..], Some(seconds)));
    assert_eq!(commit.message, data);
}

fuzz_target!(|data: &[u8]| {
    let seed = data.iter().take(8).fold(0i64, |n, b| n.wrapping_mul(256) | i64::from(*b));
    if let Ok(commit) = parse(id(), data) {
        check(data, &commit, seed);
    }
    let below = [format!("tree {}\n", id()).as_bytes(), data].concat();
    if let Ok(commit) = parse(id(), &below) {
        check(&below, &commit, seed);
    }
    check_written(data, seed);
});
