//! `tick` and `run`: evaluate branches once, or until nothing is actionable.

use super::args::{CurrentBranchArg, Run, Tick, Ticking};
use super::chain;
use super::fail::Failure;
use super::observe::Display;
use super::session::{Global, Session};
use super::settings::{Flags, duration};
use super::{mend, output, render, trust};
use crate::protocol::decide::Idle;
use crate::protocol::text::escape;
use crate::protocol::text::with_causes;
use crate::runner::report::{Report, Skip, Verdict, worst};
use crate::runner::select::{Pass, Selection, evaluate};
use crate::runner::settings::{CommandsFrom, CurrentBranch, Settings};
use crate::store::RefName;
use crate::store::hooks::Hooks;
use crate::supervisor::background::leave_caller;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

impl Ticking {
    fn flags(&self) -> Flags {
        Flags {
            lease: self.lease.clone(),
            grace: self.grace.clone(),
            timeout: self.timeout.clone(),
            jobs: self.jobs,
            role: self.role.clone(),
            log_level: self.log_level.clone(),
            tee: self.tee,
            remote: self.remote.clone(),
        }
    }

    fn selection(&self, session: &Session) -> Result<Selection, Failure> {
        let named = self.branches.iter().map(|b| session.branch(b)).collect::<Result<_, _>>()?;
        let current_branch = match self.current_branch {
            CurrentBranchArg::Skip => CurrentBranch::Skip,
            CurrentBranchArg::Include => CurrentBranch::Include,
            CurrentBranchArg::Only => CurrentBranch::Only,
        };
        Ok(Selection { named, current: session.current_branch()?, current_branch })
    }
}

/// One call of `tick` or `run`.
struct Calling<'a> {
    session: &'a Session,
    settings: &'a Settings,
    selection: Selection,
    interrupt: &'a Interrupt,
    display: Display,
    dry: bool,
    json: bool,
    quiet: bool,
    /// Say the branches with nothing to do too.
    verbose: bool,
    /// What kept a branch from being claimed, as it was told: the next one is as well off with a word.
    told: Mutex<HashSet<String>>,
    /// Branches of which something was said: that there is nothing more to do is no news then.
    said: Mutex<HashSet<RefName>>,
}

/// `git aynig tick`.
pub fn tick(global: &Global, args: Tick) -> Result<i32, Failure> {
    if switched_off(global) {
        return Ok(0);
    }
    if args.detached {
        leave_caller();
        output::log_times();
    }
    let mut session = Session::open(global)?;
    if args.detach {
        return detach(&session, &args.ticking);
    }
    let (settings, selection) = prepare(&mut session, global, &args.ticking)?;
    let interrupt = Interrupt::by_signals()?;
    session.repo.ended_by(interrupt.force_stop());
    let calling = calling(global, &session, &settings, selection, &interrupt, &args.ticking);
    match calling.pass(args.chain) {
        Ok(pass) => Ok(signal_code(&calling, pass.code)),
        Err(failure) => stopped(&calling, failure),
    }
}

/// A question to a remote that a signal ended is no failure.
fn stopped(calling: &Calling<'_>, failure: Failure) -> Result<i32, Failure> {
    match calling.interrupt.signal() {
        Some(_) if failure.code == 75 => Ok(signal_code(calling, failure.code)),
        Some(_) | None => Err(failure),
    }
}

/// `git aynig run`.
pub fn run(global: &Global, args: Run) -> Result<i32, Failure> {
    if switched_off(global) {
        return Ok(0);
    }
    let every = match &args.every {
        None => None,
        Some(text) => Some(
            duration(text)
                .filter(|d| !d.is_zero())
                .ok_or_else(|| Failure::usage(format!("'{text}' is no duration; say 90, 90s or 5m")))?,
        ),
    };
    let interrupt = Interrupt::by_signals()?;
    let mut begun = false;
    loop {
        // Anew after each wait: what may run is what is said now.
        let mut session = Session::open(global)?;
        let (settings, selection) = match std::mem::replace(&mut begun, true) {
            false => prepare(&mut session, global, &args.ticking)?,
            true => again(&session, &args.ticking)?,
        };
        session.repo.ended_by(interrupt.force_stop());
        let calling = calling(global, &session, &settings, selection, &interrupt, &args.ticking);
        let code = passes(&calling, every.is_some())?;
        let Some(every) = every.filter(|_| interrupt.signal().is_none()) else {
            return Ok(signal_code(&calling, code));
        };
        wait(&interrupt, every);
        if interrupt.signal().is_some() {
            return Ok(signal_code(&calling, code));
        }
    }
}

