//! State events that people and commands write by hand: set-state, set-working, cancel, retry.
//!
//! Each is one commit and one compare-and-swap. Inside a run the commit carries the run's id and takes
//! what the slot holds, and only a renewal that came between makes it try again. Implements K9 (by hand),
//! K20-K22, K28 (landing an attempt), and the verbs of section 13.

use super::finish::Moved;
use super::report::Note;
use super::slot::attempt_ref;
use super::{Runner, RunnerError, Tip};
use crate::protocol::declaration::{Declaration, travelling};
use crate::protocol::event::{Event, HOP, RUN_ID, RUNNER_ID, STATE};
use crate::protocol::id::ObjectId;
use crate::protocol::message::{Message, Trailer};
use crate::protocol::name::StateName;
use crate::protocol::transition::{self, Run};
use crate::store::checkout::Finished;
use crate::store::slots::harvest::HarvestError;
use crate::store::{Expected, RefName, StoreError, Swap, swap};

/// The run that we are inside of, as its environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// The run.
    pub run_id: String,
    /// Its branch.
    pub branch: RefName,
    /// The hop that its lease carries.
    pub hop: u32,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The branch.
    pub branch: RefName,
    /// Its new head.
    pub commit: ObjectId,
    /// The state that it has now.
    pub state: StateName,
    /// The run that was taken, by `set-working`.
    pub run_id: Option<String>,
    /// True where the branch was made.
    pub created: bool,
    /// Things worth saying.
    pub notes: Vec<Note>,
    /// Paths where both sides had changed the same lines, by `retry` of a blocked checkout.
    pub overruled: Vec<String>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The branch does not exist.
    #[error("branch '{0}' does not exist")]
    NoBranch(RefName),
    /// HEAD is unborn, so no branch can be made there.
    #[error("cannot create branch '{0}': HEAD has no commit yet")]
    Unborn(RefName),
    /// Somebody holds the branch.
    #[error("'{0}' is leased by run {1}")]
    Leased(RefName, String),
    /// The run's lease is gone.
    #[error("run {1} no longer holds '{0}'")]
    LeaseLost(RefName, String),
    /// Somebody else moved the branch meanwhile.
    #[error("'{0}' was moved by somebody else meanwhile")]
    Raced(RefName),
    /// The head is no lease.
    #[error("'{0}' is not leased: nothing to cancel")]
    NotLeased(RefName),
    /// The head is not stalled.
    #[error("'{0}' is not stalled: nothing to retry")]
    NotStalled(RefName),
    /// The trigger can't be found.
    #[error("cannot find what '{0}' answered: {1}")]
    NoTrigger(RefName, String),
    /// The message can't be written.
    #[error("cannot write the commit message: {0}")]
    Message(String),
    /// Local changes are in the way.
    #[error("local changes in the working tree of '{0}' are in the way")]
    Blocked(RefName, String),
    /// What the slot holds can't be an outcome.
    #[error("the worktree of the run is not ready: {0}")]
    Slot(String),
    /// Anything below.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        ChangeError::Runner(RunnerError::Store(error))
    }
}

impl ChangeError {
    /// The exit code of the verb.
    pub fn exit_code(&self) -> i32 {
        match self {
            ChangeError::Leased(..) | ChangeError::LeaseLost(..) | ChangeError::Raced(..) => 3,
            ChangeError::Blocked(..) => 1,
            ChangeError::Runner(error) => error.exit_code(),
            ChangeError::NoBranch(_)
            | ChangeError::Unborn(_)
            | ChangeError::NotLeased(_)
            | ChangeError::NotStalled(_)
            | ChangeError::NoTrigger(..)
            | ChangeError::Message(_)
            | ChangeError::Slot(_) => 128,
        }
    }
}

/// How often a swap inside a run is tried again over renewals.
const RENEWALS: usize = 20;

