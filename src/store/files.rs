//! The files of a tree by their paths, read within bounds and written as one tree.
//!
//! A tree that came by a push may hold anything: an entry that is no plain file or whose name is not UTF-8,
//! more files than are asked for, or more bytes, is refused before it is read. A file that a tree had
//! already is not written again.

use super::{FOLDER, ObjectId, Part, Store, StoreError, TreeEntry};
use std::collections::{BTreeMap, HashMap};

/// Files by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// How much of a tree is read.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most files, and also most folders.
    pub files: usize,
    /// Most bytes of one file.
    pub file: u64,
    /// Most bytes of all.
    pub all: u64,
}

/// Deepest nesting of folders.
const DEPTH_MAX: usize = 16;
const PLAIN: [u32; 2] = [0o100644, 0o100755];

/// Why the files of a tree are not read.
#[derive(Debug, thiserror::Error)]
pub enum NoFiles {
    /// An entry is no plain file, or its name is not UTF-8.
    #[error("'{0}' is no plain file")]
    NotPlain(String),
    /// A file is larger than what is read; its path and bytes.
    #[error("'{0}' has {1} bytes")]
    TooLarge(String, u64),
    /// There are more files, folders or bytes than are read, or folders are nested too deep.
    #[error("there are more files, or larger ones, than are read")]
    TooMany,
    /// An object can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files that were read from a tree, with what it takes to write them again.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// The files that were read.
    pub files: Files,
    blobs: HashMap<String, ObjectId>,
}

impl Read {
    /// Returns the content of each file by the id of its blob.
    pub fn contents(self) -> HashMap<ObjectId, Vec<u8>> {
        let Self { files, blobs } = self;
        files.into_iter().filter_map(|(path, content)| Some((*blobs.get(&path)?, content))).collect()
    }
}

/// Reads the files of a tree.
///
/// # Errors
/// [`NoFiles`]: then no file is returned.
pub fn read_files(store: &dyn Store, tree: ObjectId, bounds: Bounds) -> Result<Read, NoFiles> {
    read_files_with(store, tree, bounds, &HashMap::new())
}

/// Reads the files of a tree as [`read_files`] does. Blobs whose content is `known` are not read again.
///
/// # Errors
/// [`NoFiles`]: then no file is returned.
pub fn read_files_with(
    store: &dyn Store,
    tree: ObjectId,
    bounds: Bounds,
    known: &HashMap<ObjectId, Vec<u8>>,
) -> Result<Read, NoFiles> {
    let mut read = Read::default();
    let mut folders = vec![(tree, String::new(), 0)];
    let (mut seen, mut bytes) = (0, 0);
    while let Some((tree, above, depth)) = folders.pop() {
        seen += 1;
        if seen > bounds.files || depth > DEPTH_MAX {
            return Err(NoFiles::TooMany);
        }
        for TreeEntry { mode, name, id } in store.read_tree(tree)? {
            let lossy = || format!("{above}{}", String::from_utf8_lossy(&name));
            let Ok(text) = std::str::from_utf8(&name) else { return Err(NoFiles::NotPlain(lossy())) };
            let path = format!("{above}{text}");
            if mode == FOLDER {
                folders.push((id, path + "/", depth + 1));
                continue;
            }
            if !PLAIN.contains(&mode) {
                return Err(NoFiles::NotPlain(path));
            }
            let known = known.get(&id);
            let size = known.map_or_else(|| store.blob_size(id), |content| Ok(content.len() as u64))?;
            bytes += size;
            if size > bounds.file {
                return Err(NoFiles::TooLarge(path, size));
            }
            if read.files.len() >= bounds.files || bytes > bounds.all {
                return Err(NoFiles::TooMany);
            }
            let content = known.map_or_else(|| store.read_blob(id), |content| Ok(content.clone()))?;
            read.files.insert(path.clone(), content);
            read.blobs.insert(path, id);
        }
    }
    Ok(read)
}

/// Writes these files as a tree. Those that `before` has with the same content are not written again.
///
/// # Errors
/// Those of the store; a path that no tree can have.
pub fn write_files(store: &dyn Store, files: &Files, before: &Read) -> Result<ObjectId, StoreError> {
    let mut written = BTreeMap::new();
    for (path, content) in files {
        let known = before.blobs.get(path).filter(|_| before.files.get(path) == Some(content));
        let id = match known {
            Some(id) => *id,
            None => store.write_part(Part::Blob, content)?,
        };
        written.insert(path.as_str(), id);
    }
    write_folder(store, &written, 0)
}

/// Writes what is below a folder whose path, with its last slash, has `above` bytes.
fn write_folder(
    store: &dyn Store,
    files: &BTreeMap<&str, ObjectId>,
    above: usize,
) -> Result<ObjectId, StoreError> {
    let refused = || StoreError::RefusedCommit { cause: "a path that no tree can have" };
    let mut folders: BTreeMap<&str, BTreeMap<&str, ObjectId>> = BTreeMap::new();
    // Git sorts a folder as if its name ended with a slash.
    let mut entries: BTreeMap<Vec<u8>, (u32, &str, ObjectId)> = BTreeMap::new();
    for (path, id) in files {
        let below = path.get(above..).ok_or_else(refused)?;
        match below.split_once('/') {
            Some((folder, _)) => drop(folders.entry(folder).or_default().insert(path, *id)),
            None => drop(entries.insert(below.as_bytes().to_vec(), (PLAIN[0], below, *id))),
        }
    }
    for (folder, files) in folders {
        if entries.contains_key(folder.as_bytes()) {
            return Err(refused());
        }
        let id = write_folder(store, &files, above + folder.len() + 1)?;
        entries.insert([folder.as_bytes(), b"/"].concat(), (FOLDER, folder, id));
    }
    let mut raw = Vec::new();
    for (mode, name, id) in entries.into_values() {
        if name.is_empty() || matches!(name, "." | "..") || name.contains('\0') {
            return Err(refused());
        }
        raw.extend_from_slice(format!("{mode:o} {name}\0").as_bytes());
        raw.extend_from_slice(id.as_bytes());
    }
    store.write_part(Part::Tree, &raw)
}