/// Passes until nothing is actionable; the exit code. Who polls outlives what may pass.
fn passes(calling: &Calling<'_>, polls: bool) -> Result<i32, Failure> {
    let mut code = 0;
    loop {
        let pass = match calling.pass(true) {
            Ok(pass) => pass,
            Err(failure) if calling.interrupt.signal().is_some() => return stopped(calling, failure),
            Err(failure) if polls && failure.code == 75 => {
                output::error(&failure.render());
                return Ok(failure.code);
            }
            Err(failure) => return Err(failure),
        };
        // What stalled on the way counts even where a handler went on from it.
        code = if polls { pass.code } else { worst(code, pass.code) };
        if calling.dry || !pass.advanced || calling.interrupt.signal().is_some() {
            return Ok(code);
        }
    }
}

fn wait(interrupt: &Interrupt, mut left: std::time::Duration) {
    while !left.is_zero() && interrupt.signal().is_none() {
        let part = left.min(std::time::Duration::from_secs(30));
        interrupt.wait(part);
        left -= part;
    }
}

/// `AYNIG=0` switches everything off that would run a command. Who asked for a tick is told.
fn switched_off(global: &Global) -> bool {
    let off = std::env::var_os("AYNIG").is_some_and(|v| v == "0");
    if off && !global.quiet {
        output::note("AYNIG=0 is set: nothing is ticked");
        output::note("hint: unset AYNIG");
    }
    off
}

fn signal_code(calling: &Calling<'_>, code: i32) -> i32 {
    match calling.interrupt.signal() {
        None => code,
        Some(2) => 130,
        Some(_) => 143,
    }
}

fn prepare(session: &mut Session, global: &Global, args: &Ticking) -> Result<(Settings, Selection), Failure> {
    session.warn_ignored();
    let mut settings = session.settings(&args.flags())?;
    if settings.commands_from == CommandsFrom::Nowhere {
        let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !args.json;
        // With a remote they would be the remote's commands, and those are not shown.
        let asks = asks && settings.remote.is_none();
        if !(asks && trust::ask(session)?) {
            return Err(session.not_trusted());
        }
        // What was kept from it until now is not any more.
        *session = Session::open(global)?;
        settings.commands_from = trust::default_source(session)?;
    }
    Ok((settings, args.selection(session)?))
}

/// The same once it has begun: nobody is asked for trust in what he took it from.
fn again(session: &Session, args: &Ticking) -> Result<(Settings, Selection), Failure> {
    let settings = session.settings(&args.flags())?;
    session.require_trust(&settings)?;
    Ok((settings, args.selection(session)?))
}

fn calling<'a>(
    global: &Global,
    session: &'a Session,
    settings: &'a Settings,
    selection: Selection,
    interrupt: &'a Interrupt,
    args: &Ticking,
) -> Calling<'a> {
    // What several commands print at once says whose it is.
    let several = settings.jobs > 1 && selection.named.len() != 1;
    Calling {
        session,
        settings,
        selection,
        interrupt,
        display: Display::new(global.quiet || args.json, args.tee).several(several),
        dry: args.dry_run,
        json: args.json,
        quiet: global.quiet,
        verbose: global.verbose > 0,
        told: Mutex::default(),
        said: Mutex::default(),
    }
}

