//! `flow new`, `flow node`, `flow edge`.

use super::super::args_flow::{AddNode, EdgeVerb, New, NodeVerb, Said, SetNode};
use super::super::change;
use super::super::fail::Failure;
use super::super::session::Global;
use super::{Part, changing, name, node_name, steer, told};
use crate::app::flow::NodeName;
use crate::app::flow::build::{
    Joined, Wanted, add_edge, add_node, id, remove_edge, set_edge, set_node, word,
};
use crate::contract::node::{
    CapabilitiesPart, NodeChange, NodeSpec, PermissionsPart, SessionConfig, reset_commands,
};
use crate::contract::words::GlobalMode;
use crate::protocol::text::escape;

/// Runs `git aynig flow new`.
pub fn new(global: &Global, args: &New) -> Result<i32, Failure> {
    let wanted = Wanted {
        name: args.name.as_deref(),
        mode: word(&args.mode)?,
        global_mode: if args.plan { GlobalMode::Planning } else { GlobalMode::Implementation },
        base: args.base.as_deref(),
        folder: args.folder.as_deref(),
    };
    changing(global, &args.place, |change| {
        let kept = crate::app::flow::build::new(change, &wanted)?;
        told(&args.place, &kept, Part::Whole, &format!("{}: made ({})", name(&kept), kept.id));
        Ok(0)
    })
}

/// Runs `git aynig flow node`.
pub fn node(global: &Global, verb: &NodeVerb) -> Result<i32, Failure> {
    match verb {
        NodeVerb::Add(args) => add(global, args),
        NodeVerb::Set(args) => set(global, args),
        NodeVerb::Remove(args) => steer::rm(global, &args.place, &args.flow, Some(&args.node)),
    }
}

/// What `--set` can set of a node.
#[derive(Debug, Default)]
struct Parts {
    capabilities: CapabilitiesPart,
    permissions: PermissionsPart,
    resume: Option<bool>,
}

fn parts(set: &[String]) -> Result<Parts, Failure> {
    let mut parts = Parts::default();
    for one in set {
        let wrong = || {
            Failure::usage(format!("'{}' is no KEY=VALUE that a node has", escape(one.as_bytes())))
                .hint("git aynig flow node add -h")
        };
        let (key, value) = one.split_once('=').ok_or_else(wrong)?;
        let yes = || value.parse::<bool>().map_err(|_| wrong());
        match key {
            "edgeManagement" => parts.capabilities.edge_management = Some(word(value)?),
            "writeCode" => parts.capabilities.write_code = Some(yes()?),
            "writeDocs" => parts.capabilities.write_docs = Some(yes()?),
            "runCommands" => parts.capabilities.run_commands = Some(yes()?),
            "delegateOnly" => parts.capabilities.delegate_only = Some(yes()?),
            "cliPermissionsMode" => parts.permissions.cli_permissions_mode = Some(word(value)?),
            "agentManagementRequiresApproval" => {
                parts.permissions.agent_management_requires_approval = Some(yes()?);
            }
            "resume" => parts.resume = Some(yes()?),
            _ => return Err(wrong()),
        }
    }
    Ok(parts)
}

fn prompt(said: &Said) -> Result<Option<String>, Failure> {
    match &said.prompt_file {
        Some(file) => change::text(&[], Some(file)).map(Some),
        None => Ok(said.prompt.clone()),
    }
}

fn session(resume: bool) -> SessionConfig {
    SessionConfig { resume, reset_commands: reset_commands() }
}

fn add(global: &Global, args: &AddNode) -> Result<i32, Failure> {
    let parts = parts(&args.said.set)?;
    let spec = NodeSpec {
        id: args.id.as_deref().map(id).transpose()?,
        label: args.label.clone(),
        alias: args.said.alias.clone(),
        provider: word(&args.provider)?,
        role_template: args.role.clone(),
        custom_system_prompt: prompt(&args.said)?,
        capabilities: parts.capabilities,
        permissions: parts.permissions,
        session: session(parts.resume.unwrap_or(true)),
    };
    changing(global, &args.place, |change| {
        let (kept, node) = add_node(change, &args.flow, &spec)?;
        let branch = kept.flow.nodes.get(&node).map(|file| file.branch.clone()).unwrap_or_default();
        let line = format!(
            "{}: {} is '{}' ({node})",
            name(&kept),
            node_name(&kept, node),
            escape(branch.as_bytes())
        );
        told(&args.place, &kept, Part::Node(node), &line);
        Ok(0)
    })
}

fn set(global: &Global, args: &SetNode) -> Result<i32, Failure> {
    let parts = parts(&args.said.set)?;
    let prompt = prompt(&args.said)?;
    let wanted = NodeChange {
        label: args.label.clone(),
        alias: args.said.alias.clone(),
        provider: args.provider.as_deref().map(word).transpose()?,
        role_template: args.role.clone(),
        custom_system_prompt: if args.no_prompt { Some(None) } else { prompt.map(Some) },
        capabilities: (parts.capabilities != CapabilitiesPart::default()).then_some(parts.capabilities),
        permissions: (parts.permissions != PermissionsPart::default()).then_some(parts.permissions),
        session: parts.resume.map(session),
    };
    changing(global, &args.place, |change| {
        let (kept, node) = set_node(change, NodeName { flow: &args.flow, node: &args.node }, &wanted)?;
        told(
            &args.place,
            &kept,
            Part::Node(node),
            &format!("{}: {} is set", name(&kept), node_name(&kept, node)),
        );
        Ok(0)
    })
}

/// Runs `git aynig flow edge`.
pub fn edge(global: &Global, verb: &EdgeVerb) -> Result<i32, Failure> {
    match verb {
        EdgeVerb::Add(args) => {
            let said = Joined {
                both_ways: Some(!args.one_way),
                edge_type: args.edge_type.as_deref().map(word).transpose()?,
                label: args.label.as_deref(),
            };
            let wanted = args.id.as_deref().map(id).transpose()?;
            changing(global, &args.place, |change| {
                let (kept, edge) = add_edge(change, &args.flow, (&args.from, &args.to), wanted, &said)?;
                put(&args.place, &kept, edge);
                Ok(0)
            })
        }
        EdgeVerb::Set(args) => {
            let said = Joined {
                both_ways: if args.one_way { Some(false) } else { args.both_ways.then_some(true) },
                edge_type: args.edge_type.as_deref().map(word).transpose()?,
                label: args.label.as_deref(),
            };
            let wanted = id(&args.edge)?;
            changing(global, &args.place, |change| {
                let (kept, edge) = set_edge(change, &args.flow, wanted, &said)?;
                put(&args.place, &kept, edge);
                Ok(0)
            })
        }
        EdgeVerb::Remove(args) => {
            let wanted = id(&args.edge)?;
            changing(global, &args.place, |change| {
                let kept = remove_edge(change, &args.flow, wanted)?;
                told(&args.place, &kept, Part::Whole, &format!("{}: edge {wanted} is gone", name(&kept)));
                Ok(0)
            })
        }
    }
}

fn put(place: &super::Where, kept: &crate::flow::Kept, id: crate::contract::id::EdgeId) {
    let Some(edge) = kept.flow.edges.get(&id).map(|file| &file.edge) else { return };
    let (from, to) = (node_name(kept, edge.from), node_name(kept, edge.to));
    let way = if edge.bidirectional { "with" } else { "to" };
    told(place, kept, Part::Edge(id), &format!("{}: {from} {way} {to} ({id})", name(kept)));
}
