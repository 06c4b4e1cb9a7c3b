//! `flow pause`, `resume`, `stop`, `start`, `mode`, `set`: what a flow may do.
//!
//! The flow's commit is written first: from then on nothing is started on its nodes' branches. Then the turns
//! that run are asked to end, and canceled after the kill grace. To go on, nothing has to be asked for again:
//! messages that wait are delivered, and states that were declared are dispatched. A node that went in a
//! circle is set idle, and circles are counted anew from there. Implements N10 (going on in AUTO), N11
//! (resuming), N12.

use super::say::branch_of;
use super::{NodeName, found};
use crate::app::AppError;
use crate::app::change::Change;
use crate::app::talk::pause::{EndedRuns, end_runs};
use crate::contract::flow::Mutation;
use crate::contract::id::NodeId;
use crate::contract::words::{GlobalMode, Mode, RunStatus};
use crate::flow::Kept;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// What is wanted of a flow.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The status that the flow is to have.
    pub status: Option<RunStatus>,
    /// Whether its orchestrator goes on by itself.
    pub mode: Option<Mode>,
    /// What its turns may change.
    pub global_mode: Option<GlobalMode>,
    /// How the flow ended, in words.
    pub summary: Option<String>,
}

/// What came of steering a flow.
#[derive(Debug)]
pub struct Steered {
    /// The flow.
    pub kept: Kept,
    /// What became of the turns that ran.
    pub ended: EndedRuns,
    /// Branches that may have something to do now.
    pub ready: Vec<RefName>,
}

/// Writes a flow's status and modes, and does what follows from them.
pub fn set(
    change: &Change<'_>,
    flow: &str,
    wanted: &Wanted,
    signals: &Interrupt,
) -> Result<Steered, AppError> {
    let resumes = wanted.status == Some(RunStatus::Running);
    let kept = change.flows(|flows, by| {
        flows.change(flows.named(flow)?.id, by, |kept| {
            let mut mutations = if resumes { flows.unstall(kept)? } else { Vec::new() };
            let Wanted { status, mode, global_mode, summary } = wanted.clone();
            mutations.push(Mutation::SetRun { status, mode, global_mode, summary });
            Ok(mutations)
        })
    })?;
    let nodes: Vec<NodeId> = kept.flow.nodes.keys().copied().collect();
    match kept.flow.run.status {
        RunStatus::Running => {
            let ready = go_on(change, &kept, resumes)?;
            Ok(Steered { kept, ended: EndedRuns::default(), ready })
        }
        RunStatus::Queued
        | RunStatus::Paused
        | RunStatus::Stopped
        | RunStatus::Completed
        | RunStatus::Failed => {
            let ended = end_turns(change, &kept, &nodes, signals)?;
            Ok(Steered { kept, ended, ready: Vec::new() })
        }
    }
}

/// Ends the turns that run on these nodes.
pub(super) fn end_turns(
    change: &Change<'_>,
    kept: &Kept,
    nodes: &[NodeId],
    signals: &Interrupt,
) -> Result<EndedRuns, AppError> {
    let own = change.inside.as_ref().map(|inside| &inside.branch);
    let runs = change.flows(|flows, _| {
        let mut runs = Vec::new();
        for node in nodes {
            // A node whose file names a branch outside of the flow's folder ends nothing there.
            let Ok(branch) = branch_of(kept, *node) else { continue };
            // A turn that this verb is called from is left to end by itself.
            if own != Some(&branch) {
                runs.extend(flows.runner.run_on(&branch)?);
            }
        }
        Ok(runs)
    })?;
    end_runs(change, runs, None, signals)
}

/// Lets the nodes of a running flow go on, with `resumes` also those that waited for a person. Returns the
/// branches that may have something to do.
fn go_on(change: &Change<'_>, kept: &Kept, resumes: bool) -> Result<Vec<RefName>, AppError> {
    change.flows(|flows, _| {
        let mut ready = Vec::new();
        for node in kept.flow.nodes.keys() {
            let Ok(branch) = branch_of(kept, *node) else { continue };
            if resumes && flows.runner.run_on(&branch)?.is_none() {
                flows.drop_bare_interrupts(&branch)?;
            }
            flows.go_on(kept, *node, resumes)?;
            ready.push(branch);
        }
        Ok(ready)
    })
}

/// Stops one node (`flow stop`), or lets it go on again (`flow start`).
pub fn hold(
    change: &Change<'_>,
    name: NodeName<'_>,
    stopped: bool,
    signals: &Interrupt,
) -> Result<Steered, AppError> {
    let (kept, id) = change.flows(|flows, by| {
        let (kept, id) = found(flows, name)?;
        Ok((flows.change(kept.id, by, |_| Ok(vec![Mutation::HoldNode { id, stopped }]))?, id))
    })?;
    if stopped {
        let ended = end_turns(change, &kept, &[id], signals)?;
        return Ok(Steered { kept, ended, ready: Vec::new() });
    }
    let ready = branch_of(&kept, id).into_iter().collect();
    Ok(Steered { kept, ended: EndedRuns::default(), ready })
}
