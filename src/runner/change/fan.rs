//! `fan` and `choose`: several branches answer one trigger, and one of them goes on for all.
//!
//! The attempts are made with the event that names them, in one transaction; where a kill came between two of its moves
//! the branch names what is missing, and `fan` once more makes that. The attempts' first commits are its parents: none is
//! lost meanwhile. A choice ends all attempts that rest in one transaction, so that of two choices one is made and the
//! other changes nothing; then those that run, and only then the branch goes on: what the chosen one asks for is asked of
//! one branch, and after a kill the branch is fanned still, whose attempts say that a choice has ended them, and can be
//! chosen. Nothing of them is removed. What a branch names is its attempt only where the branch of that name began as one:
//! who may push writes any list. Implements K61.

use super::super::{Runner, RunnerError, Tip};
use super::{ChangeError, Inside, Written, moved_notes, refuse_leased, unless_raced, written};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::fan::{self, ATTEMPTS_MAX, Attempt, DONE, FANNED, attempts_of};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::{CANCELED, STALLED, StateName};
use crate::store::{Expected, RefChange, RefName, StoreError};
use std::collections::HashSet;

/// Most ends by choices that were cut short which are passed over.
const ENDS_MAX: usize = 100;

/// What came of it.
#[derive(Debug)]
pub struct Fanned {
    /// The branch that names them.
    pub written: Written,
    /// The attempts that were made now.
    pub made: Vec<Written>,
}

/// What was chosen.
#[derive(Debug)]
pub struct Chosen {
    /// The branch that goes on.
    pub written: Written,
    /// The attempts that were canceled.
    pub canceled: Vec<Written>,
}

/// A fanned branch, and what it names.
pub(crate) struct Group {
    pub branch: RefName,
    pub tip: Tip,
    pub attempts: Vec<Attempt>,
}

fn unique() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn named(name: &str) -> Result<StateName, ChangeError> {
    StateName::new(name).map_err(|why| ChangeError::Message(why.to_string()))
}

