//! What the head of a branch is to the run that claimed it, and moving it to what the run's command committed.
//!
//! A head is the run's own lease, an event of its own command, the commit that its slot stands on, or
//! another's (`holding::classify_head`). In the `aynig` dialect the command makes the commits itself, in a
//! detached worktree: at each look, and once more when the command has ended, the runner makes the slot's
//! HEAD the branch's head if that descends from the lease and is a state event of the run's dialect.
//! `working` with the run's id is a heartbeat, any other state is the outcome. The runner writes no commit of
//! its own between claim and completion. Implements K20-K22 (the second column of their table), K29.

use super::active_run::ActiveRun;
use super::lease::Lease;
use super::move_branch::{Moved, blocked_notes};
use super::report::{LostTo, Note, Unforwarded};
use super::tip::DEPTH;
use super::{Progress, Runner, RunnerError, Tip};
use crate::protocol::complete::{Exit, HeadIs};
use crate::protocol::dialect::Writer;
use crate::protocol::event::{Event, RECOVERY_ID};
use crate::protocol::holding::{HeadFacts, SeenHead, classify_head, is_own_event};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::text::with_causes;
use crate::store::{RefName, StoreError};
use std::time::Duration;

/// How often one look starts over because the command moved the branch meanwhile.
const ROUNDS: usize = 8;

/// What a commit that the command made means for its branch.
pub(super) enum Step {
    /// No state event: the branch gets it below the next state event.
    Plain,
    /// A renewal of the lease.
    Heartbeat,
    /// The end of the run.
    Outcome,
    /// It may not become the head, for this reason.
    Unfit(Unforwarded),
}

/// Judges a commit that the command made by its event.
pub(super) fn step(event: Option<&Event>, run_id: &str) -> Step {
    let Some(event) = event else { return Step::Plain };
    let owner = event.run_id();
    match (event.dialect.writer(), event.is_working()) {
        (Writer::Runner, _) => Step::Unfit(Unforwarded::OtherDialect),
        (Writer::Command, true) if owner == Some(run_id) => Step::Heartbeat,
        (Writer::Command, true) => Step::Unfit(Unforwarded::ForeignLease),
        // A recovery or a cancellation carries an id of its own, and was not written by the command.
        (Writer::Command, false) if event.text(RECOVERY_ID).is_some() => {
            Step::Unfit(Unforwarded::ForeignEvent)
        }
        (Writer::Command, false) if owner.is_none_or(|owner| owner == run_id) => Step::Outcome,
        (Writer::Command, false) => Step::Unfit(Unforwarded::ForeignEvent),
    }
}

/// What `classify_head` asks of the repository about the head of a run's branch.
struct Facts<'r, 'a> {
    run: &'r ActiveRun<'a>,
    head: &'r Tip,
}

impl HeadFacts for Facts<'_, '_> {
    type Error = StoreError;

    fn stands_on_lease(&mut self) -> Result<bool, StoreError> {
        self.run.runner.reaches(&self.head.commit.parents, self.run.claim.lease.id)
    }

    fn is_slot_head(&mut self) -> Result<bool, StoreError> {
        let (repo, id) = (self.run.runner.repo, self.head.id());
        Ok(self.run.slot.head(repo).ok() == Some(id) && repo.git.is_ancestor(self.run.claim.first, id)?)
    }

    fn own_event_below(&mut self) -> Result<Option<ObjectId>, StoreError> {
        let (runner, claim) = (self.run.runner, &self.run.claim);
        for below in runner.below(self.head, &[claim.lease.id, claim.first])? {
            if is_own_event(below.event.as_ref(), &claim.run.id)
                && runner.reaches(&below.commit.parents, claim.lease.id)?
            {
                return Ok(Some(below.id()));
            }
        }
        Ok(None)
    }
}

