//! A change to a branch's files by hand, as one commit that names the next state.
//!
//! The files are those of the head, in a slot, as a command would find them; no working tree of the user's is
//! used. What the change leaves in the slot becomes one commit on that head by one compare-and-swap: of two
//! processes that change the same head only one succeeds. Nothing is kept of a change that failed. Implements
//! K9 (by hand), K25, K28.

use super::super::report::Report;
use super::super::{Runner, Tip};
use super::{ChangeError, Written, moved_notes, refuse_leased, written};
use crate::protocol::declaration::Declaration;
use crate::protocol::dialect::Dialect;
use crate::protocol::event::RECOVERY_ID;
use crate::store::RefName;
use crate::store::slots::Slot;
use crate::store::slots::harvest::{HarvestError, Stage};
use std::path::Path;

/// What an edit begins from.
#[derive(Debug, Clone, Copy)]
pub struct Ground {
    /// True where the branch is yet to be made, at HEAD.
    pub is_new: bool,
    /// True where the head says a state, so that a command of ours may answer for the run that it holds.
    pub has_state: bool,
}

impl Runner<'_> {
    /// Lets `make` change the files of a branch's head, and writes them together with the state that it returns.
    /// `make` is given the folder that the files are in, and what the change begins from; where it fails nothing is
    /// written. A local branch that does not exist is created at HEAD if `may_create`.
    ///
    /// # Errors
    /// [`ChangeError::NoBranch`], [`ChangeError::Leased`], [`ChangeError::Raced`] where the head moved
    /// meanwhile, [`ChangeError::Blocked`] where something is in a checkout's way, [`ChangeError::Slot`]
    /// where no slot is free or what `make` left can't be a commit.
    pub fn edit<E: From<ChangeError>>(
        &self,
        branch: &RefName,
        may_create: bool,
        make: impl FnOnce(&Path, Ground) -> Result<Declaration, E>,
    ) -> Result<Written, E> {
        let mut report = Report::new(branch);
        let (tip, created, mut slot) = self.editable(branch, may_create, &mut report)?;
        let next = make(slot.dir(), Ground { is_new: created, has_state: tip.event.is_some() })?;
        let moved = self.write_edited(branch, (&tip, created), &mut slot, &next)?;
        let notes = [report.notes, moved.notes].concat();
        Ok(Written { created, notes, ..moved })
    }

    /// Returns the head that is to be changed, whether its branch is yet to be made, and a slot with its files.
    fn editable(
        &self,
        branch: &RefName,
        may_create: bool,
        report: &mut Report,
    ) -> Result<(Tip, bool, Slot), ChangeError> {
        let found = self.fresh_tip(branch)?;
        let created = found.is_none();
        let tip = match found {
            Some(tip) => {
                refuse_leased(branch, &tip)?;
                tip
            }
            // A lease of HEAD's is another branch's.
            None if may_create && self.settings.remote.is_none() => self.head_of(branch)?,
            None => return Err(ChangeError::NoBranch(branch.clone())),
        };
        let Some(mut slot) = self.take_slot(branch, &tip, report)? else {
            return Err(ChangeError::Slot("all are in use".to_owned()));
        };
        slot.fill(self.repo, tip.id(), tip.commit.tree)?;
        Ok((tip, created, slot))
    }

    /// Makes what was left in the slot the branch's head.
    fn write_edited(
        &self,
        branch: &RefName,
        (tip, created): (&Tip, bool),
        slot: &mut Slot,
        next: &Declaration,
    ) -> Result<Written, ChangeError> {
        let found = slot.harvest(self.repo, Stage::All, tip.id(), tip.commit.tree);
        let mut found = found.map_err(|error| match error {
            HarvestError::Store(error) => ChangeError::from(error),
            HarvestError::ForeignHead(_) | HarvestError::Unmerged => ChangeError::Slot(error.to_string()),
        })?;
        found.tree = slot.with_paths(self.repo, found.tree, &next.take.paths)?;
        let dialect = Dialect::Dwp;
        // Makes the commit unique: otherwise two processes that make the same change in the same second would
        // write the same commit, and both believe that they won.
        let own = [dialect.trailer(RECOVERY_ID, uuid::Uuid::new_v4())];
        let commit = self.write_declared(branch, &next.message(dialect, &own), found.tree, vec![tip.id()])?;
        slot.sync(self.repo)?;
        let log = format!("aynig: set {}", next.state);
        let moved = if created {
            self.create_at(branch, commit, &log)?;
            Vec::new()
        } else {
            let moved = self.move_branch(branch, tip.id(), commit, &log, self.soon())?;
            moved_notes(branch, moved)?.ok_or_else(|| ChangeError::Raced(branch.clone()))?
        };
        let _ = slot.leave(self.repo, tip.id());
        Ok(Written { notes: moved, ..written(branch, commit, &next.state) })
    }

    /// Returns the commit that a new branch begins at.
    fn head_of(&self, branch: &RefName) -> Result<Tip, ChangeError> {
        let head = self.repo.git.rev_parse(&self.repo.git_dir, "HEAD^{commit}");
        Ok(self.store.read_commit(head.map_err(|_| ChangeError::Unborn(branch.clone()))?)?.into())
    }

    /// Returns the configuration file of this name that counts for the commands of a branch: from the ref
    /// that commands are taken from, or from the branch itself where its own commands are trusted. `None` if
    /// there is none.
    ///
    /// # Errors
    /// Whatever reading the ref or its tree fails with; a ref that does not exist is
    /// [`ChangeError::NoBranch`].
    pub fn trusted_file(&self, branch: &RefName, name: &str) -> Result<Option<Vec<u8>>, ChangeError> {
        use super::super::settings::CommandsFrom;
        let (from, tip) = match &self.settings.commands_from {
            CommandsFrom::Ref(from) => {
                let tip = self.store.tip(from)?;
                (from, tip.map(|id| self.repo.peeled(from, id)).transpose()?)
            }
            CommandsFrom::Branch | CommandsFrom::Nowhere => (branch, self.store.tip(branch)?),
        };
        let id = tip.ok_or_else(|| ChangeError::NoBranch(from.clone()))?;
        let entries = self.store.read_tree(self.store.read_commit(id)?.tree)?;
        let entry = entries.into_iter().find(|entry| entry.name == name.as_bytes());
        Ok(entry.map(|entry| self.store.read_blob(entry.id)).transpose()?)
    }
}
