//! Which of the waiting messages a branch already has, and what becomes of each message.
//!
//! A message is delivered once. The commits of the branch's first-parent line say which messages they
//! brought: by `dwp-heard`, and by their other parents. Besides, a message's ref under `refs/aynig/heard/`
//! counts where it holds another commit of the same id. A ref that holds the message itself proves nothing
//! alone: the process that made it may have been killed before the branch moved. Pure: the runner and the
//! model of messages call these functions. Implements K47a (what is delivered, and what taken off), K49a.

use super::accepts::Accepts;
use super::decide::{Waiting, may_hear};
use super::dialect::Dialect;
use super::event::Event;
use super::heard::heard_of;
use super::id::ObjectId;
use super::inbox::{InboxRef, MessageId};
use super::message::Message;
use super::name::StateName;
use super::text::hex;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The messages that the commits which lead to a head brought.
#[derive(Debug, Clone, Default)]
pub struct Brought {
    ids: HashSet<MessageId>,
    commits: HashSet<ObjectId>,
}

impl Brought {
    /// Adds what one commit brought, given the commit's raw message and its parents.
    pub fn add(&mut self, message: &[u8], parents: &[ObjectId]) {
        if message.windows(9).any(|part| part == b"dwp-heard") {
            let heard = heard_of(&Message::parse(message), Dialect::Dwp);
            self.ids.extend(heard.iter().map(|heard| heard.id));
            self.commits.extend(heard.iter().map(|heard| heard.commit));
        }
        self.commits.extend(parents.iter().skip(1));
    }

    /// Adds all that `line` brought.
    pub fn join(&mut self, line: &Self) {
        self.ids.extend(&line.ids);
        self.commits.extend(&line.commits);
    }

    /// Returns how many ids of messages and commits of messages there are, taken together.
    pub fn len(&self) -> usize {
        self.ids.len() + self.commits.len()
    }

    /// True where nothing was brought.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True for a message that the branch already has.
    pub fn has(&self, id: MessageId, commit: ObjectId) -> bool {
        self.ids.contains(&id) || self.commits.contains(&commit)
    }

    /// True for the commit of a message that the branch already has.
    pub fn has_commit(&self, commit: ObjectId) -> bool {
        self.commits.contains(&commit)
    }
}

/// What a commit and those below it brought, as it is noted in a file for the next process that asks.
#[derive(Debug, Clone)]
pub struct Line {
    /// The newest commit of the line.
    pub tip: ObjectId,
    /// What the commit and those below it brought.
    pub brought: Brought,
}

impl Line {
    /// Returns the content of the file: the digest of all that follows, the commit, and a line for each
    /// message and commit.
    pub fn render(&self) -> Vec<u8> {
        let mut body = format!("{}\n", self.tip);
        for id in &self.brought.ids {
            let _ = writeln!(body, "id {id}");
        }
        for commit in &self.brought.commits {
            let _ = writeln!(body, "commit {commit}");
        }
        format!("{}\n{body}", digest(&body)).into_bytes()
    }

    /// Reads what [`Line::render`] wrote. `None` where any byte of it differs, because a message that is
    /// wrongly taken for delivered would be lost.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let (said, body) = std::str::from_utf8(raw).ok()?.split_once('\n')?;
        if said != digest(body) {
            return None;
        }
        let mut lines = body.lines();
        let mut line = Self { tip: lines.next()?.parse().ok()?, brought: Brought::default() };
        for entry in lines {
            match entry.split_once(' ')? {
                ("id", id) => drop(line.brought.ids.insert(MessageId::parse(id).ok()?)),
                ("commit", commit) => drop(line.brought.commits.insert(commit.parse().ok()?)),
                _ => return None,
            }
        }
        Some(line)
    }
}

fn digest(body: &str) -> String {
    hex(&Sha256::digest(body))
}

/// What becomes of a message that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// The message is taken off: the branch has it, or it is an answer, but not to this head's question.
    Over,
    /// The message is an answer, but not to this head's question. It is not taken off, because its ref under
    /// `refs/aynig/heard/` would end another message of the same id, which may still be delivered.
    Twin,
    /// The message stays: the head accepts none of its kind.
    Waits,
    /// The message may be delivered, and brings this state.
    Brings(&'a StateName),
}

