//! Chains: a branch goes on until its head is not actionable, in the background of whoever started it.
//!
//! [`start`] lets go of everything: session, descriptors, environment of the hook. What finds no slot is noted, and
//! whoever frees one takes it on; one process of a repository stays to watch while something waits. A chain ends
//! with one look at the other branches, only to recover what was abandoned. Implements K40, and K14 (pending).

use super::fail::Failure;
use super::inner::Chain;
use super::observe::Display;
use super::session::{Global, Session};
use super::settings::{Flags, HookMode};
use super::{hints, mend, output, render};
use crate::protocol::decide::Idle;
use crate::protocol::text::escape;
use crate::protocol::text::with_causes;
use crate::runner::pending::{self, Taken, Woken, note_wake};
use crate::runner::queue::{Waiting, note_waiting, watch};
use crate::runner::report::{Refusal, Report, Skip, Verdict, worst};
use crate::runner::select::{Pass, Round, evaluate};
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::{Runner, RunnerError, logs};
use crate::store::git_pins::is_passed_on;
use crate::store::hooks::Hooks;
use crate::store::protected::is_trusted_at;
use crate::store::repository::Repository;
use crate::store::{RefName, config};
use crate::supervisor::background::leave_caller;
use crate::supervisor::interrupt::Interrupt;
use crate::supervisor::orphans;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most other repositories that are looked at for one run.
const PLACES_MAX: usize = 64;
/// Longest wait for a rebase to end its own affairs.
const REBASE_ENDS: Duration = Duration::from_secs(60);

/// Starts this program in the background of `repo`: own session, no descriptor of ours, its words in
/// `hook.log`, and `input` to read.
pub fn detach(session: &Session, args: &[OsString], input: &[u8]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::fatal(format!("cannot start in the background: {e}"));
    let log = logs::open_hook_log(&session.repo)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("--git-dir").arg(&session.repo.git_dir).args(args);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    command.current_dir(session.repo.work_dir.as_ref().unwrap_or(&session.repo.git_dir));
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    command.stdin(stdin).stdout(log.try_clone().map_err(failed)?).stderr(log);
    // It leaves our session, as a guardian does, and is nobody's orphan.
    let mut child = orphans::started(|| command.spawn()).map_err(failed)?;
    match child.stdin.take() {
        // It reads before it does anything else: nobody waits longer than it takes to start.
        Some(mut pipe) => pipe.write_all(input).map_err(failed),
        None => Ok(()),
    }
}

/// What a background process keeps of the environment: nothing of the hook's Git, nothing of a run; and what
/// the caller said with `git -c`, without which it would run under another policy.
fn is_kept(name: &OsStr) -> bool {
    let said = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
    let is_said = said.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()));
    (is_passed_on(name) || is_said) && !name.as_bytes().starts_with(b"AYNIG_")
}

/// Starts a chain for these branches, as a hook does. Where that fails they are noted like those that found no
/// slot: whoever ticks next takes them on.
pub fn start(session: &Session, branches: &[RefName], more: &[&str]) -> Result<(), Failure> {
    start_promised(session, branches, &[], more)
}

/// The same, with the ids that their first runs were promised. They go by a pipe: a push may bring more of them
/// than arguments may be long.
pub fn start_promised(
    session: &Session,
    branches: &[RefName],
    run_ids: &[String],
    more: &[&str],
) -> Result<(), Failure> {
    let mut args: Vec<OsString> = vec!["chain".into(), "--detached".into(), "--from-input".into()];
    args.extend(more.iter().map(OsString::from));
    let ids = run_ids.iter().map(String::as_bytes).chain(std::iter::repeat(&b""[..]));
    let fields = branches.iter().zip(ids).flat_map(|(branch, id)| [branch.as_bytes(), b"\0", id, b"\0"]);
    let input = fields.collect::<Vec<_>>().concat();
    detach(session, &args, &input).map_err(|failure| not_started(session, branches, failure))
}

/// What [`start_promised`] wrote. A name or an id without its end was cut off with whoever wrote it.
fn read_promised(input: &mut impl Read) -> Result<(Vec<RefName>, Vec<String>), Failure> {
    let mut raw = Vec::new();
    let read = input.read_to_end(&mut raw);
    read.map_err(|e| Failure::fatal(format!("cannot read the branches: {e}")))?;
    let whole = raw.split_inclusive(|b| *b == 0).filter_map(|field| field.strip_suffix(b"\0"));
    let fields: Vec<&[u8]> = whole.collect();
    let pairs = fields.chunks_exact(2).map(|pair| (RefName::new(pair[0]), String::from_utf8_lossy(pair[1])));
    Ok(pairs.filter(|(branch, _)| branch.is_valid()).map(|(branch, id)| (branch, id.into_owned())).unzip())
}

