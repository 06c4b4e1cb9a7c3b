//! What guardian and caller say to each other: events one way, orders the other.
//!
//! An event is a frame: type byte, payload length (u32, little endian), payload. An order is one line of
//! text. Both ends are the same binary, so there is no version: an unknown type is garbled, never skipped.
//! `Event::encode` and `Event::decode` are inverse. Implements K17.

use super::SupervisorError;
use super::ending::{Ending, Exit};
use std::time::Duration;

/// What the guardian reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The command runs.
    Started {
        /// Its process id, which is also its session's and process group's.
        pid: u32,
    },
    /// A stdout line that begins with the watched prefix, without its newline.
    Line(Vec<u8>),
    /// A stdout line that begins with the watched prefix and is too long to be kept: its length in bytes.
    LongLine(u64),
    /// Output grew; sent a few times a second at most.
    Output {
        /// Bytes that stdout has printed so far.
        stdout: u64,
        /// Bytes that stderr has printed so far.
        stderr: u64,
        /// The last line of either, at most 200 bytes of it.
        last: Vec<u8>,
    },
    /// Output as it came; with `tee` only.
    Chunk {
        /// It is stderr's.
        stderr: bool,
        /// As printed.
        bytes: Vec<u8>,
    },
    /// A log could not be written, and goes no further; the run goes on.
    LogFailed {
        /// It is stderr's.
        stderr: bool,
        /// The system's error number; 0 where it had none.
        errno: i32,
    },
    /// The command's own process ended; what it started may live on.
    Exited {
        /// How.
        ending: Ending,
        /// Somebody still holds its stdout or stderr.
        leaked: bool,
    },
    /// Nothing of the run lives any more and the logs are complete; the guardian leaves.
    Done {
        /// Processes that could not be killed (another user's, or stuck in the kernel). If there are any,
        /// the guardian stays, keeps the hold, and goes on trying.
        survivors: u32,
    },
    /// The guardian lives; said when it is asked, and not told to the caller's caller.
    Beat,
}

/// Bytes of a frame before its payload.
pub(crate) const HEADER: usize = 5;

const STARTED: u8 = 1;
const LINE: u8 = 2;
const LONG_LINE: u8 = 3;
const OUTPUT: u8 = 4;
const CHUNK: u8 = 5;
const LOG_FAILED: u8 = 6;
const EXITED: u8 = 7;
const DONE: u8 = 8;
const BEAT: u8 = 9;

impl Event {
    /// The frame as two pieces, so that a long line is moved and not copied.
    pub(crate) fn encode(self) -> (Vec<u8>, Vec<u8>) {
        let mut head = Vec::with_capacity(HEADER);
        let (kind, payload) = match self {
            Self::Started { pid } => (STARTED, pid.to_le_bytes().to_vec()),
            Self::Line(line) => (LINE, line),
            Self::LongLine(length) => (LONG_LINE, length.to_le_bytes().to_vec()),
            Self::Output { stdout, stderr, last } => {
                (OUTPUT, [&stdout.to_le_bytes()[..], &stderr.to_le_bytes(), &last].concat())
            }
            Self::Chunk { stderr, bytes } => (CHUNK, [&[u8::from(stderr)][..], &bytes].concat()),
            Self::LogFailed { stderr, errno } => {
                (LOG_FAILED, [&[u8::from(stderr)][..], &errno.to_le_bytes()].concat())
            }
            Self::Exited { ending, leaked } => {
                let mut payload = vec![u8::from(leaked)];
                put_ending(&mut payload, &ending);
                (EXITED, payload)
            }
            Self::Done { survivors } => (DONE, survivors.to_le_bytes().to_vec()),
            Self::Beat => (BEAT, Vec::new()),
        };
        head.push(kind);
        head.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        (head, payload)
    }

    /// The event of this type and payload.
    pub(crate) fn decode(kind: u8, payload: Vec<u8>) -> Result<Self, SupervisorError> {
        let mut rest = Fields(&payload);
        let event = match kind {
            STARTED => rest.u32().map(|pid| Self::Started { pid }),
            LINE => return Ok(Self::Line(payload)),
            LONG_LINE => rest.u64().map(Self::LongLine),
            OUTPUT => rest.output(),
            CHUNK => rest.flag().map(|stderr| Self::Chunk { stderr, bytes: rest.0.to_vec() }),
            LOG_FAILED => rest.log_failed(),
            EXITED => rest.exited(),
            DONE => rest.u32().map(|survivors| Self::Done { survivors }),
            BEAT => Some(Self::Beat),
            _ => None,
        };
        event.ok_or(SupervisorError::Garbled { kind })
    }
}

fn put_exit(out: &mut Vec<u8>, exit: Exit) {
    match exit {
        Exit::Code(code) => {
            out.push(0);
            out.extend_from_slice(&code.to_le_bytes());
        }
        Exit::Signal { signal, core_dumped } => {
            out.push(1 + u8::from(core_dumped));
            out.extend_from_slice(&signal.to_le_bytes());
        }
    }
}

