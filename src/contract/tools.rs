//! The tools of a flow: reads what an agent's call asks for, and checks it against the flow.
//!
//! A call is read into a [`Request`], or refused with a sentence for the agent. A call that the node is not
//! allowed to make, that names something missing, or that no edge permits is refused before any person is
//! asked. This module performs nothing. Implements N7.

use super::edge::{EdgeSpec, Payload};
use super::flow::{Flow, Refused};
use super::id::NodeId;
use super::node::{NodeSpec, Permissions, Todo};
use super::shown;
use super::words::{CliPermissionsMode, EdgeManagement, RunStatus};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Most bytes of a text in a call's arguments.
const TEXT_MAX: usize = 1 << 20;
/// Most items of a list in a call's arguments.
const LIST_MAX: usize = 200;

/// What an agent's call asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A new node, and its first message.
    Spawn {
        /// The node.
        spec: Box<NodeSpec>,
        /// Its first message; `None` if the node is to wait for one.
        first: Option<Payload>,
    },
    /// A new edge.
    Edge(EdgeSpec),
    /// A handoff along an edge.
    Handoff {
        /// The node that receives it.
        to: NodeId,
        /// The content of the handoff.
        payload: Box<Payload>,
        /// What the handoff refers to.
        context_ref: Option<String>,
    },
    /// A question to a person.
    Ask {
        /// The question.
        question: String,
        /// The possible answers; any text is one if empty.
        choices: Vec<String>,
    },
    /// The node's list of tasks.
    Todos(Vec<Todo>),
    /// The end of the flow.
    Finish {
        /// `completed` or `failed`.
        status: RunStatus,
        /// The result of the flow, in a few words.
        summary: String,
    },
}

