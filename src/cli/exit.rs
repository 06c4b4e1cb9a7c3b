//! The numbers that this program exits with. Implements Exit codes of the contract.

use crate::app::Exit;

/// Returns the exit code for the way in which a verb ended.
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

/// Returns the exit code of a verb that only reads: 0, or the code of the signal that ended it.
pub fn of_signal(signal: Option<i32>) -> i32 {
    code(signal.map_or(Exit::Done, Exit::of_signal))
}