/// Judges a message that waits for a head. `has_twin` says whether another message waits under the same id.
pub fn standing<'a>(
    event: &Event,
    accepts: &'a Accepts,
    brought: &Brought,
    (at, commit): (&InboxRef, ObjectId),
    has_twin: bool,
) -> Standing<'a> {
    if brought.has(at.id, commit) {
        return Standing::Over;
    }
    if !may_hear(event, &Waiting { id: at.id, kind: at.kind.clone() }) {
        return if has_twin { Standing::Twin } else { Standing::Over };
    }
    accepts.state(&at.kind).map_or(Standing::Waits, Standing::Brings)
}

/// True where another message of the same id was delivered. `heard` is what the id's ref under
/// `refs/aynig/heard/` holds, `commit` is this message's commit.
pub fn is_heard_already(heard: Option<ObjectId>, commit: ObjectId) -> bool {
    heard.is_some_and(|heard| heard != commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::inbox::{Kind, QUESTION, answer_id};
    use crate::protocol::message::Trailer;

    fn id(n: u8) -> MessageId {
        MessageId::v7(u64::from(n), 0, [n; 8])
    }

    fn commit(n: u8) -> ObjectId {
        ObjectId::from_bytes(&[n; 20]).unwrap()
    }

    fn at(kind: &str, id: MessageId) -> InboxRef {
        InboxRef { branch: b"work".to_vec(), kind: Kind::new(kind).unwrap(), id }
    }

    /// K47a.
    #[test]
    fn a_branch_has_what_its_commits_name_and_what_they_merged() {
        let mut brought = Brought::default();
        let named = format!("go\n\ndwp-state: rework\ndwp-heard: {} {}\n", id(1), commit(1));
        brought.add(named.as_bytes(), &[commit(9), commit(2)]);
        brought.add(b"no event", &[commit(3)]);
        assert!(
            brought.has(id(1), commit(7)) && brought.has(id(7), commit(1)) && brought.has(id(7), commit(2))
        );
        assert!(!brought.has(id(7), commit(9)) && !brought.has(id(7), commit(3)));
        assert!(brought.has_commit(commit(2)) && !brought.has_commit(commit(9)));
    }

    /// K47a.
    #[test]
    fn a_line_is_kept_whole_or_not_at_all() {
        let mut brought = Brought::default();
        let named = format!("go\n\ndwp-state: rework\ndwp-heard: {} {}\n", id(1), commit(1));
        brought.add(named.as_bytes(), &[commit(9), commit(2)]);
        let written = Line { tip: commit(8), brought }.render();
        let read = Line::parse(&written).unwrap();
        assert_eq!((read.tip, read.brought.len()), (commit(8), 3));
        assert!(read.brought.has(id(1), commit(7)) && read.brought.has(id(7), commit(2)));
        assert!(!read.brought.has(id(2), commit(8)));
        for at in 0..written.len() {
            assert!(Line::parse(&written[..at]).is_none(), "cut at {at}");
            let mut other = written.clone();
            other[at] ^= 1;
            assert!(Line::parse(&other).is_none(), "changed at {at}");
        }
    }

    /// K47a, K49a.
    #[test]
    fn each_message_that_waits_is_over_or_stays_or_brings_a_state() {
        let trailers = [
            ("dwp-state", "review".to_owned()),
            ("dwp-accepts", "message=rework answer=go".to_owned()),
            (QUESTION, id(5).to_string()),
        ];
        let trailers = trailers.iter().map(|(key, value)| Trailer::new(*key, value)).collect();
        let head = Event::of(Message::new("s", "", trailers)).unwrap();
        let accepts = Accepts::of(&head);
        let mut brought = Brought::default();
        brought.add(b"x", &[commit(9), commit(2)]);
        let judge =
            |kind, id, n, twin| match standing(&head, &accepts, &brought, (&at(kind, id), commit(n)), twin) {
                Standing::Brings(state) => state.to_string(),
                other => format!("{other:?}"),
            };
        assert_eq!(judge("message", id(1), 1, false), "rework");
        assert_eq!(judge("message", id(1), 2, true), "Over");
        assert_eq!(judge("handoff", id(1), 1, false), "Waits");
        assert_eq!(judge("answer", answer_id(id(5)), 1, false), "go");
        assert_eq!(judge("answer", answer_id(id(6)), 1, false), "Over");
        assert_eq!(judge("answer", answer_id(id(6)), 1, true), "Twin");
        assert!(is_heard_already(Some(commit(1)), commit(2)));
        assert!(!is_heard_already(Some(commit(1)), commit(1)) && !is_heard_already(None, commit(1)));
    }
}
