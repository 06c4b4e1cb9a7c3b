//! What an act did, and the commit that it becomes.

use super::merges;
use super::next::Next;
use super::{Act, GovernError};
use crate::governed::{
    Config, GovernedError, HistoryEntry, PendingCompletion, PendingTransition, Root, State, Turn, own_paths,
};
use crate::protocol::declaration::{Declaration, Rest, Take};
use serde::Serialize;
use std::path::PathBuf;

/// What an act did.
#[derive(Debug)]
pub struct Done {
    /// The run's state after the act.
    pub state: State,
    /// What happened, in one line.
    pub happened: String,
    /// What happened in more words, for the commit's body.
    pub body: String,
    /// What is doubtful about a result that was accepted.
    pub warnings: Vec<String>,
    /// Facts for programs.
    pub facts: Facts,
    /// What comes next, where the state does not say it.
    pub next: Option<Next>,
    /// Why the act is no success, where it failed although something was written.
    pub failure: Option<GovernedError>,
    /// What becomes of changes in the worktree besides the run's own files.
    pub rest: Rest,
    /// Paths that are committed besides the run's own, whatever ignore rules say.
    pub paths: Vec<String>,
}

/// What an act tells programs besides the state.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Facts {
    /// Nothing.
    None {},
    /// A turn was assigned, and its bundle is written.
    Assigned {
        turn: Turn,
        /// The folder of the turn's bundle.
        dispatch: String,
        /// The path where the turn's result is looked for.
        staging: PathBuf,
    },
    /// A turn was accepted.
    Accepted {
        /// The turn's entry in the history.
        accepted: HistoryEntry,
    },
    /// A turn was rejected.
    Rejected {
        turn: Turn,
        /// True where this was one rejection too many.
        escalated: bool,
    },
    /// A phase began.
    PhaseApproved { transition: PendingTransition },
    /// The run ended.
    CompletionApproved { completion: PendingCompletion },
}

impl Done {
    /// Describes an act that did what it was to do.
    pub fn new(state: State, happened: impl Into<String>) -> Self {
        let (happened, body) = (happened.into(), String::new());
        let (warnings, facts) = (Vec::new(), Facts::None {});
        let (rest, paths) = (Rest::AsConfigured, Vec::new());
        Self { state, happened, body, warnings, facts, next: None, failure: None, rest, paths }
    }

    /// Returns what comes next: what the act says, or else what the state says.
    pub fn next(&self, config: &Config) -> Next {
        self.next.clone().unwrap_or_else(|| Next::of(&self.state, config))
    }

    /// Makes the declaration of the act's commit. The run's own files are in the commit whatever ignore rules
    /// say.
    pub fn declare(&self, root: &Root, next: &Next) -> Result<Declaration, GovernError> {
        merges::follow(root, &self.state)?;
        let mut paths = own_paths(root, &self.state)?;
        paths.extend_from_slice(&self.paths);
        let take = Take { paths, rest: self.rest };
        next.declaration(self, take).map_err(GovernError::Unnamed)
    }

    /// Turns a failure that was written down into a change that holds the failure. Any other failure changed
    /// nothing, and stays an error.
    pub fn settled(acted: Result<Self, GovernedError>) -> Act {
        acted.or_else(|error| {
            let Some(state) = error.state() else { return Err(error.into()) };
            let mut done = Done::new(state.clone(), error.to_string());
            done.failure = Some(error);
            Ok(done)
        })
    }
}
