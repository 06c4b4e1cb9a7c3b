//! The questions that branches ask a person, as `status` shows them: a question that may be believed with its
//! text, any other only with its id and the reason.
//!
//! Implements K49a, K49b.

use super::AppError;
use super::shown::{Shown, short};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{MessageId, QUESTION};
use crate::runner::Runner;
use crate::runner::survey::BranchStatus;
use crate::runner::talk::answer::Unsigned;
use crate::runner::talk::ask::Asked;
use crate::store::RefName;
use serde::Serialize;
use std::borrow::Cow;

/// The questions that wait for a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The questions that may be answered, the oldest first.
    pub open: Vec<Asked>,
    /// The questions that are not signed as the policy asks.
    pub unsigned: Vec<Unsigned>,
}

impl Asking {
    /// Returns the open questions of all branches, or none, without reading any, where none of these heads
    /// allows for a question.
    pub fn look<'s>(
        runner: &Runner<'_>,
        mut branches: impl Iterator<Item = &'s BranchStatus>,
    ) -> Result<Self, AppError> {
        if branches.any(may_ask) { Self::all(runner) } else { Ok(Self::default()) }
    }

    /// Returns the open questions of all branches.
    pub(super) fn all(runner: &Runner<'_>) -> Result<Self, AppError> {
        let found = runner.questions(None);
        let found = found.map_err(|error| AppError::talked(error, runner.settings.remote.clone()))?;
        let open = found.open.into_iter().map(|(asked, _)| asked).collect();
        Ok(Self { open, unsigned: found.unsigned })
    }

    /// Returns the questions of a branch that may be answered.
    pub fn open_of(&self, branch: &RefName) -> Vec<&Asked> {
        self.open.iter().filter(|asked| asked.branch() == *branch).collect()
    }

    /// Returns the questions of a branch that are not signed as the policy asks.
    pub fn unsigned_of(&self, branch: &RefName) -> Vec<&Unsigned> {
        self.unsigned.iter().filter(|unsigned| unsigned.branch == *branch).collect()
    }

    /// Returns the branches that have a question, signed or not. A branch with several questions is in the
    /// list several times.
    pub fn branches(&self) -> Vec<RefName> {
        let unsigned = self.unsigned.iter().map(|unsigned| unsigned.branch.clone());
        self.open.iter().map(Asked::branch).chain(unsigned).collect()
    }

    /// True where a branch has a question, signed or not.
    pub fn is_asked_by(&self, branch: &RefName) -> bool {
        !self.open_of(branch).is_empty() || !self.unsigned_of(branch).is_empty()
    }

    /// Returns a branch's questions as programs read them, those that may be answered first.
    pub fn lines(&self, branch: &RefName) -> Vec<AskedLine<'_>> {
        let open = self.open_of(branch).into_iter().map(AskedLine::of);
        open.chain(self.unsigned_of(branch).into_iter().map(AskedLine::unsigned)).collect()
    }
}

/// True where a head allows for a question: it is a lease, whose run may ask, or it names a question itself.
pub(super) fn may_ask(status: &BranchStatus) -> bool {
    let event = status.tip.event.as_ref();
    event.is_some_and(|event| event.is_working() || event.message.last(QUESTION).is_some())
}

/// A question of a branch as programs read it.
#[derive(Serialize)]
pub struct AskedLine<'a> {
    id: Shown<MessageId>,
    branch: Cow<'a, str>,
    run_id: Option<&'a str>,
    choices: &'a [String],
    text: Option<&'a str>,
    commit: Shown<ObjectId>,
    snapshot: Option<Shown<ObjectId>>,
    asked: Option<i64>,
    unsigned: Option<String>,
}

impl<'a> AskedLine<'a> {
    fn of(asked: &'a Asked) -> Self {
        let question = &asked.question;
        Self {
            id: Shown(question.id),
            branch: String::from_utf8_lossy(&question.branch),
            run_id: question.run_id.as_deref(),
            choices: &question.choices,
            text: Some(&question.text),
            commit: Shown(asked.commit),
            snapshot: asked.snapshot.map(Shown),
            asked: asked.asked,
            unsigned: None,
        }
    }

    /// Makes the line of an unsigned question. Nothing that its commit says is believed, so none of it is
    /// shown.
    fn unsigned(unsigned: &'a Unsigned) -> Self {
        Self {
            id: Shown(unsigned.id),
            branch: short(&unsigned.branch),
            run_id: None,
            choices: &[],
            text: None,
            commit: Shown(unsigned.commit),
            snapshot: None,
            asked: None,
            unsigned: Some(unsigned.to_string()),
        }
    }
}
