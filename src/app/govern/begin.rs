//! Beginning a run: its state, and a command for each role. Nothing that exists is overwritten. Implements G7, G8.

use super::next::Next;
use super::{Done, merges};
use crate::governed::{
    Config, GovernedError, Root, RunStatus, State, disk, init_next_run, init_run, load_state,
};

/// The command of a role.
const COMMAND: &str = "#!/bin/sh
# Takes one turn of a governed run. The worker is the command of the role's runtime in agentxchain.json;
# put another one behind '--' to have that do the work.
exec git aynig govern turn
";
/// What of the run's files belongs to a process at work.
const IGNORED: &str = "/locks/\n/transactions/\n";

/// Begins a run, or takes one up (`adopts`) that another tool of the format began and of which the branch says no state.
pub fn begin(root: &Root, config: &Config, role: Option<&str>, adopts: bool) -> Result<Done, GovernedError> {
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

/// The run's state; a project without a run gets one.
pub(super) fn begun(root: &Root, config: &Config) -> Result<State, GovernedError> {
    match load_state(root, config) {
        Ok(state) if state.run_id().is_none() => Ok(init_run(root, config)?.state),
        Err(GovernedError::NoState { .. }) => Ok(init_run(root, config)?.state),
        Ok(state) => Ok(state),
        Err(error) => Err(error),
    }
}

/// The same on a branch, with what is missing in its checkout: rules for merging, and a command for each role.
pub fn begin_on_branch(
    root: &Root,
    config: &Config,
    role: Option<&str>,
    adopts: bool,
) -> Result<Done, GovernedError> {
    let folder = root.folder().join(".agentxchain");
    disk::scaffold(root, &folder.join(".gitignore"), IGNORED, 0o666)?;
    merges::logs(root)?;
    commands(root, config.roles())?;
    let mut begun = begin(root, config, role, adopts)?;
    begun.paths.push(".aynig/command/turn".to_owned());
    Ok(begun)
}

/// Writes a command for each of these roles, where there is none.
pub fn commands<'r>(root: &Root, roles: impl IntoIterator<Item = &'r str>) -> Result<(), GovernedError> {
    let folder = root.folder().join(".aynig/command/turn");
    roles.into_iter().try_for_each(|role| disk::scaffold(root, &folder.join(role), COMMAND, 0o777))
}
