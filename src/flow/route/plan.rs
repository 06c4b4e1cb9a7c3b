//! What follows from a turn, as values: what each of its calls asks for, and in which state the node goes on.
//!
//! Nothing is done in this module. A call is judged against the flow as it is after the calls before it, so a
//! node that one call spawns can be joined and handed work by the next. The ids are made from the call, so a
//! call that was performed before is recognized. Implements N5, N6 (promises), N7 (what is performed), N10
//! (who goes on), N11 (a stall's end).

use crate::contract::edge::{EdgeSpec, Envelope, Payload};
use crate::contract::event::{StallEvidence, ToolCall};
use crate::contract::flow::{Flow, Mutation, OpenPromise};
use crate::contract::id::{EdgeId, NodeId, PayloadId};
use crate::contract::node::{NodeSpec, orchestrates};
use crate::contract::projection::Ended;
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::tools::{Refusal, Request, request};
use crate::contract::words::{EnvelopeKind, Expectation, Mode, RunStatus};
use crate::flow::letter::objection;
use crate::flow::outcome::{BLOCKED, Outcome};
use crate::protocol::flow::{IDLE, TURN};
use serde_json::{Value, json};

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A new node, and its first handoff.
    Spawn {
        /// The node's id, made from the call's.
        id: NodeId,
        spec: Box<NodeSpec>,
        /// What the node is told first; `None` where nothing.
        first: Option<Box<Envelope>>,
    },
    /// A new edge.
    Edge {
        /// The edge's id, made from the call's.
        id: EdgeId,
        spec: EdgeSpec,
    },
    Handoff(Box<Envelope>),
    /// The end of the flow.
    Finish {
        /// `completed` or `failed`.
        status: RunStatus,
        /// How the flow ended, in a few words.
        summary: String,
    },
    /// Nothing: the call was done in the turn.
    InTurn,
}

/// When a turn began and when it ended. The ids and times of what follows from the turn are made from these,
/// so that they are the same whichever process performs it, and whenever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// When the turn's trigger was written.
    pub trigger: Time,
    /// When the turn's outcome was written.
    pub outcome: Time,
}

/// Returns what a call of this node comes to in the flow as it is. A call is refused where no message can
/// carry what it hands on.
pub fn act(flow: &Flow, caller: NodeId, call: &ToolCall, at: Moments) -> Result<Act, Refusal> {
    let act = read(flow, caller, call, at)?;
    match act.envelope().and_then(objection) {
        Some(why) => Err(Refusal::Unwritable(why)),
        None => Ok(act),
    }
}

fn read(flow: &Flow, caller: NodeId, call: &ToolCall, at: Moments) -> Result<Act, Refusal> {
    let handoff = |to: NodeId, payload: Payload, context_ref: Option<String>| {
        Box::new(Envelope {
            kind: EnvelopeKind::Handoff,
            id: PayloadId::of_call(call.id, at.trigger),
            from_node_id: caller,
            to_node_id: to,
            created_at: at.outcome,
            payload,
            context_ref,
        })
    };
    Ok(match request(flow, caller, &call.name, &call.args)? {
        Request::Spawn { mut spec, first } => {
            // The id is made from the call, since an id that an agent chose could be another node's.
            spec.id = None;
            let id = NodeId::of_call(call.id);
            Act::Spawn { id, spec, first: first.map(|first| handoff(id, first, None)) }
        }
        Request::Edge(spec) => {
            Act::Edge { id: EdgeId::of_call(call.id), spec: EdgeSpec { id: None, ..spec } }
        }
        Request::Handoff { to, payload, context_ref } => Act::Handoff(handoff(to, *payload, context_ref)),
        Request::Finish { status, summary } => Act::Finish { status, summary },
        Request::Ask { .. } | Request::Todos(_) => Act::InTurn,
    })
}

impl Act {
    /// Returns the changes of the flow that the call makes; none where it made them before. A new node gets
    /// `branch`. `handed` says that the handoff was sent before: then the promises that it answers are kept
    /// already, and those that are open now were made since.
    pub fn mutations(&self, flow: &Flow, branch: &str, handed: bool) -> Vec<Mutation> {
        match self {
            // The node exists, and stays as it is, since a person may have changed it.
            Act::Spawn { id, .. } if flow.nodes.contains_key(id) => Vec::new(),
            Act::Spawn { id, spec, .. } => {
                vec![Mutation::AddNode { id: *id, spec: (**spec).clone(), branch: branch.to_owned() }]
            }
            Act::Edge { id, .. } if flow.edges.contains_key(id) => Vec::new(),
            Act::Edge { id, spec } => vec![Mutation::PutEdge { id: *id, spec: spec.clone() }],
            Act::Handoff(_) if handed => Vec::new(),
            Act::Handoff(envelope) => promises(flow, envelope),
            Act::Finish { status, summary } => vec![Mutation::SetRun {
                status: Some(*status),
                mode: None,
                global_mode: None,
                summary: Some(summary.clone()),
            }],
            Act::InTurn => Vec::new(),
        }
    }

    /// Returns the handoff that is sent with the call; `None` where there is none.
    pub fn envelope(&self) -> Option<&Envelope> {
        match self {
            Act::Handoff(envelope) => Some(envelope),
            Act::Spawn { first, .. } => first.as_deref(),
            Act::Edge { .. } | Act::Finish { .. } | Act::InTurn => None,
        }
    }