impl Runner<'_> {
    /// Writes a state event: `set-state`.
    pub fn set_state(
        &self,
        branch: &RefName,
        next: &Declaration,
        inside: Option<&Inside>,
    ) -> Result<Written, ChangeError> {
        if let Some(inside) = inside
            && inside.branch == *branch
        {
            return self.set_state_inside(branch, next, inside);
        }
        let own: Vec<Trailer> = inside.map(|i| hop(i.hop.saturating_add(1))).into_iter().collect();
        let Some(tip) = self.read_tip(branch)? else {
            return self.create_branch(branch, next, &own);
        };
        refuse_leased(branch, &tip)?;
        let mut own = own;
        if next.keep_trailers {
            own.extend(travelling(&Message::parse(&tip.commit.message)));
        }
        let commit = self.write_declared(next, &own, tip.commit.tree, vec![tip.id()])?;
        let log = format!("aynig: set {}", next.state);
        match self.advance(branch, tip.id(), commit, &log)? {
            Swap::Won => Ok(written(branch, commit, &next.state)),
            Swap::Lost { .. } => Err(ChangeError::Raced(branch.clone())),
            Swap::Unknown { cause } => Err(RunnerError::Unknown { branch: branch.clone(), cause }.into()),
        }
    }

    fn write_declared(
        &self,
        next: &Declaration,
        own: &[Trailer],
        tree: ObjectId,
        parents: Vec<ObjectId>,
    ) -> Result<ObjectId, ChangeError> {
        self.write(tree, parents, &next.message(own)).map_err(|error| match error {
            RunnerError::Message { cause } => ChangeError::Message(cause),
            other => ChangeError::Runner(other),
        })
    }

    fn create_branch(
        &self,
        branch: &RefName,
        next: &Declaration,
        own: &[Trailer],
    ) -> Result<Written, ChangeError> {
        let head = self.repo.git.rev_parse(&self.repo.git_dir, "HEAD^{commit}");
        let head = head.map_err(|_| ChangeError::Unborn(branch.clone()))?;
        let tree = self.store.read_commit(head)?.tree;
        let commit = self.write_declared(next, own, tree, vec![head])?;
        let log = format!("aynig: set {}", next.state);
        let by = self.signature();
        match swap::compare_and_swap(&*self.store, branch, Expected::Missing, commit, &by, &log)? {
            Swap::Won => Ok(Written { created: true, ..written(branch, commit, &next.state) }),
            Swap::Lost { .. } => Err(ChangeError::Raced(branch.clone())),
            Swap::Unknown { cause } => Err(RunnerError::Unknown { branch: branch.clone(), cause }.into()),
        }
    }

    /// The outcome of the run that we are inside of, written by its command (K22) or by a process that
    /// outlived it (K21).
    fn set_state_inside(
        &self,
        branch: &RefName,
        next: &Declaration,
        inside: &Inside,
    ) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let (tip, lease, run) = self.own_lease(branch, inside)?;
            let mut own = run.trailers();
            if next.keep_trailers {
                own.extend(travelling(&lease.message));
            }
            let mut notes = Vec::new();
            let (tree, parents, slot) = self.inside_tree(inside, &tip, &mut notes)?;
            let commit = self.write_declared(next, &own, tree, parents)?;
            let log = format!("aynig: {} -> {}", run.state, next.state);
            match self.move_branch(branch, tip.id(), commit, &log)? {
                Moved::Won(finished) => {
                    self.settle_inside(slot, inside)?;
                    notes.extend(blocked_notes(finished));
                    return Ok(Written { notes, ..written(branch, commit, &next.state) });
                }
                Moved::Lost => {}
                Moved::Blocked(words) => return Err(ChangeError::Blocked(branch.clone(), words)),
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }

    /// The head, if it is a lease of this run.
    fn own_lease(&self, branch: &RefName, inside: &Inside) -> Result<(Tip, Event, Run), ChangeError> {
        let lost = || ChangeError::LeaseLost(branch.clone(), inside.run_id.clone());
        let tip = self.read_tip(branch)?.ok_or_else(lost)?;
        let lease = tip.event.clone().filter(|e| e.is_working() && e.run_id() == Some(&*inside.run_id));
        let lease = lease.ok_or_else(lost)?;
        let (Some(state), Some(trigger)) = (lease.origin_state(), lease.trigger()) else {
            return Err(lost());
        };
        let run = Run {
            id: inside.run_id.clone(),
            runner_id: lease.text(RUNNER_ID).unwrap_or_default().to_owned(),
            state,
            trigger,
            hop: lease.hop(),
            lease_seconds: lease.lease_seconds().unwrap_or(self.settings.lease),
            remote: None,
        };
        Ok((tip, lease, run))
    }

    /// The tree and parents of a commit from inside a run: what its slot holds.
    fn inside_tree(
        &self,
        inside: &Inside,
        tip: &Tip,
        notes: &mut Vec<Note>,
    ) -> Result<(ObjectId, Vec<ObjectId>, Option<usize>), ChangeError> {
        let pool = self.pool()?;
        for number in pool.known() {
            let slot = pool.borrow(number);
            let Some(occupant) = slot.record().run.clone().filter(|r| r.run_id == inside.run_id) else {
                continue;
            };
            let Some(first) = occupant.lease_id() else { continue };
            let base = self.store.read_commit(first)?.tree;
            let found = match slot.harvest(self.repo, self.settings.stage, first, base) {
                Ok(found) => found,
                Err(HarvestError::Store(error)) => return Err(error.into()),
                Err(error @ (HarvestError::ForeignHead(_) | HarvestError::Unmerged)) => {
                    return Err(ChangeError::Slot(error.to_string()));
                }
            };
            if !found.nested.is_empty() {
                let names = found.nested.iter().map(|n| crate::protocol::text::escape(n)).collect();
                notes.push(Note::NestedRepositories(names));
            }
            let mut parents = vec![tip.id()];
            if found.head != first && found.head != tip.id() {
                parents.push(found.head);
            }
            return Ok((found.tree, parents, occupant.lingering.then_some(number)));
        }
        Ok((tip.commit.tree, vec![tip.id()], None))
    }

    /// A lingering run's slot is nobody's once its outcome is written.
    fn settle_inside(&self, slot: Option<usize>, inside: &Inside) -> Result<(), ChangeError> {
        if let Some(number) = slot
            && let Some(mut slot) = self.pool()?.lock(number)?
        {
            slot.occupy(None)?;
            self.unfollow(&inside.run_id);
        }
        Ok(())
    }

    /// Takes or renews a lease by hand: `set-working`.
    pub fn set_working(&self, branch: &RefName, inside: Option<&Inside>) -> Result<Written, ChangeError> {
        if let Some(inside) = inside
            && inside.branch == *branch
        {
            return self.renew_inside(branch, inside);
        }
        let tip = self.read_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        refuse_leased(branch, &tip)?;
        let event = tip.event.as_ref();
        let state = event.and_then(|e| e.state_name().cloned());
        let state =
            state.ok_or_else(|| ChangeError::NoTrigger(branch.clone(), "its head has no state".into()))?;
        let run = Run {
            id: uuid::Uuid::new_v4().to_string(),
            runner_id: self.runner_id.clone(),
            state,
            trigger: tip.id(),
            hop: event.map_or(0, Event::hop).saturating_add(1),
            lease_seconds: self.settings.lease,
            remote: None,
        };
        let message = run.lease(&Message::parse(&tip.commit.message));
        let commit = self.write(tip.commit.tree, vec![tip.id()], &message)?;
        match self.advance(branch, tip.id(), commit, "aynig: set working")? {
            Swap::Won => {
                let written = written(branch, commit, &working()?);
                Ok(Written { run_id: Some(run.id), ..written })
            }
            Swap::Lost { .. } => Err(ChangeError::Raced(branch.clone())),
            Swap::Unknown { cause } => Err(RunnerError::Unknown { branch: branch.clone(), cause }.into()),
        }
    }

    fn renew_inside(&self, branch: &RefName, inside: &Inside) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let (tip, lease, _) = self.own_lease(branch, inside)?;
            let commit = self.write(tip.commit.tree, vec![tip.id()], &lease.message)?;
            match self.advance(branch, tip.id(), commit, "aynig: renew")? {
                Swap::Won => {
                    self.follow(&inside.run_id, commit);
                    let written = written(branch, commit, &working()?);
                    return Ok(Written { run_id: Some(inside.run_id.clone()), ..written });
                }
                Swap::Lost { .. } => {}
                Swap::Unknown { cause } => {
                    return Err(RunnerError::Unknown { branch: branch.clone(), cause }.into());
                }
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }

    /// Takes a lease away: `cancel`.
    pub fn cancel(&self, branch: &RefName) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let tip = self.read_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
            let lease = tip.event.as_ref().filter(|e| e.is_working());
            let lease = lease.ok_or_else(|| ChangeError::NotLeased(branch.clone()))?;
            let run_id = lease.run_id().unwrap_or("unknown").to_owned();
            let details = format!("Run {} was canceled.", crate::protocol::text::escape(run_id.as_bytes()));
            let id = uuid::Uuid::new_v4().to_string();
            let message = transition::canceled(lease, &id, &details);
            let commit = self.write(tip.commit.tree, vec![tip.id()], &message)?;
            match self.advance(branch, tip.id(), commit, "aynig: cancel")? {
                Swap::Won => {
                    let state = StateName::new(crate::protocol::name::CANCELED);
                    let state = state.map_err(|e| ChangeError::Message(e.to_string()))?;
                    return Ok(Written { run_id: Some(run_id), ..written(branch, commit, &state) });
                }
                Swap::Lost { .. } => {}
                Swap::Unknown { cause } => {
                    return Err(RunnerError::Unknown { branch: branch.clone(), cause }.into());
                }
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }

    /// Asks for a stalled branch's trigger again, or lands its finished outcome: `retry`.
    pub fn retry(&self, branch: &RefName, inside: Option<&Inside>) -> Result<Written, ChangeError> {
        let head = self.read_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        let stalled = self.stalled_below(branch, &head)?;
        let event = stalled.event.as_ref().ok_or_else(|| ChangeError::NotStalled(branch.clone()))?;
        if let Some(attempt) = self.finished_attempt(event)? {
            return self.land_attempt(branch, &head, &stalled, attempt);
        }
        let missing = |why: &str| ChangeError::NoTrigger(branch.clone(), why.to_owned());
        let trigger = event.trigger().ok_or_else(|| missing("the stalled commit names no trigger"))?;
        let trigger = self.store.read_commit(trigger).map_err(|e| missing(&e.to_string()))?;
        let trigger = Event::of(Message::parse(&trigger.message));
        let trigger = trigger.ok_or_else(|| missing("the trigger is no state event"))?;
        let state = trigger.state_name().ok_or_else(|| missing("the trigger's state is not usable"))?;
        let hop = inside.map(|i| i.hop.saturating_add(1));
        let message = transition::retried(state, &trigger.message, hop);
        let commit = self.write(head.commit.tree, vec![head.id()], &message)?;
        match self.advance(branch, head.id(), commit, &format!("aynig: retry {state}"))? {
            Swap::Won => Ok(written(branch, commit, state)),
            Swap::Lost { .. } => Err(ChangeError::Raced(branch.clone())),
            Swap::Unknown { cause } => Err(RunnerError::Unknown { branch: branch.clone(), cause }.into()),
        }
    }

    /// The newest state event at or below the head, if it is `stalled`: a user may have committed the
    /// local changes that were in the way.
    fn stalled_below(&self, branch: &RefName, head: &Tip) -> Result<Tip, ChangeError> {
        let mut tip = head.clone();
        for _ in 0..1000 {
            match &tip.event {
                Some(event)
                    if event.state_name().is_some_and(|s| s.as_str() == crate::protocol::name::STALLED) =>
                {
                    return Ok(tip);
                }
                Some(_) => break,
                None => {}
            }
            let Some(parent) = tip.commit.parents.first().copied() else { break };
            tip = self.store.read_commit(parent)?.into();
        }
        Err(ChangeError::NotStalled(branch.clone()))
    }

    /// The attempt of a stalled run that is a whole outcome.
    fn finished_attempt(&self, stalled: &Event) -> Result<Option<Tip>, ChangeError> {
        let Some(run_id) = super::recover::stalled_run(stalled) else { return Ok(None) };
        let Some(name) = attempt_ref(run_id) else { return Ok(None) };
        let Some(attempt) = self.read_tip(&name)? else { return Ok(None) };
        let whole = attempt
            .event
            .as_ref()
            .is_some_and(|e| !e.is_working() && e.state_name().is_some() && e.run_id() == Some(run_id));
        Ok(whole.then_some(attempt))
    }

    /// Lands a finished outcome whose checkout was blocked; runs nothing (K28).
    fn land_attempt(
        &self,
        branch: &RefName,
        head: &Tip,
        stalled: &Tip,
        attempt: Tip,
    ) -> Result<Written, ChangeError> {
        let message = Message::parse(&attempt.commit.message);
        let mut parents = vec![head.id()];
        parents.extend(attempt.commit.parents.iter().skip(1));
        let (mut tree, mut overruled) = (attempt.commit.tree, Vec::new());
        if head.commit.tree != stalled.commit.tree {
            (tree, overruled) = self.repo.git.merge_trees(stalled.commit.tree, head.commit.tree, tree)?;
        }
        let commit = self.write(tree, parents, &message)?;
        match self.move_branch(branch, head.id(), commit, "aynig: land attempt")? {
            Moved::Won(finished) => {
                let state = attempt.event.as_ref().and_then(|e| e.state_name().cloned());
                let state = state.ok_or_else(|| ChangeError::NotStalled(branch.clone()))?;
                let notes = blocked_notes(finished);
                if let Some(name) =
                    message.last(RUN_ID).and_then(|id| attempt_ref(&String::from_utf8_lossy(id)))
                {
                    swap::delete_ref(&*self.store, &name, attempt.id(), &self.signature())?;
                }
                Ok(Written { notes, overruled, ..written(branch, commit, &state) })
            }
            Moved::Lost => Err(ChangeError::Raced(branch.clone())),
            Moved::Blocked(words) => Err(ChangeError::Blocked(branch.clone(), words)),
        }
    }
}

