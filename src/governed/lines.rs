//! JSONL files: they are read backwards, as far as is needed, and malformed lines are skipped.
//!
//! An acceptance asks only about the last lines of the history, however long the file is.

use super::json::Object;
use super::root::Root;
use super::{GovernedError, disk, io};
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much is read at once, in bytes.
const CHUNK: u64 = 16 << 10;

/// Gives the records to `take`, the last one first, until `take` returns false.
pub(crate) fn backwards(
    root: &Root,
    path: &Path,
    mut take: impl FnMut(Object) -> bool,
) -> Result<(), GovernedError> {
    let Some(mut file) = disk::open(root, path)? else { return Ok(()) };
    let mut start = file.metadata().map_err(io("read", path))?.len();
    // The bytes from `start` on that were not given yet: the end of a line whose beginning is not read yet.
    let mut rest: Vec<u8> = Vec::new();
    while start > 0 {
        let size = CHUNK.min(start);
        start -= size;
        let mut chunk = vec![0; size as usize];
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.read_exact(&mut chunk))
            .map_err(io("read", path))?;
        chunk.append(&mut rest);
        let mut end = chunk.len();
        while let Some(at) = chunk[..end].iter().rposition(|b| *b == b'\n') {
            if let Some(record) = record(&chunk[at + 1..end])
                && !take(record)
            {
                return Ok(());
            }
            end = at;
        }
        chunk.truncate(end);
        rest = chunk;
    }
    if let Some(record) = record(&rest) {
        take(record);
    }
    Ok(())
}

/// Returns all records, the first one first.
pub(crate) fn all(root: &Root, path: &Path) -> Result<Vec<Object>, GovernedError> {
    let mut found = Vec::new();
    backwards(root, path, |record| {
        found.push(record);
        true
    })?;
    found.reverse();
    Ok(found)
}

/// Returns how many lines of a file are not blank.
pub(crate) fn count(root: &Root, path: &Path) -> Result<usize, GovernedError> {
    let bytes = disk::read(root, path)?.unwrap_or_default();
    Ok(bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count())
}

fn record(line: &[u8]) -> Option<Object> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(record)) => Some(record),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_from_the_end_whatever_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let root = Root::new(folder.path());
        let long = "x".repeat(40 << 10);
        let text = format!("{{\"n\":1}}\nnot json\n{{\"n\":2,\"long\":\"{long}\"}}\n\n{{\"n\":3}}");
        std::fs::write(&path, text).unwrap();
        let numbers: Vec<u64> = all(&root, &path).unwrap().iter().map(|r| r["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let mut first = None;
        backwards(&root, &path, |record| {
            first = record["n"].as_u64();
            false
        })
        .unwrap();
        assert_eq!(first, Some(3));
        assert_eq!(count(&root, &path).unwrap(), 4);
    }
}