fn put_ending(out: &mut Vec<u8>, ending: &Ending) {
    match ending {
        Ending::Exited(code) => {
            out.push(0);
            put_exit(out, Exit::Code(*code));
        }
        Ending::Signaled { signal, core_dumped } => {
            out.push(0);
            put_exit(out, Exit::Signal { signal: *signal, core_dumped: *core_dumped });
        }
        Ending::TimedOut { after, exit } => {
            out.push(1);
            out.extend_from_slice(&(after.as_millis() as u64).to_le_bytes());
            put_exit(out, *exit);
        }
        Ending::Stopped { exit } => {
            out.push(2);
            put_exit(out, *exit);
        }
        Ending::NotStarted { errno, what } => {
            out.push(3);
            out.extend_from_slice(&errno.to_le_bytes());
            out.extend_from_slice(what.as_bytes());
        }
        Ending::GuardianLost => out.push(4),
        Ending::GuardianStopped => out.push(5),
    }
}

/// A payload's bytes, taken off the front field by field; `None` where they run out.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.u8().map(|byte| byte != 0)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn output(&mut self) -> Option<Event> {
        Some(Event::Output { stdout: self.u64()?, stderr: self.u64()?, last: self.0.to_vec() })
    }

    fn log_failed(&mut self) -> Option<Event> {
        Some(Event::LogFailed { stderr: self.flag()?, errno: self.i32()? })
    }

    fn exited(&mut self) -> Option<Event> {
        let leaked = self.flag()?;
        Some(Event::Exited { ending: self.ending()?, leaked })
    }

    fn exit(&mut self) -> Option<Exit> {
        let (kind, value) = (self.u8()?, self.i32()?);
        match kind {
            0 => Some(Exit::Code(value)),
            1 | 2 => Some(Exit::Signal { signal: value, core_dumped: kind == 2 }),
            _ => None,
        }
    }

    fn ending(&mut self) -> Option<Ending> {
        match self.u8()? {
            0 => self.exit().map(Ending::from),
            1 => Some(Ending::TimedOut { after: Duration::from_millis(self.u64()?), exit: self.exit()? }),
            2 => Some(Ending::Stopped { exit: self.exit()? }),
            3 => {
                let errno = self.i32()?;
                Some(Ending::NotStarted { errno, what: String::from_utf8_lossy(self.0).into_owned() })
            }
            4 => Some(Ending::GuardianLost),
            5 => Some(Ending::GuardianStopped),
            _ => None,
        }
    }
}

/// What the caller orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// End the command: SIGTERM to every process of the run, SIGKILL after the grace.
    Stop(Duration),
    /// Do that by yourself after the first time, with the second as grace, unless told another time before.
    StopAfter(Duration, Duration),
    /// The run is over: let nothing of it live.
    End,
    /// The caller leaves, and the run's processes may go on.
    Linger,
    /// Say that you live.
    Beat,
}

impl Order {
    /// The order as a line, with its newline.
    pub(crate) fn encode(self) -> String {
        match self {
            Self::Stop(grace) => format!("stop {}\n", grace.as_millis()),
            Self::StopAfter(after, grace) => format!("after {} {}\n", after.as_millis(), grace.as_millis()),
            Self::End => "end\n".into(),
            Self::Linger => "linger\n".into(),
            Self::Beat => "beat\n".into(),
        }
    }

    /// The order that a line (without its newline) gives.
    pub(crate) fn decode(line: &[u8]) -> Option<Self> {
        match line {
            b"end" => Some(Self::End),
            b"linger" => Some(Self::Linger),
            b"beat" => Some(Self::Beat),
            other => {
                let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
                let (word, rest) = std::str::from_utf8(other).ok()?.split_once(' ')?;
                match (word, rest.split_once(' ')) {
                    ("stop", None) => millis(rest).map(Self::Stop),
                    ("after", Some((after, grace))) => Some(Self::StopAfter(millis(after)?, millis(grace)?)),
                    (_, None | Some(_)) => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn events_arrive_as_they_were_sent() {
        for event in events() {
            let (head, payload) = event.clone().encode();
            assert_eq!(head[1..], (payload.len() as u32).to_le_bytes());
            assert_eq!(Event::decode(head[0], payload).unwrap(), event);
        }
    }

    #[test]
    fn cut_and_unknown_frames_are_garbled() {
        for event in events() {
            let (head, _) = event.clone().encode();
            let empty = Event::decode(head[0], Vec::new());
            assert!(empty.is_err() || matches!(event, Event::Line(_) | Event::Beat), "{event:?}");
        }
        assert!(Event::decode(99, vec![0; 64]).is_err());
    }

    #[test]
    fn orders_arrive_as_they_were_given() {
        let (short, long) = (Duration::from_millis(250), Duration::from_secs(86_400));
        let said =
            [Order::Stop(short), Order::StopAfter(long, short), Order::End, Order::Linger, Order::Beat];
        for order in said {
            let line = order.encode();
            assert_eq!(Order::decode(line.trim_end().as_bytes()), Some(order));
        }
        assert_eq!(Order::decode(b"stop soon"), None);
        assert_eq!(Order::decode(b"after 5"), None);
        assert_eq!(Order::decode(b""), None);
    }
}
