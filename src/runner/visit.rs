//! A user's visit to what a run left: its files in a slot, as a command would find them.
//!
//! The slot is held as long as the visit lasts and is no run's; no branch is touched. What the user changes
//! there is kept as an attempt of the visit's own, even where the verb is killed: the run that takes the slot
//! next finds it. Implements K55 (`shell`).

use super::change::ChangeError;
use super::report::Report;
use super::{Runner, Tip};
use crate::protocol::id::ObjectId;
use crate::store::RefName;
use crate::store::slots::{Occupant, modules};
use std::path::{Path, PathBuf};

/// What a visit left.
#[derive(Debug)]
pub struct Left {
    /// The ref that keeps what was changed.
    pub kept: Option<RefName>,
    /// The folder that keeps repositories which were in the slot (K26).
    pub repositories: Option<PathBuf>,
}

impl Runner<'_> {
    /// Calls `look` with a slot that holds the files of a commit. Returns what `look` returned, and where
    /// changes are kept.
    ///
    /// # Errors
    /// [`ChangeError::Slot`] where no slot is free.
    pub fn visit<T>(
        &self,
        branch: &RefName,
        commit: ObjectId,
        look: impl FnOnce(&Path) -> T,
    ) -> Result<(T, Left), ChangeError> {
        self.ready()?;
        let tip = Tip::from(self.store.read_commit(commit)?);
        let Some(mut slot) = self.take_slot(branch, &tip, &mut Report::new(branch))? else {
            return Err(ChangeError::Slot("all are in use".to_owned()));
        };
        slot.fill(self.repo, commit, tip.commit.tree)?;
        let id = uuid::Uuid::new_v4().to_string();
        slot.occupy(Some(Occupant::new(&id, branch, self.settings.remote.clone(), commit)))?;
        let seen = look(slot.dir());
        let kept = self.keep_attempt(&slot, &id, commit, tip.commit.tree, None)?;
        let _ = slot.leave(self.repo, commit);
        slot.occupy(None)?;
        let repositories = Some(modules::kept_of(self.repo, &id)).filter(|folder| folder.is_dir());
        Ok((seen, Left { kept, repositories }))
    }
}
