//! Reads what `git push --porcelain` answers about one ref: `<flag> TAB <from>:<to> TAB <summary>`.
//!
//! Pure and total: any bytes are an answer. That the ref moved is believed only where its own line says so and
//! Git ended well; a line about another ref, even one whose name ends the same, says nothing. The file uses
//! nothing of ours, so that `fuzz/` reads these very lines. Implements K12.

/// What an answer says about the ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// It moved, and Git ended well.
    Moved,
    /// It is gone, and Git ended well.
    Gone,
    /// It held already what it was to hold, whatever was expected, and Git ended well.
    Same,
    /// Git itself saw another value than the expected one.
    Rejected,
    /// The other side heard of it and did not take it; what it says. Which side that was is Git's own word here.
    Refused(&'a [u8]),
    /// Nothing that decides anything.
    Nothing,
}

/// The word about the ref of this full name in what Git wrote; `well`: Git ended with status 0.
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
