//! Chains: a branch goes on until its head is not actionable.
//!
//! [`run`] is a chain in the background, [`stream`] one that its caller watches. A branch that finds no slot
//! is noted, and the process that frees a slot takes it on; one process of a repository stays to watch while
//! branches wait. A chain ends with one look at the other branches, which recovers abandoned ones and takes
//! on those whose wait is over. Implements K40, and K14 (pending).

use super::background::{Cause, Promised, inherited_watch, start, start_watching, wake};
use super::config::{Flags, HookMode};
use super::dispatch::Tally;
use super::session::Session;
use super::{AppError, Audience, Exit, Warning, mend, notice};
use crate::runner::RunnerError;
use crate::runner::pending::{self, Backlog, Taken, is_unready_since, say_unready, take};
use crate::runner::queue::{Waiting, Watching, note_waiting, watch};
use crate::runner::report::{Refusal, Report, Skip, Verdict};
use crate::runner::select::{Round, evaluate};
use crate::runner::settings::Settings;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most notes that a chain has in hand at a time: each is an open file.
const IN_HAND: usize = 128;
/// How long a chain waits for a rebase to end.
const REBASE_ENDS: Duration = Duration::from_secs(60);

/// Runs the chains of these branches, then of those that wait for a slot. The repository is opened again
/// after each wait, so that what may run is decided by the configuration of that moment.
pub fn run(
    mut session: Session,
    branches: &[OsString],
    promised: Promised,
    cause: Cause,
    watches: bool,
    interrupt: &Interrupt,
    audience: &dyn Audience,
) -> Result<Exit, AppError> {
    let (began, (mut names, mut run_ids)) = (SystemTime::now(), promised);
    let mut watch = if watches { inherited_watch(&session)? } else { None };
    let mut exit = Exit::Done;
    for arg in branches {
        names.push(session.branch(arg)?);
    }
    // Branches that wait for a slot have nothing to do with the rebase after which this chain began.
    let later = if cause == Cause::Push { Cause::Push } else { Cause::Here };
    loop {
        (session.short_environment, session.is_chain) = (cause == Cause::Push, true);
        session.repo.ended_by(interrupt.force_stop());
        if cause == Cause::Rebase && !names.is_empty() {
            wait_for_rebase(&session.repo.git_dir);
        }
        if session.config.hooks()? == HookMode::Off {
            // What was to begin waits for a tick that means it.
            for (at, branch) in names.iter().enumerate() {
                let promised = run_ids.get(at).map(|id: &String| &**id).filter(|id| !id.is_empty());
                pending::note(&session.repo, branch, promised)?;
            }
            session.warn(Warning::HooksOff);
            return Ok(exit);
        }
        // A linked working tree, with its Git directory, may be removed while the chain is at work.
        if session.repo.git_dir != session.repo.common_dir {
            session = session.beside(&session.repo.common_dir)?;
            continue;
        }
        let mut settings = session.settings(&flags(&session, false))?;
        session.require_trust(&settings)?;
        settings.wait_for_slot = false;
        let chain = Chaining::new(&session, &settings, interrupt, later, audience);
        let again = chain.go_on(names, &run_ids, watch.take())?;
        exit = exit.max(chain.exit());
        if !again {
            return Ok(exit);
        }
        (names, run_ids) = Default::default();
        session = session.reopened()?;
        if watches && is_unready_since(&session.repo, began) {
            return Ok(exit);
        }
    }
}

/// Returns the flags of a chain, which runs one command at a time unless `aynig.jobs` is set.
fn flags(session: &Session, tee: bool) -> Flags {
    let jobs = session.config.get("jobs").is_none().then_some(1);
    Flags { jobs, tee, ..Flags::here() }
}

