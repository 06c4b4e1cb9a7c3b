//! The projection: what Git holds of a flow, as the contract's events, and the run's state as they make it.
//!
//! [`Projection::take`] is given facts, one after the other, each as plain values: a commit of the flow, a step of a node's
//! branch, a message, a question, a line of a turn's events. It gives the events that the fact means. Their ids are made
//! from what they report, so projecting again yields the same ids, and a [`Log`] appends only those that are not in it. The
//! work for a fact depends on the fact and on the flow, never on how long the history is. Facts of one branch are given
//! in its order; [`in_order`] puts those of several branches together by time. Implements N13.

mod fact;
mod flows;
mod log;
mod order;
mod steps;

pub use fact::{Ended, Fact, Heard, Rest, Step, Turned};
pub use log::Log;
pub use order::{in_order, ordered};

use super::event::{Body, Event};
use super::flow::Flow;
use super::id::{ApprovalId, EventId, NodeId, PayloadId, RunId};
use super::node::NodePatch;
use super::run::{Run, RunPatch};
use super::time::Time;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

/// What a projection carries from one fact to the next. It can be kept, and gone on with elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// What waits for each node.
    inbox: IndexMap<NodeId, IndexSet<PayloadId>>,
    /// What is asked, and by whose turn.
    asked: IndexMap<ApprovalId, NodeId>,
    /// The messages that were taken last: one that is seen waiting once more was told already.
    heard: IndexSet<PayloadId>,
    /// Nodes' stop flags.
    stopped: IndexSet<NodeId>,
    /// How often each node was reset.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    resets: IndexMap<NodeId, u64>,
    /// The time of the last event: none is told as of before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Time>,
}

/// The projection of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Projection {
    id: RunId,
    /// The state that all events so far make; none before the first fact of the flow.
    run: Option<Run>,
    carried: Carried,
}

/// The events of one fact, as they are made.
struct Out<'a> {
    id: RunId,
    /// The fact's own name: the commit, the message, the line.
    of: &'a [&'a [u8]],
    /// When it was; no earlier than what was told before.
    at: Time,
    events: Vec<Event>,
}

impl Out<'_> {
    /// An event. Its id is made from the fact, its type, what it is about, and which of several such it is: what else
    /// the fact means to the projection does not change that. What has an id of its own is made from that alone.
    fn say(&mut self, body: Body) {
        let (word, (alone, about)) = (body.word(), about(&body));
        let like = |event: &&Event| event.body.word() == word && self::about(&event.body).1 == about;
        let n = (self.events.iter().filter(like).count() as u64).to_be_bytes();
        let mut parts = if alone { Vec::new() } else { self.of.to_vec() };
        parts.extend([word.as_bytes(), &about, &n]);
        let id = EventId::of(self.id, &parts);
        self.events.push(Event { id, run_id: self.id, ts: self.at, body, at: None });
    }

    fn node(&mut self, node_id: NodeId, patch: NodePatch) {
        self.say(Body::NodePatch { node_id, patch: Box::new(patch) });
    }

    fn run(&mut self, patch: RunPatch) {
        let updated_at = Some(self.at);
        self.say(Body::RunPatch { patch: Box::new(RunPatch { updated_at, ..patch }) });
    }
}

impl Projection {
    /// One of which nothing is known yet.
    pub fn new(id: RunId) -> Self {
        Self { id, run: None, carried: Carried::default() }
    }

    /// One that goes on with a run's state and with what was carried then.
    pub fn resumed(run: Run, carried: Carried) -> Self {
        Self { id: run.id, run: Some(run), carried }
    }

    /// What it carries from one fact to the next beside the run's state: enough to go on with elsewhere.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    /// The run's state, once the flow's first commit was taken.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Takes a fact, and gives the events that it means, in their order. A fact of a node that the flow does not have
    /// means nothing. Times never go back, as a log has them: so the state is what the log's events make, whichever fact was
    /// seen first. Where a fact is older than the last event, `at` holds its true time.
    pub fn take(&mut self, fact: &Fact) -> Vec<Event> {
        let name = fact.name();
        let name: Vec<&[u8]> = name.iter().map(Vec::as_slice).collect();
        let at = fact.at();
        let ts = self.carried.last.map_or(at, |last| last.max(at));
        let mut out = Out { id: self.id, of: &name, at: ts, events: Vec::new() };
        match fact {
            Fact::Flow { flow, .. } => self.flow(flow, &mut out),
            Fact::Stalled { node, evidence, .. } => self.stalled(*node, evidence, &mut out),
            Fact::Step { node, step, .. } => self.step(*node, step, &mut out),
            Fact::Waits { node, heard, .. } => self.waits(*node, heard, &mut out),
            Fact::Asked { request, .. } => self.asked(request, &mut out),
            Fact::Answered { id, resolution, .. } => self.answered(*id, resolution, &mut out),
            Fact::Line { node, body, .. } => self.line(*node, body, &mut out),
        }
        // One event after the other makes the state, here as with everybody who reads them.
        for event in &mut out.events {
            // A message has a time of its own.
            let own = if event.ts == ts { at } else { event.ts };
            event.ts = self.carried.last.map_or(event.ts, |last| last.max(event.ts));
            event.at = (event.ts != own).then_some(own);
            self.carried.last = Some(event.ts);
            match (&mut self.run, &event.body) {
                (Some(run), _) => run.apply(event),
                (none, Body::RunPatch { patch }) => *none = patch.made(),
                (None, _) => {}
            }
        }
        out.events
    }

    fn knows(&self, node: NodeId) -> bool {
        self.run.as_ref().is_some_and(|run| run.nodes.contains_key(&node))
    }
}

/// What an event is about, and whether that happens only once.
fn about(body: &Body) -> (bool, Vec<u8>) {
    let of = |id: uuid::Uuid| id.as_bytes().to_vec();
    match body {
        Body::HandoffSent { envelope } => (true, of(envelope.id.0)),
        Body::MessageUser { message } => (true, of(message.id.0)),
        Body::ApprovalRequested { approval_id, .. } | Body::ApprovalResolved { approval_id, .. } => {
            (true, of(approval_id.0))
        }
        Body::ArtifactCreated { artifact } => (true, of(artifact.id.0)),
        Body::RunPatch { .. } | Body::RunMode { .. } | Body::RunStalled { .. } => (false, Vec::new()),
        Body::EdgeCreated { edge } => (false, of(edge.id.0)),
        Body::EdgeDeleted { edge_id } => (false, of(edge_id.0)),
        Body::NodePatch { node_id, .. }
        | Body::NodeProgress { node_id, .. }
        | Body::NodeHeartbeat { node_id }
        | Body::NodeLog { node_id, .. }
        | Body::NodeDeleted { node_id }
        | Body::TurnStatus { node_id, .. }
        | Body::MessageDelta { node_id, .. }
        | Body::MessageFinal { node_id, .. }
        | Body::ThinkingDelta { node_id, .. }
        | Body::ThinkingFinal { node_id, .. }
        | Body::ToolProposed { node_id, .. }
        | Body::ToolStarted { node_id, .. }
        | Body::ToolCompleted { node_id, .. }
        | Body::TelemetryUsage { node_id, .. } => (false, of(node_id.0)),
    }
}

/// Whether a flow holds a node by the node's own flag.
fn is_stopped(flow: &Flow, node: NodeId) -> bool {
    flow.nodes.get(&node).is_some_and(|node| node.stopped)
}
