//! Reads where a run is, from one commit or from a plain folder. Writes nothing.

use super::GovernError;
use super::next::{Next, TURN};
use super::place::{Branch, files, named};
use crate::app::session::Session;
use crate::governed::{
    Config, Context, GovernedError, Root, State, context_of, load_context, load_state, state_of,
};
use crate::protocol::name::StateName;
use crate::runner::Tip;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::path::Path;

/// A run as it was read.
pub struct Seen {
    /// The run's branch; `None` in a plain folder.
    pub branch: Option<RefName>,
    /// The run's state.
    pub state: State,
    /// The run's own configuration.
    pub config: Config,
    /// What the branch's head says beyond what the run's state says.
    pub head: Head,
}

impl Seen {
    /// Returns what the run waits for. A turn that is to be done again waits for its role's command first,
    /// except in a plain folder, where there is no command, and where the command has already declared that
    /// the turn waits for a worker that is not ours.
    pub fn next(&self) -> Next {
        match (&self.branch, &self.head) {
            (None, _) | (Some(_), Head::Waiting) => Next::without_command(&self.state, &self.config),
            (
                Some(_),
                Head::AsTheRun | Head::Stateless | Head::Leased | Head::Stalled | Head::Elsewhere(_),
            ) => Next::of(&self.state, &self.config),
        }
    }
}

/// What a branch's head says of the run on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// Nothing beyond what the run says.
    AsTheRun,
    /// No state at all: no command answers.
    Stateless,
    /// A run of the kernel holds the branch: a turn is being taken.
    Leased,
    /// A turn ended without changing the run.
    Stalled,
    /// A turn waits for a worker that is not ours: its role's command has said so.
    Waiting,
    /// The head has this state, which no command of a role answers, and the run waits for a turn.
    Elsewhere(StateName),
}

impl Head {
    fn of(tip: &Tip, state: &State, config: &Config) -> Self {
        let Some(event) = &tip.event else { return Head::Stateless };
        let Some(name) = event.state_name() else {
            return if event.is_working() { Head::Leased } else { Head::AsTheRun };
        };
        match name.as_str() {
            _ if event.is_working() => Head::Leased,
            "stalled" => Head::Stalled,
            "waiting" => Head::Waiting,
            // A person may have given the turn to another role than the run would.
            other if !other.starts_with(TURN) && matches!(Next::of(state, config), Next::Turn(_)) => {
                Head::Elsewhere(name.clone())
            }
            _ => Head::AsTheRun,
        }
    }
}

/// Reads the run in a plain folder; `None` where there is none.
pub(crate) fn folder(folder: &Path) -> Result<Option<Seen>, GovernError> {
    let Context { root, config, .. } = load_context(&Root::new(folder))?;
    match load_state(&root, &config) {
        Ok(state) => Ok(Some(Seen { branch: None, state, config, head: Head::AsTheRun })),
        Err(GovernedError::NoState { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Branch {
    /// Reads the run on this branch.
    pub fn look(&self, session: &Session) -> Result<Seen, GovernError> {
        let settings = session.settings(&self.flags())?;
        let interrupt = Interrupt::never().map_err(crate::app::AppError::from)?;
        let runner = session.reader(&settings, &interrupt)?;
        let branch = self.of(session)?;
        let tip = runner.fresh_tip(&branch)?.ok_or_else(|| GovernError::NoBranch(branch.clone()))?;
        let [config, state] = files(&runner, &branch, tip.commit.tree)?;
        let config = config.ok_or_else(|| GovernError::NoProject(branch.clone()))?;
        let root = Root::new("");
        let config = context_of(&root, &config, Path::new(&named(&branch, super::place::PROJECT)))?.config;
        let state = state.ok_or_else(|| GovernError::NoRun(branch.clone()))?;
        let state = state_of(&state, Path::new(&named(&branch, ".agentxchain/state.json")), &config)?;
        Ok(Seen { head: Head::of(&tip, &state, &config), branch: Some(branch), state, config })
    }
}
