//! Driving a governed run to its end, with everything that is not lifecycle left to the caller.
//!
//! [`run_loop`] initializes, assigns, writes bundles, accepts, rejects and asks for approvals only through
//! the public functions of [`crate::governed`]. The caller's [`Callbacks`] decide who goes next, how a worker
//! is called and whether a gate is approved. There is one turn at a time, and each pass begins with the state
//! on disk, so a loop that was killed can be started again and goes on. The loop prints nothing, ends no
//! process and knows no worker. An event is reported as soon as what it reports is on disk, before anything
//! else is done. Implements G9.

mod report;

pub use report::{LoopEvent, LoopReport, StopReason, TurnRecord};

use crate::governed::{
    AcceptOptions, Accepted, Config, GateKind, GovernedError, Rejection, Root, RunStatus, State, Turn,
    accept_turn, approve_completion_gate, approve_phase_gate, assign_turn, get_active_turns,
    get_turn_staging_result_path, init_run, load_state, mark_run_blocked, reject_turn, stage_turn_result,
    write_dispatch_bundle,
};
use crate::governed::{Block, BundleOptions};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};

/// The error of a callback; its text is reported.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A turn for a worker to do.
#[derive(Debug)]
pub struct Dispatch<'a> {
    /// The root of the project.
    pub root: &'a Root,
    /// The project's configuration.
    pub config: &'a Config,
    /// The state, which includes the turn.
    pub state: &'a State,
    /// The turn to do.
    pub turn: &'a Turn,
    /// The folder of the turn's bundle.
    pub bundle_path: &'a Path,
    /// Where the turn's result is staged, below the root; the loop writes the result that is returned there.
    pub staging_path: PathBuf,
}

/// What a worker made of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Dispatched {
    /// A result, to be accepted.
    Accept(Value),
    /// A result is staged already, to be accepted.
    Staged,
    /// The worker failed: the turn is rejected for this reason, and tried again while it may be.
    Reject(String),
    /// Nothing can be done without a person: the run is blocked on `dispatch:<detail>`.
    Blocked(String),
    /// The run was blocked meanwhile, for this reason, and the state on disk says on what: the loop ends.
    BlockedAlready(String),
}

/// What the loop asks of its caller.
pub trait Callbacks {
    /// Returns the role that goes next; `None` ends the loop. `state.next_recommended_role()` is what the
    /// last turn proposed.
    fn select_role(&mut self, state: &State, config: &Config) -> Result<Option<String>, Failure>;

    /// Has a worker do a turn. A failure leaves the turn assigned, and ends the loop.
    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, Failure>;

    /// Returns whether the pending gate is approved; `false` ends the loop.
    fn approve_gate(&mut self, kind: GateKind, state: &State) -> Result<bool, Failure>;

    /// Receives what happened; a failure is noted and changes nothing.
    fn on_event(&mut self, event: &LoopEvent) -> Result<(), Failure> {
        let _ = event;
        Ok(())
    }

    /// Receives what an acceptance left, before the next assignment; a failure is noted and changes nothing.
    fn after_accept(&mut self, turn: &Turn, accepted: &Accepted) -> Result<(), Failure> {
        let _ = (turn, accepted);
        Ok(())
    }

    /// Receives the error for which the loop stops because an operation refused to go on; the report has the
    /// error's text.
    fn on_refusal(&mut self, error: GovernedError) {
        let _ = error;
    }
}

/// Returns the stage at which a result failed and what is wrong with it, if its worker may do the turn again.
pub(crate) fn fault(error: &GovernedError) -> Option<(&'static str, Vec<String>)> {
    if let GovernedError::InvalidResult(validation) = error {
        let stage = validation.stage.map_or("schema", |stage| stage.name());
        return Some((stage, validation.errors.clone()));
    }
    let is_its = matches!(
        error,
        GovernedError::OverrideRefused { .. } | GovernedError::PolicyViolation { escalated: None, .. }
    );
    is_its.then(|| ("protocol", vec![error.to_string()]))
}

/// The options of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopOptions {
    /// Most turns that the loop accepts; by default `run_loop.max_turns` of the configuration, else 50.
    pub max_turns: Option<u64>,
    /// If true, an invalid result is rejected, and its turn done again while that is allowed. If false, the
    /// loop ends, and the turn is the caller's to reject.
    pub reject_invalid: bool,
}

/// Drives a run until it is completed, blocked or held, the caller stops it, or the loop has had its turns.
pub fn run_loop(
    root: &Root,
    config: &Config,
    callbacks: &mut dyn Callbacks,
    options: &LoopOptions,
) -> LoopReport {
    let max_turns = options.max_turns.or(config.max_turns()).unwrap_or(50);
    let rejects = options.reject_invalid;
    let mut driver = Driver { root, config, callbacks, max_turns, rejects, report: LoopReport::new() };
    let stop_reason = match driver.initialized() {
        Err(stop) => stop,
        Ok(()) => loop {
            if let Err(stop) = driver.pass() {
                break stop;
            }
        },
    };
    driver.ended(stop_reason)
}

