//! What became of a compare-and-swap, and what a runner does about it.
//!
//! An attempt that says success has won. After any other answer the ref is read again, and only what it
//! holds decides: [`reread`]. What may pass is tried again with the same expectation: [`try_again`]. Then
//! each kind of swap has its own table: [`after_claim`], [`after_renewal`], [`after_end`]. Pure and total;
//! the store, the runner and the model of the protocol call these same functions. Implements K11, K18, K31, K42 (the order).

use super::id::ObjectId;
use std::time::Duration;

/// What became of a compare-and-swap (K11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The ref holds the new commit, or has it among its first-parent ancestors.
    Won,
    /// It does not. `tip` is what it holds instead; `None`: the ref is gone.
    Lost {
        /// What the ref was found to hold.
        tip: Option<ObjectId>,
    },
    /// The ref could not be read again after a swap without a verdict: retry with the same expectation.
    Unknown {
        /// What stood in the way.
        cause: String,
    },
}

/// What a ref says that was read again after an attempt without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reread {
    /// The attempt succeeded all the same.
    Won,
    /// Nothing moved: the attempt's own failure counts.
    Untouched,
    /// Another runner was quicker.
    Lost,
}

/// Judges a ref that should have gone from `expected` to `new` and was found at `tip`. `is_beyond` says
/// whether a commit has `new` among its first-parent ancestors; it is asked only where that matters.
///
/// # Errors
/// Those of `is_beyond`.
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

/// How often a swap is tried again that is worth a few attempts.
const TRIES: u32 = 5;

/// What swaps that may yet succeed are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A few attempts.
    Tries,
    /// Attempts until that moment on the clock that counts suspend.
    Until(Duration),
}

/// Whether a swap that failed for a reason that may pass is tried again, and how long to wait before that.
/// `tries` were made again already.
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
    /// The branch is ours.
    Held,
    /// It was deleted.
    Gone,
    /// Another runner was quicker.
    LostRace,
    /// Not known, and nothing is started.
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
    /// The old one is no longer the head: look at once whose that is.
    Look,
    /// Not known; the old lease counts, and is given up in time.
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
    /// It is on the branch.
    Written,
    /// The head is another one: judge from there. Never the same commit on another base.
    JudgeAgain,
    /// Not known. What was to be written is kept.
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

/// When a ref moves of several that are moved as one: a process that is killed between two moves leaves a branch that says
/// what was taken, and never a ref that is gone and nothing on a branch that knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// A branch is moved: what it says is what happened.
    Branch,
    /// Another ref is put.
    Put,
    /// A ref goes.
    Deletion,
}

impl Turn {
    /// That of the ref of this name, which is `put` or goes.
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
