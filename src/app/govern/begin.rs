//! Beginning a run: its state, and a command for each role. Nothing that exists is overwritten. Implements G7, G8.

use super::next::{Next, TURN};
use super::place::{self, Branch, Changed};
use super::{Done, GovernError, merges};
use crate::app::AppError;
use crate::app::session::Session;
use crate::governed::{
    Config, GovernedError, Root, RunStatus, State, disk, init_next_run, init_run, load_state,
};
use crate::protocol::name::StateName;
use crate::runner::resolve::Resolved;
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, Silent, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// The script that is the command of a role.
const COMMAND: &str = "#!/bin/sh
# Takes one turn of a governed run. The worker is the command of the role's runtime in agentxchain.json;
# put another one behind '--' to have that do the work.
exec git aynig govern turn
";
/// Rules that ignore those of the run's files that belong to a process at work.
const IGNORED: &str = "/locks/\n/transactions/\n";

/// Begins a run, the first one or the one after a run that is over. With `adopts`, one that is under way is taken up.
pub(crate) fn begin(
    root: &Root,
    config: &Config,
    role: Option<&str>,
    adopts: bool,
) -> Result<Done, GovernedError> {
    if let Some(role) = role
        && !config.roles().any(|known| known == role)
    {
        return Err(GovernedError::NoSuchRole { role: role.to_owned() });
    }
    // The operation itself refuses a run that is under way.
    let state = match load_state(root, config) {
        Ok(state) if state.status().is_some_and(RunStatus::is_over) => init_next_run(root, config)?.state,
        // A state that other tools leave names a run where none is under way.
        Ok(state) if state.run_id().is_some() && adopts && state.status() != Some(RunStatus::Idle) => {
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

/// Returns the run's state; begins a run where the project has none.
pub(super) fn begun(root: &Root, config: &Config) -> Result<State, GovernedError> {
    match load_state(root, config) {
        Ok(state) if state.run_id().is_none() => Ok(init_run(root, config)?.state),
        Err(GovernedError::NoState { .. }) => Ok(init_run(root, config)?.state),
        Ok(state) => Ok(state),
        Err(error) => Err(error),
    }
}

/// Writes what is missing in a branch's checkout: rules for ignoring and merging, and a command for each role. Returns
/// the paths that are committed whatever ignore rules say.
fn scaffold(root: &Root, config: &Config) -> Result<Vec<String>, GovernedError> {
    let folder = root.folder().join(".agentxchain");
    disk::scaffold(root, &folder.join(".gitignore"), IGNORED, 0o666)?;
    let mut paths = merges::logs(root)?;
    // Commands that are there are committed as any file is: as a checkout, their line ends may be other ones.
    paths.extend(commands(root, config.roles())?);
    Ok(paths)
}

/// Returns the id of the run that the files hold, where that run is under way.
fn under_way(root: &Root, config: &Config) -> Option<String> {
    let state = load_state(root, config).ok()?;
    let is_over = state.status().is_some_and(RunStatus::is_over);
    state.run_id().filter(|_| !is_over).map(str::to_owned)
}

/// Writes the command of each of these roles that has none, and returns the paths of those that were written.
fn commands<'r>(root: &Root, roles: impl IntoIterator<Item = &'r str>) -> Result<Vec<String>, GovernedError> {
    let mut written = Vec::new();
    for role in roles {
        let path = format!(".aynig/command/turn/{role}");
        if disk::scaffold(root, &root.folder().join(&path), COMMAND, 0o777)? {
            written.push(path);
        }
    }
    Ok(written)
}

impl Branch {
    /// Begins a run on the branch, which is made at HEAD where it does not exist. Where the branch's head says no state,
    /// a run that its files hold is taken up: another tool of the format began it. With `dispatch`, the branch's chain
    /// is started where hooks are installed.
    ///
    /// # Errors
    /// [`GovernError::Held`]; what keeps the run from beginning, or the branch from being written.
    pub fn begin(
        &self,
        session: Session,
        role: Option<&str>,
        dispatch: bool,
    ) -> Result<Changed, GovernError> {
        let (branch, here) = (self.of(&session)?, session.current_branch()?);
        // HEAD may be on a ref that is no branch.
        let here = here.filter(|here| here.as_bytes().starts_with(b"refs/heads/"));
        self.write(session, true, dispatch, |root, config, ground| {
            // What a new branch begins at is a copy of HEAD's run, which stays under way there.
            if ground.is_new
                && let Some(run) = under_way(root, config)
            {
                return Err(GovernError::Held { branch, run, here });
            }
            let paths = scaffold(root, config)?;
            let mut begun = Done::settled(begin(root, config, role, !ground.has_state))?;
            begun.paths.extend(paths);
            Ok(begun)
        })
    }

    /// Makes sure that a command answers each role. Where commands are taken from a ref, they must be on it
    /// before a run is begun; if that ref is the branch that is checked out, missing ones are written into
    /// its working tree.
    ///
    /// # Errors
    /// [`GovernError::Unanswered`] where a command is missing, even if it is written now.
    pub fn prepare(&self, session: &Session) -> Result<(), GovernError> {
        let settings = session.settings(&self.flags())?;
        session.require_trust(&settings)?;
        let CommandsFrom::Ref(from) = &settings.commands_from else { return Ok(()) };
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        let runner = session.runner(&settings, &interrupt, &Silent)?;
        let missing = unanswered(&runner, from)?;
        if missing.is_empty() {
            return Ok(());
        }
        let is_here = session.current_branch()?.as_ref() == Some(from);
        let dir = session.repo.work_dir.as_deref().filter(|_| is_here);
        if let Some(dir) = dir {
            commands(&Root::new(dir), missing.iter().map(String::as_str))?;
        }
        Err(GovernError::Unanswered { from: from.clone(), missing, written: dir.is_some() })
    }
}

/// Returns the roles that no command on the trusted ref answers.
fn unanswered(runner: &Runner<'_>, from: &RefName) -> Result<Vec<String>, GovernError> {
    let config = place::project(runner, from, &Root::new("."))?.config;
    let id = runner.store.known_tip(from)?.map(|id| runner.repo.peeled(from, id)).transpose()?;
    let id = id.ok_or_else(|| GovernError::NoTrusted(from.clone()))?;
    let tip: Tip = runner.store.read_commit(id)?.into();
    let mut missing = Vec::new();
    for role in config.roles() {
        let state = StateName::new(format!("{TURN}{role}"))
            .map_err(|why| GovernError::BadRole { role: role.to_owned(), why })?;
        match runner.lookup(&tip, &state)? {
            Resolved::Found(_) => {}
            Resolved::NotAsked | Resolved::Missing | Resolved::Unusable { .. } | Resolved::Refused(_) => {
                missing.push(role.to_owned());
            }
        }
    }
    Ok(missing)
}
