//! Which branches a tick looks at, and the evaluation of all of them, several at a time.
//!
//! Without names every branch is judged from one scan, and only those whose head asks for something are read
//! again and evaluated. Of a remote with many branches, heads that were not fetched yet are fetched some at a
//! time, in the order in which this machine takes them ([`Round`]). A branch that is blocked never blocks
//! others. Implements K6, K30, K32 (order), K43 (own locks are gone after the next tick, and the last
//! sentence).

use super::known::Around;
use super::lookups::Lookups;
use super::pending::any_free;
use super::queue::note_waiting;
use super::report::{Note, Outcome, Report, Verdict};
use super::resolve::Resolved;
use super::settings::{CommandsFrom, CurrentBranch};
use super::slot::Occupants;
use super::{Runner, RunnerError, Tip};
use crate::protocol::decide::{Decision, Idle, decide};
use crate::protocol::flow::ROUTE;
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::protocol::order;
use crate::protocol::resemble::missed_state;
use crate::store::command_tree::Lookup;
use crate::store::{Commit, RefName, Store, StoreError};
use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The branches that the user asked for.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Branches by name; empty: all local ones.
    pub named: Vec<RefName>,
    /// The branch that is checked out in the current working tree; `None` where all are included.
    pub current: Option<RefName>,
    /// What to do about that branch.
    pub current_branch: CurrentBranch,
}

impl Selection {
    fn takes(&self, branch: &RefName) -> bool {
        let is_current = self.current.as_ref() == Some(branch);
        match self.current_branch {
            CurrentBranch::Include => true,
            CurrentBranch::Skip => !is_current,
            CurrentBranch::Only => is_current,
        }
    }

    /// True where a branch was asked for by name.
    pub fn names(&self, branch: &RefName) -> bool {
        self.named.contains(branch)
    }
}

