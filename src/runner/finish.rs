//! Completing a run: what the head is now, what is written, and where work goes that is not on the branch.
//!
//! The judgement is `complete`'s; here it is carried out. A swap that is lost on the way is judged again
//! from the new head. Implements K20-K28.

use super::report::{Note, Outcome, Ran, Report};
use super::slot::attempt_ref;
use super::supervise::{Ended, Live};
use super::{Runner, RunnerError};
use crate::protocol::complete::{Completion, Declared, Exit, HeadIs, Stall, complete};
use crate::protocol::declaration::{Declaration, Invalid, LINE_MAX};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, tail_block};
use crate::store::checkout::{self, Finished, Fit, Noted};
use crate::store::slots::Occupant;
use crate::store::slots::harvest::{Harvest, HarvestError};
use crate::store::worktrees::{self, Busy, Worktree};
use crate::store::{RefName, StoreError, Swap};
use crate::supervisor::Supervised;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of each log goes into a `stalled` body, in bytes.
const TAIL: usize = 3 * 1024;
/// How far down from the head a lease of ours is looked for.
const DEPTH: usize = 32;

/// What the branch's head is to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Its own lease.
    Lease,
    /// Its command's own state event.
    OwnEvent(ObjectId),
    /// The commit that its slot's HEAD names.
    SlotHead,
    /// Somebody else's.
    Other,
}

/// What was tried with an outcome.
enum Landed {
    Won(ObjectId),
    Lost,
    Blocked(ObjectId, String),
}

/// An error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    escape(text.as_bytes())
}

