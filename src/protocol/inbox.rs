//! Messages to a branch: their kinds, ids and refs, and the commit that each one is.
//!
//! A message is a commit under `refs/aynig/inbox/<branch>/<kind>/<id>` until its branch takes it in, and
//! under `refs/aynig/heard/<id>` after that. Any user who may push can write one, so reading is bounded and
//! refuses a message whose id or kind can't be read. The id, never the commit, is a message's identity.
//! Implements K46, K46a (names), K49a (an answer's id).

use super::dialect::{Dialect, FROM, HOP, KIND, MESSAGE, SEEN};
use super::id::ObjectId;
use super::message::{Message, RenderError, Trailer, is_managed_key};
use super::text::escape;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// Most messages that one delivery takes.
pub const MESSAGES_MAX: usize = 64;
/// Longest text of a message, in bytes.
pub const TEXT_MAX: usize = 1 << 20;
/// Longest name of a kind, in bytes.
pub const KIND_MAX: usize = 64;
/// Most of the sender's own trailers that are read from a message.
pub const TRAILERS_MAX: usize = 256;
/// The prefix of the refs of messages that wait for their branches.
pub const INBOX: &[u8] = b"refs/aynig/inbox/";
/// The prefix of the refs of messages that were delivered.
pub const HEARD_REFS: &[u8] = b"refs/aynig/heard/";
/// The prefix of the refs of questions that have no answer.
pub const ASKED: &[u8] = b"refs/aynig/asked/";
/// The prefix of the refs of pauses.
pub const PAUSED: &[u8] = b"refs/aynig/paused/";
/// The trailer that holds a question's id: in the question, in its answer, and in a head that waits for the
/// answer.
pub const QUESTION: &str = "dwp-question";
/// The trailer of a choice: in a question one for each choice that it offers, in an answer the choice that it
/// makes.
pub const CHOICE: &str = "dwp-choice";

/// The kind of a message: one lower-case word, `[a-z][a-z0-9-]{0,63}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(String);

/// The error for a word that is not a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadKind;

impl fmt::Display for BadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a kind is a lower-case letter and at most 63 lower-case letters, digits and '-'")
    }
}

impl std::error::Error for BadKind {}

impl Kind {
    /// The kind of a message whose sender names none.
    pub const MESSAGE: &'static str = "message";
    /// The kind of answers, which only the subcommand `answer` sends.
    pub const ANSWER: &'static str = "answer";
    /// The kind that asks a running command to stop what it does.
    pub const INTERRUPT: &'static str = "interrupt";

    /// Returns the kind of this name.
    ///
    /// # Errors
    /// If this is not the name of a kind.
    pub fn new(raw: impl AsRef<[u8]>) -> Result<Self, BadKind> {
        let raw = raw.as_ref();
        let begins = raw.first().is_some_and(u8::is_ascii_lowercase);
        let goes_on = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
        if !begins || raw.len() > KIND_MAX || !raw.iter().all(goes_on) {
            return Err(BadKind);
        }
        std::str::from_utf8(raw).map(|kind| Self(kind.to_owned())).map_err(|_| BadKind)
    }

    /// Returns the kind that answers have.
    pub fn answer() -> Self {
        Self(Self::ANSWER.into())
    }

    /// Returns the kind's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for the kind that answers have.
    pub fn is_answer(&self) -> bool {
        self.0 == Self::ANSWER
    }
}

impl FromStr for Kind {
    type Err = BadKind;
    fn from_str(s: &str) -> Result<Self, BadKind> {
        Self::new(s)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a message, question or pause: a UUID of version 7 or 8, which begins with milliseconds since 1970, so
/// that ids, and the names of refs that end in them, sort by time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId([u8; 16]);

/// The error for a text that is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadId;

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is a UUID of version 7 or 8 in lower case")
    }
}

impl std::error::Error for BadId {}