impl Runner<'_> {
    /// Returns the branches to evaluate (those named, or those whose head asks for something), and reports
    /// about the others that are state events, or could not be read, from one look at all heads. Heads of a
    /// remote that were not fetched yet are fetched when their turn comes, because other machines may have
    /// answered them until then.
    pub fn select(&self, selection: &Selection, dry: bool) -> Result<(Round, Vec<Report>), RunnerError> {
        let current = selection.current_branch == CurrentBranch::Only;
        if dry || current || !selection.named.is_empty() {
            self.store.refresh()?;
        }
        if !selection.named.is_empty() {
            let named = selection.named.iter().filter(|b| selection.takes(b)).cloned();
            return Ok((self.round(named.map(Waiting::named).collect(), dry), Vec::new()));
        }
        if current {
            return Ok((Round::of(selection.current.clone()), Vec::new()));
        }
        let mut unread: HashMap<_, _> = if dry { HashMap::new() } else { self.hear()?.into_iter().collect() };
        let look = Look::new(self);
        let (mut waiting, mut settled) = (Vec::new(), Vec::new());
        self.store.visit_heads("refs/heads/", &mut |name, read| {
            // A head that can't be read is reported, whatever branch it is on.
            let is_ours = read.is_err() || selection.takes(&name) && self.may_tick(&name);
            if unread.contains_key(&name) || !is_ours {
                return;
            }
            match look.judge(name, read) {
                Judged::Nothing => {}
                Judged::Settled(report) => settled.push(*report),
                Judged::Asks(branch) => waiting.push(branch),
            }
        })?;
        settled.sort_unstable_by(|a, b| a.branch.cmp(&b.branch));
        unread.retain(|name, _| selection.takes(name) && self.may_tick(name));
        waiting.extend(unread.into_iter().map(|(branch, tip)| Waiting {
            branch,
            tip: Some(tip),
            read: false,
        }));
        waiting.sort_unstable_by(|a, b| a.branch.cmp(&b.branch));
        Ok((self.round(waiting, dry), settled))
    }

    /// Learns what all branches hold, and returns those whose heads were not fetched yet. The head of the
    /// branch that commands come from is fetched at once.
    fn hear(&self) -> Result<Vec<(RefName, ObjectId)>, RunnerError> {
        let mut unread = self.store.hear()?;
        if let CommandsFrom::Ref(source) = &self.settings.commands_from
            && let Some(at) = unread.iter().position(|(name, _)| name == source)
        {
            self.store.fetch_heads(&[unread.swap_remove(at).0])?;
        }
        Ok(unread)
    }

    /// Returns the branches in the order in which they are taken: as given, or, for a remote, where other
    /// machines begin too, from a place of this runner's own (K32).
    fn round(&self, mut waiting: Vec<Waiting>, dry: bool) -> Round {
        if self.settings.remote.is_some() && !dry {
            waiting.sort_by_cached_key(|w| order::distance(&self.runner_id, w.branch.as_bytes()));
        }
        Round::new(waiting)
    }

    /// Evaluates what is in the round, one branch after the other.
    pub fn work_off(
        &self,
        round: &Round,
        dry: bool,
        chain: bool,
        told: &impl Fn(&Report),
    ) -> Result<(), RunnerError> {
        loop {
            match round.next() {
                Turn::Tick(branch) => {
                    let was_first = self.keep_ticking(&branch, round, (dry, chain), told);
                    if !was_first && self.settings.remote.is_some() {
                        round.step_back(&self.runner_id, &*self.store);
                    }
                }
                Turn::Read => {
                    // No call to the remote is begun once a signal came.
                    if self.interrupt.signal().is_none() {
                        self.store.listen();
                    }
                    let heads = round.take_unread(&*self.store);
                    let taken = heads.len();
                    match self.read_ahead(heads, told) {
                        Ok(asking) => round.put_read(taken, asking),
                        Err(error) => {
                            round.put_read(taken, Vec::new());
                            return Err(error);
                        }
                    }
                }
                Turn::Over => return Ok(()),
            }
        }
    }

    /// Fetches heads whose turn comes soon; returns those that ask for something.
    fn read_ahead(
        &self,
        branches: Vec<RefName>,
        told: &impl Fn(&Report),
    ) -> Result<Vec<Waiting>, RunnerError> {
        if branches.is_empty() {
            return Ok(Vec::new());
        }
        let fetched = match self.interrupt.signal() {
            None => self.store.fetch_heads(&branches),
            Some(_) => Ok(()),
        };
        if self.interrupt.signal().is_some() {
            // The evaluation of each says that it was interrupted.
            return Ok(branches.into_iter().map(Waiting::named).collect());
        }
        fetched?;
        let look = Look::new(self);
        let mut asking = Vec::new();
        for branch in branches {
            let read = match self.store.known_tip(&branch) {
                Ok(None) => continue,
                Ok(Some(id)) => self.store.read_commit(id),
                Err(error) => Err(error),
            };
            match look.judge(branch, read) {
                Judged::Nothing => {}
                Judged::Settled(report) => told(&report),
                Judged::Asks(waiting) => asking.push(waiting),
            }
        }
        Ok(asking)
    }

    /// Evaluates one branch; with `chain`, again for as long as it advances and no signal comes. False where
    /// another runner was quicker; what that wrote to a remote is fetched in the next pass.
    fn keep_ticking(
        &self,
        branch: &RefName,
        round: &Round,
        (dry, chain): (bool, bool),
        told: &impl Fn(&Report),
    ) -> bool {
        loop {
            let mut report = self.tick(branch, dry);
            // A chain looks at the branch again, and finds the same.
            if !chain
                && let Verdict::Ran(ran) = &report.verdict
                && let Outcome::Advanced { commit, state } | Outcome::Own { commit, state: Some(state) } =
                    &ran.outcome
            {
                // The outcome is on the branch: an error that only keeps this note from being made is no failure.
                let missed = self.missed(*commit, state).unwrap_or_default();
                report.notes.extend(missed);
            }
            told(&report);
            let lost = matches!(report.verdict, Verdict::LostRace);
            let elsewhere = lost && self.settings.remote.is_some();
            let again = chain && !dry && advanced(&report) && !elsewhere && !self.gives_way(&report);
            if !again || self.interrupt.signal().is_some() {
                return !lost;
            }
            if self.may_give_way(round)
                && self.has_command(branch)
                && (round.waiting() > 0 || any_free(self.repo))
                && note_waiting(self.repo, self.settings, branch).is_ok()
            {
                // Noted, the branch comes after those that wait longer for a slot (K14). One that can't be noted
                // goes on, or it would be lost.
                told(&Report { verdict: Verdict::NoSlot, ..Report::new(branch) });
                return true;
            }
        }
    }

    /// True where a node of a flow is done with its turn, and all branches are looked at again once those of
    /// this pass are through. If the node went on by itself, it would keep the other nodes from what it
    /// handed them.
    fn gives_way(&self, report: &Report) -> bool {
        let routed = match &report.verdict {
            Verdict::Ran(ran) => ran.state.as_str() == ROUTE,
            Verdict::Idle(_)
            | Verdict::Unusable { .. }
            | Verdict::Skipped(_)
            | Verdict::Leased { .. }
            | Verdict::LostRace
            | Verdict::NoSlot
            | Verdict::Refused(_)
            | Verdict::WouldRun { .. }
            | Verdict::WouldDeliver { .. }
            | Verdict::Undelivered { .. }
            | Verdict::WouldRecover
            | Verdict::Unlanded { .. }
            | Verdict::Failed(_) => false,
        };
        // A chain in the background does not look at others, which have chains of their own.
        routed && report.branch.is_node() && self.settings.wait_for_slot
    }

    /// True in the background where another branch of the round is left, or one is noted: it may wait longer for
    /// a slot than the branch whose run has just ended.
    fn may_give_way(&self, round: &Round) -> bool {
        let here = !self.settings.wait_for_slot && self.settings.remote.is_none();
        here && (round.waiting() > 0 || self.repo.has_pending())
    }

    /// True where a command answers the branch's head.
    fn has_command(&self, branch: &RefName) -> bool {
        let tip = self.read_tip(branch).ok().flatten();
        tip.is_some_and(|tip| matches!(self.resolve(&tip), Ok(Resolved::Found(_))))
    }
}

