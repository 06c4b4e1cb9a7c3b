//! Answering: one message whose id is derived from the question's, so that there can be only one answer.
//!
//! In one transaction the answer's ref is created, if there is none and the question still stands, and the
//! question's ref is deleted. After a kill in between the question's ref stays, but the question is answered
//! all the same: a user who answers again learns who did. Implements K49 (which questions stand), K49a.

use super::super::change::Inside;
use super::super::{Runner, RunnerError, Tip};
use super::TalkError;
use super::ask::{Asked, Place};
use super::send::{Head, Sent};
use crate::protocol::decide::asked_by;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{
    ASKED, Kind, Letter, MessageId, answer_id, asked_ref, heard_ref, parse_id_ref, parse_inbox_ref,
};
use crate::protocol::message::Message;
use crate::protocol::question::{Asker, Offered, Question};
use crate::protocol::text::escape;
use crate::store::{RefChange, RefName, StoreError};
use std::fmt;

/// The content of an answer.
#[derive(Debug, Clone)]
pub struct Answering {
    pub choice: String,
    /// The text of the answer, beside the choice.
    pub text: String,
    /// The commit that the user has looked at, if that is to be checked.
    pub seen: Option<ObjectId>,
}

/// The questions that wait for an answer.
#[derive(Debug, Default)]
pub struct Questions {
    /// Those that may be answered, with who waits for the answer; the oldest first.
    pub open: Vec<(Asked, Asker)>,
    /// Those that are not signed as the policy asks: their author is not known, so their words are not shown.
    pub unsigned: Vec<Unsigned>,
}

/// A question that waits for an answer and is not signed as the policy asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsigned {
    pub id: MessageId,
    /// The branch that it names.
    pub branch: RefName,
    pub commit: ObjectId,
    /// What Git objects to about its signature; empty if it has none.
    pub why: String,
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "question {} is not signed for '{}'", self.id, self.branch)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", escape(self.why.as_bytes())) }
    }
}

