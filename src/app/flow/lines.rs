//! Flows as programs read them: `aynig.flow/1`, `aynig.flow-change/1`, `aynig.approval/1`, `aynig.template/1`.

use super::approvals::{Approval, name_of};
use crate::app::shown::Shown;
use crate::contract::edge::Edge;
use crate::contract::id::{EdgeId, NodeId, RunId};
use crate::contract::node::NodeConfig;
use crate::contract::run::Run;
use crate::contract::time::Time;
use crate::contract::words::{GlobalMode, Mode, RunStatus, TemplateSource};
use crate::flow::Kept;
use crate::flow::templates::Template;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use serde::Serialize;
use serde_json::Value;

/// A flow as programs read it.
#[derive(Serialize)]
pub struct FlowLine<'a> {
    schema: &'static str,
    id: Option<RunId>,
    name: Option<&'a str>,
    status: Option<RunStatus>,
    mode: Option<Mode>,
    global_mode: Option<GlobalMode>,
    created_at: Option<Time>,
    nodes: Option<usize>,
    commit: Option<Shown<ObjectId>>,
    #[serde(rename = "ref")]
    name_of_ref: &'a str,
    problem: Option<String>,
    /// The state that the flow's events make, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

impl<'a> FlowLine<'a> {
    /// Adds the flow's state to the line.
    pub fn with(self, run: Option<Run>) -> Self {
        Self { run, ..self }
    }

    /// Makes the line of a ref: of the flow in it, or of the reason why it can't be read.
    pub fn of(name_of_ref: &'a str, read: Result<&'a Kept, String>) -> Self {
        let (kept, problem) = (read.as_ref().ok(), read.as_ref().err().cloned());
        let run = kept.map(|kept| &kept.flow.run);
        Self {
            schema: "aynig.flow/1",
            id: kept.map(|kept| kept.id),
            name: run.map(|run| &*run.name),
            status: run.map(|run| run.status),
            mode: run.map(|run| run.mode),
            global_mode: run.map(|run| run.global_mode),
            created_at: run.map(|run| run.created_at),
            nodes: kept.map(|kept| kept.flow.nodes.len()),
            commit: kept.map(|kept| Shown(kept.commit)),
            name_of_ref,
            problem,
            run: None,
        }
    }
}

/// A flow that a verb changed, as programs read it.
#[derive(Serialize)]
pub struct ChangeLine<'a> {
    schema: &'static str,
    flow: RunId,
    name: &'a str,
    commit: Shown<ObjectId>,
    status: RunStatus,
    mode: Mode,
    global_mode: GlobalMode,
    node: Option<NodeLine<'a>>,
    edge: Option<&'a Edge>,
}

#[derive(Serialize)]
struct NodeLine<'a> {
    id: NodeId,
    branch: &'a str,
    stopped: bool,
    config: &'a NodeConfig,
}

impl<'a> ChangeLine<'a> {
    /// Makes the line of a flow as it is now, with the node or edge that the verb was about.
    pub fn of(kept: &'a Kept, node: Option<NodeId>, edge: Option<EdgeId>) -> Self {
        let run = &kept.flow.run;
        let node = node.and_then(|id| {
            let file = kept.flow.nodes.get(&id)?;
            Some(NodeLine { id, branch: &file.branch, stopped: file.stopped, config: &file.config })
        });
        Self {
            schema: "aynig.flow-change/1",
            flow: kept.id,
            name: &run.name,
            commit: Shown(kept.commit),
            status: run.status,
            mode: run.mode,
            global_mode: run.global_mode,
            node,
            edge: edge.and_then(|id| kept.flow.edges.get(&id)).map(|file| &file.edge),
        }
    }
}

/// A call that waits for a person, as programs read it.
#[derive(Serialize)]
pub struct ApprovalLine<'a> {
    schema: &'static str,
    id: Shown<MessageId>,
    flow: RunId,
    node: NodeId,
    name: &'a str,
    branch: std::borrow::Cow<'a, str>,
    text: &'a str,
    choices: &'a [String],
    tool: Option<&'a Value>,
    asked: Option<i64>,
}

impl<'a> ApprovalLine<'a> {
    /// Makes the line of an approval.
    pub fn of(approval: &'a Approval) -> Self {
        let question = &approval.asked.question;
        Self {
            schema: "aynig.approval/1",
            id: Shown(question.id),
            flow: approval.kept.id,
            node: approval.node,
            name: name_of(approval).node,
            branch: String::from_utf8_lossy(&question.branch),
            text: &question.text,
            choices: &question.choices,
            tool: approval.tool.as_ref(),
            asked: approval.asked.asked,
        }
    }
}

/// A template as programs read it.
#[derive(Serialize)]
pub struct TemplateLine<'a> {
    schema: &'static str,
    name: &'a str,
    source: TemplateSource,
    text: &'a str,
}

impl<'a> TemplateLine<'a> {
    /// Makes the line of a template.
    pub fn of(template: &'a Template) -> Self {
        Self {
            schema: "aynig.template/1",
            name: &template.name,
            source: template.source,
            text: &template.text,
        }
    }
}
