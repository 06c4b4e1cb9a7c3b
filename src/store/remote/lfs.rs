//! Sends the objects that Git LFS keeps beside Git before the commits whose files point to them.
//!
//! Other clones of the remote need these objects as soon as they see the commits. Git LFS sends them from its
//! `pre-push` hook, but our pushes run no hook. So `git lfs push` sends them first, by their ids. Nothing is
//! started where this repository keeps no such objects. Implements K12 (its last sentence).

use super::network::Remote;
use crate::protocol::id::ObjectId;
use crate::store::StoreError;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// The first line of a pointer, as the format's version 1 has it.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// A pointer is smaller than this many bytes.
const POINTER_MAX: usize = 1024;
/// Most ids in one call, as the arguments of a child process are limited.
const CALL_MAX: usize = 500;

/// Sends the LFS objects of `new` and its ancestors that this remote is not known to have. Each call of Git
/// LFS may take as long as `patience`.
pub(crate) fn send(remote: &Remote, new: ObjectId, patience: Duration) -> Result<(), StoreError> {
    if !remote.git.common_dir.join("lfs/objects").is_dir() {
        return Ok(());
    }
    let ids: Vec<OsString> = pointers(remote, new)?.into_iter().map(OsString::from).collect();
    for some in ids.chunks(CALL_MAX) {
        let command = remote.command().verb("lfs").args(["push", "--object-id"]);
        let output = command.args([OsStr::new(&remote.name)]).args(some).within(patience).output()?;
        if !output.status.success() {
            return Err(remote.failed("send Git LFS objects to", &output));
        }
    }
    Ok(())
}

/// Returns the ids of the LFS objects to which the files point that these commits add or change.
fn pointers(remote: &Remote, new: ObjectId) -> Result<BTreeSet<String>, StoreError> {
    let known = format!("--glob={}*", remote.tracking());
    let theirs = format!("--remotes={}", remote.name);
    let command = remote.git.here().verb("log").args(["--format=", "--raw", "-r", "-m", "--no-renames"]);
    let command = command.args(["--no-abbrev", "--diff-filter=AMT", &new.to_string(), "--not"]);
    let listed = command.args([known, theirs]).ok()?;
    // `:<mode> <mode> <old> <new> <status> TAB <path>`
    let blobs: BTreeSet<&[u8]> = listed
        .split(|b| *b == b'\n')
        .filter_map(|line| line.strip_prefix(b":")?.split(|b| *b == b' ').nth(3))
        .collect();
    if blobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let small = small_blobs(remote, &blobs)?;
    let output = remote.git.here().verb("cat-file").args(["--batch"]).stdin(small.join(&b'\n')).ok()?;
    let ids = output.split(|b| *b == b'\n').collect::<Vec<_>>();
    // After the first line of a pointer its other lines are sorted, so the id is within the next two.
    Ok(ids
        .windows(3)
        .filter(|lines| [lines[0], b"\n"].concat() == POINTER)
        .flat_map(|lines| lines[1..].iter().filter_map(|line| line.strip_prefix(b"oid sha256:")))
        .filter(|id| id.len() == 64 && id.iter().all(u8::is_ascii_hexdigit))
        .map(|id| String::from_utf8_lossy(id).into_owned())
        .collect())
}

/// Returns those blobs that are small enough to be pointers.
fn small_blobs(remote: &Remote, blobs: &BTreeSet<&[u8]>) -> Result<Vec<Vec<u8>>, StoreError> {
    let asked: Vec<u8> = blobs.iter().flat_map(|id| [id, &b"\n"[..]].concat()).collect();
    let command = remote.git.here().verb("cat-file").args(["--batch-check=%(objectname) %(objectsize)"]);
    let said = command.stdin(asked).ok()?;
    let small = said.split(|b| *b == b'\n').filter_map(|line| {
        let (id, size) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        (size.parse::<usize>().ok()? < POINTER_MAX).then(|| id.as_bytes().to_vec())
    });
    Ok(small.collect())
}
