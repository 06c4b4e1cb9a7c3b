//! Chains: a branch goes on until its head is not actionable, in the background of whoever started it.
//!
//! [`start`] lets go of everything: session, descriptors, environment of the hook. The process that goes on
//! waits for no slot: what finds none is noted, and whoever frees one takes it on. It ends with one look at
//! the other branches, only to recover what was abandoned. Implements K40, and K14 (pending).

use super::fail::Failure;
use super::inner::Chain;
use super::observe::Display;
use super::session::{Global, Session};
use super::settings::{Flags, HookMode};
use super::{hints, output, render};
use crate::protocol::decide::Idle;
use crate::protocol::text::escape;
use crate::runner::finish::with_causes;
use crate::runner::pending::{self, Woken, note_wake};
use crate::runner::report::{Report, Skip, Verdict};
use crate::runner::select::{Pass, evaluate};
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::{Runner, RunnerError, logs};
use crate::store::RefName;
use crate::store::checkout::{self, Finished};
use crate::store::git_pins::is_passed_on;
use crate::store::hooks::Hooks;
use crate::supervisor::background::leave_caller;
use crate::supervisor::interrupt::Interrupt;
use crate::supervisor::orphans;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for a rebase to end its own affairs.
const REBASE_ENDS: Duration = Duration::from_secs(60);

/// Starts this program in the background of `repo`: own session, no descriptor of ours, its words in
/// `hook.log`.
pub fn detach(session: &Session, args: &[OsString]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::fatal(format!("cannot start in the background: {e}"));
    let log = logs::open_hook_log(&session.repo)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("--git-dir").arg(&session.repo.git_dir).args(args);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    command.current_dir(session.repo.work_dir.as_ref().unwrap_or(&session.repo.git_dir));
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
    // It leaves our session, as a guardian does, and is nobody's orphan.
    orphans::started(|| command.spawn()).map_err(failed)?;
    Ok(())
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
    let mut args: Vec<OsString> = vec!["chain".into(), "--detached".into()];
    args.extend(more.iter().map(OsString::from));
    args.push("--".into());
    args.extend(branches.iter().map(|b| OsStr::from_bytes(b.as_bytes()).to_owned()));
    detach(session, &args).map_err(|failure| not_started(session, branches, failure))
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
    let woken = Woken { git_dir: session.repo.git_dir.clone(), branch: branch.clone() };
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

/// Starts the chains that a run asked for, now that it is over.
pub fn wake(report: &Report, quiet: bool) {
    let places: BTreeSet<&Path> = report.wake.iter().map(|w| &*w.git_dir).collect();
    for place in places {
        let branches: Vec<RefName> =
            report.wake.iter().filter(|w| w.git_dir == place).map(|w| w.branch.clone()).collect();
        let global = Global { git_dir: Some(place.to_owned()), quiet, verbose: 0 };
        let started = Session::open(&global).and_then(|session| {
            // A command may note any folder: one that nobody trusts is not written to either.
            if session.config.commands_from()? == CommandsFrom::Nowhere {
                return Ok(());
            }
            let more: &[&str] = if session.repo.bare { &["--pushed"] } else { &[] };
            start(&session, &branches, more)
        });
        if let Err(failure) = started {
            output::error(&failure.render());
        }
    }
}

/// `git aynig chain`: what a hook leaves running.
pub fn run(global: &Global, args: &Chain) -> Result<i32, Failure> {
    if args.detached {
        leave_caller();
    }
    let mut session = Session::open(global)?;
    session.short_environment = args.pushed;
    if args.after_rebase {
        wait_for_rebase(&session.repo.git_dir);
    }
    let branches = args.branches.iter().map(|b| session.branch(b)).collect::<Result<Vec<_>, _>>()?;
    go_on(&mut session, branches, &args.run_ids, false)
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

/// Chains of these branches, then of those that wait; `stream` shows what commands print, and waits for slots.
pub fn go_on(
    session: &mut Session,
    branches: Vec<RefName>,
    run_ids: &[String],
    stream: bool,
) -> Result<i32, Failure> {
    let interrupt = Interrupt::by_signals()?;
    session.repo.ended_by(interrupt.insistence());
    let session = &*session;
    let jobs = session.config.get("jobs").is_none().then_some(1);
    let mut settings = session.settings(&Flags { jobs, tee: stream, ..Flags::here() })?;
    session.require_trust(&settings)?;
    settings.wait_for_slot = stream;
    if let Ok(mut promised) = settings.run_ids.lock() {
        promised.extend(branches.iter().cloned().zip(run_ids.iter().cloned()));
    }
    let display = Display::for_pusher(stream);
    let make = || session.runner(&settings, &interrupt, &display);
    let runner = make()?;
    // Where hooks are all there is, nobody else does.
    runner.remove_dead_locks();
    finish_checkouts(session, &runner)?;
    let (mut queue, pass) = (branches, Mutex::new(Pass::default()));
    let code = || pass.lock().unwrap_or_else(PoisonError::into_inner).code;
    loop {
        let waits = Mutex::new(Vec::new());
        let told = |report: &Report| {
            // Who ends us early leaves them to whoever comes next.
            if matches!(report.verdict, Verdict::NoSlot | Verdict::Skipped(Skip::Interrupted)) {
                waits.lock().unwrap_or_else(PoisonError::into_inner).push(report.branch.clone());
            } else {
                show(report);
            }
            let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
            pass.count(report, false);
        };
        if let Err(error) = evaluate(queue.clone(), settings.jobs, false, true, make, told) {
            for branch in &queue {
                runner.note_pending(branch)?;
            }
            return Err(error.into());
        }
        for branch in waits.into_inner().unwrap_or_else(PoisonError::into_inner) {
            runner.note_pending(&branch)?;
        }
        if interrupt.signal().is_some() {
            return Ok(code());
        }
        queue = runner.take_pending()?;
        if queue.is_empty() {
            break;
        }
    }
    recover_others(&runner)?;
    Ok(code())
}

/// Finishes checkouts that an earlier tick or chain noted and did not do.
pub fn finish_checkouts(session: &Session, runner: &Runner<'_>) -> Result<(), Failure> {
    for done in checkout::finish_all(&session.repo, &|name| runner.store.tip(name))? {
        if let Finished::Blocked(dir, by) = done {
            let words = escape(by.to_string().as_bytes());
            let dir = escape(dir.as_os_str().as_encoded_bytes());
            output::note(&format!("warning: '{dir}' cannot follow its branch: {words}"));
            output::note(&format!("hint: {}, then git aynig tick", hints::of_obstacle(&by)));
        }
    }
    Ok(())
}

fn show(report: &Report) {
    let silent = matches!(report.verdict, Verdict::Idle(Idle::NoState | Idle::NoCommand { .. }));
    if !silent || !report.notes.is_empty() || !report.recovered.is_empty() {
        render::print(report, true, false, false);
    }
    wake(report, true);
}

/// One look at all branches, only for leases that were abandoned.
fn recover_others(runner: &Runner<'_>) -> Result<(), RunnerError> {
    for report in runner.recover_all()? {
        render::print(&report, false, false, false);
    }
    Ok(())
}
