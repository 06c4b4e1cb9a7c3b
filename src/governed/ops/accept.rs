//! Accepts a staged result: it is checked, compared with the workspace, and committed exactly once.
//!
//! Under the lock, an acceptance finds the turn and what is staged for it, checks the time limits, runs hooks
//! and validation, compares the workspace, checks the policies, looks for conflicts, runs hooks again and
//! asks the gates. One journaled commit of history, ledger, talk, state and events follows, which ends with
//! the turn's dispatch and staging folders gone. A refusal before that commit leaves every file as it was,
//! but for the audit of hooks; a conflict, a hook that stops the acceptance, a limit that was passed and a
//! policy that escalates are written down, and their errors say so. Implements G1, G3, G5.

use super::super::config::Authority;
use super::super::conflict::{self, Conflict, Summary};
use super::super::gate::GateResult;
use super::super::history::{self, Facts, Merged};
use super::super::hooks::{HookPhase, HookReport};
use super::super::journal::{Change, REPO_DECISIONS, TALK};
use super::super::json;
use super::super::ledger::{Conflicted, Line};
use super::super::next::{self, Acceptance, Event, Refusal, Verb, admit, next_state};
use super::super::notify::Owed;
use super::super::observe::{self, Changes, Sight, WorkspaceSnapshot};
use super::super::outcome::{
    Stage, TurnResult, Validation, ValidationInput, is_product, is_proposal, validate_text,
};
use super::super::records::HistoryEntry;
use super::super::root::Root;
use super::super::staging::too_long;
use super::super::state::{self, State, Turn, TurnStatus, get_active_turn_count};
use super::super::{Config, GovernedError, hooks, policy};
use super::carryover::{Carryover, carryover};
use super::facts::{Staged, staged};
use super::{Place, asked, in_time, locked, record};
use serde_json::{Value, json};

/// How a conflicted turn is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolution {
    /// Like any other turn: a conflict refuses the result.
    #[default]
    Standard,
    /// A person has merged the conflict by hand: it is recorded, and no longer refuses the result.
    HumanMerge,
}

/// Which turn is accepted, and how.
#[derive(Debug, Clone, Default)]
pub struct AcceptOptions {
    /// The turn's id; without one, the only active turn is meant.
    pub turn_id: Option<String>,
    /// How a conflict is treated.
    pub resolution: Resolution,
}

/// A result that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The state after the acceptance.
    pub state: State,
    /// The outcome of validation, warnings and corrected mistakes included.
    pub validation: Validation,
    /// The turn's line in the history.
    pub accepted: HistoryEntry,
    /// The answer of the phase's gate, where one was asked.
    pub gate_result: Option<GateResult>,
    /// The answer to a request for completion, where there was one.
    pub completion_result: Option<GateResult>,
    /// What the hooks of `after_acceptance` did; a report that is not ok leaves the acceptance as it is, and
    /// the run blocked unless it is completed.
    pub hook_results: Option<HookReport>,
}

/// Accepts the result that is staged for a turn, once and for all.
///
/// # Errors
/// [`Refusal`] where no such turn is active, or the run takes none; [`GovernedError::StaleStaging`];
/// [`GovernedError::InvalidResult`]; [`GovernedError::OverrideRefused`]; [`GovernedError::PolicyViolation`],
/// which leaves the run blocked where the policy escalates; [`GovernedError::Conflict`], which leaves the
/// turn `conflicted`; [`GovernedError::Hook`] and [`GovernedError::TimedOut`], which leave the run blocked;
/// [`GovernedError::Locked`].
pub fn accept_turn(root: &Root, config: &Config, options: &AcceptOptions) -> Result<Accepted, GovernedError> {
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        let turn = next::target(&state, options.turn_id.as_deref())?;
        admit(&state, Verb::Accept)?;
        if !state::is_safe_id(turn.id()) {
            return Err(GovernedError::UnsafeTurnId { turn_id: turn.id().to_owned() });
        }
        if asked::was_accepted(root, &turn)? {
            return Err(Refusal::AlreadyAccepted { turn_id: turn.id().to_owned() }.into());
        }
        let merges = options.resolution == Resolution::HumanMerge;
        if merges && turn.status() != Some(TurnStatus::Conflicted) {
            return Err(Refusal::NotConflicted { turn_id: turn.id().to_owned() }.into());
        }
        let found = staged(root, &turn)?;
        if let Some(other) = found.as_ref().and_then(|found| found.is_of_another(&turn)) {
            return Err(GovernedError::StaleStaging { turn_id: turn.id().to_owned(), found: other });
        }
        Accepting { root, config, state: &state, turn: &turn, merges }.run(found, owed)
    })
}

