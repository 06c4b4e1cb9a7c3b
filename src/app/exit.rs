//! How a verb ends, from the best end to the worst. Over several branches, the worst end counts.
//!
//! `cli` gives each end the number that a process exits with. Implements Exit codes of the contract.

use super::change::NotPushed;
use super::diff::PastError;
use super::logs::LogsError;
use super::{AppError, Misuse};
use crate::flow::FlowError;
use crate::flow::project::ProjectError;
use crate::flow::route::RouteError;
use crate::flow::turn::TurnError;
use crate::runner::RunnerError;
use crate::runner::change::ChangeError;
use crate::runner::report::{Note, Outcome, Report, Skip, Verdict, is_full};
use crate::runner::talk::TalkError;
use crate::runner::uninstall::InUse;
use crate::store::repository::OpenError;
use crate::store::{RemoteFailure, StoreError};

/// How a verb ends. The order is that of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Exit {
    /// It did what it was asked.
    #[default]
    Done,
    /// Another runner has, or had, the branch.
    Held,
    /// A run stalled, or a working tree does not yet have what its branch holds.
    Unfinished,
    /// A policy forbids it.
    Refused,
    /// It may succeed later.
    Later,
    Failed,
    /// SIGTERM or another signal ended it.
    Terminated,
    /// SIGINT ended it.
    Interrupted,
    /// The call was wrong.
    Usage,
}

impl Exit {
    /// Returns the end that a signal brings.
    pub fn of_signal(signal: i32) -> Self {
        if signal == 2 { Exit::Interrupted } else { Exit::Terminated }
    }

    /// Returns the end that one branch's report stands for; `named` where the user asked for the branch by
    /// name.
    pub fn of_report(report: &Report, named: bool) -> Self {
        let if_named = |exit| if named { exit } else { Exit::Done };
        let own = match &report.verdict {
            Verdict::Idle(_)
            | Verdict::WouldRun { .. }
            | Verdict::WouldDeliver { .. }
            | Verdict::WouldRecover => Exit::Done,
            Verdict::Unusable { .. } | Verdict::Refused(_) => Exit::Refused,
            // The branch is gone since it was found, or gone on its remote: only a user who named it waits
            // for it.
            Verdict::Skipped(Skip::Missing) => if_named(Exit::Failed),
            Verdict::Skipped(Skip::Busy(..))
            | Verdict::Undelivered { .. }
            | Verdict::Leased { .. }
            | Verdict::LostRace => if_named(Exit::Held),
            Verdict::Skipped(Skip::Interrupted) => Exit::Interrupted,
            Verdict::NoSlot => Exit::Later,
            Verdict::Unlanded { .. } => Exit::Unfinished,
            Verdict::Ran(ran) => match (&ran.outcome, ran.interrupted) {
                (_, Some(signal)) => Exit::of_signal(signal),
                (Outcome::Advanced { .. } | Outcome::KeptLease { .. } | Outcome::Own { .. }, None) => {
                    Exit::Done
                }
                (Outcome::LeaseLeft { failed: false, .. }, None) => Exit::Done,
                (Outcome::LeaseLeft { failed: true, .. } | Outcome::Stalled { .. }, None) => Exit::Unfinished,
                (Outcome::Fenced { .. }, None) => Exit::Held,
            },
            Verdict::Failed(error) => error.into(),
        };
        let recovered = if report.recovered.is_empty() { Exit::Done } else { Exit::Unfinished };
        own.max(recovered).max(Exit::of_notes(&report.notes))
    }

    /// Returns `Unfinished` where a working tree does not yet have what its branch holds: the user is told of
    /// that, and it is not nothing.
    pub fn of_notes(notes: &[Note]) -> Self {
        let is_behind = notes.iter().any(|note| matches!(note, Note::CheckoutBlocked(..)));
        if is_behind { Exit::Unfinished } else { Exit::Done }
    }
}