impl Runner<'_> {
    /// Has a branch's trigger answered by several, one for each of these lists of trailers, which it is told besides the
    /// trigger: `fan`.
    ///
    /// # Errors
    /// [`ChangeError::NoBranch`], [`ChangeError::Leased`], [`ChangeError::NotVouched`], [`ChangeError::NoTrigger`],
    /// [`ChangeError::Exists`], [`ChangeError::Raced`].
    pub fn fan(
        &self,
        branch: &RefName,
        own: &[Vec<Trailer>],
        inside: Option<&Inside>,
    ) -> Result<Fanned, ChangeError> {
        let tip = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        refuse_leased(branch, &tip)?;
        self.require_vouched(branch, &tip)?;
        let state = named(FANNED)?;
        let none = |why: &str| ChangeError::NoTrigger(branch.clone(), why.to_owned());
        let trigger = tip.event.as_ref().ok_or_else(|| none("its head is no state event"))?;
        let known = attempts_of(trigger);
        if !known.is_empty() {
            // A fan that was cut short makes what is missing.
            let made = self.make_missing(branch, &known)?;
            return Ok(Fanned { written: written(branch, tip.id(), &state), made });
        }
        if trigger.dialect != Dialect::Dwp {
            return Err(ChangeError::Dialect(branch.clone(), trigger.dialect));
        }
        let asked = trigger.state_name().filter(|state| state.as_str() != STALLED);
        let asked = asked.ok_or_else(|| none("its state asks for nothing"))?;
        let mut event = trigger.clone();
        event.hop_floor = event.hop_floor.max(inside.map_or(0, |inside| inside.hop.saturating_add(1)));
        let mut attempts = Vec::new();
        for (at, more) in own.iter().enumerate().take(ATTEMPTS_MAX) {
            let name = RefName::branch([branch.short(), format!("-{}", at + 1).as_bytes()].concat());
            let message = fan::attempt(&event, (asked, branch.short()), (at + 1, own.len()), more, &unique());
            let commit = self.write_declared(&name, &message, tip.commit.tree, vec![tip.id()])?;
            attempts.push((name, commit));
        }
        let listed: Vec<Attempt> = attempts.iter().map(|(name, id)| (name.short().to_vec(), *id)).collect();
        let message = fan::fanned(&event, &state, &listed, &unique());
        let parents = std::iter::once(tip.id()).chain(attempts.iter().map(|(_, id)| *id)).collect();
        let commit = self.write_declared(branch, &message, tip.commit.tree, parents)?;
        let created: Vec<RefChange> =
            attempts.iter().map(|(name, id)| RefChange::create(name.clone(), *id)).collect();
        let log = format!("aynig: fan {}", attempts.len());
        let moved = self.move_branch_with(branch, (tip.id(), commit), &created, &log, self.soon());
        let notes = match moved {
            Err(RunnerError::Store(StoreError::Moved { name, .. })) if name != *branch => {
                return Err(ChangeError::Exists(name));
            }
            moved => moved_notes(branch, moved?)?.ok_or_else(|| ChangeError::Raced(branch.clone()))?,
        };
        let made = attempts.iter().map(|(name, id)| Written { created: true, ..written(name, *id, asked) });
        Ok(Fanned { written: Written { notes, ..written(branch, commit, &state) }, made: made.collect() })
    }

    fn make_missing(&self, branch: &RefName, known: &[Attempt]) -> Result<Vec<Written>, ChangeError> {
        let mut made = Vec::new();
        for attempt in known {
            let name = RefName::branch(&attempt.0);
            if self.store.tip(&name)?.is_some() {
                continue;
            }
            let event = self.first_event(branch, attempt);
            let Some(state) = event.as_ref().and_then(Event::state_name) else { continue };
            self.create_at(&name, attempt.1, "aynig: fan")?;
            made.push(Written { created: true, ..written(&name, attempt.1, state) });
        }
        Ok(made)
    }

    /// The event that an attempt began with; none where that commit began no attempt of this name of this branch.
    fn first_event(&self, branch: &RefName, (name, first): &Attempt) -> Option<Event> {
        let event = Event::in_message(&self.store.read_commit(*first).ok()?.message)?;
        fan::began(&event, branch.short(), name).then_some(event)
    }

    /// Whether a branch has an attempt: the one has the commit in its history that began the other, or is gone.
    fn has_attempt(&self, branch: &RefName, attempt: &Attempt) -> Result<bool, ChangeError> {
        if self.first_event(branch, attempt).is_none() {
            return Ok(false);
        }
        match self.store.tip(&RefName::branch(&attempt.0))? {
            Some(tip) => Ok(self.repo.git.is_ancestor(attempt.1, self.store.read_commit(tip)?.id)?),
            None => Ok(true),
        }
    }

    /// The fanned branch that has this one as an attempt, or that this one is; `None` where there is none. What it names
    /// and does not have is left out.
    pub(crate) fn group_of(&self, branch: &RefName) -> Result<Option<Group>, ChangeError> {
        self.store.refresh()?;
        let mut found: Vec<Group> = Vec::new();
        self.store.visit_heads("refs/heads/", &mut |name, read| {
            let Some(tip) = read.ok().map(Tip::from) else { return };
            let attempts = tip.event.as_ref().map(attempts_of).unwrap_or_default();
            let names = name == *branch || attempts.iter().any(|(attempt, _)| attempt == branch.short());
            if names && !attempts.is_empty() {
                found.push(Group { branch: name, tip, attempts });
            }
        })?;
        // An attempt that was fanned itself is asked about for itself.
        found.sort_by_key(|group| group.branch != *branch);
        for mut group in found {
            let named = std::mem::take(&mut group.attempts);
            for attempt in named {
                if self.has_attempt(&group.branch, &attempt)? {
                    group.attempts.push(attempt);
                }
            }
            let has = |(name, _): &Attempt| name == branch.short();
            if group.branch == *branch || group.attempts.iter().any(has) {
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    /// Has the branch go on with what this attempt made, and cancels the others: `choose`.
    ///
    /// # Errors
    /// [`ChangeError::NoBranch`], [`ChangeError::NotFanned`], [`ChangeError::Fanned`] where the branch itself was named,
    /// [`ChangeError::Chosen`] where it went on already,
    /// [`ChangeError::Leased`] and [`ChangeError::Unfinished`] of the chosen one, [`ChangeError::NotVouched`] of that and
    /// of the fanned branch, [`ChangeError::Blocked`], [`ChangeError::Raced`].
    pub fn choose(&self, branch: &RefName) -> Result<Chosen, ChangeError> {
        let tip = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        let Some(group) = self.group_of(branch)? else {
            let done = self.finish_choice(branch, &tip)?;
            return done.ok_or_else(|| ChangeError::NotFanned(branch.clone()));
        };
        if group.branch == *branch {
            let names = group.attempts.iter().map(|(name, _)| RefName::branch(name)).collect();
            return Err(ChangeError::Fanned(branch.clone(), names));
        }
        refuse_leased(branch, &tip)?;
        let work = self.before_a_choice(&tip)?;
        let unfinished = |why: &str| ChangeError::Unfinished(branch.clone(), why.to_owned());
        let event = work.event.as_ref().ok_or_else(|| unfinished("its head is no state event"))?;
        let state = event.state_name().ok_or_else(|| unfinished("its state is not usable"))?;
        if [STALLED, CANCELED].contains(&state.as_str()) {
            return Err(unfinished(state.as_str()));
        }
        let began = group.attempts.iter().any(|(_, first)| *first == work.id());
        if began {
            return Err(unfinished("it has not run yet"));
        }
        self.require_vouched(branch, &work)?;
        self.require_vouched(&group.branch, &group.tip)?;
        let message = fan::chosen(event, branch.short(), &unique());
        let (from, parents) = (group.tip.id(), vec![group.tip.id(), work.id()]);
        let commit = self.write_declared(&group.branch, &message, work.commit.tree, parents)?;
        if let Some(by) = self.in_the_way_of(&group.branch, from, commit)? {
            return Err(ChangeError::Blocked(group.branch.clone(), by));
        }
        let canceled = self.end_attempts(&group, branch, &tip)?;
        let moved = self.move_branch(&group.branch, from, commit, "aynig: choose", self.soon())?;
        let notes = moved_notes(&group.branch, moved)?;
        let notes = notes.ok_or_else(|| ChangeError::Raced(group.branch.clone()))?;
        Ok(Chosen { written: Written { notes, ..written(&group.branch, commit, state) }, canceled })
    }

    /// What an attempt was before a choice ended it that was cut short: the branch is fanned still.
    fn before_a_choice(&self, tip: &Tip) -> Result<Tip, ChangeError> {
        let mut tip = tip.clone();
        // Each choice that was cut short left one more.
        for _ in 0..ENDS_MAX {
            let ended = tip.event.as_ref().is_some_and(fan::is_ended);
            let Some(below) = tip.commit.parents.first().filter(|_| ended) else { break };
            tip = self.store.read_commit(*below)?.into();
        }
        Ok(tip)
    }

    /// Says `done` on the attempt that is chosen and `canceled` on the others: on those that rest at once or on none, then on
    /// those that run. Those that were canceled, in the order in which they are named.
    fn end_attempts(&self, group: &Group, chosen: &RefName, tip: &Tip) -> Result<Vec<Written>, ChangeError> {
        let end = fan::ended(tip.event.as_ref(), DONE, chosen.short(), &unique());
        let end = self.write_declared(chosen, &end, tip.commit.tree, vec![tip.id()])?;
        let (mut canceled, mut running, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (name, _) in group.attempts.iter().filter(|(name, _)| name != chosen.short()) {
            let name = RefName::branch(name);
            match self.passed_over(&name, chosen)? {
                Passed::Over => {}
                Passed::Running => running.push(name),
                Passed::Resting { at, end } => {
                    canceled.push(written(&name, end, &named(CANCELED)?));
                    ends.push(RefChange { name, expected: Expected::At(at), new: Some(end) });
                }
            }
        }
        match self.move_branch_with(chosen, (tip.id(), end), &ends, "aynig: choose", self.soon()) {
            Err(RunnerError::Store(StoreError::Moved { name, .. })) => return Err(ChangeError::Raced(name)),
            moved => moved_notes(chosen, moved?)?.ok_or_else(|| ChangeError::Raced(chosen.clone()))?,
        };
        for name in running {
            canceled.extend(self.pass_over(&name, chosen)?);
        }
        let place = |said: &Written| group.attempts.iter().position(|(name, _)| name == said.branch.short());
        canceled.sort_by_key(place);
        Ok(canceled)
    }

    /// Says `done` on an attempt that its branch goes on with already, as one could be left by an earlier version. `None` where
    /// the branch did not choose, or has forgotten that.
    ///
    /// # Errors
    /// [`ChangeError::Chosen`] where nothing is left to do.
    fn finish_choice(&self, attempt: &RefName, tip: &Tip) -> Result<Option<Chosen>, ChangeError> {
        let (known, mut of) = (HashSet::new(), None);
        self.walk(tip.id(), &known, &mut |below| {
            let event = below.event.as_ref();
            of = event.and_then(|event| event.message.last(fan::OF)).map(RefName::branch);
            of.is_none()
        })?;
        let head = of.as_ref().filter(|of| of.is_valid()).map(|of| self.fresh_tip(of)).transpose()?.flatten();
        let (Some(branch), Some(head)) = (of, head) else { return Ok(None) };
        let mut found = None;
        self.walk(head.id(), &known, &mut |below| {
            let Some(event) = &below.event else { return true };
            let chose = event.message.last(fan::CHOSEN).map(RefName::branch);
            let ends = chose.is_some() || !attempts_of(event).is_empty();
            if let (Some(chose), Some(state), [fanned, work, ..]) =
                (chose, event.state_name(), &below.commit.parents[..])
            {
                found = Some((chose, state.clone(), *fanned, *work));
            }
            !ends
        })?;
        let Some((chose, state, fanned, work)) = found else { return Ok(None) };
        if chose == *attempt && work == tip.id() {
            let end = fan::ended(tip.event.as_ref(), DONE, attempt.short(), &unique());
            let end = self.write_declared(attempt, &end, tip.commit.tree, vec![tip.id()])?;
            unless_raced(attempt, self.advance(attempt, tip.id(), end, "aynig: choose")?)?;
            let written = written(&branch, head.id(), &state);
            return Ok(Some(Chosen { written, canceled: Vec::new() }));
        }
        let fanned = Tip::from(self.store.read_commit(fanned)?);
        let named = fanned.event.as_ref().map(attempts_of).unwrap_or_default();
        match named.iter().any(|(name, _)| name == attempt.short()) {
            true => Err(ChangeError::Chosen { attempt: attempt.clone(), branch, chosen: chose }),
            false => Ok(None),
        }
    }

    /// How an attempt that was not chosen is to end.
    fn passed_over(&self, attempt: &RefName, chosen: &RefName) -> Result<Passed, ChangeError> {
        let Some(tip) = self.fresh_tip(attempt)? else { return Ok(Passed::Over) };
        let event = tip.event.as_ref();
        if event.is_some_and(Event::is_working) {
            return Ok(Passed::Running);
        }
        let state = named(CANCELED)?;
        if event.and_then(Event::state_name) == Some(&state) {
            return Ok(Passed::Over);
        }
        let message = fan::ended(event, CANCELED, chosen.short(), &unique());
        let end = self.write_declared(attempt, &message, tip.commit.tree, vec![tip.id()])?;
        Ok(Passed::Resting { at: tip.id(), end })
    }

    /// Cancels an attempt that was not chosen; `None` where it is canceled, or gone.
    fn pass_over(&self, attempt: &RefName, chosen: &RefName) -> Result<Option<Written>, ChangeError> {
        loop {
            match self.passed_over(attempt, chosen)? {
                Passed::Over => return Ok(None),
                Passed::Running => match self.cancel(attempt, None) {
                    Ok(done) => return Ok(Some(done)),
                    // Its run has ended meanwhile.
                    Err(ChangeError::NotLeased(_)) => {}
                    Err(error) => return Err(error),
                },
                Passed::Resting { at, end } => {
                    unless_raced(attempt, self.advance(attempt, at, end, "aynig: not chosen")?)?;
                    return Ok(Some(written(attempt, end, &named(CANCELED)?)));
                }
            }
        }
    }
}

/// How an attempt that was not chosen ends.
enum Passed {
    /// It has, or it is gone.
    Over,
    /// Its run is canceled.
    Running,
    /// What it holds goes on with this commit.
    Resting { at: ObjectId, end: ObjectId },
}
