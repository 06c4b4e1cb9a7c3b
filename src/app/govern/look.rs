//! Reads where a run is, from one commit or from a plain folder. Writes nothing.

use super::GovernError;
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
    /// Its branch; `None` in a plain folder.
    pub branch: Option<RefName>,
    /// Its state.
    pub state: State,
    /// Its own configuration.
    pub config: Config,
    /// What its branch's head says beyond what the run does.
    pub head: Head,
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
}

impl Head {
    fn of(tip: &Tip) -> Self {
        match &tip.event {
            None => Head::Stateless,
            Some(event) if event.is_working() => Head::Leased,
            Some(event) if event.state_name().is_some_and(|state| state.as_str() == "stalled") => {
                Head::Stalled
            }
            Some(_) => Head::AsTheRun,
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
