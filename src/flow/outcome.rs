//! What a turn left: the commit that ended it, read back by the code that routes, judges or shows it.
//!
//! A turn declares the state `route`. The commit's subject is the turn's summary, its body is the final text,
//! and everything else that follows from the turn is in trailers, so that one commit tells all of it in any
//! clone. What a later version or a pusher wrote there and this program can't read is skipped or reported,
//! never guessed at. Implements N4 (the declaration), N5 (what it is read for).

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
/// The trailer of one tool call that `route` is to perform: the call as JSON, on one line.
pub const CALL: &str = "dwp-flow-call";
/// The trailer of a person's answer that the program of the call did not hear: a JSON string, on one line.
/// `route` sends it to the node.
pub const ANSWER: &str = "dwp-flow-answer";
/// The trailer of a refusal to a program that has no session in which it could be told. It has the form of
/// [`ANSWER`], and `route` sends it to the node as well.
pub const REFUSED: &str = "dwp-flow-refused";
/// The trailer that says how a turn ended, where it did not end well: `interrupted` or `failed`.
pub const ENDED: &str = "dwp-turn";
/// The trailer of the session with which the node's next turn goes on.
pub const SESSION: &str = "dwp-session";
/// The trailer of the hash by which final texts of turns are compared.
pub const OUTPUT_HASH: &str = "dwp-output-hash";
/// The trailer of the hash by which changes of turns are compared; missing where the turn changed nothing.
pub const DIFF_HASH: &str = "dwp-diff-hash";
/// The trailer of the hash by which failed verifications are compared.
pub const VERIFICATION: &str = "dwp-verification";
/// Most calls that are read of one turn.
pub const CALLS_MAX: usize = 64;

/// A turn that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The commit that ended the turn.
    pub commit: ObjectId,
    /// When that commit was written.
    pub at: Time,
    /// The turn's id, which is the kernel's run id.
    pub turn: TurnId,
    /// The trigger: the commit that the turn answered.
    pub trigger: Option<ObjectId>,
    /// How many dispatches led to the turn.
    pub hop: u32,
    /// How the turn ended.
    pub ended: Ended,
    /// The summary: the commit's subject, as one line.
    pub summary: String,
    /// The final text: the commit's body.
    pub text: String,
    /// The session with which the node's next turn goes on.
    pub session: Option<String>,
    /// The calls that `route` is to perform; for a call that can't be read, why not.
    pub calls: Vec<Result<ToolCall, String>>,
    /// The answers of people that the turn's program did not hear.
    pub answers: Vec<String>,
    /// The refusals that the turn's program could not be told.
    pub refused: Vec<String>,
    /// What the turn is compared with other turns by, to find a circle.
    pub signals: Signals,
    /// The tokens and the cost of the turn.
    pub usage: Vec<Usage>,
}

impl Outcome {
    /// Reads the turn that this commit ended; `None` where it ended none.
    pub fn of(commit: &Commit) -> Option<Self> {
        let event = Event::of(Message::parse(&commit.message))?;
        Self::read(commit, &event)
    }

    /// Returns when the turn's trigger was written; where that is not known, when the turn ended. The ids of
    /// the messages that the turn's calls send are made from this time and the calls' ids.
    pub fn began(&self, store: &dyn Store) -> Result<Time, StoreError> {
        let trigger = self.trigger.map(|trigger| store.read_commit(trigger)).transpose()?;
        Ok(trigger.and_then(|trigger| trigger.committed).map_or(self.at, Time::from_seconds))
    }

    /// Reads the turn as [`Outcome::of`] does, from a commit whose event was read already.
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
