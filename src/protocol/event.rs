//! State events: what the trailers of a commit say about a branch.
//!
//! An [`Event`] exists for every message whose trailer block carries a state in either dialect, whatever its
//! value: an unusable state is a fact to report, not an absence. Leases are read leniently, and what was
//! unreadable is reported; this module decides nothing. Implements K3, K5, K10 (reading), K29 (reading).

use super::dialect::Dialect;
pub use super::dialect::{
    BRANCH, HOP, Key, LEASE_SECONDS, ORIGIN_STATE, RECOVERY_ID, RUN_ID, RUNNER_ID, SOURCE, STALLED_RUN,
    STATE, TRIGGER,
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
    /// The state, or the bytes that are not a usable one and what is wrong with them.
    pub state: Result<StateName, (Vec<u8>, BadName)>,
    /// The dialect, which says which trailers count.
    pub dialect: Dialect,
    /// The whole message.
    pub message: Message,
    /// How many dispatches are known to have led to this commit, even where the message says fewer (K9).
    pub hop_floor: u32,
    /// The event is the head of a flow's node, and the node's turn, or what follows from it, went wrong (N3).
    pub is_node: bool,
}

impl Event {
    /// Returns the event in this message; `None` where the message has no state trailer.
    pub fn of(message: Message) -> Option<Self> {
        let dialect = Dialect::of(&message)?;
        let raw = message.last(STATE.of(dialect))?.to_vec();
        let state = StateName::new(&raw).map_err(|why| (raw, why));
        Some(Self { state, dialect, message, hop_floor: 0, is_node: false })
    }

    /// Returns the event in a raw message. Most heads have none, which is found out without parsing them.
    pub fn in_message(text: &[u8]) -> Option<Self> {
        // The keys of both dialects end in `-state`, and a trailer's key stands in the text just as it is
        // read.
        let may_be = text.split(|b| *b == b'-').skip(1).any(|rest| rest.starts_with(b"state"));
        if may_be { Self::of(Message::parse(text)) } else { None }
    }

    /// True for a lease.
    pub fn is_working(&self) -> bool {
        self.state.as_ref().is_ok_and(StateName::is_working)
    }

    /// Returns the state's name where it is usable.
    pub fn state_name(&self) -> Option<&StateName> {
        self.state.as_ref().ok()
    }

    /// Returns a managed trailer's last value; `None` where it is missing.
    pub fn last(&self, key: Key) -> Option<&[u8]> {
        self.message.last(key.of(self.dialect))
    }

    /// Returns a managed trailer's value as text; `None` where it is missing, empty or not UTF-8.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.last(key).and_then(|v| std::str::from_utf8(v).ok()).filter(|v| !v.is_empty())
    }

    /// Returns the id of the run that wrote this commit.
    pub fn run_id(&self) -> Option<&str> {
        self.text(RUN_ID)
    }

    /// Returns how many dispatches led to this commit: 0 without a trailer, and the highest count where it is
    /// unreadable, so that a forged count stops a chain instead of freeing it (K9).
    pub fn hop(&self) -> u32 {
        let said = self.last(HOP);
        let said =
            said.map(|raw| std::str::from_utf8(raw).ok().and_then(|s| s.parse().ok()).unwrap_or(u32::MAX));
        said.unwrap_or(0).max(self.hop_floor)
    }

    /// Returns the lease's length in seconds; `None` where it is missing, unreadable or absurd.
    pub fn lease_seconds(&self) -> Option<u64> {
        let raw = self.text(LEASE_SECONDS)?;
        if !raw.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        raw.parse().ok().filter(|s| (LEASE_MIN..=LEASE_MAX).contains(s))
    }

    /// Returns the commit that the run answers.
    pub fn trigger(&self) -> Option<ObjectId> {
        self.text(TRIGGER)?.parse().ok()
    }

    /// Returns the state that the run answers.
    pub fn origin_state(&self) -> Option<StateName> {
        StateName::new(self.last(ORIGIN_STATE)?).ok()
    }

    /// Returns this lease, with the trailers that it lacks taken from an earlier lease of the same run: a
    /// command that writes its own leases need not repeat everything (K29).
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(trailers: &[(&str, &str)]) -> Event {
        let trailers = trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect();
        Event::of(Message::new("s", "", trailers)).unwrap()
    }

    /// K4, K5.
    #[test]
    fn a_state_is_named_where_it_is_usable_and_kept_where_it_is_not() {
        let usable = event(&[("dwp-state", "../x"), ("dwp-state", "build")]);
        assert_eq!(usable.state_name().map(StateName::as_str), Some("build"));
        let unusable = event(&[("dwp-state", "build"), ("dwp-state", "../x")]);
        assert_eq!(unusable.state_name(), None);
        assert_eq!(unusable.state, Err((b"../x".to_vec(), BadName::Segment)));
        assert!(!unusable.is_working());
    }

    /// K7.
    #[test]
    fn a_lease_is_believed_from_a_second_to_thirty_days() {
        for (said, seconds) in [
            ("1", Some(1)),
            ("300", Some(300)),
            ("2592000", Some(2_592_000)),
            ("2592001", None),
            ("0", None),
            ("+5", None),
            ("5s", None),
            ("", None),
        ] {
            let lease = event(&[("dwp-state", "working"), ("dwp-lease-seconds", said)]);
            assert_eq!(lease.lease_seconds(), seconds, "{said}");
        }
        assert_eq!(event(&[("dwp-state", "working")]).lease_seconds(), None);
    }

    /// K9: the highest count where it can't be read, and never less than what is known from elsewhere.
    #[test]
    fn a_hop_is_what_is_said_or_known_whichever_is_more() {
        for (trailers, floor, hop) in [
            (&[("dwp-state", "a")][..], 0, 0),
            (&[("dwp-state", "a")], 3, 3),
            (&[("dwp-state", "a"), ("dwp-hop", "2")], 3, 3),
            (&[("dwp-state", "a"), ("dwp-hop", "5")], 3, 5),
            (&[("dwp-state", "a"), ("dwp-hop", "5"), ("dwp-hop", "x")], 3, u32::MAX),
        ] {
            assert_eq!(Event { hop_floor: floor, ..event(trailers) }.hop(), hop, "{trailers:?} {floor}");
        }
    }

    /// K29: a heartbeat need not repeat what its lease said; what the heartbeat itself says counts.
    #[test]
    fn a_heartbeat_is_completed_from_its_lease() {
        let commit = "1111111111111111111111111111111111111111";
        let lease = event(&[
            ("aynig-state", "working"),
            ("aynig-run-id", "r"),
            ("aynig-origin-state", "build"),
            ("aynig-runner-id", "host-1"),
            ("aynig-lease-seconds", "300"),
            ("aynig-trigger", commit),
            ("aynig-hop", "3"),
            ("aynig-ticket", "7"),
        ]);
        let beat = [("aynig-state", "working"), ("aynig-run-id", "r"), ("aynig-lease-seconds", "60")];
        let whole = event(&beat).completed_from(&lease);
        assert!(lease.is_complete() && whole.is_complete() && !event(&beat).is_complete());
        assert_eq!((whole.origin_state(), whole.trigger()), (lease.origin_state(), commit.parse().ok()));
        assert_eq!(
            (whole.lease_seconds(), whole.hop(), whole.message.last("aynig-ticket")),
            (Some(60), 3, None)
        );
        for left_out in ["aynig-origin-state", "aynig-trigger", "aynig-hop"] {
            let mut part = lease.clone();
            part.message.trailers.retain(|t| t.key != left_out);
            assert!(!part.is_complete(), "{left_out}");
        }
    }
}
