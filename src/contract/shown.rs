//! Text from elsewhere, made fit for an event: escaped, and no longer than a reader has use for.

use crate::protocol::text::{escape, escape_block};

/// Most bytes of a `node.log` line, and of an agent's own words about its end.
pub const LINE_MAX: usize = 4096;

/// One line: control and direction characters escaped, cut at `LINE_MAX` bytes with what is left out said.
pub fn line(raw: &[u8]) -> String {
    cut(&escape(head(raw, LINE_MAX)), raw.len(), LINE_MAX)
}

/// Several lines, line feeds and tabs kept, cut as one is.
pub fn block(raw: &[u8]) -> String {
    block_within(raw, LINE_MAX)
}

/// Several lines, cut at `most` bytes.
pub fn block_within(raw: &[u8], most: usize) -> String {
    cut(&escape_block(head(raw, most)), raw.len(), most)
}

/// The last bytes of several lines, as many as one line may have.
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
