//! Finds what lies below a folder at paths that match patterns, without following any link.
//!
//! A pattern is a path from the top; `*`, `?` and `[..]` stand for characters of one name, `**` for any
//! number of folders. The content of what matches is not searched any further. Nothing below a `.git` ever
//! matches. The search is bounded, as a command may have made what is searched. Implements K58.

use crate::store::StoreError;
use crate::store::beneath::{BeneathError, Kind, Root, found};
use gix::bstr::ByteSlice;
use gix::glob::wildmatch::Mode;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most entries of one folder.
const ENTRIES_MAX: usize = 100_000;
/// Most folders that `**` goes through in one search.
const FOLDERS_MAX: usize = 200_000;
/// How deep folders in folders are searched: a command can nest them deeper than the stack allows.
const DEPTH_MAX: usize = 256;
/// Most paths that match.
const MATCHES_MAX: usize = 10_000;
/// Most entries whose sizes are added up.
const COUNT_MAX: usize = 5_000_000;

/// True for a valid pattern of [`find`]: a path from the top that stays below it, and out of `.git`.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    let mut names = pattern.trim_end_matches('/').split('/');
    !pattern.starts_with('/') && names.all(|name| !matches!(name, "" | "." | ".." | ".git"))
}

/// Returns the files and folders below `base` that match, relative to it. What can't be read does not match,
/// nor does what lies deeper than 256 folders. At most 10,000 paths match, and none any more once `stop` is
/// set.
pub(super) fn find(
    root: &Root,
    base: &Path,
    patterns: &[String],
    stop: &AtomicBool,
) -> BTreeMap<PathBuf, Kind> {
    let mut found = BTreeMap::new();
    let mut folders = 0;
    for pattern in patterns {
        let names: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
        if is_pattern(pattern) {
            Walk { root, base, stop, found: &mut found, folders: &mut folders }.walk(
                Path::new(""),
                &names,
                0,
            );
        }
    }
    // Where one match lies within another, the outer one is enough.
    let inner = |path: &PathBuf| path.ancestors().skip(1).any(|outer| found.contains_key(outer));
    let inner: BTreeSet<PathBuf> = found.keys().filter(|path| inner(path)).cloned().collect();
    found.retain(|path, _| !inner.contains(path));
    found
}

struct Walk<'a> {
    root: &'a Root,
    base: &'a Path,
    stop: &'a AtomicBool,
    found: &'a mut BTreeMap<PathBuf, Kind>,
    folders: &'a mut usize,
}

impl Walk<'_> {
    fn walk(&mut self, at: &Path, names: &[&str], depth: usize) {
        let Some((name, rest)) = names.split_first() else { return };
        if depth > DEPTH_MAX || self.found.len() >= MATCHES_MAX || self.stop.load(Ordering::Relaxed) {
            return;
        }
        if *name == "**" {
            self.walk(at, rest, depth);
            *self.folders += 1;
            if *self.folders < FOLDERS_MAX && !rest.is_empty() {
                for (below, kind) in self.list(at) {
                    if kind == Kind::Folder && !self.found.contains_key(&below) {
                        self.walk(&below, names, depth + 1);
                    }
                }
            }
            return;
        }
        let matching = match name.contains(['*', '?', '[', '\\']) {
            false => {
                let path = at.join(name);
                let kind = self.root.kind(&self.base.join(&path)).ok().flatten();
                kind.map(|kind| (path, kind)).into_iter().collect()
            }
            true => {
                let matches = |path: &Path| {
                    let last = path.file_name().unwrap_or_default().as_bytes();
                    gix::glob::wildmatch(name.as_bytes().as_bstr(), last.as_bstr(), Mode::empty())
                };
                let mut listed = self.list(at);
                listed.retain(|(path, _)| matches(path));
                listed
            }
        };
        for (path, kind) in matching {
            match (kind, rest.is_empty()) {
                (Kind::File | Kind::Folder, true) if self.found.len() < MATCHES_MAX => {
                    self.found.insert(path, kind);
                }
                (Kind::Folder, false) => self.walk(&path, rest, depth + 1),
                // A link may lead anywhere, and reading a fifo would block.
                (Kind::File | Kind::Folder, _) | (Kind::Link | Kind::Other, _) => {}
            }
        }
    }

    fn list(&self, at: &Path) -> Vec<(PathBuf, Kind)> {
        let entries = self.root.list(&self.base.join(at), ENTRIES_MAX).unwrap_or_default();
        let entries = entries.into_iter().filter(|entry| entry.name != ".git");
        entries.map(|entry| (at.join(entry.name), entry.kind)).collect()
    }
}

