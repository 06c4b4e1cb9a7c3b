//! Chains in the background: a process of this program that lets go of its caller's session, descriptors and
//! environment.
//!
//! [`start`] hands branches to one. Inside a run nothing is started: the branch is left to the run's runner, which
//! calls [`wake`] once the run is over. Implements K40, K34 (repositories beside).

use super::config::HookMode;
use super::session::Session;
use super::{AppError, Warning, is_switched_off};
use crate::protocol::text::with_causes;
use crate::runner::logs;
use crate::runner::pending::{self, Woken, note_wake};
use crate::runner::queue::Watching;
use crate::runner::report::Report;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::store::git_pins::is_passed_on;
use crate::store::hooks::Hooks;
use crate::store::protected::is_trusted_at;
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

/// Most other repositories that are looked at for one run.
const PLACES_MAX: usize = 64;

/// What a background chain is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A commit, a merge or a verb of this account.
    Here,
    /// A rebase here, which has to end first.
    Rebase,
    /// A push: commands inherit little of the environment.
    Push,
}

impl Cause {
    /// A push, where the repository is one that others push to.
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

/// Starts this program in the background of the session's repository, with these arguments and this to read. What
/// it says is in `hook.log`.
pub fn detach(session: &Session, args: &[OsString], input: Input<'_>) -> Result<(), AppError> {
    detach_holding(session, args, input, None)
}

/// [`detach`]; the process holds this file from its start on, without a moment in which none does. It is its standard
/// output, to which such a process prints nothing.
pub fn detach_holding(
    session: &Session,
    args: &[OsString],
    input: Input<'_>,
    held: Option<File>,
) -> Result<(), AppError> {
    let log = logs::open_hook_log(&session.repo)?;
    let mut command = Command::new(own_program(&std::env::current_exe().map_err(AppError::Background)?));
    command.arg("--git-dir").arg(&session.repo.git_dir).args(args);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    command.current_dir(session.repo.work_dir.as_ref().unwrap_or(&session.repo.git_dir));
    background::start(command, input, log, held).map_err(AppError::Background)
}

/// What a background process keeps of the environment: nothing of the hook's Git, nothing of a run; and what
/// the caller said with `git -c`, without which it would run under another policy.
fn is_kept(name: &OsStr) -> bool {
    let said = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
    let is_said = said.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()));
    (is_passed_on(name) || is_said) && !name.as_bytes().starts_with(b"AYNIG_")
}

/// Starts a chain for these branches, as a hook does. Where that fails they are noted like those that found no
/// slot: the next tick takes them on.
pub fn start(session: &Session, branches: &[RefName], cause: Cause) -> Result<(), AppError> {
    start_promised(session, branches, &[], cause)
}

/// [`start`], with the ids that the branches' first runs were promised. They go by a pipe: a push may bring more of
/// them than arguments may be long.
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
    detach(session, &args, Input::Bytes(&input)).map_err(|error| not_started(session, branches, error))
}

/// Starts a chain that has the watch from its start on, so that no other process finds it free and starts one too.
pub fn start_watching(session: &Session, watch: Watching, cause: Cause) -> Result<(), AppError> {
    let Some(lock) = watch.hand_over() else { return Ok(()) };
    let mut args: Vec<OsString> = vec!["chain".into(), "--detached".into(), "--watch".into()];
    args.extend(cause.flag().map(OsString::from));
    detach(session, &args, Input::File(lock))
}

/// The watch that [`start_watching`] gave this process.
pub fn inherited_watch(session: &Session) -> Result<Option<Watching>, AppError> {
    Watching::inherited(&session.repo).map_err(AppError::Background)
}

fn not_started(session: &Session, branches: &[RefName], error: AppError) -> AppError {
    if branches.is_empty() {
        return error;
    }
    for branch in branches {
        // What keeps a process from being started may keep this from being written too: the error names them.
        let _ = pending::note(&session.repo, branch, None);
    }
    AppError::NotDispatched { branches: branches.to_vec(), cause: Box::new(error) }
}

/// Branches, and the ids that their first runs were promised: an empty one is no promise.
pub type Promised = (Vec<RefName>, Vec<String>);

/// Reads what [`start_promised`] wrote. A name or an id without its end was cut off with the process that wrote it.
pub fn read_promised(input: &mut impl Read) -> Result<Promised, AppError> {
    let mut raw = Vec::new();
    input.read_to_end(&mut raw).map_err(AppError::Promised)?;
    let whole = raw.split_inclusive(|b| *b == 0).filter_map(|field| field.strip_suffix(b"\0"));
    let fields: Vec<&[u8]> = whole.collect();
    let pairs = fields.chunks_exact(2).map(|pair| (RefName::new(pair[0]), String::from_utf8_lossy(pair[1])));
    Ok(pairs.filter(|(branch, _)| branch.is_valid()).map(|(branch, id)| (branch, id.into_owned())).unzip())
}

/// The run that this process was started by, in whichever repository: nothing is started inside one.
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
    if let Err(why) = noted {
        session.warn(Warning::CannotNote(branch.clone(), why));
    }
    true
}

/// Starts what the installed hook would have started for a branch that a verb wrote to.
pub fn as_the_hook_would(session: &Session, settings: &Settings, branch: &RefName) -> Result<(), AppError> {
    as_hooks_would(session, settings, std::slice::from_ref(branch))
}

/// [`as_the_hook_would`] for several branches: one chain for all.
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

/// Starts the chains that a run asked for, now that it is over: of this repository, and of those that the account
/// trusts at the very path that was noted. A command wrote the note, and may have written what is there too:
/// nothing is opened before trust is known.
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

/// Starts chains in another repository. Where `aynig.exec` narrows what commands can do, trust of all repositories
/// is not enough: a command could make one.
fn wake_beside(session: &Session, place: &Path, branches: &[RefName]) -> Result<(), AppError> {
    let by_commands = [session.repo.aynig_dir(), session.config.worktree_dir(&session.repo)];
    let plainly = session.config.all("exec").is_empty();
    if by_commands.iter().any(|dir| place.starts_with(dir))
        || !is_trusted_at(&config::read(&session.repo)?, place, plainly)
    {
        return Ok(());
    }
    let other = session.beside(place)?;
    if other.repo.common_dir != *place || other.config.commands_from()? == CommandsFrom::Nowhere {
        return Ok(());
    }
    start(&other, branches, Cause::in_repository(&other.repo))
}
