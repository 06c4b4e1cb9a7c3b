//! The log of a run's events: which are in it, and what the next line is.
//!
//! `events.jsonl` is append-only, one event a line. A projection hands its events in; those that are there are passed
//! by. `ts` never goes back: where it would, it is the last one's, and `at` holds the true time. A torn last line is cut
//! before anything is appended. Heartbeats are not kept.

use crate::contract::event::{Body, Event};
use crate::contract::id::EventId;
use crate::contract::time::Time;
use serde::Deserialize;
use std::collections::HashSet;

/// What is known of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    known: HashSet<EventId>,
    last: Option<Time>,
    bytes: u64,
}

/// What of a line has to be read to know which event it is.
#[derive(Deserialize)]
struct Head {
    id: EventId,
    ts: Time,
}

impl Log {
    /// A log that is so long, of which it is known when its last event was and that none of its events is projected again:
    /// what follows is read as a log is.
    pub fn resumed(bytes: u64, last: Time) -> Self {
        Self { known: HashSet::new(), last: Some(last), bytes }
    }

    /// The time of its last event.
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// Takes in a piece of a log that ends with a line feed, or with its end, and gives how many bytes of it count: what
    /// follows the last line feed is torn, and is cut. A line that is no event counts, and is passed by.
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

    /// The events that are not in it yet, as they are appended: their times never go back.
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

    /// The lines of these events. What they have is counted as the log's.
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

    /// How long it is: the position that a snapshot names.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// True where nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
