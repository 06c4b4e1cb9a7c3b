//! Finds the lines that begin with a prefix in a stream that comes in pieces, and remembers the last line of
//! a stream.
//!
//! Memory is bounded: a line is kept only while it still begins with the prefix and is not longer than the
//! limit; everything else is counted or skipped. `feed` each piece, then `finish` once for a last line
//! without a newline. Implements K16, K19.

use super::super::wire::Event;
use std::io::BufRead;

/// A line that begins with the prefix, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The line.
    Line(Vec<u8>),
    /// The length in bytes of a line that is too long to be kept.
    Long(u64),
}

/// What is known of the current line.
enum State {
    /// The line equals the prefix so far, in this many bytes.
    Matching(usize),
    /// The line begins with the prefix; these are all its bytes.
    Keeping(Vec<u8>),
    /// The line begins with the prefix and is too long; this many bytes of it were seen.
    Counting(u64),
    /// The line does not begin with the prefix.
    Skipping,
}

/// Scans one stream.
pub(super) struct Scanner {
    prefix: Vec<u8>,
    max: usize,
    state: State,
}

impl Scanner {
    /// From this length on, the buffer of a line gets all the room that it may need.
    const LONG: usize = 256 << 10;

    /// Makes a scanner for lines that begin with `prefix`; it keeps those of at most `max` bytes.
    pub fn new(prefix: Vec<u8>, max: usize) -> Self {
        Self { prefix, max, state: State::Matching(0) }
    }

    /// Takes the next piece and passes the lines that it completes to `tell`.
    pub fn feed(&mut self, mut piece: &[u8], mut tell: impl FnMut(Found)) {
        if self.prefix.is_empty() {
            return;
        }
        while let Some(&first) = piece.first() {
            if let State::Matching(equal) = self.state {
                piece = self.compare(first, equal, piece);
                continue;
            }
            let (line, ended, rest) = split_line(piece);
            piece = rest;
            self.grow(line);
            if ended {
                self.end_line(&mut tell);
            }
        }
    }

    /// Compares one more byte with the prefix; returns the rest of the piece.
    fn compare<'a>(&mut self, first: u8, equal: usize, piece: &'a [u8]) -> &'a [u8] {
        if first != self.prefix[equal] {
            // Not consumed: it may be the newline.
            self.state = State::Skipping;
            return piece;
        }
        self.state = match equal + 1 == self.prefix.len() {
            true => State::Keeping(self.prefix.clone()),
            false => State::Matching(equal + 1),
        };
        &piece[1..]
    }

    fn grow(&mut self, more: &[u8]) {
        match &mut self.state {
            State::Keeping(kept) if kept.len() + more.len() <= self.max => {
                if kept.len() >= Self::LONG {
                    // Reserved at once: a buffer of megabytes that doubles exists twice while it is copied.
                    kept.reserve_exact(self.max - kept.len());
                }
                kept.extend_from_slice(more);
            }
            State::Keeping(kept) => self.state = State::Counting((kept.len() + more.len()) as u64),
            State::Counting(length) => *length += more.len() as u64,
            State::Matching(_) | State::Skipping => {}
        }
    }

    fn end_line(&mut self, tell: &mut impl FnMut(Found)) {
        match std::mem::replace(&mut self.state, State::Matching(0)) {
            State::Keeping(mut line) => {
                line.shrink_to_fit();
                tell(Found::Line(line));
            }
            State::Counting(length) => tell(Found::Long(length)),
            State::Matching(_) | State::Skipping => {}
        }
    }

    /// Ends the stream: a last line without a newline counts too.
    pub fn finish(&mut self, mut tell: impl FnMut(Found)) {
        self.end_line(&mut tell);
    }
}

/// Splits after the first line: the line without its newline, whether it had one, and the rest.
fn split_line(piece: &[u8]) -> (&[u8], bool, &[u8]) {
    let mut rest = piece;
    // `skip_until` searches with the C library's memchr, which is faster than any loop in this file could be.
    let taken = rest.skip_until(b'\n').unwrap_or(piece.len());
    match piece[..taken].split_last() {
        Some((b'\n', line)) => (line, true, rest),
        Some(_) | None => (&piece[..taken], false, rest),
    }
}

/// Remembers enough of a stream's end to show its last line.
#[derive(Default)]
pub(super) struct LastLine(Vec<u8>);

impl LastLine {
    const SHOWN: usize = 200;
    const KEPT: usize = 2 * Self::SHOWN;

    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(Self::KEPT)..];
        let surplus = (self.0.len() + piece.len()).saturating_sub(Self::KEPT);
        self.0.drain(..surplus.min(self.0.len()));
        self.0.extend_from_slice(piece);
    }

    /// Returns the last line that is not empty, at most 200 bytes of it. A carriage return ends a line too,
    /// as in progress bars.
    pub fn get(&self) -> Vec<u8> {
        let line = self.0.rsplit(|b| matches!(b, b'\n' | b'\r')).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        line[..line.len().min(Self::SHOWN)].to_vec()
    }
}

/// Returns the event that reports a line to the caller.
pub(super) fn line_event(found: Found) -> Event {
    match found {
        Found::Line(line) => Event::Line(line),
        Found::Long(length) => Event::LongLine(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &[u8], piece: usize, max: usize) -> Vec<Found> {
        let mut scanner = Scanner::new(b"SET ".to_vec(), max);
        let mut found = Vec::new();
        for chunk in text.chunks(piece) {
            scanner.feed(chunk, |f| found.push(f));
        }
        scanner.finish(|f| found.push(f));
        found
    }

    #[test]
    fn lines_are_found_however_the_stream_is_cut() {
        let text = b"SET 1\n SET 2\nSE\nSET\n\nSET \nxSET 3\nSET too long\nSET \xff\r\nSET end";
        let want = [
            Found::Line(b"SET 1".to_vec()),
            Found::Line(b"SET ".to_vec()),
            Found::Long(12),
            Found::Line(b"SET \xff\r".to_vec()),
            Found::Line(b"SET end".to_vec()),
        ];
        for piece in 1..=text.len() {
            assert_eq!(scan(text, piece, 8), want, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_line_at_the_limit_is_kept_and_one_above_is_counted() {
        assert_eq!(scan(b"SET 5678\n", 3, 8), [Found::Line(b"SET 5678".to_vec())]);
        assert_eq!(scan(b"SET 56789", 3, 8), [Found::Long(9)]);
    }

    #[test]
    fn an_empty_prefix_watches_nothing() {
        let mut scanner = Scanner::new(Vec::new(), 10);
        scanner.feed(b"a\nb", |f| panic!("found {f:?}"));
        scanner.finish(|f| panic!("found {f:?}"));
    }

    #[test]
    fn the_last_line_is_shown() {
        let mut last = LastLine::default();
        assert_eq!(last.get(), b"");
        last.feed(b"one\ntwo");
        last.feed(b" more\r\n\n");
        assert_eq!(last.get(), b"two more");
        last.feed(b"10%\r20%");
        assert_eq!(last.get(), b"20%");
        last.feed(&[b'x'; 100_000]);
        assert_eq!(last.get(), [b'x'; 200]);
    }
}
