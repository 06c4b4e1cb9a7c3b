//! Runs that are over, and what became of their work, as found in the history of branches for display.
//!
//! A run is known by the commit that ended it (an outcome or `stalled` names its trigger and, except for a
//! cancellation, the run). Where that commit says nothing, the run is known by its lease: in the `aynig`
//! dialect, after `cancel`, and where another commit was written over the lease. Nothing is decided by this.
//! Implements K55 (`diff`, `shell`: which run, and which work).

use super::named::left_out_ref;
use super::{Runner, Tip};
use crate::protocol::dialect::Writer;
use crate::protocol::event::{Event, RECOVERY_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::store::{RefName, StoreError};
use std::collections::HashSet;

/// A run, and what became of its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    /// The run's id, if any commit says it.
    pub run_id: Option<String>,
    /// The head that the run answered.
    pub trigger: ObjectId,
    /// What became of its work.
    pub work: Work,
    /// What its outcome left out, where that was kept.
    pub left_out: Option<RefName>,
}

/// What became of a run's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// The work is on the branch, as this commit.
    Outcome(ObjectId),
    /// The work is kept beside the branch, by this ref and commit.
    Attempt(RefName, ObjectId),
    /// The run left no work.
    Nothing,
    /// The run still holds its branch, or its runner on this machine has not ended it yet.
    Running,
}

/// Which run is meant.
#[derive(Debug, Clone)]
pub(crate) enum Meant {
    /// The latest run.
    Latest,
    /// The run whose id begins with this.
    Id(String),
    /// The run that answered this commit, or that wrote it.
    Commit(ObjectId),
}

impl Meant {
    fn is(&self, past: &Past, seen: ObjectId) -> bool {
        match self {
            Meant::Latest => true,
            Meant::Id(id) => past.run_id.as_ref().is_some_and(|run| run.starts_with(id)),
            Meant::Commit(id) => {
                *id == past.trigger || *id == seen || matches!(past.work, Work::Outcome(at) if at == *id)
            }
        }
    }
}

impl Runner<'_> {
    /// Returns the run that is meant, in the history of this head down to a commit that is `known`. The
    /// events that were read become known.
    pub(crate) fn past(
        &self,
        head: ObjectId,
        meant: &Meant,
        known: &mut HashSet<ObjectId>,
    ) -> Result<Option<Past>, StoreError> {
        let mut reading = Reading { runner: self, head, above: None, told: None };
        let (mut found, mut failed, mut seen) = (None, None, Vec::new());
        self.walk(head, known, &mut |tip| {
            let id = tip.id();
            seen.push(id);
            match reading.take(tip) {
                Ok(Some(past)) if meant.is(&past, id) => found = Some(past),
                // Another run, or an event of a run that was returned before.
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
            found.is_none() && failed.is_none()
        })?;
        known.extend(seen);
        failed.map_or(Ok(found), Err)
    }
}

/// A history as it is read, newest first.
struct Reading<'a> {
    runner: &'a Runner<'a>,
    head: ObjectId,
    /// The event above, where it does not say which run it ended.
    above: Option<Tip>,
    /// The trigger of the run that was returned last.
    told: Option<ObjectId>,
}

