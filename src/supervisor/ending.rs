//! How a command can end, and the words for each ending.
//!
//! `Display` gives the phrase that reports and commit messages use after "the command ...": lower case, no
//! full stop. Implements K17, K23.

use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How a process left: what `wait` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// A signal killed it.
    Signal {
        /// The signal's number; 0 where the system could not say.
        signal: i32,
        /// A core was dumped.
        core_dumped: bool,
    },
}

/// How a command's run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It exited by itself, with this status.
    Exited(i32),
    /// A signal killed it that the guardian did not send.
    Signaled {
        /// The signal's number; 0 where the system could not say.
        signal: i32,
        /// A core was dumped.
        core_dumped: bool,
    },
    /// The command ran into its time limit and was ended.
    TimedOut {
        /// The limit.
        after: Duration,
        /// How the command then exited.
        exit: Exit,
    },
    /// The command was ended because the caller asked for that, or was gone.
    Stopped {
        /// How the command then exited.
        exit: Exit,
    },
    /// The command never ran.
    NotStarted {
        /// The system's error number.
        errno: i32,
        /// What is missing or refused, such as `interpreter '/bin/nope' of 'build'`.
        what: String,
    },
    /// The guardian died before it could report; the command was killed as far as its processes could be
    /// found.
    GuardianLost,
    /// The guardian was stopped, or no longer answered. It was killed, and with it those processes of the run
    /// that could be found.
    GuardianStopped,
}

impl Ending {
    /// True if the command exited by itself with status 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }
}

impl From<Exit> for Ending {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal { signal, core_dumped } => Self::Signaled { signal, core_dumped },
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal { signal, core_dumped } => {
                match (Signal::try_from(signal), signal) {
                    (Ok(name), _) => write!(f, "killed by {name}")?,
                    (Err(_), 0) => write!(f, "killed by an unknown signal")?,
                    // Real-time signals have numbers only.
                    (Err(_), number) => write!(f, "killed by signal {number}")?,
                }
                if core_dumped { write!(f, " (core dumped)") } else { Ok(()) }
            }
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => Exit::Code(*code).fmt(f),
            Self::Signaled { signal, core_dumped } => {
                Exit::Signal { signal: *signal, core_dumped: *core_dumped }.fmt(f)
            }
            Self::TimedOut { after, exit } => {
                write!(f, "timed out after {} s, then {exit}", after.as_secs_f64())
            }
            Self::Stopped { exit } => write!(f, "stopped on request, then {exit}"),
            Self::NotStarted { errno, what } => {
                write!(f, "could not be started: {what}: {}", Errno::from_raw(*errno).desc())
            }
            Self::GuardianLost => f.write_str("lost: its guardian died before it could report"),
            Self::GuardianStopped => f.write_str("ended: its guardian was stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_phrase() {
        let killed = Exit::Signal { signal: 9, core_dumped: false };
        let phrases = [
            (Ending::Exited(3), "exited with status 3"),
            (Ending::Signaled { signal: 11, core_dumped: true }, "killed by SIGSEGV (core dumped)"),
            (Ending::Signaled { signal: 40, core_dumped: false }, "killed by signal 40"),
            (Ending::Signaled { signal: 0, core_dumped: false }, "killed by an unknown signal"),
            (
                Ending::TimedOut { after: Duration::from_millis(1500), exit: killed },
                "timed out after 1.5 s, then killed by SIGKILL",
            ),
            (Ending::Stopped { exit: Exit::Code(0) }, "stopped on request, then exited with status 0"),
            (
                Ending::NotStarted { errno: 2, what: "interpreter '/x' of 'b'".into() },
                "could not be started: interpreter '/x' of 'b': No such file or directory",
            ),
            (Ending::GuardianLost, "lost: its guardian died before it could report"),
            (Ending::GuardianStopped, "ended: its guardian was stopped"),
        ];
        for (ending, phrase) in phrases {
            assert_eq!(ending.to_string(), phrase);
        }
    }
}
