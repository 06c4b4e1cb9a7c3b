//! The messages that wait for a branch, and which of them may be delivered.
//!
//! Names are read first, and then no more commits than one delivery takes, so ten thousand messages cost
//! their names. Messages that were delivered already, or that answer no question, are told apart and taken
//! off. Messages that can't be read, or are not vouched for, stay and are reported. No look reads more of the
//! latter than one delivery takes: the next look continues after them, and starts over at the end. So no
//! number of refs makes a tick long, or keeps a message out. Implements K46 (reading), K46a, K47, K47a (what
//! is told apart), K47b (who may send), K49a.

use super::{Runner, RunnerError, Tip};
use crate::protocol::accepts::Accepts;
use crate::protocol::brought::{Brought, Line, Standing, is_heard_already, standing};
use crate::protocol::decide::Waiting;
use crate::protocol::dialect::{BRANCH, Dialect};
use crate::protocol::event::Event;
use crate::protocol::heard::heard_of;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{
    INBOX, InboxRef, Letter, MESSAGES_MAX, MessageId, TEXT_MAX, asked_ref, heard_ref, inbox_prefix,
    parse_inbox_ref,
};
use crate::protocol::message::Message;
use crate::store::{Expected, RefChange, RefName, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Most commits of a branch that are read to find which messages they brought.
const LINE_MAX: usize = 10_000;
/// Most messages that a process remembers of the lines that it walked.
const WALKED_MAX: usize = 100_000;

/// How many commits above the note on disk a process walks again, rather than write the note anew.
const UNNOTED_MAX: usize = 64;

/// A branch's line (its commits along first parents) that was walked: which messages it brought, and how many
/// of its commits are above what is noted of it on disk.
#[derive(Debug, Clone, Default)]
struct Walked {
    brought: Arc<Brought>,
    unnoted: usize,
}

/// What the lines that this process walked brought, by their heads: a line is needed when branches are
/// chosen, and again when one of them is evaluated.
static WALKED: LazyLock<Mutex<HashMap<ObjectId, Walked>>> = LazyLock::new(Mutex::default);

/// Returns what this commit and the line below it brought, if this process walked it.
fn walked(tip: ObjectId) -> Option<Walked> {
    WALKED.lock().unwrap_or_else(PoisonError::into_inner).get(&tip).cloned()
}

fn note_walked(tip: ObjectId, line: Walked) {
    let mut walked = WALKED.lock().unwrap_or_else(PoisonError::into_inner);
    if walked.values().map(|known| known.brought.len()).sum::<usize>() + line.brought.len() > WALKED_MAX {
        walked.clear();
    }
    walked.insert(tip, line);
}

/// A ref of an inbox.
#[derive(Debug, Clone)]
pub(in crate::runner) struct Found {
    /// What the ref's name says.
    pub at: InboxRef,
    pub name: RefName,
    /// What the ref holds: the message.
    pub commit: ObjectId,
}

impl Found {
    /// Returns the ref that the message has once it was delivered.
    pub(super) fn heard(&self) -> RefName {
        RefName::new(heard_ref(self.at.id))
    }
}

/// The messages that wait for a head, sorted by what becomes of them.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// The messages that may be delivered, ordered by their ids, no more than one delivery takes.
    pub waiting: Vec<Waiting>,
    /// The refs of `waiting`, one for each id.
    pub(super) refs: Vec<Found>,
    /// The messages to take off before anything is written to the branch.
    pub(super) over: Vec<Found>,
    /// The refs that are left where they are, and why.
    pub passed_over: Vec<(RefName, String)>,
    /// How many of `passed_over` had to be read, or looked up under `heard`.
    unfit: usize,
    /// The ref after which this look began, and the ref after which the next one continues.
    from: Option<RefName>,
    until: Option<RefName>,
    /// The head, where so much of its line was walked that a note of it is to be written.
    line: Option<ObjectId>,
}

impl Inbox {
    /// Leaves a message that can't be delivered where it is, and says why.
    fn pass_over(&mut self, found: Found, why: impl Into<String>) {
        if self.passed_over.len() < MESSAGES_MAX {
            self.passed_over.push((found.name, why.into()));
        }
    }

    /// Does the same as [`Inbox::pass_over`] for a message that had to be read. After as many of these as one
    /// delivery takes, this look reads no more.
    fn pass_over_read(&mut self, found: Found, why: String) {
        self.unfit += 1;
        if self.unfit == MESSAGES_MAX {
            self.until = Some(found.name.clone());
        }
        self.pass_over(found, why);
    }

    /// True for a message that this look reads: it has not yet found as many that can't be delivered as one
    /// delivery takes, and the message is after the place where the look before it ended for that reason.
    fn reads(&self, found: &Found) -> bool {
        let read = |from: &RefName| {
            parse_inbox_ref(from.as_bytes()).is_some_and(|at| (at.id, from) >= (found.at.id, &found.name))
        };
        self.unfit < MESSAGES_MAX && !self.from.as_ref().is_some_and(read)
    }
}