impl MessageId {
    /// Returns the id of these parts: milliseconds since 1970 (48 bits), a count (12 bits) and random bytes.
    pub fn v7(millis: u64, count: u16, random: [u8; 8]) -> Self {
        Self::of(7, millis, count, random)
    }

    /// Returns a new id that sorts after `previous` of the same sender, even if the sender's clock was set
    /// back.
    pub fn after(previous: Option<MessageId>, millis: u64, random: [u8; 8]) -> Self {
        let millis = millis.min(MILLIS_MAX);
        match previous.filter(|previous| previous.millis() >= millis) {
            None => Self::v7(millis, 0, random),
            Some(previous) if previous.count() < COUNT_MAX => {
                Self::v7(previous.millis(), previous.count() + 1, random)
            }
            Some(previous) => Self::v7(previous.millis() + 1, 0, random),
        }
    }

    fn of(version: u8, millis: u64, count: u16, rest: [u8; 8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&millis.min(MILLIS_MAX).to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(u16::from(version) << 12 | count & COUNT_MAX).to_be_bytes());
        bytes[8..].copy_from_slice(&rest);
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// Reads an id from its text, in lower case.
    ///
    /// # Errors
    /// If the text is not an id.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, BadId> {
        let text = text.as_ref();
        if text.len() != 36 {
            return Err(BadId);
        }
        let mut digits = [0; 32];
        let mut at = 0;
        for (i, b) in text.iter().enumerate() {
            match (i, b) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return Err(BadId),
                (_, b'0'..=b'9') => (digits[at], at) = (b - b'0', at + 1),
                (_, b'a'..=b'f') => (digits[at], at) = (b - b'a' + 10, at + 1),
                (_, _) => return Err(BadId),
            }
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        let known = matches!(bytes[6] >> 4, 7 | 8) && bytes[8] >> 6 == 2;
        known.then_some(Self(bytes)).ok_or(BadId)
    }

    /// Returns the milliseconds since 1970 that the id begins with.
    pub fn millis(&self) -> u64 {
        let mut millis = [0; 8];
        millis[2..].copy_from_slice(&self.0[..6]);
        u64::from_be_bytes(millis)
    }

    fn count(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]]) & COUNT_MAX
    }

    /// Returns the id's 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

const MILLIS_MAX: u64 = (1 << 48) - 1;
const COUNT_MAX: u16 = 0xfff;

