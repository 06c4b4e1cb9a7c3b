//! What a run writes on its own branch: its outcome and renewals of its lease, by its command or by a process
//! that outlives the command.
//!
//! The commit carries the run's id, and its content is that of the slot. If the run's own lease was renewed
//! in between, the write is tried again; any other head means that the lease is gone. Implements K21, K22,
//! K29, K54 (the usage that was reported until then).

use super::super::report::Note;
use super::super::run_events::usage_trailers;
use super::super::{Runner, RunnerError, Tip};
use super::{ChangeError, Inside, RENEWALS, Written, moved_notes, working, written};
use crate::protocol::declaration::{Declaration, travelling};
use crate::protocol::dialect::{Dialect, Writer};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::store::slots::harvest::HarvestError;
use crate::store::slots::{Locked, Occupant, Slot};
use crate::store::{RefName, StoreError};

/// How often, and with which pauses, a slot is tried again that another process is just looking at.
const SLOT_TRIES: usize = 50;
const SLOT_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

impl Runner<'_> {
    /// Writes the outcome of the run that this process belongs to, for its command (K22) or for a process
    /// that outlived it (K21).
    pub(super) fn set_state_inside(
        &self,
        branch: &RefName,
        next: &Declaration,
        asked: Option<Dialect>,
        inside: &Inside,
    ) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let (tip, lease, run) = self.own_lease(branch, inside)?;
            if asked.is_some_and(|asked| asked != run.dialect) {
                return Err(ChangeError::Dialect(branch.clone(), run.dialect));
            }
            let mut own = run.trailers();
            if next.keep_trailers {
                own.extend(travelling(&lease.message, run.dialect));
            }
            own.extend(usage_trailers(run.dialect, &self.told_usage(&run.id, run.trigger)));
            let mut notes = Vec::new();
            let (tree, parents, slot) = self.inside_tree(inside, &tip, run.dialect, &mut notes)?;
            let heard = match (run.dialect.writer(), parents.last()) {
                (Writer::Runner, Some(head)) => {
                    self.taken_by(&self.run_dir(&inside.run_id), branch, *head)?
                }
                (Writer::Runner, None) | (Writer::Command, _) => Vec::new(),
            };
            let parents = parents.into_iter().chain(heard.iter().map(|heard| heard.commit)).collect();
            let commit = self.write_declared(branch, &next.message(run.dialect, &own), tree, parents)?;
            let log = format!("aynig: {} -> {}", run.state, next.state);
            let others = self.hearing(&heard)?;
            let moved = match self.move_branch_with(branch, (tip.id(), commit), &others, &log, self.soon()) {
                // One of the messages was taken away in between.
                Err(RunnerError::Store(StoreError::Moved { name, .. })) if name != *branch => continue,
                moved => moved?,
            };
            if let Some(moved) = moved_notes(branch, moved)? {
                self.settle_inside(slot, (inside, tip.id()), commit)?;
                notes.extend(moved);
                return Ok(Written { notes, ..written(branch, commit, &next.state) });
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }

    /// Returns the tree and the parents of a commit from inside a run, as its slot holds them, and the slot's
    /// number if the run outlives its command there. If the run has no slot any more, its attempt counts, or
    /// else the lease's own tree.
    pub(in crate::runner) fn inside_tree(
        &self,
        inside: &Inside,
        tip: &Tip,
        dialect: Dialect,
        notes: &mut Vec<Note>,
    ) -> Result<(ObjectId, Vec<ObjectId>, Option<usize>), ChangeError> {
        let pool = self.known_pool();
        for number in pool.known() {
            let mut slot = pool.borrow(number);
            let Some(occupant) = slot.record().run.clone().filter(|r| r.run_id == inside.run_id) else {
                continue;
            };
            slot.stage_within(self.staging(&slot));
            let Some(first) = occupant.lease_id() else { continue };
            let base = self.store.read_commit(first)?.tree;
            let found = match slot.harvest(self.repo, self.settings.stage, first, base) {
                Ok(found) => found,
                Err(HarvestError::Store(error)) => return Err(error.into()),
                Err(error @ (HarvestError::ForeignHead(_) | HarvestError::Unmerged)) => {
                    return Err(ChangeError::Slot(error.to_string()));
                }
            };
            if !found.nested.is_empty() {
                let names = found.nested.iter().map(|n| crate::protocol::text::escape(n)).collect();
                notes.push(Note::NestedRepositories(names));
            }
            let mut parents = vec![tip.id()];
            if dialect.writer() == Writer::Command && self.descends(tip.id(), found.head)? {
                // The command's own commits come next on the branch.
                parents = vec![found.head];
            } else if found.head != first && found.head != tip.id() {
                parents.push(found.head);
            }
            return Ok((found.tree, parents, occupant.lingering.then_some(number)));
        }
        // The run's slot is free again, and what it had held is kept as an attempt.
        if dialect.writer() == Writer::Runner
            && let Some((_, kept)) = self.attempt_of(&inside.run_id, tip)?
        {
            let kept = self.store.read_commit(kept)?;
            let parents = [tip.id()].into_iter().chain(kept.parents.iter().skip(1).copied()).collect();
            return Ok((kept.tree, parents, None));
        }
        Ok((tip.commit.tree, vec![tip.id()], None))
    }

    /// Notes in a lingering run's slot that its outcome is written. The slot is then free for the next run
    /// that needs it, whose runner ends the processes that still live there, and keeps what they changed
    /// beyond the outcome.
    fn settle_inside(
        &self,
        slot: Option<usize>,
        (inside, lease): (&Inside, ObjectId),
        outcome: ObjectId,
    ) -> Result<(), ChangeError> {
        let Some(number) = slot else { return Ok(()) };
        let pool = self.pool()?;
        self.unfollow(&inside.run_id, &[lease]);
        for _ in 0..SLOT_TRIES {
            if let Locked::Taken(mut slot) = pool.lock(number)? {
                let occupant = slot.record().run.clone().filter(|r| r.run_id == inside.run_id);
                if let Some(occupant) = occupant {
                    slot.occupy(Some(Occupant { outcome: Some(outcome.to_string()), ..occupant }))?;
                }
                return Ok(());
            }
            // A runner that needs a slot may hold this one to look at it, which takes no time.
            self.interrupt.pause(SLOT_PAUSE);
        }
        Ok(())
    }

    /// Writes a heartbeat of the run that this process belongs to, as its command would commit one (K29): on
    /// top of the slot's HEAD, which moves along, so that what is committed next descends from the heartbeat.
    /// `None` if the branch moved meanwhile.
    fn beat_inside(
        &self,
        branch: &RefName,
        inside: &Inside,
        (tip, lease): (&Tip, &Event),
    ) -> Result<Option<Written>, ChangeError> {
        let pool = self.pool()?;
        let of_run = |slot: &Slot| slot.record().run.as_ref().is_some_and(|r| r.run_id == inside.run_id);
        let slot = pool.known().into_iter().map(|number| pool.borrow(number)).find(of_run);
        let head = slot.as_ref().and_then(|slot| slot.head(self.repo).ok());
        let base = match head {
            Some(head) if self.descends(tip.id(), head)? => head,
            Some(_) | None => tip.id(),
        };
        let tree = self.store.read_commit(base)?.tree;
        let commit = self.write(branch, tree, vec![base], &lease.message)?;
        let moved = self.move_branch(branch, tip.id(), commit, "aynig: renew", self.soon())?;
        let Some(notes) = moved_notes(branch, moved)? else { return Ok(None) };
        self.follow(&inside.run_id, commit);
        if let (Some(slot), Some(head)) = (slot, head)
            && self.store.read_commit(head)?.tree == tree
        {
            slot.move_head(self.repo, head, commit)?;
        }
        let run_id = Some(inside.run_id.clone());
        Ok(Some(Written { run_id, notes, ..written(branch, commit, &working()?) }))
    }

    /// Renews the lease of the run that this process belongs to.
    pub(super) fn renew_inside(&self, branch: &RefName, inside: &Inside) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let (tip, lease, _) = self.own_lease(branch, inside)?;
            if lease.dialect.writer() == Writer::Command {
                match self.beat_inside(branch, inside, (&tip, &lease))? {
                    Some(written) => return Ok(written),
                    None => continue,
                }
            }
            let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &lease.message)?;
            if self.advance(branch, tip.id(), commit, "aynig: renew")? {
                self.follow(&inside.run_id, commit);
                let written = written(branch, commit, &working()?);
                return Ok(Written { run_id: Some(inside.run_id.clone()), ..written });
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }
}
