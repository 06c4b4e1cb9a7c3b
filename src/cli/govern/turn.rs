//! `govern turn`: one turn of a role, from assignment to acceptance or rejection.
//!
//! What the commands of the pack call. It begins the run where there is none, assigns the turn (or takes the
//! one that is to be done again), writes the dispatch bundle, runs the worker, reads the staged result,
//! accepts or rejects it, and declares what comes next on standard output. The files that all this left in
//! the worktree and the declaration become the branch's next commit, by the kernel's one swap: of two
//! machines that take the same turn one is believed. Implements G6, G7.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::Turn as Args;
use super::dispatch;
use super::next::{Next, TURN, is_dispatchable};
use super::people::accepted_as;
use super::place::{self, Act, Done, failure, settled};
use super::worker::{self, Guarded, Worked, Worker};
use crate::app::config::Flags;
use crate::governed::{
    AcceptOptions, BundleOptions, Config, GovernedError, HookPhase, Rejection, Root, RunStatus, State, Turn,
    accept_turn, assign_turn, get_active_turns, init_run, is_staged, load_state, make_staging, out_of_time,
    read_prompt, reject_turn, set_aside_result, write_dispatch_bundle,
};
use crate::protocol::declaration::{LINE_PREFIX, Rest};
use crate::runner::Silent;
use crate::runner::attempt::left_out_ref;
use crate::store::beneath;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// `git aynig govern turn`.
pub fn run(global: &Global, args: &Args) -> Result<i32, Failure> {
    let Scene { root, config, run_id, grace } = scene(global, args)?;
    let role = match &args.role {
        Some(role) => role.clone(),
        None => answered_role()?,
    };
    let turning = Turning {
        root: &root,
        config: &config,
        role: &role,
        worker: &args.worker,
        run_id: run_id.as_deref(),
        grace,
    };
    let done = turning.run()?;
    let declared = place::declare(&root, &done.next(&config), &done)?.to_json();
    declare_over(&declared)?;
    output::line(&format!("{LINE_PREFIX}{declared}"));
    Ok(0)
}

/// A worker that knows where a declaration may be written instead of printed has not made this one.
fn declare_over(declared: &str) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("AYNIG_RESULT").filter(|path| !path.is_empty()) else { return Ok(()) };
    let (folder, name) = beneath::apart(Path::new(&path)).map_err(|e| Failure::caused(&e))?;
    folder.replace(name, declared.as_bytes(), 0o600).map_err(|e| Failure::caused(&e))
}

/// The project, with the configuration that may be acted on.
struct Scene {
    root: Root,
    config: Config,
    run_id: Option<String>,
    grace: Duration,
}

fn scene(global: &Global, args: &Args) -> Result<Scene, Failure> {
    if let Some(folder) = &args.root {
        let context = super::place::folder(folder)?;
        let (root, config) = (context.root, context.config);
        return Ok(Scene { root, config, run_id: None, grace: worker::KILL_GRACE });
    }
    let session = global.open()?;
    let inside = session.inside().ok_or_else(|| {
        Failure::usage("this is no run: a command of the pack calls 'govern turn'").hint(
            "git aynig govern start; or, in a plain folder: git aynig govern turn --root . --role <role>",
        )
    })?;
    let remote = Some(inside.remote.clone().unwrap_or_else(|| ".".to_owned()));
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    session.require_trust(&settings)?;
    let interrupt = Interrupt::never()?;
    let runner = session.runner(&settings, &interrupt, &Silent)?;
    let here = std::env::current_dir()
        .map_err(|e| Failure::fatal(format!("cannot read the current directory: {e}")))?;
    let context = place::project(&runner, &inside.branch, &here)?;
    let (root, config) = (context.root, context.config);
    Ok(Scene { root, config, run_id: Some(inside.run_id), grace: settings.kill_grace })
}

/// The role whose turn the run's state asks for.
fn answered_role() -> Result<String, Failure> {
    let state = std::env::var("AYNIG_STATE").unwrap_or_default();
    state.strip_prefix(TURN).map(str::to_owned).ok_or_else(|| {
        Failure::usage("no role: neither '--role' nor a state 'turn/<role>' names one")
            .hint("git aynig govern turn --role <role>")
    })
}

struct Turning<'a> {
    root: &'a Root,
    config: &'a Config,
    role: &'a str,
    worker: &'a [OsString],
    /// The kernel's run that we are the command of.
    run_id: Option<&'a str>,
    /// SIGTERM to SIGKILL for its worker.
    grace: Duration,
}

