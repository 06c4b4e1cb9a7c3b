//! The events for a commit of the flow's branch: what differs from the flow before it.

use super::{Out, Projection, is_stopped};
use crate::contract::edge::Edge;
use crate::contract::event::{Body, StallEvidence};
use crate::contract::flow::{Flow, NodeFile};
use crate::contract::id::NodeId;
use crate::contract::node::{Connection, Node, NodeConfig, NodePatch, PENDING, Session, Usage};
use crate::contract::run::{ContractVersion, Run, RunPatch};
use crate::contract::words::{ConnectionStatus, NodeStatus, RunStatus};

impl Projection {
    pub(super) fn flow(&mut self, flow: &Flow, out: &mut Out) {
        if flow.run.id != self.id {
            return;
        }
        match self.run.clone() {
            None => out.say(Body::RunPatch { patch: Box::new(whole(flow)) }),
            Some(run) => changed(&run, flow, out),
        }
        let before = self.run.as_ref();
        for gone in
            before.into_iter().flat_map(|run| run.nodes.keys()).filter(|id| !flow.nodes.contains_key(*id))
        {
            // The node's open questions end with it, as no page shows them any more.
            let asked: Vec<_> =
                self.carried.asked.iter().filter(|(_, node)| *node == gone).map(|(id, _)| *id).collect();
            for id in asked {
                self.carried.asked.shift_remove(&id);
                out.say(super::steps::denied(id, "its node is gone"));
            }
            for (edge_id, _) in before
                .into_iter()
                .flat_map(|run| &run.edges)
                .filter(|(_, e)| e.from == *gone || e.to == *gone)
            {
                out.say(Body::EdgeDeleted { edge_id: *edge_id });
            }
            self.carried.inbox.shift_remove(gone);
            self.carried.resets.shift_remove(gone);
            self.carried.stopped.shift_remove(gone);
            out.say(Body::NodeDeleted { node_id: *gone });
        }
        let mut configs = indexmap::IndexMap::new();
        for (id, file) in &flow.nodes {
            let there = before.and_then(|run| Some((run.nodes.get(id)?, run.node_configs.get(id)?)));
            match there {
                None => out.node(*id, NodePatch::whole(&born(flow, *id, file))),
                Some((node, config)) => {
                    if *config != file.config {
                        out.node(*id, patch(node, config, &file.config));
                    }
                    let resets = self.carried.resets.get(id).is_some_and(|before| *before < file.resets);
                    // A change of the provider also counts as a reset, but the messages that wait stay.
                    if resets && config.provider == file.config.provider {
                        // The dropped messages count as taken, so that they are not reported when they are
                        // seen again.
                        let dropped = self.carried.inbox.shift_remove(id).unwrap_or_default();
                        self.carried.heard.extend(dropped);
                        out.node(*id, NodePatch { inbox_count: Some(0), ..NodePatch::default() });
                    }
                    let stops = is_stopped(flow, *id);
                    if stops != self.carried.stopped.contains(id) {
                        out.node(*id, stop(node, stops, out.at));
                    }
                }
            }
            if there.is_none_or(|(_, config)| *config != file.config) {
                configs.insert(*id, file.config.clone());
            }
            self.carried.resets.insert(*id, file.resets);
            match is_stopped(flow, *id) {
                true => self.carried.stopped.insert(*id),
                false => self.carried.stopped.shift_remove(id),
            };
        }
        if !configs.is_empty() {
            out.run(RunPatch { node_configs: Some(configs), ..RunPatch::default() });
        }
        edges(before, flow, out);
    }

    pub(super) fn stalled(&mut self, node: NodeId, evidence: &StallEvidence, out: &mut Out) {
        if !self.knows(node) {
            return;
        }
        out.run(RunPatch { status: Some(RunStatus::Paused), ..RunPatch::default() });
        out.say(Body::RunStalled { evidence: evidence.clone() });
        let summary = Some("stalled".to_owned());
        out.node(node, NodePatch { status: Some(NodeStatus::Blocked), summary, ..NodePatch::default() });
    }
}

/// Returns the first patch of a run, with the run's id and every field that a run needs.
fn whole(flow: &Flow) -> RunPatch {
    let run = &flow.run;
    let empty = Some(indexmap::IndexMap::new());
    RunPatch {
        id: Some(run.id),
        contract_version: Some(ContractVersion),
        status: Some(run.status),
        mode: Some(run.mode),
        global_mode: Some(run.global_mode),
        created_at: Some(run.created_at),
        updated_at: Some(run.created_at),
        usage: Some(Usage::default()),
        nodes: Some(indexmap::IndexMap::new()),
        node_configs: Some(indexmap::IndexMap::new()),
        edges: empty,
        artifacts: Some(indexmap::IndexMap::new()),
        ..RunPatch::default()
    }
}

