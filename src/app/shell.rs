//! `shell`: a shell where a run's files are, in a slot.
//!
//! [`open`] starts a shell on the work of the run that [`diff::find`](super::diff::find) found, and says
//! where the changes that were made there are kept. It needs a trusted repository: filling a slot may start
//! the repository's filter drivers (K34). Implements K55 (`shell`).

use super::AppError;
use super::change::Change;
use super::diff::Found;
use crate::runner::{Left, Silent};
use crate::supervisor::attended;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The variables by which Git tells a program that it starts which repository is at hand. They are removed
/// for the shell, since inside the slot it is the slot's own repository that counts.
const OF_GIT: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];

/// How a shell ended, and where the changes that were made are kept.
#[derive(Debug)]
pub struct Visited {
    /// How the shell ended.
    pub status: ExitStatus,
    /// Where the changes that were made in the slot are kept.
    pub left: Left,
}

/// Opens the user's shell in a slot that holds a run's work, or the run's trigger where it left none. `begun`
/// is given the folder before the shell starts.
pub fn open(change: &Change<'_>, found: &Found, begun: impl FnOnce(&Path)) -> Result<Visited, AppError> {
    change.session.require_trust(&change.settings)?;
    let interrupt = Interrupt::never()?;
    let runner = change.session.runner(&change.settings, &interrupt, &Silent)?;
    let commit = found.work.unwrap_or(found.trigger);
    let visited = runner.visit(&found.branch, commit, |folder| {
        begun(folder);
        let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        let mut command = Command::new(shell.unwrap_or_else(|| OsString::from("/bin/sh")));
        command.current_dir(folder);
        for name in OF_GIT {
            command.env_remove(name);
        }
        attended::run(command)
    });
    let remote = change.settings.remote.clone();
    let (status, left) = visited.map_err(|error| AppError::Change { error, remote })?;
    Ok(Visited { status: status?, left })
}
