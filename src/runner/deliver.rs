//! Delivering messages: the branch's next trigger is a merge commit of them.
//!
//! The first parent is the head, then comes one parent per message. Attached work is merged one after
//! another, each into the commit that the merge before it made. One swap moves the branch together with the
//! refs of the messages: a runner that is killed between these moves leaves a head that says what it brought.
//! Work that conflicts is not merged, and its message, though no parent, is delivered all the same.
//! Implements K47, K47b.

use super::inbox::{Found, Read};
use super::move_branch::{Moved, blocked_notes};
use super::report::{Note, Refusal, Report, Verdict};
use super::settings::CommandsFrom;
use super::{Runner, RunnerError, Tip};
use crate::protocol::delivery::{Merge, Taken, trigger};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::message::Message;
use crate::protocol::name::StateName;
use crate::store::checkout::Finished;
use crate::store::git_merge::Joined;
use crate::store::{NewCommit, RefName, StoreError, command_tree};

/// What was merged so far: the commit that the next merge starts from, the tree that resulted, and the work
/// that was merged last, for which a commit is written only if another merge follows.
struct Interim {
    id: ObjectId,
    tree: ObjectId,
    last: Option<ObjectId>,
}

/// The messages that a delivery takes, and the tree that results.
struct Delivered {
    taken: Vec<Taken>,
    tree: ObjectId,
}

impl Runner<'_> {
    /// Delivers the messages `take`, which bring `state`, to a head. `None`: the caller judges the branch
    /// again.
    pub(super) fn deliver(
        &self,
        branch: &RefName,
        tip: &Tip,
        (state, take): (StateName, Vec<MessageId>),
        waiting: &[Found],
        dry: bool,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        if let Some(verdict) = self.preflight(branch, tip)? {
            return Ok(Some(verdict));
        }
        if dry {
            return Ok(Some(Verdict::WouldDeliver { state, messages: take.len() }));
        }
        if !self.mandate.holds() {
            return Ok(Some(Verdict::Refused(Refusal::Changed)));
        }
        // If a message was taken away since then, the swap fails.
        let mut found = waiting.to_vec();
        found.retain(|found| take.contains(&found.at.id));
        let Some(event) = tip.event.as_ref() else { return Ok(None) };
        let Some(delivered) = self.take_in(branch, tip, &found)? else { return Ok(None) };
        let merged = |taken: &&Taken| !matches!(taken.merge, Merge::Conflict(_));
        let parents =
            std::iter::once(tip.id()).chain(delivered.taken.iter().filter(merged).map(|t| t.commit));
        let message = trigger(event, &state, &delivered.taken);
        let commit = match self.write(branch, delivered.tree, parents.collect(), &message) {
            Ok(commit) => commit,
            Err(RunnerError::Signing { cause }) => {
                return Ok(Some(Verdict::Refused(Refusal::CannotSign(cause))));
            }
            Err(error) => return Err(error),
        };
        let others = self.hearing(&found)?;
        let log = format!("aynig: deliver {}", delivered.taken.len());
        match self.move_branch_with(branch, (tip.id(), commit), &others, &log, self.soon()) {
            Ok(Moved::Won(finished)) => {
                report.notes.extend(blocked_notes(finished));
                report.notes.push(Note::Delivered { messages: found.len(), state });
                Ok(None)
            }
            Ok(Moved::Lost(left)) => {
                let blocked = left.into_iter().find_map(|done| match done {
                    Finished::Blocked(dir, by) => Some(Note::CheckoutBlocked(dir, by)),
                    Finished::Arrived(..) | Finished::Moot(_) | Finished::Stands(_) => None,
                });
                report.notes.extend(blocked);
                Ok(None)
            }
            Ok(Moved::Blocked(by)) => Ok(Some(Verdict::Undelivered { messages: found.len(), by })),
            // Another process moved one of the messages first.
            Err(RunnerError::Store(StoreError::Moved { name, .. })) if name != *branch => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the messages and merges what they bring; `None` where one of them can no longer be delivered.
    fn take_in(
        &self,
        branch: &RefName,
        tip: &Tip,
        found: &[Found],
    ) -> Result<Option<Delivered>, RunnerError> {
        let mut delivered = Delivered { taken: Vec::with_capacity(found.len()), tree: tip.commit.tree };
        let mut interim = Interim { id: tip.id(), tree: tip.commit.tree, last: None };
        for found in found {
            let Read::Letter(letter) = self.letter(branch, found)? else { return Ok(None) };
            let merge = match letter.attached {
                None => Merge::Text,
                Some(work) => self.merge_work(&mut interim, work)?,
            };
            delivered.taken.push(Taken { letter: *letter, commit: found.commit, merge });
        }
        delivered.tree = interim.tree;
        Ok(Some(delivered))
    }

    /// Merges attached work into the result of the merges so far.
    fn merge_work(&self, interim: &mut Interim, work: ObjectId) -> Result<Merge, RunnerError> {
        if let Some(last) = interim.last.take() {
            // Git finds the base of this merge through that commit; nothing else names it.
            let message = self.render(&Message::new("aynig: interim merge", "", Vec::new()))?;
            let (parents, signature) = (vec![interim.id, last], self.signature());
            interim.id = self.scratch()?.write_commit(&NewCommit {
                tree: interim.tree,
                parents,
                signature,
                message,
            })?;
        }
        let tree = match self.repo.git.join_commits(interim.id, work, self.merge_patience())? {
            Joined::Tree(tree) => tree,
            // A Git that can't merge without a working tree can still tell that there is nothing to merge.
            Joined::Conflicts(paths)
                if paths.is_empty() && self.repo.git.is_ancestor(work, interim.id)? =>
            {
                return Ok(Merge::Nothing);
            }
            Joined::Conflicts(paths) => return Ok(Merge::Conflict(paths)),
            Joined::Late => return Ok(Merge::Conflict(Vec::new())),
        };
        // A message must not change the commands that are run.
        let ours = |tree| -> Result<bool, RunnerError> {
            Ok(command_tree::find(&*self.store, tree)? == command_tree::find(&*self.store, interim.tree)?)
        };
        if matches!(self.settings.commands_from, CommandsFrom::Branch) && !ours(tree)? {
            return Ok(Merge::Conflict(vec![format!("{}/", command_tree::FOLDER)]));
        }
        interim.last = Some(work);
        // Merging work that the branch already has results in the same tree.
        let before = std::mem::replace(&mut interim.tree, tree);
        Ok(if tree == before { Merge::Nothing } else { Merge::Merged })
    }
}
