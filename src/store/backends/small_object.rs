//! Loose objects that take one block of a disk whether they are compressed or not: commits, above all.
//!
//! Compressing such an object clears 400 KB of memory first, which costs more than all the rest of writing
//! it. A small object is therefore written as a zlib stream of one stored block (RFC 1950; RFC 1951, 3.2.4),
//! which every Git reads; gix compresses the larger ones. The store checks before whether the object exists.
//! Implements K42 (objects).

use crate::store::{StoreError, io_error};
use gix::objs::Kind;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of the longest file that is written without compression: a block of the usual file systems.
const FILE_MAX: usize = 4096;
/// Bytes around the content: the zlib header, the header of the stored block, and the checksum.
const AROUND: usize = 2 + 5 + 4;
/// Modulus of the checksum (RFC 1950, 8.2).
const ADLER: u32 = 65521;

/// Returns the file of an object; `None` where the object is not small.
pub(super) fn stored(kind: Kind, data: &[u8]) -> Option<Vec<u8>> {
    let header = gix::objs::encode::loose_header(kind, data.len() as u64);
    let length = header.len() + data.len();
    if length + AROUND > FILE_MAX {
        return None;
    }
    let length = u16::try_from(length).ok()?;
    // Deflate with the largest window, and no dictionary; then the last block, stored.
    let before = [&[0x78, 0x01][..], &[0x01], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
    let sum = adler32(header.iter().chain(data));
    Some([&before, &header[..], data, &sum.to_be_bytes()].concat())
}

fn adler32<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    let (a, b) = bytes.fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % ADLER;
        (a, (b + a) % ADLER)
    });
    b << 16 | a
}

/// Writes an object's file under a temporary name beside its place and renames it into place. `git prune`
/// knows by its name a temporary file that a crash left behind.
pub(super) fn place(objects: &Path, path: &Path, file: &[u8]) -> Result<(), StoreError> {
    let aside = path.with_file_name(format!("tmp_obj_{}", uuid::Uuid::new_v4().simple()));
    let made = File::options().write(true).create_new(true).mode(0o444).open(&aside);
    let written = made.and_then(|mut made| made.write_all(file));
    written.and_then(|()| std::fs::rename(&aside, path)).map_err(|error| {
        let _ = std::fs::remove_file(&aside);
        io_error("write the object to", objects)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_object_reads_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let loose = gix::odb::loose::Store::at(folder.path().to_owned(), gix::hash::Kind::Sha1);
        for data in [&b""[..], b"x", &[0xff; 1000], &[7; FILE_MAX - AROUND - "commit 4073\0".len()]] {
            let file = stored(Kind::Commit, data).unwrap();
            assert!(file.len() <= FILE_MAX);
            let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Commit, data).unwrap();
            let path = loose.object_path(&id);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            place(folder.path(), &path, &file).unwrap();
            let mut buffer = Vec::new();
            let found = loose.try_find(&id, &mut buffer).unwrap().unwrap();
            assert_eq!((found.kind, found.data), (Kind::Commit, data));
            // Nothing is left beside it.
            assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
        }
    }

    #[test]
    fn a_larger_object_is_left_to_be_compressed() {
        assert_eq!(stored(Kind::Commit, &[7; FILE_MAX - AROUND - "commit 4073\0".len() + 1]), None);
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(adler32(b"Wikipedia".iter()), 0x11e6_0398);
        assert_eq!(adler32([0xff; 4096].iter()), 0x8161_f0e2);
    }
}