impl Turning<'_> {
    /// Takes the turn; what came of it.
    fn run(&self) -> Act {
        let state = begun(self.root, self.config).map_err(|e| failure(&e))?;
        if let Some(refused) = self.beside(&state) {
            return Err(refused);
        }
        let turn = match get_active_turns(&state).into_values().find(|t| t.role() == self.role) {
            Some(turn) if is_dispatchable(&turn) => turn,
            Some(_) | None => match assign_turn(self.root, self.config, self.role) {
                Ok(assigned) => assigned.turn,
                Err(error) => return self.not_assigned(error),
            },
        };
        let state = load_state(self.root, self.config).map_err(|e| failure(&e))?;
        let options = BundleOptions { turn_id: Some(turn.id().to_owned()), warnings: Vec::new() };
        let bundle =
            write_dispatch_bundle(self.root, &state, self.config, &options).map_err(|e| failure(&e))?;
        let asked = dispatch::stopped(self.root, self.config, state.run_id(), &turn, &bundle.path);
        if let Some(stop) = asked.map_err(|e| failure(&e))? {
            let phase = HookPhase::AfterDispatch;
            let blocked = dispatch::blocked_by(self.root, self.config, phase, &stop, Some(&turn));
            return blocked.map_err(|e| failure(&e));
        }
        let prompt = read_prompt(self.root, turn.id()).map_err(|e| failure(&e))?;
        let Some(worker) = Worker::of(self.worker, self.config, self.role, &prompt, self.grace)? else {
            let state = load_state(self.root, self.config).map_err(|e| failure(&e))?;
            let mut done =
                Done::new(state, format!("{}: turn {} waits for its worker", self.role, turn.id()));
            done.next = Some(Next::Waiting(self.role.to_owned()));
            return Ok(done);
        };
        make_staging(self.root, turn.id()).map_err(|e| failure(&e))?;
        let guarded = Guarded::before(self.root, turn.id()).map_err(|e| failure(&e))?;
        let ended = worker.run(self.root, self.config, &state, &bundle.turn)?;
        let meddled = guarded.after(self.root).map_err(|e| failure(&e))?;
        let staged = is_staged(self.root, turn.id()).map_err(|e| failure(&e))?;
        let mut done = settled(self.judge(&turn, ended, staged, meddled))?;
        if self.is_accepted(&turn)? {
            done.rest = Rest::All;
        } else {
            done.rest = Rest::Kept;
            set_aside_result(self.root, &turn).map_err(|e| failure(&e))?;
            self.name_attempt(&mut done);
        }
        Ok(done)
    }

    /// Why its worker may not be started, where there is one.
    fn beside(&self, state: &State) -> Option<Failure> {
        let is_ours = !self.worker.is_empty() || self.config.runtime_type_of(self.role) == "local_cli";
        is_ours.then(|| worker::beside(self.root, state, self.role)).flatten()
    }

    /// A hook that said no to the assignment leaves the run as it was, and would be asked again at once.
    fn not_assigned(&self, error: GovernedError) -> Act {
        let GovernedError::Hook { report, .. } = &error else { return settled(Err(error)) };
        let stop = report.stop.clone();
        let done = settled(Err(error))?;
        match (stop, done.next(self.config)) {
            (Some(stop), Next::Turn(_)) => {
                let phase = HookPhase::BeforeAssignment;
                dispatch::blocked_by(self.root, self.config, phase, &stop, None).map_err(|e| failure(&e))
            }
            _ => Ok(done),
        }
    }

    /// True once the turn is over.
    fn is_accepted(&self, turn: &Turn) -> Result<bool, Failure> {
        let state = load_state(self.root, self.config).map_err(|e| failure(&e))?;
        Ok(state.turn(turn.id()).is_none())
    }

    /// Says where what the worker did is found: the branch has none of it.
    fn name_attempt(&self, done: &mut Done) {
        let Some(name) = self.run_id.and_then(left_out_ref) else { return };
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        if !done.body.is_empty() {
            done.body.push_str("\n\n");
        }
        done.body.push_str(&format!("What it changed is not on the branch; {name} keeps it."));
    }

    /// What becomes of the turn whose worker has ended.
    fn judge(
        &self,
        turn: &Turn,
        ended: Worked,
        staged: bool,
        meddled: Vec<String>,
    ) -> Result<Done, GovernedError> {
        let ended = match ended {
            Worked::OutOfTime(time) => return Err(out_of_time(self.root, self.config, turn.id(), &time)),
            Worked::Ended(ended) => ended,
        };
        if !meddled.is_empty() {
            return self.rejected(turn, "artifact", meddled);
        }
        if !ended.is_success() {
            return self.rejected(turn, "dispatch", vec![format!("its worker failed ({ended})")]);
        }
        if !staged {
            return self.rejected(turn, "dispatch", vec!["the worker left no result".to_owned()]);
        }
        let options = AcceptOptions { turn_id: Some(turn.id().to_owned()), ..AcceptOptions::default() };
        match accept_turn(self.root, self.config, &options) {
            Ok(accepted) => Ok(accepted_as(accepted)),
            Err(GovernedError::InvalidResult(validation)) => {
                let stage = validation.stage.map_or("schema", |stage| stage.name());
                self.rejected(turn, stage, validation.errors.clone())
            }
            // It begins again, from the worktree as it is with what was accepted since.
            Err(GovernedError::Conflict { state, .. }) if state.status() != Some(RunStatus::Blocked) => {
                let why = "it conflicts with what was accepted since it was assigned";
                self.rejected(turn, "conflict", vec![why.to_owned()])
            }
            Err(error @ (GovernedError::OverrideRefused { .. } | GovernedError::PolicyViolation { .. })) => {
                self.rejected(turn, "protocol", vec![error.to_string()])
            }
            Err(error) => Err(error),
        }
    }

    fn rejected(&self, turn: &Turn, stage: &str, errors: Vec<String>) -> Result<Done, GovernedError> {
        let reason = errors.first().cloned().unwrap_or_else(|| "the result is invalid".to_owned());
        let body = errors.join("\n");
        let rejection =
            Rejection { stage: Some(stage.to_owned()), errors, turn_id: Some(turn.id().to_owned()) };
        let rejected = reject_turn(self.root, self.config, &rejection, &reason)?;
        let what = if rejected.escalated { "rejected for good" } else { "rejected" };
        let mut done = Done::new(rejected.state, format!("{}: turn {} {what}", self.role, turn.id()));
        done.body = body;
        Ok(done)
    }
}

/// The run's state; a project without a run gets one.
pub fn begun(root: &Root, config: &Config) -> Result<State, GovernedError> {
    match load_state(root, config) {
        Ok(state) if state.run_id().is_none() => Ok(init_run(root, config)?.state),
        Err(GovernedError::NoState { .. }) => Ok(init_run(root, config)?.state),
        Ok(state) => Ok(state),
        Err(error) => Err(error),
    }
}