/// Returns the error for a result that does not fit what is in the workspace.
fn observed(warnings: Vec<String>, errors: Vec<String>) -> GovernedError {
    let stage = Some(Stage::ArtifactObservation);
    GovernedError::InvalidResult(Box::new(Validation { stage, errors, warnings, ..Validation::default() }))
}

struct Accepting<'a> {
    root: &'a Root,
    config: &'a Config,
    state: &'a State,
    turn: &'a Turn,
    merges: bool,
}

impl Accepting<'_> {
    fn run(&self, found: Option<Staged>, owed: &mut Vec<Owed>) -> Result<Accepted, GovernedError> {
        let late = in_time(self.root, self.config, self.state, Some(self.turn), owed)?;
        let mut validation = self.validated(found, owed)?;
        validation.warnings.extend(late);
        let result = validation.turn_result.as_ref().and_then(Value::as_object).cloned();
        let result = TurnResult::of(result.unwrap_or_default());
        let snapshot = observe::look(self.root)?;
        let changes = observe::changes(self.root, &snapshot, self.turn.baseline())?;
        self.compare(&mut validation, &result, &changes)?;
        self.policies(&mut validation, &result, &changes, owed)?;
        let found = conflict::find(self.root, self.state, self.turn, &result, &changes)?;
        if let Some(conflict) = found.as_ref().filter(|_| !self.merges) {
            return Err(self.conflicts(conflict, owed)?);
        }
        if hooks::has_any(self.config, HookPhase::BeforeAcceptance) {
            let payload = json!({
                "turn_id": self.turn.id(),
                "role_id": self.turn.role(),
                "turn_result": result,
                "observed_changes": changes.to_value(),
                "conflict_detected": false,
            });
            self.place().hooks(HookPhase::BeforeAcceptance, &payload, owed)?;
        }
        self.commit(validation, &result, &snapshot, &changes, found, owed)
    }

    fn place(&self) -> Place<'_> {
        Place { root: self.root, config: self.config, state: self.state, turn_id: Some(self.turn.id()) }
    }

    /// Validates the result, between the hooks before and after validation.
    fn validated(&self, found: Option<Staged>, owed: &mut Vec<Owed>) -> Result<Validation, GovernedError> {
        let (turn, role) = (self.turn.id(), self.turn.role());
        let bytes = found.as_ref().and_then(|found| found.bytes.as_deref());
        let parsed = bytes.map(serde_json::from_slice::<Value>);
        let result = parsed.as_ref().and_then(|parsed| parsed.as_ref().ok());
        let mut payload = json!({
            "turn_id": turn,
            "role_id": role,
            "staging_path": found.as_ref().map(|found| found.path.as_str()),
            "turn_result": result,
        });
        if let (Some(Err(error)), Some(payload)) = (&parsed, payload.as_object_mut()) {
            payload.insert("parse_error".to_owned(), json!(error.to_string()));
        }
        self.place().hooks(HookPhase::BeforeValidation, &payload, owed)?;
        let input = ValidationInput { state: self.state, config: self.config, turn: Some(self.turn) };
        let validation = match &found {
            Some(Staged { bytes: None, .. }) => Validation::unread(too_long()),
            Some(_) | None => validate_text(bytes, input),
        };
        let payload = json!({
            "turn_id": turn,
            "role_id": role,
            "validation_ok": validation.ok(),
            "validation_stage": validation.stage.map(Stage::name),
            "errors": validation.errors,
            "warnings": validation.warnings,
            "turn_result": result,
        });
        self.place().hooks(HookPhase::AfterValidation, &payload, owed)?;
        if validation.ok() { Ok(validation) } else { Err(GovernedError::InvalidResult(Box::new(validation))) }
    }

    /// Compares what was declared with what is in the workspace.
    fn compare(
        &self,
        validation: &mut Validation,
        result: &TurnResult,
        changes: &Changes,
    ) -> Result<(), GovernedError> {
        match changes.sight {
            Sight::NoBaseline => return Ok(()),
            Sight::Lost => {
                let why = "what was changed can't be seen: the workspace is in no repository, or in one that does \
                           not have the commit that the turn began at";
                return Err(observed(Vec::new(), vec![why.to_owned()]));
            }
            Sight::Clear => {}
        }
        let declared = result.files_changed();
        // In one folder other turns may be at work; a slot is one turn's.
        let has_others = self.root.tree().is_none()
            && (get_active_turn_count(self.state) > 1
                || self.turn.concurrent_with().and_then(Value::as_array).is_some_and(|all| !all.is_empty()));
        let mut wrongs = Vec::new();
        for file in &changes.files {
            let is_declared = declared.contains(&file.as_str());
            let wrong = match self.config.authority(self.turn.role()) {
                Authority::Proposed if !is_declared && !is_proposal(file) => {
                    format!("'{file}' was changed and is not declared")
                }
                Authority::Authoritative if !is_declared => {
                    format!("'{file}' was changed and is not declared")
                }
                Authority::ReviewOnly if !is_declared && (has_others || is_product(file)) => {
                    format!("'{file}' was changed and is not declared")
                }
                Authority::Authoritative | Authority::ReviewOnly | Authority::Proposed => continue,
            };
            if has_others { validation.warnings.push(wrong) } else { wrongs.push(wrong) }
        }
        for file in declared.iter().filter(|file| !changes.files.iter().any(|changed| changed == *file)) {
            validation.warnings.push(format!("'{file}' is declared as changed, and is as it was"));
        }
        if wrongs.is_empty() {
            return Ok(());
        }
        Err(observed(std::mem::take(&mut validation.warnings), wrongs))
    }

    /// Checks the policies of the configuration.
    fn policies(
        &self,
        validation: &mut Validation,
        result: &TurnResult,
        changes: &Changes,
        owed: &mut Vec<Owed>,
    ) -> Result<(), GovernedError> {
        let (root, at) = (self.root, self.root.now());
        let facts = Facts {
            state: self.state,
            config: self.config,
            turn: self.turn,
            result,
            at: &at,
            accepted_sequence: 0,
            changes,
            accepted_ref: "",
            conflict_resolution: None,
        };
        for broken in policy::broken(root, self.config, &facts)? {
            let escalated = match broken.action {
                policy::Action::Warn => {
                    validation.warnings.push(format!("policy '{}': {}", broken.id, broken.message));
                    continue;
                }
                policy::Action::Block => None,
                policy::Action::Escalate => {
                    let state = record::policy(root, self.state, self.turn, &broken, &at, owed)?;
                    Some(Box::new(state))
                }
            };
            return Err(GovernedError::PolicyViolation {
                policy: broken.id,
                message: broken.message,
                escalated,
            });
        }
        Ok(())
    }

    /// Writes a conflict down: the turn is conflicted, and at its third conflict the run waits for a person.
    fn conflicts(&self, conflict: &Conflict, owed: &mut Vec<Owed>) -> Result<GovernedError, GovernedError> {
        let at = self.root.now();
        let found = next::ConflictFound {
            turn_id: self.turn.id().to_owned(),
            conflict: conflict.clone(),
            at: at.clone(),
        };
        let next = next_state(self.state, &Event::Conflict(Box::new(found)))?;
        let entry =
            Line::Conflict(Conflicted::of("conflict_detected", &next, self.turn, &at, Summary::of(conflict)));
        record::conflict(self.root, self.state, &next, self.turn, conflict, entry, owed)?;
        Ok(GovernedError::Conflict { conflict: Box::new(conflict.clone()), state: Box::new(next) })
    }

    fn commit(
        &self,
        validation: Validation,
        result: &TurnResult,
        snapshot: &WorkspaceSnapshot,
        changes: &Changes,
        conflict: Option<Conflict>,
        owed: &mut Vec<Owed>,
    ) -> Result<Accepted, GovernedError> {
        let (root, state, turn, at) = (self.root, self.state, self.turn, self.root.now());
        let [completion, exit] = asked::gates(root, self.config, state, turn.id(), result)?;
        let kind = result.artifact();
        let previous = state.integration_ref().and_then(Value::as_str);
        let route = state.phase().and_then(|phase| self.config.route(phase));
        let acceptance = Acceptance {
            turn_id: turn.id().to_owned(),
            result: result.clone(),
            at: at.clone(),
            integration_ref: observe::integration_ref(snapshot, kind.unwrap_or_default(), previous),
            allowed_next: route.map(|route| route.allowed().to_vec()).unwrap_or_default(),
            entry_role: route
                .and_then(|route| route.entry_role.clone())
                .filter(|role| !role.trim().is_empty()),
            only_warns: self.config.only_warns_of_budget(),
            completion: completion.clone(),
            exit: exit.clone(),
        };
        let accepted_ref = acceptance.integration_ref.clone();
        let next = next_state(state, &Event::Accept(Box::new(acceptance)))?;
        if !state::fits(&next) {
            let why = format!("with it the run's state would have more than {} bytes", state::STATE_MAX);
            let failed =
                Validation { stage: Some(Stage::Schema), errors: vec![why], ..Validation::default() };
            return Err(GovernedError::InvalidResult(Box::new(failed)));
        }
        let facts = Facts {
            state,
            config: self.config,
            turn,
            result,
            at: &at,
            accepted_sequence: next.turn_sequence(),
            changes,
            accepted_ref: &accepted_ref,
            conflict_resolution: conflict.as_ref().map(Merged::of),
        };
        let entry = history::entry(&facts);
        let accepted = HistoryEntry::from_object(json::object_of(&entry));
        let gates: Vec<&GateResult> = completion.iter().chain(&exit).collect();
        let mut ledger = history::decisions(&facts);
        ledger.extend(record::ledger(&next, turn, &gates, conflict.as_ref(), &at));
        let mut change = Change::new("accept_turn", state, next.clone())
            .turn(turn.id())
            .history(entry)
            .ledger(ledger)
            .append(TALK, history::talk(&facts))
            .events(&record::accepted(root, state, &next, turn, &gates, conflict.is_some()));
        change = match carryover(root, &facts)? {
            Carryover::None => change,
            Carryover::Append(text) => change.append(REPO_DECISIONS, text),
            Carryover::Rewrite(text) => change.write(REPO_DECISIONS, text),
        };
        for folder in state::turn_folders(turn.id()) {
            change = change.remove(folder);
        }
        change.commit(root)?;
        record::owed(state, &next, turn, owed);
        let (state, hook_results) = self.after(next, &facts, owed)?;
        Ok(Accepted {
            state,
            validation,
            accepted,
            gate_result: exit,
            completion_result: completion,
            hook_results,
        })
    }

    /// Runs the hooks of `after_acceptance`: the acceptance stands whatever they do, and only their tampering
    /// is undone.
    fn after(
        &self,
        next: State,
        facts: &Facts<'_>,
        owed: &mut Vec<Owed>,
    ) -> Result<(State, Option<HookReport>), GovernedError> {
        if !hooks::has_any(self.config, HookPhase::AfterAcceptance) {
            return Ok((next, None));
        }
        let payload = json!({
            "turn_id": self.turn.id(),
            "role_id": self.turn.role(),
            "history_entry_index": facts.accepted_sequence.saturating_sub(1),
            "accepted_integration_ref": facts.accepted_ref,
            "decisions_count": facts.result.decisions().len(),
            "objections_count": facts.result.objections().count(),
            "run_status": next.status_name(),
            "phase": next.phase(),
        });
        let place = Place { state: &next, ..self.place() };
        let report = place.run(HookPhase::AfterAcceptance, &payload)?;
        let stopped = report.as_ref().is_some_and(|report| !report.ok);
        let state = match (&report, admit(&next, Verb::Hook)) {
            (Some(report), Ok(())) if stopped => place.block(HookPhase::AfterAcceptance, report, owed)?,
            (Some(_) | None, Ok(()) | Err(_)) => next.clone(),
        };
        Ok((state, report))
    }
}