/// Returns the id of something that is made only once from a source, as an answer is from its question. The
/// id has the source's milliseconds, so that it sorts as the source does, and a digest of `parts`, which
/// distinguish it from whatever else is made from that source.
pub fn derived_id(source_millis: u64, parts: &[&[u8]]) -> MessageId {
    let mut digest = Sha256::new();
    for part in parts {
        // Each part goes in with its length, so that no two lists of parts give the same bytes.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let mut rest = [0; 8];
    rest.copy_from_slice(&digest[..8]);
    MessageId::of(8, source_millis, u16::from_be_bytes([digest[8], digest[9]]), rest)
}

/// Returns the id of the one answer to a question.
pub fn answer_id(question: MessageId) -> MessageId {
    derived_id(question.millis(), &[b"answer", question.as_bytes()])
}

impl FromStr for MessageId {
    type Err = BadId;
    fn from_str(s: &str) -> Result<Self, BadId> {
        Self::parse(s)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What the name of a waiting message's ref says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRef {
    /// The branch, without `refs/heads/`.
    pub branch: Vec<u8>,
    /// The message's kind.
    pub kind: Kind,
    /// The message's id.
    pub id: MessageId,
}

/// Returns the prefix of the refs of messages that wait for a branch. Messages to branches below its name
/// have it too.
pub fn inbox_prefix(branch: &[u8]) -> Vec<u8> {
    [INBOX, branch, b"/"].concat()
}

/// Returns the name of a waiting message's ref. `branch` is the branch's short name.
pub fn inbox_ref(branch: &[u8], kind: &Kind, id: MessageId) -> Vec<u8> {
    [&inbox_prefix(branch), kind.as_str().as_bytes(), b"/", id.to_string().as_bytes()].concat()
}

/// Reads the name of a waiting message's ref: its last part is an id, the one before it a kind, and the rest the
/// branch. `None` for anything else.
pub fn parse_inbox_ref(name: &[u8]) -> Option<InboxRef> {
    let mut parts = name.strip_prefix(INBOX)?.rsplitn(3, |b| *b == b'/');
    let id = MessageId::parse(parts.next()?).ok()?;
    let kind = Kind::new(parts.next()?).ok()?;
    let branch = parts.next().filter(|branch| !branch.is_empty())?.to_vec();
    Some(InboxRef { branch, kind, id })
}

/// Returns the name of the ref of a message that was delivered.
pub fn heard_ref(id: MessageId) -> Vec<u8> {
    named(HEARD_REFS, id)
}

/// Returns the name of a question's ref.
pub fn asked_ref(id: MessageId) -> Vec<u8> {
    named(ASKED, id)
}

/// Returns the name of a pause's ref.
pub fn paused_ref(id: MessageId) -> Vec<u8> {
    named(PAUSED, id)
}

fn named(prefix: &[u8], id: MessageId) -> Vec<u8> {
    [prefix, id.to_string().as_bytes()].concat()
}

/// Reads the id from the name of a ref that lies right below `prefix`; `None` for any other name.
pub fn parse_id_ref(prefix: &[u8], name: &[u8]) -> Option<MessageId> {
    MessageId::parse(name.strip_prefix(prefix)?).ok()
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The message's id.
    pub id: MessageId,
    /// The message's kind.
    pub kind: Kind,
    /// The sender, in the sender's own words: one line.
    pub from: String,
    /// How many dispatches led to the message: the sending run's count plus one, or 0 if a person sent it.
    pub hop: u32,
    /// The head that the sender saw, if the message brings no work; in an answer the question's commit.
    pub seen: Option<ObjectId>,
    /// The commit of the work that is handed over with the message.
    pub attached: Option<ObjectId>,
    /// The question that an answer is for.
    pub question: Option<MessageId>,
    /// The choice that an answer makes.
    pub choice: Option<String>,
    /// The sender's own trailers.
    pub trailers: Vec<Trailer>,
    /// The message's text.
    pub text: String,
}

/// Why a commit is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadLetter {
    /// It has no readable id.
    Id,
    /// Its id is this one, and not the one in the name of its ref.
    OtherId(MessageId),
    /// It has no readable kind.
    Kind,
    /// Its kind is this one, and not the one in the name of its ref.
    OtherKind(Kind),
    /// It has this many parents, more than one.
    Parents(usize),
    /// Its text is too long: this many bytes.
    TooLong(usize),
    /// It is an answer that names no question.
    Question,
}

impl fmt::Display for BadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadLetter::Id => write!(f, "it has no readable '{}'", MESSAGE.of(Dialect::Dwp)),
            BadLetter::OtherId(id) => write!(f, "it says that it is message {id}"),
            BadLetter::Kind => write!(f, "it has no readable '{}'", KIND.of(Dialect::Dwp)),
            BadLetter::OtherKind(kind) => write!(f, "it says that it is of kind '{kind}'"),
            BadLetter::Parents(n) => write!(f, "it has {n} parents, and a message has one or none"),
            BadLetter::TooLong(n) => write!(f, "its text has {n} bytes, more than 1 MiB"),
            BadLetter::Question => write!(f, "it is an answer without a readable '{QUESTION}'"),
        }
    }
}

impl std::error::Error for BadLetter {}

