//! The messages of the model's commits, each built, rendered and parsed by the shipped functions.
//!
//! A message is a number here, and two messages of the same bytes are one number: commits with the same
//! parent, message and date are one commit, as they are to Git. Whether two runners can write the same commit
//! is thus up to what the shipped messages say. Tries K8, K10, K20, K23, K27 (what the messages tell).

use aynig::protocol::complete::{Exit, Stall};
use aynig::protocol::declaration::Declaration;
use aynig::protocol::dialect::Dialect;
use aynig::protocol::event::Event;
use aynig::protocol::id::ObjectId;
use aynig::protocol::message::{Message, Trailer};
use aynig::protocol::name::StateName;
use aynig::protocol::transition::{Run, recovered};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

/// What a commit is, and what its message is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Text {
    /// A person's commit without a state; the number tells it from others.
    Plain(u8),
    /// A person's `build`.
    Trigger(u8),
    /// A lease.
    Lease(Of),
    /// What the command declared, written by its runner.
    Outcome(Of),
    /// What the command wrote itself, by `set-state`.
    Own(Of),
    /// The end of a failed run, by its runner.
    Stall(Of),
    /// The end of an expired lease, by another runner; the number tells it from others.
    Recovery(Of, u8),
}

/// What a run's messages are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Of {
    /// The run's number.
    pub run: u8,
    /// The runner's number.
    pub runner: u8,
    /// The commit that is answered.
    pub trigger: u8,
    /// The number of that commit's message.
    pub asked: u16,
}

/// A message that was rendered and parsed again.
pub struct Known {
    /// What it is.
    pub text: Text,
    /// What the shipped parser makes of it.
    pub event: Option<Event>,
}

#[derive(Default)]
struct Book {
    by_text: HashMap<Text, u16>,
    by_bytes: HashMap<Vec<u8>, u16>,
    known: Vec<&'static Known>,
}

/// The length of every lease, in seconds.
pub const LEASE_SECONDS: u64 = 4 * super::world::TICK;

fn book() -> &'static Mutex<Book> {
    static BOOK: OnceLock<Mutex<Book>> = OnceLock::new();
    BOOK.get_or_init(Mutex::default)
}

/// The number of a message.
pub fn number(text: Text) -> u16 {
    if let Some(number) = book().lock().unwrap().by_text.get(&text) {
        return *number;
    }
    let bytes = message(text).render().unwrap();
    let event = Event::of(Message::parse(&bytes));
    let mut book = book().lock().unwrap();
    let next = u16::try_from(book.known.len()).unwrap();
    let number = *book.by_bytes.entry(bytes).or_insert(next);
    if number == next {
        book.known.push(Box::leak(Box::new(Known { text, event })));
    }
    book.by_text.insert(text, number);
    number
}

/// The message of a number.
pub fn known(number: u16) -> &'static Known {
    book().lock().unwrap().known[usize::from(number)]
}

/// The id of a commit.
pub fn id(commit: u8) -> ObjectId {
    ObjectId::from_bytes(&[commit + 1; 20]).unwrap()
}

/// A runner's id.
pub fn runner_id(runner: u8) -> &'static str {
    ["host-0", "host-1", "host-2"][usize::from(runner)]
}

/// A run's id.
pub fn run_id(run: u8) -> &'static str {
    ["run-0", "run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7"][usize::from(run)]
}

/// What a command declares, and what it writes itself.
pub fn declaration(own: bool) -> &'static Declaration {
    static DECLARED: OnceLock<[Declaration; 2]> = OnceLock::new();
    let both = DECLARED.get_or_init(|| {
        [r#"{"state":"done"}"#, r#"{"state":"review"}"#]
            .map(|json| Declaration::parse(json.as_bytes()).unwrap())
    });
    &both[usize::from(own)]
}

fn run(of: Of) -> Run {
    let asked = known(of.asked).event.as_ref().unwrap();
    Run {
        id: run_id(of.run).to_owned(),
        dialect: Dialect::Dwp,
        runner_id: runner_id(of.runner).to_owned(),
        state: asked.state_name().unwrap().clone(),
        trigger: id(of.trigger),
        hop: asked.hop().saturating_add(1),
        lease_seconds: LEASE_SECONDS,
        remote: Some("origin".to_owned()),
    }
}

fn message(text: Text) -> Message {
    let asked = |of: Of| &known(of.asked).event.as_ref().unwrap().message;
    match text {
        Text::Plain(n) => Message::new(format!("work {n}"), "", Vec::new()),
        Text::Trigger(n) => {
            let state = StateName::new("build").unwrap();
            Message::new(format!("build {n}"), "", vec![Trailer::new("dwp-state", state.to_string())])
        }
        Text::Lease(of) => run(of).lease(asked(of)),
        Text::Outcome(of) => run(of).outcome(declaration(false), &run(of).lease(asked(of))),
        Text::Own(of) => run(of).outcome(declaration(true), &run(of).lease(asked(of))),
        Text::Stall(of) => run(of).stalled(&Stall::Exit(Exit::Code(1)), "", &run(of).lease(asked(of))),
        Text::Recovery(of, salt) => {
            let lease = Event::of(run(of).lease(asked(of))).unwrap();
            recovered(&lease, &format!("recovery-{salt}"), "")
        }
    }
}

impl Text {
    /// The run whose commit it is.
    pub fn of(self) -> Option<Of> {
        match self {
            Text::Plain(_) | Text::Trigger(_) => None,
            Text::Lease(of) | Text::Outcome(of) | Text::Own(of) | Text::Stall(of) | Text::Recovery(of, _) => {
                Some(of)
            }
        }
    }
}
