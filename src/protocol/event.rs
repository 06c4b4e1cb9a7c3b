//! State events: what the trailers of a commit say about a branch.
//!
//! An [`Event`] exists for every message whose trailer block carries a state in either dialect, whatever its
//! value: an unusable state is a fact to report, not an absence. Reads leases leniently and says what was
//! unreadable; nothing here decides. Implements K3, K5, K10 (reading), K29 (reading).

use super::dialect::Dialect;
pub use super::dialect::{
    HOP, Key, LEASE_SECONDS, ORIGIN_STATE, RECOVERY_ID, RUN_ID, RUNNER_ID, SOURCE, STALLED_RUN, STATE,
    TRIGGER,
};
use super::id::ObjectId;
use super::message::{Message, Trailer};
use super::name::{BadName, StateName};

/// Shortest lease, in seconds.
pub const LEASE_MIN: u64 = 1;
/// Longest lease that is believed, in seconds: thirty days.
pub const LEASE_MAX: u64 = 30 * 24 * 3600;

/// A commit message that names a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The state, or the bytes that are none and why.
    pub state: Result<StateName, (Vec<u8>, BadName)>,
    /// Which trailers count in it.
    pub dialect: Dialect,
    /// The whole message.
    pub message: Message,
    /// How many dispatches are known to have led here where the message does not say it (K9).
    pub hop_floor: u32,
}

impl Event {
    /// The event in this message; `None` where no state trailer is.
    pub fn of(message: Message) -> Option<Self> {
        let dialect = Dialect::of(&message)?;
        let raw = message.last(STATE.of(dialect))?.to_vec();
        let state = StateName::new(&raw).map_err(|why| (raw, why));
        Some(Self { state, dialect, message, hop_floor: 0 })
    }

    /// True for a lease.
    pub fn is_working(&self) -> bool {
        self.state.as_ref().is_ok_and(StateName::is_working)
    }

    /// The state's name where it is usable.
    pub fn state_name(&self) -> Option<&StateName> {
        self.state.as_ref().ok()
    }

    /// A managed trailer's last value; `None` where it is missing.
    pub fn last(&self, key: Key) -> Option<&[u8]> {
        self.message.last(key.of(self.dialect))
    }

    /// The same as text; `None` where it is missing, empty or not UTF-8.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.last(key).and_then(|v| std::str::from_utf8(v).ok()).filter(|v| !v.is_empty())
    }

    /// The run that wrote this commit.
    pub fn run_id(&self) -> Option<&str> {
        self.text(RUN_ID)
    }

    /// How many dispatches led here: 0 without a trailer, the most there is where it is unreadable, so
    /// that a forged count stops a chain rather than frees it (K9).
    pub fn hop(&self) -> u32 {
        let said = self.last(HOP);
        let said =
            said.map(|raw| std::str::from_utf8(raw).ok().and_then(|s| s.parse().ok()).unwrap_or(u32::MAX));
        said.unwrap_or(0).max(self.hop_floor)
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
        StateName::new(self.last(ORIGIN_STATE)?).ok()
    }

    /// This lease with what it does not say of its run taken from an earlier one of the same run: a command
    /// that writes its own need not repeat everything (K29).
    pub fn completed_from(mut self, earlier: &Event) -> Event {
        let missing = |key: &&Key| self.last(**key).is_none();
        let keys = [ORIGIN_STATE, RUNNER_ID, LEASE_SECONDS, TRIGGER, HOP, SOURCE];
        let missing: Vec<Key> = keys.iter().filter(missing).copied().collect();
        for key in missing {
            let value = earlier.text(key);
            self.message.trailers.extend(value.map(|value| Trailer::new(key.of(self.dialect), value)));
        }
        self
    }

    /// True for a lease that says all that a recovery copies from it.
    pub fn is_complete(&self) -> bool {
        [ORIGIN_STATE, TRIGGER, HOP].into_iter().all(|key| self.text(key).is_some())
    }
}