fn refuse_leased(branch: &RefName, tip: &Tip) -> Result<(), ChangeError> {
    match &tip.event {
        Some(event) if event.is_working() => {
            let run = crate::protocol::text::escape(event.run_id().unwrap_or("unknown").as_bytes());
            Err(ChangeError::Leased(branch.clone(), run))
        }
        Some(_) | None => Ok(()),
    }
}

fn hop(hop: u32) -> Trailer {
    Trailer { key: HOP.into(), value: hop.to_string().into_bytes() }
}

fn working() -> Result<StateName, ChangeError> {
    StateName::new(crate::protocol::name::WORKING).map_err(|e| ChangeError::Message(format!("{STATE}: {e}")))
}

fn written(branch: &RefName, commit: ObjectId, state: &StateName) -> Written {
    Written {
        branch: branch.clone(),
        commit,
        state: state.clone(),
        run_id: None,
        created: false,
        notes: Vec::new(),
        overruled: Vec::new(),
    }
}

fn blocked_notes(finished: Vec<Finished>) -> Vec<Note> {
    finished
        .into_iter()
        .filter_map(|done| match done {
            Finished::Blocked(dir, words) => Some(Note::CheckoutBlocked(dir, words)),
            Finished::Arrived(_) | Finished::Moot(_) => None,
        })
        .collect()
}
