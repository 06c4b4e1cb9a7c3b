//! The acts of people on a governed run: each is one operation of the boundary. Implements G8.

use super::super::fail::Failure;
use super::super::session::Global;
use super::args::{Accept, Assign, Block, Escalate, Look, Reject, Unblock};
use super::dispatch;
use super::next::role_after;
use super::place::{Done, change};
use crate::governed::{
    self, AcceptOptions, BundleOptions, Config, GovernedError, HookPhase, Reactivation, Rejection,
    Resolution, Root, get_active_turn, get_turn_staging_result_path, load_state, write_dispatch_bundle,
};
use serde_json::json;
use std::io::Read;

/// `govern assign`.
pub fn assign(global: &Global, args: &Assign) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let state = load_state(root, config)?;
        let role = args.role.clone().or_else(|| role_after(&state, config)).unwrap_or_default();
        let assigned = governed::assign_turn(root, config, &role)?;
        let options =
            BundleOptions { turn_id: Some(assigned.turn.id().to_owned()), warnings: assigned.warnings };
        let bundle = write_dispatch_bundle(root, &assigned.state, config, &options)?;
        let run_id = assigned.state.run_id();
        if let Some(stop) = dispatch::stopped(root, config, run_id, &bundle.turn, &bundle.path)? {
            let phase = HookPhase::AfterDispatch;
            return dispatch::blocked_by(root, config, phase, &stop, Some(&bundle.turn));
        }
        let state = load_state(root, config)?;
        let mut done = Done::new(state, format!("{role}: turn {} assigned", assigned.turn.id()));
        done.facts = json!({
            "turn": bundle.turn.to_value(),
            "dispatch": format!(".agentxchain/dispatch/turns/{}", bundle.turn.id()),
            "staging": get_turn_staging_result_path(bundle.turn.id()),
        });
        Ok(done)
    })
}

/// `govern accept`.
pub fn accept(global: &Global, args: &Accept) -> Result<i32, Failure> {
    let given = args.file.as_ref().map(|path| read(path)).transpose()?;
    change(global, &args.place, |root, config| {
        if let Some(result) = &given {
            stage(root, config, args.turn.as_deref(), result)?;
        }
        let resolution = if args.human_merge { Resolution::HumanMerge } else { Resolution::Standard };
        let options = AcceptOptions { turn_id: args.turn.clone(), resolution };
        let accepted = governed::accept_turn(root, config, &options)?;
        Ok(accepted_as(accepted))
    })
}

/// What an acceptance is to whoever reads the history.
pub fn accepted_as(accepted: governed::Accepted) -> Done {
    let entry = accepted.accepted;
    let happened = format!("{}: turn {} accepted", entry.role(), entry.turn_id());
    let mut done = Done::new(accepted.state, happened);
    done.body = entry.summary().to_owned();
    done.facts = json!({ "accepted": entry.to_value() });
    done
}

/// Puts a result where its turn's is staged.
///
/// # Errors
/// A turn whose id is no file name; a folder that can't be written.
pub fn stage(root: &Root, config: &Config, turn: Option<&str>, result: &[u8]) -> Result<(), GovernedError> {
    let state = load_state(root, config)?;
    let id = turn.map(str::to_owned).or_else(|| get_active_turn(&state).map(|turn| turn.id().to_owned()));
    let Some(id) = id.filter(|id| state.turn(id).is_some()) else { return Ok(()) };
    governed::stage_result(root, &id, result)
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map(drop)
    };
    read.map_err(|e| Failure::fatal(format!("cannot read '{}': {e}", path.display())))?;
    Ok(bytes)
}

/// `govern reject`.
pub fn reject(global: &Global, args: &Reject) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let rejection = Rejection {
            stage: Some("human".to_owned()),
            errors: vec![args.message.clone()],
            turn_id: args.turn.clone(),
        };
        let rejected = governed::reject_turn(root, config, &rejection, &args.message)?;
        let what = if rejected.escalated { "rejected for good" } else { "rejected" };
        let happened = format!("{}: turn {} {what}", rejected.turn.role(), rejected.turn.id());
        let mut done = Done::new(rejected.state, happened);
        done.body = args.message.clone();
        done.facts = json!({ "turn": rejected.turn.to_value(), "escalated": rejected.escalated });
        Ok(done)
    })
}

/// `govern approve-phase`.
pub fn approve_phase(global: &Global, args: &Look) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let approved = governed::approve_phase_gate(root, config)?;
        let passed = approved.transition;
        let happened = format!("phase {} approved: {} is over", passed.to(), passed.from());
        let mut done = Done::new(approved.state, happened);
        done.facts = json!({ "transition": passed.to_value() });
        Ok(done)
    })
}

/// `govern approve-completion`.
pub fn approve_completion(global: &Global, args: &Look) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let approved = governed::approve_completion_gate(root, config)?;
        let mut done = Done::new(approved.state, "completion approved: the run is over");
        done.facts = json!({ "completion": approved.completion.to_value() });
        Ok(done)
    })
}

/// `govern block`.
pub fn block(global: &Global, args: &Block) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let on = format!("human:{}", args.message);
        let details = governed::Block {
            blocked_on: &on,
            category: "needs_human",
            config: Some(config),
            ..governed::Block::default()
        };
        let blocked = governed::mark_run_blocked(root, &details)?;
        Ok(Done::new(blocked.state, format!("blocked: {}", args.message)))
    })
}

/// `govern unblock`.
pub fn unblock(global: &Global, args: &Unblock) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let state = load_state(root, config)?;
        let details = Reactivation {
            via: Some("git aynig govern unblock"),
            note: args.message.as_deref(),
            config: Some(config),
        };
        let reactivated = governed::reactivate_run(root, &state, &details)?;
        let mut done = Done::new(reactivated.state, "unblocked");
        done.body = args.message.clone().unwrap_or_default();
        Ok(done)
    })
}

/// `govern escalate`.
pub fn escalate(global: &Global, args: &Escalate) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        let details = governed::Escalation {
            reason: &args.message,
            turn_id: args.turn.as_deref(),
            ..governed::Escalation::default()
        };
        let escalated = governed::escalate(root, config, &details)?;
        Ok(Done::new(escalated.state, format!("escalated: {}", args.message)))
    })
}
