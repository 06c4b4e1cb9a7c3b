//! The caller's orders, as they are read from the control pipe.
//!
//! A pipe that ends without the order `Linger` says that the caller is gone. Implements K17, K21.

use super::super::wire::Order;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::BorrowedFd;

/// What was read from the control pipe.
pub(super) enum Heard {
    /// An order.
    Order(Order),
    /// The caller left, or died.
    Gone,
}

/// True once the caller's end of the pipe is closed. Orders may still be unread in the pipe, but none of them
/// asks for a start.
pub(super) fn is_gone(pipe: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::POLLIN)];
    let ready = poll(&mut fds, PollTimeout::ZERO).is_ok();
    ready && fds[0].revents().is_some_and(|found| found.contains(PollFlags::POLLHUP))
}

/// The read end of the control pipe.
pub(super) struct Control<'a> {
    pipe: Option<BorrowedFd<'a>>,
    line: Vec<u8>,
}

impl<'a> Control<'a> {
    /// Reads orders from this pipe.
    pub fn new(pipe: BorrowedFd<'a>) -> Self {
        Self { pipe: Some(pipe), line: Vec::new() }
    }

    /// Returns the pipe until it has ended.
    pub fn open_pipe(&self) -> Option<BorrowedFd<'a>> {
        self.pipe
    }

    /// Reads once. To be called only when the pipe is readable.
    pub fn read(&mut self) -> Vec<Heard> {
        let mut bytes = [0; 256];
        let Some(pipe) = self.pipe else { return Vec::new() };
        match nix::unistd::read(pipe, &mut bytes) {
            Ok(n) if n > 0 => bytes[..n].iter().filter_map(|byte| self.take(*byte)).collect(),
            Err(Errno::EINTR | Errno::EAGAIN) => Vec::new(),
            Ok(_) | Err(_) => {
                self.pipe = None;
                vec![Heard::Gone]
            }
        }
    }

    fn take(&mut self, byte: u8) -> Option<Heard> {
        if byte != b'\n' {
            if self.line.len() < Order::LINE_MAX {
                self.line.push(byte);
            }
            return None;
        }
        let line = std::mem::take(&mut self.line);
        Order::decode(&line).map(Heard::Order)
    }
}
