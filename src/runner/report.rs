//! What became of each branch: data that other modules turn into messages, JSON and exit codes.
//!
//! Losing a race, finding nothing to do and a stalled command are reports, not errors. Every ending has a
//! name in this module.

use super::RunnerError;
use super::home::Home;
use super::slot::Abandoned;
use crate::protocol::complete::Stall;
use crate::protocol::decide::Idle;
use crate::protocol::dialect::Dialect;
use crate::protocol::id::ObjectId;
use crate::protocol::landing::NotLanded;
use crate::protocol::name::StateName;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::resemble::Missed;
use crate::protocol::text::escape;
use crate::store::RefName;
use crate::store::command_start::Unfit;
use crate::store::worktrees::Busy;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One branch's report.
#[derive(Debug)]
pub struct Report {
    pub branch: RefName,
    /// The head that was judged last, where one was read. What is done about a branch moves it.
    pub head: Option<ObjectId>,
    /// Leases of others that were recovered on the way: run id, `stalled` commit, attempt.
    pub recovered: Vec<Recovered>,
    /// The remote whose branch it is; `None`: this repository's.
    pub remote: Option<String>,
    /// The id of the run that claimed it, if one did.
    pub claimed: Option<String>,
    /// How the evaluation ended.
    pub verdict: Verdict,
    /// Branches that the run set, to be looked at now that it is over (K40).
    pub wake: Vec<super::pending::Woken>,
    /// Notices that may have to be given (K53).
    pub(crate) owed: Vec<super::notice::Owed>,
    /// Things worth saying that changed nothing.
    pub notes: Vec<Note>,
}

/// An expired lease that was ended.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// The id of the run that held it.
    pub run_id: String,
    /// The state that the run answered.
    pub state: String,
    /// The `stalled` commit.
    pub commit: ObjectId,
    /// Where the run's work was kept, if this machine had any.
    pub attempt: Option<RefName>,
}

/// How an evaluation ended.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing to do.
    Idle(Idle),
    /// A state whose command can't be started.
    Unusable {
        state: StateName,
        /// The path of the command below `.aynig/`.
        path: String,
        /// What is wrong with the command.
        why: Unfit,
        /// Where the command is to be mended.
        home: Home,
    },
    /// Not looked at.
    Skipped(Skip),
    /// Another run holds it.
    Leased {
        /// When the lease ends, in seconds since 1970 by this machine's clock.
        until: i64,
        /// Seconds left.
        left: i64,
        /// The run's id, if the lease says it.
        run_id: Option<String>,
        /// The runner's id, if the lease says it.
        runner_id: Option<String>,
        /// True where the lease is judged by observation rather than by its date.
        malformed: bool,
        /// Why no runner works on it any more, where that is known.
        abandoned: Option<Abandoned>,
    },
    /// Another runner was quicker.
    LostRace,
    /// All slots are taken, and this runner does not wait.
    NoSlot,
    /// The policy forbids it.
    Refused(Refusal),
    /// A command would have been run.
    WouldRun {
        state: StateName,
        /// The path of the command below `.aynig/`.
        command: String,
    },
    /// Messages that would have been delivered.
    WouldDeliver {
        /// The state that they bring.
        state: StateName,
        /// How many.
        messages: usize,
    },
    /// Messages wait: something is in the way in a working tree that has the branch checked out.
    Undelivered {
        /// How many.
        messages: usize,
        /// What is in the way.
        by: Obstacle,
    },
    /// The branch asked to be landed, and was set `stalled`.
    Unlanded {
        /// The branch that it asked to be landed on.
        onto: RefName,
        /// Why it was not landed.
        why: NotLanded,
        /// The `stalled` commit.
        commit: ObjectId,
    },
    /// A lease that would have been recovered.
    WouldRecover,
    /// A command was run.
    Ran(Box<Ran>),
    /// The branch could not be evaluated.
    Failed(RunnerError),
}

/// Why a branch was not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// The branch does not exist.
    Missing,
    /// A working tree, in this folder, is rebasing or bisecting it.
    Busy(Busy, PathBuf),
    /// The runner was asked to stop.
    Interrupted,
}