/// One look at all heads.
struct Look<'a> {
    runner: &'a Runner<'a>,
    /// Created when the first state event is found.
    lookups: OnceCell<Lookups<'a>>,
    occupants: Occupants,
    /// True where something was noted of heads that were seen before.
    any_seen: bool,
    /// Read with the first head that it may concern.
    around: Around,
}

/// What a head asks for.
enum Judged {
    /// It is no state event.
    Nothing,
    /// It asks for nothing, or could not be read; this is the report.
    Settled(Box<Report>),
    /// The branch is to be evaluated.
    Asks(Waiting),
}

impl<'a> Look<'a> {
    fn new(runner: &'a Runner<'a>) -> Self {
        let (lookups, occupants) = (OnceCell::new(), Occupants::default());
        Self { runner, lookups, occupants, any_seen: runner.any_seen(), around: Around::default() }
    }

    fn judge(&self, branch: RefName, read: Result<Commit, StoreError>) -> Judged {
        let mut report = Report::new(&branch);
        report.head = read.as_ref().ok().map(|commit| commit.id);
        let judged = match read.map(Tip::from) {
            Ok(tip) if tip.event.is_none() => match missed_state(&tip.commit.message) {
                None => return Judged::Nothing,
                // Its author may have meant a state, and hears nothing else about it.
                Some(missed) => {
                    report.notes.push(Note::NearlyAnEvent(missed));
                    Ok(Some(Verdict::Idle(Idle::NoState)))
                }
            },
            Ok(tip) => self.settle(&branch, tip, &mut report),
            Err(error) => Err(RunnerError::Store(error)),
        };
        report.verdict = match judged {
            Ok(None) => return Judged::Asks(Waiting { branch, tip: report.head, read: true }),
            Ok(Some(verdict)) => verdict,
            Err(error) => Verdict::Failed(error),
        };
        report.remote.clone_from(&self.runner.settings.remote);
        Judged::Settled(Box::new(report))
    }

