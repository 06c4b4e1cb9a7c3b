//! The protocol between guardian and caller: events one way, orders the other.
//!
//! An event is a frame: two lengths (u32, little endian), the event as JSON, and the raw bytes that it
//! carries. An order is one line of JSON. Both ends are the same binary, so there is no version. Bytes that
//! are no event, or longer than any event, are an error, and never skipped. `Event::encode` and [`Frames`]
//! are inverse. Implements K17.

use super::SupervisorError;
use super::ending::Ending;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the guardian reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The command runs.
    Started {
        /// The command's process id, which is also the id of its session and process group.
        pid: u32,
    },
    /// A stdout line that begins with the watched prefix, without its newline.
    Line(Vec<u8>),
    /// The length in bytes of a stdout line that begins with the watched prefix and is too long to be kept.
    LongLine(u64),
    /// Output grew; sent a few times a second at most.
    Output {
        /// Bytes that stdout has printed so far.
        stdout: u64,
        /// Bytes that stderr has printed so far.
        stderr: u64,
        /// The last line of the stream that printed most recently, at most 200 bytes of it.
        last: Vec<u8>,
    },
    /// Output as it came; with `tee` only.
    Chunk {
        /// True for stderr, false for stdout.
        stderr: bool,
        /// The bytes as they were printed.
        bytes: Vec<u8>,
    },
    /// A log could not be written and is not continued; the run goes on.
    LogFailed {
        /// True for the log of stderr, false for that of stdout.
        stderr: bool,
        /// The system's error number; 0 where it had none.
        errno: i32,
    },
    /// The command's own process ended; what it started may live on.
    Exited {
        /// How the command ended.
        ending: Ending,
        /// Whether another process still holds the command's stdout or stderr.
        leaked: bool,
    },
    /// No process of the run lives any more and the logs are complete; the guardian exits.
    Done {
        /// The number of processes that could not be killed (another user's, or stuck in the kernel). If
        /// there are any, the guardian stays, keeps the hold, and goes on trying.
        survivors: u32,
    },
    /// The guardian's answer to `Order::Beat`. [`super::Supervised::next`] does not return it.
    Beat,
}

/// Bytes of a frame before its JSON.
const HEADER: usize = 8;
/// The longest JSON of an event. The longest such JSON contains the name of a command, whose length the
/// system limits.
const JSON_MAX: usize = 1 << 20;

impl Event {
    /// Returns the bytes that the event carries beside its JSON, where they would take far more room.
    fn bytes(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Line(bytes) | Self::Output { last: bytes, .. } | Self::Chunk { bytes, .. } => Some(bytes),
            Self::Started { .. }
            | Self::LongLine(_)
            | Self::LogFailed { .. }
            | Self::Exited { .. }
            | Self::Done { .. }
            | Self::Beat => None,
        }
    }

    /// Returns the frame as two pieces, so that a long line is moved and not copied.
    pub(super) fn encode(mut self) -> (Vec<u8>, Vec<u8>) {
        let bytes = self.bytes().map(std::mem::take).unwrap_or_default();
        let json = serde_json::to_vec(&self).unwrap_or_default();
        let lengths = [json.len(), bytes.len()].map(|length| (length as u32).to_le_bytes());
        ([lengths.concat(), json].concat(), bytes)
    }
}

/// Frames as they come out of a pipe, piece by piece.
#[derive(Debug)]
pub(super) struct Frames {
    pending: Vec<u8>,
    start: usize,
    bytes_max: usize,
}

impl Frames {
    /// Expects events that carry at most this many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { pending: Vec::new(), start: 0, bytes_max }
    }

    /// Adds bytes that were read from the pipe.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.pending.drain(..self.start);
        self.start = 0;
        self.pending.extend_from_slice(piece);
    }

    /// Returns the next event once all of its bytes were added; `None` until then.
    pub(super) fn next(&mut self) -> Result<Option<Event>, SupervisorError> {
        let Some((header, rest)) = self.pending[self.start..].split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let (json, bytes) = header.split_at(HEADER / 2);
        let [json, bytes] =
            [json, bytes].map(|field| field.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte)));
        if json > JSON_MAX || bytes > self.bytes_max {
            return Err(SupervisorError::Garbled);
        }
        let Some(frame) = rest.get(..json + bytes) else { return Ok(None) };
        let (head, carried) = frame.split_at(json);
        let mut event: Event = serde_json::from_slice(head).map_err(|_| SupervisorError::Garbled)?;
        match event.bytes() {
            Some(place) => carried.clone_into(place),
            None if carried.is_empty() => {}
            None => return Err(SupervisorError::Garbled),
        }
        self.start += HEADER + json + bytes;
        if self.start == self.pending.len() {
            // The buffer of a long line is not kept.
            *self = Self::new(self.bytes_max);
        }
        Ok(Some(event))
    }
}

