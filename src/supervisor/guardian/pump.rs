//! One of the command's two output streams: pipe, log, count and last line.
//!
//! `read` takes one piece and logs it; the caller may scan or show it. A log that fails is reported once and
//! never stops the stream. Implements K16.

use super::log::CappedLog;
use super::scan::LastLine;
use nix::errno::Errno;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};

/// What a read found.
pub(super) enum Piece<'a> {
    /// These bytes, and the error after which the log takes no more.
    Bytes(&'a [u8], Option<io::Error>),
    /// Nothing can be read at the moment.
    Nothing,
    /// Every write end is closed.
    End,
}

/// One stream.
pub(super) struct Stream {
    pipe: Option<PipeReader>,
    log: CappedLog,
    pub taken: u64,
    pub last: LastLine,
}

impl Stream {
    /// The most bytes that are read at a time: the capacity of a pipe.
    pub const PIECE: usize = 64 << 10;

    /// Makes a stream from this pipe, which must be non-blocking, to this log.
    pub fn new(pipe: PipeReader, log: CappedLog) -> Self {
        Self { pipe: Some(pipe), log, taken: 0, last: LastLine::default() }
    }

    /// Returns the pipe while a process may still write to it.
    pub fn open_pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads and logs the next piece.
    pub fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Piece<'a> {
        let Some(pipe) = &self.pipe else { return Piece::End };
        match nix::unistd::read(pipe, buffer) {
            Ok(n) if n > 0 => {
                let piece = &buffer[..n];
                self.taken += n as u64;
                self.last.feed(piece);
                Piece::Bytes(piece, self.log.write(piece).err())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Piece::Nothing,
            Ok(_) | Err(_) => {
                self.pipe = None;
                Piece::End
            }
        }
    }

    /// Completes the log.
    pub fn finish(&mut self) -> io::Result<()> {
        self.log.finish()
    }
}