fn wait_for_rebase(git_dir: &Path) {
    let until = Instant::now() + REBASE_ENDS;
    while is_rebasing(git_dir) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// True during a rebase in the working tree of this Git directory.
pub fn is_rebasing(git_dir: &Path) -> bool {
    git_dir.join("rebase-merge").exists() || git_dir.join("rebase-apply").exists()
}

/// Runs the chains of these branches while the user who pushed them watches: what commands print is shown,
/// and these branches wait for slots. Other branches that wait for a slot go on in the background.
pub fn stream(
    session: &mut Session,
    branches: Vec<RefName>,
    run_ids: &[String],
    audience: &dyn Audience,
) -> Result<Exit, AppError> {
    let interrupt = Interrupt::by_signals()?;
    session.repo.ended_by(interrupt.force_stop());
    session.is_chain = true;
    let session = &*session;
    let mut settings = session.settings(&flags(session, true))?;
    session.require_trust(&settings)?;
    settings.wait_for_slot = true;
    let chain = Chaining::new(session, &settings, &interrupt, Cause::Here, audience);
    if chain.go_on(branches, run_ids, None)? {
        match session.reopened()?.config.hooks()? {
            HookMode::Off => session.warn(Warning::HooksOff),
            HookMode::Wait | HookMode::Detach => start(session, &[], chain.cause)?,
        }
    }
    Ok(chain.exit())
}

/// One chain, by the configuration that was read when it began.
struct Chaining<'a> {
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    /// The cause of the further chains that this one starts.
    cause: Cause,
    audience: &'a dyn Audience,
    tally: Tally,
    /// True once what may run has changed: the branches that are left wait for a chain with the new
    /// configuration.
    changed: AtomicBool,
    /// This machine can run nothing until it is mended. The branches that wait stay noted for the next chain
    /// or tick.
    unready: AtomicBool,
}

/// True where nothing can run on this machine, whatever the branch.
fn is_unready(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Failed(
            RunnerError::Unready { .. }
                | RunnerError::SlotNote { .. }
                | RunnerError::NoWrapper { .. }
                | RunnerError::Closed { .. }
        )
    )
}

/// True where what is kept of this repository is being removed: then nothing new is noted.
fn is_closed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(RunnerError::Closed { .. }))
}

impl<'a> Chaining<'a> {
    fn new(
        session: &'a Session,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        cause: Cause,
        audience: &'a dyn Audience,
    ) -> Self {
        let (tally, changed, unready) = Default::default();
        Self { session, settings, interrupt, cause, audience, tally, changed, unready }
    }

    /// Returns the worst exit of all reports.
    fn exit(&self) -> Exit {
        self.tally.pass().exit
    }

    /// Runs the chains of these branches, then of those that wait. Returns true if it waited, or if what may
    /// run has changed: the remaining branches are then to be judged by the configuration of that moment.
    fn go_on(
        &self,
        branches: Vec<RefName>,
        run_ids: &[String],
        mut watch: Option<Watching>,
    ) -> Result<bool, AppError> {
        if let Ok(mut promised) = self.settings.run_ids.lock() {
            let known = branches.iter().cloned().zip(run_ids.iter().cloned());
            promised.extend(known.filter(|(_, id)| !id.is_empty()));
        }
        let runner = self.session.runner(self.settings, self.interrupt, self.audience)?;
        // In a repository where only hooks are used, no other verb mends.
        mend::all(self.session);
        let (branches, taken) = self.note_ahead(branches)?;
        let mut stuck = !self.evaluate(branches, taken)?;
        let (mut looked, mut backlog) = (HashSet::new(), Backlog::default());
        while self.interrupt.signal().is_none() && !self.has_changed() && !self.is_unready() {
            if self.settings.wait_for_slot {
                self.leave_watcher(runner.is_to_be_watched(true)?)?;
            } else {
                match runner.next_waiting(&mut backlog, stuck, watch.take())? {
                    Waiting::Run(taken, more) => {
                        // Without a watcher the work still goes on.
                        self.warn(self.leave_watcher(more));
                        let branches = taken.iter().map(|one| one.branch.clone()).collect();
                        stuck = !self.evaluate(branches, taken)?;
                        continue;
                    }
                    Waiting::Later => return Ok(true),
                    Waiting::Nobody => {}
                }
            }
            let look = runner.last_look()?;
            for report in &look.recovered {
                self.audience.recovered(report);
                notice::after(self.session, self.settings, report);
            }
            // These branches waited for something that this chain has done. Each head is tried once.
            let awaited = look.awaited.into_iter().filter(|head| looked.insert(head.clone()));
            let awaited: Vec<RefName> = awaited.map(|(branch, _)| branch).collect();
            if awaited.is_empty() {
                break;
            }
            stuck = !self.evaluate(awaited, Vec::new())?;
        }
        Ok(self.has_changed())
    }

