//! Reads where a run is, from one commit or from a plain folder. Writes nothing.

use super::GovernError;
use super::next::Next;
use super::place::{Branch, files, named};
use crate::app::session::Session;
use crate::governed::{
    Config, Context, GovernedError, Root, State, context_of, load_context, load_state, state_of,
};
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
        match (&self.branch, self.head) {
            (None, _) | (Some(_), Head::Waiting) => Next::without_command(&self.state, &self.config),
            (Some(_), Head::AsTheRun | Head::Stateless | Head::Leased | Head::Stalled) => {
                Next::of(&self.state, &self.config)
            }
        }
    }
}

/// What a branch's head says of the run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

impl Head {
    fn of(tip: &Tip) -> Self {
        let Some(event) = &tip.event else { return Head::Stateless };
        match event.state_name().map(|state| state.as_str()) {
            _ if event.is_working() => Head::Leased,
            Some("stalled") => Head::Stalled,
            Some("waiting") => Head::Waiting,
            Some(_) | None => Head::AsTheRun,
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
        let [config, state] = files(&runner, tip.commit.tree)?;
        let config = config.ok_or_else(|| GovernError::NoProject(branch.clone()))?;
        let root = Root::new("");
        let config = context_of(&root, &config, Path::new(&named(&branch, super::place::PROJECT)))?.config;
        let state = state.ok_or_else(|| GovernError::NoRun(branch.clone()))?;
        let state = state_of(&state, Path::new(&named(&branch, ".agentxchain/state.json")), &config)?;
        Ok(Seen { head: Head::of(&tip), branch: Some(branch), state, config })
    }
}
