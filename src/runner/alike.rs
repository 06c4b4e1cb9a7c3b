//! What a head's writer may have meant, where nothing answers it: a word for people, and nothing hangs on it.
//!
//! Who looks at many heads asks once for each state and tree (`lookups.rs`). Implements K6 (its last sentence).

use super::settings::CommandsFrom;
use super::{Runner, RunnerError};
use crate::protocol::id::ObjectId;
use crate::protocol::name::{RESERVED, StateName};
use crate::protocol::resemble::nearest;
use crate::store::command_tree;

impl Runner<'_> {
    /// States with a command that a state without one nearly is; `tree` is that of its commit. Nothing for those
    /// that have a meaning of their own.
    pub fn alike(&self, state: &StateName, tree: ObjectId) -> Result<Vec<String>, RunnerError> {
        if RESERVED.contains(&state.as_str()) {
            return Ok(Vec::new());
        }
        let tree = match &self.settings.commands_from {
            CommandsFrom::Nowhere | CommandsFrom::Branch => tree,
            CommandsFrom::Ref(name) => match self.commands_tip(name)? {
                Some(id) => self.store.read_commit(id)?.tree,
                None => return Ok(Vec::new()),
            },
        };
        let Some(folder) = command_tree::find(&*self.store, tree)? else { return Ok(Vec::new()) };
        let known = command_tree::list(&*self.store, folder)?;
        let role = self.settings.role.as_ref().map(|role| role.as_str());
        let ours = known.iter().filter(|(_, of)| of.is_none() || of.as_deref() == role);
        let near = nearest(state.as_str(), ours.map(|(state, _)| state.as_str()));
        Ok(near.into_iter().map(str::to_owned).collect())
    }
}
