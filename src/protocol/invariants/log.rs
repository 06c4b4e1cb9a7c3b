//! The moves of a branch where no list of them was kept: found from its commits, or from its reflog.

use super::{Move, Recorded, Violation, check, descends};
use crate::protocol::id::ObjectId;
use std::collections::{BTreeSet, HashMap, HashSet};

/// One line of a branch's reflog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// What the branch held from then on.
    pub new: ObjectId,
    /// True where this tool wrote the line; a person may move a branch anywhere.
    pub by_runner: bool,
}

/// Returns the first-parent ancestors of a commit that are known, oldest first, and the commit itself last.
pub fn line(head: ObjectId, commits: &HashMap<ObjectId, Recorded>) -> Vec<ObjectId> {
    let (mut line, mut seen) = (vec![head], HashSet::from([head]));
    while let Some(parent) = line.last().and_then(|id| commits.get(id)?.parents.first()) {
        if !commits.contains_key(parent) || !seen.insert(*parent) {
            break;
        }
        line.push(*parent);
    }
    line.reverse();
    line
}

/// Judges a branch of which only the commits are known: its first parents, each taken as a move of its own.
pub fn check_line(head: ObjectId, commits: &HashMap<ObjectId, Recorded>) -> Vec<Violation> {
    check(&steps(&line(head, commits)), commits)
}

/// Judges a branch by its reflog, oldest line first: the commits below the first line, then each move. A
/// person's move to somewhere else begins a new history; a runner's is judged.
pub fn check_log(log: &[Logged], commits: &HashMap<ObjectId, Recorded>) -> Vec<Violation> {
    let (mut found, mut moves, mut head) = (BTreeSet::new(), Vec::new(), None);
    for Logged { new, by_runner } in log.iter().copied() {
        match head.replace(new) {
            None => moves = steps(&line(new, commits)),
            Some(old) => match forward(old, new, commits) {
                Some(path) => moves.extend(steps(&path)),
                None if by_runner || descends(commits, old, new) => {
                    moves.push(Move { old: Some(old), new: Some(new) });
                }
                None => {
                    found.extend(check(&moves, commits));
                    moves = steps(&line(new, commits));
                }
            },
        }
    }
    found.extend(check(&moves, commits));
    found.into_iter().collect()
}

fn steps(line: &[ObjectId]) -> Vec<Move> {
    line.windows(2).map(|w| Move { old: Some(w[0]), new: Some(w[1]) }).collect()
}

/// Returns the commits from `old` to `new` along first parents, both included: a fetch or a merge brings many
/// in one move. Where `old` came in by a merge, that merge follows it. `None` where `new` does not stand on
/// `old`.
fn forward(old: ObjectId, new: ObjectId, commits: &HashMap<ObjectId, Recorded>) -> Option<Vec<ObjectId>> {
    let below = line(new, commits);
    let from = match below.iter().position(|id| *id == old) {
        Some(at) => at + 1,
        None => below.iter().position(|id| descends(commits, *id, old))?,
    };
    Some(std::iter::once(old).chain(below[from..].iter().copied()).collect())
}
