//! What an earlier process of ours did not come to the end of, before a verb does its own.
//!
//! Locks of the dead go, working trees that were noted hold what their branch does. It costs the listing of three
//! empty folders where nothing is left. What can't be mended is said, and keeps no verb from its work.
//! Implements K28, K43.

use super::session::Session;
use super::{hints, output};
use crate::protocol::text::escape;
use crate::runner::settings::CommandsFrom;
use crate::store::{checkout, children, locks};

/// Mends what is left.
pub fn all(session: &Session) {
    dead_locks(session);
    finish_checkouts(session);
}

/// Removes the locks that processes of ours left when they were killed. Whatever can't be removed blocks only what
/// it locks.
fn dead_locks(session: &Session) {
    let _ = locks::sweep_stale_locks(&session.repo.common_dir);
    children::sweep(&session.repo.common_dir);
}

/// Finishes checkouts that were noted and not done. Before trust nothing is written to a working tree: Git would
/// start what the repository's own configuration names.
pub fn finish_checkouts(session: &Session) {
    if !matches!(session.config.commands_from(), Ok(CommandsFrom::Branch | CommandsFrom::Ref(_))) {
        return;
    }
    let tip = |name: &_| session.repo.open_store(false)?.tip(name);
    for done in checkout::finish_all(&session.repo, &tip) {
        if let Some((dir, by)) = done.obstacle() {
            let words = escape(by.to_string().as_bytes());
            let dir = escape(dir.as_os_str().as_encoded_bytes());
            output::note(&format!("warning: '{dir}' cannot follow its branch: {words}"));
            output::note(&format!("hint: {}, then git aynig status", hints::of_obstacle(by)));
        }
    }
}
