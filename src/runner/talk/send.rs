//! Sending a message to a branch: one commit, and one ref that is created only if it does not exist.
//!
//! A message is identified by its id, never by its commit: a sender that may have been cut off sends it again
//! under the same id, and learns that it waits already, or was heard. The inbox is read before `heard`,
//! because messages move from the inbox to there. Implements K46, K46a (a sender that repeats itself).

use super::super::change::{ChangeError, Inside};
use super::super::resolve::Resolved;
use super::super::{Runner, Tip};
use super::TalkError;
use crate::protocol::accepts::Accepts;
use crate::protocol::dialect::{BRANCH, Dialect, RECOVERY_ID};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Kind, Letter, MessageId, TEXT_MAX, heard_ref, inbox_ref, parse_inbox_ref};
use crate::protocol::message::{Message, Trailer};
use crate::store::RefName;

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct Sending {
    pub kind: Kind,
    /// Its id, where the sender has one.
    pub id: Option<MessageId>,
    pub text: String,
    /// The sender's own trailers.
    pub trailers: Vec<Trailer>,
    /// The commit of work that goes with it.
    pub attach: Option<ObjectId>,
}

/// A message that was sent.
#[derive(Debug)]
pub struct Sent {
    /// The branch that it was sent to.
    pub branch: RefName,
    /// The message's commit.
    pub commit: ObjectId,
    /// Its content.
    pub letter: Letter,
    /// True if this call has sent it; false if it had been sent before.
    pub fresh: bool,
    /// True if it waits in the inbox; false if it was heard.
    pub waiting: bool,
    /// What the branch's head does with it.
    pub head: Head,
}

impl Sent {
    fn under(self, head: Head) -> Self {
        Self { head: if self.waiting { head } else { Head::Heard }, ..self }
    }
}

/// What a head does with a message that is sent to its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// It takes it in now.
    Takes,
    /// A run has the branch, or is to have it: the next head may take it.
    Runs,
    /// It takes none of this kind: the message waits for a head that does.
    Leaves,
    /// The message was heard already.
    Heard,
}

impl Head {
    pub(super) fn of(tip: &Tip, kind: &Kind) -> Self {
        match &tip.event {
            Some(event) if event.is_working() => Self::Runs,
            Some(event) if Accepts::of(event).state(kind).is_some() => Self::Takes,
            Some(_) | None => Self::Leaves,
        }
    }
}

