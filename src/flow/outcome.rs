//! What a turn left: the commit that ended it, read back by the code that routes it, judges it, or shows it.
//!
//! A turn declares the state `route`; its subject is the summary, its body the final text, and everything else that
//! follows from it stands in trailers, so that one commit tells all of it, on any clone. What a later version or a foreign
//! hand wrote there is passed by or said, never guessed at. Implements N4 (the declaration), N5 (what it is read for).

use crate::contract::event::ToolCall;
use crate::contract::id::TurnId;
use crate::contract::projection::Ended;
use crate::contract::shown;
use crate::contract::stall::Signals;
use crate::contract::time::Time;
use crate::protocol::event::Event;
use crate::protocol::flow::TURN;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::usage::{Usage, usage_of};
use crate::store::{Commit, Store, StoreError};

/// The state of a node that waits for a person.
pub const BLOCKED: &str = "blocked";
/// The trailer of one call of a tool that `route` is to perform: the call as JSON, on one line.
pub const CALL: &str = "dwp-flow-call";
/// The trailer of what a person said to a call whose program was gone: a JSON text, on one line. `route` says it to the node.
pub const ANSWER: &str = "dwp-flow-answer";
/// The same of what was refused to a program that has no session in which it could be told.
pub const REFUSED: &str = "dwp-flow-refused";
/// The trailer that says how a turn ended, where it did not end well: `interrupted` or `failed`.
pub const ENDED: &str = "dwp-turn";
/// The trailer of the session that goes on.
pub const SESSION: &str = "dwp-session";
/// The trailer of what the final text can be compared by.
pub const OUTPUT_HASH: &str = "dwp-output-hash";
/// The trailer of what the turn's changes can be compared by; missing where it changed nothing.
pub const DIFF_HASH: &str = "dwp-diff-hash";
/// The trailer of what a verification that failed can be compared by.
pub const VERIFICATION: &str = "dwp-verification";
/// Most calls that are read of one turn.
pub const CALLS_MAX: usize = 64;

/// A turn that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The commit that says so.
    pub commit: ObjectId,
    /// When it was written.
    pub at: Time,
    /// The turn: the kernel's run id.
    pub turn: TurnId,
    /// What the turn answered.
    pub trigger: Option<ObjectId>,
    /// How many dispatches led to it.
    pub hop: u32,
    /// How it ended.
    pub ended: Ended,
    /// Its first line.
    pub summary: String,
    /// Its final text.
    pub text: String,
    /// The session that goes on.
    pub session: Option<String>,
    /// What it wants done; of a call that can't be read, why.
    pub calls: Vec<Result<ToolCall, String>>,
    /// What people answered that its program did not hear.
    pub answers: Vec<String>,
    /// What was refused that its program could not be told.
    pub refused: Vec<String>,
    /// What it can be compared with other turns by.
    pub signals: Signals,
    /// What it used.
    pub usage: Vec<Usage>,
}

impl Outcome {
    /// The turn that this commit ended; none where it ended none.
    pub fn of(commit: &Commit) -> Option<Self> {
        let event = Event::of(Message::parse(&commit.message))?;
        Self::read(commit, &event)
    }

    /// When what it answered was written: with its calls' ids this makes the ids of what they send.
    pub fn began(&self, store: &dyn Store) -> Result<Time, StoreError> {
        let trigger = self.trigger.map(|trigger| store.read_commit(trigger)).transpose()?;
        Ok(trigger.and_then(|trigger| trigger.committed).map_or(self.at, Time::from_seconds))
    }

    /// The same, of a commit whose event was read.
    pub fn read(commit: &Commit, event: &Event) -> Option<Self> {
        let turn = TurnId::parse(event.run_id()?).ok()?;
        let of_turn = event.origin_state().is_some_and(|state| state.as_str() == TURN);
        let state = event.state_name()?.as_str();
        if !of_turn || event.is_working() || state == crate::protocol::name::STALLED {
            return None;
        }
        let text = |key: &str| {
            let value = event.message.last(key).and_then(|raw| std::str::from_utf8(raw).ok());
            value.map(str::to_owned).filter(|value| !value.is_empty())
        };
        let ended = match text(ENDED).as_deref().unwrap_or(state) {
            "interrupted" => Ended::Interrupted,
            "failed" => Ended::Failed,
            _ => Ended::Completed,
        };
        let summary = shown::line(&event.message.subject);
        let signals = Signals {
            turn: turn.to_string(),
            output: text(OUTPUT_HASH),
            diff: text(DIFF_HASH),
            verification: text(VERIFICATION),
            summary: summary.clone(),
        };
        let calls = event.message.all(CALL).take(CALLS_MAX).map(|raw| {
            serde_json::from_slice(raw).map_err(|error| shown::line(error.to_string().as_bytes()))
        });
        let texts = |key: &str| {
            let texts = event.message.all(key).take(CALLS_MAX);
            texts.filter_map(|raw| serde_json::from_slice(raw).ok()).collect()
        };
        Some(Self {
            answers: texts(ANSWER),
            refused: texts(REFUSED),
            commit: commit.id,
            at: Time::from_seconds(commit.committed.unwrap_or(0)),
            turn,
            trigger: event.trigger(),
            hop: event.hop(),
            ended,
            summary,
            text: String::from_utf8_lossy(&event.message.body).into_owned(),
            session: text(SESSION),
            calls: calls.collect(),
            signals,
            usage: usage_of(&event.message),
        })
    }
}
