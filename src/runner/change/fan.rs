//! `fan` and `choose`: several branches answer one trigger, and the branch goes on with one of them.
//!
//! The attempts are created together with the event that names them, in one transaction. If the process is
//! killed between two moves of it, the branch names what is missing, and a second `fan` creates that. The
//! first commits of the attempts are parents of that event, so `gc` removes none of them meanwhile.
//!
//! A choice first ends all attempts that rest, in one transaction, so that of two choices at a time one wins
//! and the other changes nothing. Then it cancels those that run, and only then moves the branch on: at each
//! moment only one branch asks for what the chosen attempt asks for. After a kill in between the branch is
//! still fanned; its attempts say that a choice has ended them, and can still be chosen. No commit of an
//! attempt is removed.
//!
//! A branch that the event names is its attempt only if that branch began as one, because any user who may
//! push can write any list. Implements K61.

use super::super::resolve::Resolved;
use super::super::{Runner, RunnerError, Tip};
use super::{ChangeError, Inside, Written, moved_notes, refuse_leased, written};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::fan::{self, ATTEMPTS_MAX, Attempt, DONE, FANNED, attempts_of};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::{CANCELED, ENDS, STALLED, StateName};
use crate::store::{Expected, RefChange, RefName, StoreError};
use std::collections::HashSet;

/// The most commits that are passed over which choices that were cut short left on an attempt.
const ENDS_MAX: usize = 100;

/// What `fan` has written.
#[derive(Debug)]
pub struct Fanned {
    /// The fanned branch, which names the attempts.
    pub written: Written,
    /// The attempts that were created by this call.
    pub made: Vec<Written>,
}

/// What `choose` has written.
#[derive(Debug)]
pub struct Chosen {
    /// The branch that goes on.
    pub written: Written,
    /// The attempts that were canceled.
    pub canceled: Vec<Written>,
}

