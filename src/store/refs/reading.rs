//! Reads refs of the files backend: loose first, then `packed-refs`, fresh each time.
//!
//! Nothing is cached between calls, so no stale copy can mislead (gix keeps a copy, and judges it by its time
//! stamp). A scan lists the loose refs before it opens `packed-refs`: the other order would miss a ref that
//! is packed meanwhile. Symbolic refs are returned as values, and never followed. This module parses
//! `packed-refs` itself instead of leaving it to gix: where the header does not say that the file is sorted,
//! one line that gix can't read hides all refs, and in any file such a line makes a missing ref look damaged.
//!
//! Implements K37 (files backend), and the reading half of K11 and K42.

use crate::protocol::id::ObjectId;
use crate::store::{RefName, Scan, StoreError, Unread, io_error};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The value that a loose file or `packed-refs` holds for a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefValue {
    Missing,
    Object(ObjectId),
    Symbolic(RefName),
    Unreadable(Unread),
}

/// Returns the path of a ref's loose file. Names that Git does not accept are refused, as they could lead out
/// of the Git directory.
pub(crate) fn path_of(common_dir: &Path, name: &RefName) -> Result<PathBuf, StoreError> {
    if !name.is_valid() {
        return Err(StoreError::RefusedName { name: name.clone(), cause: "Git accepts no such name" });
    }
    Ok(common_dir.join(OsStr::from_bytes(name.as_bytes())))
}

/// Reads the loose file of a ref by Git's rules: a symbolic link into `refs/` is a symbolic ref, a folder is
/// a missing ref, and white space may follow the id.
pub(crate) fn read_loose(path: &Path, hex_len: usize) -> io::Result<RefValue> {
    match read_plainly(path) {
        Ok(content) => Ok(parse_loose(&content, hex_len)),
        Err(e) if e.raw_os_error() == Some(nix::libc::ELOOP) => read_linked(path, hex_len),
        Err(e) if is_absent(&e) || e.kind() == ErrorKind::IsADirectory => Ok(RefValue::Missing),
        Err(e) => Err(e),
    }
}

