//! What a run's outcome takes of its slot, and what of it is kept aside.
//!
//! A command may say that only some paths are part of its outcome ([`Rest::Kept`]): nothing else that it or its
//! children left is on the branch then, commits included, and all of it is a commit under
//! `refs/aynig/attempts/<run-id>-rejected`. Paths are taken as they are, whatever rules for ignoring say.
//! Implements K19, K25, K26.

use super::live::Live;
use super::report::Report;
use super::slot::left_out_ref;
use super::{Runner, RunnerError};
use crate::protocol::complete::HeadIs;
use crate::protocol::declaration::{Declaration, Rest};
use crate::store::RefName;
use crate::store::slots::harvest::{Harvest, HarvestError, Stage};

impl Runner<'_> {
    /// What becomes of the outcome.
    pub(super) fn taken(
        &self,
        live: &Live,
        next: &Declaration,
        head: HeadIs,
    ) -> Result<Harvest, HarvestError> {
        let (claimed, slot) = (&live.claimed, &live.slot);
        let stage = match next.take.rest {
            Rest::AsConfigured => self.settings.stage,
            Rest::All => Stage::All,
            Rest::Kept => {
                // Where the command moved the branch itself, the outcome stands on what is there.
                let head = if head == HeadIs::SlotHead { slot.head(self.repo)? } else { claimed.first };
                let tree = slot.with_paths(self.repo, claimed.tree, &next.take.paths)?;
                return Ok(Harvest { tree, head, nested: Vec::new() });
            }
        };
        let mut found = slot.harvest(self.repo, stage, claimed.first, claimed.tree)?;
        found.tree = slot.with_paths(self.repo, found.tree, &next.take.paths)?;
        Ok(found)
    }

    /// Keeps what an outcome leaves out, where that is something.
    pub(super) fn keep_left_out(
        &self,
        live: &Live,
        next: &Declaration,
        taken: &Harvest,
        report: &mut Report,
    ) -> Result<Option<RefName>, RunnerError> {
        let claimed = &live.claimed;
        let Some(name) = left_out_ref(&claimed.run.id).filter(|_| next.take.rest == Rest::Kept) else {
            return Ok(None);
        };
        let mut all = live.slot.salvage(self.repo, Stage::All, claimed.first, claimed.tree)?;
        all.tree = live.slot.with_paths(self.repo, all.tree, &next.take.paths)?;
        if all.tree == taken.tree && all.head == claimed.first {
            return Ok(None);
        }
        self.keep(&name, self.write_attempt(&claimed.run.id, claimed.first, &all)?)?;
        self.publish(&name, report);
        Ok(Some(name))
    }
}
