//! The state events of a branch, newest first along first parents.
//!
//! Commits are read one by one, until the caller has enough or a shallow clone ends. Without `leases`, claims
//! and renewals are left out: the rest is what was asked for and what came of it.

use super::{Runner, Tip};
use crate::protocol::dialect::{Dialect, Writer};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::store::{RefName, StoreError};
use std::collections::HashSet;

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Walked {
    /// The state events, newest first.
    pub events: Vec<Tip>,
    /// True where the walk ended at a commit of `known`, false where the history ended or `limit` was
    /// reached.
    pub met: bool,
}

/// How many commits of a branch are read for its newest state event, or for the lease of a run and what that
/// says.
const LOOK_BACK: usize = 1000;

/// Most commits that are read to find out when a run began.
const RENEWALS: usize = 2_000;

impl Runner<'_> {
    /// Returns when the run of this lease began, in seconds since 1970. Each renewal stands on the one before
    /// it, and commits that a command makes itself may lie in between. Best effort, for display only.
    pub(crate) fn began(&self, lease: &Tip) -> Option<i64> {
        let event = lease.event.as_ref()?;
        let (run, by_command) = (event.run_id()?, event.dialect.writer() == Writer::Command);
        let store = &self.store;
        let (mut began, mut at) = (lease.commit.committed, lease.commit.clone());
        for _ in 0..RENEWALS {
            let Some(parent) = at.parents.first().copied() else { return began };
            if store.history_ends_at(at.id).ok()? {
                return began;
            }
            let below = Tip::from(store.read_commit(parent).ok()?);
            match &below.event {
                Some(event) if event.is_working() && event.run_id() == Some(run) => {
                    began = below.commit.committed.or(began);
                }
                None if by_command => {}
                Some(_) | None => return began,
            }
            at = below.commit;
        }
        // The run has more renewals than are read, and began before the oldest of them.
        None
    }

    /// Returns how long a run took, in seconds, from its first lease to the commit that ended it, by their
    /// dates; `None` for a commit that ended no run. Best effort, for display only.
    pub(crate) fn took(&self, end: &Tip) -> Option<i64> {
        let event = end.event.as_ref().filter(|event| !event.is_working())?;
        let (mut at, by_command) = (end.commit.clone(), event.dialect.writer() == Writer::Command);
        for _ in 0..LOOK_BACK {
            let parent = at.parents.first().copied()?;
            if self.store.history_ends_at(at.id).ok()? {
                return None;
            }
            let below = Tip::from(self.store.read_commit(parent).ok()?);
            match &below.event {
                Some(lease) if lease.is_working() => {
                    let is_own =
                        by_command || event.trigger().is_some() && event.trigger() == lease.trigger();
                    let began = if is_own { self.began(&below) } else { None };
                    return Some(end.commit.committed?.saturating_sub(began?).max(0));
                }
                None if by_command => at = below.commit,
                Some(_) | None => return None,
            }
        }
        None
    }

    /// Returns the dialect of the newest state event at or below a head along first parents; `dwp` where
    /// there is none.
    pub fn newest_dialect(&self, tip: &Tip) -> Result<Dialect, StoreError> {
        let mut at = tip.clone();
        for _ in 0..LOOK_BACK {
            if let Some(event) = &at.event {
                return Ok(event.dialect);
            }
            let Some(parent) = at.commit.parents.first().copied() else { break };
            if self.store.history_ends_at(at.id())? {
                break;
            }
            at = self.store.read_commit(parent)?.into();
        }
        Ok(Dialect::default())
    }

    /// Returns the lease at a head; `None` where the head is no lease. What a command left out of a lease
    /// that it wrote itself is filled in from earlier leases of the run below; no decision depends on that
    /// (K29).
    pub fn whole_lease(&self, tip: &Tip) -> Result<Option<Event>, StoreError> {
        let Some(mut lease) = tip.event.clone().filter(Event::is_working) else { return Ok(None) };
        if lease.dialect.writer() == Writer::Runner {
            return Ok(Some(lease));
        }
        let mut at = tip.commit.clone();
        for _ in 0..LOOK_BACK {
            let Some(parent) = at.parents.first().copied().filter(|_| !lease.is_complete()) else { break };
            if self.store.history_ends_at(at.id)? {
                break;
            }
            let below = Tip::from(self.store.read_commit(parent)?);
            match &below.event {
                Some(event) if event.is_working() && event.run_id() == lease.run_id() => {
                    lease = lease.completed_from(event);
                }
                Some(_) => break,
                None => {}
            }
            at = below.commit;
        }
        Ok(Some(lease))
    }

    /// Walks down from a commit along first parents and passes each state event to `told`, until that returns
    /// false, a commit is in `known`, or the history ends. True where the walk reached a known commit.
    pub fn walk(
        &self,
        from: ObjectId,
        known: &HashSet<ObjectId>,
        told: &mut dyn FnMut(Tip) -> bool,
    ) -> Result<bool, StoreError> {
        let mut next = Some(from);
        while let Some(id) = next {
            if known.contains(&id) {
                return Ok(true);
            }
            let tip = Tip::from(self.store.read_commit(id)?);
            next = tip.commit.parents.first().copied();
            if tip.event.is_some() && !told(tip) {
                return Ok(false);
            }
            if next.is_some() && self.store.history_ends_at(id)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Returns the newest `limit` state events of a branch above what is `known`; without `leases`, only
    /// those that are no lease.
    pub fn newest(
        &self,
        from: ObjectId,
        leases: bool,
        limit: usize,
        known: &HashSet<ObjectId>,
    ) -> Result<Walked, StoreError> {
        let mut events = Vec::new();
        if limit == 0 {
            return Ok(Walked::default());
        }
        let met = self.walk(from, known, &mut |tip| {
            if leases || !tip.event.as_ref().is_some_and(Event::is_working) {
                events.push(tip);
            }
            events.len() < limit
        })?;
        Ok(Walked { events, met })
    }

    /// True while the branch's head is a lease of a run for this trigger that has not expired.
    pub fn is_leased_for(&self, branch: &RefName, trigger: ObjectId) -> Result<bool, StoreError> {
        use crate::protocol::decide::{Decision, decide};
        let Some(tip) = self.read_tip(branch)? else { return Ok(false) };
        let own = tip.event.as_ref().is_some_and(|e| e.is_working() && e.trigger() == Some(trigger));
        let seen = self.first_seen(branch, tip.id());
        let decision = decide(tip.head(), seen, self.clock.now(), self.policy(false));
        Ok(own && matches!(decision, Decision::Leased { .. }))
    }
}