/// Returns the content of a file that is no symbolic link. Most refs are one short line, so one call reads
/// the whole file: a read that returns less than was asked for has reached the end. A fifo in its place is not waited
/// for.
fn read_plainly(path: &Path) -> io::Result<Vec<u8>> {
    const LINE: usize = 256;
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut content = vec![0; LINE];
    let read = loop {
        match file.read(&mut content) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    content.truncate(read);
    if read == LINE {
        file.read_to_end(&mut content)?;
    }
    Ok(content)
}

fn read_linked(path: &Path, hex_len: usize) -> io::Result<RefValue> {
    match std::fs::read_link(path) {
        Ok(target) if target.as_os_str().as_bytes().starts_with(b"refs/") => {
            return Ok(RefValue::Symbolic(RefName::new(target.into_os_string().into_vec())));
        }
        Ok(_) | Err(_) => {}
    }
    match std::fs::read(path) {
        Ok(content) => Ok(parse_loose(&content, hex_len)),
        Err(e) if is_absent(&e) || e.kind() == ErrorKind::IsADirectory => Ok(RefValue::Missing),
        Err(e) => Err(e),
    }
}

/// Returns what the file of a symbolic ref names, as Git reads it; `None` for the file of another ref.
pub(crate) fn target_of(content: &[u8]) -> Option<RefName> {
    content.strip_prefix(b"ref:").map(|target| RefName::new(target.trim_ascii()))
}

fn parse_loose(content: &[u8], hex_len: usize) -> RefValue {
    if let Some(target) = target_of(content) {
        return RefValue::Symbolic(target);
    }
    let followed_well = content.get(hex_len).is_none_or(u8::is_ascii_whitespace);
    match content.get(..hex_len).map(ObjectId::from_hex) {
        Some(Ok(id)) if followed_well && !id.is_null() => RefValue::Object(id),
        Some(_) | None if content.is_empty() => nothing("its file is empty"),
        Some(_) | None => {
            let start = &content[..content.len().min(80)];
            nothing(&format!("its file holds '{}'", start.escape_ascii()))
        }
    }
}

fn nothing(cause: &str) -> RefValue {
    RefValue::Unreadable(Unread::Content(cause.to_owned()))
}

/// True where the path, or a folder on the way to it, does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

pub(crate) struct Packed {
    content: Vec<u8>,
    sorted: bool,
    hex_len: usize,
}

impl Packed {
    /// Reads `packed-refs` as it is now; a missing file holds no refs. Where the repository itself is not there, as on a
    /// disk that was taken away, no ref is known to be missing.
    pub(crate) fn open(common_dir: &Path, hex_len: usize) -> Result<Self, StoreError> {
        let path = common_dir.join("packed-refs");
        let content = match std::fs::read(&path) {
            Ok(content) => content,
            Err(e) if is_absent(&e) => {
                let head = common_dir.join("HEAD");
                head.symlink_metadata().map_err(io_error("read", &head))?;
                Vec::new()
            }
            Err(e) => return Err(io_error("read", &path)(e)),
        };
        let first = content.split(|b| *b == b'\n').next().unwrap_or_default();
        let sorted =
            first.starts_with(b"# pack-refs with:") && first.split(|b| *b == b' ').any(|w| w == b"sorted");
        Ok(Self { content, sorted, hex_len })
    }

    /// Returns the value that the file holds for exactly this name.
    pub(crate) fn find(&self, name: &RefName) -> RefValue {
        match self.entries_from(name.as_bytes()).next() {
            Some((found, value)) if found == name.as_bytes() => value,
            Some(_) | None => RefValue::Missing,
        }
    }

    /// Returns the entries whose names start with `prefix`.
    pub(crate) fn entries_from<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = (&'a [u8], RefValue)> {
        let start = if self.sorted { self.lower_bound(prefix) } else { 0 };
        let sorted = self.sorted;
        self.content[start..]
            .split(|b| *b == b'\n')
            .filter_map(|line| self.entry(line))
            .take_while(move |(name, _)| !sorted || *name < prefix || name.starts_with(prefix))
            .filter(move |(name, _)| name.starts_with(prefix))
    }

    fn entry<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], RefValue)> {
        if line.is_empty() || line[0] == b'#' || line[0] == b'^' {
            return None;
        }
        let (hex, rest) = line.split_at_checked(self.hex_len)?;
        let name = rest.strip_prefix(b" ")?;
        let value = match ObjectId::from_hex(hex) {
            Ok(id) if !id.is_null() => RefValue::Object(id),
            Ok(_) | Err(_) => nothing("its line in packed-refs holds no object id"),
        };
        Some((name, value))
    }

    /// Returns the offset of the first line whose name does not sort before `wanted`.
    fn lower_bound(&self, wanted: &[u8]) -> usize {
        let line_start = |at: usize| match self.content[..at].iter().rposition(|b| *b == b'\n') {
            Some(newline) => newline + 1,
            None => 0,
        };
        let line_end = |at: usize| {
            self.content[at..].iter().position(|b| *b == b'\n').map_or(self.content.len(), |n| at + n + 1)
        };
        let (mut low, mut high) = (0, self.content.len());
        while low < high {
            let mut start = line_start(low + (high - low) / 2);
            // A peeled line belongs to the ref above it; the header belongs to none.
            while start > low && self.content[start] == b'^' {
                start = line_start(start - 1);
            }
            let line = &self.content[start..line_end(start)];
            match self.entry(line.strip_suffix(b"\n").unwrap_or(line)) {
                Some((name, _)) if name >= wanted => high = start,
                Some(_) | None => low = line_end(start),
            }
        }
        low
    }
}

/// Returns all refs below a prefix that ends with a slash.
pub(crate) fn scan(common_dir: &Path, prefix: &[u8], hex_len: usize) -> Result<Scan, StoreError> {
    let mut found = Vec::new();
    walk(common_dir, prefix.strip_suffix(b"/").unwrap_or(prefix), hex_len, &mut found)?;
    let packed = Packed::open(common_dir, hex_len)?;
    found.extend(packed.entries_from(prefix).map(|(name, value)| (RefName::new(name), value)));
    // Of equal names the first stays, which is the ref's own file. Nearly all are in order already.
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.dedup_by(|later, first| later.0 == first.0);
    let mut scan = Scan::default();
    for (name, value) in found {
        match value {
            RefValue::Object(id) => scan.refs.push((name, id)),
            RefValue::Unreadable(cause) => scan.unreadable.push((name, cause)),
            RefValue::Symbolic(target) if name.is_below_ours() => {
                scan.unreadable.push((name, Unread::Symbolic(target)))
            }
            RefValue::Symbolic(_) | RefValue::Missing => {}
        }
    }
    Ok(scan)
}

