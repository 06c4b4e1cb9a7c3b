//! What branches ask a person, as `status` tells of it: in the words of a question that may be believed, of any other its id and why.
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
    /// Those that may be answered, the oldest first.
    pub open: Vec<Asked>,
    /// Those that are not signed as the policy asks.
    pub unsigned: Vec<Unsigned>,
}

impl Asking {
    /// What these branches ask; of a remote's it is only asked where one of them may.
    pub fn look<'s>(
        runner: &Runner<'_>,
        mut branches: impl Iterator<Item = &'s BranchStatus>,
    ) -> Result<Self, AppError> {
        if branches.any(may_ask) { Self::all(runner) } else { Ok(Self::default()) }
    }

    /// What all branches ask.
    pub(super) fn all(runner: &Runner<'_>) -> Result<Self, AppError> {
        let found = runner.questions(None);
        let found = found.map_err(|error| AppError::talked(error, runner.settings.remote.clone()))?;
        let open = found.open.into_iter().map(|(asked, _)| asked).collect();
        Ok(Self { open, unsigned: found.unsigned })
    }

    /// What a branch asks.
    pub fn open_of(&self, branch: &RefName) -> Vec<&Asked> {
        self.open.iter().filter(|asked| asked.branch() == *branch).collect()
    }

    /// What it would ask if that were signed.
    pub fn unsigned_of(&self, branch: &RefName) -> Vec<&Unsigned> {
        self.unsigned.iter().filter(|unsigned| unsigned.branch == *branch).collect()
    }

    /// The branches that ask.
    pub fn branches(&self) -> Vec<RefName> {
        let unsigned = self.unsigned.iter().map(|unsigned| unsigned.branch.clone());
        self.open.iter().map(Asked::branch).chain(unsigned).collect()
    }

    /// True for a branch that asks.
    pub fn is_asked_by(&self, branch: &RefName) -> bool {
        !self.open_of(branch).is_empty() || !self.unsigned_of(branch).is_empty()
    }

    /// What a branch asks, as programs read it.
    pub fn lines(&self, branch: &RefName) -> Vec<AskedLine<'_>> {
        let open = self.open_of(branch).into_iter().map(AskedLine::of);
        open.chain(self.unsigned_of(branch).into_iter().map(AskedLine::unsigned)).collect()
    }
}

/// True for a branch that a question may be asked on: by its run, or by its head.
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

    /// Nothing of what it says is believed, or shown.
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
