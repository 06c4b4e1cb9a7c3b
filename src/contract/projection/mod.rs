//! The projection: turns what Git holds of a flow into the contract's events, and into the run's state that
//! they produce.
//!
//! [`Projection::take`] takes facts one after the other, each as plain values: a commit of the flow, a step
//! of a node's branch, a message, a question, a line of a turn's events. It returns the events for the fact.
//! Their ids are derived from what they report, so that projecting again gives the same ids, and a [`Log`]
//! appends only the events that it does not have. The work for a fact depends on the fact and on the flow,
//! never on the length of the history. The facts of one branch come in its order; [`in_order`] merges those
//! of several branches by time. Implements N13.

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

/// What a projection carries from one fact to the next. It can be stored, and the projection resumed in
/// another process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// The messages that wait for each node.
    inbox: IndexMap<NodeId, IndexSet<PayloadId>>,
    /// The open requests for approval, and the node whose turn asks.
    asked: IndexMap<ApprovalId, NodeId>,
    /// The messages that were taken last: one that is seen waiting again was reported already.
    heard: IndexSet<PayloadId>,
    /// The nodes whose stop flag is set.
    stopped: IndexSet<NodeId>,
    /// How often each node was reset, as the flow last said.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    resets: IndexMap<NodeId, u64>,
    /// The time of the last event: no later event gets an earlier time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Time>,
}

/// The projection of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Projection {
    id: RunId,
    /// The state that all events so far produce; `None` before the first commit of the flow.
    run: Option<Run>,
    carried: Carried,
}

/// The events of one fact, while they are collected.
struct Out<'a> {
    id: RunId,
    /// The parts that name the fact: its commit, message or line.
    of: &'a [&'a [u8]],
    /// When the fact happened, but not before the last event.
    at: Time,
    events: Vec<Event>,
}

impl Out<'_> {
    /// Adds an event. Its id is derived from the fact, the event's type, what the event is about, and its
    /// number among the fact's events that agree in these: other events of the fact do not change it. An
    /// event about something that happens only once has an id derived from that thing alone, whichever fact
    /// reports it.
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
    /// Returns the projection of a run of which nothing is known yet.
    pub fn new(id: RunId) -> Self {
        Self { id, run: None, carried: Carried::default() }
    }

    /// Returns a projection that resumes from a run's state and from what was carried with it.
    pub fn resumed(run: Run, carried: Carried) -> Self {
        Self { id: run.id, run: Some(run), carried }
    }

    /// Returns what the projection carries beside the run's state; the two are enough to resume it in another
    /// process.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    /// Returns the run's state; `None` until the flow's first commit was taken.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Takes a fact, and returns its events in order. A fact about a node that the flow does not have gives
    /// none. As in a log, times never go back, so the state is always the one that the log's events produce,
    /// whichever fact was seen first. If a fact is older than the last event, `at` holds its true time.
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
        // The events are applied one by one, exactly as every reader of them does.
        for event in &mut out.events {
            // An event for a message has the message's time, not the fact's.
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

/// Returns whether what an event reports happens only once, and what the event is about.
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

/// True if the node's own stop flag is set.
fn is_stopped(flow: &Flow, node: NodeId) -> bool {
    flow.nodes.get(&node).is_some_and(|node| node.stopped)
}
