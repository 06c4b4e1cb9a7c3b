//! Where a message's trailer block is, and what it says.
//!
//! Implements K1. The text given here starts at the subject (no leading blank lines) and holds no NUL.
//! The rule, as Git behaves (observed with 2.39 and 2.47, see `tests/message_oracle`):
//! - The text ends at a scissors line. A run of comments, empty lines and `Conflicts:` lists before
//!   that end is ignored.
//! - The block is the last paragraph of what is left, never the first. It counts when all of its lines
//!   are trailers, or when one is a line that Git itself writes and a quarter of them are trailers.
//! - A comment in the block is skipped; an indented line continues the trailer right above it, and is
//!   prose below anything else.
//!
//! Each function walks the text once.

use std::ops::Range;

use super::{Trailer, is_blank, is_space, lines, trim};

/// The line below which Git throws a message's rest away.
const SCISSORS: &[u8] = b"# ------------------------ >8 ------------------------\n";
/// The head of the list that Git once added to the message of a conflicted merge.
const CONFLICTS: &[u8] = b"Conflicts:\n";
/// Lines that Git writes itself: with one of them, a block may be three quarters prose.
const GENERATED: [&[u8]; 2] = [b"Signed-off-by: ", b"(cherry picked from commit "];

/// What a line is to the search for the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing but white space.
    Blank,
    /// Starts with `#`.
    Comment,
    /// A trailer or not, but written by Git.
    Generated,
    /// A key and a separator.
    Trailer,
    /// Starts with white space, and is not blank.
    Indented,
    /// Anything else.
    Prose,
}

impl Line {
    fn of(line: &[u8]) -> Line {
        if line.first() == Some(&b'#') {
            Line::Comment
        } else if is_blank(line) {
            Line::Blank
        } else if GENERATED.iter().any(|prefix| line.starts_with(prefix)) {
            Line::Generated
        } else if separator(line).is_some() {
            Line::Trailer
        } else if is_space(line[0]) {
            Line::Indented
        } else {
            Line::Prose
        }
    }
}

/// Where the `:` is in a line that reads `key:` or `key :`.
fn separator(line: &[u8]) -> Option<usize> {
    let is_key = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
    let key = line.iter().take_while(|b| is_key(b)).count();
    let blanks = line[key..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let at = key + blanks;
    (key > 0 && line.get(at) == Some(&b':')).then_some(at)
}

/// Where the text ends for Git: its first scissors line, or its length.
pub(super) fn scissors(text: &[u8]) -> usize {
    // Few messages have the sign of the scissors, and a search for one byte is much quicker than one for lines.
    if !text.contains(&b'>') {
        return text.len();
    }
    lines(text).take_while(|line| *line != SCISSORS).map(<[u8]>::len).sum()
}

/// Where the ignored rest of the text before `end` begins: comments, empty lines, `Conflicts:` lists.
fn log_end(text: &[u8], end: usize) -> usize {
    // What is ignored goes on to the end, so that any other last line ends nothing.
    let last = lines(&text[..end]).next_back().unwrap_or_default();
    if !matches!(last, [b'#' | b'\n' | b'\t', ..] | []) && last != CONFLICTS {
        return end;
    }
    let mut ignored_from = None;
    let mut in_conflicts = false;
    let mut at = 0;
    for line in lines(&text[..end]) {
        let heading = line == CONFLICTS;
        in_conflicts |= heading;
        if heading || matches!(line[0], b'#' | b'\n') {
            // Position 0 is Git's "none": a run never begins there.
            if ignored_from.is_none() && at > 0 {
                ignored_from = Some(at);
            }
        } else if in_conflicts && line[0] == b'\t' {
            // A path of the list. Where no run is open, the path opens none.
        } else if ignored_from.take().is_some() {
            // Only a run that was open closes the list: a list at position 0 stays open.
            in_conflicts = false;
        }
        at += line.len();
    }
    ignored_from.unwrap_or(end)
}

/// The paragraph that is being counted.
#[derive(Default)]
struct Paragraph {
    generated: bool,
    trailers: usize,
    prose: usize,
    /// The line above was a trailer or continued one.
    continues: bool,
}

impl Paragraph {
    fn count(&mut self, line: Line) {
        match line {
            Line::Blank => {}
            Line::Comment => self.continues = false,
            Line::Generated => {
                self.generated = true;
                self.trailers += 1;
                self.continues = true;
            }
            Line::Trailer => {
                self.trailers += 1;
                self.continues = true;
            }
            Line::Indented => self.prose += usize::from(!self.continues),
            Line::Prose => {
                self.prose += 1;
                self.continues = false;
            }
        }
    }

    /// True where the paragraph is a trailer block. It has more than comments: a counted line that is no prose is then
    /// a trailer.
    fn is_block(&self) -> bool {
        self.prose == 0 || self.generated && self.trailers * 3 >= self.prose
    }
}

/// Returns the bytes of the trailer block; empty, at the end of what Git looks at, when there is none.
fn block(text: &[u8], end: usize) -> Range<usize> {
    let end = log_end(text, end);
    // The last paragraph that has more than comments; the first one is the title, and no such paragraph.
    let mut last: Option<Range<usize>> = None;
    let (mut start, mut is_inked, mut in_title) = (0, false, true);
    let mut at = 0;
    for line in lines(&text[..end]) {
        if is_blank(line) {
            if is_inked && !in_title {
                last = Some(start..at);
            }
            in_title = false;
            (start, is_inked) = (at + line.len(), false);
        } else {
            is_inked |= line[0] != b'#';
        }
        at += line.len();
    }
    if is_inked && !in_title {
        last = Some(start..end);
    }
    let Some(last) = last else { return end..end };
    let mut paragraph = Paragraph::default();
    lines(&text[last.clone()]).for_each(|line| paragraph.count(Line::of(line)));
    if paragraph.is_block() { last.start..end } else { end..end }
}

/// Returns the trailer block's bytes and its trailers; `end` is where [`scissors`] says that the text ends.
pub(super) fn read(text: &[u8], end: usize) -> (Range<usize>, Vec<Trailer>) {
    let block = block(text, end);
    let mut trailers = Vec::new();
    let mut at = block.start;
    let mut open: Option<Open> = None;
    for line in lines(&text[block.clone()]) {
        let start = at;
        at += line.len();
        if is_space(line[0]) {
            if let Some(trailer) = &mut open {
                trailer.value.end = at;
            }
            continue;
        }
        trailers.extend(open.take().map(|trailer| trailer.close(text)));
        open = separator(line).map(|colon| Open { key: start..start + colon, value: start + colon + 1..at });
    }
    trailers.extend(open.map(|trailer| trailer.close(text)));
    (block, trailers)
}

/// A trailer whose continuation lines are still being collected.
struct Open {
    key: Range<usize>,
    value: Range<usize>,
}

impl Open {
    fn close(self, text: &[u8]) -> Trailer {
        // A key is ASCII by `separator`, so the conversion replaces nothing.
        let key = String::from_utf8_lossy(trim(&text[self.key])).into_owned();
        Trailer { key, value: unfold(trim(&text[self.value])) }
    }
}

/// Returns the value on one line: each line break, and all white space after it, becomes one space.
fn unfold(value: &[u8]) -> Vec<u8> {
    let mut unfolded = Vec::with_capacity(value.len());
    let mut after_break = false;
    for b in value {
        if *b == b'\n' && !after_break {
            unfolded.push(b' ');
            after_break = true;
        } else if !(after_break && is_space(*b)) {
            unfolded.push(*b);
            after_break = false;
        }
    }
    unfolded
}
