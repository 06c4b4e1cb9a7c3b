//! The numbers that this program exits with. Implements Exit codes of the contract.

use crate::app::Exit;

/// The exit code of an end.
pub fn code(exit: Exit) -> i32 {
    match exit {
        Exit::Done => 0,
        Exit::Unfinished => 1,
        Exit::Refused => 2,
        Exit::Held => 3,
        Exit::Later => 75,
        Exit::Failed => 128,
        Exit::Usage => 129,
        Exit::Interrupted => 130,
        Exit::Terminated => 143,
    }
}

/// The exit code of a verb that only looks, and that a signal may have ended.
pub fn of_signal(signal: Option<i32>) -> i32 {
    code(signal.map_or(Exit::Done, Exit::of_signal))
}
