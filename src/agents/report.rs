//! Turns what a program says into the contract's events.
//!
//! A tool call's id is derived from the turn, a count and the program's own id, as a program may use an id
//! again; its own id is stored beside it. Every proposed call is completed once: by its end, by a denial, or
//! by `close` if the turn ended first. If the node is gated, a call is started when a person approved it, or
//! when it turns out that no person had to be asked.

use super::said::{Asked, Decision, Said, head};
use super::tool_calls::{Written, apart};
use crate::contract::event::{Body, ToolCall, ToolError, ToolResult};
use crate::contract::id::{NodeId, ToolId, TurnId};
use crate::contract::offered::ours;
use crate::contract::shown;
use crate::contract::words::LogSource;
use indexmap::IndexMap;
use serde_json::{Map, Value};

/// Most calls of the flow's tools that are remembered until the server receives them.
const TOLD_MAX: usize = 256;
/// Most bytes of a program's own id that are stored.
const ID_MAX: usize = 200;

/// How far a call of a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Proposed,
    Started,
}

/// The reporter of one turn.
#[derive(Debug)]
pub struct Reporter {
    node: NodeId,
    turn: TurnId,
    gated: bool,
    /// The calls that are not completed, by the program's own ids.
    open: IndexMap<String, (ToolCall, Stage)>,
    /// Whether the flow's own tools are offered: their calls are reported by the code that performs them, not
    /// by this type.
    offers: bool,
    /// Calls of the flow's tools that the program reported, but that the server has not received: id, tool,
    /// arguments.
    told: Vec<(String, &'static str, Map<String, Value>)>,
    /// The number of calls so far: it makes the ids differ, as a program may give one id twice.
    calls: u64,
}

impl Reporter {
    /// Returns the reporter of a node's turn; `gated` if its tools wait for a person.
    pub fn new(node: NodeId, turn: TurnId, gated: bool) -> Self {
        Self { node, turn, gated, open: IndexMap::new(), offers: false, told: Vec::new(), calls: 0 }
    }

    /// Notes that the flow's own tools are offered to the program.
    pub fn offers(&mut self) {
        self.offers = true;
    }

    /// True if a name is that of a tool of the flow, and these are offered.
    pub fn is_ours(&self, name: &str) -> bool {
        self.offers && ours(name).is_some()
    }

    /// Returns the events for something that the program said.
    pub fn events(&mut self, said: &Said) -> Vec<Body> {
        let node_id = self.node;
        match said {
            Said::Piece(delta) => vec![Body::MessageDelta { node_id, delta: delta.clone() }],
            Said::Text(text) => {
                // Lines that call a tool of the flow are not part of what people read.
                let content = apart(text, false).text;
                vec![Body::MessageFinal { node_id, content, status: None, tool_calls: None }]
            }
            Said::ThoughtPiece(delta) => vec![Body::ThinkingDelta { node_id, delta: delta.clone() }],
            Said::Thought(content) => vec![Body::ThinkingFinal { node_id, content: content.clone() }],
            Said::ToolStarted { id, name, args } if self.is_ours(name) => {
                let tool = ours(name).filter(|_| self.told.len() < TOLD_MAX);
                self.told.extend(tool.map(|tool| (id.clone(), tool, args.clone())));
                vec![]
            }
            Said::ToolEnded { id, ok, output } if self.told.iter().any(|(told, ..)| told == id) => {
                // The call never reached the server, as the program or the server refused it.
                self.told.retain(|(told, ..)| told != id);
                let line = shown::line(output.as_bytes());
                let log = Body::NodeLog { node_id, source: LogSource::Stdout, line };
                if *ok { vec![] } else { vec![log] }
            }
            Said::ToolStarted { id, name, args } => {
                let mut events = self.propose(id, name, args);
                if !self.gated {
                    events.extend(self.start(id, None));
                }
                events
            }
            Said::ToolEnded { id, ok, output } => {
                let mut events = if *ok { self.start(id, None) } else { Vec::new() };
                events.extend(self.complete(id, *ok, output));
                events
            }
            Said::Asked(asked) => self.propose(key(asked), &asked.tool, &asked.args),
            Said::Retries(line) | Said::Note(line) | Said::Noise(line) => {
                vec![Body::NodeLog { node_id, source: LogSource::Stdout, line: line.clone() }]
            }
            Said::Session(_) | Said::Unasked(_) | Said::Over => vec![],
        }
    }

