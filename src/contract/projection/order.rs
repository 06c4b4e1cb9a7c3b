//! The order of facts: within a source as given, between sources by time.

use super::fact::Fact;
use crate::contract::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Merges the facts of several sources (branches, inboxes, turns). Within a source the order stays, whatever
/// its clock says; between sources the earlier fact is first, and of two at the same time that of the source
/// that is listed first.
pub fn in_order(sources: Vec<Vec<Fact>>) -> Vec<Fact> {
    ordered(sources).collect()
}

/// Merges facts as [`in_order`] does, and yields them one by one, so that each can be dropped once it was
/// used.
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
            // A fact counts as no earlier than the one before it in its source, so that a clock that went
            // back does not put it before facts of other sources.
            next.push(Reverse((following.at().max(at), n)));
        }
        fact
    })
}
