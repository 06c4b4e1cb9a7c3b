//! Dispatch: `tick` evaluates branches once, `run` until nothing is actionable.
//!
//! [`Ticking`] is what the user asked for. The caller settles trust first, since that may take a question to
//! the user. Each branch's report goes to the audience as it comes; after it, chains start for the branches
//! that the run asked to have looked at.

use super::background::{self, Cause, wake};
use super::config::{Flags, HookMode};
use super::session::Session;
use super::{AppError, Audience, Exit, Warning, mend, notice};
use crate::protocol::decide::{Held, Idle};
use crate::runner::pending::{Taken, take};
use crate::runner::report::{Refusal, Report, Skip, Verdict};
use crate::runner::select::{Selection, advanced, evaluate};
use crate::runner::settings::{CurrentBranch, Settings};
use crate::store::RefName;
use crate::store::hooks::Hooks;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What is to be ticked, and how.
#[derive(Debug, Clone)]
pub struct Ticking {
    /// Names of branches; empty for all.
    pub branches: Vec<OsString>,
    /// Flags that take precedence over the configuration.
    pub flags: Flags,
    /// What to do about the branch that is checked out.
    pub current_branch: CurrentBranch,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// What one pass over the branches came to. The reports themselves are not kept, since a chain may go on for
/// days.
#[derive(Debug, Default, Clone, Copy)]
pub struct Pass {
    /// The worst exit of all reports.
    pub exit: Exit,
    /// True where a branch has a new head that may be actionable.
    pub advanced: bool,
    /// The earliest time from which a head that was seen may be dispatched, in seconds since 1970.
    pub earliest: Option<i64>,
}

/// Adds up reports that several threads make.
#[derive(Default)]
pub(super) struct Tally(Mutex<Pass>);

impl Tally {
    /// Takes one report into account; `named` where the user asked for its branch by name.
    pub(super) fn count(&self, report: &Report, named: bool) {
        let mut pass = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pass.exit = pass.exit.max(Exit::of_report(report, named));
        pass.advanced |= advanced(report);
        if let Verdict::Idle(Idle::Held { by: Held::NotBefore(Ok(at)), .. }) = &report.verdict {
            pass.earliest = Some(pass.earliest.map_or(*at, |known| known.min(*at)));
        }
    }

    pub(super) fn pass(&self) -> Pass {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticking {
    fn selection(&self, session: &Session) -> Result<Selection, AppError> {
        let mut named: Vec<RefName> = Vec::new();
        for branch in &self.branches {
            let branch = session.branch(branch)?;
            if !named.contains(&branch) {
                named.push(branch);
            }
        }
        // Where no choice hangs on the current branch, HEAD is not read.
        let current = match self.current_branch {
            CurrentBranch::Include => None,
            CurrentBranch::Skip | CurrentBranch::Only => session.current_branch()?,
        };
        Ok(Selection { named, current, current_branch: self.current_branch })
    }
}

/// Evaluates branches once; with `chain`, each until its head is not actionable. `audience` makes the
/// audience for the settings and branches that are looked at.
pub fn tick<A: Audience>(
    mut session: Session,
    settings: &Settings,
    ticking: &Ticking,
    chain: bool,
    interrupt: &Interrupt,
    audience: impl Fn(&Settings, &Selection) -> A,
) -> Result<Exit, AppError> {
    session.repo.ended_by(interrupt.force_stop());
    let selection = ticking.selection(&session)?;
    let audience = audience(settings, &selection);
    let look = Look { session: &session, settings, selection, interrupt, audience, dry: ticking.dry_run };
    match look.pass(chain) {
        Ok((pass, None)) => Ok(look.end(pass.exit)),
        Ok((_, Some(error))) | Err(error) => look.stopped(error),
    }
}

/// Evaluates branches until nothing is actionable. With `every`, waits that long and does so again, until a
/// signal comes.
pub fn run<A: Audience>(
    mut session: Session,
    mut settings: Settings,
    ticking: &Ticking,
    every: Option<Duration>,
    interrupt: &Interrupt,
    audience: impl Fn(&Settings, &Selection) -> A,
) -> Result<Exit, AppError> {
    loop {
        session.repo.ended_by(interrupt.force_stop());
        let selection = ticking.selection(&session)?;
        let audience = audience(&settings, &selection);
        let look = Look {
            session: &session,
            settings: &settings,
            selection,
            interrupt,
            audience,
            dry: ticking.dry_run,
        };
        let (exit, earliest) = look.passes(every.is_some())?;
        let Some(every) = every.filter(|_| interrupt.signal().is_none()) else {
            return Ok(look.end(exit));
        };
        wait(interrupt, every, earliest);
        if interrupt.signal().is_some() {
            return Ok(look.end(exit));
        }
        // The repository is opened again after each wait, so that what may run is decided by the
        // configuration of that moment.
        session = session.reopened()?;
        settings = session.settings(&ticking.flags)?;
        session.require_trust(&settings)?;
    }
}

/// True where a branch that waits for a slot goes on waiting.
fn is_left(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::NoSlot
            | Verdict::Skipped(Skip::Interrupted)
            | Verdict::Refused(Refusal::Changed)
            | Verdict::Failed(_)
    )
}

/// Waits for `left`, or only until the time `until` where that comes first (K51).
fn wait(interrupt: &Interrupt, mut left: Duration, until: Option<i64>) {
    let until = until
        .and_then(|at| u64::try_from(at).ok())
        .map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at));
    while !left.is_zero() && interrupt.signal().is_none() {
        // The clock is read again and again: it may be set meanwhile, and it goes on while the machine is
        // suspended.
        let due = until.map(|until| until.duration_since(SystemTime::now()).unwrap_or_default());
        let part = left.min(Duration::from_secs(30)).min(due.unwrap_or(Duration::MAX));
        if part.is_zero() {
            return;
        }
        interrupt.wait(part);
        left -= part;
    }
}