impl Letter {
    /// Returns the commit message that holds this message.
    ///
    /// # Errors
    /// If the message can't be written so that it reads back the same.
    pub fn message(&self) -> Result<Message, RenderError> {
        let own = |key: super::dialect::Key, value: &dyn fmt::Display| {
            Trailer::new(key.of(Dialect::Dwp), value.to_string())
        };
        let mut trailers = vec![own(MESSAGE, &self.id), own(KIND, &self.kind), own(FROM, &self.from)];
        trailers.push(own(HOP, &self.hop));
        trailers.extend(self.seen.as_ref().map(|seen| own(SEEN, seen)));
        trailers.extend(self.question.map(|id| Trailer::new(QUESTION, id.to_string())));
        trailers.extend(self.choice.as_ref().map(|choice| Trailer::new(CHOICE, choice)));
        trailers.extend(self.trailers.iter().cloned());
        let from: String = escape(self.from.as_bytes()).chars().take(100).collect();
        let message = match from.trim().is_empty() {
            true => Message::new(format!("aynig: {}", self.kind), self.text.as_bytes(), trailers),
            false => Message::new(
                format!("aynig: {} from {}", self.kind, from.trim()),
                self.text.as_bytes(),
                trailers,
            ),
        };
        message.render().map(|_| message)
    }

    /// Reads a message from a commit. Trailers that a sender may not set are left out.
    ///
    /// # Errors
    /// If the commit is not a message.
    pub fn read(message: &Message, parents: &[ObjectId]) -> Result<Self, BadLetter> {
        let text_of = |key: super::dialect::Key| text(message.last(key.of(Dialect::Dwp)));
        let id = text_of(MESSAGE).and_then(|id| id.parse().ok()).ok_or(BadLetter::Id)?;
        let kind: Kind = text_of(KIND).and_then(|kind| kind.parse().ok()).ok_or(BadLetter::Kind)?;
        let attached = match parents {
            [] => None,
            [attached] => Some(*attached),
            more => return Err(BadLetter::Parents(more.len())),
        };
        if message.body.len() > TEXT_MAX {
            return Err(BadLetter::TooLong(message.body.len()));
        }
        let answer = kind.is_answer();
        let question = text(message.last(QUESTION)).and_then(|id| id.parse().ok()).filter(|_| answer);
        if answer && question.is_none() {
            return Err(BadLetter::Question);
        }
        let is_answers = |key: &str| answer && [QUESTION, CHOICE].contains(&key);
        let own = message.trailers.iter().filter(|t| !is_managed_key(&t.key) && !is_answers(&t.key));
        Ok(Self {
            id,
            kind,
            from: text_of(FROM).unwrap_or_default().chars().take(500).collect(),
            // As in a head, an unreadable count is the highest one: a forged count stops a chain instead of
            // freeing it (K9).
            hop: message.last(HOP.of(Dialect::Dwp)).map_or(0, |raw| {
                std::str::from_utf8(raw).ok().and_then(|hop| hop.parse().ok()).unwrap_or(u32::MAX)
            }),
            seen: text_of(SEEN).and_then(|seen| seen.parse().ok()),
            attached,
            question,
            choice: text(message.last(CHOICE)).filter(|_| answer).map(str::to_owned),
            trailers: own.filter(|t| t.is_writable()).take(TRAILERS_MAX).cloned().collect(),
            text: String::from_utf8_lossy(&message.body).into_owned(),
        })
    }

    /// Reads the message that waits under this ref.
    ///
    /// # Errors
    /// If the commit is not a message, or not the one that the ref's name says.
    pub fn read_at(at: &InboxRef, message: &Message, parents: &[ObjectId]) -> Result<Self, BadLetter> {
        let letter = Self::read(message, parents)?;
        if letter.id != at.id {
            return Err(BadLetter::OtherId(letter.id));
        }
        if letter.kind != at.kind {
            return Err(BadLetter::OtherKind(letter.kind));
        }
        Ok(letter)
    }
}

fn text(raw: Option<&[u8]>) -> Option<&str> {
    raw.and_then(|raw| std::str::from_utf8(raw).ok())
}

#[cfg(test)]
mod tests;
