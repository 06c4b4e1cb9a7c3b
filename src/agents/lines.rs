//! A program's output, cut into lines: those that are too long are left out, and that is said.
//!
//! `feed` with what was read, in pieces of any size; `end` gives what came after the last line feed. A line is bytes:
//! nothing is demanded of them.

/// Most bytes of a line that is read as one.
pub const LINE_MAX: usize = 16 << 20;

/// A line, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// One, without its line feed.
    Whole(Vec<u8>),
    /// The last one, which no line feed ended.
    Torn(Vec<u8>),
    /// One that was longer than is read: its bytes are counted and dropped.
    TooLong(u64),
}

/// The cutter.
#[derive(Debug, Default)]
pub struct Lines {
    open: Vec<u8>,
    dropped: u64,
}

impl Lines {
    /// Takes in what was read, and gives the lines that it ends.
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

    /// What is left when the output ends.
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
