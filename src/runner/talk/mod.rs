//! What people, commands and branches say to each other: messages, questions, answers, pauses.
//!
//! Each is a commit under `refs/aynig/`, and a ref that is made where there is none: nothing here moves a branch, but
//! `resume`, which asks for what `pause --stop` ended. What a foreign hand may write there is read by the protocol's
//! readers alone, and shown as a problem where it is none. Implements K46, K48, K49, K49a, K50 (the refs).

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod inbox;
pub(crate) mod looks;
pub(crate) mod own;
pub(crate) mod pause;
pub(crate) mod send;
pub(crate) mod take;

use super::change::{ChangeError, Inside};
use super::lease::is_written;
use super::{Runner, RunnerError};
use crate::protocol::dialect::{BRANCH, Dialect};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::message::Message;
use crate::protocol::pause::Holder;
use crate::store::{Commit, Expected, RefChange, RefName, StoreError, swap};
use answer::Unsigned;

/// Why nothing was said.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// The branch does not exist.
    #[error("branch '{0}' does not exist")]
    NoBranch(RefName),
    /// Answers are given by a verb of their own.
    #[error("an answer is given to a question, by a verb of its own")]
    IsAnswer,
    /// The message can't be written, and why.
    #[error("cannot write the message: {0}")]
    Message(String),
    /// This id is another branch's message's.
    #[error("message {1} was sent to '{0}': another message needs an id of its own")]
    IdTaken(RefName, MessageId),
    /// This id names no message of the branch's inbox.
    #[error("message {1} does not wait for '{0}'")]
    NotWaiting(RefName, MessageId),
    /// Only a run can do this.
    #[error("this is for a command: no run of this repository is under way here")]
    Outside,
    /// Commands of this dialect write their outcome themselves.
    #[error("the run on '{0}' is of the 'aynig' dialect: its branch takes no messages in")]
    Dialect(RefName),
    /// No question is open there.
    #[error("'{0}' asks nothing")]
    NoQuestion(RefName),
    /// No question has this id.
    #[error("there is no question {0}")]
    NoSuchQuestion(MessageId),
    /// What has this id can't be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(MessageId, String),
    /// A signature is asked for, and what has this id has none for its branch.
    #[error("{0}")]
    NotSigned(Unsigned),
    /// An answer waits, and whether it is signed as the policy asks can't be said here.
    #[error("the answer to question {0} is held until its signature can be judged: {2}")]
    NoJudge(MessageId, RefName, String),
    /// A branch asks several things.
    #[error("'{0}' asks several questions: {1}")]
    Several(RefName, String),
    /// The run is over, and no head waits for the answer.
    #[error("nobody waits for an answer to question {0} any more")]
    Gone(MessageId),
    /// Another person has answered.
    #[error("question {id} was answered by {by}: {choice}")]
    Answered {
        /// The question.
        id: MessageId,
        /// By whom.
        by: String,
        /// How.
        choice: String,
    },
    /// The choice was not offered.
    #[error("'{choice}' is no answer that is offered: {offered}")]
    NotOffered {
        /// What was said.
        choice: String,
        /// What is offered.
        offered: String,
    },
    /// None of the choices means yes, or no.
    #[error("the question offers no answer that means {meant}: {offered}")]
    NoShortForm {
        /// Yes or no.
        meant: &'static str,
        /// What is offered.
        offered: String,
    },
    /// The question is about another commit.
    #[error("question {0} is not about {1} any more")]
    Unseen(MessageId, String),
    /// A branch or its lease.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl From<RunnerError> for TalkError {
    fn from(error: RunnerError) -> Self {
        TalkError::Change(error.into())
    }
}

impl From<StoreError> for TalkError {
    fn from(error: StoreError) -> Self {
        TalkError::Change(error.into())
    }
}

impl Runner<'_> {
    /// The commit that stands under a message's or a question's name. What is there and is none can't be read,
    /// and stops nothing else.
    fn said(&self, id: MessageId, commit: ObjectId) -> Result<Commit, TalkError> {
        match self.store.read_commit(commit) {
            Ok(commit) => Ok(commit),
            Err(error @ StoreError::Object { .. }) => Err(TalkError::Unreadable(id, error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a ref that does not exist; false where it does by now.
    fn create(&self, name: &RefName, commit: ObjectId, log: &str) -> Result<bool, RunnerError> {
        self.create_with(name, commit, &[], log)
    }

    /// Makes a ref that does not exist, together with changes of others; false where one of them does not hold what it
    /// should by now.
    fn create_with(
        &self,
        name: &RefName,
        commit: ObjectId,
        others: &[RefChange],
        log: &str,
    ) -> Result<bool, RunnerError> {
        let (store, by) = (&*self.store, self.signature());
        match swap::compare_and_swap_with(store, name, Expected::Missing, commit, others, &by, log) {
            Ok(made) => is_written(name, made),
            Err(StoreError::Moved { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Who speaks: the run that we are inside of, or a person.
    pub fn speaker(&self, inside: Option<&Inside>) -> Holder {
        match inside {
            Some(inside) => Holder::Run(inside.run_id.clone()),
            None => Holder::Person(self.settings.identity.1.clone()),
        }
    }

    /// True where a commit may speak for itself, or a signature that the policy asks for says that it was meant for
    /// this branch.
    pub(crate) fn is_vouched(
        &self,
        branch: &RefName,
        commit: ObjectId,
        message: &Message,
    ) -> Result<bool, StoreError> {
        if !self.settings.require_signature {
            return Ok(true);
        }
        let named = message.last(BRANCH.of(Dialect::Dwp)) == Some(branch.short());
        Ok(named && self.repo.git.verify_commit(commit)?)
    }

    /// What is missing here to say whether a commit is vouched for, which names this branch and may be.
    fn missing_judge(
        &self,
        branch: &RefName,
        commit: ObjectId,
        message: &Message,
    ) -> Result<Option<String>, StoreError> {
        match message.last(BRANCH.of(Dialect::Dwp)) == Some(branch.short()) {
            true => self.repo.git.missing_judge(commit),
            false => Ok(None),
        }
    }
}
