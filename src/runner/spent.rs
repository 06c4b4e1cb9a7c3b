//! What runs have used, added up from history.
//!
//! Each commit is read once, the newest first, however many branches contain it. A path is left where many
//! commits in a row are older than what is asked for, so that one commit with an old date hides nothing below
//! it. A run counts once, whether the commit that it ended with is found first or what that landed as. It
//! counts for the branch that it moved: a branch that has the commit among its first parents comes before one
//! that merged it, and of several the first by name. Implements K54 (adding up, budgets).

use super::{Runner, Tip};
use crate::protocol::decide::{Overspent, Per};
use crate::protocol::event::{Event, RUN_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::usage::{Usage, Usd, total, usage_of};
use crate::store::{Commit, RefName, StoreError};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What one run used.
pub(crate) struct Used<'a> {
    /// The branch that it counts for.
    pub branch: &'a RefName,
    /// When the commit was written that says so, in seconds since 1970.
    pub at: Option<i64>,
    /// That commit's event.
    pub event: &'a Event,
    /// What it used, one entry per model.
    pub usage: Vec<Usage>,
}

/// How a branch has a commit: whether it came by a merge, and the branch's index. The branch with the least
/// claim counts.
type Claim = (bool, usize);

/// How many commits in a row may be older than what is asked for before a path is left, because clocks
/// differ.
const OLDER_MAX: usize = 1000;

/// A commit that was read, and waits to be looked at; and how many commits in a row that lead to it are too
/// old, itself included.
struct Waiting(Commit, usize);

impl Waiting {
    fn age(&self) -> (i64, ObjectId) {
        (self.0.committed.unwrap_or(i64::MIN), self.0.id)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.age() == other.age()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.age().cmp(&other.age())
    }
}

/// A walk through what some branches contain.
struct Walk {
    waiting: BinaryHeap<Waiting>,
    claims: HashMap<ObjectId, Claim>,
    since: i64,
}

impl Walk {
    /// Queues a commit to be looked at. `older`: how many commits in a row that lead to it are older than
    /// what is asked for; beyond a limit it is dropped.
    fn add(&mut self, commit: Commit, claim: Claim, older: usize) {
        let older = if self.is_asked_for(&commit) { 0 } else { older + 1 };
        if older <= OLDER_MAX {
            self.claims.insert(commit.id, claim);
            self.waiting.push(Waiting(commit, older));
        }
    }

    fn is_asked_for(&self, commit: &Commit) -> bool {
        commit.committed.is_none_or(|at| at >= self.since)
    }
}

impl Runner<'_> {
    /// Passes to `told` what each run used whose commit is among what these heads contain, the newest first,
    /// from the second `since` on. A commit that can't be read is an error.
    pub(crate) fn each_used(
        &self,
        heads: &[(RefName, Commit)],
        since: Option<i64>,
        told: &mut dyn FnMut(Used<'_>),
    ) -> Result<(), StoreError> {
        let mut walk =
            Walk { waiting: BinaryHeap::new(), claims: HashMap::new(), since: since.unwrap_or(i64::MIN) };
        let mut runs = HashSet::new();
        for (index, (_, head)) in heads.iter().enumerate() {
            match walk.claims.get_mut(&head.id) {
                Some(claim) => *claim = (*claim).min((false, index)),
                None => walk.add(head.clone(), (false, index), 0),
            }
        }
        while let Some(Waiting(commit, older)) = walk.waiting.pop() {
            let (merged, index) = walk.claims.get(&commit.id).copied().unwrap_or_default();
            if walk.is_asked_for(&commit)
                && let Some((event, usage)) = used_by(&commit)
                && is_first(&mut runs, &event)
            {
                let at = commit.committed;
                told(Used { branch: &heads[index].0, at, event: &event, usage });
            }
            if !commit.parents.is_empty() && self.store.history_ends_at(commit.id)? {
                continue;
            }
            for (nth, parent) in commit.parents.iter().enumerate() {
                let claim = (merged || nth > 0, index);
                match walk.claims.get_mut(parent) {
                    // If the parent was looked at already, because of a wrong date, this comes too late and
                    // changes nothing.
                    Some(known) => *known = (*known).min(claim),
                    None => walk.add(self.store.read_commit(*parent)?, claim, older),
                }
            }
        }
        Ok(())
    }
}

