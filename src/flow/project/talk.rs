//! The messages that wait for a flow's nodes, and the questions that their turns ask, as facts.
//!
//! A message is a fact when it is first seen waiting; if it is taken in before it was seen, the commit that
//! takes it in reports it. A question is an approval if it holds the call that it is about and a run waits
//! for its answer. Where signatures are required, an unsigned message or question is no fact. Implements N13
//! (messages, questions).

use super::position::Position;
use super::{Project, ProjectError};
use crate::contract::event::{ApprovalRequest, ToolCall};
use crate::contract::flow::Flow;
use crate::contract::id::{ApprovalId, NodeId, PayloadId};
use crate::contract::projection::Fact;
use crate::contract::time::Time;
use crate::flow::approval::TOOL;
use crate::flow::letter;
use crate::flow::senders::Senders;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{ASKED, Letter, parse_id_ref, parse_inbox_ref};
use crate::protocol::message::Message;
use crate::protocol::question::{Asker, Question};
use crate::runner::Tip;
use crate::store::RefName;
use std::collections::HashMap;

impl Project<'_> {
    /// Returns the messages that wait and were not reported yet, one list for each node.
    pub(super) fn inboxes(
        &self,
        (flow, senders): (&Flow, &Senders<'_>),
        from: &Position,
        next: &mut Position,
    ) -> Result<Vec<Vec<Fact>>, ProjectError> {
        let store = &*self.runner.store;
        let nodes: HashMap<&[u8], NodeId> =
            flow.nodes.iter().map(|(id, node)| (node.branch.as_bytes(), *id)).collect();
        let mut lists: HashMap<NodeId, Vec<_>> = HashMap::new();
        for (name, commit) in store.known_scan(&format!("refs/aynig/inbox/flow/{}/", flow.run.slug))? {
            let Some(at) = parse_inbox_ref(name.as_bytes()) else { continue };
            let Some(node) = nodes.get(&*at.branch) else { continue };
            let id = at.id.to_string();
            if !from.waiting.contains(&id)
                && let Ok(read) = store.read_commit(commit)
                && let message = Message::parse(&read.message)
                && let Ok(letter) = Letter::read_at(&at, &message, &read.parents)
                && self.runner.is_vouched(&RefName::branch(&at.branch), commit, &message)?
                && let Some(heard) = letter::heard(&letter, *node, senders)
            {
                let sent = Time::from_seconds(read.committed.unwrap_or(0));
                lists.entry(*node).or_default().push((at.id, Fact::Waits { node: *node, at: sent, heard }));
            }
            next.waiting.insert(id);
        }
        let sorted = lists.into_values().map(|mut list| {
            list.sort_by_key(|(id, _)| *id);
            list.into_iter().map(|(_, fact)| fact).collect()
        });
        Ok(sorted.collect())
    }

    /// Returns the questions that turns of this flow ask now and that were not reported before.
    pub(super) fn questions(&self, flow: &Flow, from: &Position) -> Result<Vec<Fact>, ProjectError> {
        let store = &*self.runner.store;
        let mut facts = Vec::new();
        for (name, commit) in store.known_scan(&String::from_utf8_lossy(ASKED))? {
            let Some(id) = parse_id_ref(ASKED, name.as_bytes()) else { continue };
            let Ok(read) = store.read_commit(commit) else { continue };
            let message = Message::parse(&read.message);
            let Ok(question) = Question::read(id, &message) else { continue };
            let asks = |node: &&NodeId| flow.nodes[*node].branch.as_bytes() == question.branch;
            let Some(node_id) = flow.nodes.keys().find(asks).copied() else { continue };
            let tool = message.last(TOOL).and_then(|raw| serde_json::from_slice::<ToolCall>(raw).ok());
            let Some(tool) = tool else { continue };
            let approval_id = ApprovalId(PayloadId::of_message(id).0);
            if from.asked.contains_key(&approval_id) || !self.is_asked(&question, commit, &message)? {
                continue;
            }
            let context = question.text.lines().next().map(str::to_owned);
            let request = ApprovalRequest { approval_id, node_id, tool, context };
            // The id has the time to the millisecond, as the turn's own lines have it, so that the question
            // comes after the lines that proposed its call.
            let at = Time(i64::try_from(id.millis()).unwrap_or(i64::MAX));
            facts.push(Fact::Asked { at, request });
        }
        facts.sort_by_key(Fact::at);
        Ok(facts)
    }

    /// True if a run waits for the answer and, where signatures are required, the question is signed. Any
    /// other question is no approval, since nothing would ever resolve it.
    fn is_asked(&self, question: &Question, commit: ObjectId, said: &Message) -> Result<bool, ProjectError> {
        let branch = RefName::branch(&question.branch);
        let Some(Tip { event: Some(head), .. }) = self.runner.read_tip(&branch)? else { return Ok(false) };
        match question.asker(&head) {
            Asker::Run => Ok(self.runner.is_vouched(&branch, commit, said)?),
            Asker::Head | Asker::Nobody => Ok(false),
        }
    }
}
