//! State events that users and commands write by hand: set-state, set-working, cancel, retry.
//!
//! Each is one commit and one compare-and-swap. `inside` has the commits that a run writes on its own branch,
//! `retry` those that bring a stalled branch on. Implements K9 (by hand), K20, and the verbs of git-aynig(1).

mod edit;
pub(crate) mod fan;
mod inside;
pub(crate) mod land;
mod retry;
mod written;

use super::is_written;
use super::report::{Note, Refusal};
use super::{Runner, RunnerError, Tip};
use crate::protocol::declaration::{Declaration, travelling};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::{Event, HOP};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::landing;
use crate::protocol::message::{Message, Trailer};
use crate::protocol::name::{STALLED, StateName};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::escape;
use crate::protocol::transition::{self, Run};
use crate::store::{Expected, RefName, StoreError, swap};
pub(crate) use edit::Ground;
pub(crate) use written::Written;
use written::{moved_notes, working, written};

/// The run that this process belongs to, as the environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    pub run_id: String,
    /// The branch that the run holds.
    pub branch: RefName,
    /// The remote whose branch that is; `None`: it is a branch of this repository.
    pub remote: Option<String>,
    /// The hop that the run's lease carries.
    pub hop: u32,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The branch does not exist.
    #[error("branch '{0}' does not exist")]
    NoBranch(RefName),
    /// HEAD is unborn, so no branch can be created there.
    #[error("cannot create branch '{0}': HEAD has no commit yet")]
    Unborn(RefName),
    /// A run holds the branch.
    #[error("'{0}' is leased by run {1}")]
    Leased(RefName, String),
    /// The run's lease is gone.
    #[error("run {1} no longer holds '{0}'")]
    LeaseLost(RefName, String),
    /// The branch was moved meanwhile.
    #[error("'{0}' has been moved by another process meanwhile")]
    Raced(RefName),
    /// The head is no lease.
    #[error("'{0}' is not leased: nothing to cancel")]
    NotLeased(RefName),
    /// The head is not stalled.
    #[error("'{0}' is not stalled: nothing to retry")]
    NotStalled(RefName),
    /// A user asked for the state `stalled`, which only the end of a run may write.
    #[error(
        "state 'stalled' is what a run ends with: written by hand there is nothing that could be tried again"
    )]
    ByHand(RefName),
    /// The trigger can't be found.
    #[error("cannot find what '{0}' answered: {1}")]
    NoTrigger(RefName, String),
    /// The commit that would be asked for again, or landed, is not signed for this branch.
    #[error("{1} is not signed for '{0}'")]
    NotVouched(RefName, ObjectId),
    /// The branch and the target that it is to land on are the same.
    #[error("'{0}' cannot land on itself")]
    Itself(RefName),
    /// The target has no rules that say which state checks there (the reason is empty), or they can't be
    /// read.
    #[error("{}", no_rules(.0, .1))]
    NoRules(RefName, String),
    /// Nothing may be landed on this target.
    #[error("{0}")]
    MayNotLand(Refusal),
    /// A branch exists already under the name that is to be created.
    #[error("branch '{0}' exists")]
    Exists(RefName),
    /// This branch is neither fanned nor an attempt of a fanned one.
    #[error("'{0}' is neither fanned nor an attempt of a branch that is")]
    NotFanned(RefName),
    /// The branch itself was fanned: one of these attempts of it has to be chosen instead.
    #[error("'{0}' is fanned: one of its attempts is chosen")]
    Fanned(RefName, Vec<RefName>),
    /// The fanned branch went on with an attempt already: with this one, or another.
    #[error("'{attempt}' cannot be chosen: '{branch}' went on with '{chosen}'")]
    Chosen {
        /// The attempt that was to be chosen now.
        attempt: RefName,
        /// The fanned branch that it is an attempt of.
        branch: RefName,
        /// The attempt that was chosen before.
        chosen: RefName,
    },
    /// The attempt can't be chosen, for this reason.
    #[error("'{0}' cannot be chosen: {1}")]
    Unfinished(RefName, String),
    /// The message can't be written.
    #[error("cannot write the commit message: {0}")]
    Message(String),
    /// Something is in the way of a checkout.
    #[error("{}", blocked(.0, .1))]
    Blocked(RefName, Obstacle),
    /// These paths are files on one side and folders on the other: in the branch, and in the outcome that is
    /// to land.
    #[error("{}", apart(.0, .1))]
    Apart(RefName, Vec<String>),
    /// The run on this branch is of the other dialect.
    #[error("the run on '{0}' is of the '{1}' dialect")]
    Dialect(RefName, Dialect),
    /// The slot's content can't become an outcome.
    #[error("the worktree of the run is not ready: {0}")]
    Slot(String),
    /// An error of the runner or the store.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

