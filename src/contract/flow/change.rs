//! A change applied to a flow.

use super::files::{EdgeFile, Flow, NodeFile};
use super::mutation::{Mutation, named};
use super::refused::Refused;
use crate::contract::edge::{Edge, EdgeSpec, label_of, type_between};
use crate::contract::id::{EdgeId, NodeId};
use crate::contract::node::{Capabilities, NodeChange, NodeConfig, NodeSpec, Permissions, put};
use crate::contract::shown;
use crate::contract::time::Time;
use serde_json::Map;

/// The result of a change to a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The flow after the change.
    pub flow: Flow,
    /// What was done, in one line: the commit's subject.
    pub line: String,
    /// True if anything changed; otherwise there is nothing to commit.
    pub changed: bool,
}

/// Most nodes of a flow, so that a node that spawns without end is stopped before the disk is full.
const NODES_MAX: usize = 1000;
/// Most bytes of a text in a node's configuration, such as its prompt.
const TEXT_MAX: usize = 1 << 20;

/// Returns the flow after a change that is made at the time `at`, or why the change is refused.
pub fn apply(flow: &Flow, mutation: &Mutation, at: Time) -> Result<Done, Refused> {
    let mut next = flow.clone();
    let line = match mutation {
        Mutation::SetRun { status, mode, global_mode, summary } => {
            let run = &mut next.run;
            put(&mut run.status, *status);
            put(&mut run.mode, *mode);
            put(&mut run.global_mode, *global_mode);
            if let Some(summary) = summary {
                run.summary = Some(shown::block(summary.as_bytes()));
            }
            let words = [status.map(|w| w.word()), mode.map(|w| w.word()), global_mode.map(|w| w.word())];
            format!("set {}", words.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        Mutation::AddNode { id, spec, branch } => {
            add_node(&mut next, spec.id.unwrap_or(*id), spec, branch, at)?
        }
        Mutation::SetNode { id, change } => set_node(&mut next, *id, change)?,
        Mutation::RemoveNode(id) => {
            let node = next.nodes.shift_remove(id).ok_or_else(|| unknown(*id))?;
            next.edges.retain(|_, edge| edge.edge.from != *id && edge.edge.to != *id);
            next.run.promises.retain(|_, promise| promise.from != *id && promise.to != *id);
            format!("remove node {}", called(&node.config))
        }
        Mutation::HoldNode { id, stopped } => {
            let node = node(&mut next, *id)?;
            node.stopped = *stopped;
            format!("{} node {}", if *stopped { "stop" } else { "start" }, called(&node.config))
        }
        Mutation::ResetNode(id) => {
            let node = node(&mut next, *id)?;
            node.resets += 1;
            format!("reset node {}", called(&node.config))
        }
        Mutation::ResumeNode { id, after } => {
            let node = node(&mut next, *id)?;
            node.resumed_after = Some(shown::line(after.as_bytes()));
            format!("resume node {}", called(&node.config))
        }
        Mutation::PutEdge { id, spec } => put_edge(&mut next, spec.id.unwrap_or(*id), spec, at)?,
        Mutation::RemoveEdge(id) => {
            next.edges.shift_remove(id).ok_or(Refused::UnknownEdge(*id))?;
            format!("remove edge {id}")
        }
        Mutation::Promise { id, promise } => {
            for end in [promise.from, promise.to] {
                node(&mut next, end)?;
            }
            next.run.promises.entry(*id).or_insert_with(|| promise.clone());
            format!("promise {id}: {} owes {}", promise.from, promise.to)
        }
        Mutation::Keep { from, to } => {
            next.run.promises.retain(|_, promise| promise.from != *from || promise.to != *to);
            format!("keep promises of {from} to {to}")
        }
        Mutation::Release(id) => {
            next.run.promises.shift_remove(id);
            format!("release promise {id}")
        }
    };
    Ok(Done { changed: next != *flow, flow: next, line })
}

fn unknown(id: NodeId) -> Refused {
    Refused::UnknownNode(id.to_string())
}

fn node(flow: &mut Flow, id: NodeId) -> Result<&mut NodeFile, Refused> {
    flow.nodes.get_mut(&id).ok_or_else(|| unknown(id))
}

/// Returns a node's name in quotes, as a commit's subject shows it.
fn called(config: &NodeConfig) -> String {
    format!("'{}'", shown::line(config.called().as_bytes()))
}

/// Returns the alias that a request asks for, trimmed; `None` for a blank one. Another node's alias, in any
/// case, and another node's id are refused, so that a name means one node.
fn alias(flow: &Flow, of: NodeId, wanted: Option<&str>) -> Result<Option<String>, Refused> {
    let Some(wanted) = wanted.map(str::trim).filter(|alias| !alias.is_empty()) else { return Ok(None) };
    let wanted = named("the alias", wanted)?;
    let lower = wanted.to_lowercase();
    for (id, node) in flow.nodes.iter().filter(|(id, _)| **id != of) {
        let theirs = node.config.alias.as_ref().is_some_and(|alias| alias.to_lowercase() == lower);
        if theirs || id.to_string() == lower {
            return Err(Refused::AliasTaken { alias: shown::line(wanted.as_bytes()), node: *id });
        }
    }
    Ok(Some(wanted))
}

fn text(what: &'static str, text: Option<&String>) -> Result<Option<String>, Refused> {
    match text {
        Some(text) if text.len() > TEXT_MAX => {
            Err(Refused::TooLong { what, bytes: text.len(), most: TEXT_MAX })
        }
        text => Ok(text.cloned()),
    }
}

fn add_node(flow: &mut Flow, id: NodeId, spec: &NodeSpec, branch: &str, at: Time) -> Result<String, Refused> {
    let role_template = named("the role", &spec.role_template)?;
    let config = NodeConfig {
        id: Some(id),
        label: named("the label", &spec.label)?,
        alias: alias(flow, id, spec.alias.as_deref())?,
        provider: spec.provider,
        custom_system_prompt: text("the prompt", spec.custom_system_prompt.as_ref())?,
        capabilities: spec.capabilities.over(&Capabilities::of_role(&role_template)),
        permissions: spec.permissions.over(&Permissions::of_role(&role_template)),
        role_template,
        session: spec.session.clone(),
    };
    let line = format!("add node {}", called(&config));
    if let Some(there) = flow.nodes.get(&id) {
        return if there.config == config { Ok(line) } else { Err(Refused::NodeExists(id)) };
    }
    if flow.nodes.len() >= NODES_MAX {
        return Err(Refused::TooManyNodes(flow.nodes.len()));
    }
    if flow.nodes.values().any(|node| node.branch.eq_ignore_ascii_case(branch)) {
        return Err(Refused::BranchTaken(shown::line(branch.as_bytes())));
    }
    // The new node's time is after every other node's, so that a clock that went back does not change the
    // order in which the nodes were made.
    let last = flow.nodes.values().map(|node| node.created_at).max().unwrap_or(at);
    let node = NodeFile {
        config,
        branch: branch.to_owned(),
        created_at: if last >= at && !flow.nodes.is_empty() { Time(last.0.saturating_add(1)) } else { at },
        stopped: false,
        resets: 0,
        resumed_after: None,
        later: Map::new(),
    };
    flow.nodes.insert(id, node);
    Ok(line)
}

fn set_node(flow: &mut Flow, id: NodeId, change: &NodeChange) -> Result<String, Refused> {
    let mut config = node(flow, id)?.config.clone();
    if let Some(label) = &change.label {
        config.label = named("the label", label)?;
    }
    if let Some(wanted) = &change.alias {
        config.alias = alias(flow, id, Some(wanted))?;
    }
    if let Some(role) = &change.role_template {
        config.role_template = named("the role", role)?;
    }
    if let Some(prompt) = &change.custom_system_prompt {
        config.custom_system_prompt = text("the prompt", prompt.as_ref())?;
    }
    put(&mut config.provider, change.provider);
    put(&mut config.session, change.session.clone());
    if let Some(part) = &change.capabilities {
        config.capabilities = part.over(&config.capabilities);
    }
    if let Some(part) = &change.permissions {
        config.permissions = part.over(&config.permissions);
    }
    let line = format!("set node {}", called(&config));
    let node = node(flow, id)?;
    if node.config.provider != config.provider {
        // Another provider's program does not know the session.
        node.resets += 1;
    }
    node.config = config;
    Ok(line)
}

fn put_edge(flow: &mut Flow, id: EdgeId, spec: &EdgeSpec, at: Time) -> Result<String, Refused> {
    let role = |node: NodeId| {
        let found = flow.nodes.get(&node).map(|node| node.config.role_template.as_str());
        found.ok_or(Refused::EdgeToNowhere { edge: id, node })
    };
    let (from, to) = (role(spec.from)?, role(spec.to)?);
    let edge_type = spec.edge_type.unwrap_or_else(|| type_between(from, to));
    let label = match &spec.label {
        Some(label) if label.is_empty() => String::new(),
        Some(label) => named("the edge's label", label)?,
        None => label_of(edge_type).to_owned(),
    };
    let bidirectional = spec.bidirectional.unwrap_or(true);
    let edge = Edge { id, from: spec.from, to: spec.to, bidirectional, edge_type, label };
    let line = format!("put edge {id}: {} to {}", spec.from, spec.to);
    match flow.edges.get_mut(&id) {
        Some(there) => there.edge = edge,
        None => {
            let last = flow.edges.values().map(|edge| edge.created_at).max();
            let created_at =
                last.filter(|last| *last >= at).map_or(at, |last| Time(last.0.saturating_add(1)));
            flow.edges.insert(id, EdgeFile { edge, created_at, later: Map::new() });
        }
    }
    Ok(line)
}
