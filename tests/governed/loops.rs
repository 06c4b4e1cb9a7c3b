//! The run loop: every reason to stop (G9).

use crate::rig::Project;
use aynig::governed::*;
use aynig::run_loop::*;
use serde_json::{Value, json};

type Do<'a> = Box<dyn FnMut(&Dispatch<'_>) -> Result<Dispatched, Failure> + 'a>;

struct Caller<'a> {
    role: Option<&'static str>,
    fails_to_select: bool,
    approves: Result<bool, &'static str>,
    work: Do<'a>,
    events: Vec<&'static str>,
}

impl<'a> Caller<'a> {
    fn new(work: impl FnMut(&Dispatch<'_>) -> Result<Dispatched, Failure> + 'a) -> Self {
        Self {
            role: Some("pm"),
            fails_to_select: false,
            approves: Ok(true),
            work: Box::new(work),
            events: Vec::new(),
        }
    }
}

impl Callbacks for Caller<'_> {
    fn select_role(&mut self, state: &State, _config: &Config) -> Result<Option<String>, Failure> {
        if self.fails_to_select {
            return Err("nobody knows".into());
        }
        Ok(self.role.map(|role| state.next_recommended_role().unwrap_or(role).to_owned()))
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, Failure> {
        (self.work)(dispatch)
    }

    fn approve_gate(&mut self, _kind: GateKind, _state: &State) -> Result<bool, Failure> {
        self.approves.map_err(Into::into)
    }

    fn on_event(&mut self, event: &LoopEvent) -> Result<(), Failure> {
        self.events.push(event.name());
        Err("nobody listens".into())
    }
}

fn result(dispatch: &Dispatch<'_>, more: Value) -> Dispatched {
    let turn = dispatch.turn;
    let mut result = json!({
        "schema_version": "1.0", "run_id": dispatch.state.run_id(), "turn_id": turn.id(), "role": turn.role(),
        "runtime_id": turn.runtime(), "status": "completed", "summary": "s", "decisions": [], "objections": [],
        "files_changed": [], "verification": { "status": "skipped" }, "proposed_next_role": "pm",
        "artifact": { "type": if turn.role() == "pm" { "review" } else { "workspace" } },
    });
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Dispatched::Accept(result)
}

fn drive(project: &Project, caller: &mut Caller<'_>, max_turns: u64) -> LoopReport {
    run_loop(
        &project.root(),
        &project.config,
        caller,
        &LoopOptions { max_turns: Some(max_turns), ..LoopOptions::default() },
    )
}

#[test]
fn a_loop_has_its_turns_and_goes_on_where_another_stopped() {
    let project = Project::new();
    let mut caller = Caller::new(|dispatch| Ok(result(dispatch, json!({}))));
    let report = drive(&project, &mut caller, 2);
    assert_eq!((report.stop_reason, report.turns_executed), (StopReason::MaxTurnsReached, 2));
    assert!(!report.ok() && report.turn_history.iter().all(|turn| turn.accepted));
    // A listener that fails is noted, and nothing else.
    assert!(report.errors.iter().all(|error| error.contains("nobody listens")));
    let report = drive(&project, &mut caller, 1);
    assert_eq!((report.turns_executed, project.lines("history.jsonl").len()), (1, 3));
}

#[test]
fn gates_are_approved_held_or_not_answered() {
    for (approves, wanted) in [
        (Ok(true), StopReason::Completed),
        (Ok(false), StopReason::GateHeld),
        (Err("gone"), StopReason::Blocked),
    ] {
        let project = Project::new();
        project.write("plan.md", "x");
        let mut caller = Caller::new(|dispatch| {
            let is_plan = dispatch.state.phase() == Some("plan");
            let more = if is_plan {
                json!({ "phase_transition_request": "build", "proposed_next_role": "dev" })
            } else {
                json!({ "run_completion_request": true })
            };
            Ok(result(dispatch, more))
        });
        caller.approves = approves;
        let report = drive(&project, &mut caller, 9);
        assert_eq!(report.stop_reason, wanted, "{:?}", report.errors);
        assert_eq!(report.gates_approved, u64::from(wanted == StopReason::Completed));
        assert!(caller.events.contains(&"gate_paused"));
        assert_eq!(
            report.state.unwrap().status() == Some(RunStatus::Completed),
            wanted == StopReason::Completed
        );
    }
}

#[test]
fn nobody_next_stops_the_loop() {
    let mut caller = Caller::new(|_| Err("never".into()));
    caller.role = None;
    let report = drive(&Project::new(), &mut caller, 9);
    assert_eq!(report.stop_reason, StopReason::CallerStopped);
    caller.fails_to_select = true;
    assert_eq!(drive(&Project::new(), &mut caller, 9).stop_reason, StopReason::DispatchError);
}

#[test]
fn a_dispatch_that_fails_leaves_the_turn_to_the_next_loop() {
    let project = Project::new();
    let report = drive(&project, &mut Caller::new(|_| Err("no network".into())), 9);
    assert_eq!(report.stop_reason, StopReason::DispatchError);
    let turn = get_active_turn(&project.state()).unwrap();
    let mut seen = Vec::new();
    let report = drive(
        &project,
        &mut Caller::new(|dispatch| {
            seen.push(dispatch.turn.id().to_owned());
            Ok(result(dispatch, json!({})))
        }),
        1,
    );
    assert_eq!(report.turns_executed, 1);
    assert_eq!(seen, [turn.id()]);
}

#[test]
fn rejections_end_where_the_attempts_do() {
    let project = Project::new();
    let mut caller = Caller::new(|_| Ok(Dispatched::Reject("broken".into())));
    let report = drive(&project, &mut caller, 9);
    assert_eq!(report.stop_reason, StopReason::RejectExhausted);
    assert_eq!(report.turn_history.len(), 2, "the last attempt is told as well");
    assert_eq!(project.state().blocked_on(), Some("escalation:retries-exhausted:pm"));
    let report = drive(&project, &mut caller, 9);
    assert_eq!(report.stop_reason, StopReason::Blocked);
    reactivate_run(&project.root(), &project.state(), &Reactivation::default()).unwrap();
    let report = drive(&project, &mut Caller::new(|dispatch| Ok(result(dispatch, json!({})))), 1);
    assert_eq!(report.turns_executed, 1, "{:?}", report.errors);
}

#[test]
fn what_can_not_be_done_blocks_the_run() {
    let project = Project::new();
    let report = drive(&project, &mut Caller::new(|_| Ok(Dispatched::Blocked("no key".into()))), 9);
    assert_eq!(report.stop_reason, StopReason::Blocked);
    assert_eq!(project.state().blocked_on(), Some("dispatch:no key"));
    let project = Project::new();
    let report =
        drive(&project, &mut Caller::new(|dispatch| Ok(result(dispatch, json!({ "status": "odd" })))), 9);
    assert_eq!((report.stop_reason, report.turn_history.len()), (StopReason::Blocked, 1));
    assert_eq!(project.state().status(), Some(RunStatus::Active), "the turn can still be rejected");
}

#[test]
fn a_run_that_can_not_begin_says_so() {
    let project = Project::new();
    // Idle, and yet with a turn: no caller can tell what to do with it.
    let state = json!({
        "schema_version": "1.1", "project_id": "rig", "run_id": "run_1", "status": "idle", "phase": "plan", "turn_sequence": 1,
        "active_turns": { "turn_1": { "turn_id": "turn_1", "assigned_role": "pm", "status": "running", "runtime_id": "manual", "attempt": 1, "assigned_sequence": 1 } },
    });
    project.write(".agentxchain/state.json", &state.to_string());
    let report = drive(&project, &mut Caller::new(|_| Err("never".into())), 9);
    assert_eq!(report.stop_reason, StopReason::InitFailed, "{:?}", report.errors);
    project.write(".agentxchain/state.json", "{");
    let report = drive(&project, &mut Caller::new(|_| Err("never".into())), 9);
    assert_eq!((report.stop_reason, report.state), (StopReason::Blocked, None));
}
