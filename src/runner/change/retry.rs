//! `retry`: asks for the trigger of a stalled branch again, or lands its finished outcome, which could not be
//! landed before.
//!
//! Which of the two is to be done is in the commits: an attempt that is itself a state event of the stalled
//! run is a whole outcome, and is landed without running anything. Implements K28 (landing an attempt).

use super::super::named::attempt_ref;
use super::super::{Runner, Tip, recover};
use super::{ChangeError, Inside, Written, moved_notes, written};
use crate::protocol::dialect::Writer;
use crate::protocol::event::{Event, RECOVERY_ID};
use crate::protocol::message::Message;
use crate::protocol::name::STALLED;
use crate::protocol::transition;
use crate::store::git_merge::Merged;
use crate::store::{RefName, swap};

impl Runner<'_> {
    /// Asks for a stalled branch's trigger again, or lands its finished outcome: `retry`.
    pub fn retry(&self, branch: &RefName, inside: Option<&Inside>) -> Result<Written, ChangeError> {
        let head = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        let stalled = match self.stalled_below(branch, &head) {
            Err(ChangeError::NotStalled(branch)) => {
                return self.asked_already(&branch, &head)?.ok_or(ChangeError::NotStalled(branch));
            }
            stalled => stalled?,
        };
        let event = stalled.event.as_ref().ok_or_else(|| ChangeError::NotStalled(branch.clone()))?;
        if let Some(attempt) = self.finished_attempt(&stalled)? {
            return self.land_attempt(branch, &head, &stalled, attempt);
        }
        let missing = |why: &str| ChangeError::NoTrigger(branch.clone(), why.to_owned());
        let trigger = event.trigger().ok_or_else(|| missing("the stalled commit names no trigger"))?;
        let trigger = self.store.read_commit(trigger).map_err(|e| missing(&e.to_string()))?;
        if !self.descends(trigger.id, stalled.id())? {
            // The stalled commit may name any commit of this repository: one that is not in the branch's
            // history need not concern this branch.
            return Err(missing(&format!("{} is not in its history", trigger.id)));
        }
        let trigger = Tip::from(trigger);
        self.require_vouched(branch, &trigger)?;
        let trigger = trigger.event;
        let trigger = trigger.ok_or_else(|| missing("the trigger is no state event"))?;
        let state = trigger.state_name().ok_or_else(|| missing("the trigger's state is not usable"))?;
        let hop = inside.map(|i| i.hop.saturating_add(1));
        let message = transition::retried(state, &trigger, hop);
        let commit = self.write(branch, head.commit.tree, vec![head.id()], &message)?;
        self.write_on_head(branch, (head.id(), commit), &format!("aynig: retry {state}"))?;
        // For a check of a branch that is to land, the new event is the request to land, with that state.
        let asked = Event::of(message).and_then(|event| event.state_name().cloned());
        Ok(written(branch, commit, asked.as_ref().unwrap_or(state)))
    }

    /// Returns the head if an earlier `retry` wrote it, which may have been ended before it could report;
    /// `None` otherwise.
    fn asked_already(&self, branch: &RefName, head: &Tip) -> Result<Option<Written>, ChangeError> {
        let Some((event, state)) = head.event.as_ref().and_then(|event| Some((event, event.state_name()?)))
        else {
            return Ok(None);
        };
        let Some(parent) = head.commit.parents.first() else { return Ok(None) };
        let below = Tip::from(self.store.read_commit(*parent)?);
        let stalled = |event: &&Event| event.state_name().is_some_and(|s| s.as_str() == STALLED);
        let Some(stalled) = below.event.as_ref().filter(stalled) else { return Ok(None) };
        let landed = event.text(RECOVERY_ID).is_some() && event.run_id() == recover::stalled_run(stalled);
        let trigger = stalled.trigger().and_then(|id| self.store.read_commit(id).ok()).map(Tip::from);
        let asked = trigger.and_then(|trigger| trigger.event).and_then(|trigger| {
            Event::of(transition::retried(trigger.state_name()?, &trigger, None))?.state_name().cloned()
        });
        let again = landed || !event.is_working() && asked.as_ref() == Some(state);
        Ok(again.then(|| written(branch, head.id(), state)))
    }

    /// Refuses a commit that is not signed for the branch: what `retry` repeats would be signed by this
    /// runner.
    pub(super) fn require_vouched(&self, branch: &RefName, tip: &Tip) -> Result<(), ChangeError> {
        match self.not_vouched(branch, tip)? {
            None => Ok(()),
            Some(_) => Err(ChangeError::NotVouched(branch.clone(), tip.id())),
        }
    }

    /// Returns the newest state event at or below the head if it is `stalled`. Commits above it are the
    /// user's, who may have committed the local changes that were in the way.
    fn stalled_below(&self, branch: &RefName, head: &Tip) -> Result<Tip, ChangeError> {
        let mut tip = head.clone();
        for _ in 0..1000 {
            match &tip.event {
                Some(event) if event.state_name().is_some_and(|s| s.as_str() == STALLED) => {
                    return Ok(tip);
                }
                Some(_) => break,
                None => {}
            }
            if self.store.history_ends_at(tip.id())? {
                break;
            }
            let Some(parent) = tip.commit.parents.first().copied() else { break };
            tip = self.store.read_commit(parent)?.into();
        }
        Err(ChangeError::NotStalled(branch.clone()))
    }

    /// Returns the attempt of a stalled run if it is a whole outcome.
    fn finished_attempt(&self, stalled: &Tip) -> Result<Option<Tip>, ChangeError> {
        let Some(run_id) = stalled.event.as_ref().and_then(recover::stalled_run) else { return Ok(None) };
        let Some((_, attempt)) = self.attempt_obtained(run_id, stalled)? else { return Ok(None) };
        let attempt: Tip = self.store.read_commit(attempt)?.into();
        let whole = attempt.event.as_ref().is_some_and(|e| {
            // An outcome that a command wrote need not carry the run's id; the name of its ref does (K29).
            let of_run = match e.dialect.writer() {
                Writer::Runner => e.run_id() == Some(run_id),
                Writer::Command => e.run_id().is_none_or(|id| id == run_id),
            };
            !e.is_working() && e.state_name().is_some() && of_run
        });
        Ok(whole.then_some(attempt))
    }

    /// Lands a finished outcome of a stalled run; runs nothing (K28).
    fn land_attempt(
        &self,
        branch: &RefName,
        head: &Tip,
        stalled: &Tip,
        attempt: Tip,
    ) -> Result<Written, ChangeError> {
        self.require_vouched(branch, &attempt)?;
        let mut message = Message::parse(&attempt.commit.message);
        // The trailer shows in the history that the outcome was landed by hand, and keeps two processes that
        // land it from writing the same commit.
        let dialect = attempt.event.as_ref().map(|e| e.dialect).unwrap_or_default();
        message.trailers.push(dialect.trailer(RECOVERY_ID, uuid::Uuid::new_v4()));
        let mut parents = vec![head.id()];
        match attempt.event.as_ref().map(|e| e.dialect.writer()) {
            // The attempt is the command's own commit, and all that lies below it comes along.
            Some(Writer::Command) => parents.push(attempt.id()),
            Some(Writer::Runner) | None => parents.extend(attempt.commit.parents.iter().skip(1)),
        }
        let (mut tree, mut overruled) = (attempt.commit.tree, Vec::new());
        if head.commit.tree != stalled.commit.tree {
            (tree, overruled) =
                match self.repo.git.merge_trees(stalled.commit.tree, head.commit.tree, tree)? {
                    Merged::Tree(tree, overruled) => (tree, overruled),
                    Merged::Apart(paths) => return Err(ChangeError::Apart(branch.clone(), paths)),
                };
        }
        let commit = self.write(branch, tree, parents, &message)?;
        let moved = self.move_branch(branch, head.id(), commit, "aynig: land attempt", self.soon())?;
        let notes = moved_notes(branch, moved)?.ok_or_else(|| ChangeError::Raced(branch.clone()))?;
        let state = attempt.event.as_ref().and_then(|e| e.state_name().cloned());
        let state = state.ok_or_else(|| ChangeError::NotStalled(branch.clone()))?;
        let run_id = stalled.event.as_ref().and_then(recover::stalled_run);
        if let Some(run_id) = run_id
            && let Some(name) = attempt_ref(run_id)
            && !self.is_for_others(run_id, branch).unwrap_or(true)
        {
            // The outcome is on the branch, and no other branch needs the attempt. If the ref stays, `gc`
            // removes it by its age.
            let _ = swap::delete_ref(&*self.store, &name, attempt.id(), &self.signature());
        }
        Ok(Written { notes, overruled, ..written(branch, commit, &state) })
    }
}
