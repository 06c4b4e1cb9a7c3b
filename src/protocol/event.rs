//! State events: what the trailers of a commit say about a branch.
//!
//! An [`Event`] exists for every message whose trailer block carries `dwp-state`, whatever its value:
//! an unusable state is a fact to report, not an absence. Reads leases leniently and says what was
//! unreadable; nothing here decides. Implements K3, K5, K10 (reading).

use super::id::ObjectId;
use super::message::Message;
use super::name::{BadName, StateName};

/// The trailer that makes a commit a state event.
pub const STATE: &str = "dwp-state";
/// Where a run came from in remote mode: `git:<remote>`.
pub const SOURCE: &str = "dwp-source";
/// The state that a run answers.
pub const ORIGIN_STATE: &str = "dwp-origin-state";
/// One execution.
pub const RUN_ID: &str = "dwp-run-id";
/// Who executes.
pub const RUNNER_ID: &str = "dwp-runner-id";
/// How long a lease holds from its committer date.
pub const LEASE_SECONDS: &str = "dwp-lease-seconds";
/// The run that a `stalled` commit ends.
pub const STALLED_RUN: &str = "dwp-stalled-run";
/// The commit that a run answers.
pub const TRIGGER: &str = "dwp-trigger";
/// How many dispatches led here.
pub const HOP: &str = "dwp-hop";
/// Makes a recovery unlike every other.
pub const RECOVERY_ID: &str = "dwp-recovery-id";
/// The prefix of every trailer that travels with a workflow.
pub const PREFIX: &str = "dwp-";

/// Shortest lease, in seconds.
pub const LEASE_MIN: u64 = 1;
/// Longest lease that is believed, in seconds: thirty days.
pub const LEASE_MAX: u64 = 30 * 24 * 3600;

/// A commit message that names a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The state, or the bytes that are none and why.
    pub state: Result<StateName, (Vec<u8>, BadName)>,
    /// The whole message.
    pub message: Message,
}

impl Event {
    /// The event in this message; `None` where no `dwp-state` trailer is.
    pub fn of(message: Message) -> Option<Self> {
        let raw = message.last(STATE)?.to_vec();
        let state = StateName::new(&raw).map_err(|why| (raw, why));
        Some(Self { state, message })
    }

    /// True for a lease.
    pub fn is_working(&self) -> bool {
        self.state.as_ref().is_ok_and(StateName::is_working)
    }

    /// The state's name where it is usable.
    pub fn state_name(&self) -> Option<&StateName> {
        self.state.as_ref().ok()
    }

    /// The trailer's last value as text; `None` where it is missing, empty or not UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.message.last(key).and_then(|v| std::str::from_utf8(v).ok()).filter(|v| !v.is_empty())
    }

    /// The run that wrote this commit.
    pub fn run_id(&self) -> Option<&str> {
        self.text(RUN_ID)
    }

    /// How many dispatches led here: 0 without a trailer, the most there is where it is unreadable, so
    /// that a forged count stops a chain rather than frees it (K9).
    pub fn hop(&self) -> u32 {
        self.message
            .last(HOP)
            .map_or(0, |raw| std::str::from_utf8(raw).ok().and_then(|s| s.parse().ok()).unwrap_or(u32::MAX))
    }

    /// The lease's length in seconds; `None` where it is missing, unreadable or absurd.
    pub fn lease_seconds(&self) -> Option<u64> {
        let raw = self.text(LEASE_SECONDS)?;
        if !raw.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        raw.parse().ok().filter(|s| (LEASE_MIN..=LEASE_MAX).contains(s))
    }

    /// The commit that the run answers.
    pub fn trigger(&self) -> Option<ObjectId> {
        self.text(TRIGGER)?.parse().ok()
    }

    /// The state that the run answers.
    pub fn origin_state(&self) -> Option<StateName> {
        StateName::new(self.message.last(ORIGIN_STATE)?).ok()
    }
}
