//! Many commits, read fast: in the order in which they lie in their packs, and by two threads.
//!
//! Reading a delta-heavy pack in name order unpacks the same delta bases again and again; in pack order each
//! base is still at hand (3.5 times as fast with 10,000 branches). The order is only a hint: an object that
//! is not found in a pack of the folder (it is loose, in an alternate, or its pack was just removed) comes
//! last and is read all the same.
//!
//! Unpacking is most of the work of a look at many heads. The second thread does nothing else, with an object
//! database of its own: where two threads use a cold one, gix may report to one of them that an object is missing.
//! What that thread can't read is read again by the first, whose word counts.

use super::gix_store::{keep_delta_bases, read_raw};
use crate::protocol::id::ObjectId;
use crate::store::{Commit, StoreError, commit};
use gix::objs::Kind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// With fewer objects than this, sorting costs more than it saves.
const WORTH_SORTING: usize = 64;

/// With fewer commits than this, starting a thread and opening its object database cost more than they save: 1,000
/// took 7 ms instead of 6, and 10,000 took 30 instead of 40.
const WORTH_A_THREAD: usize = 4096;

/// How many commits a thread takes at a time: neighbors in a pack often share their delta base.
const TAKEN: usize = 64;

/// How many batches of [`TAKEN`] commits may wait for the first thread.
const AHEAD: usize = 8;

/// The second thread unpacks no object that is larger than this, and no more into a batch that has so many bytes: what
/// waits is bounded, whatever was pushed.
const BATCH_MAX: usize = 256 << 10;

/// What the second thread unpacked: which commits, by their indexes, their contents one after the other, and where
/// each ends. An empty content stands for a commit that this thread did not read.
struct Unpacked<'a> {
    taken: &'a [usize],
    contents: Vec<u8>,
    ends: Vec<usize>,
}

/// Reads commits, and hands each to `visit` once, with its index into `ids`, in no order that a caller may rely on.
/// Both `visit` and `read`, which reads one commit, are called by the caller's thread. The second thread opens its
/// object database with `open`.
pub(super) fn read_commits(
    order: &[usize],
    ids: &[ObjectId],
    open: impl FnOnce() -> std::io::Result<gix::odb::Handle> + Send,
    read: impl Fn(ObjectId) -> Result<Commit, StoreError>,
    mut visit: impl FnMut(usize, Result<Commit, StoreError>),
) {
    let is_worth_it = order.len() >= WORTH_A_THREAD
        && std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    if !is_worth_it {
        order.iter().for_each(|&at| visit(at, read(ids[at])));
        return;
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let rest = order.get(next.fetch_add(TAKEN, Ordering::Relaxed)..)?;
        Some(&rest[..rest.len().min(TAKEN)]).filter(|taken| !taken.is_empty())
    };
    std::thread::scope(|scope| {
        let (ready, unpacked) = mpsc::sync_channel(AHEAD);
        let second = move || {
            let Ok(objects) = open() else { return };
            while let Some(taken) = take() {
                if ready.send(unpack(&objects, ids, taken)).is_err() {
                    return;
                }
            }
        };
        // Where the system starts no thread, nothing is unpacked ahead, and this thread reads all commits.
        let _ = std::thread::Builder::new().spawn_scoped(scope, second);
        let visit_unpacked = |unpacked: Unpacked<'_>, visit: &mut dyn FnMut(usize, _)| {
            let mut from = 0;
            for (&at, end) in unpacked.taken.iter().zip(unpacked.ends) {
                let commit = commit::parse(ids[at], &unpacked.contents[from..end]);
                visit(at, commit.map_or_else(|_| read(ids[at]), Ok));
                from = end;
            }
        };
        while let Some(taken) = take() {
            taken.iter().for_each(|&at| visit(at, read(ids[at])));
            unpacked.try_iter().for_each(|some| visit_unpacked(some, &mut visit));
        }
        unpacked.iter().for_each(|some| visit_unpacked(some, &mut visit));
    });
}

fn unpack<'a>(objects: &impl gix::objs::Find, ids: &[ObjectId], taken: &'a [usize]) -> Unpacked<'a> {
    let mut unpacked = Unpacked { taken, contents: Vec::new(), ends: Vec::with_capacity(taken.len()) };
    for &at in taken {
        if unpacked.contents.len() < BATCH_MAX
            && let Ok(content) = read_raw(objects, ids[at], Kind::Commit)
        {
            unpacked.contents.extend(content);
        }
        unpacked.ends.push(unpacked.contents.len());
    }
    unpacked
}

/// Opens the object database of another one's folder once more, for the second thread.
pub(super) fn open_again(
    objects_dir: &Path,
    hash: gix::hash::Kind,
    use_multi_pack_index: bool,
) -> std::io::Result<gix::odb::Handle> {
    let options = gix::odb::store::init::Options {
        use_multi_pack_index,
        alloc_limit_bytes: Some(BATCH_MAX),
        // The folder is absolute, so that this resolves nothing, and the process's own folder may be gone.
        current_dir: Some(objects_dir.to_owned()),
        ..Default::default()
    };
    // No replacements are given: an id stands for the content that was hashed.
    let mut objects = gix::odb::at_opts(objects_dir, hash, [], options)?;
    keep_delta_bases(&mut objects);
    Ok(objects)
}

/// Returns the indexes into `ids` in reading order, each once.
pub(super) fn pack_order(objects_dir: &Path, hash: gix::hash::Kind, ids: &[ObjectId]) -> Vec<usize> {
    if ids.len() < WORTH_SORTING {
        return (0..ids.len()).collect();
    }
    let mut places: Vec<(usize, u64, usize)> = (0..ids.len()).map(|at| (usize::MAX, 0, at)).collect();
    for (number, path) in index_files(objects_dir).into_iter().enumerate() {
        let Ok(index) = gix::odb::pack::index::File::at(&path, hash) else { continue };
        for place in places.iter_mut().filter(|place| place.0 == usize::MAX) {
            let Ok(id) = gix::ObjectId::try_from(ids[place.2].as_bytes()) else { continue };
            if let Some(entry) = index.lookup(id) {
                *place = (number, index.pack_offset_at_index(entry), place.2);
            }
        }
    }
    places.sort_unstable();
    places.into_iter().map(|(_, _, at)| at).collect()
}

fn index_files(objects_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(objects_dir.join("pack")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|e| e == "idx")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_second_object_database_each_commit_is_read_once_all_the_same() {
        let ids: Vec<_> = (0..WORTH_A_THREAD as u32 + 7)
            .map(|n| ObjectId::from_bytes(&[[0; 16].as_slice(), &n.to_be_bytes()].concat()).unwrap())
            .collect();
        let order: Vec<_> = (0..ids.len()).rev().collect();
        let closed = || Err(std::io::Error::other("it can't be opened"));
        let read = |id| Err(StoreError::Object { id, cause: "it is missing".to_owned() });
        let mut seen = vec![0; ids.len()];
        read_commits(&order, &ids, closed, read, |at, commit| {
            assert!(matches!(commit, Err(StoreError::Object { id, .. }) if id == ids[at]));
            seen[at] += 1;
        });
        assert!(seen.iter().all(|times| *times == 1));
    }
}
