//! What the head of a branch is to a run that claimed it.
//!
//! Its own lease, an event of its own command, the commit that its slot stands on, or somebody else's.
//! Implements the second column of section 8's table, K22.

use super::live::Live;
use super::report::LostTo;
use super::{Runner, RunnerError};
use crate::protocol::complete::HeadIs;
use crate::protocol::event::Event;
use crate::protocol::holding::{Fact, Seen, Whose, is_own_event, whose};
use crate::protocol::id::ObjectId;
use crate::store::{RefName, StoreError};

/// How far down from the head an event of ours is looked for; renewals are many.
const DEPTH: usize = 32;

/// What the branch's head is to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Its own lease.
    Lease,
    /// Its command's own state event.
    OwnEvent(ObjectId),
    /// The commit that its slot's HEAD names.
    SlotHead,
    /// Somebody else's.
    Other,
}

impl Relation {
    /// The same without the commit.
    pub(super) fn head(self) -> HeadIs {
        match self {
            Relation::Lease => HeadIs::Lease,
            Relation::OwnEvent(_) => HeadIs::OwnEvent,
            Relation::SlotHead => HeadIs::SlotHead,
            Relation::Other => HeadIs::Other,
        }
    }
}

impl Runner<'_> {
    /// Reads the head and says what it is to this run. A lease of the run's that the command renewed by
    /// hand is taken over.
    pub(super) fn relate(&self, branch: &RefName, live: &mut Live) -> Result<Relation, RunnerError> {
        let Some(id) = self.store.tip(branch)? else { return Ok(Relation::Other) };
        if id == live.claimed.lease.id {
            return Ok(Relation::Lease);
        }
        let tip: super::Tip = self.store.read_commit(id)?.into();
        let mut below = None;
        let seen = Seen { id, event: tip.event.as_ref() };
        let found = whose(Some(seen), live.run_id(), live.claimed.lease.id, |fact| match fact {
            Fact::StandsOnLease => self.reaches(&tip.commit.parents, live.claimed.lease.id),
            Fact::IsSlotHead => Ok(live.slot.head(self.repo).ok() == Some(id)
                && self.repo.git.is_ancestor(live.claimed.first, id)?),
            Fact::OwnEventBelow => {
                below = self.own_event_below(&tip, live)?;
                Ok(below.is_some())
            }
        })?;
        Ok(match found {
            Whose::Lease => Relation::Lease,
            Whose::OtherLease => {
                self.take_over(live, &tip);
                Relation::Lease
            }
            Whose::OwnEvent => Relation::OwnEvent(id),
            Whose::OwnEventBelow => below.map_or(Relation::Other, Relation::OwnEvent),
            Whose::SlotHead => Relation::SlotHead,
            Whose::Other => Relation::Other,
        })
    }

    /// What a branch is now whose lease was lost; `None` where that can't be read.
    pub(super) fn lost_to(&self, branch: &RefName) -> Option<LostTo> {
        let Some(id) = self.store.tip(branch).ok()? else { return Some(LostTo::Nothing) };
        let tip = super::Tip::from(self.store.read_commit(id).ok()?);
        Some(match tip.event {
            Some(event) => LostTo::Event(id, event.state_name().cloned()),
            None => LostTo::Commit(id),
        })
    }

    /// Another lease of this run is the head: it counts from now on.
    fn take_over(&self, live: &mut Live, tip: &super::Tip) {
        // Others count from the commit's date, not from when we found it.
        let now = self.clock.now();
        let age = now.saturating_sub(tip.commit.committed.unwrap_or(now));
        let age = std::time::Duration::from_secs(u64::try_from(age).unwrap_or(0));
        let born = self.clock.elapsed().saturating_sub(age);
        let message = crate::protocol::message::Message::parse(&tip.commit.message);
        live.claimed.lease = super::claim::Lease { id: tip.id(), message, born };
        self.follow(&live.claimed.run.id, tip.id());
    }

    /// The command's own state event, where others went on from it before we looked.
    fn own_event_below(&self, tip: &super::Tip, live: &Live) -> Result<Option<ObjectId>, StoreError> {
        for below in self.below(tip, &[live.claimed.lease.id, live.claimed.first])? {
            if is_own_event(below.event.as_ref(), &live.claimed.run.id)
                && self.reaches(&below.commit.parents, live.claimed.lease.id)?
            {
                return Ok(Some(below.id()));
            }
        }
        Ok(None)
    }

    /// The commits below a head along first parents, newest first, down to one of `stop` or not far.
    pub(super) fn below(&self, tip: &super::Tip, stop: &[ObjectId]) -> Result<Vec<super::Tip>, StoreError> {
        let mut found = Vec::new();
        let ends = self.store.history_ends_at(tip.id())?;
        let mut next = tip.commit.parents.first().copied().filter(|_| !ends);
        while let Some(id) = next.filter(|id| !stop.contains(id) && found.len() < DEPTH) {
            let below: super::Tip = self.store.read_commit(id)?.into();
            // Below the boundary of a shallow clone there is nothing to read.
            next = if self.store.history_ends_at(id)? { None } else { below.commit.parents.first().copied() };
            found.push(below);
        }
        Ok(found)
    }

    /// True where `goal` is reached along first parents before long.
    fn reaches(&self, parents: &[ObjectId], goal: ObjectId) -> Result<bool, StoreError> {
        let mut next = parents.first().copied();
        for _ in 0..DEPTH * 1024 {
            match next {
                Some(id) if id == goal => return Ok(true),
                Some(id) => {
                    let commit = self.store.read_commit(id)?;
                    if Event::of(crate::protocol::message::Message::parse(&commit.message))
                        .is_none_or(|e| !e.is_working())
                    {
                        return Ok(false);
                    }
                    let ends = self.store.history_ends_at(id)?;
                    next = commit.parents.first().copied().filter(|_| !ends);
                }
                None => return Ok(false),
            }
        }
        Ok(false)
    }
}
