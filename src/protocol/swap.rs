//! What became of a compare-and-swap, and what a runner does about it.
//!
//! An attempt that reports success has won. After any other answer the ref is read again, and only what the
//! ref then holds decides ([`reread`]). A swap that failed for a reason that may pass is tried again with the
//! same expected value ([`try_again`]). Then each kind of swap has its own table: [`after_claim`],
//! [`after_renewal`], [`after_end`]. Pure and total; the store, the runner and the model of the protocol call
//! these same functions. Implements K11, K18, K31, K42 (the order).

use super::id::ObjectId;
use std::time::Duration;

/// What became of a compare-and-swap (K11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The ref holds the new commit, or one that has it among its first-parent ancestors.
    Won,
    /// The ref holds another commit, or is gone.
    Lost {
        /// The commit that the ref was found to hold; `None` if the ref is gone.
        tip: Option<ObjectId>,
    },
    /// Whether the swap succeeded is not known; the caller may retry with the same expected value.
    Unknown {
        /// Why that is not known.
        cause: String,
    },
}

/// What a ref that was read again says about an attempt that did not report success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reread {
    /// The attempt succeeded all the same.
    Won,
    /// The ref still holds the expected value: the attempt's own failure counts.
    Untouched,
    /// Another writer moved the ref first.
    Lost,
}

/// Judges a ref that should have moved from `expected` to `new` and was found at `tip`. `is_beyond(tip, new)`
/// says whether `tip` has `new` among its first-parent ancestors; it is called only where the answer matters.
///
/// # Errors
/// The errors of `is_beyond`.
pub fn reread<E>(
    expected: Option<ObjectId>,
    new: Option<ObjectId>,
    tip: Option<ObjectId>,
    is_beyond: impl FnOnce(ObjectId, ObjectId) -> Result<bool, E>,
) -> Result<Reread, E> {
    if tip == new {
        return Ok(Reread::Won);
    }
    if tip == expected {
        return Ok(Reread::Untouched);
    }
    let (Some(new), Some(tip)) = (new, tip) else { return Ok(Reread::Lost) };
    Ok(if is_beyond(tip, new)? { Reread::Won } else { Reread::Lost })
}

/// How often a swap with [`Patience::Tries`] is tried again.
const TRIES: u32 = 5;

/// How long a swap that may still succeed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// For a few attempts.
    Tries,
    /// Until this moment, on the clock that counts suspend.
    Until(Duration),
}

/// Returns how long to wait before a swap that failed for a reason that may pass is tried again; `None` if it
/// is given up. `tries` is how often it was tried again already.
pub fn try_again(patience: Patience, tries: u32, now: Duration) -> Option<Duration> {
    let wait = Duration::from_millis(100 << tries.min(TRIES));
    let again = match patience {
        Patience::Tries => tries < TRIES,
        Patience::Until(until) => now + wait < until,
    };
    again.then_some(wait)
}

/// What a claim's verdict means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterClaim {
    /// The branch is this runner's.
    Held,
    /// The branch was deleted.
    Gone,
    /// Another runner was quicker.
    LostRace,
    /// Whether the claim succeeded is not known, so nothing is started.
    Unknown(String),
}

/// Judges a claim.
pub fn after_claim(verdict: Swap) -> AfterClaim {
    match verdict {
        Swap::Won => AfterClaim::Held,
        Swap::Lost { tip: None } => AfterClaim::Gone,
        Swap::Lost { tip: Some(_) } => AfterClaim::LostRace,
        Swap::Unknown { cause } => AfterClaim::Unknown(cause),
    }
}

/// What a renewal's verdict means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterRenewal {
    /// The new lease counts.
    Held,
    /// The old lease is no longer the head: the runner looks at once whose the head is now.
    Look,
    /// Whether the renewal succeeded is not known; the old lease counts, and is given up in time.
    Unknown(String),
}

/// Judges a renewal.
pub fn after_renewal(verdict: Swap) -> AfterRenewal {
    match verdict {
        Swap::Won => AfterRenewal::Held,
        Swap::Lost { .. } => AfterRenewal::Look,
        Swap::Unknown { cause } => AfterRenewal::Unknown(cause),
    }
}

/// What the verdict of an outcome, a stall or a recovery means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterEnd {
    /// The commit is on the branch.
    Written,
    /// The branch has another head, or none: the runner judges again from there, and never puts the same
    /// commit on another base.
    JudgeAgain,
    /// Whether the commit is on the branch is not known. What was to be written is kept.
    Unknown(String),
}

/// Judges an outcome, a stall or a recovery.
pub fn after_end(verdict: Swap) -> AfterEnd {
    match verdict {
        Swap::Won => AfterEnd::Written,
        Swap::Lost { .. } => AfterEnd::JudgeAgain,
        Swap::Unknown { cause } => AfterEnd::Unknown(cause),
    }
}

/// The order in which refs move that change together: a process that is killed between two moves leaves a
/// branch that says what was taken, and never a deleted ref that no branch knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// A branch moves: its new commit says what happened.
    Branch,
    /// Another ref is written.
    Put,
    /// A ref is deleted.
    Deletion,
}

impl Turn {
    /// Returns the turn of the ref `name`, which is written if `put`, and deleted otherwise.
    pub fn of(name: &[u8], put: bool) -> Self {
        match put {
            false => Self::Deletion,
            true if name.starts_with(b"refs/heads/") => Self::Branch,
            true => Self::Put,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K42, K47a.
    #[test]
    fn a_branch_moves_first_and_what_goes_goes_last() {
        let mut turns = [
            Turn::of(b"refs/aynig/inbox/w/message/1", false),
            Turn::of(b"refs/aynig/heard/1", true),
            Turn::of(b"refs/heads/w", true),
        ];
        turns.sort();
        assert_eq!(turns, [Turn::Branch, Turn::Put, Turn::Deletion]);
        assert_eq!(Turn::of(b"refs/heads/w", false), Turn::Deletion);
    }

    /// K11.
    #[test]
    fn a_ref_that_was_read_again_says_who_moved_it() {
        let id = |n| ObjectId::from_bytes(&[n; 20]).ok();
        let judge =
            |tip, beyond| reread(id(1), id(2), tip, |_, _| Ok::<_, ()>(beyond)).unwrap_or(Reread::Untouched);
        assert_eq!(judge(id(2), false), Reread::Won);
        assert_eq!(judge(id(1), true), Reread::Untouched);
        assert_eq!(judge(id(3), true), Reread::Won);
        assert_eq!(judge(id(3), false), Reread::Lost);
        assert_eq!(judge(None, true), Reread::Lost);
    }

    /// K11, K31.
    #[test]
    fn what_may_pass_is_tried_a_few_times_here_and_until_its_moment_on_a_remote() {
        assert_eq!(try_again(Patience::Tries, 4, Duration::MAX), Some(Duration::from_millis(1600)));
        assert_eq!(try_again(Patience::Tries, 5, Duration::ZERO), None);
        let until = Patience::Until(Duration::from_secs(10));
        assert!(try_again(until, 50, Duration::from_secs(6)).is_some());
        assert!(try_again(until, 0, Duration::from_millis(9_899)).is_some());
        for late in [9_900, 9_950, 10_000] {
            assert_eq!(try_again(until, 0, Duration::from_millis(late)), None);
        }
    }
}
