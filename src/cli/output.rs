//! Writing to the two standard streams; a reader that went away is no failure.
//!
//! What a command printed goes to a file or a pipe as it is, and to a terminal escaped ([`StreamEscaper`]).
//! Implements K36.

use super::reader;
use crate::protocol::text::{escape_block, steers};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

/// Returns an object as one line of JSON that means the same and that no terminal can be steered by: JSON
/// itself leaves the control characters from DEL on, and those that reorder a line, as they are.
pub fn json(object: &impl Serialize) -> String {
    // Serialization cannot fail: nothing that is shown has a key that is not text, or a value that cannot be
    // written.
    let text = serde_json::to_string(object).unwrap_or_default();
    if is_tame(text.as_bytes()) || !text.contains(steers) { text } else { unsteering(&text) }
}

/// True for plain ASCII, which most texts are: it need not be searched for characters that steer.
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

/// Escapes bytes that come in pieces, without harm to characters that two pieces share.
#[derive(Default)]
pub struct StreamEscaper {
    /// The beginning of a character whose end has not come yet.
    rest: Vec<u8>,
}

impl StreamEscaper {
    /// Takes the next piece, and returns what can be shown so far.
    pub fn take(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let begun = match std::str::from_utf8(&self.rest) {
            Err(e) if e.error_len().is_none() => self.rest.len() - e.valid_up_to(),
            // After an invalid byte, at most the last three bytes can be the beginning of a character.
            Err(_) => {
                (1..=3.min(self.rest.len())).find(|n| self.rest[self.rest.len() - n] >= 0xc0).unwrap_or(0)
            }
            Ok(_) => 0,
        };
        let rest = self.rest.split_off(self.rest.len() - begun);
        let whole = std::mem::replace(&mut self.rest, rest);
        escape_block(&whole)
    }

    /// Returns what is left at the end.
    pub fn end(&mut self) -> String {
        escape_block(&std::mem::take(&mut self.rest))
    }
}

/// True where output goes to the log of background processes.
static LOGGED: AtomicBool = AtomicBool::new(false);

/// Has each line that is printed from now on begin with the time: it goes to a log that several processes
/// write to.
pub fn log_times() {
    LOGGED.store(true, Ordering::Relaxed);
}

/// Returns the lines with the present time before each, as a log holds them.
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

/// The first error that kept results from being written, other than a reader that went away: a full or a
/// broken disk. Notes that are collected with results for one file count as results.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Returns why results could not be written, though their reader was there.
pub fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

/// True where results were written. That a reader went away is no failure; any other error is kept, and
/// reported when the verb ends.
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

/// Text that waits to be written together; `None` where each line is written as it comes.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

/// Text that waits is written once one of the streams has so many bytes.
const HELD_MAX: usize = 1 << 15;

#[derive(Default)]
struct Held {
    results: Vec<u8>,
    /// Empty where both streams are one file: then notes wait among the results, in the order of their coming.
    notes: Vec<u8>,
    one_file: bool,
}

impl Held {
    fn write(&mut self) {
        if !self.results.is_empty() {
            offer_raw(&self.results);
        }
        if !self.notes.is_empty() {
            write_error(&self.notes);
        }
        self.results.clear();
        self.notes.clear();
    }
}

/// Has [`line()`] and [`error()`] collect their texts and write many at a time, for as long as the value lives. Where
/// both streams are one file, such as a terminal, the order of all lines stays; of two files each keeps its own.
/// [`raw`], [`offer`] and [`Lines`] don't wait for what is collected.
pub struct Together;

impl Together {
    /// Begins to collect texts.
    pub fn begin() -> Self {
        let before = held().replace(Held { one_file: is_one_file(), ..Held::default() });
        before.into_iter().for_each(|mut held| held.write());
        Self
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        if let Some(mut held) = held().take() {
            held.write();
        }
    }
}

fn held() -> MutexGuard<'static, Option<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has text wait, as it will be shown; false where it is to be written at once.
fn hold(shown: &str, is_result: bool) -> bool {
    let mut held = held();
    let Some(held) = held.as_mut() else { return false };
    let stream = if is_result || held.one_file { &mut held.results } else { &mut held.notes };
    stream.extend_from_slice(shown.as_bytes());
    if stream.len() >= HELD_MAX {
        held.write();
    }
    true
}

/// True where standard output and standard error are known to be the same file, terminal or pipe.
fn is_one_file() -> bool {
    use nix::sys::stat::fstat;
    let place = |found: nix::Result<nix::sys::stat::FileStat>| found.map(|stat| (stat.st_dev, stat.st_ino));
    match (place(fstat(io::stdout())), place(fstat(io::stderr()))) {
        (Ok(out), Ok(err)) => out == err,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Writes one line of result.
pub fn line(text: &str) {
    let text = [text, "\n"].concat();
    let text = said(&text);
    if !hold(&text, true) {
        offer_raw(text.as_bytes());
    }
}

/// Writes one line of result; false once the reader went away.
pub fn offer(text: &str) -> bool {
    offer_raw(format!("{text}\n").as_bytes())
}

/// A writer of many lines of result, which writes some at a time.
pub struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    /// The line that is being built; its memory is used for all of them.
    next: Vec<u8>,
}

impl Lines {
    /// Creates the writer. Nothing else may write results until it is dropped.
    pub fn begin() -> Self {
        Self { out: BufWriter::with_capacity(1 << 15, io::stdout().lock()), next: Vec::new() }
    }

    /// Writes one more line; false once the reader is known to have gone away.
    pub fn offer(&mut self, text: &str) -> bool {
        written(self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n")))
    }

    /// Writes an object as one more line, as [`json`] returns it; false once the reader is known to have gone
    /// away.
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

/// Writes bytes as they are; false once the reader went away.
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

/// Text for standard error that waits while a screen is drawn on; `None` where text is written as it comes.
static LATER: Mutex<Option<String>> = Mutex::new(None);

fn later() -> MutexGuard<'static, Option<String>> {
    LATER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much text is kept waiting, in bytes: a screen may stay for days.
const LATER_MAX: usize = 1 << 16;

/// Has what goes to standard error wait until [`say_now`].
pub fn say_later() {
    later().get_or_insert_default();
}

/// Writes what waited.
pub fn say_now() {
    let waited = later().take();
    waited.iter().filter(|text| !text.is_empty()).for_each(|text| error(text));
}

/// Writes text to standard error. The caller has escaped it.
pub fn error(text: &str) {
    if let Some(waits) = &mut *later() {
        if waits.len() < LATER_MAX {
            waits.push_str(text);
        }
        return;
    }
    let text = said(text);
    if !hold(&text, false) {
        write_error(text.as_bytes());
    }
}

fn write_error(bytes: &[u8]) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(bytes).and_then(|()| err.flush());
}

/// Writes one line to standard error.
pub fn note(text: &str) {
    error(&[text, "\n"].concat());
}

/// Writes bytes as they are, to standard error or standard output.
pub fn raw(to_stderr: bool, bytes: &[u8]) {
    if to_stderr {
        let _ = io::stderr().lock().write_all(bytes);
    } else {
        offer_raw(bytes);
    }
}