fn not_started(session: &Session, branches: &[RefName], mut failure: Failure) -> Failure {
    let (mut shown, mut words) = (Vec::new(), Vec::new());
    for branch in branches {
        // What keeps a process from being started may keep this from being written too: the hint stands.
        let _ = pending::note(&session.repo, branch, None);
        let at = hints::Addressed::new(branch, None);
        shown.push(at.shown);
        words.push(at.word);
    }
    if !branches.is_empty() {
        failure.message = format!("{}: not dispatched: {}", shown.join(", "), failure.message);
        failure.hints.push(format!("git aynig tick {}", words.join(" ")));
    }
    failure
}

/// The run that this process was started by, whoever's repository this is: nothing is started inside one.
fn run_dir() -> Option<PathBuf> {
    std::env::var_os("AYNIG_RUN_DIR").map(PathBuf::from).filter(|dir| dir.is_dir())
}

/// Inside a run, notes the branch for the runner; true where that was so.
pub fn left_to_the_runner(session: &Session, branch: &RefName) -> bool {
    let Some(dir) = run_dir() else { return false };
    let woken = Woken { git_dir: session.repo.common_dir.clone(), branch: branch.clone() };
    let noted = if pending::has_runner(&dir) {
        note_wake(&dir, &woken).map_err(|e| e.to_string())
    } else {
        // Its runner is gone, and a chain from here would be one of the processes that its guardian ends.
        pending::note(&session.repo, branch, None).map_err(|e| with_causes(&e))
    };
    if let Err(error) = noted {
        let shown = escape(branch.short());
        output::note(&format!("warning: cannot note '{shown}' for the runner: {error}"));
    }
    true
}

/// What the installed hook would have started for a branch that a verb wrote to (K40).
pub fn as_the_hook_would(session: &Session, settings: &Settings, branch: &RefName) -> Result<(), Failure> {
    let off = std::env::var_os("AYNIG").is_some_and(|v| v == "0");
    if off || settings.remote.is_some() || !Hooks::any_installed(&session.repo) {
        return Ok(());
    }
    if session.config.hooks()? == HookMode::Off || settings.commands_from == CommandsFrom::Nowhere {
        return Ok(());
    }
    if left_to_the_runner(session, branch) {
        return Ok(());
    }
    start(session, std::slice::from_ref(branch), &[])
}

/// Starts the chains that a run asked for, now that it is over: of this repository, and of those that the account
/// trusts at the very path that was noted. Whoever wrote the note may have written what is there too: nothing is
/// opened before that is known.
pub fn wake(session: &Session, report: &Report, quiet: bool) {
    let repo = &session.repo;
    let is_ours = |woken: &&Woken| {
        woken.git_dir == repo.common_dir || woken.git_dir.parent() == Some(&repo.common_dir.join("worktrees"))
    };
    let branches_of = |which: &dyn Fn(&&Woken) -> bool| -> Vec<RefName> {
        report.wake.iter().filter(which).map(|woken| woken.branch.clone()).collect()
    };
    let ours = branches_of(&is_ours);
    let started = if ours.is_empty() { Ok(()) } else { start(session, &ours, pushed(repo)) };
    said(started);
    let places: BTreeSet<&Path> =
        report.wake.iter().filter(|woken| !is_ours(woken)).map(|woken| &*woken.git_dir).collect();
    for place in places.into_iter().take(PLACES_MAX) {
        said(wake_other(session, place, &branches_of(&|woken| woken.git_dir == place), quiet));
    }
}

fn said(started: Result<(), Failure>) {
    if let Err(failure) = started {
        output::error(&failure.render());
    }
}

fn pushed(repo: &Repository) -> &'static [&'static str] {
    if repo.bare { &["--pushed"] } else { &[] }
}

