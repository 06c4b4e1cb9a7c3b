//! Which branches a tick looks at, and all of them at a time.
//!
//! Without names every local branch is judged from one scan, and only those that need more than a look
//! are evaluated. A branch that is blocked never blocks others. Implements K6, K43 (own
//! locks are gone after the next tick, and the last sentence).

use super::report::{Report, Verdict, worst};
use super::settings::CurrentBranch;
use super::{Runner, RunnerError, Tip};
use crate::protocol::decide::Idle;
use crate::store::RefName;
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

/// What one pass over the branches came to. Reports are told and let go: a chain may go on for days.
#[derive(Debug, Default)]
pub struct Pass {
    /// The worst exit code of all reports.
    pub code: i32,
    /// True where a branch has a new head that may be actionable.
    pub advanced: bool,
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

impl Pass {
    /// Takes one report into account; `named` where its branch was asked for by name.
    pub fn count(&mut self, report: &Report, named: bool) {
        self.code = worst(self.code, report.exit_code(named));
        self.advanced |= advanced(report);
    }
}

impl Runner<'_> {
    /// The branches to evaluate: those named, or those whose head is a state event. And those that could not
    /// be read.
    pub fn select(&self, selection: &Selection) -> Result<(Vec<RefName>, Vec<Report>), RunnerError> {
        self.store.refresh()?;
        if !selection.named.is_empty() {
            let named = selection.named.iter().filter(|b| selection.takes(b)).cloned().collect();
            return Ok((named, Vec::new()));
        }
        if selection.current_branch == CurrentBranch::Only {
            return Ok((selection.current.iter().cloned().collect(), Vec::new()));
        }
        let found = self.store.read_heads("refs/heads/")?;
        let mut branches = Vec::new();
        for (name, commit) in found.heads {
            if selection.takes(&name) && Tip::from(commit).event.is_some() && self.may_tick(&name) {
                branches.push(name);
            }
        }
        let failed = found.failed.into_iter().map(|(name, error)| {
            let mut report = Report::new(&name);
            report.remote = self.settings.remote.clone();
            report.verdict = Verdict::Failed(RunnerError::Store(error));
            report
        });
        Ok((branches, failed.collect()))
    }

    /// Evaluates one branch; with `chain` again for as long as it advances and nobody interrupts.
    pub fn keep_ticking(&self, branch: &RefName, dry: bool, chain: bool, told: &impl Fn(&Report)) {
        loop {
            let report = self.tick(branch, dry);
            told(&report);
            let again = chain && !dry && advanced(&report) && self.interrupt.signal().is_none();
            if !again {
                return;
            }
        }
    }

    /// True where `aynig.branches` lets a branch be ticked.
    pub fn may_tick(&self, branch: &RefName) -> bool {
        self.settings.branches.is_empty() || crate::store::pattern::any(&self.settings.branches, branch)
    }
}

/// Evaluates branches, at most `jobs` at a time. `make` gives each worker a runner of its own, `told`
/// is given every report as it comes.
pub fn evaluate<'r, M, T>(
    branches: Vec<RefName>,
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
    let workers = jobs.clamp(1, branches.len().max(1));
    let queue = Mutex::new(VecDeque::from(branches));
    let work = || -> Result<(), RunnerError> {
        let runner = make()?;
        loop {
            let next = queue.lock().ok().and_then(|mut q| q.pop_front());
            let Some(branch) = next else { return Ok(()) };
            runner.keep_ticking(&branch, dry, chain, &told);
        }
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
fn advanced(report: &Report) -> bool {
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
