//! `govern turn`: one turn of a role; the pack's commands call it. It prints the declaration of what comes
//! next to standard output. Implements G6, G7.

use super::super::declare;
use super::super::fail::Failure;
use super::super::session::Global;
use super::Aloud;
use super::args::Turn as Args;
use super::place::doubts;
use crate::app::config::Flags;
use crate::app::govern::KILL_GRACE;
use crate::app::govern::driver::Driver;
use crate::app::govern::next::TURN;
use crate::app::govern::place;
use crate::app::govern::turn::Turning;
use crate::governed::{Config, Root};
use crate::runner::Silent;
use crate::supervisor::interrupt::Interrupt;
use std::time::Duration;

/// Runs `git aynig govern turn`.
pub(crate) fn run(global: &Global, args: &Args) -> Result<i32, Failure> {
    let Scene { root, config, run_id, grace } = scene(global, args)?;
    let role = match &args.role {
        Some(role) => role.clone(),
        None => answered_role()?,
    };
    let driver = Driver { root: &root, config: &config, worker: &args.worker, grace, audience: &Aloud };
    let done = Turning { driver, role: &role, run_id: run_id.as_deref() }.take()?;
    doubts(global, &done.warnings);
    let declared = done.declare(&root, &done.next(&config))?.to_json();
    declare::aloud(&declared)?;
    Ok(0)
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
        let context = place::folder(folder)?;
        let (root, config) = (context.root, context.config);
        return Ok(Scene { root, config, run_id: None, grace: KILL_GRACE });
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
    let context = place::project_inside(&session, &runner, &inside.branch, &here)?;
    let (root, config) = (context.root, context.config);
    Ok(Scene { root, config, run_id: Some(inside.run_id), grace: settings.kill_grace })
}

/// Returns the role whose turn the run's state `turn/<role>` asks for.
fn answered_role() -> Result<String, Failure> {
    let state = std::env::var("AYNIG_STATE").unwrap_or_default();
    state.strip_prefix(TURN).map(str::to_owned).ok_or_else(|| {
        Failure::usage("no role: neither '--role' nor a state 'turn/<role>' names one")
            .hint("git aynig govern turn --role <role>")
    })
}
