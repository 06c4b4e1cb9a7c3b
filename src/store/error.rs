//! What can go wrong in the store: each situation by its name, and the text that reports it.

use crate::protocol::id::ObjectId;
use crate::store::{Expected, RefName};
use std::path::PathBuf;
use std::time::Duration;

/// Why the value of a ref can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// What is stored for the ref is no value; the text says what was found.
    #[error("{0}")]
    Content(String),
    /// The ref is a symbolic one, which none of the tool's own refs is.
    #[error("it is a symbolic ref to '{0}'")]
    Symbolic(RefName),
    /// The tables that hold all refs could not be read; Git's message.
    #[error("{0}")]
    Tables(String),
    /// The system could not read the ref's file; the number of the error. The file's content may be fine.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    System(i32),
}

/// What went wrong in the store. Losing a race is no error: see [`Swap`](crate::store::Swap).
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock of a ref, or of the configuration.
    #[error("cannot lock '{name}': '{}' is held (age {}s)", path.display(), age.as_secs())]
    LockHeld {
        /// The ref, or `config`.
        name: RefName,
        /// The lock file.
        path: PathBuf,
        /// The age of the lock file.
        age: Duration,
    },
    /// A ref's content is no object id and no symbolic ref, or can't be read.
    #[error("cannot read '{name}': {cause}")]
    UnreadableRef {
        /// The ref.
        name: RefName,
        /// What was found.
        cause: Unread,
    },
    /// A symbolic ref, where a ref with a value of its own is needed.
    #[error("'{name}' is a symbolic ref to '{target}'")]
    SymbolicRef {
        /// The symbolic ref.
        name: RefName,
        /// What it points to.
        target: RefName,
    },
    /// An object is missing or of another kind.
    #[error("cannot read object {id}: {cause}")]
    Object {
        /// The id of the object.
        id: ObjectId,
        /// Why it can't be read.
        cause: String,
    },
    /// A file operation failed.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// The path that it was tried on.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The ref did not hold what the swap expected. [`swap`](crate::store::refs::swap) finds out
    /// whether that is a lost race.
    #[error("cannot move '{name}': it {}, expected {}", found_text(found), expected_text(expected))]
    Moved {
        /// The ref.
        name: RefName,
        /// What the caller expected.
        expected: Expected,
        /// What the ref held; `None` where it did not exist.
        found: Option<ObjectId>,
    },
    /// A new ref's name would be a folder of another, or the other way round.
    #[error("cannot create '{name}': '{other}' is in the way")]
    NameConflict {
        /// The new ref.
        name: RefName,
        /// The ref that exists.
        other: RefName,
    },
    /// A ref that Git would not accept, or one that this tool must not delete.
    #[error("cannot use ref '{name}': {cause}")]
    RefusedName {
        /// The ref.
        name: RefName,
        /// Why it is refused.
        cause: &'static str,
    },
    /// A commit that Git would not accept.
    #[error("cannot write the commit: {cause}")]
    RefusedCommit {
        /// Why it is refused.
        cause: &'static str,
    },
    /// A repository that this store can't serve, though another can.
    #[error("cannot open '{}': {cause}", path.display())]
    Unsupported {
        /// The repository's Git directory.
        path: PathBuf,
        /// The feature that the store can't serve.
        cause: String,
    },
    /// A `git` child failed.
    #[error("git {verb} failed: {message}")]
    Git {
        /// The subcommand.
        verb: String,
        /// What the child said, in one line.
        message: String,
    },
    /// A `git` child was ended because it took too long.
    #[error("git {verb} took longer than {}s", patience.as_secs())]
    TooLong {
        /// The subcommand.
        verb: String,
        /// How long it was given.
        patience: Duration,
    },
    /// A remote did not do what was asked, or could not be asked.
    #[error("cannot {what} remote '{remote}': {failure}: {message}")]
    Remote {
        /// The remote.
        remote: String,
        /// What was tried, as a verb with its preposition.
        what: &'static str,
        /// What kind of failure it is.
        failure: RemoteFailure,
        /// What Git or the remote said, one line.
        message: String,
    },
    /// A key of the configuration, or its value, is not UTF-8, so that its meaning can't be known.
    #[error("'{key}' in the configuration is not UTF-8")]
    NotText {
        /// The key, escaped for display.
        key: String,
    },
    /// A program that the repository's own configuration names would be started, and the repository is not
    /// trusted.
    #[error("not trusted: {what} would run")]
    Untrusted {
        /// What would be started.
        what: &'static str,
    },
    /// An operation of gix failed.
    #[error("cannot {what}: {message}")]
    Gix {
        /// What was tried, as a verb.
        what: &'static str,
        /// What gix reported.
        message: String,
    },
}

/// Kinds of failures with a remote. The kinds that decisions depend on come from the exit status, from
/// porcelain output, and from reading the branch again: [`Declined`](Self::Declined), [`Busy`](Self::Busy),
/// [`InTheWay`](Self::InTheWay), [`TooLate`](Self::TooLate), [`NotConfigured`](Self::NotConfigured). The
/// others are told apart for people, by a text that a remote may choose. They are all treated alike, except
/// that [`NotAtomic`](Self::NotAtomic) is not tried again and has another exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteFailure {
    /// The remote answered, and its branch is where it was: because of a hook, a protected branch, or a lock
    /// that is held there for a moment. Trying again tells them apart.
    #[error("it declined")]
    Declined,
    /// The remote does not know the user, or knows that the user may not do this.
    #[error("authentication failed")]
    Denied,
    /// The remote can't be reached, or the connection broke.
    #[error("it could not be reached")]
    Unreachable,
    /// The remote did not answer in time.
    #[error("no answer in time")]
    TooLate,
    /// Another process holds or moved what this one was about to move: refs that are fetched into, or
    /// a branch again and again.
    #[error("it was busy")]
    Busy,
    /// Another branch of the remote has a name that this one can't stand beside.
    #[error("another branch is in the way there")]
    InTheWay,
    /// The remote can't move several refs as one. A push that has to move several is then never sent.
    #[error("it can't move several refs as one")]
    NotAtomic,
    /// There is no such remote in the configuration.
    #[error("not configured")]
    NotConfigured,
    /// Anything else.
    #[error("it failed")]
    Other,
}

impl StoreError {
    /// True where a sync failed: what was written or moved may be lost in a power cut.
    pub(crate) fn is_unsynced(&self) -> bool {
        matches!(self, StoreError::Io { what: "sync", .. })
    }
}

impl RemoteFailure {
    /// True where the same call may succeed later.
    pub fn may_pass(self) -> bool {
        match self {
            Self::Denied | Self::Unreachable | Self::TooLate | Self::Busy | Self::Other => true,
            Self::Declined | Self::InTheWay | Self::NotAtomic | Self::NotConfigured => false,
        }
    }

    /// Returns a short word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::TooLate => "too-late",
            Self::Busy => "busy",
            Self::InTheWay => "in-the-way",
            Self::NotAtomic => "not-atomic",
            Self::NotConfigured => "unknown-remote",
            Self::Other => "other",
        }
    }
}

fn found_text(found: &Option<ObjectId>) -> String {
    match found {
        Some(id) => format!("is at {id}"),
        None => "does not exist".to_owned(),
    }
}

fn expected_text(expected: &Expected) -> String {
    match expected {
        Expected::At(id) => id.to_string(),
        Expected::Missing => "none".to_owned(),
    }
}

/// Wraps an I/O error with what was tried on which path.
pub(super) fn io_error(
    what: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}
