//! Chains in the background: processes of this program that are detached from their caller's session,
//! descriptors and environment.
//!
//! [`start`] hands branches to such a process. Inside a run no process is started: the branch is noted for
//! the run's runner, which calls [`wake`] once the run is over. Implements K40, K34 (repositories beside).

use super::config::HookMode;
use super::session::Session;
use super::{AppError, Warning, is_switched_off};
use crate::protocol::text::with_causes;
use crate::runner::logs;
use crate::runner::pending::{self, Woken, note_wake};
use crate::runner::queue::Watching;
use crate::runner::report::Report;
use crate::runner::settings::{CommandsFrom, Sandbox, Settings};
use crate::store::git_pins::is_passed_on;
use crate::store::hooks::Hooks;
use crate::store::protected::{given_to_commands, is_trusted_at};
use crate::store::repository::Repository;
use crate::store::{RefName, config};
use crate::supervisor::background;
pub use crate::supervisor::background::Input;
use crate::supervisor::own_program;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most other repositories in which one run can have chains started.
const PLACES_MAX: usize = 64;

/// Why a background chain is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A commit, a merge or a verb of this account.
    Here,
    /// A rebase in this working tree, which has to end before the chain begins.
    Rebase,
    /// A push: commands inherit little of the environment.
    Push,
}

impl Cause {
    /// Returns `Push` for a bare repository, which others push to, and `Here` for any other.
    pub fn in_repository(repo: &Repository) -> Self {
        if repo.bare { Cause::Push } else { Cause::Here }
    }

    fn flag(self) -> Option<&'static str> {
        match self {
            Cause::Here => None,
            Cause::Rebase => Some("--after-rebase"),
            Cause::Push => Some("--pushed"),
        }
    }
}

/// Starts this program in the background, in the session's repository, with these arguments and this standard
/// input. What the process prints goes to `hook.log`.
pub fn detach(session: &Session, args: &[OsString], input: Input<'_>) -> Result<(), AppError> {
    detach_holding(session, args, input, None)
}

/// Does what [`detach`] does. The new process also holds the file `held` open from its very start, as its
/// standard output, so that there is no moment in which no process has the file open. Such a process prints
/// nothing to standard output.
pub fn detach_holding(
    session: &Session,
    args: &[OsString],
    input: Input<'_>,
    held: Option<File>,
) -> Result<(), AppError> {
    let repo = &session.repo;
    begin(session, (&repo.git_dir, repo.work_dir.as_ref().unwrap_or(&repo.git_dir)), args, input, held)
}

/// Starts a process for a Git directory, in a folder.
fn begin(
    session: &Session,
    (git_dir, folder): (&Path, &Path),
    args: &[OsString],
    input: Input<'_>,
    held: Option<File>,
) -> Result<(), AppError> {
    let log = logs::open_hook_log(&session.repo)?;
    let mut command = Command::new(own_program(&std::env::current_exe().map_err(AppError::Background)?));
    command.arg("--git-dir").arg(git_dir).args(args);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    command.current_dir(folder);
    background::start(command, input, log, held).map_err(AppError::Background)
}

/// Starts a chain. A linked working tree may be removed while the chain is at work, so the chain is one of the
/// repository; only a rebase is waited for where it is under way.
fn begin_chain(session: &Session, args: &[OsString], cause: Cause, input: Input<'_>) -> Result<(), AppError> {
    let repo = &session.repo;
    let git_dir = if cause == Cause::Rebase { &repo.git_dir } else { &repo.common_dir };
    begin(session, (git_dir, repo.main_dir.as_ref().unwrap_or(&repo.common_dir)), args, input, None)
}

/// True for a variable that a background process keeps: none that Git set for its hook and none of a run, but
/// what the caller said with `git -c`, without which the process would run under another policy.
fn is_kept(name: &OsStr) -> bool {
    let said = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
    let is_said = said.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()));
    (is_passed_on(name) || is_said) && !name.as_bytes().starts_with(b"AYNIG_")
}

