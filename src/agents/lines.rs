//! Cuts a program's output into lines. A line that is too long is left out, and reported as such.
//!
//! `feed` takes what was read, in pieces of any size; `end` returns what followed the last line feed. A line
//! is any sequence of bytes.

/// Most bytes of a line; a longer one is dropped.
pub const LINE_MAX: usize = 16 << 20;

/// A line, or the note that one was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its line feed.
    Whole(Vec<u8>),
    /// The last line, if no line feed ended it.
    Torn(Vec<u8>),
    /// A line longer than [`LINE_MAX`], of which only the number of bytes is known.
    TooLong(u64),
}

/// The state of the cutting: the line that is not complete yet.
#[derive(Debug, Default)]
pub struct Lines {
    open: Vec<u8>,
    dropped: u64,
}

impl Lines {
    /// Takes a piece of output, and returns the lines that it completes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.more(&rest[..end]);
            lines.push(self.close(Line::Whole));
            rest = &rest[end + 1..];
        }
        self.more(rest);
        lines
    }

    /// Returns the line that is left when the output ends.
    pub fn end(mut self) -> Option<Line> {
        (!self.open.is_empty() || self.dropped > 0).then(|| self.close(Line::Torn))
    }

    fn more(&mut self, bytes: &[u8]) {
        if self.dropped == 0 && self.open.len() + bytes.len() <= LINE_MAX {
            self.open.extend_from_slice(bytes);
        } else {
            self.dropped += (self.open.len() + bytes.len()) as u64;
            self.open = Vec::new();
        }
    }

    fn close(&mut self, line: fn(Vec<u8>) -> Line) -> Line {
        let (mut open, dropped) = (std::mem::take(&mut self.open), std::mem::take(&mut self.dropped));
        if dropped > 0 {
            return Line::TooLong(dropped);
        }
        if open.last() == Some(&b'\r') {
            open.pop();
        }
        line(open)
    }
}
