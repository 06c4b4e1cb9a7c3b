//! Finishes what an earlier process left undone, before a verb does its own work.
//!
//! Locks of processes that died are removed, working trees follow their branches where that was noted, logs
//! leave a folder whose rules a branch has replaced, and notices that are still owed are given. Where nothing is
//! left, all this costs the listing of three empty folders and the rules of the logs. What can't be mended
//! becomes a warning. Implements K16 (logs brought away), K28, K43, K53 (what was owed).

use super::session::Session;
use super::{Warning, notice};
use crate::runner::logs;
use crate::runner::settings::CommandsFrom;
use crate::store::checkout::Finished;
use crate::store::{checkout, children, locks};

/// Mends everything that an earlier process left.
pub fn all(session: &Session) {
    dead_locks(session);
    finish_checkouts(session);
    logs_away(session);
    notice::make_up(session);
}

/// Removes the locks that processes of this program left when they were killed. A lock that can't be removed
/// blocks only what it locks.
fn dead_locks(session: &Session) {
    let _ = locks::sweep_stale_locks(&session.repo.common_dir);
    children::sweep(&session.repo.common_dir, &|| session.repo.git.git().locks_of_account());
}

fn is_trusted(session: &Session) -> bool {
    matches!(session.config.commands_from(), Ok(CommandsFrom::Branch | CommandsFrom::Ref(_)))
}

/// Moves logs out of a folder that Git does not ignore any more. Git is asked which of them are committed, which
/// may start programs that the repository's own configuration names.
pub fn logs_away(session: &Session) {
    if is_trusted(session) {
        logs::keep_out_of_commits(&session.repo);
    }
}

/// Finishes checkouts that were noted and not done. Before trust, nothing is written to a working tree: Git
/// would start programs that the repository's own configuration names.
pub fn finish_checkouts(session: &Session) {
    if !is_trusted(session) {
        return;
    }
    let tip = |name: &_| session.repo.open_store(false)?.tip(name);
    for done in checkout::finish_all(&session.repo, &tip) {
        match done {
            Finished::Blocked(dir, by) => session.warn(Warning::CannotFollow(dir, by)),
            Finished::Stands(dir) => session.warn(Warning::Stands(dir)),
            Finished::Arrived(dir, Some(words)) => session.warn(Warning::NotRemoved(dir, words)),
            Finished::Arrived(_, None) | Finished::Moot(_) => {}
        }
    }
}
