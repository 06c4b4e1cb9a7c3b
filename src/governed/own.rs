//! The files that are a run's own: the orchestrator writes them, and no turn does.
//!
//! Everything below `.agentxchain/` but what reviews and proposals are kept in, and the talk. A lock and what is
//! being written are a process's at work, and in no commit. Implements G6, G12.

use super::journal::TALK;
use super::root::Root;
use super::{GovernedError, disk};

/// The folder of a run's own files.
const FOLDER: &str = ".agentxchain";
/// What in it is nobody's but a process's at work.
const AT_WORK: [&str; 2] = ["locks", "transactions"];
/// What in it turns may write.
const OF_TURNS: [&str; 3] = ["proposed", "reports", "reviews"];
/// What in it may have been removed.
const KNOWN: [&str; 3] = ["dispatch", "staging", "state.json"];

/// The paths that a commit of the run takes whatever rules for ignoring say, also where they are gone.
///
/// # Errors
/// A folder that can't be listed.
pub fn own_paths(root: &Root) -> Result<Vec<String>, GovernedError> {
    let mut names = disk::names(&root.join(FOLDER))?;
    names.extend(KNOWN.map(str::to_owned));
    names.sort();
    names.dedup();
    names.retain(|name| !AT_WORK.contains(&name.as_str()) && !OF_TURNS.contains(&name.as_str()));
    let mut paths: Vec<String> = names.into_iter().map(|name| format!("{FOLDER}/{name}")).collect();
    paths.push(TALK.to_owned());
    Ok(paths)
}
