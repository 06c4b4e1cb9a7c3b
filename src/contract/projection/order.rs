//! The order of facts: one source's own, and between sources by time.

use super::fact::Fact;
use crate::contract::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The facts of several sources (branches, inboxes, turns) in one order. Within a source nothing moves, whatever its
/// clocks say; between sources the earlier one is first, and of two at once that of the earlier source.
pub fn in_order(sources: Vec<Vec<Fact>>) -> Vec<Fact> {
    ordered(sources).collect()
}

/// The same, one after the other: each is let go of once it was taken.
pub fn ordered(sources: Vec<Vec<Fact>>) -> impl Iterator<Item = Fact> {
    let mut sources: Vec<std::vec::IntoIter<Fact>> = sources.into_iter().map(Vec::into_iter).collect();
    let mut next: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    for (n, source) in sources.iter().enumerate() {
        if let Some(first) = source.as_slice().first() {
            next.push(Reverse((first.at(), n)));
        }
    }
    std::iter::from_fn(move || {
        let Reverse((at, n)) = next.pop()?;
        let fact = sources[n].next();
        if let Some(following) = sources[n].as_slice().first() {
            // A clock that went back does not let a source overtake itself.
            next.push(Reverse((following.at().max(at), n)));
        }
        fact
    })
}