impl From<&RunnerError> for Exit {
    fn from(error: &RunnerError) -> Self {
        let transient = |source: &std::io::Error| {
            let descriptors = matches!(source.raw_os_error(), Some(23 | 24));
            // EAGAIN, with which the system also says that there are too many processes.
            is_full(source) || source.kind() == std::io::ErrorKind::WouldBlock || descriptors
        };
        match error {
            RunnerError::Store(StoreError::LockHeld { .. })
            | RunnerError::Unknown { .. }
            | RunnerError::Closed { .. } => Exit::Later,
            RunnerError::Store(StoreError::Io { source, .. })
            | RunnerError::Unready { source, .. }
            | RunnerError::Io { source, .. } => {
                if transient(source) {
                    Exit::Later
                } else {
                    Exit::Failed
                }
            }
            RunnerError::Signing { .. } | RunnerError::Store(StoreError::Untrusted { .. }) => Exit::Refused,
            RunnerError::Store(StoreError::Remote { failure, .. }) => match failure {
                RemoteFailure::Declined | RemoteFailure::NotAtomic => Exit::Refused,
                RemoteFailure::InTheWay | RemoteFailure::NotConfigured => Exit::Failed,
                RemoteFailure::Denied
                | RemoteFailure::Unreachable
                | RemoteFailure::TooLate
                | RemoteFailure::Busy
                | RemoteFailure::Other => Exit::Later,
            },
            RunnerError::Supervisor(inner) if inner.system_error().is_some_and(transient) => Exit::Later,
            RunnerError::Store(_)
            | RunnerError::Supervisor(_)
            | RunnerError::NoWrapper { .. }
            | RunnerError::SlotNote { .. }
            | RunnerError::Message { .. } => Exit::Failed,
        }
    }
}

impl From<&ChangeError> for Exit {
    fn from(error: &ChangeError) -> Self {
        match error {
            ChangeError::Leased(..) | ChangeError::LeaseLost(..) | ChangeError::Raced(..) => Exit::Held,
            ChangeError::Blocked(..) | ChangeError::Apart(..) => Exit::Unfinished,
            ChangeError::NotVouched(..)
            | ChangeError::NoRules(..)
            | ChangeError::MayNotLand(_)
            | ChangeError::Fanned(..)
            | ChangeError::Chosen { .. }
            | ChangeError::Unfinished(..) => Exit::Refused,
            ChangeError::Runner(error) => error.into(),
            ChangeError::ByHand(_) | ChangeError::Itself(_) => Exit::Usage,
            ChangeError::NoBranch(_)
            | ChangeError::Unborn(_)
            | ChangeError::NotLeased(_)
            | ChangeError::Exists(_)
            | ChangeError::NotFanned(_)
            | ChangeError::NotStalled(_)
            | ChangeError::NoTrigger(..)
            | ChangeError::Message(_)
            | ChangeError::Dialect(..)
            | ChangeError::Slot(_) => Exit::Failed,
        }
    }
}

impl From<&TalkError> for Exit {
    fn from(error: &TalkError) -> Self {
        match error {
            TalkError::NoBranch(_)
            | TalkError::IsAnswer(_)
            | TalkError::IdTaken(..)
            | TalkError::Dialect(_)
            | TalkError::Several(..)
            | TalkError::NotSigned(..)
            | TalkError::NoJudge(..)
            | TalkError::NotOffered { .. }
            | TalkError::NoShortForm { .. }
            | TalkError::Unseen(..) => Exit::Refused,
            TalkError::Answered { .. } => Exit::Held,
            TalkError::Message(_) => Exit::Usage,
            TalkError::NotWaiting(..)
            | TalkError::Outside
            | TalkError::NoQuestion(_)
            | TalkError::NoSuchQuestion(_)
            | TalkError::Unreadable(..)
            | TalkError::Gone(_) => Exit::Failed,
            TalkError::Change(error) => error.into(),
        }
    }
}

