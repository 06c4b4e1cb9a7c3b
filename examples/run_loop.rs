//! Proof 3 of the governed boundary: the same run, driven by the run loop.
//!
//! The loop assigns, dispatches, rejects, accepts and asks for approvals; this program only says who goes next
//! and does the work. Run it with `cargo run --example run_loop`; it ends with 0 where all holds.

#[path = "to_completion.rs"]
#[allow(dead_code, reason = "the project and its workers are taken, not the proof")]
mod to_completion;

use aynig::governed::{Config, GateKind, Root, RunStatus, State};
use aynig::run_loop::{
    Callbacks, Dispatch, Dispatched, Failure, LoopEvent, LoopOptions, StopReason, run_loop,
};
use std::error::Error;
use std::path::Path;
use to_completion::{commit, config, repository, work};

type Proof = Result<(), Box<dyn Error>>;

fn check(holds: bool, what: &str) -> Proof {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}").into()) }
}

/// One worker for all roles, who fails the developer's first attempt.
struct Worker<'a> {
    folder: &'a Path,
    events: Vec<&'static str>,
}

impl Callbacks for Worker<'_> {
    fn select_role(&mut self, state: &State, config: &Config) -> Result<Option<String>, Failure> {
        let entry = || config.get("routing")?.get(state.phase()?)?.get("entry_role")?.as_str();
        Ok(state.next_recommended_role().or_else(entry).map(str::to_owned))
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, Failure> {
        if dispatch.turn.role() == "dev" && dispatch.turn.attempt() == 1 {
            return Ok(Dispatched::Reject("the build broke".to_owned()));
        }
        let result = work(self.folder, dispatch.state, dispatch.turn).map_err(|error| error.to_string())?;
        Ok(Dispatched::Accept(result))
    }

    fn approve_gate(&mut self, _kind: GateKind, _state: &State) -> Result<bool, Failure> {
        Ok(true)
    }

    fn on_event(&mut self, event: &LoopEvent) -> Result<(), Failure> {
        self.events.push(event.name());
        match event {
            LoopEvent::TurnAccepted { turn } => {
                Ok(commit(self.folder, turn.id()).map_err(|e| e.to_string())?)
            }
            LoopEvent::TurnAssigned { .. }
            | LoopEvent::TurnRejected { .. }
            | LoopEvent::TurnConflicted { .. }
            | LoopEvent::GatePaused { .. }
            | LoopEvent::GateApproved { .. }
            | LoopEvent::GateHeld { .. }
            | LoopEvent::Blocked
            | LoopEvent::Completed
            | LoopEvent::CallerStopped => Ok(()),
        }
    }
}

/// Proves it in an empty folder.
pub fn prove(folder: &Path) -> Proof {
    repository(folder)?;
    let config = Config::from_value(config()).ok_or("the configuration is an object")?;
    let mut worker = Worker { folder, events: Vec::new() };
    let report = run_loop(&Root::new(folder), &config, &mut worker, &LoopOptions::default());
    check(report.errors.is_empty(), &format!("nothing goes wrong: {:?}", report.errors))?;
    check(report.ok() && report.stop_reason == StopReason::Completed, "the run is completed")?;
    check(report.turns_executed == 3, "three turns were accepted")?;
    check(report.gates_approved == 2, "two gates were approved")?;
    let accepted: Vec<&str> =
        report.turn_history.iter().filter(|turn| turn.accepted).map(|turn| turn.role.as_str()).collect();
    check(accepted == ["pm", "dev", "qa"], "by the three roles in their order")?;
    let dev: Vec<_> = report.turn_history.iter().filter(|turn| turn.role == "dev").collect();
    check(dev.len() == 2 && dev[0].turn_id == dev[1].turn_id, "the developer's two attempts are one turn")?;
    check(report.turn_history.iter().filter(|turn| !turn.accepted).count() == 1, "one attempt was rejected")?;
    let status = report.state.and_then(|state| state.status());
    check(status == Some(RunStatus::Completed), "the state says so")?;
    for event in
        ["turn_assigned", "turn_accepted", "turn_rejected", "gate_paused", "gate_approved", "completed"]
    {
        check(worker.events.contains(&event), &format!("{event} was told"))?;
    }
    Ok(())
}

/// Proves it in a folder of its own, and says so.
#[allow(dead_code, reason = "a test calls the proof itself")]
fn main() -> Proof {
    let folder = std::env::temp_dir().join(format!("aynig-run-loop-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let proved = prove(&folder);
    std::fs::remove_dir_all(&folder)?;
    proved?;
    println!("run loop: completed, with one rejection and two approvals");
    Ok(())
}
