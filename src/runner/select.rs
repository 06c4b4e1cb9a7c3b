//! Which branches a tick looks at, and all of them at a time.
//!
//! Without names every local branch is judged from one scan, and only those whose head asks for something are
//! read again and evaluated. A branch that is blocked never blocks others. Implements K6, K43 (own
//! locks are gone after the next tick, and the last sentence).

use super::lookups::Lookups;
use super::report::{Report, Verdict};
use super::settings::CurrentBranch;
use super::slot::Occupants;
use super::{Runner, RunnerError, Tip};
use crate::protocol::decide::{Decision, Idle, decide};
use crate::protocol::name::StateName;
use crate::protocol::order;
use crate::store::RefName;
use crate::store::command_tree::Lookup;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Mutex;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Branches by name; empty: all local ones.
    pub named: Vec<RefName>,
    /// The branch that is checked out where we stand.
    pub current: Option<RefName>,
    /// What to do about it.
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
    /// The branches to evaluate: those named, or those whose head asks for something. And what is to be said of
    /// the others that are state events, or could not be read, from one look at all heads.
    pub fn select(&self, selection: &Selection) -> Result<(Vec<RefName>, Vec<Report>), RunnerError> {
        self.store.refresh()?;
        if !selection.named.is_empty() {
            let named = selection.named.iter().filter(|b| selection.takes(b)).cloned().collect();
            return Ok((named, Vec::new()));
        }
        if selection.current_branch == CurrentBranch::Only {
            return Ok((selection.current.iter().cloned().collect(), Vec::new()));
        }
        let (lookups, occupants) = (OnceCell::new(), Occupants::default());
        let look = Look { runner: self, lookups, occupants, any_seen: self.any_seen() };
        let (mut branches, mut settled) = (Vec::new(), Vec::new());
        self.store.visit_heads("refs/heads/", &mut |name, read| {
            let mut report = Report::new(&name);
            let judged = match read.map(Tip::from) {
                Ok(tip) if tip.event.is_none() || !selection.takes(&name) || !self.may_tick(&name) => return,
                Ok(tip) => look.settle(&name, tip, &mut report),
                Err(error) => Err(RunnerError::Store(error)),
            };
            report.verdict = match judged {
                Ok(None) => return branches.push(name),
                Ok(Some(verdict)) => verdict,
                Err(error) => Verdict::Failed(error),
            };
            report.remote.clone_from(&self.settings.remote);
            settled.push(report);
        })?;
        branches.sort_unstable();
        settled.sort_unstable_by(|a, b| a.branch.cmp(&b.branch));
        Ok((branches, settled))
    }

    /// The branches in the order in which they are taken: as given; those of a remote, where other machines
    /// begin too, from a place of this runner's own (K32).
    pub fn round(&self, mut branches: Vec<RefName>, dry: bool) -> Round {
        if self.settings.remote.is_some() && !dry {
            branches.sort_by_cached_key(|branch| order::distance(&self.runner_id, branch.as_bytes()));
        }
        Round::of(branches)
    }

    /// Evaluates what is in the round, one branch after the other.
    pub fn work_off(&self, round: &Round, dry: bool, chain: bool, told: &impl Fn(&Report)) {
        while let Some(branch) = round.next() {
            let was_first = self.keep_ticking(&branch, dry, chain, told);
            if !was_first && self.settings.remote.is_some() {
                round.step_back(&self.runner_id);
            }
        }
    }

    /// Evaluates one branch; with `chain` again for as long as it advances and nobody interrupts. False where
    /// somebody else was quicker: on a remote that is heard of again in the next pass.
    fn keep_ticking(&self, branch: &RefName, dry: bool, chain: bool, told: &impl Fn(&Report)) -> bool {
        loop {
            let report = self.tick(branch, dry);
            told(&report);
            let lost = matches!(report.verdict, Verdict::LostRace);
            let elsewhere = lost && self.settings.remote.is_some();
            let again = chain && !dry && advanced(&report) && !elsewhere;
            if !again || self.interrupt.signal().is_some() {
                return !lost;
            }
        }
    }

    /// True where `aynig.branches` lets a branch be ticked.
    pub fn may_tick(&self, branch: &RefName) -> bool {
        self.settings.branches.is_empty() || crate::store::pattern::any(&self.settings.branches, branch)
    }
}