fn blocked(branch: &RefName, by: &Obstacle) -> String {
    match by {
        Obstacle::Changes(_) => format!("local changes in the working tree of '{branch}' are in the way"),
        Obstacle::Lock(_) => format!("another git process is at work in the working tree of '{branch}'"),
        Obstacle::Rebase(dir) => {
            format!("'{branch}' is being rebased in '{}'", escape(dir.as_os_str().as_encoded_bytes()))
        }
        Obstacle::Failed(_) => format!("the working tree of '{branch}' could not follow"),
    }
}

fn no_rules(onto: &RefName, why: &str) -> String {
    match why {
        "" => format!("'{onto}' has no '.aynig/land', which says what checks a branch before it lands"),
        why => format!("cannot read '.aynig/land' of '{onto}': {why}"),
    }
}

fn apart(branch: &RefName, paths: &[String]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
    let names = names.join(", ");
    format!(
        "cannot merge the run's outcome into '{branch}': a file on one side, a folder on the other: {names}"
    )
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        ChangeError::Runner(RunnerError::Store(error))
    }
}

/// How often a swap is tried again after the run's lease was renewed in between.
const RENEWALS: usize = 20;

impl Runner<'_> {
    /// Writes a state event: `set-state`. It is of the dialect that was asked for, else of that of the
    /// branch's newest state event (K29).
    pub fn set_state(
        &self,
        branch: &RefName,
        next: &Declaration,
        asked: Option<Dialect>,
        inside: Option<&Inside>,
    ) -> Result<Written, ChangeError> {
        if let Some(inside) = inside
            && self.is_of(inside, branch)
        {
            return self.set_state_inside(branch, next, asked, inside);
        }
        if next.state.as_str() == STALLED {
            return Err(ChangeError::ByHand(branch.clone()));
        }
        let hop = inside.map(|i| i.hop.saturating_add(1));
        let own = |dialect: Dialect| hop.map(|hop| dialect.trailer(HOP, hop)).into_iter().collect();
        let Some(tip) = self.fresh_tip(branch)? else {
            let dialect = asked.unwrap_or_default();
            return self.create_branch(branch, (dialect, next), own(dialect));
        };
        refuse_leased(branch, &tip)?;
        let dialect = asked.map_or_else(|| self.newest_dialect(&tip), Ok)?;
        let mut own: Vec<Trailer> = own(dialect);
        if next.keep_trailers {
            own.extend(travelling(&Message::parse(&tip.commit.message), dialect));
        }
        let message = next.message(dialect, &own);
        let commit = self.write_declared(branch, &message, tip.commit.tree, vec![tip.id()])?;
        let log = format!("aynig: set {}", next.state);
        self.write_on_head(branch, (tip.id(), commit), &log)?;
        Ok(self.answered(written(branch, commit, &next.state)))
    }

    /// Adds a note if nothing answers the written state, and a command seems to be meant.
    fn answered(&self, mut written: Written) -> Written {
        // The commit is on the branch by now: an error that only keeps this note from being made is no
        // failure.
        written.notes.extend(self.missed(written.commit, &written.state).unwrap_or_default());
        written
    }

    /// True if this is the branch that the run is about.
    fn is_of(&self, inside: &Inside, branch: &RefName) -> bool {
        inside.branch == *branch && inside.remote == self.settings.remote
    }

    fn create_branch(
        &self,
        branch: &RefName,
        (dialect, next): (Dialect, &Declaration),
        own: Vec<Trailer>,
    ) -> Result<Written, ChangeError> {
        // Git makes no branch of that name; a push may.
        if branch.short() == b"HEAD" {
            return Err(ChangeError::NoBranch(branch.clone()));
        }
        let head = self.repo.git.rev_parse(&self.repo.git_dir, "HEAD^{commit}");
        let head = head.map_err(|_| ChangeError::Unborn(branch.clone()))?;
        let tree = self.store.read_commit(head)?.tree;
        let commit = self.write_declared(branch, &next.message(dialect, &own), tree, vec![head])?;
        self.create_at(branch, commit, &format!("aynig: set {}", next.state))?;
        Ok(self.answered(Written { created: true, ..written(branch, commit, &next.state) }))
    }

    /// Moves a branch to a commit that a verb has written on its head, with the same files.
    ///
    /// # Errors
    /// [`ChangeError::Blocked`] where a rebase of the branch is under way, [`ChangeError::Raced`] where the branch
    /// has moved.
    pub(in crate::runner) fn write_on_head(
        &self,
        branch: &RefName,
        (from, to): (ObjectId, ObjectId),
        log: &str,
    ) -> Result<(), ChangeError> {
        if let Some(by) = self.rebased(branch)? {
            return Err(ChangeError::Blocked(branch.clone(), by));
        }
        unless_raced(branch, self.advance(branch, from, to, log)?)
    }

    /// Creates a branch at a commit.
    fn create_at(&self, branch: &RefName, commit: ObjectId, log: &str) -> Result<(), ChangeError> {
        let by = self.signature();
        let made = swap::compare_and_swap(&*self.store, branch, Expected::Missing, commit, &by, log)?;
        unless_raced(branch, is_written(branch, made)?)
    }

    /// Takes or renews a lease by hand: `set-working`.
    pub fn set_working(&self, branch: &RefName, inside: Option<&Inside>) -> Result<Written, ChangeError> {
        if let Some(inside) = inside
            && self.is_of(inside, branch)
        {
            return self.renew_inside(branch, inside);
        }
        let tip = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        refuse_leased(branch, &tip)?;
        let event = tip.event.as_ref();
        let state = event.and_then(|e| e.state_name().cloned());
        let state =
            state.ok_or_else(|| ChangeError::NoTrigger(branch.clone(), "its head has no state".into()))?;
        let run = Run {
            id: uuid::Uuid::new_v4().to_string(),
            dialect: event.map(|e| e.dialect).unwrap_or_default(),
            runner_id: self.runner_id.clone(),
            state,
            trigger: tip.id(),
            hop: event.map_or(0, Event::hop).saturating_add(1),
            lease_seconds: self.settings.lease,
            remote: self.settings.remote.clone(),
        };
        let message = run.lease(&Message::parse(&tip.commit.message));
        let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &message)?;
        self.write_on_head(branch, (tip.id(), commit), "aynig: set working")?;
        Ok(Written { run_id: Some(run.id), ..written(branch, commit, &working()?) })
    }

    /// Takes the lease of a branch away: `cancel`, and with `paused_by` also `pause --stop`.
    pub fn cancel(&self, branch: &RefName, paused_by: Option<MessageId>) -> Result<Written, ChangeError> {
        for _ in 0..RENEWALS {
            let tip = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
            let lease = self.whole_lease(&tip)?.ok_or_else(|| ChangeError::NotLeased(branch.clone()))?;
            let run_id = lease.run_id().unwrap_or("unknown").to_owned();
            let details = format!("Run {} was canceled.", escape(run_id.as_bytes()));
            let id = uuid::Uuid::new_v4().to_string();
            let message = transition::canceled(&lease, &id, &details, paused_by);
            let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &message)?;
            if self.advance(branch, tip.id(), commit, "aynig: cancel")? {
                // The run's command, and what it left behind, are told by that: no runner may be there to do it.
                if !self.runs_elsewhere(&run_id, branch) {
                    self.unfollow(&run_id, &[tip.id()]);
                }
                let state = StateName::new(crate::protocol::name::CANCELED);
                let state = state.map_err(|e| ChangeError::Message(e.to_string()))?;
                let notes = self.asked_again(&lease).into_iter().collect();
                return Ok(Written { run_id: Some(run_id), notes, ..written(branch, commit, &state) });
            }
        }
        Err(ChangeError::Raced(branch.clone()))
    }

    /// Returns how what a canceled lease answered is asked for again; `None` where the lease does not say it.
    fn asked_again(&self, lease: &Event) -> Option<Note> {
        let trigger = lease.trigger().and_then(|id| self.store.read_commit(id).ok());
        let lands = trigger.is_some_and(|read| Message::parse(&read.message).last(landing::ONTO).is_some());
        if lands { Some(Note::LandedAgainBy) } else { lease.origin_state().map(Note::AskedAgainBy) }
    }
}

fn refuse_leased(branch: &RefName, tip: &Tip) -> Result<(), ChangeError> {
    match &tip.event {
        Some(event) if event.is_working() => {
            let run = escape(event.run_id().unwrap_or("unknown").as_bytes());
            Err(ChangeError::Leased(branch.clone(), run))
        }
        Some(_) | None => Ok(()),
    }
}

fn unless_raced(branch: &RefName, is_written: bool) -> Result<(), ChangeError> {
    if is_written { Ok(()) } else { Err(ChangeError::Raced(branch.clone())) }
}
