//! Runs whose command writes the commits itself: forwarding them, and judging the head that results.
//!
//! In a detached worktree somebody must move the branch: at each look, and once more when the command has
//! ended, the slot's HEAD becomes the branch's head where it descends from the lease and is a state event of
//! the run's dialect. `working` with the run's id is its heartbeat, anything else its outcome. The runner
//! writes no commit of its own between claim and completion. Implements K29.

use super::claim::Lease;
use super::finish::{blocked_notes, ran, with_causes};
use super::land::Moved;
use super::live::Live;
use super::relate::Relation;
use super::report::{Note, Outcome, Ran, Report, Unforwarded};
use super::slot::attempt_ref;
use super::supervise::note_once;
use super::{Progress, Runner, RunnerError, Tip};
use crate::protocol::complete::Exit;
use crate::protocol::dialect::Writer;
use crate::protocol::event::{Event, RECOVERY_ID};
use crate::protocol::id::ObjectId;
use crate::store::slots::Slot;
use crate::store::slots::harvest::Stage;
use crate::store::{Commit, RefName, StoreError};

/// How often one look begins again because its command moved the branch meanwhile.
const ROUNDS: usize = 8;

/// What a commit of the command's is to its branch.
enum Step {
    /// No state event: it travels below the next one.
    Plain,
    /// The lease again.
    Heartbeat,
    /// The end of the run.
    Outcome,
    /// It may not become the head.
    Unfit(Unforwarded),
}