impl Reading<'_> {
    /// Returns the run of which this is the newest event that names it; `None` where that run was returned
    /// before, or the event names none.
    fn take(&mut self, tip: Tip) -> Result<Option<Past>, StoreError> {
        let Some(event) = &tip.event else { return Ok(None) };
        let trigger = event.trigger();
        if event.is_working() {
            let Some(trigger) = trigger.filter(|trigger| self.told != Some(*trigger)) else {
                return Ok(None);
            };
            self.told = Some(trigger);
            let run_id = event.run_id().map(str::to_owned);
            let work = match self.above.take() {
                Some(above) if is_own(&above, event) => Work::Outcome(above.id()),
                None if tip.id() == self.head || event.dialect.writer() == Writer::Command => Work::Running,
                above => self.kept(run_id.as_deref(), &tip, above.as_ref(), trigger)?,
            };
            return self.past(run_id, trigger, work).map(Some);
        }
        // An outcome that `retry` landed names its run; a trigger that is asked for again names none.
        let names_its_run = event.text(STALLED_RUN).is_some() || event.run_id().is_some();
        let is_said = event.text(RECOVERY_ID).is_none() || names_its_run;
        let Some(trigger) = trigger.filter(|_| is_said) else {
            self.above = Some(tip);
            return Ok(None);
        };
        let above = self.above.take();
        if self.told.replace(trigger) == Some(trigger) {
            return Ok(None);
        }
        let stalled = event.text(STALLED_RUN).map(str::to_owned);
        let work = match (&stalled, above.filter(|above| is_landed(above, event))) {
            (_, Some(landed)) => Work::Outcome(landed.id()),
            (Some(run), None) => self.kept(Some(run), &tip, Some(&tip), trigger)?,
            (None, None) => Work::Outcome(tip.id()),
        };
        let run_id = stalled.or_else(|| event.run_id().map(str::to_owned));
        self.past(run_id, trigger, work).map(Some)
    }

    /// Returns what became of the work of a run that wrote no outcome: the commit `ended_by` ended it.
    fn kept(
        &self,
        run_id: Option<&str>,
        at: &Tip,
        ended_by: Option<&Tip>,
        trigger: ObjectId,
    ) -> Result<Work, StoreError> {
        if let Some((name, id)) =
            run_id.map(|run| self.runner.attempt_obtained(run, at)).transpose()?.flatten()
        {
            return Ok(Work::Attempt(name, id));
        }
        if run_id.is_some_and(|run| !self.runner.is_dead(run)) {
            return Ok(Work::Running);
        }
        // What a command committed itself is on the branch, below what ended the run, which changes no file.
        let writer = at.event.as_ref().map(|event| event.dialect.writer());
        let tree = |id| self.runner.store.read_commit(id).map(|commit| commit.tree);
        let ended = ended_by.filter(|_| writer == Some(Writer::Command));
        let below = ended.and_then(|ended| Some((ended, *ended.commit.parents.first()?)));
        let Some((ended, below)) = below.filter(|_| self.runner.repo.is_commit(trigger)) else {
            return Ok(Work::Nothing);
        };
        let is_here = !self.runner.store.history_ends_at(ended.id())?;
        let tells = is_here && tree(below)? == ended.commit.tree && tree(trigger)? != ended.commit.tree;
        Ok(if tells { Work::Outcome(ended.id()) } else { Work::Nothing })
    }

    fn past(&self, run_id: Option<String>, trigger: ObjectId, work: Work) -> Result<Past, StoreError> {
        let name = run_id.as_deref().and_then(left_out_ref);
        let left_out = match name {
            Some(name) => self.runner.scratch()?.tip(&name)?.map(|_| name),
            None => None,
        };
        Ok(Past { run_id, trigger, work, left_out })
    }
}

/// True for an outcome that a command wrote itself, and that `retry` landed on this `stalled` commit (K28): the
/// outcome need not name its run, but is a merge of the command's own commits.
fn is_landed(above: &Tip, stalled: &Event) -> bool {
    above.event.as_ref().is_some_and(|event| {
        stalled.text(STALLED_RUN).is_some()
            && event.dialect.writer() == Writer::Command
            && event.text(RECOVERY_ID).is_some()
            && above.commit.parents.len() > 1
    })
}

/// True for an outcome that the command of this lease wrote itself.
fn is_own(above: &Tip, lease: &Event) -> bool {
    above.event.as_ref().is_some_and(|event| {
        let by_command = lease.dialect.writer() == Writer::Command && event.dialect == lease.dialect;
        let own = event.run_id().is_none_or(|run| Some(run) == lease.run_id());
        by_command && own && event.text(RECOVERY_ID).is_none()
    })
}