/// Starts a chain for these branches, as a hook does. If no process can be started, the branches are noted
/// like those that found no slot, and the next tick takes them on.
pub fn start(session: &Session, branches: &[RefName], cause: Cause) -> Result<(), AppError> {
    start_promised(session, branches, &[], cause)
}

/// Does what [`start`] does, and passes on the ids that were promised for the branches' first runs. Branches
/// and ids go through a pipe: a push may bring more of them than fit into arguments.
pub fn start_promised(
    session: &Session,
    branches: &[RefName],
    run_ids: &[String],
    cause: Cause,
) -> Result<(), AppError> {
    let mut args: Vec<OsString> = vec!["chain".into(), "--detached".into(), "--from-input".into()];
    args.extend(cause.flag().map(OsString::from));
    let ids = run_ids.iter().map(String::as_bytes).chain(std::iter::repeat(&b""[..]));
    let fields = branches.iter().zip(ids).flat_map(|(branch, id)| [branch.as_bytes(), b"\0", id, b"\0"]);
    let input = fields.collect::<Vec<_>>().concat();
    begin_chain(session, &args, cause, Input::Bytes(&input))
        .map_err(|error| not_started(session, branches, error))
}

/// Starts a chain that has the watch from its start on, so that no other process finds the watch free and
/// starts a watching chain too. Does nothing where the watch has no lock to hand over.
pub fn start_watching(session: &Session, watch: Watching, cause: Cause) -> Result<(), AppError> {
    let Some(lock) = watch.hand_over() else { return Ok(()) };
    let mut args: Vec<OsString> = vec!["chain".into(), "--detached".into(), "--watch".into()];
    args.extend(cause.flag().map(OsString::from));
    begin_chain(session, &args, cause, Input::File(lock))
}

/// Returns the watch that [`start_watching`] gave this process; `None` where this process was not given one.
pub fn inherited_watch(session: &Session) -> Result<Option<Watching>, AppError> {
    Watching::inherited(&session.repo).map_err(AppError::Background)
}

fn not_started(session: &Session, branches: &[RefName], error: AppError) -> AppError {
    if branches.is_empty() {
        return error;
    }
    for branch in branches {
        // Whatever kept the process from being started may keep this from being written too, so the error
        // names the branches.
        let _ = pending::note(&session.repo, branch, None);
    }
    AppError::NotDispatched { branches: branches.to_vec(), cause: Box::new(error) }
}

/// Branches, and in the same order the ids that their first runs were promised; an empty id is no promise.
pub type Promised = (Vec<RefName>, Vec<String>);

/// Reads what [`start_promised`] wrote. A name or an id without its final NUL was cut off when the process
/// that wrote it died, and is left out.
pub fn read_promised(input: &mut impl Read) -> Result<Promised, AppError> {
    let mut raw = Vec::new();
    input.read_to_end(&mut raw).map_err(AppError::Promised)?;
    let whole = raw.split_inclusive(|b| *b == 0).filter_map(|field| field.strip_suffix(b"\0"));
    let fields: Vec<&[u8]> = whole.collect();
    let pairs = fields.chunks_exact(2).map(|pair| (RefName::new(pair[0]), String::from_utf8_lossy(pair[1])));
    Ok(pairs.filter(|(branch, _)| branch.is_valid()).map(|(branch, id)| (branch, id.into_owned())).unzip())
}

/// Returns the folder of the run that this process is inside of, whichever repository the run is in. Inside a
/// run no chain is started.
fn run_dir() -> Option<PathBuf> {
    std::env::var_os("AYNIG_RUN_DIR").map(PathBuf::from).filter(|dir| dir.is_dir())
}

