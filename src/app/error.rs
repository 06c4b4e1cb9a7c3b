//! Why a verb could not do what it was asked, as one type. `cli` says which shell command mends it.

use super::change::{About, NotPushed};
use super::diff::PastError;
use super::logs::LogsError;
use super::trust::TrustError;
use crate::flow::FlowError;
use crate::flow::project::ProjectError;
use crate::flow::route::RouteError;
use crate::flow::turn::TurnError;
use crate::protocol::id::ObjectId;
use crate::protocol::text::escape;
use crate::runner::RunnerError;
use crate::runner::change::ChangeError;
use crate::runner::talk::TalkError;
use crate::runner::uninstall::InUse;
use crate::store::repository::OpenError;
use crate::store::{RefName, StoreError};
use crate::supervisor::SupervisorError;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A verb that ended without doing what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The runner or the store failed.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// There is no repository, or Git refuses it.
    #[error(transparent)]
    Open(OpenError),
    /// A branch was not changed.
    #[error("{error}")]
    Change {
        /// Why.
        error: ChangeError,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// A branch could not be talked to: no message, question, answer or pause was written or read.
    #[error("{error}")]
    Talk {
        /// Why.
        error: Box<TalkError>,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// A node's turn could not be taken.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// A node's turn could not be routed.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A flow could not be projected.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A flow could not be read or changed.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The trusted commands lack these, which a node's turns need.
    #[error("cannot make a flow: the trusted commands have no '{}'", .0.join("' and no '"))]
    NoTurns(Vec<&'static str>),
    /// The call was wrong.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The current directory can't be read.
    #[error("cannot read the current directory: {0}")]
    NoFolder(io::Error),
    /// A value in the configuration can't be read.
    #[error("bad value '{}' for 'aynig.{key}': want {want}", escape(value.as_bytes()))]
    BadValue {
        /// The key, without its section.
        key: String,
        /// The key's value.
        value: String,
        /// What the key's value should be.
        want: &'static str,
    },
    /// No configuration says which commands may run in this repository.
    #[error("not trusted: nothing runs here until you say which commands may")]
    NotTrusted {
        /// A folder of the repository.
        place: PathBuf,
        /// The branch that is checked out in that folder.
        current: Option<RefName>,
        /// True where this account has a configuration that trust can be written to.
        is_writable: bool,
    },
    /// There is no log to show.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// There is no run to show.
    #[error(transparent)]
    Past(#[from] PastError),
    /// Nothing can be removed while this is in use.
    #[error("{0}")]
    InUse(InUse),
    /// Trust was not given, or taken away.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A remote that only the repository's own configuration names, which is not asked before trust (K34).
    #[error("not trusted: remote '{}' is not asked unless you name it", escape(.0.as_bytes()))]
    Unasked(String),
    /// An event is on its local branch, but not known to be on a remote.
    #[error("'{}' is written here{}", escape(branch.short()), not_pushed(commit, remote, why))]
    NotPushed {
        branch: RefName,
        /// The event's commit.
        commit: ObjectId,
        /// The remote's name; empty where there is no remote to push to.
        remote: String,
        why: NotPushed,
    },
    /// A branch that does not exist, as far as that is known.
    #[error("{}", no_branch(branch, unasked.as_deref()))]
    NoBranch {
        branch: RefName,
        /// The remote whose branch is meant.
        remote: Option<String>,
        /// The remote's name, where it was not asked (K34).
        unasked: Option<String>,
    },
    /// A pattern matches no branch that the verb can be about.
    #[error("no branch that is {} matches '{}'", about.word(), escape(pattern.as_bytes()))]
    NoMatch {
        pattern: OsString,
        /// Which branches the verb can be about.
        about: About,
        /// The remote whose branches are meant.
        remote: Option<String>,
    },
    /// No process could be started in the background.
    #[error("cannot start in the background: {0}")]
    Background(io::Error),
    /// No chain could be started for these branches.
    #[error("{}: not dispatched: {cause}", shown(branches, ", "))]
    NotDispatched {
        branches: Vec<RefName>,
        /// Why.
        cause: Box<AppError>,
    },
    /// The branches that a background chain is told on its standard input can't be read.
    #[error("cannot read the branches: {0}")]
    Promised(io::Error),
    /// No branch could be looked at. `named` are those that the user named.
    #[error("{}nothing was claimed: {cause}", named.iter().map(|b| escape(b.short()) + ": ").collect::<String>())]
    Unseen {
        /// The branches that the user named.
        named: Vec<RefName>,
        /// Why.
        cause: Box<AppError>,
    },
}

/// A wrong call.
#[derive(Debug, thiserror::Error)]
pub enum Misuse {
    /// The argument is no duration.
    #[error("'{0}' is no duration; say 90, 90s, 5m or '1h 30m'")]
    Duration(String),
    /// The argument is no point in time.
    #[error("'{}' is no moment; say 90m, 2d, 2026-01-31 or 2026-01-31T12:00:00Z", escape(.0.as_bytes()))]
    Since(String),
    /// `--jobs` is 0, or more than there may be.
    #[error("'--jobs' must be from 1 to 10000")]
    Jobs,
    /// A lease that is too short, too long, or not a whole number of seconds.
    #[error("a lease is whole seconds, from 1s to 30 days")]
    Lease,
    /// A name of a role that no command can have.
    #[error("role '{}' is not usable: {why}", escape(role.as_bytes()))]
    Role { role: String, why: String },
    /// A state that can't be written.
    #[error("state '{}' is not usable: {why}", escape(state.as_bytes()))]
    State { state: String, why: String },
    /// A kind of message whose name is not valid.
    #[error("kind '{}' is not usable: {why}", escape(kind.as_bytes()))]
    Kind { kind: String, why: String },
    /// A message's id that is not valid.
    #[error("'{}' is not usable: {why}", escape(id.as_bytes()))]
    Id {
        id: String,
        why: String,
        /// The verb that lists such ids, where the id is to be one that exists.
        listing: Option<&'static str>,
    },
    /// An argument about a flow can't be read, and why.
    #[error("{0}")]
    Flow(String),
    /// The argument names no commit.
    #[error("'{}' is no commit here", escape(.0.as_bytes()))]
    Commit(OsString),
    /// `stalled` was declared outside of a run.
    #[error(
        "state 'stalled' is what a run ends with: declared outside of one there is nothing that could be tried again"
    )]
    StalledOutside,
    /// A worker of a governed turn would have ended its run without the turn's being judged.
    #[error("a governed turn ends by its result: nothing inside it sets the state of its own branch")]
    InsideTurn,
    /// `working` was declared, but a lease is written by `set-working`.
    #[error("state 'working' is reserved for leases")]
    Working {
        /// The branch that was named.
        branch: Option<OsString>,
        /// The remote that was named.
        remote: Option<String>,
    },
    /// A trailer that can't be written, and why.
    #[error("{0}")]
    Trailer(String),
    /// A message that can't be written, and why.
    #[error("cannot write the commit message: {0}")]
    Message(String),
    /// The argument is no branch name.
    #[error("'{}' is no valid branch name", escape(.0.as_bytes()))]
    Branch(OsString),
    /// The argument is no ref name.
    #[error("'{}' is no valid ref name", escape(.0.as_bytes()))]
    Ref(RefName),
    /// No branch is checked out that commands could come from.
    #[error("HEAD is detached: say where commands come from")]
    NoSource,
    /// No branch was named, and none is checked out.
    #[error("HEAD is detached: name the branch")]
    Detached {
        /// How the verb takes a branch.
        naming: &'static str,
    },
}

fn not_pushed(commit: &ObjectId, remote: &str, why: &NotPushed) -> String {
    let there = escape(remote.as_bytes());
    match why {
        NotPushed::NoRemote => ", but has no remote to push to".to_owned(),
        NotPushed::Behind => format!(", but '{there}' has other commits on it"),
        NotPushed::Unknown(cause) => {
            let (id, cause) = (commit.short(10), escape(cause.as_bytes()));
            format!("; whether '{there}' has {id} is not known: {cause}")
        }
        NotPushed::Failed(cause) => format!(", and not on '{there}': {cause}"),
    }
}

fn shown(branches: &[RefName], between: &str) -> String {
    branches.iter().map(|branch| escape(branch.short())).collect::<Vec<_>>().join(between)
}

fn no_branch(branch: &RefName, unasked: Option<&str>) -> String {
    let shown = escape(branch.short());
    match unasked {
        Some(remote) => format!("nothing is known of branch '{shown}': '{remote}' was not asked"),
        None => format!("branch '{shown}' does not exist"),
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        AppError::Runner(error.into())
    }
}

impl From<SupervisorError> for AppError {
    fn from(error: SupervisorError) -> Self {
        AppError::Runner(error.into())
    }
}

impl From<OpenError> for AppError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::NotFound { .. } | OpenError::Refused { .. } => AppError::Open(error),
        }
    }
}
