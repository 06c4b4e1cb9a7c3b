//! The order of facts: one source's own, and between sources by time.

use super::fact::Fact;
use crate::contract::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The facts of several sources (branches, inboxes, turns) in one order. Within a source nothing moves, whatever its
/// clocks say; between sources the earlier one is first, and of two at once that of the earlier source.
pub fn in_order(sources: Vec<Vec<Fact>>) -> Vec<Fact> {
    let mut sources: Vec<std::vec::IntoIter<Fact>> = sources.into_iter().map(Vec::into_iter).collect();
    let mut next: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    for (n, source) in sources.iter().enumerate() {
        if let Some(first) = source.as_slice().first() {
            next.push(Reverse((first.at(), n)));
        }
    }
    let mut facts = Vec::with_capacity(sources.iter().map(|source| source.len()).sum());
    while let Some(Reverse((at, n))) = next.pop() {
        facts.extend(sources[n].next());
        if let Some(following) = sources[n].as_slice().first() {
            // A clock that went back does not let a source overtake itself.
            next.push(Reverse((following.at().max(at), n)));
        }
    }
    facts
}
