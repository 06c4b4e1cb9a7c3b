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
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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

/// `packed-refs` as it was when it was opened: Git replaces the file, and never writes into it.
pub(crate) struct Packed {
    content: Content,
    path: PathBuf,
    hex_len: usize,
}

/// A file that is small or not sorted is read whole. Of one that is both large and sorted, those lines are read that are
/// asked for: among 100,000 refs an idle tick asks for two names.
enum Content {
    Whole(Vec<u8>),
    Sorted(File, u64),
}

/// How much of a large file one look at its middle reads, in bytes.
const BLOCK: usize = 4096;
/// A file up to this size is read whole, and so much of a larger one is read where a name may be, in bytes.
const WHOLE: u64 = 16 * 1024;

impl Packed {
    /// Opens `packed-refs` as it is now; a missing file holds no refs. Where the repository itself is not there, as on a
    /// disk that was taken away, no ref is known to be missing.
    pub(crate) fn open(common_dir: &Path, hex_len: usize) -> Result<Self, StoreError> {
        let path = common_dir.join("packed-refs");
        let content = match Content::open(&path) {
            Ok(content) => content,
            Err(e) if is_absent(&e) => {
                let head = common_dir.join("HEAD");
                head.symlink_metadata().map_err(io_error("read", &head))?;
                Content::Whole(Vec::new())
            }
            Err(e) => return Err(io_error("read", &path)(e)),
        };
        Ok(Self { content, path, hex_len })
    }

    /// Returns the value that the file holds for exactly this name.
    pub(crate) fn find(&self, name: &RefName) -> Result<RefValue, StoreError> {
        let name = name.as_bytes();
        let part = self.part(name, |other| other == name)?;
        let found = self.entries(&part, name).find(|(other, _)| *other == name);
        Ok(found.map_or(RefValue::Missing, |(_, value)| value))
    }

    /// Returns the lines that hold the names below a prefix, and perhaps some before and behind them.
    pub(crate) fn below(&self, prefix: &[u8]) -> Result<Cow<'_, [u8]>, StoreError> {
        self.part(prefix, |name| name.starts_with(prefix))
    }

    fn part(&self, first: &[u8], is_asked_for: impl Fn(&[u8]) -> bool) -> Result<Cow<'_, [u8]>, StoreError> {
        let (file, len) = match &self.content {
            Content::Whole(content) => return Ok(Cow::Borrowed(content)),
            Content::Sorted(file, len) => (file, *len),
        };
        let read = || {
            let (start, _) = self.narrow(file, 0..len, |name| name < first)?;
            let (_, end) = self.narrow(file, start..len, |name| name < first || is_asked_for(name))?;
            let mut part = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
            file.read_exact_at(&mut part, start)?;
            Ok(part)
        };
        read().map(Cow::Owned).map_err(io_error("read", &self.path))
    }

    /// Returns those entries of a part whose names start with this prefix.
    pub(crate) fn entries<'a>(
        &'a self,
        part: &'a [u8],
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], RefValue)> {
        let entries = part.split(|byte| *byte == b'\n').filter_map(|line| self.entry(line));
        entries.filter(move |(name, _)| name.starts_with(prefix))
    }

    /// Looks for the line up to which names are `before`: returns the start of a line that is before, or the range's, and
    /// the start of a line that is not, or the range's end. They are [`WHOLE`] apart at most, but where a line is longer
    /// than a block.
    fn narrow(
        &self,
        file: &File,
        range: Range<u64>,
        before: impl Fn(&[u8]) -> bool,
    ) -> io::Result<(u64, u64)> {
        let (mut low, mut high) = (range.start, range.end);
        let mut block = [0; BLOCK];
        while high - low > WHOLE {
            let middle = low + (high - low) / 2;
            file.read_exact_at(&mut block, middle)?;
            let Some((at, name)) = self.first_in(&block) else { break };
            match before(name) {
                true => low = middle + at as u64,
                false => high = middle + at as u64,
            }
        }
        Ok((low, high))
    }

    /// Returns the first entry that is whole in a block, which begins somewhere in a line, and where its line starts.
    fn first_in<'a>(&self, block: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let starts = block.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let mut lines = starts.map_while(|start| {
            let end = block[start..].iter().position(|byte| *byte == b'\n')?;
            Some((start, &block[start..start + end]))
        });
        lines.find_map(|(start, line)| self.entry(line).map(|(name, _)| (start, name)))
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
}

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        if len > WHOLE {
            let mut start = [0; BLOCK];
            file.read_exact_at(&mut start, 0)?;
            if says_sorted(&start) {
                return Ok(Self::Sorted(file, len));
            }
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(Self::Whole(content))
    }
}

