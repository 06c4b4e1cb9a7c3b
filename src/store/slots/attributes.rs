//! Which attributes apply to a slot, and whether gix or Git can write its files as they ask.
//!
//! gix does not know `working-tree-encoding`, and starts filter drivers in the user's working tree. Where a
//! file of attributes names either, Git itself fills the slot. Finding that out costs no more than a look at
//! the names in the index. Implements K14 (byte for byte), K25, K45.

use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use gix::bstr::{BString, ByteSlice};
use gix::index::State;
use std::path::PathBuf;

/// Most bytes of a file of attributes: Git ignores a longer one too.
const LONGEST: u64 = 100 << 20;

/// Returns the path of every `.gitattributes` in an index, with the id of its content.
pub(crate) fn of_index(index: &State) -> Vec<(BString, ObjectId)> {
    let all = index.entries().iter().map(|entry| (entry.path(index), entry.id));
    let named = all.filter(|(path, _)| path.rsplit(|b| *b == b'/').next() == Some(b".gitattributes"));
    named
        .filter_map(|(path, id)| {
            Some((path.to_owned(), crate::store::backends::gix_store::from_gix(&id).ok()?))
        })
        .collect()
}

/// True where Git must write the files of this index, as gix can't.
pub(crate) fn ask_for_git(repo: &Repository, gix: &gix::Repository, index: &State) -> bool {
    let inside = of_index(index).into_iter().any(|(_, id)| {
        let found = gix.find_object(gix::ObjectId::from_bytes_or_panic(id.as_bytes()));
        // Where a blob can't be read, Git is left to report it.
        found.map_or(true, |blob| names_either(&blob.data))
    });
    inside || beside(repo, gix).into_iter().any(|path| is_named_in(&path))
}

/// Returns the paths of the files of attributes outside of any tree.
fn beside(repo: &Repository, gix: &gix::Repository) -> Vec<PathBuf> {
    use gix::attrs::Source;
    let mut env = |name: &str| std::env::var_os(name);
    let own = gix.config_snapshot().trusted_path("core.attributesFile").ok().flatten();
    let own = own.or_else(|| Source::Git.storage_location(&mut env));
    let system = Source::System.storage_location(&mut env);
    own.into_iter().chain(system).chain([repo.common_dir.join("info/attributes")]).collect()
}

fn is_named_in(path: &std::path::Path) -> bool {
    let content = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= LONGEST);
    content.is_some_and(|_| std::fs::read(path).map_or(true, |content| names_either(&content)))
}

fn names_either(content: &[u8]) -> bool {
    ["working-tree-encoding", "filter"].iter().any(|name| content.contains_str(name))
}
