//! Text from elsewhere, made fit for an event: escaped, and no longer than a reader has use for.

use crate::protocol::text::{escape, escape_block};

/// Most bytes of a `node.log` line, and of an agent's own words about its end.
pub const LINE_MAX: usize = 4096;

/// One line: control and direction characters escaped, cut at `LINE_MAX` bytes with what is left out said.
pub fn line(raw: &[u8]) -> String {
    cut(&escape(head(raw)), raw.len())
}

/// Several lines, line feeds and tabs kept, cut as one is.
pub fn block(raw: &[u8]) -> String {
    cut(&escape_block(head(raw)), raw.len())
}

/// The last bytes of several lines, as many as one line may have.
pub fn tail(raw: &[u8]) -> String {
    let from = raw.len().saturating_sub(LINE_MAX / 4);
    block(raw[from..].trim_ascii())
}

fn head(raw: &[u8]) -> &[u8] {
    &raw[..raw.len().min(LINE_MAX)]
}

fn cut(safe: &str, whole: usize) -> String {
    let end = (0..=LINE_MAX.min(safe.len())).rev().find(|at| safe.is_char_boundary(*at)).unwrap_or(0);
    if end == safe.len() && whole <= LINE_MAX {
        safe.to_owned()
    } else {
        format!("{} [of {whole} bytes]", &safe[..end])
    }
}
