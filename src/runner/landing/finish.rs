//! Landing what was checked: the target is moved to that very commit, then the branch says so.
//!
//! Only a command that ended with 0, on a branch that its run still holds, is believed; and only where the target holds
//! what it did when the candidate was made, the files are those that were checked, and the candidate is what a runner
//! makes of that branch: who may push could write another one. The target is moved first: a runner
//! that is killed after that leaves a branch that asks again, and is told that its target has it. Implements K60.

use super::super::active_run::ActiveRun;
use super::super::move_branch::{Moved, blocked_notes};
use super::super::report::{Note, Ran};
use super::super::{Runner, RunnerError};
use super::own;
use crate::protocol::complete::{Declared, Exit, HeadIs, Stall};
use crate::protocol::declaration::{Declaration, Rest, Take};
use crate::protocol::event::Event;
use crate::protocol::landing::{Candidate, LAND, LANDED, asked, history};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::escape;
use crate::store::{RefName, RemoteFailure, StoreError};

/// What became of the target.
enum Put {
    /// It has what was checked.
    There,
    /// It holds something else, or what was checked is not what would land.
    Stale,
    /// Something is in the way in a working tree that has it checked out.
    Blocked(Obstacle),
    /// The remote declined it.
    Declined(String),
}

impl ActiveRun<'_> {
    /// What this run checks, where it does.
    fn candidate(&self) -> Option<Candidate> {
        self.claim.trigger.event.as_ref().and_then(Candidate::of)
    }

    /// What the command declared. One that checks need declare nothing: that it ended with 0 says all.
    pub(in super::super) fn meant(&self, exit: &Exit, declared: &Declared) -> Result<Declared, RunnerError> {
        match (exit, declared, self.candidate()) {
            (Exit::Code(0), Declared::Nothing, Some(_)) => Ok(Declared::State(plain(LANDED)?)),
            _ => Ok(declared.clone()),
        }
    }

    /// Writes what a run came to, which lands first what it has checked. `None`: the swap was lost, judge again.
    pub(in super::super) fn land_or_write(
        &mut self,
        exit: &Exit,
        next: Declaration,
        head: HeadIs,
    ) -> Result<Option<Ran>, RunnerError> {
        let passed = [LANDED, "done"].contains(&next.state.as_str());
        let Some(candidate) = self.candidate().filter(|_| passed) else {
            return self.write_outcome(exit, next, head);
        };
        let put = match head {
            HeadIs::Lease(_) => self.put_on_target(&candidate)?,
            // The command moved the branch itself: what it made of it was not checked.
            HeadIs::SlotHead | HeadIs::OwnEvent(_) | HeadIs::Other => Put::Stale,
        };
        let nothing = Take { paths: Vec::new(), rest: Rest::Kept };
        let onto = escape(&candidate.onto);
        match put {
            Put::There => {
                let (mut trailers, body) = (next.trailers, next.body);
                trailers.extend(candidate.landed());
                let subject = format!("aynig: landed on '{onto}'");
                let landed = Declaration {
                    subject,
                    body,
                    trailers,
                    take: nothing,
                    usage: next.usage,
                    ..plain(LANDED)?
                };
                let ran = self.write_outcome(exit, landed, head)?;
                if ran.is_some() {
                    let name = RefName::branch(&candidate.onto);
                    self.report.notes.push(Note::Landed(name, candidate.commit));
                }
                Ok(ran)
            }
            Put::Stale => {
                let subject = format!("aynig: land on '{onto}' again: it has moved meanwhile");
                let trailers = asked(&self.claim.lease.message);
                let take = if matches!(head, HeadIs::Lease(_)) { nothing } else { next.take };
                let again = Declaration { subject, trailers, take, usage: next.usage, ..plain(LAND)? };
                self.write_outcome(exit, again, head)
            }
            Put::Blocked(by) => self.stall(Some(exit), Stall::Checkout(by), None),
            Put::Declined(why) => self.stall(Some(exit), Stall::Declined(why), None),
        }
    }

    /// Moves the target to what was checked, or finds it there.
    fn put_on_target(&mut self, candidate: &Candidate) -> Result<Put, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        let name = RefName::branch(&candidate.onto);
        if runner.may_land_on(&name).is_some() {
            return Ok(Put::Stale);
        }
        let Some(tip) = runner.fresh_tip(&name)? else { return Ok(Put::Stale) };
        let repo = &runner.repo.git;
        if tip.id() == candidate.commit || runner.has(&name, candidate)? {
            return Ok(Put::There);
        }
        let Some(target) = runner.target(&name)? else { return Ok(Put::Stale) };
        let Some(rules) = target.usable().filter(|rules| rules.check == claim.run.state) else {
            return Ok(Put::Stale);
        };
        let read = runner.store.read_commit(candidate.commit)?;
        let is_that = tip.id() == candidate.base && !tip.event.as_ref().is_some_and(Event::is_working);
        if !is_that || read.tree != claim.tree || !repo.is_ancestor(tip.id(), read.id)? {
            return Ok(Put::Stale);
        }
        let asked_for = claim.trigger.event.as_ref().and_then(|event| history(&event.message));
        let Some(asked_for) = asked_for else { return Ok(Put::Stale) };
        let work = runner.work_of(&claim.trigger)?;
        let how = asked_for.unwrap_or(rules.history);
        if target.tip.id() != tip.id() || !runner.is_made_of(read.id, self.branch, &target, work, how)? {
            return Ok(Put::Stale);
        }
        let log = format!("aynig: land {}", String::from_utf8_lossy(self.branch.short()));
        match runner.move_branch(&name, tip.id(), read.id, &log, claim.ends()) {
            Ok(Moved::Won(finished)) => {
                self.report.notes.extend(blocked_notes(finished));
                Ok(Put::There)
            }
            Ok(Moved::Lost(left)) => {
                self.report.notes.extend(blocked_notes(left));
                Ok(Put::Stale)
            }
            Ok(Moved::Blocked(by)) => Ok(Put::Blocked(by)),
            Err(RunnerError::Store(StoreError::Remote {
                message, failure: RemoteFailure::Declined, ..
            })) => Ok(Put::Declined(message)),
            Err(error) => Err(error),
        }
    }
}

impl Runner<'_> {
    /// True where the target's history has what was checked.
    fn has(&self, target: &RefName, candidate: &Candidate) -> Result<bool, RunnerError> {
        let Some(tip) = self.read_tip(target)? else { return Ok(false) };
        Ok(self.repo.git.is_ancestor(candidate.commit, tip.id())?)
    }
}

/// A state and nothing else.
fn plain(state: &str) -> Result<Declaration, RunnerError> {
    Ok(Declaration {
        state: own(state)?,
        subject: String::new(),
        body: String::new(),
        keep_trailers: false,
        trailers: Vec::new(),
        take: Take::default(),
        not_before: None,
        usage: None,
    })
}