/// Why a call is refused, in words for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says itself what it holds")]
pub enum Refusal {
    #[error("there is no tool '{0}'")]
    UnknownTool(String),
    #[error("{tool}: {why}")]
    BadArgs { tool: &'static str, why: String },
    #[error("{tool}: this node may not: it needs edgeManagement '{needs}'")]
    NotAllowed { tool: &'static str, needs: EdgeManagement },
    #[error("create_edge: this node may only join itself to others")]
    NotItsEdge,
    #[error("send_handoff: no edge leads to '{0}'")]
    NoEdge(String),
    #[error("its text can be no message's: {0}")]
    Unwritable(String),
    #[error("{0}")]
    Flow(#[from] Refused),
}

/// Reads what a node's call asks for. Nodes in its arguments are named by id, alias or label.
pub fn request(
    flow: &Flow,
    caller: NodeId,
    name: &str,
    args: &Map<String, Value>,
) -> Result<Request, Refusal> {
    let node = flow.nodes.get(&caller).ok_or_else(|| Refused::UnknownNode(caller.to_string()))?;
    let may = node.config.capabilities.edge_management;
    let needs_all = |tool| match may {
        EdgeManagement::All => Ok(()),
        EdgeManagement::None | EdgeManagement::SelfOnly => {
            Err(Refusal::NotAllowed { tool, needs: EdgeManagement::All })
        }
    };
    match name {
        "spawn_node" => {
            needs_all("spawn_node")?;
            let args = Args { tool: "spawn_node", args };
            let mut wanted = args.args.clone();
            if let Some(role) = wanted.remove("role") {
                wanted.entry("roleTemplate").or_insert(role);
            }
            wanted.entry("provider").or_insert_with(|| node.config.provider.word().into());
            let mut spec: Box<NodeSpec> = args.read(Value::Object(wanted))?;
            spec.capabilities = spec.capabilities.within(&node.config.capabilities, &spec.role_template);
            spec.permissions = spec.permissions.within(&node.config.permissions, &spec.role_template);
            Ok(Request::Spawn { spec, first: args.first()? })
        }
        "create_edge" => {
            if may == EdgeManagement::None {
                return Err(Refusal::NotAllowed { tool: "create_edge", needs: EdgeManagement::SelfOnly });
            }
            let args = Args { tool: "create_edge", args };
            let (from, to) = (flow.named(&args.text(&["from"])?)?, flow.named(&args.text(&["to"])?)?);
            if may == EdgeManagement::SelfOnly && from != caller && to != caller {
                return Err(Refusal::NotItsEdge);
            }
            let mut wanted = args.args.clone();
            // The id is always derived from the call: with the id of an existing edge, the call would replace
            // that edge.
            wanted.remove("id");
            wanted.insert("from".to_owned(), from.to_string().into());
            wanted.insert("to".to_owned(), to.to_string().into());
            Ok(Request::Edge(args.read(Value::Object(wanted))?))
        }
        "send_handoff" => {
            let args = Args { tool: "send_handoff", args };
            let named = args.text(&["to", "toNodeId"])?;
            let to = flow.named(&named)?;
            if !flow.leads(caller, to) {
                return Err(Refusal::NoEdge(shown::line(named.as_bytes())));
            }
            let mut wanted = args.args.clone();
            wanted.insert("message".to_owned(), args.text(&["message", "summary"])?.into());
            // `status`, if given, says how the work went, and has to be an object; in `finish_run` it is a
            // word.
            let payload: Box<Payload> = args.read(Value::Object(wanted))?;
            let context_ref = args.args.get("contextRef").and_then(Value::as_str).map(str::to_owned);
            Ok(Request::Handoff { to, payload, context_ref })
        }
        "ask" => {
            let args = Args { tool: "ask", args };
            Ok(Request::Ask { question: args.text(&["question"])?, choices: args.list("choices")? })
        }
        "todo_write" | "TodoWrite" => Ok(Request::Todos(Args { tool: "todo_write", args }.list("todos")?)),
        "finish_run" => {
            needs_all("finish_run")?;
            let args = Args { tool: "finish_run", args };
            let status = match args.args.get("status").map(|status| status.as_str()) {
                None | Some(Some("completed")) => RunStatus::Completed,
                Some(Some("failed")) => RunStatus::Failed,
                Some(_) => return Err(args.bad("'status' is 'completed' or 'failed'")),
            };
            let summary = args.args.get("summary").and_then(Value::as_str).unwrap_or_default();
            Ok(Request::Finish { status, summary: shown::block(summary.as_bytes()) })
        }
        _ => Err(Refusal::UnknownTool(shown::line(name.as_bytes()))),
    }
}

/// True if a person is asked before the request is performed: for every handoff, spawn, edge and end of the
/// flow if the node is gated, and for new nodes and edges if its permissions say so. A question and a list of
/// tasks change nothing that a person could be asked about.
pub fn waits_for_a_person(request: &Request, permissions: &Permissions) -> bool {
    let gated = match permissions.cli_permissions_mode {
        CliPermissionsMode::Gated => true,
        CliPermissionsMode::Skip => false,
    };
    match request {
        Request::Spawn { .. } | Request::Edge(_) => gated || permissions.agent_management_requires_approval,
        Request::Handoff { .. } | Request::Finish { .. } => gated,
        Request::Ask { .. } | Request::Todos(_) => false,
    }
}

/// A call's arguments, with the tool's name for refusals.
struct Args<'a> {
    tool: &'static str,
    args: &'a Map<String, Value>,
}

impl Args<'_> {
    fn bad(&self, why: impl ToString) -> Refusal {
        Refusal::BadArgs { tool: self.tool, why: shown::line(why.to_string().as_bytes()) }
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T, Refusal> {
        serde_json::from_value(value).map_err(|error| self.bad(error))
    }

    /// Returns the text under the first of these names that is present. A missing, blank or too long text is
    /// refused.
    fn text(&self, names: &[&str]) -> Result<String, Refusal> {
        let found = names.iter().find_map(|name| self.args.get(*name)).and_then(Value::as_str);
        match found {
            None => Err(self.bad(format!("'{}' is missing", names[0]))),
            Some(text) if text.trim().is_empty() => Err(self.bad(format!("'{}' is missing", names[0]))),
            Some(text) if text.len() > TEXT_MAX => {
                Err(self.bad(format!("'{}' has {} bytes", names[0], text.len())))
            }
            Some(text) => Ok(text.to_owned()),
        }
    }

    fn list<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Refusal> {
        let list: Vec<T> = match self.args.get(name) {
            None => Vec::new(),
            Some(list) => self.read(list.clone())?,
        };
        if list.len() > LIST_MAX {
            Err(self.bad(format!("'{name}' has {} items", list.len())))
        } else {
            Ok(list)
        }
    }

    /// Returns the first message of a new node; `None` if the call has neither `instructions` nor `input`.
    fn first(&self) -> Result<Option<Payload>, Refusal> {
        let (text, input) = (self.args.get("instructions"), self.args.get("input"));
        if text.is_none() && input.is_none() {
            return Ok(None);
        }
        let message = if text.is_some() { self.text(&["instructions"])? } else { "Spawned task".to_owned() };
        let structured = match input {
            None => None,
            Some(Value::Object(input)) => Some(input.clone()),
            Some(_) => return Err(self.bad("'input' is no object")),
        };
        Ok(Some(Payload { message, structured, artifacts: None, status: None, response: None }))
    }
}
