//! The events for a node's branch, its inbox, its questions and its turns' lines.

use super::fact::{Ended, Heard, Rest, Step, Turned};
use super::{Out, Projection};
use crate::contract::event::{ApprovalRequest, ApprovalResolution, Body, UserMessage};
use crate::contract::id::{ApprovalId, NodeId, PayloadId};
use crate::contract::node::{Connection, Node, NodePatch, Session, Usage};
use crate::contract::run::RunPatch;
use crate::contract::time::Time;
use crate::contract::words::{
    ApprovalStatus, ConnectionStatus, FinalStatus, MessageRole, NodeStatus, TurnStatus,
};
use indexmap::IndexSet;

/// How many of the taken messages are remembered. A message that still waits after it was taken is removed by
/// the next look at its branch, so only the last ones can be seen waiting again.
const HEARD_MAX: usize = 4096;

/// Returns the event for an approval that ended without an answer.
pub(super) fn denied(approval_id: ApprovalId, reason: &str) -> Body {
    let status = ApprovalStatus::Denied;
    let resolution = ApprovalResolution { status, modified_args: None, reason: Some(reason.to_owned()) };
    Body::ApprovalResolved { approval_id, resolution }
}

fn turn_status(ended: Ended) -> TurnStatus {
    match ended {
        Ended::Completed => TurnStatus::Completed,
        Ended::Interrupted => TurnStatus::Interrupted,
        Ended::Failed => TurnStatus::Failed,
    }
}

/// Returns a node's connection with another status.
pub(super) fn connection(node: &Node, status: ConnectionStatus, at: Time) -> Connection {
    let output = node.connection.as_ref().map_or(at, |connection| connection.last_output_at);
    let streaming = status == ConnectionStatus::Connected;
    Connection { status, streaming, last_heartbeat_at: at, last_output_at: output }
}

impl Projection {
    /// Reports a message that waits, unless it was reported before. A message that is seen only once it was
    /// taken is reported then.
    pub(super) fn waits(&mut self, node: NodeId, heard: &Heard, out: &mut Out) {
        if !self.knows(node)
            || self.carried.heard.contains(&heard.id())
            || self.inbox(node).contains(&heard.id())
        {
            return;
        }
        self.arrives(node, heard, out);
        let inbox = self.inbox(node);
        inbox.insert(heard.id());
        let count = Some(inbox.len() as u64);
        out.node(node, NodePatch { inbox_count: count, ..NodePatch::default() });
    }

    fn inbox(&mut self, node: NodeId) -> &mut IndexSet<PayloadId> {
        self.carried.inbox.entry(node).or_default()
    }

    /// Reports a message, with the message's own id and time, whichever fact it came with.
    fn arrives(&self, node: NodeId, heard: &Heard, out: &mut Out) {
        let sent = match heard {
            // An interrupt without a text is not reported: a page would show an empty message from the user.
            Heard::Message { text, interrupt: true, .. } if text.trim().is_empty() => return,
            Heard::Message { id, at, text, interrupt } => {
                let message = UserMessage {
                    id: *id,
                    run_id: self.id,
                    node_id: node,
                    role: MessageRole::User,
                    content: text.clone(),
                    interrupt: *interrupt,
                    created_at: *at,
                };
                out.say(Body::MessageUser { message });
                *at
            }
            Heard::Handoff(envelope) => {
                out.say(Body::HandoffSent { envelope: (**envelope).clone() });
                envelope.created_at
            }
        };
        out.events.iter_mut().next_back().into_iter().for_each(|event| event.ts = sent);
    }