/// Adds the regular files at or below `path` to `into`, relative to the root.
pub(super) fn files(root: &Root, path: &Path, into: &mut Vec<PathBuf>) -> Result<(), BeneathError> {
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        match root.kind(&path)? {
            Some(Kind::File) => into.push(path),
            Some(Kind::Folder) => {
                let entries = found(root.list(&path, ENTRIES_MAX))?.unwrap_or_default();
                left.extend(entries.into_iter().map(|entry| path.join(entry.name)));
            }
            Some(Kind::Link | Kind::Other) | None => {}
        }
    }
    Ok(())
}

/// Returns how many bytes a file or folder takes on disk. No link is followed.
pub(super) fn bytes_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut count, mut folders) = (0_u64, 0, vec![path.to_owned()]);
    while let Some(path) = folders.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        bytes += meta.blocks() * 512;
        count += 1;
        if meta.is_dir() && count < COUNT_MAX {
            folders.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        }
    }
    bytes
}

/// Returns the store error for a failure to handle something in a slot.
pub(super) fn cannot(error: BeneathError) -> StoreError {
    let (BeneathError::Refused { what, path, .. } | BeneathError::Io { what, path, .. }) = &error;
    crate::store::io_error(what, &path.clone())(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K58
    #[test]
    fn patterns_match_from_the_top_and_go_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        for path in
            ["target/debug", "web/node_modules/x", "a/web/node_modules", "out/node_modules", ".git/target"]
        {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        std::fs::write(folder.path().join(".env.local"), "x").unwrap();
        std::fs::write(folder.path().join("a/target"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("out"), folder.path().join("web/out")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("out"), folder.path().join("link")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let found = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            let found = find(&root, Path::new(""), &patterns, &AtomicBool::new(false)).into_keys();
            found.map(|p| p.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found(&["target/", "node_modules", "target/debug"]), ["target"]);
        assert_eq!(
            found(&["*/node_modules", ".env*"]),
            [".env.local", "out/node_modules", "web/node_modules"]
        );
        assert_eq!(
            found(&["**/node_modules", "**/target"]),
            ["a/target", "a/web/node_modules", "out/node_modules", "target", "web/node_modules"]
        );
        assert_eq!(
            found(&["link/node_modules", "link", "web/out/node_modules", ".git/target", "*/../target"]),
            [""; 0]
        );
        assert_eq!(found(&["missing", "**", "", "/target"]), [""; 0]);
        for wrong in ["", "/", "/x", "a//b", "../x", "a/..", ".git", ".git/hooks", "a/.git/x"] {
            assert!(!is_pattern(wrong), "{wrong}");
        }
        assert!(is_pattern("target/") && is_pattern("**/x") && is_pattern(".gitignored"));
    }

    /// K58: whatever a command made, the search neither overflows the stack nor takes too long.
    #[test]
    fn deep_and_many_folders_are_gone_through_as_far_as_they_may() {
        let folder = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", 1500).collect();
        std::fs::create_dir_all(folder.path().join(&deep).join("target")).unwrap();
        std::fs::create_dir_all(folder.path().join("d/d/target")).unwrap();
        for n in 0..MATCHES_MAX + 100 {
            std::fs::create_dir_all(folder.path().join(format!("m/{n}/target"))).unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        let found = |stop: bool| {
            let patterns = ["**/target".to_owned(), "m".to_owned()];
            find(&root, Path::new(""), &patterns, &AtomicBool::new(stop)).len()
        };
        let [none, most] = std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small.spawn_scoped(scope, || [found(true), found(false)]).unwrap().join().unwrap()
        });
        assert_eq!((none, most), (0, MATCHES_MAX));
    }
}
