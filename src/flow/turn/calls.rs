//! The calls that an agent makes of our tools, by lines of its text or through the server of tools: what each
//! asks for, whether it may be made, and what follows.
//!
//! A call is judged against the flow as this turn read it, with what the turn's own earlier calls would make
//! of it. A call that concerns the flow is answered at once, with the ids that its result will have, and
//! noted: `route` performs it once the turn's outcome is on the branch. A call that concerns the slot is
//! performed by the turn itself. Implements N7, N8 (who is asked).

use super::workspace::{self, Work};
use crate::contract::event::{ToolCall, ToolError, ToolResult};
use crate::contract::flow::{Flow, apply};
use crate::contract::id::NodeId;
use crate::contract::node::Todo;
use crate::contract::tools::{Request, request, waits_for_a_person};
use crate::contract::words::CliPermissionsMode;
use crate::flow::outcome::CALLS_MAX;
use crate::flow::route::plan::{Moments, act};
use crate::protocol::inbox::derived_id;
use crate::protocol::question::{BadQuestion, Question, is_offer};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// A change of the flow or a handoff, which `route` performs.
    Flow,
    /// A new list of tasks.
    Todos(Vec<Todo>),
    /// A person's answer.
    Ask {
        question: String,
        /// The answers that the person can choose from.
        choices: Vec<String>,
    },
    /// Work in the slot.
    Work(Work),
}

/// A call that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The call itself.
    pub call: ToolCall,
    /// What it asks for.
    pub wish: Wish,
    /// Whether a person is asked first.
    pub gated: bool,
}

/// The calls of a turn.
pub struct Calls<'t> {
    flow: Flow,
    node: NodeId,
    at: Moments,
    /// The slot, if the tools for it are offered.
    slot: Option<&'t Path>,
    /// The calls that `route` is to perform, in order.
    pub wanted: Vec<ToolCall>,
}

impl<'t> Calls<'t> {
    /// Starts without a call, for this node.
    pub fn new(flow: Flow, node: NodeId, at: Moments, slot: Option<&'t Path>) -> Self {
        Self { flow, node, at, slot, wanted: Vec::new() }
    }

    /// Judges what a call asks for, and whether it may be made.
    ///
    /// # Errors
    /// A sentence for the agent.
    pub fn judge(&self, call: ToolCall) -> Result<Called, String> {
        let config = &self.flow.nodes.get(&self.node).ok_or("this node is no part of the flow")?.config;
        let work = self.slot.and_then(|slot| workspace::read(slot, &call.name, &call.args));
        if let Some(work) = work {
            let work = work?;
            work.is_allowed(&config.capabilities, self.flow.run.global_mode)?;
            let gated = match config.permissions.cli_permissions_mode {
                CliPermissionsMode::Gated => true,
                CliPermissionsMode::Skip => false,
            };
            return Ok(Called { call, wish: Wish::Work(work), gated });
        }
        let asked = request(&self.flow, self.node, &call.name, &call.args).map_err(|why| why.to_string())?;
        let gated = waits_for_a_person(&asked, &config.permissions);
        let wish = match asked {
            Request::Ask { question, choices } => {
                is_answerable(&question, &choices)?;
                Wish::Ask { question, choices }
            }
            Request::Todos(todos) => Wish::Todos(todos),
            Request::Spawn { .. } | Request::Edge(_) | Request::Handoff { .. } | Request::Finish { .. } => {
                Wish::Flow
            }
        };
        Ok(Called { call, wish, gated })
    }

    /// Notes a call that `route` is to perform, and returns what it will come to.
    ///
    /// # Errors
    /// A sentence for the agent.
    pub fn want(&mut self, call: ToolCall) -> Result<Value, String> {
        if self.wanted.len() >= CALLS_MAX {
            return Err(format!("a turn has at most {CALLS_MAX} of these calls"));
        }
        let act = act(&self.flow, self.node, &call, self.at).map_err(|why| why.to_string())?;
        // The changes are made to this turn's own copy of the flow, so that the next call finds them. `route`
        // will name the branch.
        let branch = format!("flow/{}/{}", self.flow.run.slug, call.id);
        for mutation in act.mutations(&self.flow, &branch, false) {
            self.flow = apply(&self.flow, &mutation, self.at.outcome).map_err(|why| why.to_string())?.flow;
        }
        let output = act.output(&self.flow);
        self.wanted.push(call);
        Ok(output)
    }
}

/// Refuses a question that its readers would not take for one, since no user could answer it.
fn is_answerable(text: &str, choices: &[String]) -> Result<(), String> {
    if !is_offer(choices) {
        return Err(BadQuestion::Choices.to_string());
    }
    let question = Question {
        id: derived_id(0, &[]),
        branch: b"flow".to_vec(),
        run_id: None,
        choices: choices.to_vec(),
        text: text.to_owned(),
    };
    question.message().map(drop).map_err(|why| why.to_string())
}

/// Returns what the agent and people are told came of a call.
pub fn result(done: &Result<Value, String>) -> (ToolResult, Option<ToolError>) {
    match done {
        Ok(output) => (ToolResult { ok: true, output: Some(output.clone()) }, None),
        Err(why) => (ToolResult { ok: false, output: None }, Some(ToolError { message: why.clone() })),
    }
}

/// Returns the same call with these arguments.
pub fn with(call: &ToolCall, args: &Map<String, Value>) -> ToolCall {
    ToolCall { args: args.clone(), ..call.clone() }
}

/// Returns what came of a call, for an agent that is told with its next prompt.
pub fn told(call: &ToolCall, done: &Result<Value, String>) -> String {
    let came = match done {
        Ok(output) => json!({"call": call.name, "id": call.provider_id, "result": output}),
        Err(why) => json!({"call": call.name, "id": call.provider_id, "error": why}),
    };
    came.to_string()
}
