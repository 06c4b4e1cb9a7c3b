//! What users, commands and branches say to each other: messages, questions, answers, pauses.
//!
//! Each is a commit under `refs/aynig/` and a ref that is created only if it does not exist. Nothing in this
//! module moves a branch, but for `resume`, which asks again for what `pause --stop` ended. Such refs may be
//! written by any user who may push: they are read only by the protocol's readers, and what is not valid is
//! reported as a problem. Implements K46, K48, K49, K49a, K50 (the refs).

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod inbox;
pub(crate) mod looks;
pub(crate) mod own;
pub(crate) mod pause;
pub(crate) mod send;
pub(crate) mod take;

use super::change::{ChangeError, Inside};
use super::is_written;
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
    IsAnswer(RefName),
    /// The message can't be written, for this reason.
    #[error("cannot write the message: {0}")]
    Message(String),
    /// A message to this other branch has the id already.
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
    /// The branch has no open question.
    #[error("'{0}' asks nothing")]
    NoQuestion(RefName),
    /// No question has this id.
    #[error("there is no question {0}")]
    NoSuchQuestion(MessageId),
    /// The commit with this id can't be read, for this reason.
    #[error("{0} cannot be read: {1}")]
    Unreadable(MessageId, String),
    /// The policy asks for signatures, and the question of this id has none that is valid.
    #[error("{0}")]
    NotSigned(Unsigned),
    /// An answer waits, and this machine can't judge whether it is signed as the policy asks.
    #[error("the answer to question {0} is held until its signature can be judged: {2}")]
    NoJudge(MessageId, RefName, String),
    /// A branch has several open questions.
    #[error("'{0}' asks several questions: {1}")]
    Several(RefName, String),
    /// The run is over, and no head waits for the answer.
    #[error("no branch waits for an answer to question {0} any more")]
    Gone(MessageId),
    /// The question was answered before.
    #[error("question {id} was answered by {by}: {choice}")]
    Answered {
        /// The branch that asked, where that is known.
        branch: Option<RefName>,
        /// The question.
        id: MessageId,
        /// Who answered.
        by: String,
        /// The choice that was made.
        choice: String,
    },
    /// The choice was not offered.
    #[error("'{choice}' is no answer that is offered: {offered}")]
    NotOffered {
        /// The branch that asks.
        branch: RefName,
        /// The choice that was given.
        choice: String,
        /// The choices that are offered.
        offered: String,
    },
    /// None of the choices means yes, or no.
    #[error("the question offers no answer that means {meant}: {offered}")]
    NoShortForm {
        /// The branch that asks.
        branch: RefName,
        /// `yes` or `no`.
        meant: &'static str,
        /// The choices that are offered.
        offered: String,
    },
    /// The commit that the user has looked at is not what the question is about now.
    #[error("question {0} is not about {1} any more")]
    Unseen(MessageId, String),
    /// An error about a branch or its lease.
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
    /// Reads the commit to which the ref of a message or a question points. An object there that is no commit
    /// is [`TalkError::Unreadable`], which callers take for this one message's problem.
    fn said(&self, id: MessageId, commit: ObjectId) -> Result<Commit, TalkError> {
        match self.store.read_commit(commit) {
            Ok(commit) => Ok(commit),
            Err(error @ StoreError::Object { .. }) => Err(TalkError::Unreadable(id, error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a ref; false if it exists by now.
    fn create(&self, name: &RefName, commit: ObjectId, log: &str) -> Result<bool, RunnerError> {
        self.create_with(name, commit, &[], log)
    }

    /// Creates a ref together with changes of other refs, as one transaction; false if one of them does not
    /// hold what it should by now.
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

    /// Returns who speaks: the run that this process belongs to, or else the user.
    pub fn speaker(&self, inside: Option<&Inside>) -> Holder {
        match inside {
            Some(inside) => Holder::Run(inside.run_id.clone()),
            None => Holder::Person(self.settings.identity.1.clone()),
        }
    }

    /// True if the policy asks for no signature, or the commit is signed and names this branch as the one it
    /// was meant for.
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

    /// Returns what this machine lacks to judge the signature of a commit that names this branch; `None` if
    /// it can judge it, or the commit names another branch.
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