impl Runner<'_> {
    /// Sends a message to a branch: `send`.
    ///
    /// # Errors
    /// [`TalkError::NoBranch`], [`TalkError::IsAnswer`], [`TalkError::IdTaken`], [`TalkError::Message`], and whatever
    /// writing fails with.
    pub fn send(
        &self,
        branch: &RefName,
        sending: &Sending,
        inside: Option<&Inside>,
    ) -> Result<Sent, TalkError> {
        if sending.kind.is_answer() {
            return Err(TalkError::IsAnswer(branch.clone()));
        }
        let tip = self.fresh_tip(branch)?.ok_or_else(|| TalkError::NoBranch(branch.clone()))?;
        let head = match Head::of(&tip, &sending.kind) {
            // Whether a command answers where this runner may look for none is not known.
            Head::Leaves if !matches!(self.resolve(&tip)?, Resolved::Missing | Resolved::NotAsked) => {
                Head::Runs
            }
            head => head,
        };
        if let Some(id) = sending.id {
            let sent = self.sent_before(branch, id)?;
            // A message that waits in this branch's inbox is this branch's own, whatever else has the same
            // id.
            if !sent.as_ref().is_some_and(|sent| sent.waiting)
                && let Some(other) = self.sent_elsewhere(branch, id)?
            {
                return Err(TalkError::IdTaken(other, id));
            }
            if let Some(sent) = sent {
                return Ok(sent.under(head));
            }
        }
        let letter = Letter {
            id: sending.id.unwrap_or_else(|| self.new_id()),
            kind: sending.kind.clone(),
            from: self.speaker(inside).to_string(),
            hop: inside.map_or(0, |inside| inside.hop.saturating_add(1)),
            seen: sending.attach.is_none().then_some(tip.id()),
            attached: sending.attach,
            question: None,
            choice: None,
            trailers: sending.trailers.clone(),
            text: sending.text.clone(),
        };
        let commit = self.write_letter(branch, &letter)?;
        let name = RefName::new(inbox_ref(branch.short(), &letter.kind, letter.id));
        if self.create(&name, commit, "aynig: send")? {
            return Ok(Sent { branch: branch.clone(), commit, letter, fresh: true, waiting: true, head });
        }
        // Another process has sent a message under this id just now.
        match self.sent_before(branch, letter.id)? {
            Some(sent) => Ok(sent.under(head)),
            None => Err(ChangeError::Raced(name).into()),
        }
    }

    /// Makes a new id from the current time.
    pub(super) fn new_id(&self) -> MessageId {
        let mut random = [0; 8];
        random.copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[8..]);
        MessageId::after(None, self.clock.millis(), random)
    }

    /// Writes the commit of a message.
    pub(super) fn write_letter(&self, branch: &RefName, letter: &Letter) -> Result<ObjectId, TalkError> {
        if letter.text.len() > TEXT_MAX {
            let why = format!("its text has {} bytes, more than 1 MiB", letter.text.len());
            return Err(TalkError::Message(why));
        }
        let mut message = letter.message().map_err(|why| TalkError::Message(why.to_string()))?;
        // Once the message is under `heard`, only this trailer says for which branch it was.
        message.trailers.push(Trailer::new(BRANCH.of(Dialect::Dwp), branch.short()));
        // Makes the commit unique: otherwise two processes that send the same under one id, or answer one
        // question alike, would write the same commit, and both believe that they won.
        message.trailers.push(Dialect::Dwp.trailer(RECOVERY_ID, uuid::Uuid::new_v4()));
        let (tree, parents) = match letter.attached {
            Some(work) => (self.store.read_commit(work)?.tree, vec![work]),
            None => (self.repo.empty_tree()?, Vec::new()),
        };
        self.write_said(branch, tree, parents, message)
    }

    /// Writes the commit of a message, question, answer or pause. Where signatures are required it names the
    /// branch that it is signed for, because a signature stays valid wherever the commit is pushed.
    pub(crate) fn write_said(
        &self,
        branch: &RefName,
        tree: ObjectId,
        parents: Vec<ObjectId>,
        mut message: Message,
    ) -> Result<ObjectId, TalkError> {
        let key = BRANCH.of(Dialect::Dwp);
        if self.settings.require_signature && message.last(key).is_none() {
            message.trailers.push(Trailer { key: key.into(), value: branch.short().to_vec() });
        }
        Ok(self.write(branch, tree, parents, &message)?)
    }

    /// Returns the message of this id if it waits for the branch, or was heard by any branch.
    pub(super) fn sent_before(&self, branch: &RefName, id: MessageId) -> Result<Option<Sent>, TalkError> {
        let (commit, waiting) = match self.inbox_now(branch)?.into_iter().find(|found| found.at.id == id) {
            Some(found) => (found.commit, true),
            None => match self.store.tip(&RefName::new(heard_ref(id)))? {
                Some(commit) => (commit, false),
                None => return Ok(None),
            },
        };
        let read = self.said(id, commit)?;
        let letter = Letter::read(&Message::parse(&read.message), &read.parents);
        let letter = letter.map_err(|why| TalkError::Unreadable(id, why.to_string()))?;
        Ok(Some(Sent { branch: branch.clone(), commit, letter, fresh: false, waiting, head: Head::Heard }))
    }

    /// Returns another branch for which a message of this id waits, or which has heard it.
    fn sent_elsewhere(&self, branch: &RefName, id: MessageId) -> Result<Option<RefName>, TalkError> {
        let waits = self.store.scan("refs/aynig/inbox/")?.into_iter().find_map(|(name, _)| {
            let at = parse_inbox_ref(name.as_bytes())?;
            (at.id == id && at.branch != branch.short()).then(|| RefName::branch(at.branch))
        });
        if waits.is_some() {
            return Ok(waits);
        }
        Ok(self.heard_elsewhere(branch, id)?)
    }
}