    /// Returns what the agent and people are told was done.
    pub fn output(&self, flow: &Flow) -> Value {
        match self {
            Act::Spawn { id, .. } => {
                let config = flow.nodes.get(id).map(|node| &node.config);
                json!({
                    "nodeId": id,
                    "label": config.map(|config| &config.label),
                    "alias": config.and_then(|config| config.alias.as_ref()),
                    "roleTemplate": config.map(|config| &config.role_template),
                    "provider": config.map(|config| config.provider),
                })
            }
            Act::Edge { id, spec } => match flow.edges.get(id) {
                Some(file) => {
                    let edge = &file.edge;
                    json!({"edgeId": id, "from": edge.from, "to": edge.to, "bidirectional": edge.bidirectional,
                        "type": edge.edge_type, "label": edge.label})
                }
                None => json!({"edgeId": id, "from": spec.from, "to": spec.to}),
            },
            Act::Handoff(envelope) => {
                json!({"envelopeId": envelope.id, "from": envelope.from_node_id, "to": envelope.to_node_id})
            }
            Act::Finish { status, .. } => json!({"status": status}),
            Act::InTurn => Value::Null,
        }
    }
}

/// Returns how a handoff changes the promises: it answers what its receiver waits for, and may ask for an
/// answer itself.
fn promises(flow: &Flow, envelope: &Envelope) -> Vec<Mutation> {
    let (from, to) = (envelope.from_node_id, envelope.to_node_id);
    let mut changes = Vec::new();
    if flow.run.promises.values().any(|promise| promise.from == from && promise.to == to) {
        changes.push(Mutation::Keep { from, to });
    }
    let wanted = envelope.payload.response.as_ref().map(|response| response.expectation);
    match wanted {
        Some(Expectation::Required) => changes.push(Mutation::Promise {
            id: envelope.id,
            promise: OpenPromise {
                to: from,
                from: to,
                about: shown::line(envelope.payload.message.lines().next().unwrap_or("").as_bytes()),
                since: envelope.created_at,
            },
        }),
        Some(Expectation::Optional | Expectation::None) | None => {}
    }
    changes
}

/// In which state a node goes on after its turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// The node waits for a message.
    Idle,
    /// The node goes on by itself.
    Turn,
    /// The node waits for a person, and the flow with it, because the node goes in a circle.
    Stalled(StallEvidence),
    /// The node waits for a person, and the flow with it, because this many dispatches led to the turn
    /// without one.
    Hops(u32),
}

impl Next {
    /// Returns the name of the state.
    pub fn state(&self) -> &'static str {
        match self {
            Next::Idle => IDLE,
            Next::Turn => TURN,
            Next::Stalled(_) | Next::Hops(_) => BLOCKED,
        }
    }

    /// True if the flow waits for a person too.
    pub fn pauses(&self) -> bool {
        match self {
            Next::Idle | Next::Turn => false,
            Next::Stalled(_) | Next::Hops(_) => true,
        }
    }
}

/// What a turn's calls come to, as far as it decides how the node goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Some call hands something on.
    pub hands_on: bool,
    /// Some call asks for an answer without which the node does not go on.
    pub waits: bool,
    /// Some call ends the flow.
    pub finishes: bool,
}

impl Wants {
    /// Returns what the calls of these turns come to. A node that one of the calls spawns does not exist yet,
    /// so a handoff that is refused now counts all the same: it may be performed after the others.
    pub fn of(flow: &Flow, node: NodeId, turns: &[Outcome]) -> Self {
        let mut wants = Self::default();
        let calls = turns.iter().flat_map(|turn| turn.calls.iter().map(move |call| (turn, call)));
        for (turn, call) in calls.filter_map(|(turn, call)| Some((turn, call.as_ref().ok()?))) {
            // The result does not depend on ids and times, so any moments will do.
            match act(flow, node, call, Moments { trigger: turn.at, outcome: turn.at }) {
                Ok(Act::Finish { .. }) => wants.finishes = true,
                Ok(act) => {
                    let response = act.envelope().map(|envelope| envelope.payload.response.as_ref());
                    let expects = response.flatten().map(|response| response.expectation);
                    wants.hands_on |= response.is_some();
                    wants.waits |= expects == Some(Expectation::Required);
                }
                Err(_) => wants.hands_on |= call.name == "send_handoff",
            }
        }
        wants
    }
}

/// Decides how a node goes on. `hop` is how many dispatches led to its turn, and `hops` how many may;
/// `stalled` is the evidence if the node goes in a circle. If a call finishes the flow, the node is idle,
/// whatever else is true.
pub fn next(
    flow: &Flow,
    node: NodeId,
    turn: &Outcome,
    wants: Wants,
    (hop, hops): (u32, u32),
    stalled: Option<StallEvidence>,
) -> Next {
    if wants.finishes {
        return Next::Idle;
    }
    if let Some(evidence) = stalled {
        return Next::Stalled(evidence);
    }
    let leads = flow.nodes.get(&node).is_some_and(|node| orchestrates(&node.config.role_template));
    // The answer will be the node's next turn; a turn before that would only ask for the same again.
    let waits = wants.waits || flow.run.promises.values().any(|promise| promise.to == node);
    let auto = match flow.run.mode {
        Mode::Auto => leads && !waits && turn.ended == Ended::Completed,
        Mode::Interactive => false,
    };
    match (hop >= hops && (auto || wants.hands_on), auto) {
        (true, _) => Next::Hops(hop),
        (false, true) => Next::Turn,
        (false, false) => Next::Idle,
    }
}
