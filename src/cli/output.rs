//! Writing to the two standard streams; a reader that went away is no failure.

use std::io::Write;

/// One line of result.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// One line of result; false once the reader went away.
pub fn offer(text: &str) -> bool {
    offer_raw(format!("{text}\n").as_bytes())
}

/// Bytes as they are; false once the reader went away.
pub fn offer_raw(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).is_ok()
}

/// True once nobody reads standard output any more, as far as the system can tell before a write.
pub fn reader_gone() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let out = std::io::stdout();
    let mut fds = [PollFd::new(out.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
        && fds[0].revents().is_some_and(|r| r.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL))
}

/// Text for standard error, as it is.
pub fn error(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// One line for standard error.
pub fn note(text: &str) {
    error(&format!("{text}\n"));
}

/// Bytes as they are, to either stream.
pub fn raw(to_stderr: bool, bytes: &[u8]) {
    if to_stderr {
        let _ = std::io::stderr().lock().write_all(bytes);
    } else {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }
}