/// Starts a tick in the background, with the arguments that this process was called with. This process
/// reports what is wrong with them.
pub fn detach(session: &Session, ticking: &Ticking, args: &[OsString]) -> Result<(), AppError> {
    let settings = session.settings(&ticking.flags)?;
    session.require_trust(&settings)?;
    ticking.selection(session)?;
    background::detach(session, args, background::Input::Bytes(b""))
}

/// One look at the branches, by the configuration that was read when it began.
struct Look<'a, A> {
    session: &'a Session,
    settings: &'a Settings,
    selection: Selection,
    interrupt: &'a Interrupt,
    audience: A,
    dry: bool,
}

impl<A: Audience> Look<'_, A> {
    /// Returns the exit of the signal that came, or else `exit`.
    fn end(&self, exit: Exit) -> Exit {
        self.interrupt.signal().map_or(exit, Exit::of_signal)
    }

    /// Returns the signal's exit where a signal cut a request to a remote short: that is no failure.
    fn stopped(&self, error: AppError) -> Result<Exit, AppError> {
        match self.interrupt.signal() {
            Some(signal) if Exit::from(&error) == Exit::Later => Ok(Exit::of_signal(signal)),
            Some(_) | None => Err(error),
        }
    }

    /// Makes passes until nothing is actionable. A runner that polls survives failures that may pass. Returns
    /// the exit and the earliest time of a later dispatch.
    fn passes(&self, polls: bool) -> Result<(Exit, Option<i64>), AppError> {
        let (mut exit, mut earliest) = (Exit::Done, None);
        loop {
            let pass = match self.pass(true) {
                Ok((pass, None)) => pass,
                // What was seen before a remote fell silent counts, for example when to look again.
                Ok((pass, Some(error)))
                    if polls && self.interrupt.signal().is_none() && Exit::from(&error) == Exit::Later =>
                {
                    self.session.warn(Warning::Failed(error));
                    return Ok((pass.exit.max(Exit::Later), pass.earliest.or(earliest)));
                }
                Ok((_, Some(error))) | Err(error) if self.interrupt.signal().is_some() => {
                    return Ok((self.stopped(error)?, None));
                }
                Err(error) if polls && Exit::from(&error) == Exit::Later => {
                    self.session.warn(Warning::Failed(error));
                    return Ok((exit.max(Exit::Later), earliest));
                }
                Ok((_, Some(error))) | Err(error) => return Err(error),
            };
            // A run that stalled on the way counts even where a handler went on from it.
            exit = if polls { pass.exit } else { exit.max(pass.exit) };
            earliest = pass.earliest;
            if self.dry || !pass.advanced || self.interrupt.signal().is_some() {
                return Ok((exit, pass.earliest));
            }
        }
    }

    /// Makes one pass over the selected branches. Also returns the error that ended it early, if one did.
    fn pass(&self, chain: bool) -> Result<(Pass, Option<AppError>), AppError> {
        let make = || self.session.runner(self.settings, self.interrupt, &self.audience);
        let runner = make()?;
        if !self.dry {
            mend::all(self.session);
        }
        let (round, settled) = runner.select(&self.selection, self.dry).map_err(|error| {
            AppError::Unseen { named: self.selection.named.clone(), cause: Box::new(error.into()) }
        })?;
        if self.selection.current_branch == CurrentBranch::Only && self.selection.current.is_none() {
            self.session.warn(Warning::NoCurrentBranch);
        }
        let (tally, kept) = (Tally::default(), AtomicBool::new(false));
        // Where hooks are off nothing goes on in the background: branches that wait are this pass's own.
        let hooks_off = self.session.config.hooks()? == HookMode::Off;
        let has_notes = hooks_off && !self.dry && self.session.repo.has_pending();
        let looked_at = |report: &Report| {
            if has_notes && self.settings.remote.is_none() && !is_left(&report.verdict) {
                take(&self.session.repo, &report.branch).into_iter().for_each(Taken::done);
            }
        };
        let count = |report: &Report| tally.count(report, self.selection.names(&report.branch));
        let told = |report: &Report| {
            self.audience.reported(report);
            wake(self.session, report);
            notice::after(self.session, self.settings, report);
            kept.fetch_or(report.kept_lease(), Ordering::Relaxed);
            looked_at(report);
            count(report);
        };
        self.audience.settled(&settled);
        settled.iter().for_each(looked_at);
        settled.iter().for_each(count);
        let jobs = if round.waiting() <= 1 { 1 } else { self.settings.jobs.get() };
        let done = if jobs == 1 {
            runner.work_off(&round, self.dry, chain, &told)
        } else {
            drop(runner);
            evaluate(&round, jobs, self.dry, chain, make, told)
        };
        if !hooks_off {
            self.take_on_pending(kept.into_inner())?;
        }
        let mut pass = tally.pass();
        pass.advanced |= round.has_passed_over();
        Ok((pass, done.err().map(AppError::from)))
    }

    /// Starts a chain in the background where branches that hooks left waiting can have the slot that is free
    /// again (K14). Does so too where a process that its command left behind may still set a branch (`kept`),
    /// and hooks answer what is set.
    fn take_on_pending(&self, kept: bool) -> Result<(), AppError> {
        let repo = &self.session.repo;
        let waits = repo.has_pending() || kept && Hooks::any_installed(repo);
        let here = self.settings.remote.is_none() && !self.dry;
        if here && waits { background::start(self.session, &[], Cause::Here) } else { Ok(()) }
    }
}
