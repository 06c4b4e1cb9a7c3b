//! Which node sent a handoff: the one whose turn called for it, as that node's own branch proves.
//!
//! Any pusher can write a message that calls itself a node's handoff, and so can an agent that sends a
//! message by itself. It is a handoff only if the work that it brings is an outcome on that node's branch and
//! its id is made from a call of that very turn (N5): `route` judged the edge then, and sends no other.
//! Anything else counts as an ordinary message from its sender. Implements N6 (who hands over).

use super::outcome::Outcome;
use crate::contract::edge::Envelope;
use crate::contract::flow::Flow;
use crate::contract::id::{NodeId, PayloadId};
use crate::protocol::id::ObjectId;
use crate::store::{RefName, Store, StoreError};
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// The nodes of a flow, as possible senders of handoffs.
pub struct Senders<'s> {
    store: &'s dyn Store,
    flow: &'s Flow,
    lines: RefCell<HashMap<NodeId, Line>>,
}

/// What was read of a node's branch so far, from its head down.
#[derive(Default)]
struct Line {
    met: HashSet<ObjectId>,
    next: Option<ObjectId>,
    asked: bool,
}

impl<'s> Senders<'s> {
    /// Prepares to judge handoffs of this flow's nodes.
    pub fn new(store: &'s dyn Store, flow: &'s Flow) -> Self {
        Self { store, flow, lines: RefCell::default() }
    }

    /// Returns the envelope, with the outcome's time as its own, of a message that brings this work; `None`
    /// where the node that the envelope names did not send it. What can't be read proves nothing.
    pub fn vouch(&self, envelope: Envelope, work: Option<ObjectId>) -> Option<Envelope> {
        let outcome = self.sent(&envelope, work?).ok().flatten()?;
        Some(Envelope { created_at: outcome.at, ..envelope })
    }

    /// Returns the outcome of the turn that sent the envelope; `None` where no turn of the named node did.
    fn sent(&self, envelope: &Envelope, work: ObjectId) -> Result<Option<Outcome>, StoreError> {
        let Some(outcome) = Outcome::of(&self.store.read_commit(work)?) else { return Ok(None) };
        let began = outcome.began(self.store)?;
        let mut calls = outcome.calls.iter().filter_map(|call| call.as_ref().ok());
        let called = calls.any(|call| PayloadId::of_call(call.id, began) == envelope.id);
        Ok(if called && self.is_on_branch(envelope.from_node_id, work)? { Some(outcome) } else { None })
    }

    /// True if a commit is on a node's branch. A handoff may have been fetched from a remote before the
    /// branch was, so if the commit is not found, the branch is fetched once more.
    fn is_on_branch(&self, node: NodeId, commit: ObjectId) -> Result<bool, StoreError> {
        let Some(file) = self.flow.nodes.get(&node) else { return Ok(false) };
        let branch = RefName::branch(&file.branch);
        let mut lines = self.lines.borrow_mut();
        let line = match lines.entry(node) {
            Entry::Occupied(line) => line.into_mut(),
            Entry::Vacant(none) => {
                let next = self.store.known_tip(&branch)?;
                none.insert(Line { next, ..Line::default() })
            }
        };
        while !line.met.contains(&commit) {
            match line.next.filter(|next| !line.met.contains(next)) {
                Some(next) => {
                    let ends = next.to_string() == self.flow.run.base || self.store.history_ends_at(next)?;
                    let below = self.store.read_commit(next)?.parents.first().copied();
                    line.next = below.filter(|_| !ends);
                    line.met.insert(next);
                }
                None if line.asked => return Ok(false),
                None => {
                    line.asked = true;
                    line.next = self.store.tip(&branch)?;
                }
            }
        }
        Ok(true)
    }
}