/// One look at all heads.
struct Look<'a> {
    runner: &'a Runner<'a>,
    /// Begun with the first state event.
    lookups: OnceCell<Lookups<'a>>,
    occupants: Occupants,
    /// Something was noted of heads that were seen before.
    any_seen: bool,
}

impl<'a> Look<'a> {
    fn lookups(&self) -> Result<&Lookups<'a>, RunnerError> {
        if let Some(known) = self.lookups.get() {
            return Ok(known);
        }
        let lookups = Lookups::new(self.runner)?;
        Ok(self.lookups.get_or_init(|| lookups))
    }

    /// The verdict about a head that asks for nothing; `None` where the branch is to be evaluated.
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
        let tip = if self.any_seen { runner.with_hop(branch, tip) } else { tip };
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
        match decide(tip.head(), seen, runner.clock.now(), runner.policy(usable)) {
            Decision::Nothing(idle) => {
                if let Lookup::Unusable { path, why } = lookup {
                    return Ok(Some(runner.unusable(&tip, idle, path, why)));
                }
                if let Idle::NoCommand { state } = &idle {
                    report.notes.extend(self.lookups()?.hint(&tip, state)?);
                }
                Ok(Some(Verdict::Idle(idle)))
            }
            // One that is judged by observation is noted when it is evaluated.
            Decision::Leased { observed: Some(_), .. } if seen.is_none() => Ok(None),
            Decision::Leased { until, observed } => {
                Ok(Some(runner.leased(&tip, until, observed, &self.occupants, report)))
            }
            Decision::Expired { .. } | Decision::Dispatch { .. } => Ok(None),
        }
    }
}

/// Branches that wait for their turn in one pass, and how often somebody else had been quicker.
pub struct Round {
    left: Mutex<(VecDeque<RefName>, u64)>,
}

impl Round {
    /// These branches, in this order.
    pub fn of(branches: Vec<RefName>) -> Self {
        Self { left: Mutex::new((branches.into(), 0)) }
    }

    fn next(&self) -> Option<RefName> {
        self.left.lock().ok()?.0.pop_front()
    }

    /// Goes on elsewhere: whoever was quicker works on what comes next here.
    fn step_back(&self, runner_id: &str) {
        if let Ok(mut left) = self.left.lock() {
            left.1 += 1;
            let leap = order::leap(runner_id, left.1, left.0.len());
            left.0.rotate_left(leap);
        }
    }

    fn len(&self) -> usize {
        self.left.lock().map_or(0, |left| left.0.len())
    }
}

/// Evaluates branches, at most `jobs` at a time. `make` gives each worker a runner of its own, `told`
/// is given every report as it comes.
pub fn evaluate<'r, M, T>(
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
    let workers = jobs.clamp(1, round.len().max(1));
    let work = || -> Result<(), RunnerError> {
        make()?.work_off(round, dry, chain, &told);
        Ok(())
    };
    if workers == 1 {
        work()?;
    } else {
        std::thread::scope(|scope| {
            let start = || std::thread::Builder::new().spawn_scoped(scope, work);
            let threads: Vec<_> = (1..workers).map_while(|_| start().ok()).collect();
            // This one works too: where the system gives no more threads it does everything.
            let own = work();
            threads.into_iter().fold(own, |all, t| all.and(t.join().unwrap_or(Ok(()))))
        })?;
    }
    Ok(())
}

/// True where the branch has a new head that may be actionable.
pub fn advanced(report: &Report) -> bool {
    match &report.verdict {
        Verdict::Ran(ran) => match &ran.outcome {
            super::report::Outcome::Advanced { .. }
            | super::report::Outcome::Own { .. }
            | super::report::Outcome::Stalled { .. } => ran.interrupted.is_none(),
            super::report::Outcome::KeptLease { .. }
            | super::report::Outcome::LeaseLeft { .. }
            | super::report::Outcome::Fenced { .. } => false,
        },
        Verdict::LostRace => true,
        Verdict::Idle(
            Idle::NoState | Idle::InvalidState { .. } | Idle::NoCommand { .. } | Idle::HopLimit { .. },
        )
        | Verdict::Unusable { .. }
        | Verdict::Skipped(_)
        | Verdict::Leased { .. }
        | Verdict::NoSlot
        | Verdict::Refused(_)
        | Verdict::WouldRun { .. }
        | Verdict::WouldRecover
        | Verdict::Failed(_) => false,
    }
}
