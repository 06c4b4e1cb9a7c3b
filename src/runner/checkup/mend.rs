//! What mends a finding, as a value: the command line turns it into shell commands.

use crate::protocol::inbox::MessageId;
use crate::runner::home::Home;
use crate::store::RefName;
use crate::store::command_start::Unfit;
use std::path::PathBuf;

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    /// Say which commands may run in this repository. The folder of the repository is given if the user may
    /// stand in another one.
    Trust(Option<PathBuf>),
    /// Say which ref commands come from.
    TrustRef,
    /// Scaffold a first command.
    Init,
    /// Commit what is in `.aynig/`.
    CommitCommands,
    /// Commit what is in `.aynig/` where commands come from.
    CommitWhereRead(Home),
    /// Make this file below `.aynig/` one that can be started, for the commands of this branch or of any
    /// branch that is checked out.
    FixCommand {
        /// Where commands come from.
        home: Home,
        /// The file, from the top of the tree on.
        file: String,
        /// What is wrong with the file.
        why: Unfit,
        /// The branch whose commands are meant; `None`: whichever is checked out.
        branch: Option<RefName>,
    },
    /// Look at how a branch stands.
    Status(RefName),
    /// Look at a branch's events, leases included.
    History(Vec<u8>),
    /// Set another state; `None`: any that has a command.
    SetState(RefName, Option<String>),
    /// Tick a branch.
    Tick(RefName),
    /// Take back a pause.
    Resume {
        /// The pause; `None` where it has no id of its own: then all are taken back.
        id: Option<MessageId>,
        /// The remote whose branches it holds; `None` for those of this repository.
        remote: Option<String>,
    },
    /// Take a branch's lease away.
    Cancel(RefName),
    /// Look at a working tree.
    GitStatus(PathBuf),
    ListBranches,
    /// Have a verb finish what was to arrive in a checkout, or put it back, or say what is in its way.
    FinishCheckout,
    /// Remove what is no longer needed, from the repository at this path or, for `None`, from this one.
    Gc(Option<PathBuf>),
    /// Remove a lock; with `unless_used` only if no git process is at work.
    RemoveLock {
        /// The lock.
        path: PathBuf,
        /// True if the lock may belong to a process that lives.
        unless_used: bool,
    },
    /// End the processes that hold a file.
    EndHolders(PathBuf),
    /// Install the hooks again.
    InstallHooks,
    /// Install the hooks again with a program that is there, in place of this one.
    ReplaceProgram(PathBuf),
    /// Keep worktrees elsewhere.
    MoveWorktrees,
    /// Let programs be started from the disk.
    AllowExec,
    /// Let a disk be written to.
    Remount(PathBuf),
    /// Let a folder that this account owns be written to.
    MakeWritable(PathBuf),
    /// Make this account the owner of a folder.
    TakeOver(PathBuf),
    /// Move a file out of the way of a folder.
    MoveAside(PathBuf),
    /// Move a worktree and the note about it aside.
    MoveSlotAside {
        note: PathBuf,
        /// The worktree.
        dir: PathBuf,
    },
    /// Remove a symbolic ref; what it points to stays.
    RemoveSymbolicRef(RefName),
    /// Remove a ref whose object is not there.
    RemoveBrokenRef(RefName),
    /// Move a ref out of the way of those below its name.
    MoveRefAway(RefName),
    /// Look at the configuration of trailers.
    ShowTrailers,
    /// Look at the configuration of signatures.
    ShowSigning,
    /// Look where `aynig.exec`, the program that starts every command, is configured.
    ShowWrapper,
    /// Sync what is pushed to this repository.
    SyncPushes(PathBuf),
    /// Check all objects.
    Fsck,
    /// Add a remote of this name, or configure none.
    AddRemote(String),
    /// Ask a remote by hand.
    AskRemote(String),
    /// Set this machine's clock; if commits of other machines are this many seconds ahead, allow for that
    /// instead.
    SetClock(Option<i64>),
}
