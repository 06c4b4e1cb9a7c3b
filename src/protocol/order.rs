//! The order in which a machine takes the branches of a remote that other machines also take.
//!
//! All branches lie on a ring, the same for every machine, in an order that has nothing to do with their
//! names. Each machine begins at a place of its own and goes round once, so each round visits every branch,
//! and two machines meet only where one comes to where another began. A machine that meets another goes on
//! elsewhere ([`leap`]). The functions are pure, depend on names alone, and are the same on every machine and
//! in every version: machines need not agree on anything for nothing to go wrong, as only the swap decides
//! which machine has a branch. Implements K32 (order).

/// Returns how far along the ring a branch lies from this runner's place; the runner takes near branches
/// first.
pub fn distance(runner_id: &str, branch: &[u8]) -> u64 {
    place(branch).wrapping_sub(place(runner_id.as_bytes()))
}

/// Returns how many of the `left` remaining branches a machine skips after another was quicker for the `nth`
/// time.
pub fn leap(runner_id: &str, nth: u64, left: usize) -> usize {
    let place = mixed(place(runner_id.as_bytes()).wrapping_add(nth));
    // The remainder is below `left`, so it fits.
    place.checked_rem(left as u64).unwrap_or(0) as usize
}

/// Returns a name's place on the ring: FNV-1a, then mixed, so that names that differ in a digit are far
/// apart.
fn place(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mixed(hash)
}

/// The finalizer of splitmix64: every bit of the input moves half of the output.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(runner: &str, branches: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..branches).collect();
        all.sort_by_key(|n| distance(runner, format!("refs/heads/job/{n:04}").as_bytes()));
        all
    }

    /// K32: versions that run beside each other agree.
    #[test]
    fn places_never_change() {
        assert_eq!(distance("host-1", b"refs/heads/work"), 0x12fa_88e2_10e3_f2c3);
        assert_eq!(leap("host-1", 1, 1000), 156);
    }

    /// K32
    #[test]
    fn each_machine_goes_round_once_from_a_place_of_its_own() {
        let whole = order("a", 1000);
        let mut begun: Vec<usize> = Vec::new();
        for machine in 0..64 {
            let mine = order(&format!("host-{machine}"), 1000);
            let at = whole.iter().position(|n| *n == mine[0]).unwrap();
            let turned: Vec<usize> = whole[at..].iter().chain(&whole[..at]).copied().collect();
            assert_eq!(mine, turned, "every branch once, in the order of the ring");
            begun.push(at);
        }
        begun.sort_unstable();
        begun.dedup();
        assert!(begun.len() > 56, "few begin at the same branch: {}", begun.len());
        // Of 64 machines on a ring of 1000 the longest way to the next is far below a quarter.
        let widest = begun.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest < 150, "{widest}");
        let neighbours = whole.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(neighbours < 10, "the order has nothing to do with names: {neighbours}");
    }

    /// K32
    #[test]
    fn two_that_meet_go_on_at_different_places() {
        for left in [2, 16, 1000] {
            let same = (0..200).filter(|n| leap("host-1", *n, left) == leap("host-2", *n, left)).count();
            assert!(same <= 200 / left + 40, "{left}: {same}");
        }
        assert_eq!(leap("host-1", 7, 0), 0);
    }
}
