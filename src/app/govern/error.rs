//! Why an act on a governed run was not done, as one type. Which command mends it is `cli`'s to say.

use super::Done;
use crate::governed::GovernedError;
use crate::protocol::name::BadName;
use crate::supervisor::{Ending, SupervisorError};
use std::io;
use std::path::PathBuf;

/// What an act came to: a refusal changed nothing.
pub type Act = Result<Done, GovernError>;

/// An act that was not done.
#[derive(Debug, thiserror::Error)]
pub enum GovernError {
    /// An operation of the boundary refused it, or failed.
    #[error(transparent)]
    Governed(#[from] GovernedError),
    /// What comes next has no name that a state could have.
    #[error("cannot name what comes next: {0}")]
    Unnamed(BadName),
    /// The role's runtime starts its worker, and does not say which.
    #[error("runtime '{runtime}' of role '{role}' has no command")]
    NoWorker {
        /// The runtime.
        runtime: String,
        /// The role.
        role: String,
    },
    /// In a plain folder another turn is active.
    #[error(
        "cannot run a worker for '{role}' beside turn '{turn}' of '{of}': nobody could say whose change is whose in a \
         plain folder"
    )]
    Beside {
        /// The role that was to have a worker.
        role: String,
        /// The other turn.
        turn: String,
        /// Its role.
        of: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The worker can't be started.
    #[error("cannot start worker '{}': it {ending}", program.display())]
    NotStarted {
        /// Its program.
        program: PathBuf,
        /// Why.
        ending: Ending,
    },
    /// The guardian of a worker failed.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// This process can't say which program it is, and a guardian is the same one.
    #[error("cannot find the program of this process: {0}")]
    NoProgram(io::Error),
}
