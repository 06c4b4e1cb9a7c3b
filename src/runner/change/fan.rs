//! `fan` and `choose`: several branches answer one trigger, and one of them goes on for all.
//!
//! The attempts are made with the event that names them, in one transaction; where a kill came between two of its moves
//! the branch names what is missing, and `fan` once more makes that. The attempts' first commits are its parents: none is
//! lost meanwhile. A choice and the end of each attempt that rests are one transaction, so that of two choices one is
//! made and the other changes nothing; an attempt that runs is canceled after it, and `choose` once more does what a kill
//! left undone. Nothing of them is removed. What a branch names is its attempt only where the branch of that name began as one:
//! who may push writes any list. Implements K61.

use super::super::{Runner, RunnerError, Tip};
use super::{ChangeError, Inside, Written, moved_notes, refuse_leased, unless_raced, written};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::fan::{self, ATTEMPTS_MAX, Attempt, FANNED, attempts_of};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::{CANCELED, STALLED, StateName};
use crate::store::{Expected, RefChange, RefName, StoreError};
use std::collections::HashSet;

/// The state of an attempt that was chosen: the branch itself goes on.
const DONE: &str = "done";

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
        let unfinished = |why: &str| ChangeError::Unfinished(branch.clone(), why.to_owned());
        let event = tip.event.as_ref().ok_or_else(|| unfinished("its head is no state event"))?;
        let state = event.state_name().ok_or_else(|| unfinished("its state is not usable"))?;
        if [STALLED, CANCELED].contains(&state.as_str()) {
            return Err(unfinished(state.as_str()));
        }
        let began = group.attempts.iter().any(|(_, first)| *first == tip.id());
        if began {
            return Err(unfinished("it has not run yet"));
        }
        self.require_vouched(branch, &tip)?;
        self.require_vouched(&group.branch, &group.tip)?;
        let message = fan::chosen(event, branch.short(), &unique());
        let (from, parents) = (group.tip.id(), vec![group.tip.id(), tip.id()]);
        let commit = self.write_declared(&group.branch, &message, tip.commit.tree, parents)?;
        // What its state asks for is asked of one branch.
        let end = fan::ended(Some(event), DONE, branch.short(), &unique());
        let end = self.write_declared(branch, &end, tip.commit.tree, vec![tip.id()])?;
        let mut ends =
            vec![RefChange { name: branch.clone(), expected: Expected::At(tip.id()), new: Some(end) }];
        let (mut canceled, mut running) = (Vec::new(), Vec::new());
        for name in others(&group.attempts, branch) {
            match self.passed_over(&name, branch)? {
                Passed::Over => {}
                Passed::Running => running.push(name),
                Passed::Resting { at, end } => {
                    canceled.push(written(&name, end, &named(CANCELED)?));
                    ends.push(RefChange { name, expected: Expected::At(at), new: Some(end) });
                }
            }
        }
        let moved = self.move_branch_with(&group.branch, (from, commit), &ends, "aynig: choose", self.soon());
        let notes = match moved {
            Err(RunnerError::Store(StoreError::Moved { name, .. })) => return Err(ChangeError::Raced(name)),
            moved => moved_notes(&group.branch, moved?)?,
        };
        let notes = notes.ok_or_else(|| ChangeError::Raced(group.branch.clone()))?;
        for name in running {
            canceled.extend(self.pass_over(&name, branch)?);
        }
        // As the branch names them.
        let place = |said: &Written| group.attempts.iter().position(|(name, _)| name == said.branch.short());
        canceled.sort_by_key(place);
        Ok(Chosen { written: Written { notes, ..written(&group.branch, commit, state) }, canceled })
    }

    /// Does what a kill left undone of a choice that its branch goes on with already: `done` on the attempt, and the end of
    /// the others. `None` where that is not so, the attempt went on itself, or nothing is left to do.
    fn finish_choice(&self, attempt: &RefName, tip: &Tip) -> Result<Option<Chosen>, ChangeError> {
        let (known, mut of) = (HashSet::new(), None);
        self.walk(tip.id(), &known, &mut |below| {
            let event = below.event.as_ref();
            of = event.and_then(|event| event.message.last(fan::OF)).map(RefName::branch);
            of.is_none()
        })?;
        let head = of.as_ref().filter(|of| of.is_valid()).map(|of| self.fresh_tip(of)).transpose()?.flatten();
        let (Some(branch), Some(head)) = (of, head) else { return Ok(None) };
        let is_ended = tip.event.as_ref().and_then(Event::state_name).is_some_and(|s| s.as_str() == DONE);
        let chosen_at = tip.commit.parents.first().filter(|_| is_ended).copied();
        let mut found = None;
        self.walk(head.id(), &known, &mut |below| {
            let Some(event) = &below.event else { return true };
            let chose = event.message.last(fan::CHOSEN) == Some(attempt.short());
            if let (true, [fanned, at, ..]) = (chose, &below.commit.parents[..])
                && (*at == tip.id() || Some(*at) == chosen_at)
            {
                found = event.state_name().map(|state| (state.clone(), *fanned, *at == tip.id()));
            }
            !chose && attempts_of(event).is_empty()
        })?;
        let Some((state, fanned, is_open)) = found else { return Ok(None) };
        if is_open {
            let end = fan::ended(tip.event.as_ref(), DONE, attempt.short(), &unique());
            let end = self.write_declared(attempt, &end, tip.commit.tree, vec![tip.id()])?;
            unless_raced(attempt, self.advance(attempt, tip.id(), end, "aynig: choose")?)?;
        }
        let fanned = Tip::from(self.store.read_commit(fanned)?);
        let named = fanned.event.as_ref().map(attempts_of).unwrap_or_default();
        let mut canceled = Vec::new();
        for name in others(&named, attempt) {
            let is_ours = named.iter().find(|(short, _)| short == name.short());
            if is_ours.map(|other| self.has_attempt(&branch, other)).transpose()?.unwrap_or(false) {
                canceled.extend(self.pass_over(&name, attempt)?);
            }
        }
        let is_done = is_open || !canceled.is_empty();
        Ok(is_done.then(|| Chosen { written: written(&branch, head.id(), &state), canceled }))
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

/// The branches of all attempts but this one.
fn others(attempts: &[Attempt], chosen: &RefName) -> Vec<RefName> {
    let others = attempts.iter().filter(|(name, _)| name != chosen.short());
    others.map(|(name, _)| RefName::branch(name)).collect()
}