impl Calling<'_> {
    /// One pass over the selected branches.
    fn pass(&self, chain: bool) -> Result<Pass, Failure> {
        let make = || self.session.runner(self.settings, self.interrupt, &self.display);
        let runner = make()?;
        if !self.dry {
            mend::all(self.session);
        }
        let (branches, failed) = runner.select(&self.selection).map_err(|error| self.unseen(error.into()))?;
        if self.selection.current_branch == CurrentBranch::Only
            && self.selection.current.is_none()
            && !self.quiet
        {
            output::note("HEAD is detached: no branch is the current one");
            output::note("hint: git switch <branch>");
        }
        let (pass, kept) = (Mutex::new(Pass::default()), AtomicBool::new(false));
        let told = |report: &Report| {
            self.show(report);
            kept.fetch_or(report.kept_lease(), Ordering::Relaxed);
            let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
            pass.count(report, self.selection.names(&report.branch));
        };
        failed.iter().for_each(told);
        let jobs = if branches.len() <= 1 { 1 } else { self.settings.jobs };
        let round = runner.round(branches, self.dry);
        if jobs == 1 {
            runner.work_off(&round, self.dry, chain, &told);
        } else {
            drop(runner);
            evaluate(&round, jobs, self.dry, chain, make, told)?;
        }
        self.take_on_pending(kept.into_inner())?;
        Ok(pass.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// How what kept all branches from being looked at leaves them.
    fn unseen(&self, mut failure: Failure) -> Failure {
        let names: Vec<String> = self.selection.named.iter().map(|b| escape(b.short()) + ": ").collect();
        failure.message = format!("{}nothing was claimed: {}", names.concat(), failure.message);
        failure
    }

    /// A slot is free again: branches that hooks left waiting for one go on in the background (K14). So does what
    /// a process will set that a command left behind, where hooks answer what is set.
    fn take_on_pending(&self, kept: bool) -> Result<(), Failure> {
        let repo = &self.session.repo;
        let waits = repo.has_pending() || kept && Hooks::any_installed(repo);
        let here = self.settings.remote.is_none() && !self.dry;
        if here && waits { chain::start(self.session, &[], &[]) } else { Ok(()) }
    }

    /// True where what failed before the claim was told of another branch already.
    fn is_told(&self, report: &Report) -> bool {
        let Verdict::Failed(error) = &report.verdict else { return false };
        let told = self.told.lock().map(|mut told| !told.insert(with_causes(error)));
        told.unwrap_or(false) && report.claimed.is_none() && report.notes.is_empty() && !self.json
    }

    fn show(&self, report: &Report) {
        self.display.clear();
        let named =
            self.selection.names(&report.branch) || self.selection.current_branch == CurrentBranch::Only;
        let idle = matches!(report.verdict, Verdict::Idle(Idle::NoState | Idle::NoCommand { .. }));
        let first = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(report.branch.clone());
        let said = (named && (first || !idle))
            || !(idle || matches!(report.verdict, Verdict::Skipped(Skip::Interrupted)))
            || !report.notes.is_empty()
            || !report.recovered.is_empty();
        if self.is_told(report) {
            if named {
                output::note(&format!("error: {}: the same", escape(report.branch.short())));
            }
        } else if said || self.json || (self.verbose && first) {
            // JSON says what a caller's exit code is, which only names decide.
            render::print(report, named || (self.verbose && !self.json), self.json, self.quiet);
        }
        chain::wake(self.session, report, self.quiet);
    }
}

/// Starts the same tick in the background and returns. What is wrong with its arguments is said here.
fn detach(session: &Session, args: &Ticking) -> Result<i32, Failure> {
    let settings = session.settings(&args.flags())?;
    session.require_trust(&settings)?;
    args.selection(session)?;
    chain::detach(session, &without_places(std::env::args_os().skip(1)), b"")?;
    Ok(0)
}

/// The same arguments for a process that is told where to work, and leaves our session.
fn without_places(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut value) = (Vec::new(), false);
    for arg in args {
        let text = arg.to_string_lossy();
        let place = text == "-C" || text == "--git-dir";
        let joined = (text.starts_with("-C") && text.len() > 2) || text.starts_with("--git-dir=");
        if !(std::mem::replace(&mut value, place) || place || joined) {
            kept.push(if text == "--detach" { "--detached".into() } else { arg });
        }
    }
    kept
}
