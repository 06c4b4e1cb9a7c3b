//! A program that the user works with in the terminal: signals that come from the terminal are for that
//! program.
//!
//! Implements K55 (`shell`).

use super::SupervisorError;
use super::interrupt::Interrupt;
use std::process::{Command, ExitStatus};

/// Runs the program until it exits. A signal that reaches this process as well meanwhile, as Ctrl-C does,
/// does not end this process before the program.
pub fn run(mut command: Command) -> Result<ExitStatus, SupervisorError> {
    let _deaf = Interrupt::by_signals()?;
    let started = command.spawn().and_then(|mut child| child.wait());
    started.map_err(|source| SupervisorError::NoHelper { program: command.get_program().into(), source })
}
