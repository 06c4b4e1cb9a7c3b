//! Gates: may a phase be left, may the run be completed?
//!
//! [`phase_exit`] and [`run_completion`] judge one request by the configuration and the workspace, and change
//! nothing. Files are required by name, and for some names there are rules about the content ([`semantics`]).
//! What follows from a [`GateResult`] is for [`super::next`] to say.

mod semantics;

use super::config::model::{Artifact, Gate};
use super::records::HistoryEntry;
use super::root::Root;
use super::{Config, disk};
use serde::Serialize;

/// What a gate guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateKind {
    /// The end of a phase.
    PhaseTransition,
    /// The end of the run.
    RunCompletion,
}

impl GateKind {
    /// Returns the name in the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::PhaseTransition => "phase_transition",
            Self::RunCompletion => "run_completion",
        }
    }
}

/// A gate's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateAction {
    /// The phase is left.
    Advance,
    /// The run is completed.
    Complete,
    /// A person has to approve.
    AwaitingHumanApproval,
    /// A demand of the gate is not met, or the requested phase is not the next one.
    GateFailed,
    /// The phase that was asked for is not in `routing`.
    UnknownPhase,
    /// Completion was asked for before the last phase.
    NotFinalPhase,
}

impl GateAction {
    /// Returns the name in the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advance => "advance",
            Self::Complete => "complete",
            Self::AwaitingHumanApproval => "awaiting_human_approval",
            Self::GateFailed => "gate_failed",
            Self::UnknownPhase => "unknown_phase",
            Self::NotFinalPhase => "not_final_phase",
        }
    }
}

/// A gate's answer, with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct GateResult {
    /// What the gate guards.
    pub kind: GateKind,
    /// The gate; `None` where there is none to pass.
    pub gate_id: Option<String>,
    /// The answer itself.
    pub action: GateAction,
    /// The phase that was asked for; `None` for a request for completion.
    pub next_phase: Option<String>,
    /// Why the gate failed, in words; of an undefined gate, which is open, that it is so.
    pub reasons: Vec<String>,
    /// Required files that are not there.
    pub missing_files: Vec<String>,
    /// Required files that do not say what they must.
    pub failing_files: Vec<String>,
    /// True where the gate demands a verification that passes, and the asking turn declared none.
    pub missing_verification: bool,
    /// The turn that asked.
    pub requested_by: String,
}

impl GateResult {
    /// Makes the record of a failure, `last_gate_failure`.
    pub(super) fn failure(&self, phase: &str, at: &str, was_queued: bool) -> Failure {
        Failure {
            gate_type: self.kind.name(),
            gate_id: self.gate_id.clone(),
            phase: phase.to_owned(),
            from_phase: phase.to_owned(),
            to_phase: self.next_phase.clone(),
            requested_by_turn: self.requested_by.clone(),
            failed_at: at.to_owned(),
            queued_request: was_queued,
            reasons: self.reasons.clone(),
            missing_files: self.missing_files.clone(),
            missing_verification: self.missing_verification,
        }
    }
}

/// A gate's failure, as the state and the ledger keep it; the order of the fields is the order on disk.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Failure {
    gate_type: &'static str,
    gate_id: Option<String>,
    phase: String,
    from_phase: String,
    to_phase: Option<String>,
    requested_by_turn: String,
    failed_at: String,
    queued_request: bool,
    reasons: Vec<String>,
    missing_files: Vec<String>,
    missing_verification: bool,
}

/// A request to a gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The phase that the run is in.
    pub phase: &'a str,
    /// The run that is asked for; `None` where all of the history is its.
    pub run: Option<&'a str>,
    /// The turn that asked.
    pub by: &'a str,
    /// That turn's declared verification status.
    pub verification: Option<&'a str>,
}

/// Answers a request for the phase `target`.
pub(crate) fn phase_exit(config: &Config, root: &Root, asked: Asked<'_>, target: &str) -> GateResult {
    let mut result = blank(GateKind::PhaseTransition, asked);
    result.next_phase = Some(target.to_owned());
    if config.route(target).is_none() {
        result.action = GateAction::UnknownPhase;
        result.reasons = vec![format!("phase '{target}' is not in routing")];
        return result;
    }
    if let Some(after) = config.phases().iter().position(|phase| *phase == asked.phase)
        && config.phases().get(after + 1) != Some(&target)
    {
        result.action = GateAction::GateFailed;
        let next = config.phase_after(asked.phase);
        result.reasons = vec![match next {
            Some(next) => format!("phase '{}' is followed by '{next}', not by '{target}'", asked.phase),
            None => format!("phase '{}' is the last one", asked.phase),
        }];
        return result;
    }
    result.action = GateAction::Advance;
    judge(config, root, asked, &mut result);
    result
}

/// Answers a request for completion.
pub(crate) fn run_completion(config: &Config, root: &Root, asked: Asked<'_>) -> GateResult {
    let mut result = blank(GateKind::RunCompletion, asked);
    if let Some(last) = config.phases().last().filter(|last| **last != asked.phase) {
        result.action = GateAction::NotFinalPhase;
        result.reasons = vec![format!(
            "Run completion requested but current phase \"{}\" is not the final phase \"{last}\"",
            asked.phase
        )];
        return result;
    }
    result.action = GateAction::Complete;
    judge(config, root, asked, &mut result);
    result
}

