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

use super::gix_store::{DELTA_BASES, read_raw};
use crate::protocol::id::ObjectId;
use crate::store::{Commit, StoreError, commit};
use gix::objs::Kind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// With fewer objects than this, sorting costs more than it saves.
const WORTH_SORTING: usize = 64;

/// With fewer commits than this, starting a thread and opening its object database cost more than they save: of
/// 1,000 a millisecond of six more, of 10,000 ten of forty less.
const WORTH_A_THREAD: usize = 4096;

/// How many commits a thread takes at a time: neighbors in a pack often share their delta base.
const TAKEN: usize = 64;

/// How many times [`TAKEN`] commits may be unpacked before the first thread has asked for them.
const AHEAD: usize = 8;

/// What the second thread unpacked: which commits, by their indexes, their contents one after the other, and where
/// each ends. A content without bytes could not be read.
struct Unpacked<'a> {
    taken: &'a [usize],
    contents: Vec<u8>,
    ends: Vec<usize>,
}

/// Reads commits, and hands each to `visit` once, with its index into `ids`, in an order that nobody may rely on.
/// `read` uses the object database of the caller's thread.
pub(super) fn read_commits(
    objects_dir: &Path,
    hash: gix::hash::Kind,
    ids: &[ObjectId],
    read: impl Fn(ObjectId) -> Result<Commit, StoreError>,
    mut visit: impl FnMut(usize, Result<Commit, StoreError>),
) {
    let order = pack_order(objects_dir, hash, ids);
    if order.len() < WORTH_A_THREAD {
        order.into_iter().for_each(|at| visit(at, read(ids[at])));
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
            let Ok(objects) = open_objects(objects_dir, hash) else { return };
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
        let content = read_raw(objects, ids[at], Kind::Commit).unwrap_or_default();
        unpacked.contents.extend(content);
        unpacked.ends.push(unpacked.contents.len());
    }
    unpacked
}

/// Opens an object database for one thread. It follows no replacements, as the store's own does not.
fn open_objects(objects_dir: &Path, hash: gix::hash::Kind) -> std::io::Result<gix::odb::Handle> {
    let mut objects = gix::odb::at_opts(objects_dir, hash, [], gix::odb::store::init::Options::default())?;
    objects.set_pack_cache(|| Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(DELTA_BASES)));
    Ok(objects)
}

/// Returns the indexes into `ids` in reading order, each once.
fn pack_order(objects_dir: &Path, hash: gix::hash::Kind, ids: &[ObjectId]) -> Vec<usize> {
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
