//! One turn of a role, from assignment to acceptance or rejection: what the commands of the pack call.
//!
//! It begins the run where there is none, assigns the turn (or takes the one that is to be done again),
//! writes the dispatch bundle, has the [`Driver`] run the worker, accepts or rejects what the worker left,
//! and says what comes next. The files that all this leaves in the worktree and the declaration become the
//! branch's next commit, by the kernel's one compare-and-swap: of two machines that take the same turn, only
//! one is believed. Implements G6, G7.

use super::acts::{accepted_as, rejected};
use super::begin::begun;
use super::driver::{Driver, Sent, Worked};
use super::next::{Next, is_dispatchable};
use super::{Act, Done, hooks};
use crate::governed::{
    AcceptOptions, BundleOptions, GovernedError, HookPhase, Rejection, RunStatus, Turn, accept_turn,
    assign_turn, get_active_turns, load_state, out_of_time, reject_turn, set_aside_result,
    write_dispatch_bundle,
};
use crate::protocol::declaration::Rest;
use crate::run_loop::fault;
use crate::runner::named::left_out_ref;

/// A turn that is to be taken.
pub(crate) struct Turning<'a> {
    /// How the turn's worker is started.
    pub driver: Driver<'a>,
    /// The role whose turn it is.
    pub role: &'a str,
    /// The id of the kernel's run whose command this process is.
    pub run_id: Option<&'a str>,
}

impl Turning<'_> {
    /// Takes the turn, and returns what came of it.
    pub(crate) fn take(&self) -> Act {
        let Driver { root, config, .. } = self.driver;
        let state = begun(root, config)?;
        if self.driver.starts(self.role) {
            self.driver.alone(&state, self.role)?;
        }
        let turn = match get_active_turns(&state).into_values().find(|t| t.role() == self.role) {
            Some(turn) if is_dispatchable(&turn) => turn,
            Some(_) | None => match assign_turn(root, config, self.role) {
                Ok(assigned) => assigned.turn,
                Err(error) => return self.not_assigned(error),
            },
        };
        let state = load_state(root, config)?;
        let options = BundleOptions { turn_id: Some(turn.id().to_owned()), warnings: Vec::new() };
        let bundle = write_dispatch_bundle(root, &state, config, &options)?;
        let worked = match self.driver.dispatch(&state, &bundle.turn, &bundle.path)? {
            Sent::Stopped(stop) => {
                let phase = HookPhase::AfterDispatch;
                return Ok(hooks::blocked_by(root, config, phase, &stop, Some(&turn))?);
            }
            Sent::NotOurs => {
                let state = load_state(root, config)?;
                let mut done =
                    Done::new(state, format!("{}: turn {} waits for its worker", self.role, turn.id()));
                done.next = Some(Next::Waiting(self.role.to_owned()));
                return Ok(done);
            }
            Sent::Worked(worked) => worked,
        };
        let mut done = Done::settled(self.judge(&turn, worked))?;
        if load_state(root, config)?.turn(turn.id()).is_none() {
            done.rest = Rest::All;
        } else {
            done.rest = Rest::Kept;
            set_aside_result(root, &turn)?;
            self.name_attempt(&mut done);
        }
        Ok(done)
    }

    /// Returns what comes of a refused assignment. A hook that said no leaves the run as it was and would be
    /// asked again at once, so the run is blocked.
    fn not_assigned(&self, error: GovernedError) -> Act {
        let Driver { root, config, .. } = self.driver;
        let GovernedError::Hook { report, .. } = &error else { return Done::settled(Err(error)) };
        let stop = report.stop.clone();
        let done = Done::settled(Err(error))?;
        match (stop, done.next(config)) {
            (Some(stop), Next::Turn(_)) => {
                Ok(hooks::blocked_by(root, config, HookPhase::BeforeAssignment, &stop, None)?)
            }
            _ => Ok(done),
        }
    }

    /// Adds where the worker's changes are kept, since the branch has none of them.
    fn name_attempt(&self, done: &mut Done) {
        let Some(name) = self.run_id.and_then(left_out_ref) else { return };
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        if !done.body.is_empty() {
            done.body.push_str("\n\n");
        }
        done.body.push_str(&format!("What it changed is in no file of the branch; {name} keeps it."));
    }

    /// Decides what becomes of a turn whose worker has ended.
    fn judge(&self, turn: &Turn, worked: Worked) -> Result<Done, GovernedError> {
        let Driver { root, config, .. } = self.driver;
        match worked {
            Worked::OutOfTime(time) => return Err(out_of_time(root, config, turn.id(), &time)),
            Worked::Wrong(stage, errors) => return self.rejected(turn, stage, errors),
            Worked::Staged => {}
        }
        let options = AcceptOptions { turn_id: Some(turn.id().to_owned()), ..AcceptOptions::default() };
        match accept_turn(root, config, &options) {
            Ok(accepted) => accepted_as(root, config, accepted),
            // The turn begins again, from the worktree as it is with what was accepted since.
            Err(GovernedError::Conflict { state, .. }) if state.status() != Some(RunStatus::Blocked) => {
                let why = "it conflicts with what was accepted since it was assigned";
                self.rejected(turn, "conflict", vec![why.to_owned()])
            }
            Err(error @ GovernedError::PolicyViolation { escalated: Some(_), .. }) => {
                self.rejected(turn, "protocol", vec![error.to_string()])
            }
            Err(error) => match fault(&error) {
                Some((stage, errors)) => self.rejected(turn, stage, errors),
                None => Err(error),
            },
        }
    }

    fn rejected(&self, turn: &Turn, stage: &'static str, errors: Vec<String>) -> Result<Done, GovernedError> {
        let reason = errors.first().cloned().unwrap_or_else(|| "the result is invalid".to_owned());
        let body = errors.join("\n");
        let rejection =
            Rejection { stage: Some(stage.to_owned()), errors, turn_id: Some(turn.id().to_owned()) };
        let after = reject_turn(self.driver.root, self.driver.config, &rejection, &reason)?;
        let mut done = Done::new(after.state, rejected(self.role, turn.id(), after.escalated));
        done.body = body;
        Ok(done)
    }
}
