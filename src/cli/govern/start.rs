//! `govern start`: a run on a branch, with a command for each role.
//!
//! The commands go where commands are taken from. Where the branch's own are trusted, that is the branch;
//! where a ref is, they must be on it before a run is begun, and are written into the working tree for
//! whoever may commit there. Nothing that exists is overwritten. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::{Start, Where};
use super::merges;
use super::next::{Next, TURN};
use super::place::{self, Done};
use super::turn::begun;
use crate::app::config::Flags;
use crate::governed::{Config, GovernedError, Root, RunStatus, disk, init_next_run, init_run, load_state};
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, shell_word};
use crate::runner::resolve::Resolved;
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, Silent, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::path::Path;

/// The command of a role.
const COMMAND: &str = "#!/bin/sh
# Takes one turn of a governed run. The worker is the command of the role's runtime in agentxchain.json;
# put another one behind '--' to have that do the work.
exec git aynig govern turn
";
/// What of the run's files is nobody's but a process's at work.
const IGNORED: &str = "/locks/\n/transactions/\n";

/// `git aynig govern start`.
pub fn run(global: &Global, args: &Start) -> Result<i32, Failure> {
    if args.place.root.is_some() {
        return place::change_or_begin(global, &args.place, true, |root, config| {
            begin(root, config, args.role.as_deref(), false)
        });
    }
    prepare(global, &args.place).map_err(|failed| args.place.there(failed))?;
    let adopts = is_another_tools(global, &args.place)?;
    place::change_or_begin(global, &args.place, true, |root, config| {
        scaffold(root, config)?;
        let mut begun = begin(root, config, args.role.as_deref(), adopts)?;
        begun.paths.push(".aynig/command/turn".to_owned());
        Ok(begun)
    })
}

/// Begins a run, or takes one up (`adopts`) that another tool of the format began and no state of the branch's says.
fn begin(root: &Root, config: &Config, role: Option<&str>, adopts: bool) -> Result<Done, GovernedError> {
    if let Some(role) = role
        && !config.roles().any(|known| known == role)
    {
        return Err(GovernedError::NoSuchRole { role: role.to_owned() });
    }
    // One that is under way is refused by the operation itself.
    let state = match load_state(root, config) {
        Ok(state) if state.status() == Some(RunStatus::Completed) => init_next_run(root, config)?.state,
        Ok(state) if state.run_id().is_some() && adopts => {
            let run = state.run_id().unwrap_or_default().to_owned();
            return Ok(Done::new(state, format!("run {run} taken up")));
        }
        Ok(state) if state.run_id().is_some() => init_run(root, config)?.state,
        Ok(_) | Err(GovernedError::NoState { .. }) => begun(root, config)?,
        Err(error) => return Err(error),
    };
    let run = state.run_id().unwrap_or_default().to_owned();
    let mut done = Done::new(state, format!("run {run} begun"));
    done.next = role.map(|role| Next::Turn(role.to_owned()));
    Ok(done)
}

/// True for a branch whose head says no state: what run it holds is nobody's whose command could answer.
fn is_another_tools(global: &Global, place: &Where) -> Result<bool, Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: place.remote.clone(), ..Flags::default() })?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    let branch = session.branch_or_current(place.branch.as_deref(), "govern start -b <branch>")?;
    Ok(runner.fresh_tip(&branch)?.is_some_and(|tip| tip.event.is_none()))
}

/// Makes sure that a command answers each role.
fn prepare(global: &Global, place: &Where) -> Result<(), Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: place.remote.clone(), ..Flags::default() })?;
    session.require_trust(&settings)?;
    let CommandsFrom::Ref(from) = &settings.commands_from else { return Ok(()) };
    let interrupt = Interrupt::never()?;
    let runner = session.runner(&settings, &interrupt, &Silent)?;
    let missing = unanswered(&runner, from)?;
    if missing.is_empty() {
        return Ok(());
    }
    let shown = escape(from.short());
    let states: Vec<String> = missing.iter().map(|role| format!("'{TURN}{role}'")).collect();
    let failed = Failure::refused(format!(
        "'{shown}', where commands are taken from, has none for {}",
        states.join(", ")
    ));
    let is_here = session.current_branch()?.as_ref() == Some(from);
    let Some(dir) = session.repo.work_dir.as_deref().filter(|_| is_here) else {
        return Err(failed.hint(format!("git switch {} && git aynig govern start", shell_word(from.short()))));
    };
    let roles = missing.iter().map(String::as_str);
    commands(&Root::new(dir), roles).map_err(|e| place::failure(&e))?;
    if !place.json {
        output::line("Wrote .aynig/command/turn/ for them");
    }
    // Written down, but stopped: a refusal would have changed nothing.
    Err(Failure { code: 1, ..failed }
        .hint("git add .aynig && git commit -m 'govern: a command for each role' && git aynig govern start"))
}

/// The roles that no command on the trusted ref answers.
fn unanswered(runner: &Runner<'_>, from: &RefName) -> Result<Vec<String>, Failure> {
    let config = place::project(runner, from, Path::new("."))?.config;
    let id =
        runner.store.known_tip(from)?.ok_or_else(|| Failure::fatal(format!("'{from}' does not exist")))?;
    let tip: Tip = runner.store.read_commit(id)?.into();
    let mut missing = Vec::new();
    for role in config.roles() {
        let state = StateName::new(format!("{TURN}{role}"))
            .map_err(|why| Failure::fatal(format!("role '{role}' can't be a command's name: {why}")))?;
        match runner.lookup(&tip, &state)? {
            Resolved::Found(_) => {}
            Resolved::NotAsked | Resolved::Missing | Resolved::Unusable { .. } | Resolved::Refused(_) => {
                missing.push(role.to_owned());
            }
        }
    }
    Ok(missing)
}

/// Puts what is missing into a checkout.
fn scaffold(root: &Root, config: &Config) -> Result<(), GovernedError> {
    let folder = root.folder().join(".agentxchain");
    disk::scaffold(root, &folder.join(".gitignore"), IGNORED, 0o666)?;
    merges::logs(root)?;
    commands(root, config.roles())
}

/// A command for each of these roles, where there is none.
fn commands<'r>(root: &Root, roles: impl IntoIterator<Item = &'r str>) -> Result<(), GovernedError> {
    let folder = root.folder().join(".aynig/command/turn");
    roles.into_iter().try_for_each(|role| disk::scaffold(root, &folder.join(role), COMMAND, 0o777))
}
