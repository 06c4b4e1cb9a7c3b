//! What a guardian sends, from bytes to whole events. Implements K17.

use super::SupervisorError;
use super::wire::{Event, HEADER};
use nix::errno::Errno;
use std::io::{self, PipeReader};

/// Bytes from the guardian, taken off event by event.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    const PIECE: usize = 64 << 10;

    /// Reads once; false at the end.
    pub fn fill(&mut self, pipe: &PipeReader) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let mut piece = [0; Self::PIECE];
        match nix::unistd::read(pipe, &mut piece) {
            Ok(n) => {
                self.bytes.extend_from_slice(&piece[..n]);
                Ok(n > 0)
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The next whole event.
    pub fn take(&mut self) -> Result<Option<Event>, SupervisorError> {
        let rest = &self.bytes[self.start..];
        let Some((&[kind, ref length @ ..], payload)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(payload) = payload.get(..length) else { return Ok(None) };
        let event = Event::decode(kind, payload.to_vec())?;
        self.start += HEADER + length;
        if self.start == self.bytes.len() {
            // A long line's room is not kept.
            *self = Self::default();
        }
        Ok(Some(event))
    }
}
