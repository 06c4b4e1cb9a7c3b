//! Writing to the two standard streams; a reader that went away is no failure.
//!
//! What a command printed goes to a file or a pipe as it is, and to a terminal escaped ([`StreamEscaper`]). Implements K36.

use super::reader;
use crate::protocol::text::{escape_block, steers};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

/// An object as one line, which means the same where no terminal can be steered by it: JSON itself leaves the
/// control characters above ASCII, and those that reorder a line, as they are.
pub fn json(object: &impl Serialize) -> String {
    // Nothing that is shown has keys that are no text, or fails to say what it is.
    let text = serde_json::to_string(object).unwrap_or_default();
    if is_tame(text.as_bytes()) || !text.contains(steers) { text } else { unsteering(&text) }
}

/// Most say nothing but ASCII.
fn is_tame(text: &[u8]) -> bool {
    text.iter().all(|b| *b < 0x7f)
}

fn unsteering(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        if steers(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Bytes in pieces, escaped without harm to characters that two pieces share.
#[derive(Default)]
pub struct StreamEscaper {
    /// The beginning of a character that is not all there yet.
    rest: Vec<u8>,
}

impl StreamEscaper {
    /// What can be shown so far.
    pub fn take(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let begun = match std::str::from_utf8(&self.rest) {
            Err(e) if e.error_len().is_none() => self.rest.len() - e.valid_up_to(),
            // After an invalid byte: at most the last three bytes can be a beginning.
            Err(_) => {
                (1..=3.min(self.rest.len())).find(|n| self.rest[self.rest.len() - n] >= 0xc0).unwrap_or(0)
            }
            Ok(_) => 0,
        };
        let rest = self.rest.split_off(self.rest.len() - begun);
        let whole = std::mem::replace(&mut self.rest, rest);
        escape_block(&whole)
    }

    /// What is left at the end.
    pub fn end(&mut self) -> String {
        escape_block(&std::mem::take(&mut self.rest))
    }
}

/// True where what is said goes to the log of what runs in the background.
static LOGGED: AtomicBool = AtomicBool::new(false);

/// From here on what is said goes to a log that several processes write to: each line says when.
pub fn log_times() {
    LOGGED.store(true, Ordering::Relaxed);
}

/// Lines with the time at which they were said, as a log holds them.
pub fn dated(text: &str) -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace('T', " ");
    text.trim_end_matches('\n').split('\n').map(|line| format!("{now}  {line}\n")).collect()
}

fn said(text: &str) -> Cow<'_, str> {
    match LOGGED.load(Ordering::Relaxed) {
        true => dated(text).into(),
        false => reader::addressed(text),
    }
}

/// What kept results from being written first: a full disk, a broken one.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Why results could not be written, though their reader was there.
pub fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

/// True where results were written. That a reader went away is its own affair; all else is told when the verb ends.
pub fn written(result: io::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                let _ = UNWRITTEN.set(error);
            }
            false
        }
    }
}

/// Results that wait to be written together; `None` where each is written as it comes.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// So many bytes are written at once.
const HELD_MAX: usize = 1 << 15;

/// Has [`line()`] write many at a time for as long as the value lives. What goes to standard error goes there after
/// what was said before it.
pub struct Together;

impl Together {
    /// Begins.
    pub fn begin() -> Self {
        *held() = Some(Vec::new());
        Self
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        write_held();
        *held() = None;
    }
}

fn held() -> MutexGuard<'static, Option<Vec<u8>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_held() {
    if let Some(bytes) = held().as_mut().map(std::mem::take).filter(|bytes| !bytes.is_empty()) {
        offer_raw(&bytes);
    }
}

/// One line of result.
pub fn line(text: &str) {
    let text = format!("{text}\n");
    let text = said(&text);
    let len = held().as_mut().map(|held| {
        held.extend_from_slice(text.as_bytes());
        held.len()
    });
    match len {
        None => drop(offer_raw(text.as_bytes())),
        Some(len) if len >= HELD_MAX => write_held(),
        Some(_) => {}
    }
}

/// One line of result; false once the reader went away.
pub fn offer(text: &str) -> bool {
    offer_raw(format!("{text}\n").as_bytes())
}

/// Many lines of result, written some at a time.
pub struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    /// The line that is being built: one place for all of them.
    next: Vec<u8>,
}

impl Lines {
    /// None yet. Nothing else writes results until these are dropped.
    pub fn begin() -> Self {
        Self { out: BufWriter::with_capacity(1 << 15, io::stdout().lock()), next: Vec::new() }
    }

    /// One more; false once the reader is known to have gone away.
    pub fn offer(&mut self, text: &str) -> bool {
        written(self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n")))
    }

    /// One more, as [`json`] writes it.
    pub fn offer_json(&mut self, object: &impl Serialize) -> bool {
        self.next.clear();
        let _ = serde_json::to_writer(&mut self.next, object);
        if !is_tame(&self.next) {
            self.next = json(object).into_bytes();
        }
        self.next.push(b'\n');
        written(self.out.write_all(&self.next))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        written(self.out.flush().and_then(|()| self.out.get_mut().flush()));
    }
}

/// Bytes as they are; false once the reader went away.
pub fn offer_raw(bytes: &[u8]) -> bool {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// True once the reader of standard output is gone, as far as the system can tell before a write.
pub fn reader_gone() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let out = io::stdout();
    let mut fds = [PollFd::new(out.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
        && fds[0].revents().is_some_and(|r| r.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL))
}

/// What is said while a screen is drawn on; `None` where it is said as it comes.
static LATER: Mutex<Option<String>> = Mutex::new(None);

fn later() -> MutexGuard<'static, Option<String>> {
    LATER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is kept of it, in bytes: a screen may stay for days.
const LATER_MAX: usize = 1 << 16;

/// Has what goes to standard error wait until [`say_now`].
pub fn say_later() {
    later().get_or_insert_default();
}

/// Says what waited.
pub fn say_now() {
    let waited = later().take();
    waited.iter().filter(|text| !text.is_empty()).for_each(|text| error(text));
}

/// Text for standard error, as it is.
pub fn error(text: &str) {
    if let Some(waits) = &mut *later() {
        if waits.len() < LATER_MAX {
            waits.push_str(text);
        }
        return;
    }
    write_held();
    let mut err = io::stderr().lock();
    let _ = err.write_all(said(text).as_bytes()).and_then(|()| err.flush());
}

/// One line for standard error.
pub fn note(text: &str) {
    error(&format!("{text}\n"));
}

/// Bytes as they are, to either stream.
pub fn raw(to_stderr: bool, bytes: &[u8]) {
    if to_stderr {
        let _ = io::stderr().lock().write_all(bytes);
    } else {
        offer_raw(bytes);
    }
}
