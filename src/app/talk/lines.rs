//! Messages, questions and pauses as programs read them. Implements JSON of the contract.

use super::super::shown::{Shown, each_trailer, short};
use super::{MESSAGE_SCHEMA, PAUSE_SCHEMA, QUESTION_SCHEMA};
use crate::protocol::accepts::ACCEPTS;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Kind, Letter, MessageId, QUESTION};
use crate::protocol::message::Trailer;
use crate::protocol::pause::Holder;
use crate::runner::talk::ask::Asked;
use crate::runner::talk::inbox::Waiting;
use crate::runner::talk::pause::{Paused, Stopped};
use crate::runner::talk::send::Sent;
use crate::store::RefName;
use serde::Serialize;
use std::borrow::Cow;

/// A message as programs read it.
#[derive(Serialize)]
pub struct MessageLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    id: Shown<MessageId>,
    kind: Shown<&'a Kind>,
    from: Option<&'a str>,
    hop: Option<u32>,
    commit: Shown<ObjectId>,
    seen: Option<Shown<ObjectId>>,
    attached: Option<Shown<ObjectId>>,
    question: Option<Shown<MessageId>>,
    choice: Option<&'a str>,
    text: Option<&'a str>,
    #[serde(serialize_with = "each_trailer")]
    trailers: &'a [Trailer],
    problem: Option<&'a str>,
    sent: Option<bool>,
    waiting: bool,
}

impl<'a> MessageLine<'a> {
    fn new(
        branch: &'a RefName,
        (id, kind, commit): (MessageId, &'a Kind, ObjectId),
        letter: Result<&'a Letter, &'a str>,
    ) -> Self {
        let (letter, problem) = (letter.ok(), letter.err());
        Self {
            schema: MESSAGE_SCHEMA,
            branch: short(branch),
            id: Shown(id),
            kind: Shown(kind),
            from: letter.map(|letter| &*letter.from),
            hop: letter.map(|letter| letter.hop),
            commit: Shown(commit),
            seen: letter.and_then(|letter| letter.seen).map(Shown),
            attached: letter.and_then(|letter| letter.attached).map(Shown),
            question: letter.and_then(|letter| letter.question).map(Shown),
            choice: letter.and_then(|letter| letter.choice.as_deref()),
            text: letter.map(|letter| &*letter.text),
            trailers: letter.map_or(&[], |letter| &letter.trailers),
            problem,
            sent: None,
            waiting: true,
        }
    }

    /// Makes the line of a message that was sent.
    pub fn of_sent(sent: &'a Sent) -> Self {
        let (letter, waiting) = (&sent.letter, sent.waiting);
        let line = Self::new(&sent.branch, (letter.id, &letter.kind, sent.commit), Ok(letter));
        Self { sent: Some(sent.fresh), waiting, ..line }
    }

    /// Makes the line of a message that waits.
    pub fn of_waiting(branch: &'a RefName, waiting: &'a Waiting) -> Self {
        let letter = waiting.letter.as_ref().map_err(String::as_str);
        Self::new(branch, (waiting.id, &waiting.kind, waiting.commit), letter)
    }

    /// Makes the line of an answer that was heard.
    pub fn of_answer(branch: &'a RefName, commit: ObjectId, letter: &'a Letter) -> Self {
        let line = Self::new(branch, (letter.id, &letter.kind, commit), Ok(letter));
        Self { waiting: false, ..line }
    }
}

/// A question as programs read it.
#[derive(Serialize)]
pub struct QuestionLine<'a> {
    schema: &'static str,
    id: Shown<MessageId>,
    branch: Cow<'a, str>,
    run_id: Option<&'a str>,
    choices: &'a [String],
    text: &'a str,
    commit: Shown<ObjectId>,
    snapshot: Option<Shown<ObjectId>>,
    asked: Option<i64>,
    declare: Vec<String>,
}

impl<'a> QuestionLine<'a> {
    /// Makes the line of a question.
    pub fn of(asked: &'a Asked) -> Self {
        let question = &asked.question;
        Self {
            schema: QUESTION_SCHEMA,
            id: Shown(question.id),
            branch: String::from_utf8_lossy(&question.branch),
            run_id: question.run_id.as_deref(),
            choices: &question.choices,
            text: &question.text,
            commit: Shown(asked.commit),
            snapshot: asked.snapshot.map(Shown),
            asked: asked.asked,
            declare: declare(question.id),
        }
    }
}

/// Returns the trailers of a head that waits for the answer to a question.
pub fn declare(id: MessageId) -> Vec<String> {
    vec![format!("{QUESTION}: {id}"), format!("{ACCEPTS}: answer=<state>")]
}

/// A pause as programs read it.
#[derive(Serialize)]
pub struct PauseLine<'a> {
    schema: &'static str,
    id: Shown<MessageId>,
    commit: Shown<ObjectId>,
    patterns: &'a [String],
    holder: Shown<&'a Holder>,
    reason: &'a str,
    since: Option<i64>,
    stopped: Vec<StoppedLine<'a>>,
    resumed: Vec<Cow<'a, str>>,
}

#[derive(Serialize)]
struct StoppedLine<'a> {
    branch: Cow<'a, str>,
    trigger: Shown<ObjectId>,
}

impl<'a> PauseLine<'a> {
    /// Makes the line of a pause. Where it was taken back, `resumed` are the branches whose runs were asked
    /// for again.
    pub fn of(paused: &'a Paused, resumed: &'a [RefName]) -> Self {
        let line = |run: &'a Stopped| StoppedLine { branch: short(&run.branch), trigger: Shown(run.trigger) };
        Self {
            schema: PAUSE_SCHEMA,
            id: Shown(paused.id),
            commit: Shown(paused.commit),
            patterns: &paused.pause.patterns,
            holder: Shown(&paused.pause.holder),
            reason: &paused.pause.reason,
            since: paused.since,
            stopped: paused.stopped.iter().map(line).collect(),
            resumed: resumed.iter().map(short).collect(),
        }
    }
}