/// What a policy forbade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// This repository is not trusted.
    NotTrusted,
    /// The trust configuration was changed since this runner was made.
    Changed,
    /// `aynig.branches` leaves the branch out. With the configuration key that lets more in, in this
    /// repository alone.
    Branch(String),
    /// Nothing may be landed on this branch: `aynig.landOnto` does not allow it.
    Target {
        /// The branch.
        onto: RefName,
        /// The configuration key that allows it, in this repository alone.
        key: String,
    },
    /// The ref that commands come from does not exist.
    NoCommandsRef(RefName),
    /// The head carries no good signature.
    Unsigned,
    /// The head carries a good signature, but not for this branch.
    SignedElsewhere {
        /// The trailer that says for which branch a head is signed.
        key: &'static str,
        /// What the trailer says; `None`: the head has none.
        said: Option<Vec<u8>>,
        branch: RefName,
    },
    /// What the runner writes can't be signed.
    CannotSign(String),
    /// This kernel can't confine commands as `aynig.sandbox` asks for.
    NoSandbox {
        /// The version of Landlock that is needed.
        needs: u32,
        /// The version that this kernel has; 0 for none.
        has: u32,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotTrusted => f.write_str("not trusted"),
            Refusal::Changed => f.write_str("refused: what may run here was changed meanwhile"),
            Refusal::Branch(_) => f.write_str("refused: 'aynig.branches' leaves it out"),
            Refusal::Target { onto, .. } => {
                write!(f, "refused: 'aynig.landOnto' does not name '{}'", escape(onto.short()))
            }
            Refusal::NoCommandsRef(name) => {
                let name = String::from_utf8_lossy(name.as_bytes());
                write!(f, "refused: '{name}', where commands come from, does not exist")
            }
            Refusal::Unsigned => {
                f.write_str("refused: its head carries no signature that git verify-commit accepts")
            }
            Refusal::SignedElsewhere { key, said: Some(said), .. } => {
                write!(f, "refused: it is signed for another branch ('{key}: {}')", escape(said))
            }
            Refusal::SignedElsewhere { key, said: None, branch } => {
                let branch = escape(branch.short());
                write!(f, "refused: it is signed without the trailer '{key}: {branch}'")
            }
            Refusal::NoSandbox { needs, has: 0 } => {
                write!(f, "refused: 'aynig.sandbox' needs Landlock {needs}, and this kernel has none")
            }
            Refusal::NoSandbox { needs, has } => {
                write!(f, "refused: 'aynig.sandbox' needs Landlock {needs}, and this kernel has {has}")
            }
            Refusal::CannotSign(why) => write!(f, "refused: cannot sign: {}", escape(why.as_bytes())),
        }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran {
    pub run_id: String,
    /// The state that the run answered.
    pub state: StateName,
    /// The commit that it answered.
    pub trigger: ObjectId,
    /// How the command ended, in words; `None` where it was never started.
    pub exit: Option<String>,
    /// How long it ran.
    pub took: Duration,
    /// The log of the command's standard output.
    pub stdout_log: PathBuf,
    /// The log of the command's standard error.
    pub stderr_log: PathBuf,
    /// What was written to the branch.
    pub outcome: Outcome,
    /// Where work is kept that is not on the branch.
    pub attempt: Option<RefName>,
    /// The signal that ended the runner's work, if one did.
    pub interrupted: Option<i32>,
}

/// How a run ended on its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The declared state's commit.
    Advanced { state: StateName, commit: ObjectId },
    /// The lease lives on.
    KeptLease {
        /// The fresh lease.
        commit: ObjectId,
        /// How long the lease still counts for other runners.
        left: Duration,
    },
    /// No outcome was written: the lease lives until it expires (K29).
    LeaseLeft {
        /// The lease.
        commit: ObjectId,
        /// How long the lease still counts for other runners.
        left: Duration,
        /// The command failed, or never ran.
        failed: bool,
    },
    /// The command wrote the outcome itself.
    Own { commit: ObjectId, state: Option<StateName> },
    /// A `stalled` commit.
    Stalled { why: Stall, commit: ObjectId },
    /// Nothing was written: the lease was lost.
    Fenced {
        /// What the branch is now, where that could be read.
        to: Option<LostTo>,
    },
}

/// What a branch is whose run lost its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostTo {
    /// The branch no longer exists.
    Nothing,
    /// Its head is this commit, which is no state event: no run waits for it.
    Commit(ObjectId),
    /// Its head is this state event, with its state where that is usable.
    Event(ObjectId, Option<StateName>),
}