/// Reports what changed of the run itself. These patches never have the run's id, as only the first one has
/// it.
fn changed(run: &Run, flow: &Flow, out: &mut Out) {
    let status = (run.status != flow.run.status).then_some(flow.run.status);
    let mode = (run.mode != flow.run.mode).then_some(flow.run.mode);
    let global_mode = (run.global_mode != flow.run.global_mode).then_some(flow.run.global_mode);
    if status.is_some() || mode.is_some() || global_mode.is_some() {
        out.run(RunPatch { status, mode, global_mode, ..RunPatch::default() });
    }
    if mode.is_some() || global_mode.is_some() {
        out.say(Body::RunMode { mode: Some(flow.run.mode), global_mode: Some(flow.run.global_mode) });
    }
}

/// Returns the state of a node that was just made.
fn born(flow: &Flow, id: NodeId, file: &NodeFile) -> Node {
    let config = file.config.clone();
    let at = file.created_at;
    let held = file.stopped;
    Node {
        id,
        run_id: flow.run.id,
        label: config.label,
        alias: config.alias,
        role_template: config.role_template,
        custom_system_prompt: Some(config.custom_system_prompt),
        provider: config.provider,
        status: NodeStatus::Idle,
        summary: "idle".to_owned(),
        last_activity_at: at,
        capabilities: config.capabilities,
        permissions: config.permissions,
        session: Session { session_id: PENDING.to_owned(), reset_commands: config.session.reset_commands },
        usage: Some(Usage::default()),
        connection: Some(Connection {
            status: if held { ConnectionStatus::Disconnected } else { ConnectionStatus::Idle },
            streaming: false,
            last_heartbeat_at: at,
            last_output_at: at,
        }),
        inbox_count: Some(0),
        todos: None,
    }
}

/// Returns the changes of a node's state that follow from a change of its configuration.
fn patch(node: &Node, before: &NodeConfig, now: &NodeConfig) -> NodePatch {
    fn new<T: PartialEq + Clone>(before: &T, now: &T) -> Option<T> {
        (before != now).then(|| now.clone())
    }
    let session = (before.session.reset_commands != now.session.reset_commands).then(|| Session {
        session_id: node.session.session_id.clone(),
        reset_commands: now.session.reset_commands.clone(),
    });
    let alias = (before.alias != now.alias).then(|| now.alias.clone().unwrap_or_default());
    NodePatch {
        label: new(&before.label, &now.label),
        alias,
        role_template: new(&before.role_template, &now.role_template),
        custom_system_prompt: new(&before.custom_system_prompt, &now.custom_system_prompt),
        provider: new(&before.provider, &now.provider),
        capabilities: new(&before.capabilities, &now.capabilities),
        permissions: new(&before.permissions, &now.permissions),
        session,
        ..NodePatch::default()
    }
}

/// Returns the patch that shows a set or cleared stop flag as the status of the node's connection.
fn stop(node: &Node, stops: bool, at: crate::contract::time::Time) -> NodePatch {
    let leased = node.status == NodeStatus::Running;
    let status = match (stops, leased) {
        (true, _) => ConnectionStatus::Disconnected,
        (false, true) => ConnectionStatus::Connected,
        (false, false) => ConnectionStatus::Idle,
    };
    let connection = super::steps::connection(node, status, at);
    NodePatch { connection: Some(connection), ..NodePatch::default() }
}

fn edges(before: Option<&Run>, flow: &Flow, out: &mut Out) {
    let known = |edge: &Edge| before.and_then(|run| run.edges.get(&edge.id)) == Some(edge);
    for (edge_id, edge) in before.into_iter().flat_map(|run| &run.edges) {
        let with_its_node = !flow.nodes.contains_key(&edge.from) || !flow.nodes.contains_key(&edge.to);
        if !flow.edges.contains_key(edge_id) && !with_its_node {
            out.say(Body::EdgeDeleted { edge_id: *edge_id });
        }
    }
    for file in flow.edges.values().filter(|file| !known(&file.edge)) {
        out.say(Body::EdgeCreated { edge: file.edge.clone() });
    }
}