/// A step of the loop: go on, or stop for a reason.
type Step = Result<(), StopReason>;

struct Driver<'a> {
    root: &'a Root,
    config: &'a Config,
    callbacks: &'a mut dyn Callbacks,
    max_turns: u64,
    rejects: bool,
    report: LoopReport,
}

impl Driver<'_> {
    fn tell(&mut self, event: LoopEvent) {
        if let Err(failure) = self.callbacks.on_event(&event) {
            self.report.errors.push(format!("on_event failed: {failure}"));
        }
    }

    fn note(&mut self, error: impl std::fmt::Display) {
        self.report.errors.push(error.to_string());
    }

    /// Notes an error and returns the reason to stop for.
    fn stop<T>(&mut self, reason: StopReason, error: impl std::fmt::Display) -> Result<T, StopReason> {
        self.note(error);
        Err(reason)
    }

    /// Notes what an operation refused and returns the reason to stop for.
    fn refused<T>(&mut self, reason: StopReason, error: GovernedError) -> Result<T, StopReason> {
        self.note(&error);
        self.callbacks.on_refusal(error);
        Err(reason)
    }

    fn load(&mut self) -> Result<State, StopReason> {
        load_state(self.root, self.config).or_else(|error| self.refused(StopReason::Blocked, error))
    }

    fn initialized(&mut self) -> Step {
        let needs_run = match load_state(self.root, self.config) {
            Ok(state) => state.status() == Some(RunStatus::Idle),
            Err(GovernedError::NoState { .. }) => true,
            Err(error) => return self.refused(StopReason::Blocked, error),
        };
        if needs_run && let Err(error) = init_run(self.root, self.config) {
            return self.refused(StopReason::InitFailed, error);
        }
        Ok(())
    }

    fn ended(mut self, stop_reason: StopReason) -> LoopReport {
        self.report.stop_reason = stop_reason;
        self.report.state = load_state(self.root, self.config).ok();
        let event = match stop_reason {
            StopReason::Completed => Some(LoopEvent::Completed),
            StopReason::Blocked | StopReason::RejectExhausted | StopReason::ConflictLoop => {
                Some(LoopEvent::Blocked)
            }
            StopReason::CallerStopped => Some(LoopEvent::CallerStopped),
            StopReason::GateHeld
            | StopReason::MaxTurnsReached
            | StopReason::DispatchError
            | StopReason::InitFailed => None,
        };
        if let Some(event) = event {
            self.tell(event);
        }
        self.report
    }

    /// Looks at the state once, and does what it asks for.
    fn pass(&mut self) -> Step {
        let state = self.load()?;
        match state.status() {
            Some(RunStatus::Completed) => Err(StopReason::Completed),
            Some(RunStatus::Paused) => self.gate(&state),
            Some(RunStatus::Active) => self.turn(state),
            Some(RunStatus::Blocked | RunStatus::Idle | RunStatus::Failed) | None => Err(StopReason::Blocked),
        }
    }

    fn gate(&mut self, state: &State) -> Step {
        let kind = if state.pending_phase_transition().is_some() {
            GateKind::PhaseTransition
        } else if state.pending_run_completion().is_some() {
            GateKind::RunCompletion
        } else {
            return self.stop(StopReason::Blocked, "the run is paused and nothing is pending");
        };
        self.tell(LoopEvent::GatePaused { kind });
        match self.callbacks.approve_gate(kind, state) {
            Ok(true) => {}
            Ok(false) => {
                self.tell(LoopEvent::GateHeld { kind });
                return Err(StopReason::GateHeld);
            }
            Err(failure) => return self.stop(StopReason::Blocked, format!("approve_gate failed: {failure}")),
        }
        let approved = match kind {
            GateKind::PhaseTransition => approve_phase_gate(self.root, self.config).map(drop),
            GateKind::RunCompletion => approve_completion_gate(self.root, self.config).map(drop),
        };
        if let Err(error) = approved {
            return self.refused(StopReason::Blocked, error);
        }
        self.report.gates_approved += 1;
        self.tell(LoopEvent::GateApproved { kind });
        Ok(())
    }

    fn turn(&mut self, state: State) -> Step {
        if self.report.turns_executed >= self.max_turns {
            return Err(StopReason::MaxTurnsReached);
        }
        let is_open = |turn: &Turn| turn.status().is_some_and(|status| status.is_dispatchable());
        let open = get_active_turns(&state).into_values().find(is_open);
        let (state, turn) = match open {
            Some(turn) => (state, turn),
            None => self.assigned(&state)?,
        };
        let options = BundleOptions { turn_id: Some(turn.id().to_owned()), ..BundleOptions::default() };
        let bundle = match write_dispatch_bundle(self.root, &state, self.config, &options) {
            Ok(bundle) => bundle,
            Err(error) => return self.refused(StopReason::Blocked, error),
        };
        let dispatch = Dispatch {
            root: self.root,
            config: self.config,
            state: &state,
            turn: &turn,
            bundle_path: &bundle.path,
            staging_path: get_turn_staging_result_path(turn.id()),
        };
        match self.callbacks.dispatch(&dispatch) {
            Ok(Dispatched::Accept(result)) => match stage_turn_result(self.root, turn.id(), &result) {
                Ok(_) => self.accept(&turn),
                Err(error) => {
                    self.stop(StopReason::DispatchError, format!("cannot stage the result: {error}"))
                }
            },
            Ok(Dispatched::Staged) => self.accept(&turn),
            Ok(Dispatched::Reject(reason)) => self.reject(&turn, "dispatch", Vec::new(), &reason),
            Ok(Dispatched::Blocked(detail)) => self.block(&turn, &detail),
            Ok(Dispatched::BlockedAlready(reason)) => {
                self.record(&turn, false, Some(reason.clone()));
                self.stop(StopReason::Blocked, reason)
            }
            Err(failure) => self.stop(StopReason::DispatchError, format!("dispatch failed: {failure}")),
        }
    }

    fn assigned(&mut self, state: &State) -> Result<(State, Turn), StopReason> {
        let role = match self.callbacks.select_role(state, self.config) {
            Ok(Some(role)) => role,
            Ok(None) => return Err(StopReason::CallerStopped),
            Err(failure) => {
                return self.stop(StopReason::DispatchError, format!("select_role failed: {failure}"));
            }
        };
        match assign_turn(self.root, self.config, &role) {
            Ok(assigned) => {
                self.tell(LoopEvent::TurnAssigned { turn: assigned.turn.clone() });
                Ok((assigned.state, assigned.turn))
            }
            Err(error) => self.refused(StopReason::Blocked, error),
        }
    }

    fn record(&mut self, turn: &Turn, accepted: bool, reason: Option<String>) {
        let (role, turn_id) = (turn.role().to_owned(), turn.id().to_owned());
        self.report.turn_history.push(TurnRecord {
            role,
            turn_id,
            attempt: turn.attempt(),
            accepted,
            reason,
        });
    }

    fn accept(&mut self, turn: &Turn) -> Step {
        let options = AcceptOptions { turn_id: Some(turn.id().to_owned()), ..AcceptOptions::default() };
        match accept_turn(self.root, self.config, &options) {
            Ok(accepted) => {
                self.report.turns_executed += 1;
                self.record(turn, true, None);
                self.tell(LoopEvent::TurnAccepted { turn: turn.clone() });
                if let Err(failure) = self.callbacks.after_accept(turn, &accepted) {
                    self.note(format!("after_accept failed: {failure}"));
                }
                Ok(())
            }
            Err(error @ GovernedError::Conflict { .. }) => self.conflicted(turn, error),
            // A worker may do again what it did wrong.
            Err(error) => match fault(&error).filter(|_| self.rejects) {
                Some((stage, errors)) => {
                    let reason = errors.first().cloned().unwrap_or_default();
                    self.reject(turn, stage, errors, &reason)
                }
                None => {
                    self.record(turn, false, Some(error.to_string()));
                    self.refused(StopReason::Blocked, error)
                }
            },
        }
    }

    /// Has a conflicting turn done again from the workspace as it is now, until the run is blocked and waits
    /// for a person.
    fn conflicted(&mut self, turn: &Turn, error: GovernedError) -> Step {
        self.tell(LoopEvent::TurnConflicted { turn: turn.clone() });
        let reason = error.to_string();
        match &error {
            GovernedError::Conflict { state, .. } if state.status() == Some(RunStatus::Blocked) => {
                self.record(turn, false, Some(reason));
                self.refused(StopReason::ConflictLoop, error)
            }
            _ => self.reject(turn, "conflict", Vec::new(), &reason),
        }
    }

    fn reject(&mut self, turn: &Turn, stage: &str, errors: Vec<String>, reason: &str) -> Step {
        let turn_id = Some(turn.id().to_owned());
        let rejection = Rejection { stage: Some(stage.to_owned()), errors, turn_id };
        let reason = if reason.trim().is_empty() { "the worker gave no reason" } else { reason };
        self.record(turn, false, Some(reason.to_owned()));
        match reject_turn(self.root, self.config, &rejection, reason) {
            Ok(rejected) => {
                self.tell(LoopEvent::TurnRejected { turn: rejected.turn, escalated: rejected.escalated });
                if rejected.escalated { Err(StopReason::RejectExhausted) } else { Ok(()) }
            }
            Err(error) => self.refused(StopReason::Blocked, error),
        }
    }

    fn block(&mut self, turn: &Turn, detail: &str) -> Step {
        self.record(turn, false, Some(detail.to_owned()));
        let blocked_on = format!("dispatch:{detail}");
        let details = Block {
            blocked_on: &blocked_on,
            category: "dispatch_error",
            turn_id: Some(turn.id()),
            config: Some(self.config),
            ..Block::default()
        };
        match mark_run_blocked(self.root, &details) {
            Ok(_) => Err(StopReason::Blocked),
            Err(error) => self.refused(StopReason::Blocked, error),
        }
    }
}
