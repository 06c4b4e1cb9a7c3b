//! Nodes as branches: how a node's branch begins, what its head says of the node, and which branches are a
//! flow's own.
//!
//! A node's branch begins at the flow's base with one commit, which is in state `idle`, accepts messages, and
//! names its flow and node. What the node does is read from the branch's head and stored nowhere else. A
//! branch outside of `flow/<slug>/` is not the flow's, whatever the flow's files say. Implements N3.

use super::{FlowError, Flows, Kept};
use crate::contract::flow::{Flow, NodeFile, branch_of};
use crate::contract::id::NodeId;
use crate::contract::words::NodeStatus;
use crate::protocol::accepts::ACCEPTS;
use crate::protocol::dialect::Dialect;
use crate::protocol::event::{Event, STATE};
use crate::protocol::flow::{FLOW, IDLE, NODE, ROUTE, TURN, accepts, goes_wrong, slug_of};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::Kind;
use crate::protocol::message::{Message, Trailer};
use crate::runner::Tip;
use crate::runner::talk::inbox::Waiting;
use crate::store::{Commit, RefChange, RefName, Swap, swap};
use std::cell::RefCell;

/// Returns what the head of a node's branch says of the node; `asks` says that a question waits there for a
/// person.
pub fn status_of(tip: Option<&Tip>, asks: bool) -> NodeStatus {
    let Some(event) = tip.and_then(|tip| tip.event.as_ref()) else { return NodeStatus::Failed };
    let Some(state) = event.state_name() else { return NodeStatus::Failed };
    match state.as_str() {
        _ if asks => NodeStatus::Blocked,
        _ if event.is_working() => NodeStatus::Running,
        "blocked" => NodeStatus::Blocked,
        // A person canceled the turn, not the node, which waits for the next message.
        "canceled" => NodeStatus::Idle,
        _ if goes_wrong(event) => NodeStatus::Failed,
        TURN | ROUTE => NodeStatus::Running,
        _ => NodeStatus::Idle,
    }
}

impl Flows<'_, '_> {
    /// Returns the flow and the node of a branch.
    ///
    /// # Errors
    /// [`FlowError::NoNode`].
    pub fn of_branch(&self, branch: &RefName) -> Result<(Kept, NodeId), FlowError> {
        let none = || FlowError::NoNode(branch.clone());
        slug_of(branch.short()).ok_or_else(none)?;
        let own = |kept: Kept| {
            let is_it = |node: &NodeFile| owns(&kept.flow, node) && node.branch.as_bytes() == branch.short();
            let node = kept.flow.nodes.iter().find(|(_, node)| is_it(node)).map(|(id, _)| *id);
            node.map(|node| (kept, node))
        };
        let kept = self.all()?.into_iter().filter_map(|listed| listed.read.ok());
        let mut found: Vec<(Kept, NodeId)> = kept.filter_map(own).collect();
        if found.len() > 1 {
            // Another flow's files may name the branch too: it belongs to the flow that it was made for.
            let tip = self.runner.read_tip(branch)?.ok_or_else(none)?;
            found.retain(|(kept, _)| self.runner.is_born_of(&tip.commit, &[kept.id.to_string()]));
        }
        found.pop().ok_or_else(none)
    }

    /// Returns the name of the branch that a new node of this name gets; see [`branch_of`]. A branch that was
    /// made for this very node before counts as free.
    pub fn branch_for(&self, kept: &Kept, node: NodeId, name: &str) -> Result<String, FlowError> {
        let there = self.runner.store.scan("refs/heads/")?;
        let failed = RefCell::new(None);
        let branch = branch_of(&kept.flow.run.slug, name, node, |plain| {
            let same = |branch: &[u8]| branch.eq_ignore_ascii_case(plain.as_bytes());
            let taken = there.iter().filter(|(name, _)| same(name.short()));
            kept.flow.nodes.values().any(|node| same(node.branch.as_bytes()))
                || taken.into_iter().any(|(_, head)| match self.is_birth(kept, node, *head) {
                    Ok(is_ours) => !is_ours,
                    Err(error) => {
                        *failed.borrow_mut() = Some(error);
                        true
                    }
                })
        });
        failed.into_inner().map_or(Ok(branch), Err)
    }

    /// Deletes the messages that wait for a branch, and returns them. A message that was delivered meanwhile
    /// is not among them.
    pub fn drop_inbox(&self, branch: &RefName) -> Result<Vec<Waiting>, FlowError> {
        let (mut dropped, by) = (Vec::new(), self.runner.signature());
        for waiting in self.runner.inbox(branch, None, &|_, _| false)? {
            let gone = swap::delete_ref(&*self.runner.store, &waiting.name, waiting.commit, &by)?;
            dropped.extend((gone == Swap::Won).then_some(waiting));
        }
        Ok(dropped)
    }

