//! The statuses of runs and of turns, by the names that stand on disk.

use serde::{Serialize, Serializer};

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// No run was started.
    Idle,
    /// Turns are assigned and accepted.
    Active,
    /// A person's approval is pending.
    Paused,
    /// A person has to act; `blocked_reason` says why.
    Blocked,
    /// Over, for good.
    Completed,
    /// Over, as an older tool left it; read, never written.
    Failed,
}

impl RunStatus {
    /// All statuses of runs.
    pub const ALL: [Self; 6] =
        [Self::Idle, Self::Active, Self::Paused, Self::Blocked, Self::Completed, Self::Failed];

    /// Returns the status's name on disk.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// True for a run that takes no turn any more, so that another may begin after it.
    pub(crate) fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Idle | Self::Active | Self::Paused | Self::Blocked => false,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl Serialize for RunStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnStatus {
    /// Assigned, as some tools write it.
    Assigned,
    /// Its bundle was given to a worker.
    Dispatched,
    /// Its worker is starting.
    Starting,
    /// Assigned or at work.
    Running,
    /// Rejected, to be done again.
    Retrying,
    /// Rejected once too often.
    Failed,
    /// Another tool refused its result.
    FailedAcceptance,
    /// Its result changes files that other turns changed since its assignment.
    Conflicted,
    /// Another tool's watchdog saw that its worker did not start.
    FailedStart,
    /// Another tool's watchdog saw that its worker stood still.
    Stalled,
}

impl TurnStatus {
    const ALL: [Self; 10] = [
        Self::Assigned,
        Self::Dispatched,
        Self::Starting,
        Self::Running,
        Self::Retrying,
        Self::Failed,
        Self::FailedAcceptance,
        Self::Conflicted,
        Self::FailedStart,
        Self::Stalled,
    ];

    /// Returns the status's name on disk.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Dispatched => "dispatched",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Failed => "failed",
            Self::FailedAcceptance => "failed_acceptance",
            Self::Conflicted => "conflicted",
            Self::FailedStart => "failed_start",
            Self::Stalled => "stalled",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// True for a turn that a worker may be given.
    pub fn is_dispatchable(self) -> bool {
        match self {
            Self::Assigned | Self::Dispatched | Self::Starting | Self::Running | Self::Retrying => true,
            Self::Failed | Self::FailedAcceptance | Self::Conflicted | Self::FailedStart | Self::Stalled => {
                false
            }
        }
    }

    /// True for a turn that got stuck and goes on when the run is reactivated.
    pub(crate) fn is_stuck(self) -> bool {
        match self {
            Self::Failed | Self::FailedAcceptance | Self::FailedStart | Self::Stalled => true,
            Self::Assigned
            | Self::Dispatched
            | Self::Starting
            | Self::Running
            | Self::Retrying
            | Self::Conflicted => false,
        }
    }
}
