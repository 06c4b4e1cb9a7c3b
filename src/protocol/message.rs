//! Commit messages: subject, body and trailers, read as `git log` reads them.
//!
//! Implements K1, K3 and K4a; writing (K2) is in `render`, the trailer block in `trailers`.
//!
//! `Message::parse` is total: any bytes are a message, in linear time, without a subprocess. It finds
//! the trailers that `git log --format=%(trailers:only,unfold)` shows under `trailer.separators=:` and
//! default comment sign, and the subject that `%s` shows; keys stay case-sensitive. It does no
//! transcoding: a commit with an `encoding` header is decoded where the commit is read.
//!
//! Two rules are this program's and not Git's. The body ends at a scissors line, as the trailers do, while
//! `%b` goes on: what Git meant to cut is not handed to a command. And text that Git ignores after the
//! trailer block (comments, a `Conflicts:` list) is part of the body, after a blank line.

mod render;
mod trailers;

use super::dialect::{Dialect, Key, MANAGED};
use std::ops::Range;

pub use render::{Part, RenderError};

/// True for a key that only a runner may set, whatever its dialect and its ASCII case (K4a).
pub fn is_managed_key(key: &str) -> bool {
    let is = |managed: &Key| Dialect::ALL.iter().any(|d| managed.of(*d).eq_ignore_ascii_case(key));
    MANAGED.iter().any(is)
}

/// One trailer: a key as written (ASCII letters, digits, `-`) and its value on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Trailer {
    /// The key, without the separator and the blanks before it.
    pub key: String,
    /// The value, trimmed and unfolded; any bytes when it was read.
    pub value: Vec<u8>,
}

impl Trailer {
    /// Returns the trailer of this key and value; blanks (space, tab) around the value are dropped.
    pub fn new(key: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        Self { key: key.into(), value: trim_blanks(value.as_ref()).to_vec() }
    }
}

/// A commit message in its three parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Message {
    /// The first paragraph as one line, as `%s` shows it; empty only when the message is.
    pub subject: Vec<u8>,
    /// Everything but subject and trailer block; no blank lines and no line end at its ends.
    pub body: Vec<u8>,
    /// The trailers in the order they were written.
    pub trailers: Vec<Trailer>,
}

impl Message {
    /// Reads the raw bytes of a commit's message (K1). Total, linear, never fails.
    pub fn parse(raw: &[u8]) -> Message {
        // A message is a C string to Git: nothing after a NUL exists for it.
        let text = if raw.contains(&0) { raw.split(|b| *b == 0).next().unwrap_or_default() } else { raw };
        let text = skip_blank_lines(text);
        let end = trailers::scissors(text);
        let (subject, body_at) = subject(text);
        let (block, trailers) = trailers::read(text, end);
        let body = body(text, body_at, block, end);
        Message { subject, body, trailers }
    }

    /// Returns the message of these parts; drops blanks around the subject and blank lines around the body.
    pub fn new(subject: impl Into<Vec<u8>>, body: impl Into<Vec<u8>>, trailers: Vec<Trailer>) -> Message {
        let subject = trim_blanks(&subject.into()).to_vec();
        let body = trim_blank_lines(&body.into()).to_vec();
        Message { subject, body, trailers }
    }

    /// Returns the value that counts for this key: the last one (K3). Keys are case-sensitive (K1).
    pub fn last(&self, key: &str) -> Option<&[u8]> {
        self.trailers.iter().rev().find(|t| t.key == key).map(|t| t.value.as_slice())
    }

    /// Returns every value of this key, in the order written.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.trailers.iter().filter(move |t| t.key == key).map(|t| t.value.as_slice())
    }
}

/// White space as Git knows it: no vertical tab, no form feed, nothing beyond ASCII.
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| is_space(*b))
}

/// Returns the lines of a text, each with its own line end.
fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split_inclusive(|b| *b == b'\n')
}

fn trim_end(text: &[u8]) -> &[u8] {
    let len = text.iter().rposition(|b| !is_space(*b)).map_or(0, |last| last + 1);
    &text[..len]
}

fn trim(text: &[u8]) -> &[u8] {
    let text = trim_end(text);
    let start = text.iter().position(|b| !is_space(*b)).unwrap_or(text.len());
    &text[start..]
}

/// Removes spaces and tabs at both ends. Line breaks stay, so that `render` can refuse them.
fn trim_blanks(text: &[u8]) -> &[u8] {
    let inked = |b: &u8| !matches!(b, b' ' | b'\t');
    match (text.iter().position(inked), text.iter().rposition(inked)) {
        (Some(first), Some(last)) => &text[first..=last],
        (Some(_), None) | (None, Some(_)) | (None, None) => &[],
    }
}

fn skip_blank_lines(text: &[u8]) -> &[u8] {
    let blank: usize = lines(text).take_while(|line| is_blank(line)).map(<[u8]>::len).sum();
    &text[blank..]
}

/// Removes the blank lines at both ends, and the last line's own end (LF or CRLF).
fn trim_blank_lines(text: &[u8]) -> &[u8] {
    let text = skip_blank_lines(text);
    let blank: usize = lines(text).rev().take_while(|line| is_blank(line)).map(<[u8]>::len).sum();
    let text = &text[..text.len() - blank];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let len = text.iter().rposition(|b| *b != b'\r').map_or(0, |last| last + 1);
    &text[..len]
}

/// Returns the subject as `%s` shows it, and where the body begins: past the line that ends the subject.
fn subject(text: &[u8]) -> (Vec<u8>, usize) {
    let mut subject = Vec::new();
    let mut at = 0;
    for line in lines(text).take_while(|line| !is_blank(line)) {
        if at > 0 {
            subject.push(b' ');
        }
        subject.extend_from_slice(trim_end(line));
        at += line.len();
    }
    (subject, at)
}

/// Returns the text from `start` to `end`, where the text ends for Git, without the trailer block.
fn body(text: &[u8], start: usize, block: Range<usize>, end: usize) -> Vec<u8> {
    if block.is_empty() {
        return trim_blank_lines(text.get(start..end).unwrap_or_default()).to_vec();
    }
    let mut body = trim_blank_lines(&text[start..block.start]).to_vec();
    let after = trim_blank_lines(&text[block.end..end]);
    if !body.is_empty() && !after.is_empty() {
        body.extend_from_slice(b"\n\n");
    }
    body.extend_from_slice(after);
    body
}

#[cfg(test)]
mod tests;
