//! The stores that serve [`Store`](super::Store): gix, the `git` binary, and memory. All pass the same tests.

pub(crate) mod batch;
pub mod binary;
pub(crate) mod bulk;
pub(crate) mod gix_report;
pub mod gix_store;
pub mod memory;
mod small_object;

use crate::protocol::id::ObjectId;
use crate::store::{StoreError, TreeEntry};

/// Reads a tree object's content. A tree that ends within an entry, or whose entry has no mode, is an error.
fn parse_tree(id: ObjectId, raw: &[u8]) -> Result<Vec<TreeEntry>, StoreError> {
    let torn = || StoreError::Object { id, cause: "its entries cannot be read".to_owned() };
    let hash = gix_store::to_gix(id)?.kind();
    let entries = gix::objs::TreeRefIter::from_bytes(raw, hash).map(|entry| {
        let entry = entry.ok().filter(|entry| entry.mode.value() != 0).ok_or_else(torn)?;
        let (mode, name) = (u32::from(entry.mode.value()), entry.filename.to_vec());
        Ok(TreeEntry { mode, name, id: gix_store::from_gix(entry.oid)? })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K37
    #[test]
    fn a_tree_that_ends_within_an_entry_is_no_shorter_tree() {
        let id: ObjectId = "1".repeat(40).parse().unwrap();
        let first = [&b"40000 folder\0"[..], &[2; 20]].concat();
        let raw = [&first[..], b"100755 run\0", &[3; 20]].concat();
        let entries = parse_tree(id, &raw).unwrap();
        let read: Vec<_> = entries.iter().map(|e| (e.mode, &*e.name, e.id.as_bytes()[0])).collect();
        assert_eq!(read, [(0o040000, &b"folder"[..], 2), (0o100755, &b"run"[..], 3)]);
        for length in (1..raw.len()).filter(|length| *length != first.len()) {
            assert!(parse_tree(id, &raw[..length]).is_err(), "{length}");
        }
        for mode in ["", "100855", "+100644", "0"] {
            let raw = [mode.as_bytes(), b" run\0", &[3; 20]].concat();
            assert!(parse_tree(id, &raw).is_err(), "{mode}");
        }
    }
}
