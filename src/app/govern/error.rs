//! Why an act on a governed run was not done, as one type. `cli` says which command mends it.

use super::Done;
use super::next::TURN;
use crate::app::AppError;
use crate::governed::GovernedError;
use crate::protocol::name::BadName;
use crate::protocol::text::escape;
use crate::runner::RunnerError;
use crate::runner::change::ChangeError;
use crate::store::{RefName, StoreError};
use crate::supervisor::{Ending, SupervisorError};
use std::io;
use std::path::PathBuf;

/// What came of an act. An error means that nothing was changed.
pub(crate) type Act = Result<Done, GovernError>;

/// An act that was not done.
#[derive(Debug, thiserror::Error)]
pub enum GovernError {
    /// An operation of the boundary refused it, or failed.
    #[error(transparent)]
    Governed(#[from] GovernedError),
    /// The repository or its branch stood in the way.
    #[error(transparent)]
    App(#[from] AppError),
    /// The ref that commands are taken from has no configuration.
    #[error("'{}' has no agentxchain.json: workers and hooks are taken from there", escape(.0.short()))]
    NotOnTrusted(RefName),
    /// The ref that commands are taken from is not there.
    #[error("'{0}' does not exist")]
    NoTrusted(RefName),
    /// The commit that was written does not hold the run's state.
    #[error("the commit on '{}' does not hold the run's state", escape(.0.short()))]
    NotWritten(RefName),
    /// There is no such branch.
    #[error("branch '{}' does not exist", escape(.0.short()))]
    NoBranch(RefName),
    /// The branch has no configuration.
    #[error("branch '{}' has no agentxchain.json: it is no governed project", escape(.0.short()))]
    NoProject(RefName),
    /// The branch has no state.
    #[error("branch '{}' holds no run", escape(.0.short()))]
    NoRun(RefName),
    /// A branch was to be made at HEAD, which holds a run that is under way.
    #[error("cannot begin a run on '{branch}': HEAD holds run {}, which is under way", escape(run.as_bytes()))]
    Held {
        /// The branch that was to be made.
        branch: RefName,
        /// The id of HEAD's run.
        run: String,
        /// The branch that is checked out; `None` for a HEAD that is on no branch.
        here: Option<RefName>,
    },
    /// A role that no command can have.
    #[error("role '{role}' can't be a command's name: {why}")]
    BadRole { role: String, why: BadName },
    /// No command answers the turns of some roles.
    #[error("'{}', where commands are taken from, has none for {}", escape(from.short()), states(missing))]
    Unanswered {
        /// Where commands are taken from.
        from: RefName,
        /// The roles.
        missing: Vec<String>,
        /// True where their commands are in the working tree now, and have yet to be committed.
        written: bool,
    },
    /// What comes next has no name that a state could have.
    #[error("cannot name what comes next: {0}")]
    Unnamed(BadName),
    /// The role's runtime is one whose worker is ours to start, but it names no command.
    #[error("runtime '{runtime}' of role '{role}' has no command")]
    NoWorker { runtime: String, role: String },
    /// Another turn is active in a plain folder.
    #[error(
        "cannot run a worker for '{role}' beside turn '{turn}' of '{of}': it could not be told whose change is whose in a \
         plain folder"
    )]
    Beside {
        /// The role that was to have a worker.
        role: String,
        /// The other turn.
        turn: String,
        /// The role of the other turn.
        of: String,
        folder: PathBuf,
    },
    /// The worker can't be started.
    #[error("cannot start worker '{}': it {ending}", program.display())]
    NotStarted {
        /// The worker's program.
        program: PathBuf,
        /// Why.
        ending: Ending,
    },
    /// The guardian of a worker failed.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The program of this process, which guardians are started from too, can't be found.
    #[error("cannot find the program of this process: {0}")]
    NoProgram(io::Error),
}

fn states(roles: &[String]) -> String {
    roles.iter().map(|role| format!("'{TURN}{role}'")).collect::<Vec<_>>().join(", ")
}

impl From<RunnerError> for GovernError {
    fn from(error: RunnerError) -> Self {
        Self::App(error.into())
    }
}

impl From<StoreError> for GovernError {
    fn from(error: StoreError) -> Self {
        Self::App(error.into())
    }
}

impl From<ChangeError> for GovernError {
    fn from(error: ChangeError) -> Self {
        Self::App(AppError::Change { error, remote: None })
    }
}
