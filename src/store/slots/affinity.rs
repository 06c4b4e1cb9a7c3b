//! Which of the free slots a branch gets, and which ports belong to a slot.
//!
//! The slot that last ran the branch goes first: its caches are warm, its files are nearly those that are
//! needed, and whatever depends on the folder's path still works there. Then come the slots that keep nothing
//! of another branch's; of those, the ones that hold the tree already; then the one that was used longest
//! ago. All of this is taken from the records, which are read anyway. Implements K57.

use super::{Occupant, Record};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many ports belong to one slot.
pub(crate) const PORTS: u32 = 100;

/// The last run that a slot had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastRun {
    pub(crate) run_id: String,
    /// The full name of its branch.
    pub(crate) branch: Vec<u8>,
    /// The remote whose branch it is; `None` for a local branch.
    pub(crate) remote: Option<String>,
    /// When the run began, in milliseconds since 1970.
    pub(crate) at: u64,
}

impl LastRun {
    /// Returns the note of a run that begins now.
    pub(super) fn of(run: &Occupant) -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Self {
            run_id: run.run_id.clone(),
            branch: run.branch_name().as_bytes().to_vec(),
            remote: run.remote.clone(),
            at: u64::try_from(at).unwrap_or(u64::MAX),
        }
    }

    /// True where the run was of this branch.
    pub(super) fn is_of(&self, work: &Work<'_>) -> bool {
        self.branch == work.branch && self.remote.as_deref() == work.remote
    }
}

/// What a slot is wanted for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    /// The full name of the branch.
    pub(crate) branch: &'a [u8],
    /// The remote whose branch it is; `None` for a local branch.
    pub(crate) remote: Option<&'a str>,
    /// The tree that the slot is to have, in hex.
    pub(crate) tree: &'a str,
}

/// Sorts slots: the branch's own first; those that keep files of another branch after all that do not; then
/// those with the tree, then other filled ones, then new ones; of equal ones the one that was used longest
/// ago first. Each record is read only once, as other processes write it meanwhile, and a sort whose key
/// changes may panic.
pub(super) fn ordered(
    mut numbers: Vec<usize>,
    work: &Work<'_>,
    read: impl Fn(usize) -> Record,
) -> Vec<usize> {
    if numbers.len() > 1 {
        numbers.sort_by_cached_key(|n| {
            let record = read(*n);
            let own = record.last.as_ref().is_some_and(|last| last.is_of(work));
            let at = record.last.as_ref().map_or(0, |last| last.at);
            let others = record.keeps.as_ref().is_some_and(|kept| !kept.is_of(work.branch, work.remote));
            (!own, others, record.tree.as_deref() != Some(work.tree), record.tree.is_none(), at, *n)
        });
    }
    numbers
}

/// Returns the first of the ports that belong to a slot; `None` where there are not enough ports.
pub(crate) fn port_base(from: u16, slot: usize) -> Option<u16> {
    let first = u32::try_from(slot).ok()?.checked_mul(PORTS)?.checked_add(from.into())?;
    let last = first.checked_add(PORTS - 1)?;
    (last <= u16::MAX.into()).then_some(u16::try_from(first).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const WORK: Work<'_> = Work { branch: b"refs/heads/work", remote: None, tree: "t" };

    fn ran(branch: &str, remote: Option<&str>, at: u64) -> Option<LastRun> {
        let (branch, remote) = (branch.as_bytes().to_vec(), remote.map(str::to_owned));
        Some(LastRun { run_id: "r".into(), branch, remote, at })
    }

    /// K14: many processes take and fill slots while one process looks for the best slot.
    #[test]
    fn slots_that_change_while_they_are_sorted_are_looked_at_once() {
        let (looks, mut noise) = (Cell::new(0), 7_u64);
        for _ in 0..200 {
            looks.set(0);
            let seed = Cell::new(noise);
            let order = ordered((0..50).collect(), &WORK, |_| {
                looks.set(looks.get() + 1);
                seed.set(seed.get().wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
                let tree = [Some("t".to_owned()), Some("other".to_owned()), None]
                    [(seed.get() >> 33) as usize % 3]
                    .clone();
                Record { tree, ..Record::default() }
            });
            noise = seed.get();
            assert_eq!((looks.get(), order.len()), (50, 50));
        }
        let filled = |n: usize| Record {
            tree: (n > 2).then(|| if n == 4 { "t" } else { "x" }.into()),
            ..Record::default()
        };
        assert_eq!(ordered((0..6).collect(), &WORK, filled), [4, 3, 5, 0, 1, 2]);
    }

    /// K57
    #[test]
    fn the_branch_s_own_slot_goes_first_and_the_one_used_longest_ago_before_others() {
        let records = RefCell::new(vec![
            Record { tree: Some("x".into()), last: ran("refs/heads/a", None, 30), ..Record::default() },
            Record { tree: Some("x".into()), last: ran("refs/heads/b", None, 10), ..Record::default() },
            Record {
                tree: Some("x".into()),
                last: ran("refs/heads/work", Some("far"), 20),
                ..Record::default()
            },
            Record::default(),
            Record { tree: Some("t".into()), last: ran("refs/heads/c", None, 90), ..Record::default() },
            Record { tree: Some("y".into()), last: ran("refs/heads/work", None, 80), ..Record::default() },
        ]);
        let order = |work: &Work<'_>| ordered((0..6).collect(), work, |n| records.borrow()[n].clone());
        assert_eq!(order(&WORK), [5, 4, 1, 2, 0, 3]);
        assert_eq!(order(&Work { remote: Some("far"), ..WORK }), [2, 4, 1, 0, 5, 3]);
        assert_eq!(order(&Work { branch: b"refs/heads/new", tree: "z", ..WORK }), [1, 2, 0, 5, 4, 3]);
    }

    /// K57
    #[test]
    fn blocks_of_ports_are_disjoint_and_end_with_the_ports_that_there_are() {
        assert_eq!((port_base(20000, 0), port_base(20000, 7)), (Some(20000), Some(20700)));
        assert_eq!(
            (port_base(65436, 0), port_base(65436, 1), port_base(65437, 0)),
            (Some(65436), None, None)
        );
        assert_eq!(port_base(1, usize::MAX), None);
    }
}
