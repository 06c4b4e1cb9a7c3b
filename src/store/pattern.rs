//! Patterns of branches, as `git for-each-ref` matches them against short names, of folders, and of variables.

use crate::store::RefName;
use gix::bstr::ByteSlice;
use gix::glob::wildmatch::Mode;

/// True where one of the patterns matches the branch. A pattern that begins with `refs/` is matched against
/// the full name, any other against the short name. `*` stops at `/`, `**` does not.
pub(crate) fn any(patterns: &[impl AsRef<[u8]>], branch: &RefName) -> bool {
    patterns.iter().map(AsRef::as_ref).any(|pattern| {
        let matches = |name: &[u8]| {
            gix::glob::wildmatch(pattern.as_bstr(), name.as_bstr(), Mode::NO_MATCH_SLASH_LITERAL)
        };
        if pattern.starts_with(b"refs/") { matches(branch.as_bytes()) } else { matches(branch.short()) }
    })
}

/// True for a name that is a pattern: the name of a ref has no such character.
pub(crate) fn is_one(name: &[u8]) -> bool {
    name.iter().any(|b| b"*?[".contains(b))
}

/// True where a glob matches a path, `*` crossing `/` as in `safe.directory`.
pub(crate) fn path(pattern: impl AsRef<[u8]>, path: &[u8]) -> bool {
    let pattern = pattern.as_ref();
    pattern == path || gix::glob::wildmatch(pattern.as_bstr(), path.as_bstr(), Mode::empty())
}

/// True where one of the values names a variable. A value is one name or pattern, or several with
/// blanks or commas between them.
pub(crate) fn named(values: &[String], name: &str) -> bool {
    let patterns = values.iter().flat_map(|value| value.split([' ', ',']));
    patterns.filter(|pattern| !pattern.is_empty()).any(|pattern| path(pattern, name.as_bytes()))
}