impl Runner<'_> {
    /// Reads the head and says what it is to this run. A lease of the run's that the command renewed by
    /// hand is taken over.
    pub(super) fn relate(&self, branch: &RefName, live: &mut Live) -> Result<Relation, RunnerError> {
        let Some(id) = self.store.tip(branch)? else { return Ok(Relation::Other) };
        if id == live.claimed.lease.id {
            return Ok(Relation::Lease);
        }
        let tip: super::Tip = self.store.read_commit(id)?.into();
        let run_id = &live.claimed.run.id;
        if let Some(event) = &tip.event
            && event.run_id() == Some(run_id)
            && self.reaches(&tip.commit.parents, live.claimed.first)?
        {
            if !event.is_working() {
                return Ok(Relation::OwnEvent(id));
            }
            live.claimed.lease =
                super::claim::Lease { id, message: event.message.clone(), born: self.clock.elapsed() };
            self.follow(run_id, id);
            return Ok(Relation::Lease);
        }
        let head = live.slot.head(self.repo).ok();
        if head == Some(id) && self.repo.git.is_ancestor(live.claimed.first, id)? {
            return Ok(Relation::SlotHead);
        }
        Ok(Relation::Other)
    }

    /// True where `goal` is reached along first parents before long.
    fn reaches(&self, parents: &[ObjectId], goal: ObjectId) -> Result<bool, StoreError> {
        let mut next = parents.first().copied();
        for _ in 0..DEPTH * 1024 {
            match next {
                Some(id) if id == goal => return Ok(true),
                Some(id) => {
                    let commit = self.store.read_commit(id)?;
                    if Event::of(crate::protocol::message::Message::parse(&commit.message))
                        .is_none_or(|e| !e.is_working())
                    {
                        return Ok(false);
                    }
                    next = commit.parents.first().copied();
                }
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Completes a run whose command has ended.
    pub(super) fn finish(
        &self,
        branch: &RefName,
        mut live: Live,
        ended: Ended,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        let Ended { exit, mut guardian } = ended;
        let declared = self.declared(&live);
        self.note_declarations(&live, report);
        loop {
            let relation = match (self.relate(branch, &mut live)?, live.own_event) {
                (Relation::Other, Some(id)) => Relation::OwnEvent(id),
                (relation, _) => relation,
            };
            let head = match relation {
                Relation::Lease => HeadIs::Lease,
                Relation::OwnEvent(_) => HeadIs::OwnEvent,
                Relation::SlotHead => HeadIs::SlotHead,
                Relation::Other => HeadIs::Other,
            };
            let done = match (complete(&exit, declared.clone(), head), relation) {
                (Completion::KeepLease, _) => self.keep_lease(branch, &mut live, &exit, &mut guardian)?,
                (Completion::Outcome(next), _) => {
                    end(&mut guardian)?;
                    self.finish_outcome(branch, &mut live, &exit, next, head, report)?
                }
                (Completion::Stalled(why), _) => {
                    end(&mut guardian)?;
                    self.try_stall(branch, &mut live, Some(&exit), why, None, report)?
                }
                (Completion::AlreadyWritten, Relation::OwnEvent(id)) => {
                    end(&mut guardian)?;
                    Some(self.finish_own(&mut live, &exit, id)?)
                }
                (Completion::AlreadyWritten | Completion::Fenced, _) => {
                    end(&mut guardian)?;
                    Some(self.finish_fenced(&mut live, &exit, &declared)?)
                }
            };
            if let Some(ran) = done {
                return Ok(ran);
            }
        }
    }

    /// What the command declared: the result file alone where it has content.
    fn declared(&self, live: &Live) -> Declared {
        match std::fs::read(live.dir.join("result")) {
            Ok(raw) if raw.len() > LINE_MAX => Declared::BadResult(Invalid::TooLong(raw.len() as u64)),
            Ok(raw) if !raw.trim_ascii().is_empty() => match Declaration::parse_line(raw.trim_ascii()) {
                Ok(declaration) => Declared::State(declaration),
                Err(why) => Declared::BadResult(why),
            },
            Ok(_) | Err(_) => match live.declared.last() {
                Some(declaration) => Declared::State(declaration.clone()),
                None => Declared::Nothing,
            },
        }
    }

    fn note_declarations(&self, live: &Live, report: &mut Report) {
        let (invalid, count) = live.declared.invalid();
        for (line, why) in invalid {
            report.notes.push(Note::InvalidDeclaration(line.clone(), why.to_string()));
        }
        if count > invalid.len() as u64 {
            report.notes.push(Note::MoreInvalid(count - invalid.len() as u64));
        }
    }

    /// The lease lives on, and with it the slot and what runs in it (K21).
    fn keep_lease(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        guardian: &mut Option<Supervised>,
    ) -> Result<Option<Ran>, RunnerError> {
        if !self.renew(branch, live)? {
            return Ok(None);
        }
        let claimed = &live.claimed;
        live.slot.occupy(Some(Occupant {
            run_id: claimed.run.id.clone(),
            branch: String::from_utf8_lossy(branch.as_bytes()).into_owned(),
            lease: claimed.first.to_string(),
            lingering: true,
            guardian: guardian.as_ref().map(Supervised::guardian_pid),
        }))?;
        if let Some(guardian) = guardian.take() {
            guardian.linger();
        }
        let commit = claimed.lease.id;
        Ok(Some(ran(live, Some(exit), Outcome::KeptLease { commit }, None)))
    }

    /// The declared state's commit. `None`: the swap was lost, judge again.
    fn finish_outcome(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        next: Declaration,
        head: HeadIs,
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        let found = match self.harvest(live, report)? {
            Ok(found) => found,
            Err(why) => return self.try_stall(branch, live, Some(exit), why, None, report),
        };
        let base = if head == HeadIs::SlotHead { found.head } else { live.claimed.lease.id };
        let commit = match self.outcome_commit(live, &next, &found, base) {
            Ok(commit) => commit,
            Err(RunnerError::Message { cause }) => {
                return self.try_stall(branch, live, Some(exit), Stall::Unrenderable(cause), None, report);
            }
            Err(error) => return Err(error),
        };
        let log = format!("aynig: {} -> {}", live.claimed.run.state, next.state);
        match self.land(branch, base, commit, &log, report)? {
            Landed::Won(commit) => {
                self.release(live)?;
                let outcome = Outcome::Advanced { state: next.state, commit };
                Ok(Some(ran(live, Some(exit), outcome, None)))
            }
            Landed::Lost => Ok(None),
            Landed::Blocked(commit, words) => {
                let Some(name) = attempt_ref(&live.claimed.run.id) else { return Ok(None) };
                self.keep(&name, commit)?;
                self.try_stall(branch, live, Some(exit), Stall::Checkout(words), Some(name), report)
            }
        }
    }

    fn harvest(&self, live: &Live, report: &mut Report) -> Result<Result<Harvest, Stall>, RunnerError> {
        let claimed = &live.claimed;
        match live.slot.harvest(self.repo, self.settings.stage, claimed.first, claimed.tree) {
            Ok(found) => {
                if !found.nested.is_empty() {
                    let names = found.nested.iter().map(|n| escape(n)).collect();
                    report.notes.push(Note::NestedRepositories(names));
                }
                Ok(Ok(found))
            }
            Err(HarvestError::ForeignHead(_)) => Ok(Err(Stall::ForeignHead)),
            Err(HarvestError::Unmerged) => Ok(Err(Stall::Unmerged)),
            Err(HarvestError::Store(error)) => Ok(Err(Stall::Slot(with_causes(&error)))),
        }
    }

    fn outcome_commit(
        &self,
        live: &Live,
        next: &Declaration,
        found: &Harvest,
        base: ObjectId,
    ) -> Result<ObjectId, RunnerError> {
        let claimed = &live.claimed;
        let message = claimed.run.outcome(next, &claimed.lease.message);
        let mut parents = vec![base];
        if found.head != claimed.first && found.head != base {
            parents.push(found.head);
        }
        self.write(found.tree, parents, &message)
    }

    /// Moves the branch, and with it every working tree that has it checked out (K28).
    fn land(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        report: &mut Report,
    ) -> Result<Landed, RunnerError> {
        match self.move_branch(branch, old, new, log)? {
            Moved::Won(finished) => {
                for done in finished {
                    if let Finished::Blocked(dir, words) = done {
                        report.notes.push(Note::CheckoutBlocked(dir, words));
                    }
                }
                Ok(Landed::Won(new))
            }
            Moved::Lost => Ok(Landed::Lost),
            Moved::Blocked(words) => Ok(Landed::Blocked(new, words)),
        }
    }

    /// The command wrote the outcome itself; what the slot holds beyond it becomes an attempt (K22).
    fn finish_own(&self, live: &mut Live, exit: &Exit, id: ObjectId) -> Result<Ran, RunnerError> {
        let commit = self.store.read_commit(id)?;
        let tree = commit.tree;
        let event = Event::of(crate::protocol::message::Message::parse(&commit.message));
        let state: Option<StateName> = event.and_then(|e| e.state_name().cloned());
        let claimed = &live.claimed;
        let found = live.slot.salvage(
            self.repo,
            crate::store::slots::harvest::Stage::All,
            claimed.first,
            claimed.tree,
        )?;
        let attempt = if found.tree == tree || found.tree == claimed.tree {
            None
        } else {
            self.keep_attempt(&live.slot, &claimed.run.id, claimed.first, claimed.tree)?
        };
        self.release(live)?;
        Ok(ran(live, Some(exit), Outcome::Own { commit: id, state }, attempt))
    }

    /// The lease was lost: nothing on the branch, the work is kept (K24, K26).
    fn finish_fenced(&self, live: &mut Live, exit: &Exit, declared: &Declared) -> Result<Ran, RunnerError> {
        let claimed = &live.claimed;
        let mut attempt = None;
        if let (Exit::Code(0), Declared::State(next)) = (exit, declared)
            && let Ok(found) = live.slot.harvest(self.repo, self.settings.stage, claimed.first, claimed.tree)
            && let Ok(commit) = self.outcome_commit(live, next, &found, claimed.lease.id)
            && let Some(name) = attempt_ref(&claimed.run.id)
        {
            self.keep(&name, commit)?;
            attempt = Some(name);
        }
        if attempt.is_none() {
            attempt = self.keep_attempt(&live.slot, &claimed.run.id, claimed.first, claimed.tree)?;
        }
        self.release(live)?;
        Ok(ran(live, Some(exit), Outcome::Fenced, attempt))
    }

    /// Ends a run `stalled` whatever its command did.
    pub(super) fn finish_stalled(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: Option<&Exit>,
        why: Stall,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        if let Some(ran) = self.try_stall(branch, live, exit, why, None, report)? {
            return Ok(ran);
        }
        self.release(live)?;
        Ok(ran(live, exit, Outcome::Fenced, None))
    }

    /// Writes `stalled`, its work kept first. `None`: the swap was lost, judge again.
    fn try_stall(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: Option<&Exit>,
        why: Stall,
        kept: Option<RefName>,
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        let claimed = &live.claimed;
        let attempt = match kept {
            Some(name) => Some(name),
            None => self
                .keep_attempt(&live.slot, &claimed.run.id, claimed.first, claimed.tree)
                .unwrap_or_else(|error| {
                    report.notes.push(Note::RenewalFailed(with_causes(&error)));
                    None
                }),
        };
        let details = self.details(live, exit, &why, attempt.as_ref());
        let message = claimed.run.stalled(&why, &details);
        let commit = self.write(claimed.tree, vec![claimed.lease.id], &message)?;
        let log = format!("aynig: {} stalled", claimed.run.state);
        match self.advance(branch, claimed.lease.id, commit, &log)? {
            Swap::Won => {
                self.release(live)?;
                Ok(Some(ran(live, exit, Outcome::Stalled { why, commit }, attempt)))
            }
            Swap::Lost { .. } => Ok(None),
            Swap::Unknown { cause } => Err(RunnerError::Unknown { branch: branch.clone(), cause }),
        }
    }

    /// The body of a `stalled` commit: what ended it, how long it took, the last lines (K23).
    fn details(&self, live: &Live, exit: Option<&Exit>, why: &Stall, attempt: Option<&RefName>) -> String {
        let took = humantime::format_duration(std::time::Duration::from_millis(
            live.started.elapsed().as_millis() as u64,
        ));
        let mut text = match (exit, why) {
            (_, Stall::Exit(exit)) => {
                format!("The command ended after {took}: {}.\n", escape(exit.to_string().as_bytes()))
            }
            (Some(exit), why) => {
                format!("{}.\nThe command ended after {took}: {exit}.\n", escape(why.to_string().as_bytes()))
            }
            (None, why) => format!("{}.\n", escape(why.to_string().as_bytes())),
        };
        if let Stall::Checkout(words) = why {
            text += &format!("\n{}\n", tail_block(words.as_bytes(), TAIL));
        }
        for (name, path) in [("stderr", &live.logs.stderr), ("stdout", &live.logs.stdout)] {
            let tail = tail_block(&last_bytes(path, TAIL), TAIL);
            if !tail.is_empty() && exit.is_some() {
                text += &format!("\nLast lines of {name}:\n\n{tail}\n");
            }
        }
        if let Some(name) = attempt {
            text += &format!(
                "\nWork that is not on the branch is kept in {}.\n",
                String::from_utf8_lossy(name.as_bytes())
            );
        }
        text
    }

    /// Lets go of slot and run ref: the run is over.
    fn release(&self, live: &mut Live) -> Result<(), RunnerError> {
        self.unfollow(&live.claimed.run.id);
        live.slot.occupy(None)?;
        Ok(())
    }

    /// The working tree that is in the middle of something with a branch.
    pub(super) fn busy_worktree(&self, branch: &RefName) -> Result<Option<(Busy, PathBuf)>, RunnerError> {
        let all = worktrees::list(self.repo)?;
        Ok(all.into_iter().find_map(|w| match w.busy {
            Some((busy, name)) if name == *branch => Some((busy, w.dir)),
            Some(_) | None => None,
        }))
    }
}

/// What became of moving a branch together with its working trees.
pub(super) enum Moved {
    /// It moved; what became of each working tree.
    Won(Vec<Finished>),
    /// Somebody else was quicker.
    Lost,
    /// Local changes are in the way: nothing moved. Git's own words.
    Blocked(String),
}

impl Runner<'_> {
    /// Moves a branch from `old` to `new`. Working trees that have it checked out are tried first.
    pub(super) fn move_branch(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
    ) -> Result<Moved, RunnerError> {
        let mut noted: Vec<Noted> = Vec::new();
        let same = self.store.read_commit(old)?.tree == self.store.read_commit(new)?.tree;
        if !same {
            let here = |w: &Worktree| w.branch.as_ref() == Some(branch);
            let at: Vec<Worktree> = worktrees::list(self.repo)?.into_iter().filter(here).collect();
            for worktree in &at {
                if let Fit::Clobbers(words) = checkout::fit(self.repo, worktree, old, new)? {
                    return Ok(Moved::Blocked(words));
                }
            }
            for worktree in &at {
                noted.push(checkout::note(self.repo, worktree, branch, old, new)?);
            }
        }
        let verdict = self.advance(branch, old, new, log);
        match verdict {
            Ok(Swap::Won) => {
                let done = noted.into_iter().map(|n| n.finish(self.repo)).collect::<Result<_, _>>()?;
                Ok(Moved::Won(done))
            }
            Ok(Swap::Lost { .. }) => {
                noted.into_iter().for_each(Noted::drop_note);
                Ok(Moved::Lost)
            }
            Ok(Swap::Unknown { cause }) => Err(RunnerError::Unknown { branch: branch.clone(), cause }),
            Err(error) => Err(error),
        }
    }
}

fn end(guardian: &mut Option<Supervised>) -> Result<(), RunnerError> {
    if let Some(guardian) = guardian.take() {
        guardian.end()?;
    }
    Ok(())
}

fn ran(live: &Live, exit: Option<&Exit>, outcome: Outcome, attempt: Option<RefName>) -> Ran {
    Ran {
        run_id: live.claimed.run.id.clone(),
        state: live.claimed.run.state.clone(),
        trigger: live.claimed.run.trigger,
        exit: exit.map(Exit::to_string),
        took: live.started.elapsed(),
        stdout_log: live.logs.stdout.clone(),
        stderr_log: live.logs.stderr.clone(),
        outcome,
        attempt,
        interrupted: live.interrupted,
    }
}

fn last_bytes(path: &Path, limit: usize) -> Vec<u8> {
    let mut raw = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let length = file.metadata().map_or(0, |m| m.len());
        if file.seek(SeekFrom::Start(length.saturating_sub(limit as u64))).is_ok() {
            let _ = file.take(limit as u64).read_to_end(&mut raw);
        }
    }
    raw
}