    pub(super) fn step(&mut self, node: NodeId, step: &Step, out: &mut Out) {
        if !self.knows(node) {
            return;
        }
        match step {
            Step::Delivered(messages) => self.delivered(node, messages, out),
            Step::Leased => {
                let status = if self.carried.stopped.contains(&node) {
                    ConnectionStatus::Disconnected
                } else {
                    ConnectionStatus::Connected
                };
                // A page shows the turn's status in place of the node's summary, so the node's own event
                // comes after it.
                out.say(Body::TurnStatus { node_id: node, status: TurnStatus::Started, detail: None });
                self.moves(node, NodeStatus::Running, "running", status, out);
            }
            Step::Turned(turned) => self.turned(node, turned, out),
            Step::Cut(ended, why) => {
                let status = turn_status(*ended);
                out.say(Body::TurnStatus { node_id: node, status, detail: Some(why.clone()) });
            }
            Step::Rests(rest) => {
                let (status, summary) = match rest {
                    Rest::Idle => {
                        let said = self.run.as_ref().and_then(|run| run.nodes.get(&node));
                        (NodeStatus::Idle, said.map_or(String::new(), |node| node.summary.clone()))
                    }
                    Rest::Blocked(why) => (NodeStatus::Blocked, why.clone()),
                    Rest::Failed(why) => (NodeStatus::Failed, why.clone()),
                };
                self.unasked(node, "its turn ended", out);
                self.moves(node, status, &summary, self.at_rest(node), out);
            }
        }
    }

    fn at_rest(&self, node: NodeId) -> ConnectionStatus {
        match self.carried.stopped.contains(&node) {
            true => ConnectionStatus::Disconnected,
            false => ConnectionStatus::Idle,
        }
    }

    /// Reports a node's status with both events that have it, a patch and the node's progress.
    fn moves(
        &self,
        node: NodeId,
        status: NodeStatus,
        summary: &str,
        connected: ConnectionStatus,
        out: &mut Out,
    ) {
        let Some(there) = self.run.as_ref().and_then(|run| run.nodes.get(&node)) else { return };
        let patch = NodePatch {
            status: Some(status),
            summary: Some(summary.to_owned()),
            last_activity_at: Some(out.at),
            connection: Some(connection(there, connected, out.at)),
            ..NodePatch::default()
        };
        out.node(node, patch);
        out.say(Body::NodeProgress { node_id: node, status, summary: summary.to_owned() });
    }

    fn delivered(&mut self, node: NodeId, messages: &[Heard], out: &mut Out) {
        for heard in messages {
            let id = heard.id();
            let waited = self.inbox(node).shift_remove(&id);
            // The message was taken before a projection saw it wait. A commit that takes it again, for a
            // retry, reports nothing.
            if self.carried.heard.insert(id) && !waited {
                self.arrives(node, heard, out);
            }
        }
        while self.carried.heard.len() > HEARD_MAX {
            self.carried.heard.shift_remove_index(0);
        }
        let count = Some(self.inbox(node).len() as u64);
        out.node(node, NodePatch { inbox_count: count, ..NodePatch::default() });
    }

    fn turned(&mut self, node: NodeId, turned: &Turned, out: &mut Out) {
        let (status, fin) = match turned.ended {
            Ended::Completed => (NodeStatus::Idle, None),
            Ended::Interrupted => (NodeStatus::Idle, Some(FinalStatus::Interrupted)),
            Ended::Failed => (NodeStatus::Failed, Some(FinalStatus::Interrupted)),
        };
        self.unasked(node, "its turn ended", out);
        for artifact in &turned.artifacts {
            out.say(Body::ArtifactCreated { artifact: artifact.clone() });
        }
        if !turned.told && !turned.text.is_empty() {
            let content = turned.text.clone();
            out.say(Body::MessageFinal { node_id: node, content, status: fin, tool_calls: None });
        }
        if turned.usage != Usage::default() {
            self.used(node, turned, out);
        }
        let Some(there) = self.run.as_ref().and_then(|run| run.nodes.get(&node)) else { return };
        if let Some(session_id) = &turned.session {
            let reset_commands = there.session.reset_commands.clone();
            let session = Some(Session { session_id: session_id.clone(), reset_commands });
            out.node(node, NodePatch { session, ..NodePatch::default() });
        }
        let turn = turn_status(turned.ended);
        out.say(Body::TurnStatus { node_id: node, status: turn, detail: None });
        self.moves(node, status, &turned.summary, self.at_rest(node), out);
    }