impl ActiveRun<'_> {
    /// Forwards what the run's command committed, then reads the branch's head and says what it is to this
    /// run. A newer lease of the run replaces the known one. `ended`: how the command ended.
    pub(super) fn check_head(&mut self, ended: Option<&Exit>) -> Result<HeadIs, RunnerError> {
        match self.claim.run.dialect.writer() {
            Writer::Runner => self.head_of_declaring(),
            Writer::Command => {
                let mut head = HeadIs::Other;
                // If the command pushed a commit itself, its next commit may stand on that, and can now be
                // forwarded.
                for _ in 0..ROUNDS {
                    let lease = self.claim.lease.id;
                    self.forward()?;
                    head = self.head_of_committing(ended)?;
                    if self.claim.lease.id == lease {
                        break;
                    }
                }
                Ok(head)
            }
        }
    }

    /// Judges the head of a run whose command declares its outcome.
    fn head_of_declaring(&mut self) -> Result<HeadIs, RunnerError> {
        let Some(id) = self.runner.store.tip(self.branch)? else { return Ok(HeadIs::Other) };
        if id == self.claim.lease.id {
            return Ok(HeadIs::Lease(id));
        }
        let tip = Tip::from(self.runner.store.read_commit(id)?);
        let seen = SeenHead { id, event: tip.event.as_ref() };
        let facts = &mut Facts { run: self, head: &tip };
        let head = classify_head(Some(seen), facts.run.run_id(), facts.run.claim.lease.id, facts)?;
        if let HeadIs::Lease(_) = head {
            self.take_over(&tip);
        }
        Ok(head)
    }

    /// Replaces the known lease: another lease of this run is the head, and counts from now on.
    fn take_over(&mut self, tip: &Tip) {
        // Other runners count from the commit's date, not from when this runner found it.
        let now = self.runner.clock.now();
        let age = now.saturating_sub(tip.commit.committed.unwrap_or(now));
        let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
        let born = self.runner.clock.elapsed().saturating_sub(age);
        let message = Message::parse(&tip.commit.message);
        self.claim.lease = Lease { id: tip.id(), message, born };
        self.runner.follow(self.run_id(), tip.id());
    }

    /// Judges the head of a run whose command makes its own commits. A head that appeared while the command
    /// ran is the command's own if it carries the run's id or is in the history of the slot's HEAD. Once the
    /// command has ended by itself, any outcome above the lease counts as its own.
    fn head_of_committing(&mut self, ended: Option<&Exit>) -> Result<HeadIs, RunnerError> {
        let runner = self.runner;
        let Some(id) = runner.store.tip(self.branch)? else { return Ok(HeadIs::Other) };
        let lease = self.claim.lease.id;
        if id == lease {
            return Ok(HeadIs::Lease(id));
        }
        if let Some(own) = self.own_event.filter(|own| *own == id) {
            return Ok(HeadIs::OwnEvent(own));
        }
        let tip = Tip::from(runner.store.read_commit(id)?);
        let by_itself = ended.is_some_and(|exit| *exit != Exit::Stopped);
        if runner.descends(lease, id)? {
            match tip.event.as_ref().map(|event| step(Some(event), self.run_id())) {
                Some(Step::Heartbeat) => {
                    self.holds_now(&tip);
                    return Ok(HeadIs::Lease(id));
                }
                Some(Step::Outcome) if self.is_of_command(&tip)? || by_itself => {
                    self.note_hop_of(&tip)?;
                    return Ok(HeadIs::OwnEvent(id));
                }
                Some(Step::Outcome | Step::Plain | Step::Unfit(_)) => {}
                None if self.is_of_command(&tip)? => {
                    self.claim.lease.id = id;
                    return Ok(HeadIs::SlotHead);
                }
                None => {}
            }
        }
        self.own_below(&tip)
    }

    /// True for a commit that carries the run's id, or that the slot's HEAD stands on.
    fn is_of_command(&self, tip: &Tip) -> Result<bool, StoreError> {
        if tip.event.as_ref().and_then(Event::run_id) == Some(self.run_id()) {
            return Ok(true);
        }
        match self.slot.head(self.runner.repo) {
            Ok(head) => self.runner.descends(tip.id(), head),
            Err(_) => Ok(false),
        }
    }

    /// Finds the command's own outcome below the head, where others continued from it before the runner
    /// looked.
    fn own_below(&self, tip: &Tip) -> Result<HeadIs, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        for below in runner.below(tip, &[claim.lease.id, claim.first])? {
            let own = matches!(step(below.event.as_ref(), &claim.run.id), Step::Outcome)
                && self.is_of_command(&below)?
                && runner.descends(claim.lease.id, below.id())?;
            if own {
                return Ok(HeadIs::OwnEvent(below.id()));
            }
        }
        Ok(HeadIs::Other)
    }

    /// Moves the branch from the lease to the slot's HEAD, if that may be its head.
    fn forward(&mut self) -> Result<(), RunnerError> {
        let (runner, lease) = (self.runner, self.claim.lease.id);
        // If the slot's HEAD can't be read, what the command did to the registration is judged when the run
        // is over.
        let Ok(head) = self.slot.head(runner.repo) else { return Ok(()) };
        if self.own_event.is_some() || head == lease || self.passed_over == Some((head, lease)) {
            return Ok(());
        }
        let tip = match runner.store.read_commit(head) {
            Ok(commit) => Tip::from(commit),
            Err(error) => {
                let why = Unforwarded::Unreadable(with_causes(&error));
                self.report.note_once(Note::NotForwarded(head, why));
                return Ok(());
            }
        };
        let mut step = step(tip.event.as_ref(), self.run_id());
        if !matches!(step, Step::Plain) && !runner.descends(lease, head)? {
            // An older commit of the branch is neither forwarded nor reported.
            let behind = runner.descends(head, lease)?;
            step = if behind { Step::Plain } else { Step::Unfit(Unforwarded::ForeignHead) };
        }
        match step {
            Step::Plain => self.passed_over = Some((head, lease)),
            Step::Unfit(why) => {
                self.report.note_once(Note::NotForwarded(head, why));
                self.passed_over = Some((head, lease));
            }
            Step::Heartbeat | Step::Outcome => self.forward_to(tip)?,
        }
        Ok(())
    }

    fn forward_to(&mut self, tip: Tip) -> Result<(), RunnerError> {
        let runner = self.runner;
        self.slot.sync(runner.repo)?;
        self.note_hop_of(&tip)?;
        let log = format!("aynig: forward {}", self.claim.run.state);
        let until = self.claim.ends().max(runner.soon());
        match runner.move_branch(self.branch, self.claim.lease.id, tip.id(), &log, until)? {
            Moved::Won(finished) => {
                self.report.notes.extend(blocked_notes(finished));
                self.holds_now(&tip);
                if self.own_event.is_none() {
                    runner.observer.told(self.branch, Progress::Renewed);
                }
            }
            Moved::Lost(left) => self.report.notes.extend(blocked_notes(left)),
            // Tried again at the next look: local changes come and go.
            Moved::Blocked(by) => {
                self.report.note_once(Note::NotForwarded(tip.id(), Unforwarded::Checkout(by)));
            }
        }
        Ok(())
    }

    /// Notes what the run's command made the branch's head: a heartbeat becomes the known lease, an outcome
    /// the run's own event.
    fn holds_now(&mut self, tip: &Tip) {
        let Some(event) = &tip.event else { return };
        if event.is_working() {
            let born = self.runner.clock.elapsed();
            self.claim.lease = Lease { id: tip.id(), message: event.message.clone(), born };
            self.runner.follow(self.run_id(), tip.id());
        } else {
            self.own_event = Some(tip.id());
        }
    }

    /// Notes the hop count of the command's outcome, because a command need not say how long its chain is.
    /// This is done before the branch has the commit (K9).
    fn note_hop_of(&self, tip: &Tip) -> Result<(), RunnerError> {
        let hop = self.claim.run.hop;
        match &tip.event {
            Some(event) if !event.is_working() && event.hop() < hop => {
                self.runner.note_hop(self.branch, tip.id(), hop)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Runner<'_> {
    /// Returns what a branch is now whose lease was lost; `None` where that can't be read.
    pub(super) fn lost_to(&self, branch: &RefName) -> Option<LostTo> {
        let Some(id) = self.store.tip(branch).ok()? else { return Some(LostTo::Nothing) };
        let tip = Tip::from(self.store.read_commit(id).ok()?);
        Some(match tip.event {
            Some(event) => LostTo::Event(id, event.state_name().cloned()),
            None => LostTo::Commit(id),
        })
    }

    /// True where `goal` is reached along first parents with nothing but leases in between.
    fn reaches(&self, parents: &[ObjectId], goal: ObjectId) -> Result<bool, StoreError> {
        let mut next = parents.first().copied();
        for _ in 0..DEPTH * 1024 {
            match next {
                Some(id) if id == goal => return Ok(true),
                Some(id) => {
                    let tip = Tip::from(self.store.read_commit(id)?);
                    if tip.event.as_ref().is_none_or(|event| !event.is_working()) {
                        return Ok(false);
                    }
                    let ends = self.store.history_ends_at(id)?;
                    next = tip.commit.parents.first().copied().filter(|_| !ends);
                }
                None => return Ok(false),
            }
        }
        Ok(false)
    }
}