/// The same in another repository. Where `aynig.exec` narrows what commands can do, trust of all repositories is
/// not enough: a command could make one.
fn wake_other(session: &Session, place: &Path, branches: &[RefName], quiet: bool) -> Result<(), Failure> {
    let by_commands = [session.repo.aynig_dir(), session.config.worktree_dir(&session.repo)];
    let plainly = session.config.all("exec").is_empty();
    if by_commands.iter().any(|dir| place.starts_with(dir))
        || !is_trusted_at(&config::read(&session.repo)?, place, plainly)
    {
        return Ok(());
    }
    let other = Session::open(&Global { git_dir: Some(place.to_owned()), quiet, verbose: 0 })?;
    if other.repo.common_dir != *place || other.config.commands_from()? == CommandsFrom::Nowhere {
        return Ok(());
    }
    start(&other, branches, pushed(&other.repo))
}

/// `git aynig chain`: what a hook leaves running.
pub fn run(global: &Global, args: &Chain) -> Result<i32, Failure> {
    if args.detached {
        leave_caller();
        output::log_times();
    }
    let interrupt = Interrupt::by_signals()?;
    let (mut names, mut run_ids) = (Vec::new(), Vec::new());
    if args.from_input {
        (names, run_ids) = read_promised(&mut std::io::stdin().lock())?;
    }
    let (mut more, mut code) = (&*args.branches, 0);
    let mut begun_off = None;
    loop {
        // Anew after each wait: what may run is what is said now.
        let mut session = Session::open(global)?;
        (session.short_environment, session.is_chain) = (args.pushed, true);
        let is_off = session.config.hooks()? == HookMode::Off;
        let was_off = *begun_off.get_or_insert(is_off);
        if is_off && !was_off {
            output::note("aynig.hooks is off now: what waits is left to the next tick");
            return Ok(code);
        }
        session.repo.ended_by(interrupt.force_stop());
        for arg in std::mem::take(&mut more) {
            names.push(session.branch(arg)?);
        }
        if args.after_rebase && !names.is_empty() {
            wait_for_rebase(&session.repo.git_dir);
        }
        let mut settings = session.settings(&Flags { jobs: jobs(&session), ..Flags::here() })?;
        session.require_trust(&settings)?;
        settings.wait_for_slot = false;
        let chain = Chaining {
            session: &session,
            settings: &settings,
            interrupt: &interrupt,
            more: &args.more(),
            changed: AtomicBool::new(false),
        };
        let (worst_of_it, again) = chain.go_on(names, &run_ids, Display::for_pusher(false))?;
        code = worst(code, worst_of_it);
        if !again {
            return Ok(code);
        }
        (names, run_ids) = (Vec::new(), Vec::new());
    }
}

/// How many commands a chain runs at a time, where nobody says: one.
fn jobs(session: &Session) -> Option<usize> {
    session.config.get("jobs").is_none().then_some(1)
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

/// Chains of these branches in the sight of who pushed them: what commands print is shown, and slots are waited
/// for. Branches that wait for one go on in the background.
pub fn stream(session: &mut Session, branches: Vec<RefName>, run_ids: &[String]) -> Result<i32, Failure> {
    let interrupt = Interrupt::by_signals()?;
    session.repo.ended_by(interrupt.force_stop());
    let session = &*session;
    let mut settings = session.settings(&Flags { jobs: jobs(session), tee: true, ..Flags::here() })?;
    session.require_trust(&settings)?;
    settings.wait_for_slot = true;
    let chain = Chaining {
        session,
        settings: &settings,
        interrupt: &interrupt,
        more: &[],
        changed: AtomicBool::new(false),
    };
    let (code, again) = chain.go_on(branches, run_ids, Display::for_pusher(true))?;
    if again {
        start(session, &[], chain.more)?;
    }
    Ok(code)
}

/// One chain, under what was said when it began.
struct Chaining<'a> {
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    /// What further chains of its kind are started with.
    more: &'a [&'a str],
    /// What may run is no more what it was: what is left waits for whoever goes by what is said now.
    changed: AtomicBool,
}

