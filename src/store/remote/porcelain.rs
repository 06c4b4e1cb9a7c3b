//! Reads what `git push --porcelain` answers about one ref: `<flag> TAB <from>:<to> TAB <summary>`.
//!
//! The function is pure and total: any bytes are an answer. A ref counts as moved only where its own line
//! says so and Git exited with status 0; a line about another ref, even one whose name has the same ending,
//! says nothing. This file uses no other module of ours, so that `fuzz/` can include it as it is. Implements
//! K12.

/// What Git's output says about the ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// The ref moved, and Git exited with status 0.
    Moved,
    /// The ref was deleted, and Git exited with status 0.
    Gone,
    /// The ref held the new value already, whatever value was expected, and Git exited with status 0.
    Same,
    /// Git itself saw another value than the expected one.
    Rejected,
    /// The remote received the change and refused it, for the reason in this summary. That it was the remote
    /// is the local Git's own statement.
    Refused(&'a [u8]),
    /// The output says nothing that decides anything.
    Nothing,
}

/// Finds what Git's output says about the ref of this full name. `well` is true where Git exited with status
/// 0.
pub(crate) fn word<'a>(stdout: &'a [u8], well: bool, full: &[u8]) -> Word<'a> {
    let line = stdout.split(|b| *b == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |b| *b == b'\t');
        let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
        let colon = refs.iter().position(|b| *b == b':')?;
        (&refs[colon + 1..] == full).then_some((flag, summary))
    });
    match line {
        Some((b" " | b"*" | b"+", _)) if well => Word::Moved,
        Some((b"-", _)) if well => Word::Gone,
        Some((b"=", _)) if well => Word::Same,
        Some((b"!", summary)) if summary.starts_with(b"[rejected]") => Word::Rejected,
        Some((b"!", summary)) if summary.starts_with(b"[remote rejected]") => Word::Refused(summary),
        Some(_) | None => Word::Nothing,
    }
}
