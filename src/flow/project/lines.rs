//! The event lines of a turn as facts: from the file that the turn writes while it runs, or from what it
//! left.
//!
//! The file is only on the machine where the turn ran, and has every line, also those that only stream;
//! elsewhere there are the lines that the turn's ref keeps. Both are numbered alike, so that they give the
//! same events. A line that is torn, too long, or not one of the contract's is skipped, because an agent may
//! have printed it. Implements N13 (lines).

use super::position::Turn;
use crate::contract::event::{ApprovalRequest, Body};
use crate::contract::id::NodeId;
use crate::contract::projection::Fact;
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::words::TurnStatus;
use serde_json::Value;

/// Longest line that is read, in bytes.
pub const LINE_MAX: usize = 16 << 20;
/// The type of the line that stands for what a file was too long to keep.
const LEFT_OUT: &str = "aynig.left-out";

/// What was read of a turn's lines.
#[derive(Debug, Default)]
pub struct Lines {
    pub facts: Vec<Fact>,
    /// How many bytes were read, all of them whole lines.
    pub read: u64,
    /// True where the file was too long, so that some of its lines are missing.
    pub cut: bool,
}

/// Reads whole lines of a turn. The first `known` lines that are kept were read before, from another source,
/// and are skipped.
pub fn read(text: &[u8], node: NodeId, turn: &mut Turn, mut known: u32) -> Lines {
    let mut lines = Lines::default();
    for line in text.split_inclusive(|b| *b == b'\n') {
        let Some(whole) = line.strip_suffix(b"\n") else { break };
        lines.read += line.len() as u64;
        let Some((body, at)) = body(whole, node, &mut lines.cut) else { continue };
        if streams(&body) {
            // Streamed lines ahead of the last known line were read before as well.
            if known == 0 {
                let number = turn.number(true);
                lines.facts.push(fact(turn, node, at, number, body));
            }
            continue;
        }
        if known > 0 {
            known -= 1;
            continue;
        }
        let number = turn.number(false);
        turn.told |= matches!(body, Body::MessageFinal { .. });
        if let Body::TurnStatus { status: TurnStatus::Failed, detail: Some(why), .. } = &body {
            turn.why = Some(shown::line(why.as_bytes()));
        }
        lines.facts.push(fact(turn, node, at, number, body));
    }
    lines
}

fn fact(turn: &mut Turn, node: NodeId, at: Option<Time>, number: u64, body: Body) -> Fact {
    let at = at.unwrap_or(turn.at);
    turn.at = at;
    match body {
        Body::ApprovalRequested { approval_id, tool, context, .. } => {
            let request = ApprovalRequest { approval_id, node_id: node, tool, context };
            Fact::Asked { at, request }
        }
        Body::ApprovalResolved { approval_id, resolution } => {
            Fact::Answered { at, id: approval_id, resolution }
        }
        body => Fact::Line { node, at, turn: turn.id, number, body: Box::new(body) },
    }
}

/// Returns what a line says, and when; `None` where it is none of the contract's. The node is the turn's,
/// whatever the line says.
fn body(line: &[u8], node: NodeId, cut: &mut bool) -> Option<(Body, Option<Time>)> {
    if line.is_empty() || line.len() > LINE_MAX {
        return None;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else { return None };
    *cut |= fields.get("type").and_then(Value::as_str) == Some(LEFT_OUT);
    let at = fields.get("ts").and_then(Value::as_str).and_then(|ts| Time::parse(ts).ok());
    fields.insert("nodeId".to_owned(), Value::String(node.to_string()));
    Some((serde_json::from_value(Value::Object(fields)).ok()?, at))
}

/// True for what only streams: pieces whose whole follows in a later line, and heartbeats.
pub fn streams(body: &Body) -> bool {
    match body {
        Body::MessageDelta { .. } | Body::ThinkingDelta { .. } | Body::NodeHeartbeat { .. } => true,
        Body::RunPatch { .. }
        | Body::RunMode { .. }
        | Body::RunStalled { .. }
        | Body::NodePatch { .. }
        | Body::NodeProgress { .. }
        | Body::NodeLog { .. }
        | Body::NodeDeleted { .. }
        | Body::TurnStatus { .. }
        | Body::EdgeCreated { .. }
        | Body::EdgeDeleted { .. }
        | Body::HandoffSent { .. }
        | Body::MessageUser { .. }
        | Body::MessageFinal { .. }
        | Body::ThinkingFinal { .. }
        | Body::ToolProposed { .. }
        | Body::ToolStarted { .. }
        | Body::ToolCompleted { .. }
        | Body::ApprovalRequested { .. }
        | Body::ApprovalResolved { .. }
        | Body::ArtifactCreated { .. }
        | Body::TelemetryUsage { .. } => false,
    }
}