    /// Notes the branches that can't be run at once, so that the death of this process does not lose them.
    /// Takes some of the notes in hand; the rest is taken on as slots become free. Returns the branches to
    /// evaluate, and the notes in hand.
    fn note_ahead(&self, mut branches: Vec<RefName>) -> Result<(Vec<RefName>, Vec<Taken>), AppError> {
        let mut taken = Vec::new();
        // A user who watches sees what becomes of the branches.
        if self.settings.wait_for_slot || branches.len() <= self.settings.jobs.get() {
            return Ok((branches, taken));
        }
        let later = branches.split_off(self.settings.jobs.get());
        for branch in &later {
            // A branch that can't be noted is evaluated all the same.
            if let Err(error) = self.note(branch) {
                self.session.warn(Warning::Failed(error));
                branches.push(branch.clone());
            }
        }
        for mut one in later.iter().take(IN_HAND).filter_map(|branch| take(&self.session.repo, branch)) {
            if let (Some(id), Ok(mut ids)) = (one.run_id.take(), self.settings.run_ids.lock()) {
                ids.insert(one.branch.clone(), id);
            }
            branches.push(one.branch.clone());
            taken.push(one);
        }
        Ok((branches, taken))
    }

    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    fn is_unready(&self) -> bool {
        self.unready.load(Ordering::Relaxed)
    }

    /// Runs the chains of branches, of some of which the notes are in hand (`taken`). Returns false where
    /// none found a slot.
    fn evaluate(&self, branches: Vec<RefName>, taken: Vec<Taken>) -> Result<bool, AppError> {
        let make = || self.session.runner(self.settings, self.interrupt, self.audience);
        let in_hand: Mutex<Vec<Taken>> = Mutex::new(taken);
        let (many, any) = (branches.len() > 1, AtomicBool::new(branches.is_empty()));
        let told = |report: &Report| {
            let mut in_hand = in_hand.lock().unwrap_or_else(PoisonError::into_inner);
            let at = in_hand.iter().position(|one| one.branch == report.branch);
            let taken = at.map(|at| in_hand.swap_remove(at));
            // A branch that a signal kept from being evaluated is left to the next chain.
            if matches!(report.verdict, Verdict::NoSlot | Verdict::Skipped(Skip::Interrupted)) {
                // While other branches run, this process does not look for free slots.
                self.warn(self.note(&report.branch).and_then(|()| self.leave_watcher(many)));
            } else if matches!(report.verdict, Verdict::Refused(Refusal::Changed)) {
                self.changed.store(true, Ordering::Relaxed);
                self.warn(self.note(&report.branch));
            } else if is_unready(&report.verdict) && (taken.is_some() || !is_closed(&report.verdict)) {
                // Nothing can run here until it is mended, and the branch waits for that.
                self.unready.store(true, Ordering::Relaxed);
                say_unready(&self.session.repo);
                self.warn(self.note(&report.branch));
                self.audience.reported(report);
            } else {
                any.store(true, Ordering::Relaxed);
                taken.into_iter().for_each(Taken::done);
                self.audience.reported(report);
                wake(self.session, report);
                notice::after(self.session, self.settings, report);
            }
            self.tally.count(report, false);
        };
        if let Err(error) =
            evaluate(&Round::of(branches.clone()), self.settings.jobs.get(), false, true, make, told)
        {
            for branch in &branches {
                self.note(branch)?;
            }
            return Err(error.into());
        }
        Ok(any.into_inner())
    }

    fn warn(&self, done: Result<(), AppError>) {
        if let Err(error) = done {
            self.session.warn(Warning::Failed(error));
        }
    }

    fn note(&self, branch: &RefName) -> Result<(), AppError> {
        Ok(note_waiting(&self.session.repo, self.settings, branch)?)
    }

    /// Has a process watch over the branches that wait, if none does yet.
    fn leave_watcher(&self, needed: bool) -> Result<(), AppError> {
        if !needed || self.interrupt.signal().is_some() {
            return Ok(());
        }
        match watch(&self.session.repo)? {
            Some(watch) => start_watching(self.session, watch, self.cause),
            None => Ok(()),
        }
    }
}