/// Something worth saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Messages were delivered, and brought this state.
    Delivered {
        /// How many.
        messages: usize,
        state: StateName,
    },
    /// The branch has landed on this branch, as this commit.
    Landed(RefName, ObjectId),
    /// This target had all of the branch already.
    HasLanded(RefName),
    /// A message that is not delivered, and why.
    PassedOver(RefName, String),
    /// An event of this state asks again for what was canceled.
    AskedAgainBy(StateName),
    /// What was canceled is a landing, which is asked for by a verb of its own.
    LandedAgainBy,
    /// An invalid declaration, and why it is invalid.
    InvalidDeclaration(String, String),
    /// How many invalid declarations there were beyond those that are kept.
    MoreInvalid(u64),
    /// Trailers that did not fit into the environment.
    TrailersLeftOut(Vec<String>),
    /// Repositories inside the slot that were left out of the outcome.
    NestedRepositories(Vec<String>),
    /// Commits in submodules that their remotes may not have: the folder that keeps them, and the submodules' names.
    SubmodulesKept(PathBuf, Vec<PathBuf>),
    /// Repositories that were in the slot of a run that came to no outcome: the folder that keeps them, and
    /// the paths of their Git directories in it.
    RepositoriesKept(PathBuf, Vec<PathBuf>),
    /// The command of a state is in the checkout, not in the commit.
    NotCommitted {
        state: StateName,
        /// The command's path below `.aynig/`.
        path: String,
        /// Where commands come from.
        home: Home,
    },
    /// The command of a state is on the branch, but commands come from elsewhere.
    NotInRef {
        state: StateName,
        /// The command's path below `.aynig/`.
        path: String,
        /// Where commands come from.
        home: Home,
    },
    /// No command answers this state; these states, with nearly the same name, have one.
    NearlyAState(StateName, Vec<String>),
    /// The head is no state event, and says something that is nearly one.
    NearlyAnEvent(Missed),
    /// The copy of `.aynig/` that commands start from had been changed, and was written anew.
    CommandsRestored,
    /// Output was kept elsewhere, at this path, because a symbolic link is in the way or Git would not ignore
    /// the logs.
    LogsElsewhere(PathBuf),
    /// A log could not be written; the command was not disturbed.
    LogFailed(String),
    /// A background process held the command's output open.
    OutputHeldOpen,
    /// A working tree with the branch checked out follows later: something is in the way.
    CheckoutBlocked(PathBuf, Obstacle),
    /// An outcome was not brought into a working tree, and that could not be written to the branch.
    Blocked(Obstacle),
    /// A working tree followed the branch, but for a file that could not be removed there: Git's warning.
    NotRemoved(PathBuf, String),
    /// A renewal that failed and was tried again.
    RenewalFailed(String),
    /// Work of a run that could not be kept, and why: it is still in its slot.
    WorkNotKept(String),
    /// A slot that could not be made ready, or cleaned up after a run, and why.
    SlotLeft(PathBuf, String),
    /// What a run left could not be kept, and was moved to this path as it is, for this reason.
    SetAside(PathBuf, String),
    /// A lease whose date or length is not believed.
    MalformedLease,
    /// An outcome that could not be brought to the remote, or written to the branch; it is kept under this
    /// ref.
    OutcomeKept(RefName),
    /// What an outcome leaves out of what its run did; it is kept under this ref.
    LeftOutKept(RefName),
    /// Work that is kept in this repository but could not be published, and why.
    NotPublished(RefName, String),
    /// Work of an earlier run that was found in a slot and kept, and the branch that the run was on.
    FoundAttempt(RefName, RefName),
    /// The command committed a state where it has to declare one (K22).
    StateCommitted(Dialect, StateName),
    /// The command declared a state where it has to commit one itself (K29).
    DeclarationIgnored,
    /// A commit of the command's that did not become the branch's head.
    NotForwarded(ObjectId, Unforwarded),
    /// The command was never started.
    NotPrepared(String),
}

/// Why the HEAD of a slot did not become its branch's head (K29).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unforwarded {
    /// The commit does not descend from the lease.
    ForeignHead,
    /// It says `working`, but not the run's id.
    ForeignLease,
    /// It carries the id of another run, or of a recovery.
    ForeignEvent,
    /// It is a state event of the other dialect.
    OtherDialect,
    /// Something is in the way in a working tree that has the branch checked out.
    Checkout(Obstacle),
    /// It can't be read.
    Unreadable(String),
}

impl Report {
    /// Returns a report that has no verdict yet.
    pub fn new(branch: &RefName) -> Self {
        Self {
            branch: branch.clone(),
            head: None,
            recovered: Vec::new(),
            remote: None,
            claimed: None,
            verdict: Verdict::Skipped(Skip::Missing),
            wake: Vec::new(),
            owed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// True where a lease lives on whose command is over (K21).
    pub fn kept_lease(&self) -> bool {
        matches!(&self.verdict, Verdict::Ran(ran) if matches!(ran.outcome, Outcome::KeptLease { .. }))
    }

    /// Returns the `stalled` commit of a branch that could not be landed, without a run of its own.
    pub(crate) fn unlanded(&self) -> Option<ObjectId> {
        if let Verdict::Unlanded { commit, .. } = &self.verdict { Some(*commit) } else { None }
    }
}

impl Report {
    /// Adds a note, or replaces the same one. A renewal that fails again and again is noted once, with its
    /// latest message: messages about a lock hold the lock's age, so no two are equal.
    pub(super) fn note_once(&mut self, note: Note) {
        let is_again = |other: &Note| match (other, &note) {
            (Note::RenewalFailed(_), Note::RenewalFailed(_)) => true,
            (other, note) => other == note,
        };
        match self.notes.iter_mut().find(|other| is_again(other)) {
            Some(other) => *other = note,
            None => self.notes.push(note),
        }
    }
}

/// True where a disk or a quota is full.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl RunnerError {
    /// True where a remote received a push and declined it, so that its branch stays where it was.
    pub fn is_no(&self) -> bool {
        use crate::store::{RemoteFailure, StoreError};
        matches!(self, RunnerError::Store(StoreError::Remote { failure: RemoteFailure::Declined, .. }))
    }
}
