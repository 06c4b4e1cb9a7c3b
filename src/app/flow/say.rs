//! `flow send`, `flow interrupt`, `flow reset`: what a node is told.
//!
//! A message to a node that runs waits for its next turn. An interrupt ends the turn that runs, and its text
//! is the next one. An interrupt without a text is refused for a node that does not run: there is nothing to
//! end. Implements N4 (what a turn is told), N12 (interrupt, reset).

use super::{NodeName, found};
use crate::app::change::Change;
use crate::app::talk::pause::{EndedRuns, end_asked, end_runs};
use crate::app::{AppError, Misuse};
use crate::contract::flow::Mutation;
use crate::contract::id::NodeId;
use crate::flow::{FlowError, Kept};
use crate::protocol::inbox::{Kind, MessageId, TEXT_MAX};
use crate::runner::talk::inbox::Waiting;
use crate::runner::talk::send::{Sending, Sent};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// What was said to a node.
#[derive(Debug)]
pub struct Said {
    /// The flow.
    pub kept: Kept,
    pub node: NodeId,
    /// The message that was sent; `None` where the turn was only ended.
    pub sent: Option<Sent>,
    /// What became of the turn that ran; `None` where nothing was ended.
    pub ended: Option<EndedRuns>,
}

/// Returns the branch of a node. Fails where the flow has no such node, or where its branch is not in the
/// flow's own folder.
pub(super) fn branch_of(kept: &Kept, node: NodeId) -> Result<RefName, FlowError> {
    let file = kept.flow.nodes.get(&node).filter(|file| crate::flow::nodes::owns(&kept.flow, file));
    let named = || kept.branch(node).unwrap_or_else(|| RefName::branch(node.to_string()));
    file.map(|file| RefName::branch(&file.branch)).ok_or_else(|| FlowError::NoNode(named()))
}

fn text(text: &str) -> Result<String, AppError> {
    let text = text.trim_matches('\n');
    if text.len() > TEXT_MAX {
        let why = format!("its text has {} bytes, more than 1 MiB", text.len());
        return Err(Misuse::Message(why).into());
    }
    Ok(text.to_owned())
}

/// Sends a message to a node: `flow send`.
pub fn send(
    change: &Change<'_>,
    name: NodeName<'_>,
    said: &str,
    id: Option<MessageId>,
) -> Result<Said, AppError> {
    say(change, name, Kind::MESSAGE, &text(said)?, id)
}

fn say(
    change: &Change<'_>,
    name: NodeName<'_>,
    kind: &str,
    text: &str,
    id: Option<MessageId>,
) -> Result<Said, AppError> {
    let kind = crate::app::talk::kind(kind)?;
    let inside = change.inside.as_ref();
    change.flows(|flows, _| {
        let (kept, node) = found(flows, name)?;
        let sending = Sending { kind, id, text: text.to_owned(), trailers: Vec::new(), attach: None };
        let sent = flows.runner.send(&branch_of(&kept, node)?, &sending, inside)?;
        Ok(Said { kept, node, sent: Some(sent), ended: None })
    })
}

/// Ends the turn of a node: `flow interrupt`. A text to a node that does not run is sent as an ordinary
/// message.
pub fn interrupt(
    change: &Change<'_>,
    name: NodeName<'_>,
    said: &str,
    id: Option<MessageId>,
    signals: &Interrupt,
) -> Result<Said, AppError> {
    let said = text(said)?;
    let (kept, node, run) = change.flows(|flows, _| {
        let (kept, node) = found(flows, name)?;
        let run = flows.runner.run_on(&branch_of(&kept, node)?)?;
        Ok((kept, node, run))
    })?;
    let not_running = || FlowError::NotRunning(kept.branch(node).unwrap_or_else(|| RefName::branch("")));
    match (run, said.is_empty()) {
        (None, true) => Err(not_running().into()),
        (None, false) => say(change, name, Kind::MESSAGE, &said, id),
        (Some(run), true) => {
            let ended = end_runs(change, vec![run], None, signals)?;
            Ok(Said { kept, node, sent: None, ended: Some(ended) })
        }
        (Some(run), false) => {
            let said = say(change, name, Kind::INTERRUPT, &said, id)?;
            // The message stays: it is the next turn, however this one ends.
            let ended = end_asked(change, vec![(run, None)], None, signals)?;
            Ok(Said { ended: Some(ended), ..said })
        }
    }
}

/// What `flow reset` dropped.
#[derive(Debug)]
pub struct Reset {
    /// The flow.
    pub kept: Kept,
    pub node: NodeId,
    /// The messages that had waited.
    pub dropped: Vec<Waiting>,
}

/// Drops the messages that wait for a node, and has its next turn begin a new session: `flow reset`. A turn
/// that runs goes on, but no later turn continues its session.
pub fn reset(change: &Change<'_>, name: NodeName<'_>) -> Result<Reset, AppError> {
    change.flows(|flows, by| {
        let (kept, node) = found(flows, name)?;
        let branch = branch_of(&kept, node)?;
        let kept = flows.change(kept.id, by, |_| Ok(vec![Mutation::ResetNode(node)]))?;
        let dropped = flows.drop_inbox(&branch)?;
        Ok(Reset { kept, node, dropped })
    })
}
