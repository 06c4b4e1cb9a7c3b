//! The commit that the target is to hold: a merge commit, or the branch's own commits on top of the target.
//!
//! A linear history follows the branch down along the parent that brought the work. For a merge that changed
//! nothing, that is the side that it equals; for a merge that only joined the commit on which the branch
//! stood, the side that was joined; for any other, the first parent, and the merge becomes one commit with
//! all that it brought. Commits that only talk to runners (state events without a change) are left out, and
//! no copy carries a state, so that the target asks for nothing. What the target has already is not brought
//! twice. What lands is signed if the policy or the user's own Git configuration asks for that. Implements
//! K60 (histories), K35 (signing).

use super::super::signed::not_signed;
use super::super::{Runner, RunnerError, Tip};
use super::Target;
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::landing::{Candidate, History, is_of_a_landing};
use crate::protocol::message::{Message, RenderError};
use crate::protocol::text::escape;
use crate::store::git_merge::{Joined, MERGE_PATIENCE};
use crate::store::{Commit, NewCommit, RefName, StoreError};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The most events of a landing that are passed over to find the work below them.
const EVENTS_MAX: usize = 10_000;

/// Part of Git's message about an object that it refuses to write.
const UNSOUND: &str = "object fails fsck";

/// What came of making the commit that the target is to hold.
pub(super) enum Built {
    /// The commit that the target is to hold.
    Commit(ObjectId),
    /// The target has all of the work already.
    Nothing,
    /// These paths conflict; none are named where the histories have nothing in common.
    Conflict(Vec<String>),
    /// The commit can't be made, for this reason.
    Unmade(String),
}

/// Returns why a commit of the branch can't be copied, with the option that lands the branch nevertheless.
fn no_copy(commit: ObjectId, why: &str) -> Built {
    Built::Unmade(format!("commit {commit} cannot be copied: {why}; land it with --merge, which copies none"))
}

/// A commit of the branch, and the parent to which it adds its change.
struct Step {
    commit: Commit,
    parent: Commit,
}