/// What the caller orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// End the command: SIGTERM to every process of the run, SIGKILL after the grace.
    Stop(Duration),
    /// Stop the command as `Stop` does once the first time has passed, with the second as its grace. A later
    /// `StopAfter` replaces an earlier one.
    StopAfter(Duration, Duration),
    /// Interrupt the command's process group, as a terminal does: SIGINT, once.
    Interrupt,
    /// The run is over: kill whatever of it still lives.
    End,
    /// The caller leaves, and the run's processes may go on.
    Linger,
    /// Answer with [`Event::Beat`].
    Beat,
}

impl Order {
    /// The longest line of an order; a longer one is no order.
    pub(super) const LINE_MAX: usize = 256;

    /// Returns the order as a line, with its newline.
    pub(super) fn encode(self) -> Vec<u8> {
        let mut line = serde_json::to_vec(&self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Returns the order that a line (without its newline) holds; `None` if it is no order.
    pub(super) fn decode(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::ending::Exit;

    fn events() -> Vec<Event> {
        let signal = Exit::Signal { signal: 15, core_dumped: true };
        let endings = [
            Ending::Exited(-7),
            Ending::Signaled { signal: 9, core_dumped: false },
            Ending::TimedOut { after: Duration::from_millis(1234), exit: signal },
            Ending::Stopped { exit: Exit::Code(0) },
            Ending::NotStarted { errno: 13, what: "'é'".into() },
            Ending::GuardianLost,
            Ending::GuardianStopped,
        ];
        let mut all: Vec<_> =
            endings.into_iter().map(|ending| Event::Exited { ending, leaked: true }).collect();
        all.extend([
            Event::Started { pid: 70_000 },
            Event::Line(b"SET \xff".to_vec()),
            Event::LongLine(1 << 40),
            Event::Output { stdout: 1, stderr: 1 << 33, last: b"x".to_vec() },
            Event::Chunk { stderr: true, bytes: vec![0, 255] },
            Event::LogFailed { stderr: false, errno: 28 },
            Event::Done { survivors: 2 },
            Event::Beat,
        ]);
        all
    }

    fn frame(event: Event) -> Vec<u8> {
        let (head, bytes) = event.encode();
        [head, bytes].concat()
    }

    fn heard(pieces: &[&[u8]]) -> Result<Vec<Event>, SupervisorError> {
        let mut frames = Frames::new(1000);
        let mut heard = Vec::new();
        for piece in pieces {
            frames.push(piece);
            while let Some(event) = frames.next()? {
                heard.push(event);
            }
        }
        Ok(heard)
    }

    #[test]
    fn events_arrive_as_they_were_sent() {
        let all: Vec<u8> = events().into_iter().flat_map(frame).collect();
        for length in [1, 7, 64, all.len()] {
            let pieces: Vec<&[u8]> = all.chunks(length).collect();
            assert_eq!(heard(&pieces).unwrap(), events(), "in pieces of {length}");
        }
    }

    #[test]
    fn cut_and_unknown_frames_are_garbled() {
        let framed = |json: &[u8], bytes: &[u8]| {
            let lengths = [json.len(), bytes.len()].map(|n| (n as u32).to_le_bytes()).concat();
            [&lengths, json, bytes].concat()
        };
        let wrong: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (br#""Nope""#, b""),
            (br#"{"Started":{}}"#, b""),
            (br#"{"Started":{"pid":-1}}"#, b""),
            (br#""Beat" "Beat""#, b""),
            (br#""Beat""#, b"x"),
        ];
        for (json, bytes) in wrong {
            assert!(matches!(heard(&[&framed(json, bytes)]), Err(SupervisorError::Garbled)), "{json:?}");
        }
        for event in events() {
            let (head, _) = event.encode();
            let cut = framed(&head[HEADER..head.len() - 1], b"");
            assert!(matches!(heard(&[&cut]), Err(SupervisorError::Garbled)));
        }
    }

    #[test]
    fn no_frame_is_longer_than_any_event() {
        let lengths = |json: u32, bytes: u32| [json.to_le_bytes(), bytes.to_le_bytes()].concat();
        assert_eq!(heard(&[&lengths(JSON_MAX as u32, 1000)]).unwrap(), []);
        for header in [lengths(JSON_MAX as u32 + 1, 0), lengths(0, 1001), lengths(u32::MAX, u32::MAX)] {
            assert!(matches!(heard(&[&header]), Err(SupervisorError::Garbled)), "{header:?}");
        }
    }

    #[test]
    fn orders_arrive_as_they_were_given() {
        let (short, long) = (Duration::from_millis(250), Duration::MAX);
        let said = [
            Order::Stop(short),
            Order::StopAfter(long, long),
            Order::Interrupt,
            Order::End,
            Order::Linger,
            Order::Beat,
        ];
        for order in said {
            let line = order.encode();
            assert!(line.len() <= Order::LINE_MAX);
            assert_eq!(Order::decode(line.trim_ascii_end()), Some(order));
        }
        for wrong in [&br#"{"Stop":"soon"}"#[..], br#"{"StopAfter":[{"secs":5,"nanos":0}]}"#, b"", b"end"] {
            assert_eq!(Order::decode(wrong), None);
        }
    }
}
