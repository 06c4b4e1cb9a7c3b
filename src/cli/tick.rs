//! `tick` and `run`: evaluate branches once, or until nothing is actionable.

use super::args::{CurrentBranchArg, Run, Tick, Ticking};
use super::fail::Failure;
use super::observe::Display;
use super::session::{Global, Session};
use super::{exit, output, render, trust};
use crate::app::config::{Flags, duration};
use crate::app::{Audience, dispatch, is_switched_off};
use crate::protocol::decide::Idle;
use crate::protocol::text::{escape, with_causes};
use crate::runner::report::{Report, Skip, Verdict};
use crate::runner::select::Selection;
use crate::runner::settings::{CommandsFrom, CurrentBranch, Settings};
use crate::runner::{Observer, Progress};
use crate::store::RefName;
use crate::supervisor::background::leave_caller;
use crate::supervisor::interrupt::Interrupt;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

impl Ticking {
    fn meant(self) -> dispatch::Ticking {
        dispatch::Ticking {
            branches: self.branches,
            flags: Flags {
                lease: self.lease,
                grace: self.grace,
                timeout: self.timeout,
                jobs: self.jobs,
                role: self.role,
                log_level: self.log_level,
                tee: self.tee,
                remote: self.remote,
            },
            current_branch: match self.current_branch {
                CurrentBranchArg::Skip => CurrentBranch::Skip,
                CurrentBranchArg::Include => CurrentBranch::Include,
                CurrentBranchArg::Only => CurrentBranch::Only,
            },
            dry_run: self.dry_run,
        }
    }
}

/// Runs `git aynig tick`.
pub fn tick(global: &Global, args: Tick) -> Result<i32, Failure> {
    if is_nothing_ticked(global) {
        return Ok(0);
    }
    if args.detached {
        leave_caller();
        output::log_times();
    }
    let json = args.ticking.json;
    let ticking = args.ticking.meant();
    let session = global.open()?;
    if args.detach {
        dispatch::detach(&session, &ticking, &without_places(std::env::args_os().skip(1)))?;
        return Ok(0);
    }
    let (session, settings) = prepare(session, json, &ticking.flags)?;
    let interrupt = Interrupt::by_signals()?;
    let said = Mutex::default();
    let speaker =
        |settings: &Settings, selection: &Selection| Speaker::new(global, json, settings, selection, &said);
    Ok(exit::code(dispatch::tick(session, &settings, &ticking, args.chain, &interrupt, speaker)?))
}

/// Runs `git aynig run`.
pub fn run(global: &Global, args: Run) -> Result<i32, Failure> {
    if is_nothing_ticked(global) {
        return Ok(0);
    }
    let wrong = |text: &str| Failure::usage(format!("'{text}' is no duration; say 90, 90s or 5m"));
    let every = args.every.as_deref();
    let every = every.map(|text| duration(text).filter(|d| !d.is_zero()).ok_or_else(|| wrong(text)));
    let every = every.transpose()?;
    let interrupt = Interrupt::by_signals()?;
    let json = args.ticking.json;
    let ticking = args.ticking.meant();
    let (session, settings) = prepare(global.open()?, json, &ticking.flags)?;
    let said = Mutex::new(Said { repeats: true, ..Said::default() });
    let speaker =
        |settings: &Settings, selection: &Selection| Speaker::new(global, json, settings, selection, &said);
    Ok(exit::code(dispatch::run(session, settings, &ticking, every, &interrupt, speaker)?))
}

/// True where `AYNIG=0` switches off everything that would run a command. The user asked for a tick, so that
/// is reported.
fn is_nothing_ticked(global: &Global) -> bool {
    let off = is_switched_off();
    if off && !global.quiet {
        output::note("AYNIG=0 is set: nothing is ticked");
        output::note("hint: unset AYNIG");
    }
    off
}

/// Returns the settings, once it is settled which commands may run: on a terminal, the user is asked.
fn prepare(session: Session, json: bool, flags: &Flags) -> Result<(Session, Settings), Failure> {
    session.warn_ignored();
    let mut settings = session.settings(flags)?;
    if settings.commands_from != CommandsFrom::Nowhere {
        return Ok((session, settings));
    }
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !json;
    // With a remote, commands would come from the remote, and the question does not show those.
    let asks = asks && settings.remote.is_none();
    if !(asks && trust::ask(&session)?) {
        return Err(session.not_trusted().into());
    }
    // The session was opened before trust, and held back what a repository without trust may not use.
    let session = session.reopened()?;
    settings.commands_from = crate::app::trust::default_source(&session)?;
    Ok((session, settings))
}

