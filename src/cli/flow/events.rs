//! `flow events` and `flow artifacts`: what happened in a flow, and the files that came of it. Implements N13, K36.

use super::super::args_flow::{FlowArtifacts, FlowEvents};
use super::super::fail::Failure;
use super::super::session::Global;
use super::super::{exit, output};
use crate::app::flow::events::{Reading, settings};
use crate::contract::event::{Body, Event};
use crate::contract::run::Run;
use crate::protocol::text::escape;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig flow events`.
pub(super) fn run(global: &Global, args: &FlowEvents) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = settings(&session, args.remote.clone())?;
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let runner = session.reader(&settings, &interrupt)?;
    let reading = Reading::open(&session, &runner, &args.flow, args.data_dir.clone())?;
    let mut names = Names::default();
    let show = |event: Event| match args.json {
        true => output::offer(&output::json(&event)),
        false => {
            names.learn(&event);
            output::offer(&names.line(&event))
        }
    };
    Ok(exit::code(reading.each(args.follow, &interrupt, show, output::reader_gone)?))
}

/// Runs `git aynig flow artifacts`.
pub(super) fn artifacts(global: &Global, args: &FlowArtifacts) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = settings(&session, args.remote.clone())?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    let reading = Reading::open(&session, &runner, &args.flow, args.data_dir.clone())?;
    let run = reading.whole()?;
    let mut lines = output::Lines::begin();
    for artifact in run.iter().flat_map(|run| run.artifacts.values()) {
        let line = match args.json {
            true => output::json(artifact),
            false => {
                let node = run.as_ref().map_or_else(String::new, |run| called(run, artifact));
                let path = escape(artifact.path.as_bytes());
                format!("{}  {:<11}  {node}  {path}", artifact.created_at, artifact.kind.word())
            }
        };
        if !lines.offer(&line) {
            break;
        }
    }
    Ok(0)
}

fn called(run: &Run, artifact: &crate::contract::run::Artifact) -> String {
    let node = run.nodes.get(&artifact.node_id);
    let name = node.map(|node| node.alias.as_deref().unwrap_or(&node.label));
    name.map_or_else(|| artifact.node_id.short(), |name| escape(name.as_bytes()))
}

/// The names of nodes, escaped, as the events that were read so far give them.
#[derive(Default)]
struct Names(std::collections::HashMap<crate::contract::id::NodeId, String>);

impl Names {
    fn learn(&mut self, event: &Event) {
        if let Body::NodePatch { node_id, patch } = &event.body
            && let Some(name) =
                patch.alias.as_ref().filter(|alias| !alias.is_empty()).or(patch.label.as_ref())
        {
            self.0.insert(*node_id, escape(name.as_bytes()));
        }
    }

    fn name(&self, id: crate::contract::id::NodeId) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| id.short())
    }

    /// Returns an event as one line for people.
    fn line(&self, event: &Event) -> String {
        let word = event.body.word();
        let about = match &event.body {
            Body::NodePatch { node_id, patch } => {
                let summary = patch.summary.clone().unwrap_or_default();
                format!("{} {summary}", self.name(*node_id))
            }
            Body::NodeProgress { node_id, status, summary } => {
                format!("{} {status}: {summary}", self.name(*node_id))
            }
            Body::NodeLog { node_id, line, .. } => format!("{} {line}", self.name(*node_id)),
            Body::TurnStatus { node_id, status, .. } => format!("{} {status}", self.name(*node_id)),
            Body::MessageDelta { node_id, delta } | Body::ThinkingDelta { node_id, delta } => {
                format!("{} {delta}", self.name(*node_id))
            }
            Body::MessageFinal { node_id, content, .. } | Body::ThinkingFinal { node_id, content } => {
                format!("{} {content}", self.name(*node_id))
            }
            Body::ToolProposed { node_id, tool } | Body::ToolStarted { node_id, tool } => {
                format!("{} {}", self.name(*node_id), tool.name)
            }
            Body::ToolCompleted { node_id, result, error, .. } => {
                let how = error.as_ref().map_or("", |error| &error.message);
                format!("{} {} {how}", self.name(*node_id), if result.ok { "ok" } else { "failed" })
            }
            Body::ApprovalRequested { node_id, tool, approval_id, .. } => {
                format!("{} {} {approval_id}", self.name(*node_id), tool.name)
            }
            Body::ApprovalResolved { approval_id, resolution } => {
                format!("{approval_id} {}", resolution.status)
            }
            Body::HandoffSent { envelope } => {
                let (from, to) = (self.name(envelope.from_node_id), self.name(envelope.to_node_id));
                format!("{from} to {to}: {}", envelope.payload.message)
            }
            Body::MessageUser { message } => {
                format!("to {}: {}", self.name(message.node_id), message.content)
            }
            Body::EdgeCreated { edge } => format!("{} to {}", self.name(edge.from), self.name(edge.to)),
            Body::EdgeDeleted { edge_id } => edge_id.to_string(),
            Body::ArtifactCreated { artifact } => {
                format!("{} {}", self.name(artifact.node_id), artifact.name)
            }
            Body::TelemetryUsage { node_id, usage, .. } => {
                format!("{} {} tokens", self.name(*node_id), usage.total_tokens)
            }
            Body::NodeDeleted { node_id } | Body::NodeHeartbeat { node_id } => self.name(*node_id),
            Body::RunPatch { patch } => patch.status.map_or_else(String::new, |status| status.to_string()),
            Body::RunMode { mode, .. } => mode.map_or_else(String::new, |mode| mode.to_string()),
            Body::RunStalled { evidence } => evidence.summaries.join(" | "),
        };
        let about: String = escape(about.trim().as_bytes()).chars().take(200).collect();
        format!("{}  {word:<28}  {about}", event.ts).trim_end().to_owned()
    }
}