/// Notes the branch for the run's runner if this process is inside a run; returns true in that case.
pub fn left_to_the_runner(session: &Session, branch: &RefName) -> bool {
    let Some(dir) = run_dir() else { return false };
    let woken = Woken { git_dir: session.repo.common_dir.clone(), branch: branch.clone() };
    let noted = if pending::has_runner(&dir) {
        note_wake(&dir, &woken).map_err(|e| e.to_string())
    } else {
        // The run's runner is gone, and a chain started by this process would be among the processes that the
        // run's guardian ends.
        pending::note(&session.repo, branch, None).map_err(|e| with_causes(&e))
    };
    if let Err(why) = noted {
        session.warn(Warning::CannotNote(branch.clone(), why));
    }
    true
}

/// Starts what the installed hook would have started for a branch that a verb wrote to.
pub fn as_the_hook_would(session: &Session, settings: &Settings, branch: &RefName) -> Result<(), AppError> {
    as_hooks_would(session, settings, std::slice::from_ref(branch))
}

/// Does what [`as_the_hook_would`] does for several branches, with one chain for all of them.
pub fn as_hooks_would(session: &Session, settings: &Settings, branches: &[RefName]) -> Result<(), AppError> {
    if is_switched_off() || settings.remote.is_some() || !Hooks::any_installed(&session.repo) {
        return Ok(());
    }
    if session.config.hooks()? == HookMode::Off || settings.commands_from == CommandsFrom::Nowhere {
        return Ok(());
    }
    let ours: Vec<RefName> =
        branches.iter().filter(|branch| !left_to_the_runner(session, branch)).cloned().collect();
    if ours.is_empty() { Ok(()) } else { start(session, &ours, Cause::Here) }
}

/// Starts the chains that a run asked for, now that it is over: in this repository, and in those that the
/// account trusts at exactly the path that was noted. A command wrote the note, and may also have written
/// what is at that path, so no repository is opened before trust is known.
pub fn wake(session: &Session, report: &Report) {
    let repo = &session.repo;
    let is_ours = |woken: &&Woken| {
        woken.git_dir == repo.common_dir || woken.git_dir.parent() == Some(&repo.common_dir.join("worktrees"))
    };
    let branches_of = |which: &dyn Fn(&&Woken) -> bool| -> Vec<RefName> {
        report.wake.iter().filter(which).map(|woken| woken.branch.clone()).collect()
    };
    let warn = |started: Result<(), AppError>| {
        if let Err(error) = started {
            session.warn(Warning::Failed(error));
        }
    };
    let ours = branches_of(&is_ours);
    if !ours.is_empty() {
        warn(start(session, &ours, Cause::in_repository(repo)));
    }
    let places: BTreeSet<&Path> =
        report.wake.iter().filter(|woken| !is_ours(woken)).map(|woken| &*woken.git_dir).collect();
    for place in places.into_iter().take(PLACES_MAX) {
        warn(wake_beside(session, place, &branches_of(&|woken| woken.git_dir == place)));
    }
}

/// Starts chains in another repository. Where a sandbox or `aynig.exec` narrows what commands can do, only a
/// setting that names it counts, since a command could have made a repository wherever it may write; where that
/// is known, none there is believed at all.
fn wake_beside(session: &Session, place: &Path, branches: &[RefName]) -> Result<(), AppError> {
    let (repo, sandbox, all) = (&session.repo, session.config.sandbox()?, config::read(&session.repo)?);
    let plainly = session.config.all("exec").is_empty() && sandbox == Sandbox::Off;
    let kept = if sandbox == Sandbox::Off { repo.aynig_dir() } else { repo.common_dir.clone() };
    let own = [kept, session.config.worktree_dir(repo)?];
    let own = own.into_iter().chain(logs::folders(repo));
    let own = own.map(|dir| std::fs::canonicalize(&dir).unwrap_or(dir));
    // Confined commands of another repository may have made what one of this repository notes.
    let mut given = own.chain(given_to_commands(&all));
    if given.any(|dir| place.starts_with(dir)) || !is_trusted_at(&all, place, plainly) {
        return Ok(());
    }
    let other = session.beside(place)?;
    if other.repo.common_dir != *place || other.config.commands_from()? == CommandsFrom::Nowhere {
        return Ok(());
    }
    start(&other, branches, Cause::in_repository(&other.repo))
}