    fn lookups(&self) -> Result<&Lookups<'a>, RunnerError> {
        if let Some(known) = self.lookups.get() {
            return Ok(known);
        }
        let lookups = Lookups::new(self.runner)?;
        Ok(self.lookups.get_or_init(|| lookups))
    }

    /// Returns the verdict about a head that asks for nothing; `None` where the branch is to be evaluated.
    fn settle(
        &self,
        branch: &RefName,
        tip: Tip,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let runner = self.runner;
        if runner.source_of(&tip).is_some() {
            return Ok(None);
        }
        let tip = if self.any_seen { runner.with_hop(branch, tip) } else { runner.with_node(branch, tip) };
        let state = tip.event.as_ref().and_then(|e| e.state_name());
        let working = state.is_some_and(StateName::is_working);
        let lookup = match state.filter(|_| !working) {
            Some(state) => match self.lookups()?.refusal() {
                Some(refusal) => return Ok(Some(Verdict::Refused(refusal))),
                None => self.lookups()?.lookup(&tip.commit, state)?,
            },
            None => Lookup::Missing,
        };
        let usable = matches!(lookup, Lookup::Found(_));
        let seen = if working && self.any_seen { runner.first_seen(branch, tip.id()) } else { None };
        let known = runner.known(branch, &tip, usable, &self.around)?;
        match decide(tip.head(), seen, runner.clock.now(), runner.policy_with(usable, known.facts())) {
            // Its work is asked for again when the branch is evaluated.
            Decision::Nothing(_) if runner.may_route_again(&tip) => Ok(None),
            Decision::Nothing(idle) => {
                if let Lookup::Unusable { path, why } = lookup {
                    return Ok(Some(runner.unusable(&tip, idle, path, why)));
                }
                if let Idle::NoCommand { state } = &idle {
                    report.notes.extend(self.lookups()?.hint(&tip, state)?);
                }
                Ok(Some(Verdict::Idle(idle)))
            }
            // A lease that is judged by observation is noted as seen when the branch is evaluated.
            Decision::Leased { observed: Some(_), .. } if seen.is_none() => Ok(None),
            Decision::Leased { until, observed } => {
                Ok(Some(runner.leased(&tip, until, observed, &self.occupants, report)))
            }
            Decision::Expired { .. } | Decision::Deliver { .. } | Decision::Dispatch { .. } => Ok(None),
        }
    }
}

/// Branches that wait for their turn in one pass.
pub struct Round {
    left: Mutex<Left>,
    /// Notified when heads were read.
    read: Condvar,
}

/// A branch that waits.
struct Waiting {
    branch: RefName,
    /// What the branch held when that was last asked for, if it was.
    tip: Option<ObjectId>,
    /// True where that commit was read and asks for something.
    read: bool,
}

impl Waiting {
    /// Returns a branch that is evaluated whatever it holds.
    fn named(branch: RefName) -> Self {
        Self { branch, tip: None, read: true }
    }
}

struct Left {
    branches: VecDeque<Waiting>,
    /// How often another machine was quicker.
    lost: u64,
    /// How many threads are reading heads just now.
    reading: usize,
    /// How many heads are read at a time.
    batch: usize,
    /// True where branches were left to another machine that had moved them before they were read.
    passed_over: bool,
}

/// What is to be done next.
enum Turn {
    /// Evaluate this branch.
    Tick(RefName),
    /// Read the heads of the branches that come next.
    Read,
    /// Nothing.
    Over,
}

/// How many heads are read ahead at first, and at most. A machine that notices no other, or finds mostly
/// heads that ask for nothing, reads more and more at a time; one that shares its work reads no more than
/// about its share.
const READ_AHEAD: usize = 32;
const READ_AHEAD_MAX: usize = 1024;

impl Round {
    /// Returns a round of these branches, in this order.
    pub fn of(branches: impl IntoIterator<Item = RefName>) -> Self {
        Self::new(branches.into_iter().map(Waiting::named).collect())
    }