fn blank(kind: GateKind, asked: Asked<'_>) -> GateResult {
    GateResult {
        kind,
        gate_id: None,
        action: GateAction::GateFailed,
        next_phase: None,
        reasons: Vec::new(),
        missing_files: Vec::new(),
        failing_files: Vec::new(),
        missing_verification: false,
        requested_by: asked.by.to_owned(),
    }
}

/// Judges the demands of the phase's gate; the action stays as it is where all of them hold.
fn judge(config: &Config, root: &Root, asked: Asked<'_>, result: &mut GateResult) {
    let Some(id) = config.exit_gate(asked.phase) else { return };
    result.gate_id = Some(id.to_owned());
    let Some(gate) = config.gate(id) else {
        return result.reasons.push(format!("gate '{id}' is not defined, and so it is open"));
    };
    files(gate, root, asked.phase, result);
    artifacts(config, root, asked, result);
    let wants_pass = gate.requires_verification_pass;
    if wants_pass && !matches!(asked.verification, Some("pass" | "attested_pass")) {
        result.missing_verification = true;
        let status = asked.verification.unwrap_or("missing");
        result.reasons.push(format!("verification status is '{status}', and the gate demands a pass"));
    }
    if !result.reasons.is_empty() {
        result.action = GateAction::GateFailed;
    } else if gate.requires_human_approval {
        result.action = GateAction::AwaitingHumanApproval;
    }
}

/// Judges the artifacts that `workflow_kit` names for the phase: whether each exists and says what it must,
/// and whether the role that owns it had an accepted turn in the phase.
fn artifacts(config: &Config, root: &Root, asked: Asked<'_>, result: &mut GateResult) {
    let phase = asked.phase;
    let Some(Some(of_phase)) = config.model().workflow_kit.phases.get(phase) else { return };
    for artifact in &of_phase.artifacts {
        let Some(path) = &artifact.path else { continue };
        let is_required = artifact.required != Some(false);
        let Some(bytes) = read(root, path) else {
            if is_required && !result.missing_files.iter().any(|missing| missing == path) {
                result.missing_files.push(path.to_owned());
                result.reasons.push(format!("required artifact is missing: {path}"));
            }
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let kind = artifact.semantics.as_deref().unwrap_or_default();
        let sections = &artifact.semantics_config.required_sections;
        let checked = semantics::check_as(kind, path, &text, phase, sections);
        if let Err(reason) = checked
            && !result.reasons.contains(&reason)
        {
            result.failing_files.push(path.to_owned());
            result.reasons.push(reason);
        }
        if let Some(owner) = &artifact.owned_by
            && !has_turn_of(root, owner, asked)
        {
            result
                .reasons
                .push(format!("'{path}' is of role '{owner}', which has no accepted turn in '{phase}'"));
        }
    }
}

/// True if the role had an accepted turn in the phase, in this run: the history goes on from run to run.
fn has_turn_of(root: &Root, role: &str, asked: Asked<'_>) -> bool {
    let mut found = false;
    // A history that can't be read has no such turn.
    let _ = super::lines::backwards(root, &root.join(super::journal::HISTORY), |entry| {
        let entry = HistoryEntry::from_object(entry);
        let is_of_run = asked.run.is_none_or(|run| entry.run_id() == run);
        found = is_of_run && entry.role() == role && entry.phase() == asked.phase;
        !found
    });
    found
}

fn files(gate: &Gate, root: &Root, phase: &str, result: &mut GateResult) {
    for file in &gate.requires_files {
        let Some(bytes) = read(root, file) else {
            result.missing_files.push(file.to_owned());
            result.reasons.push(format!("required file is missing: {file}"));
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        if let Err(reason) = semantics::check(file, &text, phase) {
            result.failing_files.push(file.to_owned());
            result.reasons.push(reason);
        }
    }
}

/// Returns what a required file must say, in words; `None` where it may say anything.
pub(super) fn demand(path: &str, phase: &str) -> Option<String> {
    semantics::check(path, "", phase).err()
}

/// Does as [`demand`] for an artifact of `workflow_kit`.
pub(super) fn demand_of(artifact: &Artifact, phase: &str) -> Option<String> {
    let kind = artifact.semantics.as_deref().unwrap_or_default();
    let sections = &artifact.semantics_config.required_sections;
    semantics::check_as(kind, artifact.path.as_deref()?, "", phase, sections).err()
}

/// The most bytes of a file that a gate asks for.
const FILE_MAX: u64 = 16 << 20;

/// Reads a file that a gate asks for. What is not a plain file of the project's own counts as missing,
/// because a pushed commit decides where a link leads.
pub(super) fn read(root: &Root, path: &str) -> Option<Vec<u8>> {
    disk::read_within(root, &root.join(path), FILE_MAX).ok().flatten()
}