/// Returns the event of a commit that ended a run and says what it used, and that usage.
fn used_by(commit: &Commit) -> Option<(Event, Vec<Usage>)> {
    // Few commits of a history say what was used, and reading a message is most of the work.
    memchr_usage(&commit.message).then_some(())?;
    let event = Event::in_message(&commit.message).filter(|event| !event.is_working())?;
    let usage = usage_of(&event.message);
    (!usage.is_empty()).then_some((event, usage))
}

fn memchr_usage(message: &[u8]) -> bool {
    message.windows(USAGE_KEY.len()).any(|window| window == USAGE_KEY)
}

/// The end of the trailer's key, in either dialect.
const USAGE_KEY: &[u8] = b"-usage:";

/// True for the first commit that is found of a run; a commit that names no run stands for itself.
fn is_first(runs: &mut HashSet<String>, event: &Event) -> bool {
    let run = event.text(RUN_ID).or_else(|| event.text(STALLED_RUN));
    run.is_none_or(|run| runs.insert(run.to_owned()))
}

/// Seconds of a day.
const DAY: i64 = 24 * 3600;
/// How long a day's sum is reused, although other runners may have added to it.
const FRESH: Duration = Duration::from_secs(1);

/// What was spent today as it was last added up: when, of which remote's branches, and how much.
pub(crate) type Today = Arc<Mutex<Option<(Duration, Option<String>, Usd)>>>;

impl Runner<'_> {
    /// Returns the budget that is used up for a branch with this head, if one is.
    pub(super) fn overspent(&self, tip: &Tip) -> Result<Option<Overspent>, StoreError> {
        let settings = self.settings;
        let used_up =
            |per, limit: Usd, spent: Usd| (spent >= limit).then_some(Overspent { per, spent, limit });
        if let Some(limit) = settings.budget_per_day
            && let Some(over) = used_up(Per::Day, limit, self.spent_today()?)
        {
            return Ok(Some(over));
        }
        match settings.budget_per_branch {
            Some(limit) => Ok(used_up(Per::Branch, limit, self.spent_on(tip)?)),
            None => Ok(None),
        }
    }

    /// Returns what all branches that may be ticked say was spent since the day began, in UTC.
    fn spent_today(&self) -> Result<Usd, StoreError> {
        let (now, elapsed, remote) = (self.clock.now(), self.clock.elapsed(), &self.settings.remote);
        let mut known = self.settings.today.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, of, spent)) = &*known
            && of == remote
            && elapsed.saturating_sub(*at) < FRESH
        {
            return Ok(*spent);
        }
        let mut heads = self.store.read_heads("refs/heads/")?.heads;
        // Otherwise a user who may push only to branches that are not ticked could hold up those that are, by
        // claiming costs.
        heads.retain(|(branch, _)| self.may_tick(branch));
        let mut spent = Usd::default();
        self.each_used(&heads, Some(now - now.rem_euclid(DAY)), &mut |used| {
            spent = spent.plus(total(&used.usage).cost.unwrap_or_default());
        })?;
        *known = Some((elapsed, remote.clone(), spent));
        Ok(spent)
    }

    /// Forgets today's sum, because something may have been spent just now.
    pub(super) fn forget_today(&self) {
        *self.settings.today.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns what the commits from this head down its first parents say was spent.
    fn spent_on(&self, tip: &Tip) -> Result<Usd, StoreError> {
        let (mut spent, mut runs, mut at) = (Usd::default(), HashSet::new(), tip.commit.clone());
        loop {
            if let Some((event, usage)) = used_by(&at)
                && is_first(&mut runs, &event)
            {
                spent = spent.plus(total(&usage).cost.unwrap_or_default());
            }
            match at.parents.first() {
                Some(parent) if !self.store.history_ends_at(at.id)? => {
                    at = self.store.read_commit(*parent)?
                }
                Some(_) | None => return Ok(spent),
            }
        }
    }
}
