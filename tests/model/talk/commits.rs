//! The commits of the model of messages: each written, rendered and parsed by the shipped functions.
//!
//! A commit is a number here, and the same message on the same parents at the same time is one commit, as to Git.

use super::world::{BRANCHES, Commit, question_id};
use aynig::protocol::declaration::Declaration;
use aynig::protocol::dialect::{BRANCH, Dialect, RECOVERY_ID};
use aynig::protocol::event::Event;
use aynig::protocol::id::ObjectId;
use aynig::protocol::inbox::{InboxRef, Letter, QUESTION};
use aynig::protocol::message::{Message, Trailer};
use aynig::protocol::pause::{Holder, Pause};
use aynig::protocol::question::Question;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

/// Seconds of a tick of the clock.
pub const TICK: i64 = 600;

/// What the branch's head asks for when everything begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing: it takes messages.
    Idle,
    Build,
    /// Not before the first tick of the clock.
    BuildLater,
    /// After the other branch is done.
    BuildAfter,
    Ask,
}

/// A commit that was written.
#[derive(Debug)]
pub struct Written {
    pub raw: Vec<u8>,
    pub message: Message,
    pub event: Option<Event>,
    pub parents: Vec<Commit>,
    pub ids: Vec<ObjectId>,
    pub time: u8,
    /// Which work its files hold, one bit each.
    pub files: u8,
    /// The messages that it took in, whatever it says of them.
    pub brought: Vec<Commit>,
}

type Key = (Vec<u8>, Vec<Commit>, u8, u8, Vec<Commit>);

#[derive(Default)]
struct Book {
    numbers: HashMap<Key, Commit>,
    all: Vec<&'static Written>,
}

fn book() -> &'static Mutex<Book> {
    static BOOK: OnceLock<Mutex<Book>> = OnceLock::new();
    BOOK.get_or_init(Mutex::default)
}

/// Writes a commit that has the files of its first parent.
pub fn write(message: &Message, parents: &[Commit], time: u8) -> Commit {
    let files = parents.first().map_or(0, |parent| read(*parent).files);
    bring(message, parents, time, files, &[])
}

/// Writes a commit that has these files and took in these messages.
pub fn bring(message: &Message, parents: &[Commit], time: u8, files: u8, brought: &[Commit]) -> Commit {
    let raw = message.render().unwrap();
    let mut book = book().lock().unwrap();
    let key = (raw, parents.to_vec(), time, files, brought.to_vec());
    if let Some(known) = book.numbers.get(&key) {
        return *known;
    }
    let number = Commit::try_from(book.all.len()).unwrap();
    let message = Message::parse(&key.0);
    book.all.push(Box::leak(Box::new(Written {
        raw: key.0.clone(),
        event: Event::of(message.clone()),
        message,
        parents: parents.to_vec(),
        ids: parents.iter().map(|parent| id(*parent)).collect(),
        time,
        files,
        brought: brought.to_vec(),
    })));
    book.numbers.insert(key, number);
    number
}

/// The commit of a number.
pub fn read(commit: Commit) -> &'static Written {
    book().lock().unwrap().all[usize::from(commit)]
}

/// Its id.
pub fn id(commit: Commit) -> ObjectId {
    let mut bytes = [0xc0; 20];
    bytes[..2].copy_from_slice(&commit.to_be_bytes());
    ObjectId::from_bytes(&bytes).unwrap()
}

/// The number of an id.
pub fn number(id: ObjectId) -> Commit {
    Commit::from_be_bytes([id.as_bytes()[0], id.as_bytes()[1]])
}

/// A person's event.
pub fn event(state: &str, more: &[(&str, String)], parents: &[Commit], time: u8) -> Commit {
    let mut trailers = vec![Trailer::new("dwp-state", state)];
    trailers.extend(more.iter().map(|(key, value)| Trailer::new(*key, value)));
    write(&Message::new("go", "", trailers), parents, time)
}