    fn new(branches: Vec<Waiting>) -> Self {
        let branches = branches.into();
        let left = Left { branches, lost: 0, reading: 0, batch: READ_AHEAD, passed_over: false };
        Self { left: Mutex::new(left), read: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what comes next. If that depends on heads that another thread is reading, waits for them.
    fn next(&self) -> Turn {
        let mut left = self.left();
        while left.branches.is_empty() && left.reading > 0 {
            left = self.read.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        match left.branches.pop_front() {
            Some(Waiting { branch, read: true, .. }) => Turn::Tick(branch),
            Some(unread) => {
                left.branches.push_front(unread);
                Turn::Read
            }
            None => Turn::Over,
        }
    }

    /// Takes the next unread branches out of the round; those that another machine has moved meanwhile are
    /// left to it. [`Round::put_read`] puts back what is to be evaluated.
    fn take_unread(&self, store: &dyn Store) -> Vec<RefName> {
        let mut left = self.left();
        left.reading += 1;
        let (mut taken, mut kept) = (Vec::new(), VecDeque::new());
        for waiting in std::mem::take(&mut left.branches) {
            let moved = || waiting.tip.is_some_and(|tip| store.has_moved(&waiting.branch, tip));
            if waiting.read {
                kept.push_back(waiting);
            } else if moved() {
                left.passed_over = true;
            } else if taken.len() < left.batch {
                taken.push(waiting.branch);
            } else {
                kept.push_back(waiting);
            }
        }
        left.branches = kept;
        taken
    }

    /// Puts back those of `read` heads that ask for something, and sets how many are read next.
    fn put_read(&self, read: usize, asking: Vec<Waiting>) {
        let mut left = self.left();
        left.reading -= 1;
        let more = left.lost == 0 && !left.passed_over || asking.len() < read / 4;
        left.batch = if more { (left.batch * 4).min(READ_AHEAD_MAX) } else { READ_AHEAD };
        for waiting in asking.into_iter().rev() {
            left.branches.push_front(waiting);
        }
        self.read.notify_all();
    }

    /// Continues at another place of the round, where no other machine is known to be: the one that was
    /// quicker works on what comes next at this place.
    fn step_back(&self, runner_id: &str, store: &dyn Store) {
        let mut left = self.left();
        left.lost += 1;
        let stands = |(_, w): &(usize, &Waiting)| w.tip.is_none_or(|tip| !store.has_moved(&w.branch, tip));
        let standing: Vec<usize> =
            left.branches.iter().enumerate().filter(stands).map(|(at, _)| at).collect();
        if let Some(at) = standing.get(order::leap(runner_id, left.lost, standing.len())) {
            left.branches.rotate_left(*at);
        }
    }

    /// True where branches were left to other machines without a look at what those made of them.
    pub fn has_passed_over(&self) -> bool {
        self.left().passed_over
    }

    /// Returns how many branches wait.
    pub fn waiting(&self) -> usize {
        self.left().branches.len()
    }
}

/// Evaluates branches, at most `jobs` at a time. `make` gives each worker a runner of its own, and `told` is
/// given every report as it comes.
pub(crate) fn evaluate<'r, M, T>(
    round: &Round,
    jobs: usize,
    dry: bool,
    chain: bool,
    make: M,
    told: T,
) -> Result<(), RunnerError>
where
    M: Fn() -> Result<Runner<'r>, RunnerError> + Sync,
    T: Fn(&Report) + Sync,
{
    let workers = jobs.clamp(1, round.waiting().max(1));
    let work = || make()?.work_off(round, dry, chain, &told);
    if workers == 1 {
        work()?;
    } else {
        std::thread::scope(|scope| {
            let start = || std::thread::Builder::new().spawn_scoped(scope, work);
            let threads: Vec<_> = (1..workers).map_while(|_| start().ok()).collect();
            // This thread works too: where the system gives no more threads, it does everything.
            let own = work();
            threads.into_iter().fold(own, |all, t| all.and(t.join().unwrap_or(Ok(()))))
        })?;
    }
    Ok(())
}

/// True where the branch has a new head that may be actionable.
pub(crate) fn advanced(report: &Report) -> bool {
    match &report.verdict {
        Verdict::Ran(ran) => match &ran.outcome {
            Outcome::Advanced { .. } | Outcome::Own { .. } | Outcome::Stalled { .. } => {
                ran.interrupted.is_none()
            }
            Outcome::KeptLease { .. } | Outcome::LeaseLeft { .. } | Outcome::Fenced { .. } => false,
        },
        Verdict::LostRace | Verdict::Unlanded { .. } => true,
        Verdict::Idle(
            Idle::NoState
            | Idle::InvalidState { .. }
            | Idle::NoCommand { .. }
            | Idle::HopLimit { .. }
            | Idle::Held { .. },
        )
        | Verdict::Unusable { .. }
        | Verdict::Skipped(_)
        | Verdict::Leased { .. }
        | Verdict::NoSlot
        | Verdict::Refused(_)
        | Verdict::WouldRun { .. }
        | Verdict::WouldDeliver { .. }
        | Verdict::Undelivered { .. }
        | Verdict::WouldRecover
        | Verdict::Failed(_) => false,
    }
}