    /// Reports the tokens of the turn, then the totals of the node and of the run: in this order a reader
    /// that adds up the increments ends with the right totals, too.
    fn used(&self, node: NodeId, turned: &Turned, out: &mut Out) {
        let Some(run) = &self.run else { return };
        let total = |usage: Option<Usage>| Some(usage.unwrap_or_default().and(turned.usage));
        let (provider, model, usage) = (turned.provider, turned.model.clone(), turned.usage);
        out.say(Body::TelemetryUsage { node_id: node, provider, model, usage });
        let own = total(run.nodes.get(&node).and_then(|node| node.usage));
        out.node(node, NodePatch { usage: own, ..NodePatch::default() });
        out.run(RunPatch { usage: total(run.usage), ..RunPatch::default() });
    }

    pub(super) fn asked(&mut self, request: &ApprovalRequest, out: &mut Out) {
        let (node, id) = (request.node_id, request.approval_id);
        if !self.knows(node) || self.carried.asked.insert(id, node).is_some() {
            return;
        }
        let (tool, context) = (request.tool.clone(), request.context.clone());
        let summary = format!("approval required: {}", tool.name);
        let status = Some(NodeStatus::Blocked);
        out.say(Body::TurnStatus {
            node_id: node,
            status: TurnStatus::AwaitingApproval,
            detail: Some(tool.name.clone()),
        });
        out.node(node, NodePatch { status, summary: Some(summary), ..NodePatch::default() });
        out.say(Body::ApprovalRequested { approval_id: id, node_id: node, tool, context });
    }

    pub(super) fn answered(&mut self, id: ApprovalId, resolution: &ApprovalResolution, out: &mut Out) {
        // An approval that is not open was resolved already, or is unknown; nothing is reported twice.
        let Some(node) = self.carried.asked.shift_remove(&id) else { return };
        out.say(Body::ApprovalResolved { approval_id: id, resolution: resolution.clone() });
        let others = self.carried.asked.values().any(|other| *other == node);
        let held = self.run.as_ref().is_some_and(|run| run.status.holds());
        if !others && !held {
            let summary = Some("approval resolved".to_owned());
            out.node(node, NodePatch { status: Some(NodeStatus::Running), summary, ..NodePatch::default() });
        }
    }

    /// Denies what a turn that is over had asked: every approval that ends is resolved, however it ends.
    fn unasked(&mut self, node: NodeId, reason: &str, out: &mut Out) {
        let asked: Vec<ApprovalId> =
            self.carried.asked.iter().filter(|(_, of)| **of == node).map(|(id, _)| *id).collect();
        for id in asked {
            self.carried.asked.shift_remove(&id);
            out.say(denied(id, reason));
        }
    }

    /// Reports a line of a turn, always for the turn's own node. Only the agent's words, its tools and its
    /// list of tasks are taken from a line.
    pub(super) fn line(&mut self, node: NodeId, body: &Body, out: &mut Out) {
        if !self.knows(node) {
            return;
        }
        let mut body = body.clone();
        match &mut body {
            Body::NodeLog { node_id, .. }
            | Body::TurnStatus { node_id, .. }
            | Body::MessageDelta { node_id, .. }
            | Body::MessageFinal { node_id, .. }
            | Body::ThinkingDelta { node_id, .. }
            | Body::ThinkingFinal { node_id, .. }
            | Body::ToolProposed { node_id, .. }
            | Body::ToolStarted { node_id, .. }
            | Body::ToolCompleted { node_id, .. } => *node_id = node,
            Body::NodePatch { node_id, patch } => {
                // The agent's list of tasks is all that a turn may change of its node.
                *node_id = node;
                **patch = NodePatch { todos: patch.todos.take(), ..NodePatch::default() };
                if patch.todos.is_none() {
                    return;
                }
            }
            // These events follow from commits and refs; a line can't claim them.
            Body::RunPatch { .. }
            | Body::RunMode { .. }
            | Body::RunStalled { .. }
            | Body::NodeProgress { .. }
            | Body::NodeHeartbeat { .. }
            | Body::NodeDeleted { .. }
            | Body::EdgeCreated { .. }
            | Body::EdgeDeleted { .. }
            | Body::HandoffSent { .. }
            | Body::MessageUser { .. }
            | Body::ApprovalRequested { .. }
            | Body::ApprovalResolved { .. }
            | Body::ArtifactCreated { .. }
            | Body::TelemetryUsage { .. } => return,
        }
        out.say(body);
    }
}