/// The branch's first commit.
pub fn start(start: Start) -> Commit {
    let (state, more) = match start {
        Start::Idle => ("idle", vec![("dwp-accepts", ACCEPTS.to_owned())]),
        Start::Build => ("build", Vec::new()),
        Start::BuildLater => ("build", vec![("dwp-not-before", TICK.to_string())]),
        Start::BuildAfter => ("build", vec![("dwp-after", "other=done".to_owned())]),
        Start::Ask => ("ask", Vec::new()),
    };
    event(state, &more, &[], 0)
}

/// The first commit of the other branch.
pub fn beside() -> Commit {
    event("idle", &[("dwp-accepts", ACCEPTS.to_owned())], &[work(0)], 0)
}

/// The work that is handed over as the number, less one; 0 is what the other branch stands on.
pub fn work(n: u8) -> Commit {
    let files = if n == 0 { 0 } else { 1 << (n - 1) };
    bring(&Message::new(format!("work {n}"), "", Vec::new()), &[], 0, files, &[])
}

/// The work that a message brings.
pub fn attached(letter: Commit) -> Option<Commit> {
    read(letter).parents.first().copied()
}

/// True where a commit is another, or among those that it stands on.
pub fn has(at: Commit, other: Commit) -> bool {
    at == other || read(at).parents.iter().any(|parent| has(*parent, other))
}

const ACCEPTS: &str = "message=rework handoff=rework";

/// What the command of a state declares; `None` where that state has no command.
pub fn declared(state: &str, question: u8) -> Option<Declaration> {
    let json = match state {
        "build" | "rework" => {
            format!("{{\"state\":\"idle\",\"trailers\":[\"dwp-accepts: {ACCEPTS}\"]}}")
        }
        "ask" => format!(
            "{{\"state\":\"waiting\",\"trailers\":[\"dwp-question: {}\",\"dwp-accepts: answer=go\"]}}",
            question_id(question)
        ),
        "go" => "{\"state\":\"done\"}".to_owned(),
        _ => return None,
    };
    Some(Declaration::parse(json.as_bytes()).unwrap())
}

/// A message to a place; `nonce` tells it from others of its id.
pub fn letter(at: &InboxRef, attached: Option<Commit>, nonce: &str) -> Commit {
    let letter = Letter {
        id: at.id,
        kind: at.kind.clone(),
        from: "ada".into(),
        hop: 0,
        seen: None,
        attached: attached.map(id),
        question: None,
        choice: None,
        trailers: Vec::new(),
        text: "hello".into(),
    };
    let mut message = letter.message().unwrap();
    // Under `heard` nothing else says whose it was.
    message.trailers.push(Trailer { key: BRANCH.of(Dialect::Dwp).into(), value: at.branch.clone() });
    message.trailers.push(Dialect::Dwp.trailer(RECOVERY_ID, nonce));
    write(&message, attached.as_slice(), 0)
}

/// The branch that a message says that it was sent to.
pub fn sent_to(letter: Commit) -> Option<&'static [u8]> {
    read(letter).message.last(BRANCH.of(Dialect::Dwp))
}

/// A question of a run.
pub fn question(n: u8, run_id: &str, lease: Commit) -> Commit {
    let question = Question {
        id: question_id(n),
        branch: BRANCHES[0].to_vec(),
        run_id: Some(run_id.to_owned()),
        choices: vec!["yes".into(), "no".into()],
        text: "Deploy?".into(),
    };
    write(&question.message().unwrap(), &[lease], 0)
}

/// A pause.
pub fn pause(nonce: &str) -> Commit {
    let pause = Pause {
        patterns: Vec::new(),
        holder: Holder::Person("ada@example.com".into()),
        reason: nonce.to_owned(),
    };
    write(&pause.message().unwrap(), &[], 0)
}

/// The question that an answer names.
pub fn answers(commit: Commit) -> Option<Vec<u8>> {
    read(commit).message.last(QUESTION).map(<[u8]>::to_vec)
}

/// The commits of a line, the newest first.
pub fn line(head: Commit) -> impl Iterator<Item = Commit> {
    std::iter::successors(Some(head), |commit| read(*commit).parents.first().copied())
}