impl Runner<'_> {
    /// Returns the questions that wait for an answer, of one branch or of all, the oldest first. Questions
    /// for whose answer neither a run nor a head waits are left out, as are answered ones and refs that hold
    /// no question.
    pub fn open_questions(&self, of: Option<&RefName>) -> Result<Vec<(Asked, Asker)>, TalkError> {
        Ok(self.questions(of)?.open)
    }

    /// Returns what [`Runner::open_questions`] does, and apart from these the questions that would be open if
    /// they were signed as the policy asks.
    pub fn questions(&self, of: Option<&RefName>) -> Result<Questions, TalkError> {
        let prefix = String::from_utf8_lossy(ASKED);
        let mut found = Questions::default();
        for (name, commit) in self.store.scan(&prefix)? {
            let Some(id) = parse_id_ref(ASKED, name.as_bytes()) else { continue };
            let asked = match self.read_words(id, commit) {
                Ok(asked) => asked,
                Err(TalkError::Change(error)) => return Err(error.into()),
                // The ref holds no question.
                Err(_) => continue,
            };
            if of.is_some_and(|branch| *branch != asked.branch()) {
                continue;
            }
            let asker = self.asker(&asked)?;
            if asker == Asker::Nobody || self.is_answered(&asked)? {
                continue;
            }
            match self.objection_to(&asked)? {
                None => found.open.push((asked, asker)),
                Some(unsigned) => found.unsigned.push(unsigned),
            }
        }
        found.open.sort_by_key(|(asked, _)| asked.question.id);
        found.unsigned.sort_by_key(|unsigned| unsigned.id);
        Ok(found)
    }

    /// Returns why a question is not to be believed, where the policy asks for signatures: a user who may
    /// push could put other words under a signed yes.
    fn objection_to(&self, asked: &Asked) -> Result<Option<Unsigned>, TalkError> {
        if !self.settings.require_signature {
            return Ok(None);
        }
        let why = self.repo.git.objection(asked.commit)?;
        Ok(why.map(|why| Unsigned {
            id: asked.question.id,
            branch: asked.branch(),
            commit: asked.commit,
            why,
        }))
    }

    fn read_question(&self, id: MessageId, commit: ObjectId) -> Result<Asked, TalkError> {
        let asked = self.read_words(id, commit)?;
        match self.objection_to(&asked)? {
            None => Ok(asked),
            Some(unsigned) => Err(TalkError::NotSigned(unsigned)),
        }
    }

    /// Reads the question of a commit, without a look at its signature.
    fn read_words(&self, id: MessageId, commit: ObjectId) -> Result<Asked, TalkError> {
        let read = self.said(id, commit)?;
        let message = Message::parse(&read.message);
        let question = Question::read(id, &message);
        let question = question.map_err(|why| TalkError::Unreadable(id, why.to_string()))?;
        if !RefName::branch(&question.branch).is_valid() {
            return Err(TalkError::Unreadable(id, "it names no branch".to_owned()));
        }
        Ok(Asked { question, commit, snapshot: read.parents.first().copied(), asked: read.committed })
    }

    /// Reads the question of this id.
    ///
    /// # Errors
    /// [`TalkError::NoSuchQuestion`], [`TalkError::Unreadable`], [`TalkError::NotSigned`].
    pub fn question(&self, id: MessageId) -> Result<Asked, TalkError> {
        match self.store.tip(&RefName::new(asked_ref(id)))? {
            Some(commit) => self.read_question(id, commit),
            None => Err(TalkError::NoSuchQuestion(id)),
        }
    }

    /// Returns the only question that a branch asks now.
    ///
    /// # Errors
    /// [`TalkError::NoBranch`], [`TalkError::NoQuestion`], [`TalkError::NoSuchQuestion`] if the head names
    /// one that is gone, [`TalkError::Several`], [`TalkError::NotSigned`], and [`TalkError::Answered`] if the
    /// question was answered and the branch has not taken the answer in yet.
    pub fn question_of(&self, branch: &RefName) -> Result<Asked, TalkError> {
        let tip = self.fresh_tip(branch)?.ok_or_else(|| TalkError::NoBranch(branch.clone()))?;
        let mut open = self.open_questions(Some(branch))?;
        match open.pop() {
            None => match head_question(&tip) {
                Some(id) => {
                    self.unless_answered(Some(branch), id)?;
                    Err(self.not_signed_on(branch)?.unwrap_or(TalkError::NoSuchQuestion(id)))
                }
                None => Err(match self.answered_on(branch)? {
                    Some(answered) => answered,
                    None => self.not_signed_on(branch)?.unwrap_or(TalkError::NoQuestion(branch.clone())),
                }),
            },
            Some((asked, _)) if open.is_empty() => Ok(asked),
            Some(last) => {
                open.push(last);
                let ids: Vec<String> = open.iter().map(|(asked, _)| asked.question.id.to_string()).collect();
                Err(TalkError::Several(branch.clone(), ids.join(", ")))
            }
        }
    }

    /// Returns the error for a question that names this branch and is not signed as the policy asks; `None`
    /// if there is none.
    fn not_signed_on(&self, branch: &RefName) -> Result<Option<TalkError>, TalkError> {
        let asked = self.store.scan(&String::from_utf8_lossy(ASKED))?;
        Ok(asked.into_iter().find_map(|(name, commit)| {
            let id = parse_id_ref(ASKED, name.as_bytes())?;
            let error = self.read_question(id, commit).err()?;
            matches!(&error, TalkError::NotSigned(unsigned) if unsigned.branch == *branch).then_some(error)
        }))
    }

    /// Reads the question of this id; of one that was answered and is gone, the error says who answered.
    ///
    /// # Errors
    /// [`TalkError::NoSuchQuestion`], [`TalkError::Answered`], [`TalkError::Unreadable`],
    /// [`TalkError::NotSigned`].
    pub fn question_of_id(&self, id: MessageId) -> Result<Asked, TalkError> {
        match self.question(id) {
            Err(error @ TalkError::NoSuchQuestion(_)) => {
                // The branch that asked is not known any more, so an answer that waits is found by its id
                // alone.
                let waits = self.store.scan("refs/aynig/inbox/")?.into_iter().find_map(|(name, _)| {
                    let at = parse_inbox_ref(name.as_bytes())?;
                    (at.id == answer_id(id)).then(|| RefName::branch(at.branch))
                });
                self.unless_answered(waits.as_ref(), id)?;
                Err(error)
            }
            other => other,
        }
    }

    /// True if a question was answered already. A commit in the place of its answer that is no answer does
    /// not count, nor does one whose signature can't be judged on this machine: [`Runner::answer`] reports
    /// that one.
    pub fn is_answered(&self, asked: &Asked) -> Result<bool, TalkError> {
        if let Some(answer) = self.store.tip(&asked.answer_name())? {
            return match self.said(asked.question.id, answer) {
                Ok(answer) => Ok(matches!(self.as_answer(asked, &answer)?, Place::Answer(_))),
                Err(TalkError::Unreadable(..)) => Ok(false),
                Err(error) => Err(error),
            };
        }
        Ok(self.store.tip(&RefName::new(heard_ref(answer_id(asked.question.id))))?.is_some())
    }

    /// Returns the answer that waits for a branch that asks nothing more, as an error; `None` if there is
    /// none.
    fn answered_on(&self, branch: &RefName) -> Result<Option<TalkError>, TalkError> {
        let waits = self.inbox(branch, Some(&Kind::answer()), &|_, _| false)?;
        Ok(waits.into_iter().rev().filter_map(|waiting| waiting.letter.ok()).find_map(|letter| {
            let (id, choice) = (letter.question?, letter.choice.unwrap_or_default());
            Some(TalkError::Answered { branch: Some(branch.clone()), id, by: letter.from, choice })
        }))
    }

    /// True if a run or a head waits for the answer to the question under this ref; false if the ref holds no
    /// question.
    pub(in crate::runner) fn is_waited_for(
        &self,
        name: &RefName,
        commit: ObjectId,
    ) -> Result<bool, RunnerError> {
        let Some(id) = parse_id_ref(ASKED, name.as_bytes()) else { return Ok(false) };
        let read = match self.store.read_commit(commit) {
            Err(StoreError::Object { .. }) => return Ok(false),
            read => read?,
        };
        let Ok(question) = Question::read(id, &Message::parse(&read.message)) else { return Ok(false) };
        let asked = Asked { question, commit, snapshot: None, asked: None };
        let branch = asked.branch();
        let tip = if branch.is_valid() { self.read_tip(&branch)? } else { None };
        Ok(tip.is_some_and(|tip| asker(&tip, &asked) != Asker::Nobody))
    }

    /// Returns who waits for the answer to a question.
    pub fn asker(&self, asked: &Asked) -> Result<Asker, TalkError> {
        let tip = self.read_tip(&asked.branch())?;
        Ok(tip.map_or(Asker::Nobody, |tip| asker(&tip, asked)))
    }

    /// Fails with [`TalkError::Answered`] if the question of this branch was answered. `None` for a branch that
    /// is not known: the answer is then looked for among those that were taken in.
    fn unless_answered(&self, branch: Option<&RefName>, id: MessageId) -> Result<(), TalkError> {
        let of = branch.cloned();
        match self.sent_before(&of.clone().unwrap_or_else(|| RefName::branch("HEAD")), answer_id(id))? {
            None => Ok(()),
            Some(sent) => Err(TalkError::Answered {
                branch: of,
                id,
                by: sent.letter.from,
                choice: sent.letter.choice.unwrap_or_default(),
            }),
        }
    }

    /// Answers a question: `answer`.
    ///
    /// # Errors
    /// [`TalkError::NotOffered`], [`TalkError::Unseen`], [`TalkError::Gone`], [`TalkError::Answered`],
    /// [`TalkError::NoJudge`], [`TalkError::Message`].
    pub fn answer(
        &self,
        asked: &Asked,
        answering: &Answering,
        inside: Option<&Inside>,
    ) -> Result<Sent, TalkError> {
        let (branch, question) = (asked.branch(), &asked.question);
        if question.offers(&answering.choice) == Offered::No {
            let choice = answering.choice.clone();
            return Err(TalkError::NotOffered { branch, choice, offered: offered(question) });
        }
        // A commit in the answer's place that is no answer is removed first, so that it does not keep this
        // one out.
        self.answer_of(asked)?;
        self.unless_answered(Some(&branch), question.id)?;
        let tip = self.fresh_tip(&branch)?;
        let who = tip.as_ref().map_or(Asker::Nobody, |tip| asker(tip, asked));
        if who == Asker::Nobody {
            // Another answer may have been given and taken in since this function looked.
            self.unless_answered(Some(&branch), question.id)?;
            return Err(TalkError::Gone(question.id));
        }
        if let Some(seen) = answering.seen {
            let head = tip.as_ref().filter(|_| who == Asker::Head).map(Tip::id);
            if ![Some(asked.commit), asked.snapshot, head].contains(&Some(seen)) {
                return Err(TalkError::Unseen(question.id, seen.to_string()));
            }
        }
        let from = self.speaker(inside).to_string();
        let hop = inside.map_or(0, |inside| inside.hop.saturating_add(1));
        let letter = question.answer(answering.choice.clone(), answering.text.clone(), from, hop);
        let letter = Letter { seen: Some(asked.commit), ..letter };
        let commit = self.write_letter(&branch, &letter)?;
        // This succeeds only while the question stands and has no answer; it deletes the question.
        let gone = [RefChange::delete(asked.name(), asked.commit)];
        if !self.create_with(&asked.answer_name(), commit, &gone, "aynig: answer")? {
            self.unless_answered(Some(&branch), question.id)?;
            return Err(TalkError::Gone(question.id));
        }
        // The answer to a run is taken by the run itself.
        let head = match tip.as_ref().filter(|_| who == Asker::Head) {
            Some(tip) => Head::of(tip, &Kind::answer()),
            None => Head::Runs,
        };
        Ok(Sent { branch, commit, letter, fresh: true, waiting: true, head })
    }
}

