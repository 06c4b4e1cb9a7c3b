//! The order in which many objects are read fastest: as they lie in their packs.
//!
//! Reading a delta-heavy pack in name order unpacks the same delta bases again and again; in pack order each
//! base is still at hand (3.5 times as fast with 10,000 branches). The order is only a hint: an object that
//! is not found in a pack of the folder (it is loose, in an alternate, or its pack was just removed) comes
//! last and is read all the same.

use crate::protocol::id::ObjectId;
use std::path::{Path, PathBuf};

/// With fewer objects than this, sorting costs more than it saves.
const WORTH_SORTING: usize = 64;

/// Returns the indexes into `ids` in reading order, each once.
pub(crate) fn pack_order(objects_dir: &Path, hash: gix::hash::Kind, ids: &[ObjectId]) -> Vec<usize> {
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
