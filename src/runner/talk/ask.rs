//! Asking, from inside a run: the commit of the question, whose parent is the run's work as it is now.
//!
//! The work is read as an outcome would read it (K25), and nothing in the slot is moved for that. A run that
//! waits looks for the one message that can be the answer, and takes it away together with the question. A
//! message in the answer's place that is not one of the offered answers is removed, because it would keep the
//! user's answer out. One that may be the answer, but whose signature can't be judged on this machine, stays.
//! Implements K49, K49a (what is taken for an answer).

use super::super::Runner;
use super::super::change::{ChangeError, Inside};
use super::TalkError;
use crate::protocol::dialect::Writer;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{InboxRef, Kind, Letter, answer_id, asked_ref, heard_ref, inbox_ref};
use crate::protocol::message::{Message, Trailer};
use crate::protocol::question::{Offered, Question};
use crate::store::{Commit, NewCommit, RefChange, RefName, swap};

/// A question, with its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What it asks.
    pub question: Question,
    pub commit: ObjectId,
    /// The commit of the work that is asked about.
    pub snapshot: Option<ObjectId>,
    /// When it was asked, in seconds since 1970.
    pub asked: Option<i64>,
}

impl Asked {
    /// Returns the branch that asks.
    pub fn branch(&self) -> RefName {
        RefName::branch(&self.question.branch)
    }

    /// Returns the place in the inbox where the only possible answer waits.
    pub(super) fn answer_at(&self) -> InboxRef {
        let id = answer_id(self.question.id);
        InboxRef { branch: self.question.branch.clone(), kind: Kind::answer(), id }
    }

    pub(super) fn answer_name(&self) -> RefName {
        let at = self.answer_at();
        RefName::new(inbox_ref(&at.branch, &at.kind, at.id))
    }

    pub(super) fn name(&self) -> RefName {
        RefName::new(asked_ref(self.question.id))
    }
}

/// What was found in the place of an answer.
pub(super) enum Place {
    Answer(Box<Letter>),
    /// A message that may be the answer, but whose signature can't be judged without what is named.
    Unjudged(String),
    /// A message that is no answer to this question.
    Nothing,
}

impl Runner<'_> {
    /// Asks a question about the work of the run that this process belongs to: `ask`. With `waits` the
    /// command itself waits for the answer.
    ///
    /// # Errors
    /// [`ChangeError::LeaseLost`], [`TalkError::Message`], and [`TalkError::Dialect`] if `waits` is false and
    /// the branch, being of the `aynig` dialect, could not take the answer in.
    pub fn ask(
        &self,
        inside: &Inside,
        text: &str,
        choices: &[String],
        waits: bool,
    ) -> Result<Asked, TalkError> {
        self.ask_with(inside, text, choices, Vec::new(), waits)
    }

    /// Asks as [`Runner::ask`] does, and adds these trailers to the question.
    pub fn ask_with(
        &self,
        inside: &Inside,
        text: &str,
        choices: &[String],
        trailers: Vec<Trailer>,
        waits: bool,
    ) -> Result<Asked, TalkError> {
        let branch = &inside.branch;
        let (tip, _, run) = self.own_lease(branch, inside)?;
        if run.dialect.writer() == Writer::Command && !waits {
            return Err(TalkError::Dialect(branch.clone()));
        }
        let (tree, parents, _) = self.inside_tree(inside, &tip, run.dialect, &mut Vec::new())?;
        let snapshot = match tree == tip.commit.tree && parents == [tip.id()] {
            true => tip.id(),
            false => self.store.write_commit(&NewCommit {
                tree,
                parents,
                signature: self.signature(),
                message: format!("aynig: work of run {} as it asks\n", inside.run_id).into_bytes(),
            })?,
        };
        let question = Question {
            id: self.new_id(),
            branch: branch.short().to_vec(),
            run_id: Some(inside.run_id.clone()),
            choices: choices.to_vec(),
            text: text.to_owned(),
        };
        let mut message = question.message().map_err(|why| TalkError::Message(why.to_string()))?;
        message.trailers.extend(trailers);
        let commit = self.write_said(branch, tree, vec![snapshot], message)?;
        let asked = Asked { question, commit, snapshot: Some(snapshot), asked: Some(self.clock.now()) };
        if !self.create(&asked.name(), commit, "aynig: ask")? {
            return Err(ChangeError::Raced(asked.name()).into());
        }
        Ok(asked)
    }

    /// Returns the answer to a question; `None` until there is one. A message in its place that is no answer
    /// is removed.
    ///
    /// # Errors
    /// [`TalkError::NoJudge`] if a message may be the answer but this machine can't judge whether it is
    /// signed as the policy asks; that message stays.
    pub fn answer_of(&self, asked: &Asked) -> Result<Option<(ObjectId, Letter)>, TalkError> {
        let name = asked.answer_name();
        let Some(id) = self.store.tip(&name)? else { return Ok(None) };
        let place = match self.said(asked.question.id, id) {
            Ok(commit) => self.as_answer(asked, &commit)?,
            Err(TalkError::Unreadable(..)) => Place::Nothing,
            Err(error) => return Err(error),
        };
        match place {
            Place::Answer(letter) => Ok(Some((id, *letter))),
            Place::Unjudged(missing) => Err(TalkError::NoJudge(asked.question.id, name, missing)),
            Place::Nothing => {
                swap::delete_ref(&*self.store, &name, id, &self.signature())?;
                Ok(None)
            }
        }
    }

    /// Judges the commit in the place of an answer. It is the answer to this question if it names the commit
    /// of the question, makes an offered choice and, where the policy asks for signatures, is signed for the
    /// branch.
    pub(super) fn as_answer(&self, asked: &Asked, commit: &Commit) -> Result<Place, TalkError> {
        let message = Message::parse(&commit.message);
        let letter = Letter::read_at(&asked.answer_at(), &message, &commit.parents).ok();
        let letter = letter
            .filter(|letter| letter.question == Some(asked.question.id) && letter.seen == Some(asked.commit));
        let is_offered = |choice: &String| asked.question.offers(choice) == Offered::Yes;
        let letter = letter.filter(|letter| letter.choice.as_ref().is_some_and(is_offered));
        let (Some(letter), branch) = (letter, asked.branch()) else { return Ok(Place::Nothing) };
        if self.is_vouched(&branch, commit.id, &message)? {
            return Ok(Place::Answer(Box::new(letter)));
        }
        let missing = self.missing_judge(&branch, commit.id, &message)?;
        Ok(missing.map_or(Place::Nothing, Place::Unjudged))
    }

    /// Moves an answer to `heard` and deletes its question, once the run that asked has received it. Two
    /// steps instead of one transaction: the process that answers deletes the question a moment after the
    /// answer exists, and that must not make the first step fail.
    pub fn take_answer(&self, asked: &Asked, answer: ObjectId) -> Result<(), TalkError> {
        let heard = RefName::new(heard_ref(answer_id(asked.question.id)));
        let gone = [RefChange::delete(asked.answer_name(), answer)];
        if !self.create_with(&heard, answer, &gone, "aynig: heard")? {
            // The answer was moved to `heard` before.
            swap::delete_ref(&*self.store, &asked.answer_name(), answer, &self.signature())?;
        }
        self.withdraw(asked)
    }

    /// Deletes a question for whose answer no run waits any more.
    pub fn withdraw(&self, asked: &Asked) -> Result<(), TalkError> {
        swap::delete_ref(&*self.store, &asked.name(), asked.commit, &self.signature())?;
        Ok(())
    }
}
