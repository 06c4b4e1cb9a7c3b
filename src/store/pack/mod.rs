//! Workflow packs: the `.aynig/` folder of another repository, fetched, judged and put in place.
//!
//! A pack is fetched into a bare repository of its own, which is deleted with the [`Pack`]; nothing of it is
//! checked out or run. A pack may hold regular files, and symbolic links that stay inside `.aynig/`: one with
//! anything else is refused as a whole. What it has below `.aynig/logs/` is left out. Uncommitted work is
//! never written over: placing is refused then. Each file has its old content or its new one, whenever the
//! process is killed.
//!
//! Calling sequence: [`place::Site::take`], [`Pack::fetch`], [`place::Plan::new`], [`place::Plan::stat`],
//! [`place::Plan::carry_out`]. Implements git-aynig-install(1).

mod fetch;
pub(crate) mod place;
pub(crate) mod readme;

use crate::protocol::id::ObjectId;
use crate::protocol::text::{escape, shown_url};
use crate::store::StoreError;
use crate::store::git::command::Git;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Where a pack comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The address as `git` gets it: a URL, or an absolute path.
    pub(crate) url: OsString,
    /// A branch, a tag or a full commit id; `None` stands for what the repository's HEAD names.
    pub(crate) reference: Option<String>,
    /// The folder that holds `.aynig/`, without slashes at its ends; empty for the repository itself.
    pub(crate) folder: String,
}

/// The kind of file that an entry becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// A file that can be executed.
    Executable,
    Link,
}

impl Kind {
    /// Returns the file mode that stands for this kind in a tree.
    fn mode(self) -> &'static str {
        match self {
            Kind::Plain => "100644",
            Kind::Executable => "100755",
            Kind::Link => "120000",
        }
    }
}

/// One file of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// The path below `.aynig/`; each of its segments is safe.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// The blob with the file's content.
    id: ObjectId,
}

/// A pack that was fetched and found to be sound.
#[derive(Debug)]
pub(crate) struct Pack {
    /// The commit that the pack was taken from.
    pub(crate) commit: ObjectId,
    /// The pack's files, in the order of their paths.
    pub(crate) files: Vec<File>,
    /// How many files the pack has below `.aynig/logs/`, which are left out.
    pub(crate) left_out: usize,
    git: Git,
    folder: Folder,
}

/// A folder that is deleted when this value is dropped.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed now is removed by `git aynig gc`.
        let _ = crate::store::remove_tree(&self.0);
    }
}

/// A file that no pack may bring, or that stands in the pack's way in the working tree, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The file's path below `.aynig/`; empty for `.aynig` itself.
    pub(crate) path: Vec<u8>,
    pub(crate) why: &'static str,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'.aynig/{}': {}", escape(&self.path), self.why)
    }
}

/// Why a pack was not installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackError {
    /// Git can't fetch the pack's repository.
    #[error("cannot fetch '{shown}'")]
    Fetch {
        shown: String,
        #[source]
        source: StoreError,
    },
    /// The repository has no commit.
    #[error("'{shown}' has no commit")]
    Empty { shown: String },
    /// There is no `.aynig/` where it should be.
    #[error("'{shown}' has no folder '{folder}' at {commit}")]
    NoPack {
        shown: String,
        /// The folder that was looked for.
        folder: String,
        commit: ObjectId,
    },
    /// The pack holds something that no pack may bring.
    #[error("the pack holds what is not installed")]
    Refused(Vec<Refusal>),
    /// The user's own changes in `.aynig/` are not committed: their paths, from the top of the working tree.
    #[error("'.aynig' has changes that are not committed")]
    Uncommitted(Vec<Vec<u8>>),
    /// The user has something else where the pack has a file or a folder.
    #[error("the pack does not fit over what is here")]
    InTheWay(Vec<Refusal>),
    /// Another installation holds the lock.
    #[error("cannot lock '{}': another 'git aynig install' is at work", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Origin {
    /// Returns the repository's address in a form that can be shown: without the part of a URL before an `@`,
    /// which may be a secret.
    pub(crate) fn shown(&self) -> String {
        shown_url(self.url.as_bytes())
    }

    /// Returns the path of the `.aynig` folder within the repository.
    fn pack_folder(&self) -> String {
        match self.folder.as_str() {
            "" => crate::store::commands::tree::FOLDER.to_owned(),
            folder => format!("{folder}/{}", crate::store::commands::tree::FOLDER),
        }
    }
}