impl From<&FlowError> for Exit {
    fn from(error: &FlowError) -> Self {
        match error {
            FlowError::NoFlow(_)
            | FlowError::Several { .. }
            | FlowError::Refused(_)
            | FlowError::NoNode(_)
            | FlowError::NotRunning(_)
            | FlowError::OtherVersion { .. }
            | FlowError::CheckedOut { .. }
            | FlowError::NoTemplateName(_)
            | FlowError::NoTemplate(_)
            | FlowError::NotOwnTemplate(_) => Exit::Refused,
            FlowError::Raced(_) => Exit::Held,
            FlowError::Unreadable { .. } => Exit::Failed,
            FlowError::Talk(error) => error.into(),
        }
    }
}

impl From<&AppError> for Exit {
    fn from(error: &AppError) -> Self {
        match error {
            AppError::Runner(error) => error.into(),
            AppError::Change { error, .. } => error.into(),
            AppError::Talk { error, .. } => (&**error).into(),
            AppError::Trust(error) => error.into(),
            AppError::Flow(error)
            | AppError::Route(RouteError::Flow(error))
            | AppError::Turn(TurnError::Flow(error)) => error.into(),
            AppError::Turn(TurnError::Talk(error)) => error.into(),
            AppError::Turn(TurnError::Supervisor(_) | TurnError::NoTurn | TurnError::Redirected(_)) => {
                Exit::Failed
            }
            AppError::NoTurns(_) => Exit::Refused,
            AppError::Route(RouteError::NoTurn(_) | RouteError::Declaration(_)) => Exit::Failed,
            AppError::Project(error) => match error {
                ProjectError::Runner(error) => error.into(),
                ProjectError::Talk(error) => error.into(),
                ProjectError::Held { .. } => Exit::Later,
                ProjectError::Store(_)
                | ProjectError::Flow { .. }
                | ProjectError::Files { .. }
                | ProjectError::Folder(_)
                | ProjectError::Io { .. } => Exit::Failed,
            },
            AppError::InUse(InUse::Run | InUse::Another(_)) => Exit::Held,
            AppError::InUse(InUse::Checkout(_)) => Exit::Unfinished,
            AppError::Past(PastError::Running { .. }) => Exit::Held,
            AppError::Past(PastError::Submodules(_)) => Exit::Refused,
            AppError::NotTrusted { .. } | AppError::Unasked(_) | AppError::Misuse(Misuse::InsideTurn) => {
                Exit::Refused
            }
            AppError::NotPushed { why, .. } => match why {
                NotPushed::NoRemote => Exit::Failed,
                NotPushed::Behind => Exit::Held,
                NotPushed::Unknown(_) => Exit::Later,
                NotPushed::Failed(cause) => (&**cause).into(),
            },
            AppError::Misuse(
                Misuse::Duration(_)
                | Misuse::Since(_)
                | Misuse::Jobs
                | Misuse::Lease
                | Misuse::Role { .. }
                | Misuse::State { .. }
                | Misuse::Working { .. }
                | Misuse::StalledOutside
                | Misuse::Kind { .. }
                | Misuse::Id { .. }
                | Misuse::Flow(_)
                | Misuse::Commit(_)
                | Misuse::Trailer(_)
                | Misuse::Message(_)
                | Misuse::Branch(_)
                | Misuse::Ref(_)
                | Misuse::NoSource
                | Misuse::Detached { .. },
            ) => Exit::Usage,
            AppError::NotDispatched { cause, .. } => (&**cause).into(),
            AppError::Unseen { cause, .. } => (&**cause).into(),
            AppError::Open(OpenError::NotFound { .. } | OpenError::Refused { .. } | OpenError::Store(_))
            | AppError::Logs(
                LogsError::NoRun { .. }
                | LogsError::NoSuch { .. }
                | LogsError::NoLog { .. }
                | LogsError::NotOpened(_)
                | LogsError::Unreadable { .. },
            )
            | AppError::Past(PastError::NoRun { .. } | PastError::NoSuch { .. })
            | AppError::NoFolder(_)
            | AppError::BadValue { .. }
            | AppError::NoBranch { .. }
            | AppError::NoMatch { .. }
            | AppError::Background(_)
            | AppError::Promised(_) => Exit::Failed,
        }
    }
}
