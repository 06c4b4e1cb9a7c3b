//! Events on their way to the caller, which may be slow, busy or gone.
//!
//! Sending never blocks: what the pipe does not take waits in a queue. While the queue is `full`, the
//! guardian reads no output (the command then waits, as behind any slow reader), so memory stays bounded;
//! deadlines and signals are still served. Once the caller is gone, events are dropped. Implements K17.

use super::super::wire::Event;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// The queue before the event pipe.
pub(super) struct Outbox<'a> {
    pipe: BorrowedFd<'a>,
    queue: VecDeque<Vec<u8>>,
    /// How many bytes of the first piece were sent already.
    sent: usize,
    /// How many bytes are in the queue: a piece that was sent in part is still held as a whole.
    waiting: usize,
    gone: bool,
}

impl<'a> Outbox<'a> {
    const FULL: usize = 256 << 10;

    /// Makes an outbox for this pipe, which no other process may share: it is made non-blocking.
    pub fn new(pipe: BorrowedFd<'a>) -> nix::Result<Self> {
        fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { pipe, queue: VecDeque::new(), sent: 0, waiting: 0, gone: false })
    }

    /// Sends an event, now or when the pipe takes it.
    pub fn send(&mut self, event: Event) {
        if self.gone {
            return;
        }
        let (mut head, payload) = event.encode();
        self.waiting += head.len() + payload.len();
        if payload.len() < 4096 {
            head.extend_from_slice(&payload);
            self.queue.push_back(head);
        } else {
            self.queue.extend([head, payload]);
        }
        self.flush();
    }

    /// Writes as much to the pipe as it takes.
    pub fn flush(&mut self) {
        while let Some(piece) = self.queue.front() {
            match nix::unistd::write(self.pipe, &piece[self.sent..]) {
                Ok(n) => {
                    self.sent += n;
                    if self.sent == piece.len() {
                        self.waiting -= self.sent;
                        self.queue.pop_front();
                        self.sent = 0;
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // EPIPE: the reader is gone. Any other failure of a pipe means the same.
                Err(_) => self.close(),
            }
        }
    }

    /// Drops what is queued, and every later event.
    pub fn close(&mut self) {
        self.gone = true;
        self.queue = VecDeque::new();
        self.waiting = 0;
    }

    /// True while no more of the command's output should be read.
    pub fn full(&self) -> bool {
        self.waiting >= Self::FULL
    }

    /// True while the pipe should be watched for room.
    pub fn pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Waits until everything is sent or the caller is gone.
    pub fn drain(&mut self) {
        self.flush();
        while self.pending() {
            let mut fds = [PollFd::new(self.pipe, PollFlags::POLLOUT)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => self.flush(),
                Err(_) => self.close(),
            }
        }
    }
}

impl AsFd for Outbox<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe
    }
}