/// A fanned branch, and its attempts.
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
    /// Has several branches answer a branch's trigger: `fan`. There is one attempt for each list of trailers
    /// in `own`, which it carries in addition to the trigger's.
    ///
    /// # Errors
    /// [`ChangeError::NoBranch`], [`ChangeError::Leased`], [`ChangeError::NotVouched`],
    /// [`ChangeError::NoTrigger`], [`ChangeError::Exists`], [`ChangeError::Raced`].
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
            // The branch is fanned already. If an earlier `fan` was cut short, this creates what is missing.
            let made = self.make_missing(branch, &known)?;
            return Ok(Fanned { written: written(branch, tip.id(), &state), made });
        }
        if trigger.dialect != Dialect::Dwp {
            return Err(ChangeError::Dialect(branch.clone(), trigger.dialect));
        }
        let asked = trigger.state_name().filter(|state| state.as_str() != STALLED);
        let asked = asked.ok_or_else(|| none("its state asks for nothing"))?;
        if ENDS.contains(&asked.as_str()) && self.resolve(&tip)? == Resolved::Missing {
            return Err(none(&format!("'{asked}' is an end: no command answers it")));
        }
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

    /// Returns the event that an attempt began with; `None` if that commit does not begin an attempt of this
    /// name of this branch.
    fn first_event(&self, branch: &RefName, (name, first): &Attempt) -> Option<Event> {
        let event = Event::in_message(&self.store.read_commit(*first).ok()?.message)?;
        fan::began(&event, branch.short(), name).then_some(event)
    }

    /// True if this is an attempt of the branch: its branch has the first commit in its history, or no longer
    /// exists.
    fn has_attempt(&self, branch: &RefName, attempt: &Attempt) -> Result<bool, ChangeError> {
        if self.first_event(branch, attempt).is_none() {
            return Ok(false);
        }
        match self.store.tip(&RefName::branch(&attempt.0))? {
            Some(tip) => Ok(self.repo.git.is_ancestor(attempt.1, self.store.read_commit(tip)?.id)?),
            None => Ok(true),
        }
    }

    /// Returns the fanned branch that has this branch as an attempt, or that is this branch; `None` if there
    /// is none. Only true attempts of it are in the result.
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
        // For an attempt that was fanned itself, its own attempts come first.
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

    /// Moves the fanned branch on with what this attempt made, and cancels the other attempts: `choose`.
    ///
    /// # Errors
    /// [`ChangeError::NoBranch`], [`ChangeError::NotFanned`], [`ChangeError::Fanned`] where the fanned branch
    /// itself was named, [`ChangeError::Chosen`] where it went on already, [`ChangeError::Leased`] and
    /// [`ChangeError::Unfinished`] of the chosen attempt, [`ChangeError::NotVouched`] of the attempt and of
    /// the fanned branch, [`ChangeError::Blocked`], [`ChangeError::Raced`].
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
        let Some(notes) = moved_notes(&group.branch, moved)? else {
            self.give_way(&group);
            return Err(ChangeError::Raced(group.branch.clone()));
        };
        Ok(Chosen { written: Written { notes, ..written(&group.branch, commit, state) }, canceled })
    }

    /// Ends the attempts as the choice has it that moved the branch first: this one took that for one that was cut
    /// short, and has ended them otherwise. What can't be moved stays, and asks for nothing.
    fn give_way(&self, group: &Group) {
        let mut chose = None;
        if let Ok(Some(tip)) = self.fresh_tip(&group.branch) {
            // The branch may have gone on since.
            let known = HashSet::from([group.tip.id()]);
            let _ = self.walk(tip.id(), &known, &mut |tip| {
                let event = tip.event.as_ref();
                chose = event.and_then(|event| event.message.last(fan::CHOSEN)).map(<[u8]>::to_vec);
                chose.is_none()
            });
        }
        let Some(chose) = chose.filter(|chose| group.attempts.iter().any(|(name, _)| name == chose)) else {
            return;
        };
        let mut ends = Vec::new();
        for (name, _) in &group.attempts {
            let Some(tip) = self.fresh_tip(&RefName::branch(name)).ok().flatten() else { continue };
            let event = tip.event.as_ref().filter(|event| fan::is_ended(event));
            let state = if *name == chose { DONE } else { CANCELED };
            if event.is_none_or(|event| event.state_name().is_some_and(|now| now.as_str() == state)) {
                continue;
            }
            let message = fan::ended(event, state, &chose, &unique());
            let name = RefName::branch(name);
            if let Ok(end) = self.write_declared(&name, &message, tip.commit.tree, vec![tip.id()]) {
                ends.push((name, tip.id(), end));
            }
        }
        for (name, at, end) in ends {
            let _ = self.advance(&name, at, end, "aynig: choose");
        }
    }

    /// Returns what an attempt was before a choice that was cut short had ended it; called only while the
    /// branch is still fanned.
    fn before_a_choice(&self, tip: &Tip) -> Result<Tip, ChangeError> {
        let mut tip = tip.clone();
        // Each choice that was cut short left one more such commit.
        for _ in 0..ENDS_MAX {
            let ended = tip.event.as_ref().is_some_and(fan::is_ended);
            let Some(below) = tip.commit.parents.first().filter(|_| ended) else { break };
            tip = self.store.read_commit(*below)?.into();
        }
        Ok(tip)
    }

    /// Writes `done` on the chosen attempt and `canceled` on the others: on all that rest in one transaction,
    /// or on none, and then on those that run. Returns the canceled ones, in the order in which the branch
    /// names them.
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
                    if let Some(by) = self.rebased(&name)? {
                        return Err(ChangeError::Blocked(name, by));
                    }
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

    /// Writes `done` on an attempt with which its branch went on already, as an earlier version could leave
    /// one. `None` if the branch has made no choice, or none that can still be found in its history.
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
            self.write_on_head(attempt, (tip.id(), end), "aynig: choose")?;
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

    /// Finds how an attempt that was not chosen is to end; writes the commit for one that rests, but moves no
    /// branch.
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

    /// Cancels an attempt that was not chosen; `None` if it is canceled already, or gone.
    fn pass_over(&self, attempt: &RefName, chosen: &RefName) -> Result<Option<Written>, ChangeError> {
        loop {
            match self.passed_over(attempt, chosen)? {
                Passed::Over => return Ok(None),
                Passed::Running => match self.cancel(attempt, None) {
                    Ok(done) => return Ok(Some(done)),
                    // The attempt's run has ended meanwhile.
                    Err(ChangeError::NotLeased(_)) => {}
                    Err(error) => return Err(error),
                },
                Passed::Resting { at, end } => {
                    self.write_on_head(attempt, (at, end), "aynig: not chosen")?;
                    return Ok(Some(written(attempt, end, &named(CANCELED)?)));
                }
            }
        }
    }
}

/// How an attempt that was not chosen ends.
enum Passed {
    /// It is canceled already, or gone.
    Over,
    /// A run holds it, and is to be canceled.
    Running,
    /// It rests at `at`, and is moved to the commit `end`.
    Resting { at: ObjectId, end: ObjectId },
}
