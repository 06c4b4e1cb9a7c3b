//! The hooks of `after_dispatch`, which are asked once a turn's bundle is written and before its worker
//! starts.
//!
//! The caller that dispatches asks them; no operation of the boundary does. Implements G5.

use super::Done;
use crate::governed::{
    Block, Config, GovernedError, HookOptions, HookPhase, HookStop, Root, Turn, disk, mark_run_blocked,
    run_hooks,
};
use serde_json::json;
use std::path::Path;

/// Asks the hooks, and returns the one that stopped the dispatch.
///
/// # Errors
/// Those of [`run_hooks`]; a bundle that can't be listed.
pub(crate) fn stopped(
    root: &Root,
    config: &Config,
    run_id: Option<&str>,
    turn: &Turn,
    bundle: &Path,
) -> Result<Option<HookStop>, GovernedError> {
    let files = disk::text_names(root, bundle)?;
    let folder = bundle.strip_prefix(root.folder()).unwrap_or(bundle);
    let options = HookOptions {
        run_id: run_id.map(str::to_owned),
        turn_id: Some(turn.id().to_owned()),
        protected_paths: files.iter().map(|file| folder.join(file)).collect(),
        ..HookOptions::default()
    };
    let payload = json!({
        "turn_id": turn.id(),
        "role_id": turn.role(),
        "bundle_path": folder.to_string_lossy(),
        "bundle_files": files,
    });
    let report = run_hooks(root, config.get("hooks"), HookPhase::AfterDispatch, &payload, &options)?;
    Ok(report.stop.filter(|_| !report.ok))
}

/// Blocks the run for a hook that said no, which would otherwise be asked again at once.
///
/// # Errors
/// Those of [`mark_run_blocked`].
pub(crate) fn blocked_by(
    root: &Root,
    config: &Config,
    phase: HookPhase,
    stop: &HookStop,
    turn: Option<&Turn>,
) -> Result<Done, GovernedError> {
    let on = format!("hook:{}:{}", phase.name(), stop.hook_name);
    let details = Block {
        blocked_on: &on,
        category: if stop.tamper.is_some() { "hook_tamper" } else { "hook_block" },
        turn_id: turn.map(Turn::id),
        config: Some(config),
        ..Block::default()
    };
    let blocked = mark_run_blocked(root, &details)?;
    let mut done =
        Done::new(blocked.state, format!("hook '{}' of '{}' said no", stop.hook_name, phase.name()));
    done.body = stop.message.clone();
    Ok(done)
}