impl Runner<'_> {
    /// Looks at a run's branch, forwarding first what its command committed. `ended`: how the command did.
    pub(super) fn look(
        &self,
        branch: &RefName,
        live: &mut Live,
        ended: Option<&Exit>,
        report: &mut Report,
    ) -> Result<Relation, RunnerError> {
        match live.claimed.run.dialect.writer() {
            Writer::Runner => self.relate(branch, live),
            Writer::Command => {
                let mut relation = Relation::Other;
                // What its command pushed itself may be what the next commit stands on.
                for _ in 0..ROUNDS {
                    let lease = live.claimed.lease.id;
                    self.forward(branch, live, report)?;
                    relation = self.relate_by_head(branch, live, ended)?;
                    if live.claimed.lease.id == lease {
                        break;
                    }
                }
                Ok(relation)
            }
        }
    }

    /// True where `new` is `old` or has it in its history.
    pub(super) fn descends(&self, old: ObjectId, new: ObjectId) -> Result<bool, StoreError> {
        Ok(old == new || self.repo.git.is_ancestor(old, new)?)
    }

    /// Moves the branch from the lease to the slot's HEAD, where that may be its head.
    fn forward(&self, branch: &RefName, live: &mut Live, report: &mut Report) -> Result<(), RunnerError> {
        let lease = live.claimed.lease.id;
        // What its command did to the slot's registration is judged when the run is over.
        let Ok(head) = live.slot.head(self.repo) else { return Ok(()) };
        if live.own_event.is_some() || head == lease || live.passed_over == Some((head, lease)) {
            return Ok(());
        }
        let tip = match self.store.read_commit(head) {
            Ok(commit) => Tip::from(commit),
            Err(error) => {
                note_once(report, Note::NotForwarded(head, Unforwarded::Unreadable(with_causes(&error))));
                return Ok(());
            }
        };
        let mut step = step(tip.event.as_ref(), &live.claimed.run.id);
        if !matches!(step, Step::Plain) && !self.descends(lease, head)? {
            // An older commit of the branch is nothing to forward, and nothing to complain of.
            let behind = self.descends(head, lease)?;
            step = if behind { Step::Plain } else { Step::Unfit(Unforwarded::ForeignHead) };
        }
        match step {
            Step::Plain => live.passed_over = Some((head, lease)),
            Step::Unfit(why) => {
                note_once(report, Note::NotForwarded(head, why));
                live.passed_over = Some((head, lease));
            }
            Step::Heartbeat | Step::Outcome => self.move_to(branch, live, tip, report)?,
        }
        Ok(())
    }

    fn move_to(
        &self,
        branch: &RefName,
        live: &mut Live,
        tip: Tip,
        report: &mut Report,
    ) -> Result<(), RunnerError> {
        live.slot.sync(self.repo)?;
        self.note_outcome(branch, live, &tip)?;
        let log = format!("aynig: forward {}", live.claimed.run.state);
        match self.move_branch(
            branch,
            live.claimed.lease.id,
            tip.id(),
            &log,
            live.lease_ends().max(self.soon()),
        )? {
            Moved::Won(finished) => {
                report.notes.extend(blocked_notes(finished));
                self.holds_now(live, &tip);
                if live.own_event.is_none() {
                    self.observer.told(branch, Progress::Renewed);
                }
            }
            Moved::Lost(left) => report.notes.extend(blocked_notes(left)),
            // Tried again at the next look: local changes come and go.
            Moved::Blocked(by) => {
                note_once(report, Note::NotForwarded(tip.id(), Unforwarded::Checkout(by)));
            }
        }
        Ok(())
    }

    /// Takes over what its own command made the branch's head: a heartbeat, or the outcome.
    fn holds_now(&self, live: &mut Live, tip: &Tip) {
        let Some(event) = &tip.event else { return };
        if event.is_working() {
            let born = self.clock.elapsed();
            live.claimed.lease = Lease { id: tip.id(), message: event.message.clone(), born };
            self.follow(&live.claimed.run.id, tip.id());
        } else {
            live.own_event = Some(tip.id());
        }
    }

    /// A command need not say how long its chain is: its runner notes that before the branch has the commit (K9).
    fn note_outcome(&self, branch: &RefName, live: &Live, tip: &Tip) -> Result<(), RunnerError> {
        let hop = live.claimed.run.hop;
        match &tip.event {
            Some(event) if !event.is_working() && event.hop() < hop => self.note_hop(branch, tip.id(), hop),
            Some(_) | None => Ok(()),
        }
    }

    /// What the head is to a run whose command writes. A head that came about while the command ran is its
    /// own where it says so, or is in the history of the slot's HEAD; once the command has ended by itself,
    /// the head alone is judged.
    fn relate_by_head(
        &self,
        branch: &RefName,
        live: &mut Live,
        ended: Option<&Exit>,
    ) -> Result<Relation, RunnerError> {
        let Some(id) = self.store.tip(branch)? else { return Ok(Relation::Other) };
        if id == live.claimed.lease.id {
            return Ok(Relation::Lease);
        }
        if let Some(own) = live.own_event.filter(|own| *own == id) {
            return Ok(Relation::OwnEvent(own));
        }
        let tip: Tip = self.store.read_commit(id)?.into();
        let by_itself = ended.is_some_and(|exit| *exit != Exit::Stopped);
        let lease = live.claimed.lease.id;
        if self.descends(lease, id)? {
            match tip.event.as_ref().map(|event| step(Some(event), &live.claimed.run.id)) {
                Some(Step::Heartbeat) => {
                    self.holds_now(live, &tip);
                    return Ok(Relation::Lease);
                }
                Some(Step::Outcome) if self.is_of_command(&tip, live)? || by_itself => {
                    self.note_outcome(branch, live, &tip)?;
                    return Ok(Relation::OwnEvent(id));
                }
                Some(Step::Outcome | Step::Plain | Step::Unfit(_)) => {}
                None if self.is_of_command(&tip, live)? => {
                    live.claimed.lease.id = id;
                    return Ok(Relation::SlotHead);
                }
                None => {}
            }
        }
        self.own_below(&tip, live)
    }

    /// True for a commit that says that it is of this run, or that the slot's HEAD stands on.
    fn is_of_command(&self, tip: &Tip, live: &Live) -> Result<bool, StoreError> {
        if tip.event.as_ref().and_then(Event::run_id) == Some(&*live.claimed.run.id) {
            return Ok(true);
        }
        match live.slot.head(self.repo) {
            Ok(head) => self.descends(tip.id(), head),
            Err(_) => Ok(false),
        }
    }

    /// The command's own outcome, where others went on from it before we looked.
    fn own_below(&self, tip: &Tip, live: &Live) -> Result<Relation, RunnerError> {
        let run_id = &live.claimed.run.id;
        let stop = [live.claimed.lease.id, live.claimed.first];
        for below in self.below(tip, &stop)? {
            let own = matches!(step(below.event.as_ref(), run_id), Step::Outcome)
                && self.is_of_command(&below, live)?
                && self.descends(live.claimed.lease.id, below.id())?;
            if own {
                return Ok(Relation::OwnEvent(below.id()));
            }
        }
        Ok(Relation::Other)
    }

    /// The command ended, and the head is still its lease: that lives until it expires.
    pub(super) fn finish_left(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: Option<&Exit>,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        let attempt = match self.keep_beyond(&live.slot, live.run_id(), branch, live.claimed.first, None) {
            Ok(attempt) => {
                self.release(live)?;
                attempt
            }
            // It stays in the slot: whoever wants that slot tries again.
            Err(error) => {
                report.notes.push(Note::WorkNotKept(with_causes(&error)));
                None
            }
        };
        let (commit, left) = (live.claimed.lease.id, self.lease_left(live));
        let outcome = Outcome::LeaseLeft { commit, left, failed: exit != Some(&Exit::Code(0)) };
        Ok(ran(live, exit, outcome, attempt))
    }

    /// Keeps what the slot holds beyond what its branch, or the outcome, has of it. An outcome that could not
    /// be forwarded is kept as it is, so that `retry` lands it (K26, K28).
    pub(super) fn keep_beyond(
        &self,
        slot: &Slot,
        run_id: &str,
        branch: &RefName,
        first: ObjectId,
        outcome: Option<&Commit>,
    ) -> Result<Option<RefName>, RunnerError> {
        let Some(name) = attempt_ref(run_id) else { return Ok(None) };
        let lease = Tip::from(self.store.read_commit(first)?);
        let mut found = slot.salvage(self.repo, Stage::All, first, lease.commit.tree)?;
        let head = self.store.read_commit(found.head).map_or(lease, Tip::from);
        // A HEAD that can't be read is nothing to stand on.
        found.head = head.id();
        let clean = found.tree == head.commit.tree;
        let is_at = |id| self.descends(found.head, id);
        let known = found.head == first
            || outcome.map_or(Ok(false), |outcome| is_at(outcome.id))?
            || self.store.tip(branch)?.map_or(Ok(false), is_at)?;
        if known && (clean || outcome.is_some_and(|outcome| outcome.tree == found.tree)) {
            return Ok(None);
        }
        let whole = clean
            && matches!(step(head.event.as_ref(), run_id), Step::Outcome)
            && self.descends(first, found.head)?;
        let commit = if whole { found.head } else { self.write_attempt(run_id, first, &found)? };
        self.keep(&name, commit)?;
        Ok(Some(name))
    }
}

/// Judges one commit of a command's by what it says.
fn step(event: Option<&Event>, run_id: &str) -> Step {
    let Some(event) = event else { return Step::Plain };
    let whose = event.run_id();
    match (event.dialect.writer(), event.is_working()) {
        (Writer::Runner, _) => Step::Unfit(Unforwarded::OtherDialect),
        (Writer::Command, true) if whose == Some(run_id) => Step::Heartbeat,
        (Writer::Command, true) => Step::Unfit(Unforwarded::ForeignLease),
        // A recovery and a cancellation carry an id of their own, and are somebody else's.
        (Writer::Command, false) if event.text(RECOVERY_ID).is_some() => {
            Step::Unfit(Unforwarded::ForeignEvent)
        }
        (Writer::Command, false) if whose.is_none_or(|whose| whose == run_id) => Step::Outcome,
        (Writer::Command, false) => Step::Unfit(Unforwarded::ForeignEvent),
    }
}
