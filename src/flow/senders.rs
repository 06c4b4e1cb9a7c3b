//! Whose a handoff is: the node's whose turn called for it, as that node's own branch says.
//!
//! Whoever may push can write a message that calls itself a node's handoff, and so can an agent that sends one by itself. It is one
//! where the work that it brings is an outcome on that node's branch, and its id is made from a call of that very turn (N5):
//! `route` judged the edge then, and sends no other. Anything else is a message, of who sent it. Implements N6 (who hands over).

use super::outcome::Outcome;
use crate::contract::edge::Envelope;
use crate::contract::flow::Flow;
use crate::contract::id::{NodeId, PayloadId};
use crate::protocol::id::ObjectId;
use crate::store::{RefName, Store, StoreError};
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// The nodes of a flow, as those who hand something over.
pub struct Senders<'s> {
    store: &'s dyn Store,
    flow: &'s Flow,
    lines: RefCell<HashMap<NodeId, Line>>,
}

/// A node's branch, as far as it was looked at: from its head down.
#[derive(Default)]
struct Line {
    met: HashSet<ObjectId>,
    next: Option<ObjectId>,
    asked: bool,
}

impl<'s> Senders<'s> {
    /// The nodes of this flow.
    pub fn new(store: &'s dyn Store, flow: &'s Flow) -> Self {
        Self { store, flow, lines: RefCell::default() }
    }

    /// The envelope as it counts, of a message that brings this work: none where the node that it names did not send it. What
    /// can't be read is no proof.
    pub fn vouch(&self, envelope: Envelope, work: Option<ObjectId>) -> Option<Envelope> {
        let outcome = self.sent(&envelope, work?).ok().flatten()?;
        Some(Envelope { created_at: outcome.at, ..envelope })
    }

    /// The outcome of the turn that sent it.
    fn sent(&self, envelope: &Envelope, work: ObjectId) -> Result<Option<Outcome>, StoreError> {
        let Some(outcome) = Outcome::of(&self.store.read_commit(work)?) else { return Ok(None) };
        let began = outcome.began(self.store)?;
        let mut calls = outcome.calls.iter().filter_map(|call| call.as_ref().ok());
        let called = calls.any(|call| PayloadId::of_call(call.id, began) == envelope.id);
        Ok(if called && self.is_on_branch(envelope.from_node_id, work)? { Some(outcome) } else { None })
    }

    /// Whether a commit is one of a node's branch. Of a remote's it may have been heard of before the branch was: then the
    /// branch is asked for, once.
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