/// True where the header of `packed-refs` says that its lines are sorted by name.
fn says_sorted(content: &[u8]) -> bool {
    let first = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"# pack-refs with:") && first.split(|byte| *byte == b' ').any(|word| word == b"sorted")
}

/// Returns all refs below a prefix that ends with a slash.
pub(crate) fn scan(common_dir: &Path, prefix: &[u8], hex_len: usize) -> Result<Scan, StoreError> {
    let mut found = Vec::new();
    walk(common_dir, prefix.strip_suffix(b"/").unwrap_or(prefix), hex_len, &mut found)?;
    let packed = Packed::open(common_dir, hex_len)?;
    let part = packed.below(prefix)?;
    found.extend(packed.entries(&part, prefix).map(|(name, value)| (RefName::new(name), value)));
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

    /// Writes `packed-refs` below a folder of its own, and opens it.
    fn packed(content: &[u8]) -> Packed {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("packed-refs"), content).unwrap();
        Packed::open(dir.path(), 40).unwrap()
    }

    fn count_below(packed: &Packed, prefix: &[u8]) -> usize {
        packed.entries(&packed.below(prefix).unwrap(), prefix).count()
    }

    #[test]
    fn every_packed_name_is_found() {
        let names: Vec<String> = (0..3000).map(|i| format!("refs/heads/b{i:04}")).collect();
        let headers = ["# pack-refs with: peeled fully-peeled sorted \n", "# pack-refs with: peeled \n", ""];
        for (header, count, step) in headers.into_iter().flat_map(|h| [(h, 150, 1), (h, 3000, 7)]) {
            let mut content = header.as_bytes().to_vec();
            for (i, name) in names[..count].iter().enumerate() {
                content.extend(format!("{:040x} {name}\n", i + 1).into_bytes());
                if i % 3 == 0 {
                    content.extend(format!("^{:040x}\n", i + 10_000).into_bytes());
                }
            }
            let packed = packed(&content);
            let is_read_in_parts = header.contains("sorted") && count == 3000;
            assert_eq!(matches!(packed.content, Content::Sorted(..)), is_read_in_parts, "{header}{count}");
            let find = |name: &str| packed.find(&RefName::new(name.as_bytes())).unwrap();
            for (i, name) in names[..count].iter().enumerate().step_by(step) {
                assert_eq!(
                    find(name),
                    RefValue::Object(format!("{:040x}", i + 1).parse().unwrap()),
                    "{name}"
                );
            }
            for absent in
                ["refs/heads/a", "refs/heads/b00005", "refs/heads/b1499x", "refs/heads/z", "refs/heads/b"]
            {
                assert_eq!(find(absent), RefValue::Missing, "{absent}");
            }
            for (prefix, found) in
                [("b01", count.min(200) - 100), ("b0", count.min(1000)), ("", count), ("c", 0)]
            {
                let prefix = format!("refs/heads/{prefix}");
                assert_eq!(count_below(&packed, prefix.as_bytes()), found, "{header}{count} {prefix}");
            }
        }
    }

    #[test]
    fn a_line_longer_than_a_block_hides_no_ref() {
        let long = format!("refs/heads/m{}", "x".repeat(3 * BLOCK));
        let mut content = b"# pack-refs with: peeled fully-peeled sorted \n".to_vec();
        let names = (0..100).map(|i| format!("refs/heads/a{i:03}")).chain([long]);
        for name in names.chain((0..100).map(|i| format!("refs/heads/z{i:03}"))) {
            content.extend(format!("{} {name}\n", "1".repeat(40)).into_bytes());
        }
        let packed = packed(&content);
        assert!(matches!(packed.content, Content::Sorted(..)));
        assert_eq!(count_below(&packed, b"refs/heads/"), 201);
        for name in ["a000", "a099", "z000", "z099"] {
            assert_ne!(packed.find(&RefName::branch(name)).unwrap(), RefValue::Missing, "{name}");
        }
    }

    #[test]
    fn a_damaged_packed_line_hides_no_other_ref() {
        let id = "1".repeat(40);
        for header in ["# pack-refs with: peeled fully-peeled sorted \n", ""] {
            let damaged = format!("{} refs/heads/b\n{}\n", "x".repeat(40), "1".repeat(10));
            let content = format!("{header}{id} refs/heads/a\n{damaged}{id} refs/heads/c\n").into_bytes();
            let packed = packed(&content);
            let find = |name: &str| packed.find(&RefName::branch(name)).unwrap();
            assert_eq!(find("a"), RefValue::Object(id.parse().unwrap()));
            assert!(matches!(find("b"), RefValue::Unreadable(_)));
            assert_eq!(find("c"), RefValue::Object(id.parse().unwrap()));
            assert_eq!(find("bb"), RefValue::Missing);
            assert_eq!(count_below(&packed, b"refs/heads/"), 3);
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