/// Returns the prefix of the refs of messages to a branch; of all inboxes where the branch's name is no text.
fn scanned(branch: &RefName) -> String {
    String::from_utf8(inbox_prefix(branch.short()))
        .unwrap_or_else(|_| String::from_utf8_lossy(INBOX).into_owned())
}

/// Returns those of these refs that are messages to a branch, ordered by their ids.
fn waiting_for(branch: &RefName, refs: Vec<(RefName, ObjectId)>) -> Vec<Found> {
    let found = refs.into_iter().filter_map(|(name, commit)| {
        let at = parse_inbox_ref(name.as_bytes()).filter(|at| at.branch == branch.short())?;
        Some(Found { at, name, commit })
    });
    let mut found: Vec<Found> = found.collect();
    found.sort_by(|a, b| (a.at.id, &a.name).cmp(&(b.at.id, &b.name)));
    found
}

/// What a waiting message is.
pub(in crate::runner) enum Read {
    /// One that can be delivered.
    Letter(Box<Letter>),
    /// One that is not delivered, for this reason.
    Undeliverable(String),
}

impl Runner<'_> {
    /// Returns the messages that wait for a branch, ordered by their ids; for a remote, those that were last
    /// fetched ([`Around::hear_inbox`](super::known::Around)).
    pub(super) fn inbox_of(&self, branch: &RefName) -> Result<Vec<Found>, StoreError> {
        Ok(waiting_for(branch, self.store.known_scan(&scanned(branch))?))
    }

    /// Returns the messages that wait for a branch at this moment, ordered by their ids; a remote is asked
    /// for them.
    pub(in crate::runner) fn inbox_now(&self, branch: &RefName) -> Result<Vec<Found>, StoreError> {
        Ok(waiting_for(branch, self.store.scan(&scanned(branch))?))
    }

    /// Returns what waits for a head that takes messages. `in_the_way`: messages to ignore, which can't be
    /// moved.
    pub(super) fn inbox_for(
        &self,
        branch: &RefName,
        tip: &Tip,
        event: &Event,
        in_the_way: &[(RefName, RefName)],
    ) -> Result<Inbox, RunnerError> {
        let (mut inbox, accepts, mut oldest) = (Inbox::default(), Accepts::of(event), None);
        let found = self.inbox_of(branch)?;
        if found.is_empty() {
            return Ok(inbox);
        }
        if found.len() > MESSAGES_MAX {
            inbox.from = self.read_until(branch);
        }
        let Walked { brought, unnoted } = self.brought(branch, tip)?;
        inbox.line = (unnoted > UNNOTED_MAX).then(|| tip.id());
        let twins: HashSet<_> =
            found.windows(2).filter(|two| two[0].at.id == two[1].at.id).map(|two| two[0].at.id).collect();
        let (mut read, mut text) = (0, 0);
        for found in found {
            if in_the_way.iter().any(|(name, _)| *name == found.name) {
                continue;
            }
            let has_twin = twins.contains(&found.at.id);
            let state = match standing(event, &accepts, &brought, (&found.at, found.commit), has_twin) {
                Standing::Over => {
                    inbox.over.push(found);
                    continue;
                }
                Standing::Twin => {
                    inbox.pass_over(found, "another message has its id");
                    continue;
                }
                Standing::Waits => continue,
                Standing::Brings(state) => state,
            };
            if read < MESSAGES_MAX && oldest.is_none_or(|oldest| oldest == state) && inbox.reads(&found) {
                let Some((found, letter)) = self.fit(branch, found, &mut inbox)? else { continue };
                text += letter.text.len();
                if read > 0 && text > TEXT_MAX {
                    // This message is the first of the next delivery.
                    read = MESSAGES_MAX;
                    continue;
                }
                (read, oldest) = (read + 1, Some(state));
                inbox.waiting.push(Waiting { id: found.at.id, kind: found.at.kind.clone() });
                inbox.refs.push(found);
            }
        }
        // Of two messages with one id, `heard` keeps the first that is taken off: the one that was delivered.
        inbox.over.sort_by_key(|found| !brought.has_commit(found.commit));
        Ok(inbox)
    }

    /// Returns a message that may be delivered, with its ref. For any other, notes in `inbox` what becomes of
    /// it.
    fn fit(
        &self,
        branch: &RefName,
        found: Found,
        inbox: &mut Inbox,
    ) -> Result<Option<(Found, Letter)>, RunnerError> {
        // A remote's ref may not be known yet: then the swap fails and makes it known.
        if is_heard_already(self.store.known_tip(&found.heard())?, found.commit) {
            match self.heard_elsewhere(branch, found.at.id)? {
                None => inbox.over.push(found),
                // Taking this message off would lose it, because there is no place for it under `heard`.
                Some(other) => {
                    let why = format!("it has the id of a message that '{other}' has heard");
                    inbox.pass_over_read(found, why);
                }
            }
            return Ok(None);
        }
        // Of two messages with one id, the first by name is delivered. Then the branch has brought the
        // other's id, and that message is taken off.
        if inbox.refs.last().is_some_and(|last| last.at.id == found.at.id) {
            inbox.pass_over(found, "another message of its id is delivered");
            return Ok(None);
        }
        match self.letter(branch, &found)? {
            Read::Letter(letter) => Ok(Some((found, *letter))),
            Read::Undeliverable(why) => {
                inbox.pass_over_read(found, why);
                Ok(None)
            }
        }
    }

    /// Returns the messages that could not be moved because other refs exist below their names under `heard`,
    /// each with the first of these refs; none if the error is another.
    pub(super) fn in_the_way<'f>(
        &self,
        found: impl IntoIterator<Item = &'f Found>,
        error: &RunnerError,
    ) -> Result<Vec<(RefName, RefName)>, RunnerError> {
        let mut in_the_way = Vec::new();
        if matches!(error, RunnerError::Store(StoreError::NameConflict { .. })) {
            for found in found {
                let below = self
                    .store
                    .known_scan(&format!("{}/", String::from_utf8_lossy(found.heard().as_bytes())))?;
                in_the_way.extend(below.into_iter().next().map(|(other, _)| (found.name.clone(), other)));
            }
        }
        Ok(in_the_way)
    }

    /// Notes how far an inbox was read, and what the branch's line brought.
    pub(super) fn note_look(&self, branch: &RefName, inbox: &Inbox) {
        if let Some((tip, line)) = inbox.line.and_then(|tip| Some((tip, walked(tip)?))) {
            self.note_line(branch, &Line { tip, brought: (*line.brought).clone() });
            note_walked(tip, Walked { unnoted: 0, ..line });
        }
        if inbox.from != inbox.until {
            self.note_read(branch, inbox.until.as_ref());
        }
    }

    /// Reads a waiting message.
    pub(in crate::runner) fn letter(&self, branch: &RefName, found: &Found) -> Result<Read, RunnerError> {
        let not = |why: &dyn ToString| Ok(Read::Undeliverable(why.to_string()));
        let commit = match self.store.read_commit(found.commit) {
            Ok(commit) => commit,
            Err(error) => return not(&error),
        };
        let message = Message::parse(&commit.message);
        let letter = match Letter::read_at(&found.at, &message, &commit.parents) {
            Ok(letter) => letter,
            Err(why) => return not(&why),
        };
        if let Some(work) = letter.attached {
            match self.store.read_commit(work) {
                Ok(work) if work.tree == commit.tree => {}
                Ok(_) => return not(&"its files are not those of the work that it brings"),
                Err(error) => return not(&error),
            }
        }
        if let Some(question) = letter.question
            && !self.is_asked_so(question, letter.seen)?
        {
            return not(&"it answers another question than the one that stands under that id");
        }
        let brings =
            |work| if self.settings.require_signature { self.repo.git.verify_commit(work) } else { Ok(true) };
        if !self.is_vouched(branch, found.commit, &message)? || !letter.attached.map_or(Ok(true), brings)? {
            return not(&"it is not signed for this branch, with all that it brings");
        }
        Ok(Read::Letter(Box::new(letter)))
    }

    /// Returns the other branch that the message under `heard` says that it was sent to; `None` where it says
    /// this branch, or none.
    pub(in crate::runner) fn heard_elsewhere(
        &self,
        branch: &RefName,
        id: MessageId,
    ) -> Result<Option<RefName>, StoreError> {
        let Some(heard) = self.store.tip(&RefName::new(heard_ref(id)))? else { return Ok(None) };
        // An object that is no commit names no branch.
        let Ok(commit) = self.store.read_commit(heard) else { return Ok(None) };
        let message = Message::parse(&commit.message);
        let named = message.last(BRANCH.of(Dialect::Dwp)).filter(|named| *named != branch.short());
        Ok(named.map(RefName::branch))
    }

    /// False for an answer that does not say which commit of the question it answers, or says another than
    /// the one that stands under the question's id; true where none stands there any more.
    fn is_asked_so(&self, question: MessageId, seen: Option<ObjectId>) -> Result<bool, StoreError> {
        let stands = self.store.known_tip(&RefName::new(asked_ref(question)))?;
        Ok(seen.is_some() && stands.is_none_or(|stands| Some(stands) == seen))
    }

    /// Returns what the commits of a branch brought. No date ends the walk, because clocks differ and a
    /// message would be delivered twice. A line that was walked before, by this process or an earlier one, is
    /// not walked again: what is below a commit never changes.
    fn brought(&self, branch: &RefName, tip: &Tip) -> Result<Walked, RunnerError> {
        if walked(tip.id()).is_none()
            && let Some(Line { tip, brought }) = self.known_line(branch)
        {
            note_walked(tip, Walked { brought: Arc::new(brought), unnoted: 0 });
        }
        let (mut brought, mut at) = (Brought::default(), tip.commit.clone());
        let (mut unnoted, mut is_whole) = (0, true);
        for _ in 0..LINE_MAX {
            if let Some(below) = walked(at.id) {
                brought.join(&below.brought);
                unnoted += below.unnoted;
                break;
            }
            brought.add(&at.message, &at.parents);
            unnoted += 1;
            let Some(below) = at.parents.first().copied() else { break };
            if self.store.history_ends_at(at.id)? {
                // A later fetch may bring more of the line.
                is_whole = false;
                break;
            }
            at = self.store.read_commit(below)?;
        }
        let line = Walked { brought: Arc::new(brought), unnoted };
        if is_whole {
            note_walked(tip.id(), line.clone());
        }
        Ok(line)
    }

    /// Takes messages off that are not to be delivered (again), by moving them to `heard`. False where
    /// another process moved one of them first: the caller looks again for what is left.
    pub(super) fn take_off(&self, over: &[Found]) -> Result<bool, RunnerError> {
        if over.is_empty() {
            return Ok(true);
        }
        let changes = self.hearing(over)?;
        match self.store.try_swaps(&changes, &self.signature(), "aynig: heard") {
            Ok(()) => Ok(true),
            Err(StoreError::Moved { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns those messages, of the ones that a command marked as heard, that bring no work, or work that
    /// this commit has. A message becomes a parent of the outcome, so work that the commit lacks would count
    /// as merged.
    pub(in crate::runner) fn whose_work_is_in(
        &self,
        found: Vec<Found>,
        commit: ObjectId,
    ) -> Result<Vec<Found>, RunnerError> {
        let mut kept = Vec::with_capacity(found.len());
        for found in found {
            let work = self.store.read_commit(found.commit)?.parents.first().copied();
            if work.map_or(Ok(true), |work| self.repo.git.is_ancestor(work, commit))? {
                kept.push(found);
            }
        }
        Ok(kept)
    }

    /// Returns the changes that move messages from the inbox to `heard`. A remote's refs are taken as last
    /// fetched: if there are others by now, the changes are refused, and those refs become known.
    pub(in crate::runner) fn hearing(&self, found: &[Found]) -> Result<Vec<RefChange>, RunnerError> {
        let (mut changes, mut ids) = (Vec::with_capacity(found.len() * 2), HashSet::new());
        for found in found {
            let (name, new) = (found.heard(), Some(found.commit));
            if ids.insert(*found.at.id.as_bytes()) && self.store.known_tip(&name)?.is_none() {
                changes.push(RefChange { name, expected: Expected::Missing, new });
            }
            changes.push(RefChange::delete(found.name.clone(), found.commit));
        }
        Ok(changes)
    }

    /// Takes off the messages that the head of a branch brought, where the runner that delivered them was
    /// killed before it took them off. This comes before anything else is written to the branch, because a
    /// later commit may no longer say what the head brought.
    pub(super) fn finish_delivery(&self, branch: &RefName, head: ObjectId) -> Result<(), RunnerError> {
        let commit = self.store.read_commit(head)?;
        // A remote moves all of a delivery or nothing.
        if self.settings.remote.is_some() || !commit.message.windows(9).any(|part| part == b"dwp-heard") {
            return Ok(());
        }
        let Some(event) = Event::in_message(&commit.message).filter(|event| !event.is_working()) else {
            // They were taken off before the lease was written.
            return Ok(());
        };
        let heard = heard_of(&event.message, Dialect::Dwp);
        let mut in_the_way: Vec<(RefName, RefName)> = Vec::new();
        loop {
            let mut over = self.inbox_of(branch)?;
            over.retain(|found| heard.iter().any(|heard| heard.id == found.at.id));
            // Messages with a ref in the way stay, as each look reports, and the branch's own line says that
            // it brought them. Otherwise a user who may push a ref there could keep everything from being
            // written to this branch.
            over.retain(|found| in_the_way.iter().all(|(name, _)| *name != found.name));
            over.sort_by_key(|found| !heard.iter().any(|heard| heard.commit == found.commit));
            // This ends: each time another process was quicker, or a ref was in the way, fewer messages are
            // left.
            match self.take_off(&over) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => match self.in_the_way(&over, &error)? {
                    found if found.is_empty() => return Err(error),
                    found => in_the_way.extend(found),
                },
            }
        }
    }
}
