//! The head of a branch, and the commits below it.
//!
//! Implements K9 (the hop count that a command need not write), K29 (what a search below a head reads at most).

use super::Runner;
use crate::protocol::decide::Head;
use crate::protocol::dialect::Writer;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::store::{Commit, RefName, StoreError};

/// How many commits below a head are searched for an event of a run. Along leases alone the search goes 1024 times as
/// far, because renewals are many.
pub(super) const DEPTH: usize = 32;

/// The newest commit of a branch, read once.
#[derive(Debug, Clone)]
pub struct Tip {
    pub commit: Commit,
    /// The commit's event; `None` where the commit is no state event.
    pub event: Option<Event>,
}

impl Tip {
    /// Returns what `decide` looks at.
    pub fn head(&self) -> Head<'_> {
        Head { event: self.event.as_ref(), committed: self.commit.committed }
    }
    /// Returns the commit's id.
    pub fn id(&self) -> ObjectId {
        self.commit.id
    }
}

impl From<Commit> for Tip {
    fn from(commit: Commit) -> Self {
        let event = Event::in_message(&commit.message);
        Self { commit, event }
    }
}

impl Runner<'_> {
    /// Reads a branch's head as it was last fetched; `None` where the branch does not exist. That is enough
    /// before a swap, which names the head that it expects, so a remote need not be asked once more.
    pub fn read_tip(&self, branch: &RefName) -> Result<Option<Tip>, StoreError> {
        match self.store.known_tip(branch)? {
            Some(id) => Ok(Some(self.with_hop(branch, self.store.read_commit(id)?.into()))),
            None => Ok(None),
        }
    }

    /// Reads a branch's head as it is now, from the remote where the branch is a remote's.
    pub fn fresh_tip(&self, branch: &RefName) -> Result<Option<Tip>, StoreError> {
        match self.store.tip(branch)? {
            Some(id) => Ok(Some(self.with_hop(branch, self.store.read_commit(id)?.into()))),
            None => Ok(None),
        }
    }

    /// Returns a head with the hop count that this runner noted for it, because a command that writes its own
    /// outcome need not write the count (K9, K29). Adds what flows say of the head.
    pub fn with_hop(&self, branch: &RefName, mut tip: Tip) -> Tip {
        let id = tip.id();
        if let Some(event) = &mut tip.event
            && event.dialect.writer() == Writer::Command
            && !event.is_working()
        {
            event.hop_floor = self.noted_hop(branch, id).unwrap_or(0);
        }
        self.with_node(branch, tip)
    }

    /// True where `new` is `old` or has it in its history.
    pub(super) fn descends(&self, old: ObjectId, new: ObjectId) -> Result<bool, StoreError> {
        Ok(old == new || self.repo.git.is_ancestor(old, new)?)
    }

    /// Returns the commits below a head along first parents, newest first: [`DEPTH`] at most, and none from
    /// the first of `stop` on.
    pub(super) fn below(&self, tip: &Tip, stop: &[ObjectId]) -> Result<Vec<Tip>, StoreError> {
        let mut found = Vec::new();
        let ends = self.store.history_ends_at(tip.id())?;
        let mut next = tip.commit.parents.first().copied().filter(|_| !ends);
        while let Some(id) = next.filter(|id| !stop.contains(id) && found.len() < DEPTH) {
            let below = Tip::from(self.store.read_commit(id)?);
            // Below the boundary of a shallow clone there is nothing to read.
            next = if self.store.history_ends_at(id)? { None } else { below.commit.parents.first().copied() };
            found.push(below);
        }
        Ok(found)
    }
}