fn walk(
    common_dir: &Path,
    folder: &[u8],
    hex_len: usize,
    found: &mut Vec<(RefName, RefValue)>,
) -> Result<(), StoreError> {
    let path = common_dir.join(OsStr::from_bytes(folder));
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(e) if is_absent(&e) => return Ok(()),
        Err(e) => return Err(io_error("list", &path)(e)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error("list", &path))?;
        let name = [folder, b"/", entry.file_name().as_bytes()].concat();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(common_dir, &name, hex_len, found)?,
            Ok(_) => {
                let name = RefName::new(name);
                // Locks, and what editors leave behind: Git does not take them for refs either.
                if !name.is_valid() {
                    continue;
                }
                let value = match read_loose(&entry.path(), hex_len) {
                    Ok(RefValue::Missing) => continue,
                    Ok(value) => value,
                    Err(e) => RefValue::Unreadable(match e.raw_os_error() {
                        Some(number) => Unread::System(number),
                        None => Unread::Content(e.to_string()),
                    }),
                };
                found.push((name, value));
            }
            Err(e) if is_absent(&e) => {}
            Err(e) => return Err(io_error("list", &path)(e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packed_name_is_found() {
        let names: Vec<String> = (0..200).map(|i| format!("refs/heads/b{i:03}")).collect();
        for header in ["# pack-refs with: peeled fully-peeled sorted \n", "# pack-refs with: peeled \n", ""] {
            let mut content = header.as_bytes().to_vec();
            for (i, name) in names.iter().enumerate() {
                content.extend(format!("{:040x} {name}\n", i + 1).into_bytes());
                if i % 3 == 0 {
                    content.extend(format!("^{:040x}\n", i + 1000).into_bytes());
                }
            }
            let sorted = header.contains("sorted");
            let packed = Packed { content, sorted, hex_len: 40 };
            for name in &names {
                let RefValue::Object(id) = packed.find(&RefName::new(name.as_bytes())) else {
                    panic!("{name}")
                };
                assert!(name.ends_with(&format!("{:03}", id.as_bytes()[19] - 1)), "{name} {id}");
            }
            for absent in ["refs/heads/a", "refs/heads/b0005", "refs/heads/z", "refs/heads/b"] {
                assert_eq!(packed.find(&RefName::new(absent.as_bytes())), RefValue::Missing);
            }
            assert_eq!(packed.entries_from(b"refs/heads/b01").count(), 10);
        }
    }

    #[test]
    fn a_damaged_packed_line_hides_no_other_ref() {
        let id = "1".repeat(40);
        for header in ["# pack-refs with: peeled fully-peeled sorted \n", ""] {
            let damaged = format!("{} refs/heads/b\n{}\n", "x".repeat(40), "1".repeat(10));
            let content = format!("{header}{id} refs/heads/a\n{damaged}{id} refs/heads/c\n").into_bytes();
            let packed = Packed { content, sorted: !header.is_empty(), hex_len: 40 };
            let find = |name: &str| packed.find(&RefName::branch(name));
            assert_eq!(find("a"), RefValue::Object(id.parse().unwrap()));
            assert!(matches!(find("b"), RefValue::Unreadable(_)));
            assert_eq!(find("c"), RefValue::Object(id.parse().unwrap()));
            assert_eq!(find("bb"), RefValue::Missing);
            assert_eq!(packed.entries_from(b"refs/heads/").count(), 3);
        }
    }

    #[test]
    fn a_loose_file_is_read_as_git_reads_it() {
        let id = "1".repeat(40);
        let object = RefValue::Object(id.parse().unwrap());
        assert_eq!(parse_loose(format!("{id}\n").as_bytes(), 40), object);
        assert_eq!(parse_loose(id.as_bytes(), 40), object);
        assert_eq!(parse_loose(format!("{id} junk").as_bytes(), 40), object);
        assert_eq!(
            parse_loose(b"ref: refs/heads/x\n", 40),
            RefValue::Symbolic(RefName::new(&b"refs/heads/x"[..]))
        );
        for bad in ["", "x", &"0".repeat(40), &"1".repeat(39), &"1".repeat(41), &"1".repeat(64)] {
            assert!(matches!(parse_loose(bad.as_bytes(), 40), RefValue::Unreadable(_)), "{bad}");
        }
    }
}
