//! `flow approvals`, `approve`, `deny`, `modify`: calls that wait for a person.
//!
//! An approval is a question of the kernel that a node's turn asks, and the answer to the question is the
//! decision. Implements N8 (what a person does).

use super::NodeName;
use crate::app::change::Change;
use crate::app::talk::answer::{Choice, answer};
use crate::app::{AppError, Misuse};
use crate::contract::id::{NodeId, RunId};
use crate::flow::approval::{APPROVE, DENY, MODIFY, TOOL};
use crate::flow::{FlowError, Flows, Kept};
use crate::protocol::inbox::MessageId;
use crate::protocol::message::Message;
use crate::runner::talk::ask::Asked;
use crate::runner::talk::send::Sent;
use serde_json::{Map, Value};
use std::ffi::OsStr;

/// A question that a node asks.
#[derive(Debug)]
pub struct Approval {
    /// The flow.
    pub kept: Kept,
    pub node: NodeId,
    /// The question.
    pub asked: Asked,
    /// The call that the question is about, as its commit holds it; `None` where it is about no call.
    pub tool: Option<Value>,
}

/// Returns the questions that wait for a person, of one flow or of all, the oldest first.
pub fn list(change: &Change<'_>, flow: Option<&str>) -> Result<Vec<Approval>, AppError> {
    change.flows(|flows, _| {
        flows.runner.store.refresh()?;
        let only = flow.map(|name| flows.named(name)).transpose()?.map(|kept| kept.id);
        waiting(flows, only)
    })
}

/// Does what [`list`] does, for a caller that reads flows already.
pub(in crate::app) fn waiting(
    flows: &Flows<'_, '_>,
    only: Option<RunId>,
) -> Result<Vec<Approval>, FlowError> {
    let kept: Vec<Kept> = flows.all()?.into_iter().filter_map(|listed| listed.read.ok()).collect();
    let mut found = Vec::new();
    for (asked, _) in flows.runner.open_questions(None)? {
        let branch = asked.branch();
        let of = |kept: &&Kept| only.is_none_or(|id| id == kept.id);
        let node = kept.iter().filter(of).find_map(|kept| {
            let own = kept.flow.nodes.iter().find(|(_, file)| {
                crate::flow::nodes::owns(&kept.flow, file) && file.branch.as_bytes() == branch.short()
            });
            own.map(|(id, _)| (kept.clone(), *id))
        });
        let Some((kept, node)) = node else { continue };
        let commit = flows.runner.store.read_commit(asked.commit)?;
        let said = Message::parse(&commit.message);
        let tool = said.last(TOOL).and_then(|raw| serde_json::from_slice(raw).ok());
        found.push(Approval { kept, node, asked, tool });
    }
    Ok(found)
}

/// What a person decides about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<'a> {
    /// The call is made; the text goes with the answer.
    Approve(&'a str),
    /// The call is not made; the text goes with the answer.
    Deny(&'a str),
    /// The call is made with these arguments instead of its own.
    Modify(Map<String, Value>),
}

/// Reads the arguments that a person wants, as they were typed: a JSON object.
pub fn wanted(args: &str) -> Result<Map<String, Value>, AppError> {
    serde_json::from_str(args)
        .map_err(|why| Misuse::Flow(format!("the arguments are no JSON object: {why}")).into())
}

/// Answers the question of an approval with a decision.
pub fn resolve(
    change: &Change<'_>,
    id: MessageId,
    decision: &Decision<'_>,
) -> Result<(Asked, Sent), AppError> {
    let id = id.to_string();
    let text;
    let (choice, said) = match decision {
        Decision::Approve(said) => (APPROVE, *said),
        Decision::Deny(said) => (DENY, *said),
        Decision::Modify(args) => {
            text = Value::Object(args.clone()).to_string();
            (MODIFY, &*text)
        }
    };
    answer(change, OsStr::new(&id), Choice::Named(choice), said, None)
}

/// Returns the name by which a person knows the node that asks.
pub fn name_of(approval: &Approval) -> NodeName<'_> {
    let config = approval.kept.flow.nodes.get(&approval.node).map(|file| &file.config);
    let node = config.map_or("", |config| config.called());
    NodeName { flow: &approval.kept.flow.run.name, node }
}