/// What was last said of each branch, as a digest: the same of the same head again is no news.
#[derive(Default)]
struct Said {
    /// In the look before this one; branches that are gone since then are forgotten with it.
    before: HashMap<RefName, u64>,
    /// In this look.
    now: HashMap<RefName, u64>,
    /// True for 'run', which looks again and again; a tick says nothing twice.
    repeats: bool,
}

/// The digest of a report that is not compared with others.
const NOTHING: u64 = 0;

impl Said {
    /// Begins another look.
    fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Notes what is said of a branch; false where that was the last that was said of it, too.
    fn is_news(&mut self, branch: &RefName, digest: u64) -> bool {
        let last = self.now.insert(branch.clone(), digest).or_else(|| self.before.get(branch).copied());
        digest == NOTHING || last != Some(digest)
    }
}

/// Returns what tells whether a report says anything new. Whatever is done about a branch moves its head, so that the
/// same text of another head tells of something that happened again; how long a lease still lasts is no news. A
/// failure is said in each look: it may be another one in the same words.
fn digest(report: &Report, text: &render::Text) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    match &report.verdict {
        Verdict::Failed(_) => NOTHING,
        Verdict::Leased { malformed, abandoned, .. } => {
            let abandoned = abandoned.map(|why| why.to_string());
            hasher.hash_one((report.head, malformed, abandoned, &text.notes))
        }
        _ => hasher.hash_one((report.head, &text.line, &text.notes)),
    }
}

/// Prints the reports of one look at the branches.
struct Speaker<'a> {
    display: Display,
    selection: Selection,
    json: bool,
    quiet: bool,
    /// True where branches with nothing to do are reported, too.
    verbose: bool,
    /// What kept a branch from being claimed, as it was reported: a further branch with the same text gets a
    /// short line at most.
    told: Mutex<HashSet<String>>,
    said: &'a Mutex<Said>,
}

impl<'a> Speaker<'a> {
    fn new(
        global: &Global,
        json: bool,
        settings: &Settings,
        selection: &Selection,
        said: &'a Mutex<Said>,
    ) -> Self {
        said.lock().unwrap_or_else(PoisonError::into_inner).begin();
        // Where several commands may print at once, each line says which branch it is of.
        let several = settings.tee && selection.named.len() != 1 && settings.jobs.get() > 1;
        Self {
            display: Display::new(global.quiet || json, settings.tee).several(several),
            selection: selection.clone(),
            json,
            quiet: global.quiet,
            verbose: global.verbose > 0,
            told: Mutex::default(),
            said,
        }
    }

    /// True where the same failure, before any claim, was reported for another branch already.
    fn is_told(&self, report: &Report) -> bool {
        let Verdict::Failed(error) = &report.verdict else { return false };
        let told = self.told.lock().map(|mut told| !told.insert(with_causes(error)));
        told.unwrap_or(false) && report.claimed.is_none() && report.notes.is_empty()
    }
}

impl Observer for Speaker<'_> {
    fn told(&self, branch: &RefName, progress: Progress<'_>) {
        self.display.told(branch, progress);
    }
}

impl Audience for Speaker<'_> {
    fn reported(&self, report: &Report) {
        self.display.clear();
        let named =
            self.selection.names(&report.branch) || self.selection.current_branch == CurrentBranch::Only;
        if self.json {
            return render::json(report, named);
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_worth_a_line =
            if matches!(report.verdict, Verdict::Idle(Idle::NoState | Idle::NoCommand { .. })) {
                // That nothing more is to be done is no news in a look that did something.
                (named || self.verbose) && !said.now.contains_key(&report.branch)
            } else {
                !matches!(report.verdict, Verdict::Skipped(Skip::Interrupted))
            };
        if !is_worth_a_line && report.notes.is_empty() && report.recovered.is_empty() {
            if said.repeats && !said.now.contains_key(&report.branch) {
                said.now.insert(report.branch.clone(), NOTHING);
            }
            return;
        }
        let text = render::text(report, named || self.verbose);
        let digest = if said.repeats { digest(report, &text) } else { NOTHING };
        // Each pass of 'run' looks at all branches, and finds most as the pass before did.
        let remembers = said.repeats || named || self.verbose;
        if remembers && !said.is_news(&report.branch, digest) {
            return;
        }
        drop(said);
        if !self.is_told(report) {
            render::print(report, &text, self.quiet);
        } else if named {
            output::note(&format!("error: {}: the same", escape(report.branch.short())));
        }
    }

    fn settled(&self, reports: &[Report]) {
        let _together = output::Together::begin();
        reports.iter().for_each(|report| self.reported(report));
    }

    fn recovered(&self, report: &Report) {
        self.reported(report);
    }
}

/// Returns this process's arguments for the process that ticks in the background, which is given the
/// repository by its own `--git-dir`, and has to leave this session (`--detached`).
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