impl Chaining<'_> {
    /// Chains of these branches, then of those that wait. True where it waited for these: they are to be judged
    /// by what is said now.
    fn go_on(
        &self,
        branches: Vec<RefName>,
        run_ids: &[String],
        display: Display,
    ) -> Result<(i32, bool), Failure> {
        if let Ok(mut promised) = self.settings.run_ids.lock() {
            let known = branches.iter().cloned().zip(run_ids.iter().cloned());
            promised.extend(known.filter(|(_, id)| !id.is_empty()));
        }
        let runner = self.session.runner(self.settings, self.interrupt, &display)?;
        // Where hooks are all there is, nobody else does.
        mend::all(self.session);
        let pass = Mutex::new(Pass::default());
        let code = || pass.lock().unwrap_or_else(PoisonError::into_inner).code;
        let mut stuck = !self.evaluate(branches, Vec::new(), &display, &pass)?;
        while self.interrupt.signal().is_none() && !self.changed.load(Ordering::Relaxed) {
            if self.settings.wait_for_slot {
                self.leave_watcher(runner.is_to_be_watched(true)?)?;
                break;
            }
            match runner.next_waiting(stuck)? {
                Waiting::Run(taken, more) => {
                    self.leave_watcher(more)?;
                    let branches = taken.iter().map(|one| one.branch.clone()).collect();
                    stuck = !self.evaluate(branches, taken, &display, &pass)?;
                }
                Waiting::Later => return Ok((code(), true)),
                Waiting::Nobody => break,
            }
        }
        if self.changed.load(Ordering::Relaxed) {
            return Ok((code(), true));
        }
        if self.interrupt.signal().is_none() {
            recover_others(&runner)?;
        }
        Ok((code(), false))
    }

    /// One pass over branches, some of which are in hand; false where none found a slot.
    fn evaluate(
        &self,
        branches: Vec<RefName>,
        taken: Vec<Taken>,
        display: &Display,
        pass: &Mutex<Pass>,
    ) -> Result<bool, Failure> {
        let make = || self.session.runner(self.settings, self.interrupt, display);
        let in_hand: Mutex<Vec<Taken>> = Mutex::new(taken);
        let (many, any) = (branches.len() > 1, AtomicBool::new(branches.is_empty()));
        // Who watches is shown it; who looks later finds it where the others are.
        let watched = self.settings.wait_for_slot;
        let log = if watched { logs::open_hook_log(&self.session.repo).ok() } else { None };
        let told = |report: &Report| {
            let mut in_hand = in_hand.lock().unwrap_or_else(PoisonError::into_inner);
            let at = in_hand.iter().position(|one| one.branch == report.branch);
            let note = at.map(|at| in_hand.swap_remove(at));
            // Who ends us early leaves them to whoever comes next.
            if matches!(report.verdict, Verdict::NoSlot | Verdict::Skipped(Skip::Interrupted)) {
                let noted = self.note(&report.branch);
                // While others run nobody here looks.
                if let Err(failure) = noted.and_then(|()| self.leave_watcher(many)) {
                    output::error(&failure.render());
                }
            } else if matches!(report.verdict, Verdict::Refused(Refusal::Changed)) {
                self.changed.store(true, Ordering::Relaxed);
                if let Err(failure) = self.note(&report.branch) {
                    output::error(&failure.render());
                }
            } else {
                any.store(true, Ordering::Relaxed);
                note.into_iter().for_each(Taken::done);
                show(self.session, report, log.as_ref());
            }
            pass.lock().unwrap_or_else(PoisonError::into_inner).count(report, false);
        };
        if let Err(error) =
            evaluate(&Round::of(branches.clone()), self.settings.jobs, false, true, make, told)
        {
            for branch in &branches {
                self.note(branch)?;
            }
            return Err(error.into());
        }
        Ok(any.into_inner())
    }

    fn note(&self, branch: &RefName) -> Result<(), Failure> {
        Ok(note_waiting(&self.session.repo, self.settings, branch)?)
    }

    /// Has somebody look after what waits, where nobody does yet.
    fn leave_watcher(&self, needed: bool) -> Result<(), Failure> {
        if needed && self.interrupt.signal().is_none() && watch(&self.session.repo)?.is_some() {
            start(self.session, &[], self.more)?;
        }
        Ok(())
    }
}

fn show(session: &Session, report: &Report, log: Option<&File>) {
    let silent = matches!(report.verdict, Verdict::Idle(Idle::NoState | Idle::NoCommand { .. }));
    if !silent || !report.notes.is_empty() || !report.recovered.is_empty() {
        render::print(report, true, false, false);
        if let Some(mut log) = log {
            let text = render::text(report, true);
            let lines: Vec<String> = text.line.into_iter().chain(text.notes).collect();
            // In one piece: others write there too.
            let _ = log.write_all(output::dated(&lines.join("\n")).as_bytes());
        }
    }
    wake(session, report, true);
}

/// One look at all branches, only for leases that were abandoned.
fn recover_others(runner: &Runner<'_>) -> Result<(), RunnerError> {
    for report in runner.recover_all()? {
        render::print(&report, false, false, false);
    }
    Ok(())
}
