//! `flow new`, `flow node`, `flow edge`: the verbs that make and change a flow and its parts.
//!
//! A flow whose nodes could never have a turn is refused before anything is written: where there is no first
//! commit, no trust, or no `turn` or no `route` among the trusted commands. Implements N2 (making), N2a (what
//! `new` refuses).

use super::{NodeName, found};
use crate::app::change::Change;
use crate::app::{AppError, Misuse};
use crate::contract::edge::EdgeSpec;
use crate::contract::flow::{Mutation, NewRun, slug};
use crate::contract::id::{EdgeId, NodeId, RunId};
use crate::contract::node::{NodeChange, NodeSpec};
use crate::contract::words::{EdgeType, GlobalMode, Mode};
use crate::flow::{FlowError, Kept};
use crate::protocol::flow::{ROUTE, TURN};
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::runner::change::ChangeError;
use crate::runner::report::Refusal;
use crate::runner::resolve::Resolved;
use crate::runner::{Silent, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsStr;
use std::str::FromStr;
use uuid::Uuid;

/// A flow as a user asks for it.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The flow's name, if the user gave one.
    pub name: Option<&'a str>,
    /// Whether its orchestrator goes on by itself.
    pub mode: Mode,
    /// What its turns may change.
    pub global_mode: GlobalMode,
    /// The commit that its nodes' branches begin at; `None` for HEAD.
    pub base: Option<&'a OsStr>,
    /// The folder that its turns start in, below the top of the slot.
    pub folder: Option<&'a str>,
}

/// Reads a word of an enumeration, as it was typed.
pub fn word<T: FromStr>(text: &str) -> Result<T, AppError>
where
    T::Err: ToString,
{
    text.parse::<T>().map_err(|why| Misuse::Flow(why.to_string()).into())
}

/// Reads the id of a part of a flow, as it was typed.
pub fn id<T: FromStr>(text: &str) -> Result<T, AppError>
where
    T::Err: ToString,
{
    word(text)
}

/// Makes a flow: `flow new`.
pub fn new(change: &Change<'_>, wanted: &Wanted<'_>) -> Result<Kept, AppError> {
    let session = change.session;
    session.require_trust(&change.settings)?;
    let base = match wanted.base {
        Some(name) => change.commit(name)?,
        None => head(change, wanted.name.unwrap_or("flow"))?,
    };
    has_turns(change, base)?;
    let new = NewRun {
        id: RunId(Uuid::new_v4()),
        name: wanted.name.map(str::to_owned),
        mode: wanted.mode,
        global_mode: wanted.global_mode,
        base: base.to_string(),
        folder: wanted.folder.map(str::to_owned),
    };
    change.flows(|flows, by| flows.create(&new, by))
}

fn head(change: &Change<'_>, name: &str) -> Result<ObjectId, AppError> {
    let repo = &change.session.repo;
    repo.git.rev_parse(&repo.git_dir, "HEAD^{commit}").map_err(|_| AppError::Change {
        error: ChangeError::Unborn(RefName::branch(format!("flow/{}", slug(name, "flow")))),
        remote: change.settings.remote.clone(),
    })
}