impl Runner<'_> {
    /// Returns the newest commit of a branch that is more than an event of its landing.
    pub(super) fn work_of(&self, tip: &Tip) -> Result<ObjectId, RunnerError> {
        let mut at = tip.clone();
        for _ in 0..EVENTS_MAX {
            let Some(event) = at.event.as_ref().filter(|event| is_of_a_landing(event)) else { break };
            let Some(first) = at.commit.parents.first() else { break };
            let below = self.store.read_commit(*first)?;
            let proposed = Candidate::of(event).map(|candidate| candidate.commit);
            let proposes = proposed.is_some() && at.commit.parents.get(1).copied() == proposed;
            if !proposes && below.tree != at.commit.tree {
                break;
            }
            at = below.into();
        }
        Ok(at.id())
    }

    /// True if a commit is what a runner makes of a branch for this target. Nothing in a commit proves who
    /// made it, so it is made once more, without a signature, and the two are compared: trees, messages, the
    /// parents of a merge, and the authors where the branch's commits were copied.
    pub(super) fn is_made_of(
        &self,
        candidate: ObjectId,
        branch: &RefName,
        target: &Target,
        work: ObjectId,
        history: History,
    ) -> Result<bool, RunnerError> {
        let Built::Commit(made) = self.build(branch, target, work, history, false)? else { return Ok(false) };
        let (mut theirs, mut made) = (candidate, made);
        while theirs != made {
            let (one, other) = (self.store.read_commit(theirs)?, self.store.read_commit(made)?);
            let same_words = one.message.trim_ascii_end() == other.message.trim_ascii_end();
            if one.tree != other.tree || !same_words {
                return Ok(false);
            }
            let same_author = || self.repo.git.have_one_author(theirs, made);
            match (history, &one.parents[..], &other.parents[..]) {
                (History::Merge, joined, wanted) => return Ok(joined == wanted),
                (History::Linear, [below], [own]) if same_author()? => (theirs, made) = (*below, *own),
                (History::Linear, _, _) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Makes the commit that the target is to hold.
    pub(super) fn build(
        &self,
        branch: &RefName,
        target: &Target,
        work: ObjectId,
        history: History,
        signed: bool,
    ) -> Result<Built, RunnerError> {
        let base = target.tip.id();
        if self.repo.git.is_ancestor(work, base)? {
            return Ok(Built::Nothing);
        }
        match history {
            History::Merge => self.merge_onto(branch, target, work, signed),
            History::Linear => self.replay_onto(&target.tip.commit, work, signed),
        }
    }

    fn merge_onto(
        &self,
        branch: &RefName,
        target: &Target,
        work: ObjectId,
        signed: bool,
    ) -> Result<Built, RunnerError> {
        let base = target.tip.id();
        let tree = match self.repo.git.join_commits(base, work, self.merge_patience())? {
            Joined::Tree(tree) => tree,
            Joined::Conflicts(paths) => return Ok(Built::Conflict(paths)),
            Joined::Late => return Ok(self.took_too_long()),
        };
        let into = match target.name.short() {
            b"main" | b"master" => String::new(),
            other => format!(" into {}", escape(other)),
        };
        let message =
            Message::new(format!("Merge branch '{}'{into}", escape(branch.short())), "", Vec::new());
        Ok(Built::Commit(self.write_landing(tree, vec![base, work], &message, signed)?))
    }

    /// Returns how long a merge of two commits may take: the limit of a run also limits what is made for one.
    pub(crate) fn merge_patience(&self) -> Duration {
        self.settings.timeout.map_or(MERGE_PATIENCE, |timeout| timeout.min(MERGE_PATIENCE))
    }

    fn took_too_long(&self) -> Built {
        let patience = humantime::format_duration(self.merge_patience());
        Built::Unmade(format!("Git takes longer than {patience} to merge them"))
    }

    fn replay_onto(&self, base: &Commit, work: ObjectId, signed: bool) -> Result<Built, RunnerError> {
        let one_by_one = self.replay(base, self.steps(base.id, work, false)?, signed)?;
        // Conflicts that a merge of the target has resolved on the branch come up again commit by commit:
        // then all up to that merge becomes one commit.
        match one_by_one {
            Built::Conflict(paths) => match self.replay(base, self.steps(base.id, work, true)?, signed)? {
                Built::Conflict(_) | Built::Unmade(_) => Ok(Built::Conflict(paths)),
                mended @ (Built::Commit(_) | Built::Nothing) => Ok(mended),
            },
            done @ (Built::Commit(_) | Built::Nothing | Built::Unmade(_)) => Ok(done),
        }
    }

    fn replay(&self, base: &Commit, steps: Option<Vec<Step>>, signed: bool) -> Result<Built, RunnerError> {
        let Some(steps) = steps else { return Ok(Built::Conflict(Vec::new())) };
        let (mut onto, mut tree) = (base.id, base.tree);
        for Step { commit, parent } in steps.into_iter().rev() {
            let event = Event::in_message(&commit.message);
            let changes = commit.tree != parent.tree;
            if !changes && (event.is_some() || commit.parents.len() > 1) {
                continue;
            }
            if event.is_none() && commit.parents == [onto] {
                (onto, tree) = (commit.id, commit.tree);
                continue;
            }
            let picked = match changes.then(|| self.pick(tree, parent.id, commit.id)).transpose()? {
                Some(Joined::Tree(picked)) => picked,
                Some(Joined::Conflicts(paths)) => return Ok(Built::Conflict(paths)),
                Some(Joined::Late) => return Ok(self.took_too_long()),
                None => tree,
            };
            if changes && picked == tree {
                continue;
            }
            let message = match event.map(|event| self.render(&without_state(event.message))).transpose() {
                Err(RunnerError::Message { cause }) => return Ok(no_copy(commit.id, &cause)),
                rendered => rendered?,
            };
            let by = self.signature();
            let copied = self.repo.git.copy_commit(commit.id, (picked, onto), message, &by, signed);
            onto = match (copied, signed) {
                // Git refuses the copied author or date as malformed.
                (Err(StoreError::Git { message, .. }), false) if message.contains(UNSOUND) => {
                    return Ok(no_copy(commit.id, &message));
                }
                (copied, false) => copied?,
                (copied, true) => copied.map_err(not_signed)?,
            };
            tree = picked;
        }
        Ok(if onto == base.id { Built::Nothing } else { Built::Commit(onto) })
    }

    /// Applies a commit's change on top of this tree, by a merge of the commit with an interim one that has
    /// the tree and stands on `parent`, so that `parent` is the base of both, whichever Git merges them.
    fn pick(&self, tree: ObjectId, parent: ObjectId, commit: ObjectId) -> Result<Joined, RunnerError> {
        let message = self.render(&Message::new("aynig: interim commit", "", Vec::new()))?;
        let interim = NewCommit { tree, parents: vec![parent], signature: self.signature(), message };
        let onto = self.scratch()?.write_commit(&interim)?;
        Ok(self.repo.git.join_commits(onto, commit, self.merge_patience())?)
    }

    /// Returns the branch's commits that the target does not have, newest first; `None` if the two have no
    /// common history. With `mended` all up to the newest merge of the target is one step.
    fn steps(&self, base: ObjectId, work: ObjectId, mended: bool) -> Result<Option<Vec<Step>>, RunnerError> {
        let beyond = self.repo.git.commits_beyond(base, work)?;
        let (mut at, mut steps) = (work, Vec::new());
        while let Some(parents) = beyond.get(&at) {
            let commit = self.store.read_commit(at)?;
            let read = parents.iter().map(|parent| self.store.read_commit(*parent));
            let read: Vec<Commit> = read.collect::<Result<_, _>>()?;
            let Some(parent) = brings(&commit, read, &beyond, mended) else { return Ok(None) };
            at = parent.id;
            steps.push(Step { commit, parent });
        }
        Ok(Some(steps))
    }
}

/// Returns the parent along which a commit's work came; `None` for a commit without parents.
fn brings(
    commit: &Commit,
    parents: Vec<Commit>,
    beyond: &HashMap<ObjectId, Vec<ObjectId>>,
    mended: bool,
) -> Option<Commit> {
    let same = parents.iter().position(|parent| parent.tree == commit.tree);
    let joined = || match &parents[..] {
        // The target has the first side already, or the second stands on the first: this merge only joined
        // the second.
        [first, second] if beyond.contains_key(&second.id) => {
            let stands = !beyond.contains_key(&first.id) || reaches(second.id, first.id, beyond);
            stands.then_some(1)
        }
        [_, _] if mended => Some(1),
        _ => None,
    };
    let at = same.or_else(joined).unwrap_or(0);
    parents.into_iter().nth(at)
}

fn reaches(from: ObjectId, to: ObjectId, beyond: &HashMap<ObjectId, Vec<ObjectId>>) -> bool {
    let (mut met, mut left) = (HashSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        if at == to {
            return true;
        }
        left.extend(beyond.get(&at).into_iter().flatten().copied().filter(|id| met.insert(*id)));
    }
    false
}

/// Removes this program's trailers from a message, so that it asks for nothing. If the text above them is a
/// trailer block to Git once they are gone (a `Signed-off-by`), it is read as one, and such trailers in it
/// are removed as well.
fn without_state(mut message: Message) -> Message {
    let ours = [Dialect::Dwp, Dialect::Aynig].map(Dialect::prefix);
    loop {
        message.trailers.retain(|trailer| !ours.iter().any(|prefix| trailer.key.starts_with(prefix)));
        if message.render() != Err(RenderError::BodyEndsInTrailers) {
            return message;
        }
        let Message { subject, body, .. } = &message;
        message = Message::parse(&[subject, &b"\n\n"[..], body, b"\n"].concat());
    }
}