/// Returns the question whose answer a head waits for.
pub(crate) fn head_question(tip: &Tip) -> Option<MessageId> {
    asked_by(tip.event.as_ref().filter(|event| !event.is_working())?)
}

/// Returns who waits for the answer to a question of the branch with this head.
pub(crate) fn asker(tip: &Tip, asked: &Asked) -> Asker {
    tip.event.as_ref().map_or(Asker::Nobody, |event| asked.question.asker(event))
}

/// Returns the choices that a question offers, quoted for messages.
pub(crate) fn offered(question: &Question) -> String {
    let choices = question.choices.iter().map(|choice| format!("'{}'", escape(choice.as_bytes())));
    choices.collect::<Vec<_>>().join(", ")
}

/// Words that mean yes, and those that mean no.
const YES: [&str; 9] = ["yes", "approve", "approved", "accept", "ok", "go", "continue", "allow", "y"];
const NO: [&str; 9] = ["no", "reject", "rejected", "decline", "deny", "stop", "abort", "refuse", "n"];

/// Returns the choice of a question that means yes, or no.
///
/// # Errors
/// [`TalkError::NoShortForm`].
pub(crate) fn short_form(question: &Question, yes: bool) -> Result<String, TalkError> {
    let (words, meant) = if yes { (YES, "yes") } else { (NO, "no") };
    let is = |word: &&str| question.choices.iter().find(|choice| choice.eq_ignore_ascii_case(word));
    let found = words.iter().find_map(is);
    let branch = RefName::branch(&question.branch);
    found.cloned().ok_or_else(|| TalkError::NoShortForm { branch, meant, offered: offered(question) })
}
