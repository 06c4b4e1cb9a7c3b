//! Governed runs: roles take turns, gates guard the ends of phases, and people approve. A library with a
//! declared boundary.
//!
//! The public items of this module are the boundary, version [`RUNNER_INTERFACE_VERSION`]; nothing else is. A
//! run is: `load_context` and `load_state`, `init_run` or `reactivate_run`, then again and again
//! `assign_turn`, `write_dispatch_bundle` (or a dispatch of the caller's own), a result staged by
//! `stage_turn_result`, `accept_turn` or `reject_turn`, and `approve_phase_gate` or `approve_completion_gate`
//! where an approval is pending. [`crate::run_loop`] is that loop as a library.
//!
//! Acceptance is destructive: the turn's dispatch and staging folders are gone when it returns, so a caller
//! copies what it wants to keep before. Every change is made under one lock and as a whole, even where the
//! process is killed. A refused operation changes nothing; [`GovernedError`] names the errors that do record
//! something. Two signatures differ on purpose from other implementations of 0.2:
//! [`get_max_concurrent_turns`] needs the phase, and the lock is a value ([`LockGuard`]). Loaders return an
//! error that says what is wrong, where those answer null. Inside, `next_state` holds every transition.
//! Implements G1-G5.
//! One turn, from a folder with `agentxchain.json` to the end of the run:
//!
//! ```
//! use aynig::governed::*;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let folder = scratch.path();
//! # assert!(std::process::Command::new("git").args(["init", "-q"]).current_dir(folder).status()?.success());
//! # let config = json!({
//! #     "schema_version": "1.0",
//! #     "project": { "id": "example", "name": "Example" },
//! #     "roles": { "dev": {
//! #         "title": "Developer", "mandate": "Build it", "write_authority": "authoritative", "runtime": "by-hand",
//! #     } },
//! #     "runtimes": { "by-hand": { "type": "manual" } },
//! #     "routing": { "work": { "entry_role": "dev", "allowed_next_roles": ["dev", "human"], "exit_gate": "ship" } },
//! #     "gates": { "ship": { "requires_human_approval": true } },
//! #     "rules": { "challenge_required": false },
//! # });
//! # std::fs::write(folder.join("agentxchain.json"), config.to_string())?;
//! # let commit = "git add -A && git -c user.name=A -c user.email=a@example.com commit -qm begin";
//! # assert!(std::process::Command::new("sh").args(["-c", commit]).current_dir(folder).status()?.success());
//! let Context { root, config, .. } = load_context(&Root::new(folder))?;
//! init_run(&root, &config)?;
//! let Assigned { state, turn, .. } = assign_turn(&root, &config, "dev")?;
//! let bundle = write_dispatch_bundle(&root, &state, &config, &BundleOptions::default())?;
//!
//! // A worker is given the bundle's PROMPT.md, works in the folder, and tells of it.
//! assert!(bundle.path.join("PROMPT.md").is_file());
//! std::fs::write(folder.join("feature"), "the feature\n")?;
//! let result = json!({
//!     "schema_version": "1.0", "run_id": state.run_id(), "turn_id": turn.id(),
//!     "role": turn.role(), "runtime_id": turn.runtime(), "status": "completed",
//!     "summary": "Built it", "files_changed": ["feature"], "objections": [],
//!     "decisions": [{
//!         "id": "DEC-001", "category": "implementation", "statement": "One file", "rationale": "Enough",
//!     }],
//!     "verification": { "status": "pass" }, "artifact": { "type": "workspace", "ref": null },
//!     "proposed_next_role": "human", "run_completion_request": true,
//! });
//! stage_turn_result(&root, turn.id(), &result)?;
//!
//! match accept_turn(&root, &config, &AcceptOptions::default()) {
//!     Ok(Accepted { accepted, .. }) => {
//!         assert_eq!((accepted.role(), accepted.decisions()[0].statement()), ("dev", "One file"));
//!     }
//!     // It is done again, by the worker that is given the next bundle.
//!     Err(GovernedError::InvalidResult(why)) => {
//!         reject_turn(&root, &config, &Rejection::default(), &why.errors.join("; "))?;
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! if load_state(&root, &config)?.pending_run_completion().is_some() {
//!     approve_completion_gate(&root, &config)?;
//! }
//! assert_eq!(load_state(&root, &config)?.status(), Some(RunStatus::Completed));
//! # Ok(())
//! # }
//! ```

mod bundle;
pub(crate) mod config;
mod conflict;
#[cfg(test)]
#[path = "../../tests/crash/mod.rs"]
mod crash;
pub(crate) mod disk;
mod error;
mod events;
pub(crate) mod gate;
mod history;
pub(crate) mod hooks;
mod http;
pub(crate) mod journal;
pub(crate) mod json;
mod ledger;
pub(crate) mod lenient;
mod limits;
pub(crate) mod lines;
pub(crate) mod lock;
pub(crate) mod next;
mod notify;
pub(crate) mod observe;
mod ops;
pub(crate) mod outcome;
mod own;
mod policy;
mod prompt;
mod records;
mod redo;
mod root;
mod staging;
pub(crate) mod state;
pub(crate) mod time;

pub use bundle::{Bundle, BundleOptions, write_dispatch_bundle};
pub use config::{Config, Context, get_max_concurrent_turns, load_context};
pub(crate) use config::{context_here, context_of};
pub use conflict::Conflict;
pub use error::GovernedError;
pub use gate::{GateAction, GateKind, GateResult};
pub use hooks::{HookOptions, HookPhase, HookReport, HookStop, run_hooks};
pub(crate) use limits::{TimeLeft, time_left};
pub use lock::{LockGuard, acquire_lock, release_lock};
pub use next::{Refusal, Verb};
pub use notify::{Notified, emit_notifications};
pub use ops::accept::{AcceptOptions, Accepted, Resolution, accept_turn};
pub use ops::approve::{CompletionApproved, PhaseApproved, approve_completion_gate, approve_phase_gate};
pub use ops::assign::{Assigned, assign_turn};
pub use ops::block::{Block, Blocked, Escalated, Escalation, escalate, mark_run_blocked};
pub(crate) use ops::init::init_next_run;
pub use ops::init::{Initialized, Reactivated, Reactivation, init_run, reactivate_run};
pub(crate) use ops::out_of_time;
pub use ops::reject::{Rejected, Rejection, reject_turn};
pub use outcome::{Stage, Validation};
pub(crate) use own::{Own, brings_work, forget_work, own_paths};
pub use records::{Decision, HistoryEntry, PendingCompletion, PendingTransition};
pub use root::Root;
pub use staging::stage_turn_result;
pub(crate) use staging::{
    Left, RESULT_MAX, left, make_staging, read_prompt, set_aside_result, stage_again, stage_result, too_long,
};
pub use state::{
    RunStatus, State, Turn, TurnStatus, get_active_turn, get_active_turn_count, get_active_turns,
    get_turn_staging_result_path, load_state,
};
pub(crate) use state::{STATE_MAX, dispatch_folder, state_of};

pub(crate) use error::io;

/// The version of this boundary: it changes with every operation that is added, removed or broken.
pub const RUNNER_INTERFACE_VERSION: &str = "0.2";