    /// Returns the event for a line of the program's standard error.
    pub fn stderr(&self, line: &[u8]) -> Body {
        Body::NodeLog { node_id: self.node, source: LogSource::Stderr, line: shown::line(line) }
    }

    /// Returns the call that a line of text makes, with an id of its own. The caller reports it and its end:
    /// it is not among the calls that `close` completes.
    pub fn written(&mut self, call: &Written) -> ToolCall {
        self.calls += 1;
        let own = call.id.clone().unwrap_or_default();
        let id = ToolId::of(self.turn, &format!("{} {own}", self.calls));
        ToolCall { id, name: call.name.clone(), args: call.args.clone(), provider_id: call.id.clone() }
    }

    /// Returns a call that came through the server as [`Self::written`] does. The server may not know the
    /// program's own id of the call, which is then taken from what the program reported.
    pub fn called(&mut self, mut call: Written) -> ToolCall {
        let of_name = |(id, tool, args): &(String, &str, Map<String, Value>)| match &call.id {
            Some(known) if known == id => true,
            Some(_) | None => *tool == call.name && *args == call.args,
        };
        if let Some(at) = self.told.iter().position(of_name) {
            let (id, ..) = self.told.remove(at);
            call.id.get_or_insert(id);
        }
        call.id = call.id.map(|id| head(&id, ID_MAX).to_owned());
        self.written(&call)
    }

    /// Returns the call about which a person is asked: with the tool and the arguments that the program asks for, which
    /// are those that it uses, whatever it reported before.
    pub fn call(&mut self, asked: &Asked) -> Option<ToolCall> {
        let (call, _) = self.open.get_mut(key(asked))?;
        // Some programs name the call alone.
        let is_another = !asked.tool.is_empty() && asked.tool != call.name;
        if is_another || !asked.args.is_empty() {
            call.args.clone_from(&asked.args);
        }
        if is_another {
            call.name.clone_from(&asked.tool);
        }
        Some(call.clone())
    }

    /// Returns the events for a person's answer.
    pub fn answered(&mut self, asked: &Asked, decision: &Decision) -> Vec<Body> {
        match decision {
            Decision::Approved => self.start(key(asked), None),
            Decision::Modified(args) if asked.takes_changes => self.start(key(asked), Some(args)),
            Decision::Modified(_) => {
                self.complete(key(asked), false, "denied as it was asked: other arguments are wanted")
            }
            Decision::Denied(why) => self.complete(key(asked), false, &format!("denied: {why}")),
        }
    }

    /// Returns the events for the end of the turn: every open call is completed as failed.
    pub fn close(&mut self) -> Vec<Body> {
        let open: Vec<String> = self.open.keys().cloned().collect();
        open.iter().flat_map(|id| self.complete(id, false, "its turn ended")).collect()
    }

    fn propose(&mut self, own: &str, name: &str, args: &Map<String, Value>) -> Vec<Body> {
        if self.open.contains_key(own) {
            return vec![];
        }
        self.calls += 1;
        let id = ToolId::of(self.turn, &format!("{} {own}", self.calls));
        let provider_id = (!own.is_empty()).then(|| own.to_owned());
        let tool = ToolCall { id, name: name.to_owned(), args: args.clone(), provider_id };
        self.open.insert(own.to_owned(), (tool.clone(), Stage::Proposed));
        vec![Body::ToolProposed { node_id: self.node, tool }]
    }

    fn start(&mut self, own: &str, args: Option<&Map<String, Value>>) -> Vec<Body> {
        let Some((tool, stage @ Stage::Proposed)) = self.open.get_mut(own) else { return vec![] };
        *stage = Stage::Started;
        if let Some(args) = args {
            tool.args = args.clone();
        }
        vec![Body::ToolStarted { node_id: self.node, tool: tool.clone() }]
    }

    fn complete(&mut self, own: &str, ok: bool, output: &str) -> Vec<Body> {
        let Some((tool, _)) = self.open.shift_remove(own) else { return vec![] };
        let error = (!ok).then(|| ToolError { message: shown::block(output.as_bytes()) });
        let result = ToolResult { ok, output: ok.then(|| Value::from(output)) };
        vec![Body::ToolCompleted { node_id: self.node, tool_id: tool.id, result, error }]
    }
}

/// Returns the id under which a call that a person is asked about is stored.
fn key(asked: &Asked) -> &str {
    asked.call.as_deref().unwrap_or(&asked.id)
}
