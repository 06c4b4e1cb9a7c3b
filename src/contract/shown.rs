//! Text from elsewhere, made fit for an event: escaped, and cut to a length that a reader has use for.

use crate::protocol::text::{escape, escape_block};

/// Most bytes of a `node.log` line, and of the words in which an agent says how it ended.
pub const LINE_MAX: usize = 4096;

/// Returns a text as one line: control and direction characters are escaped, and what is longer than
/// `LINE_MAX` bytes is cut, with a note of the full length.
pub fn line(raw: &[u8]) -> String {
    cut(&escape(head(raw, LINE_MAX)), raw.len(), LINE_MAX)
}

/// Returns a text of several lines as [`line()`] does, but keeps its line feeds and tabs.
pub fn block(raw: &[u8]) -> String {
    block_within(raw, LINE_MAX)
}

/// Returns a text of several lines as [`block`] does, cut at `most` bytes.
pub fn block_within(raw: &[u8], most: usize) -> String {
    cut(&escape_block(head(raw, most)), raw.len(), most)
}

/// Returns the end of a text of several lines: its last `LINE_MAX / 4` bytes, so that they fit even if each
/// is escaped.
pub fn tail(raw: &[u8]) -> String {
    let from = raw.len().saturating_sub(LINE_MAX / 4);
    block(raw[from..].trim_ascii())
}

fn head(raw: &[u8], most: usize) -> &[u8] {
    &raw[..raw.len().min(most)]
}

fn cut(safe: &str, whole: usize, most: usize) -> String {
    let end = (0..=most.min(safe.len())).rev().find(|at| safe.is_char_boundary(*at)).unwrap_or(0);
    if end == safe.len() && whole <= most {
        safe.to_owned()
    } else {
        format!("{} [of {whole} bytes]", &safe[..end])
    }
}
