//! A program that a user works with: it has the terminal, and signals that come from there are its own.
//!
//! Implements K55 (`shell`).

use super::SupervisorError;
use super::interrupt::Interrupt;
use std::process::{Command, ExitStatus};

/// Runs it to its end. A signal that comes to both meanwhile, as Ctrl-C does, ends this process no sooner.
pub fn run(mut command: Command) -> Result<ExitStatus, SupervisorError> {
    let _deaf = Interrupt::by_signals()?;
    let started = command.spawn().and_then(|mut child| child.wait());
    started.map_err(|source| SupervisorError::NoHelper { program: command.get_program().into(), source })
}
