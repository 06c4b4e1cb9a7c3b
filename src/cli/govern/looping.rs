//! `govern loop`: takes turns in a plain folder until somebody is needed. The loop itself is
//! [`crate::run_loop`]; here are its answers from a command line. Implements G8, G9.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::Loop;
use super::dispatch;
use super::next::role_after;
use super::place::{self, folder};
use super::worker::{self, Guarded, Worked, Worker};
use crate::governed::{
    Config, GateKind, State, is_staged, load_state, make_staging, out_of_time, read_prompt, set_aside_result,
};
use crate::protocol::text::escape;
use crate::run_loop::{self, Callbacks, Dispatch, Dispatched, LoopEvent, LoopOptions, run_loop};
use serde_json::json;
use std::ffi::OsString;

struct Answers<'a> {
    worker: &'a [OsString],
    approve: bool,
    quiet: bool,
}

impl Callbacks for Answers<'_> {
    fn select_role(&mut self, state: &State, config: &Config) -> Result<Option<String>, run_loop::Failure> {
        Ok(role_after(state, config))
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, run_loop::Failure> {
        let prompt = read_prompt(dispatch.root, dispatch.turn.id())?;
        let role = dispatch.turn.role();
        if let Some(refused) = worker::beside(dispatch.root, dispatch.state, role) {
            return Err(refused.message.into());
        }
        let worker = Worker::of(self.worker, dispatch.config, role, &prompt, worker::KILL_GRACE);
        let worker = worker.map_err(|f| f.message)?;
        let Some(worker) = worker else {
            return Ok(Dispatched::Blocked(format!("{role} has a worker of its own")));
        };
        let (root, config, turn) = (dispatch.root, dispatch.config, dispatch.turn);
        let run_id = dispatch.state.run_id();
        if let Some(stop) = dispatch::stopped(root, config, run_id, turn, dispatch.bundle_path)? {
            return Ok(Dispatched::Blocked(format!("hook '{}' said no: {}", stop.hook_name, stop.message)));
        }
        make_staging(dispatch.root, dispatch.turn.id())?;
        let guarded = Guarded::before(root, turn.id())?;
        let ended = worker.run(root, config, dispatch.state, turn).map_err(|f| f.message)?;
        let meddled = guarded.after(root)?;
        let ended = match ended {
            Worked::OutOfTime(time) => {
                let why = out_of_time(root, config, turn.id(), &time).to_string();
                set_aside_result(root, turn)?;
                return Ok(Dispatched::BlockedAlready(why));
            }
            Worked::Ended(ended) => ended,
        };
        if let Some(meddled) = meddled.into_iter().next() {
            return Ok(Dispatched::Reject(meddled));
        }
        Ok(match (ended.is_success(), is_staged(root, turn.id())?) {
            (false, _) => Dispatched::Reject(format!("its worker failed ({ended})")),
            (true, false) => Dispatched::Reject("the worker left no result".to_owned()),
            (true, true) => Dispatched::Staged,
        })
    }

    fn approve_gate(&mut self, _: GateKind, _: &State) -> Result<bool, run_loop::Failure> {
        Ok(self.approve)
    }

    fn on_event(&mut self, event: &LoopEvent) -> Result<(), run_loop::Failure> {
        if !self.quiet {
            output::note(event.name());
        }
        Ok(())
    }
}

/// `git aynig govern loop`.
pub fn run(global: &Global, args: &Loop) -> Result<i32, Failure> {
    let context = folder(&args.root)?;
    // Whoever began the run has heard it.
    if !load_state(&context.root, &context.config).is_ok_and(|state| state.run_id().is_some()) {
        place::warn(global, &context.warnings);
    }
    let mut answers =
        Answers { worker: &args.worker, approve: args.approve, quiet: global.quiet || args.json };
    let options = LoopOptions { max_turns: Some(args.max_turns), reject_invalid: true };
    let report = run_loop(&context.root, &context.config, &mut answers, &options);
    if args.json {
        let history: Vec<_> = report
            .turn_history
            .iter()
            .map(|t| {
                json!({
                    "role": t.role, "turn_id": t.turn_id, "attempt": t.attempt, "accepted": t.accepted,
                    "reason": t.reason,
                })
            })
            .collect();
        let object = json!({
            "schema": "aynig.govern/1",
            "ok": report.ok(),
            "stop_reason": report.stop_reason.name(),
            "turns_executed": report.turns_executed,
            "turn_history": history,
            "gates_approved": report.gates_approved,
            "errors": report.errors,
            "run": report.state.as_ref().map(State::to_value),
        });
        output::line(&output::json(&object));
    } else {
        for error in &report.errors {
            output::note(&format!("error: {}", escape(error.as_bytes())));
        }
        let turns = report.turns_executed;
        output::line(&format!("{}: {turns} turns accepted", report.stop_reason.name()));
    }
    Ok(if report.ok() { 0 } else { 1 })
}
