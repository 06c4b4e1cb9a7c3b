//! `shell`: a shell where a run's files are, in a slot.
//!
//! [`open`] has it started where [`diff::find`](super::diff::find) found the run's work, and says what was kept of what was
//! changed there. Only where this repository is trusted: to fill a slot its filter drivers may be started (K34).
//! Implements K55 (`shell`).

use super::AppError;
use super::change::Change;
use super::diff::Found;
use crate::runner::{Left, Silent};
use crate::supervisor::attended;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// What Git tells a program that it starts of the repository at hand: in the slot it is the slot that counts.
const OF_GIT: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];

/// How a shell ended, and where is kept what was changed.
#[derive(Debug)]
pub struct Visited {
    /// How the shell ended.
    pub status: ExitStatus,
    /// What was changed in the slot.
    pub left: Left,
}

/// Opens the user's shell in a slot that holds a run's work; `begun` is told the folder first.
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
