//! Workflow packs: the `.aynig/` folder of another repository, fetched, judged and put in place.
//!
//! Fetched into a bare repository of its own, which goes away with the value: nothing of it is checked out
//! or run. Taken are regular files, and symbolic links that stay inside `.aynig/`; a pack with anything else
//! is refused whole, and what it has below `.aynig/logs/` is left out. Placing is refused over work that is not
//! committed, and gives each file its old content or its new one, whatever is killed when.
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
    /// What `git` is told: a URL, or an absolute path.
    pub(crate) url: OsString,
    /// A branch, a tag or a whole commit id; `None`: what the repository's HEAD names.
    pub(crate) reference: Option<String>,
    /// The folder that holds `.aynig/`, without slashes at its ends; empty for the repository itself.
    pub(crate) folder: String,
}

/// What kind of file an entry becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// A file that can be started.
    Executable,
    Link,
}

impl Kind {
    /// Its mode in a tree.
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
    /// Its path below `.aynig/`, of safe segments.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// Its content.
    id: ObjectId,
}

/// A pack that was fetched and is sound.
#[derive(Debug)]
pub(crate) struct Pack {
    /// The commit that it is of.
    pub(crate) commit: ObjectId,
    /// Its files, by path.
    pub(crate) files: Vec<File>,
    /// Files that it has below `.aynig/logs/`, which are left out.
    pub(crate) left_out: usize,
    git: Git,
    folder: Folder,
}

/// A folder that goes away with this value.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left here is removed by 'git aynig gc'.
        let _ = crate::store::remove_tree(&self.0);
    }
}

/// A file that no pack may bring, or that is in its way here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Its path below `.aynig/`.
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
    /// Git can't fetch it.
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
    /// It holds what no pack may bring.
    #[error("the pack holds what is not installed")]
    Refused(Vec<Refusal>),
    /// Work of the user's is in the way.
    #[error("'.aynig' has changes that are not committed")]
    Uncommitted(Vec<Vec<u8>>),
    /// Files of the user's are where the pack has something else.
    #[error("the pack does not fit over what is here")]
    InTheWay(Vec<Refusal>),
    /// Another installation is at work.
    #[error("cannot lock '{}': another 'git aynig install' is at work", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Origin {
    /// The repository as it can be shown: without what a URL says before an `@`, which may be a secret.
    pub(crate) fn shown(&self) -> String {
        shown_url(self.url.as_bytes())
    }

    /// The folder of the pack, below the repository.
    fn pack_folder(&self) -> String {
        match self.folder.as_str() {
            "" => crate::store::commands::tree::FOLDER.to_owned(),
            folder => format!("{folder}/{}", crate::store::commands::tree::FOLDER),
        }
    }
}