    /// Deletes interrupts that bring neither a text nor work. One is left over if the process that sent it
    /// was killed; to a node that has no turn to end it is no message.
    pub fn drop_bare_interrupts(&self, branch: &RefName) -> Result<(), FlowError> {
        let (kind, by) = (Kind::new(Kind::INTERRUPT).ok(), self.runner.signature());
        for waiting in self.runner.inbox(branch, kind.as_ref(), &|_, _| false)? {
            if waiting.letter.is_ok_and(|letter| letter.text.trim().is_empty() && letter.attached.is_none()) {
                swap::delete_ref(&*self.runner.store, &waiting.name, waiting.commit, &by)?;
            }
        }
        Ok(())
    }

    /// Returns the changes of branches that a change of a flow needs: branches of new nodes are created, and
    /// those that were left by nodes which never came to be are deleted.
    pub(super) fn branches_of(&self, before: &Flow, after: &Kept) -> Result<Vec<RefChange>, FlowError> {
        let mut changes = Vec::new();
        let new = after.flow.nodes.iter().filter(|(id, _)| !before.nodes.contains_key(*id));
        for (id, node) in new {
            if !owns(&after.flow, node) {
                return Err(FlowError::NoNode(RefName::branch(&node.branch)));
            }
            let name = RefName::branch(&node.branch);
            match self.runner.store.tip(&name)? {
                Some(head) if self.is_birth(after, *id, head)? => {}
                _ => changes.push(RefChange::create(name, self.write_birth(after, *id, node)?)),
            }
        }
        if !changes.is_empty() {
            let left = self.left(after, &changes)?;
            changes.extend(left);
        }
        Ok(changes)
    }

    /// Returns deletions of the branches that were made for nodes which this flow does not have. A branch
    /// that is also `wanted` was made by another process since this one looked for it: it is not deleted, so
    /// that our creation of it is what fails.
    fn left(&self, kept: &Kept, wanted: &[RefChange]) -> Result<Vec<RefChange>, FlowError> {
        let mut left = Vec::new();
        for (name, head) in self.runner.store.scan(&format!("refs/heads/flow/{}/", kept.flow.run.slug))? {
            let of = self.born(kept, &self.runner.store.read_commit(head)?);
            let has = |id| kept.branch(id).is_some_and(|branch| branch == name);
            let wanted = wanted.iter().any(|change| change.name == name);
            if of.is_some_and(|id| !has(id)) && name.is_node() && !wanted {
                left.push(RefChange::delete(name, head));
            }
        }
        Ok(left)
    }

    fn is_birth(&self, kept: &Kept, node: NodeId, head: ObjectId) -> Result<bool, FlowError> {
        Ok(self.born(kept, &self.runner.store.read_commit(head)?) == Some(node))
    }

    /// Returns the node whose branch begins with this commit; `None` for any other commit. A head for which
    /// there is a node shows that nothing was done on its branch yet.
    fn born(&self, kept: &Kept, commit: &Commit) -> Option<NodeId> {
        let event = Event::in_message(&commit.message)?;
        let text = |key| event.message.last(key).and_then(|value| std::str::from_utf8(value).ok());
        let fresh = event.state_name().is_some_and(|state| state.as_str() == IDLE)
            && text(FLOW) == Some(&*kept.id.to_string())
            && commit.parents.iter().map(ToString::to_string).eq([kept.flow.run.base.clone()]);
        text(NODE).filter(|_| fresh).and_then(|id| NodeId::parse(id).ok())
    }

    /// Writes the first commit of a node's branch.
    fn write_birth(&self, kept: &Kept, id: NodeId, node: &NodeFile) -> Result<ObjectId, FlowError> {
        let store = &self.runner.store;
        let base = kept.flow.run.base.parse::<ObjectId>();
        let base =
            base.map_err(|_| FlowError::bad(&super::store::ref_of(kept.id), "its base is no commit"))?;
        let tree = store.read_commit(base)?.tree;
        let (flow, label) = (&kept.flow.run.name, &node.config.label);
        let trailers = vec![
            Dialect::Dwp.trailer(STATE, IDLE),
            Trailer::new(ACCEPTS, accepts()),
            Trailer::new(FLOW, kept.id.to_string()),
            Trailer::new(NODE, id.to_string()),
        ];
        let line = |text: &str| crate::protocol::text::escape(text.as_bytes());
        let subject = format!("flow: node '{}' of '{}'", line(label), line(flow));
        let message = Message::new(subject, "", trailers);
        Ok(self.runner.write(&RefName::branch(&node.branch), tree, vec![base], &message)?)
    }
}

/// True where a node's branch is in its flow's own folder.
pub fn owns(flow: &Flow, node: &NodeFile) -> bool {
    slug_of(node.branch.as_bytes()) == Some(&flow.run.slug)
}
