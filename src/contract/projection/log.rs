//! The log of a run's events: which events it has, and what is appended next.
//!
//! `events.jsonl` is append-only, one event per line. A projection hands in its events, and those that the
//! log has are skipped. `ts` never goes back: an event that would be earlier gets the `ts` of the event
//! before, and `at` holds its true time. A torn last line is cut before anything is appended. Heartbeats are
//! not logged.

use crate::contract::event::{Body, Event};
use crate::contract::id::EventId;
use crate::contract::time::Time;
use serde::Deserialize;
use std::collections::HashSet;

/// What is known of a log: the ids of its events, the time of the last, and its length in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    known: HashSet<EventId>,
    last: Option<Time>,
    bytes: u64,
}

/// The part of a line that says which event it is, and when.
#[derive(Deserialize)]
struct Head {
    id: EventId,
    ts: Time,
}

impl Log {
    /// Returns a log of `bytes` bytes whose last event was at `last`. The ids of its events are not known, so
    /// the caller must know that none of them is projected again. [`Log::read`] can take in what follows.
    pub fn resumed(bytes: u64, last: Time) -> Self {
        Self { known: HashSet::new(), last: Some(last), bytes }
    }

    /// Returns the time of the last event.
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// Takes in a piece of a log, and returns how many of its bytes count. The piece ends with a line feed or
    /// with the end of the log: what follows the last line feed is torn, and is to be cut. A line that is no
    /// event counts, and is skipped.
    pub fn read(&mut self, bytes: &[u8]) -> u64 {
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            if let Ok(head) = serde_json::from_slice::<Head>(line) {
                self.known.insert(head.id);
                self.last = self.last.max(Some(head.ts));
            }
        }
        self.bytes += whole as u64;
        whole as u64
    }

    /// Returns those of the events that the log does not have yet, with times that never go back, and adds
    /// them to it.
    pub fn append(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut new = Vec::with_capacity(events.len());
        for mut event in events {
            if matches!(event.body, Body::NodeHeartbeat { .. }) || !self.known.insert(event.id) {
                continue;
            }
            let last = self.last.unwrap_or(event.ts);
            if event.ts < last {
                event.at = Some(event.ts);
                event.ts = last;
            }
            self.last = Some(event.ts);
            new.push(event);
        }
        new
    }

    /// Returns the lines of these events, and counts their bytes as part of the log.
    pub fn lines(&mut self, events: &[Event]) -> Vec<u8> {
        let mut lines = Vec::new();
        for event in events {
            if serde_json::to_writer(&mut lines, event).is_ok() {
                lines.push(b'\n');
            }
        }
        self.bytes += lines.len() as u64;
        lines
    }

    /// Returns the length of the log in bytes: the position that a snapshot names.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// True if the log has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