/// Fails where a turn would find no command `turn` or no command `route`.
fn has_turns(change: &Change<'_>, base: ObjectId) -> Result<(), AppError> {
    let interrupt = Interrupt::never()?;
    let runner = change.session.runner(&change.settings, &interrupt, &Silent)?;
    // In a new clone, what a remote's trusted branch holds is not known yet.
    runner.store.refresh()?;
    let tip = Tip::from(runner.store.read_commit(base)?);
    let mut missing = Vec::new();
    for name in [TURN, ROUTE] {
        let Ok(state) = StateName::new(name) else { continue };
        match runner.lookup(&tip, &state)? {
            Resolved::Found(_) => {}
            Resolved::Refused(Refusal::NotTrusted) => return Err(change.session.not_trusted()),
            Resolved::NotAsked | Resolved::Missing | Resolved::Refused(_) | Resolved::Unusable { .. } => {
                missing.push(name)
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(AppError::NoTurns(missing)) }
}

/// Adds a node to a flow: `flow node add`.
pub fn add_node(change: &Change<'_>, flow: &str, spec: &NodeSpec) -> Result<(Kept, NodeId), AppError> {
    let id = spec.id.unwrap_or_else(|| NodeId(Uuid::new_v4()));
    change.flows(|flows, by| {
        let kept = flows.change(flows.named(flow)?.id, by, |kept| {
            let name = spec.alias.as_deref().map(str::trim).filter(|alias| !alias.is_empty());
            let branch = flows.branch_for(kept, id, name.unwrap_or(&spec.label))?;
            Ok(vec![Mutation::AddNode { id, spec: spec.clone(), branch }])
        })?;
        Ok((kept, id))
    })
}

/// Changes a node: `flow node set`.
pub fn set_node(
    change: &Change<'_>,
    name: NodeName<'_>,
    wanted: &NodeChange,
) -> Result<(Kept, NodeId), AppError> {
    change.flows(|flows, by| {
        let (kept, id) = found(flows, name)?;
        let set = |_: &Kept| Ok(vec![Mutation::SetNode { id, change: wanted.clone() }]);
        Ok((flows.change(kept.id, by, set)?, id))
    })
}

/// An edge as it was typed.
#[derive(Debug, Default)]
pub struct Joined<'a> {
    /// Whether work goes both ways.
    pub both_ways: Option<bool>,
    /// What the edge is for.
    pub edge_type: Option<EdgeType>,
    /// The edge's label.
    pub label: Option<&'a str>,
}

/// Adds an edge between two nodes: `flow edge add`.
pub fn add_edge(
    change: &Change<'_>,
    flow: &str,
    (from, to): (&str, &str),
    id: Option<EdgeId>,
    said: &Joined<'_>,
) -> Result<(Kept, EdgeId), AppError> {
    let id = id.unwrap_or_else(|| EdgeId(Uuid::new_v4()));
    change.flows(|flows, by| {
        let put = |kept: &Kept| {
            let spec = EdgeSpec {
                id: Some(id),
                from: kept.flow.named(from)?,
                to: kept.flow.named(to)?,
                bidirectional: said.both_ways,
                edge_type: said.edge_type,
                label: said.label.map(str::to_owned),
            };
            Ok(vec![Mutation::PutEdge { id, spec }])
        };
        Ok((flows.change(flows.named(flow)?.id, by, put)?, id))
    })
}

/// Changes an edge: `flow edge set`. What `said` leaves out stays.
pub fn set_edge(
    change: &Change<'_>,
    flow: &str,
    id: EdgeId,
    said: &Joined<'_>,
) -> Result<(Kept, EdgeId), AppError> {
    change.flows(|flows, by| {
        let put = |kept: &Kept| {
            let there = kept.flow.edges.get(&id).ok_or(crate::contract::flow::Refused::UnknownEdge(id))?;
            let edge = &there.edge;
            let spec = EdgeSpec {
                id: Some(id),
                from: edge.from,
                to: edge.to,
                bidirectional: said.both_ways.or(Some(edge.bidirectional)),
                edge_type: said.edge_type.or(Some(edge.edge_type)),
                label: said.label.map(str::to_owned).or(Some(edge.label.clone())),
            };
            Ok(vec![Mutation::PutEdge { id, spec }])
        };
        Ok((flows.change(flows.named(flow)?.id, by, put)?, id))
    })
}

/// Removes an edge: `flow edge remove`.
pub fn remove_edge(change: &Change<'_>, flow: &str, id: EdgeId) -> Result<Kept, AppError> {
    change.flows(|flows, by| {
        let remove = |_: &Kept| -> Result<_, FlowError> { Ok(vec![Mutation::RemoveEdge(id)]) };
        flows.change(flows.named(flow)?.id, by, remove)
    })
}
