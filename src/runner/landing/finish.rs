//! Landing what was checked: the target is moved to that very commit, and then the branch is set `landed`.
//!
//! A check counts only if its command ended with 0 while its run still held the branch. Even then the target
//! is moved only if it holds what it did when the candidate was made, the files are those that were checked,
//! and the candidate is what a runner makes of that branch: a user who may push could have written another
//! one. The target is moved first, so a runner that is killed after that leaves a branch that asks again, and
//! then learns that its target has all of it. Implements K60.

use super::super::active_run::ActiveRun;
use super::super::move_branch::{Moved, blocked_notes};
use super::super::run::Ended;
use super::super::{Runner, RunnerError};
use super::own;
use crate::protocol::complete::{Completion, Declared, Exit, HeadIs, Stall};
use crate::protocol::declaration::{Declaration, Rest, Take};
use crate::protocol::event::Event;
use crate::protocol::landing::{Candidate, LAND, LANDED, asked, history};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::escape;
use crate::store::{RefName, RemoteFailure, StoreError};

/// What came of moving the target.
enum Put {
    /// The target has what was checked.
    There,
    /// The target holds something else than before, or what was checked is not what would land now.
    Stale,
    /// Something is in the way in a working tree that has the target checked out.
    Blocked(Obstacle),
    /// The remote declined the move, with this message.
    Declined(String),
}

impl ActiveRun<'_> {
    /// Returns the candidate that this run checks; `None` for any other run.
    fn candidate(&self) -> Option<Candidate> {
        self.claim.trigger.event.as_ref().and_then(Candidate::of)
    }

    /// Returns what the command declared. A command that checks a candidate need declare nothing: exit status
    /// 0 is enough.
    pub(in super::super) fn meant(&self, exit: &Exit, declared: &Declared) -> Result<Declared, RunnerError> {
        match (exit, declared, self.candidate()) {
            (Exit::Code(0), Declared::Nothing, Some(_)) => Ok(Declared::State(plain(LANDED)?)),
            _ => Ok(declared.clone()),
        }
    }

    /// Lands the candidate of a check that succeeded, and returns what then becomes of the run; any other run ends as it
    /// would. `None`: the remote declined the move for now, and the caller judges again.
    pub(in super::super) fn land(
        &mut self,
        completion: Completion,
        head: HeadIs,
        ended: &mut Ended,
    ) -> Result<Option<Completion>, RunnerError> {
        let passed = |next: &Declaration| [LANDED, "done"].contains(&next.state.as_str());
        let (next, candidate) = match (completion, self.candidate()) {
            (Completion::Outcome(next), Some(candidate)) if passed(&next) => (next, candidate),
            (completion, _) => return Ok(Some(completion)),
        };
        ended.end_guardian()?;
        self.landed = None;
        match self.judged(&candidate, next, head) {
            Err(error) if self.is_worth_a_round(&error) => Ok(None),
            landed => landed.map(Some),
        }
    }

    /// Moves the target where the candidate may land, and says what the run then comes to.
    fn judged(
        &mut self,
        candidate: &Candidate,
        next: Declaration,
        head: HeadIs,
    ) -> Result<Completion, RunnerError> {
        let put = match head {
            HeadIs::Lease(_) => self.put_on_target(candidate)?,
            // The command moved the branch itself, and what it wrote there was not checked.
            HeadIs::SlotHead | HeadIs::OwnEvent(_) | HeadIs::Other => Put::Stale,
        };
        let nothing = Take { paths: Vec::new(), rest: Rest::Kept };
        let onto = escape(&candidate.onto);
        Ok(match put {
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
                self.landed = Some((RefName::branch(&candidate.onto), candidate.commit));
                Completion::Outcome(landed)
            }
            Put::Stale => {
                let subject = format!("aynig: land on '{onto}' again: it has moved meanwhile");
                let trailers = asked(&self.claim.lease.message);
                let take = if matches!(head, HeadIs::Lease(_)) { nothing } else { next.take };
                let again = Declaration { subject, trailers, take, usage: next.usage, ..plain(LAND)? };
                Completion::Outcome(again)
            }
            Put::Blocked(by) => Completion::Stalled(Stall::Checkout(by)),
            Put::Declined(why) => Completion::Stalled(Stall::Declined(why)),
        })
    }

    /// Moves the target to the candidate's commit, unless the target has that already.
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
    /// True if the target has what was checked in its history.
    fn has(&self, target: &RefName, candidate: &Candidate) -> Result<bool, RunnerError> {
        let Some(tip) = self.read_tip(target)? else { return Ok(false) };
        Ok(self.repo.git.is_ancestor(candidate.commit, tip.id())?)
    }
}

/// Makes a declaration of this state and nothing else.
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
