//! The worker of a turn: the program that does the work that the dispatch bundle describes.
//!
//! The worker is given on the command line, or named by the role's `local_cli` runtime. It is started in the
//! project's folder below a guardian of its own, and learns from its environment where bundle and result are.
//! What it prints goes to the [`Audience`], so that nothing of it can pass for a declaration of ours. It ends
//! at the first limit of its turn, its phase or its run; once it has ended, or this process has, no process
//! of it is left. Implements G7, G13, G16, K17.

use super::GovernError;
use crate::governed::{
    Config, GovernedError, LockGuard, Own, Root, State, TimeLeft, Turn, acquire_lock, dispatch_folder,
    get_active_turns, get_turn_staging_result_path, time_left,
};
use crate::supervisor::{Ending, Event, Spec, Supervised, SupervisorError, Wake, own_program};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// From SIGTERM to SIGKILL where no repository says how long.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(10);

/// The variable that names the kernel's run whose command takes a worker's turn. A command of another run inherits
/// it too, and is inside of no turn.
pub(crate) const TURN_OF: &str = "AGENTXCHAIN_KERNEL_RUN_ID";

/// Receives what happens to workers while they are at work.
pub(crate) trait Audience {
    /// Takes what a worker printed, to either of its streams.
    fn printed(&self, bytes: &[u8]);
    /// Takes the number of processes of an ended worker that can't be killed.
    fn survived(&self, processes: u32);
}

/// The program that is started for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worker {
    argv: Vec<OsString>,
    /// True where the prompt is fed to its standard input.
    fed: bool,
    /// From SIGTERM to SIGKILL at the end of its time.
    grace: Duration,
}

impl Worker {
    /// Returns the worker of a role: the given one, else that of the role's runtime. `None` where it is not
    /// ours to start.
    ///
    /// # Errors
    /// A `local_cli` runtime that has no command, or whose command is no string or list of strings.
    pub(crate) fn of(
        given: &[OsString],
        config: &Config,
        role: &str,
        prompt: &str,
        grace: Duration,
    ) -> Result<Option<Self>, GovernError> {
        if !given.is_empty() {
            return Ok(Some(Self { argv: given.to_vec(), fed: false, grace }));
        }
        if config.runtime_type_of(role) != "local_cli" {
            return Ok(None);
        }
        let id = config.runtime_of(role).unwrap_or_default();
        let runtime = config.runtime(id).cloned().unwrap_or_default();
        let words = [runtime.command, runtime.args].concat();
        if words.is_empty() {
            return Err(GovernError::NoWorker { runtime: id.to_owned(), role: role.to_owned() });
        }
        let fed = runtime.prompt_transport.as_deref() == Some("stdin");
        let argv = words.into_iter().map(|word| OsString::from(word.replace("{prompt}", prompt))).collect();
        Ok(Some(Self { argv, fed, grace }))
    }

    /// Runs the worker until it ends, or until its time does.
    ///
    /// # Errors
    /// A program that can't be started.
    pub(crate) fn run(
        &self,
        root: &Root,
        config: &Config,
        state: &State,
        turn: &Turn,
        audience: &dyn Audience,
    ) -> Result<Ended, GovernError> {
        let time = time_left(root, config, state, turn);
        let mut guardian = Supervised::start(&self.spec(root, state, turn, time.as_ref())?)?;
        let mut ending = Ending::GuardianLost;
        loop {
            match guardian.next(None, None) {
                Ok(Wake::Event(Event::Chunk { bytes, .. })) => audience.printed(&bytes),
                Ok(Wake::Event(Event::Exited { ending: how, .. })) => {
                    ending = how;
                    break;
                }
                Ok(Wake::Event(Event::Done { .. })) | Err(SupervisorError::Over) => break,
                Ok(Wake::Event(_) | Wake::Deadline | Wake::Interrupted) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ended = guardian.end()?;
        if ended.survivors > 0 {
            audience.survived(ended.survivors);
        }
        if let Ending::NotStarted { .. } = &ending {
            let program = self.argv.first().map_or_else(PathBuf::new, PathBuf::from);
            return Err(GovernError::NotStarted { program, ending });
        }
        Ok(match time.filter(|_| matches!(ending, Ending::TimedOut { .. })) {
            Some(time) => Ended::OutOfTime(time),
            None => Ended::Itself(ending),
        })
    }

    fn spec(
        &self,
        root: &Root,
        state: &State,
        turn: &Turn,
        time: Option<&TimeLeft>,
    ) -> Result<Spec, GovernError> {
        let guardian = own_program(&std::env::current_exe().map_err(GovernError::NoProgram)?);
        // What a worker declares is its turn's result, and nothing to the kernel.
        let mut env: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| name != "AYNIG_RESULT").collect();
        let mut tell = |name: &str, value: OsString| {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value));
        };
        tell("AGENTXCHAIN_TURN_ID", turn.id().into());
        tell(TURN_OF, std::env::var_os("AYNIG_RUN_ID").unwrap_or_default());
        tell("AGENTXCHAIN_ROLE", turn.role().into());
        tell("AGENTXCHAIN_RUNTIME", turn.runtime().into());
        tell("AGENTXCHAIN_ATTEMPT", turn.attempt().to_string().into());
        tell("AGENTXCHAIN_RUN_ID", state.run_id().unwrap_or_default().into());
        tell("AGENTXCHAIN_PHASE", state.phase().unwrap_or_default().into());
        tell("AGENTXCHAIN_PROJECT_ROOT", root.folder().into());
        tell("AGENTXCHAIN_DISPATCH_DIR", bundle(root, turn).into());
        let result = root.folder().join(get_turn_staging_result_path(turn.id()));
        tell("AGENTXCHAIN_RESULT", result.into());
        Ok(Spec {
            guardian,
            argv: self.argv.clone(),
            env,
            stdin: self.fed.then(|| bundle(root, turn).join("PROMPT.md")),
            cwd: root.folder().to_owned(),
            // The output is passed on as it comes, and the reader of this process's standard error keeps it.
            stdout_log: PathBuf::from("/dev/null"),
            stderr_log: PathBuf::from("/dev/null"),
            log_max: u64::MAX,
            timeout: time.map(|time| time.left),
            kill_grace: self.grace,
            watch: Vec::new(),
            line_max: 0,
            tee: true,
            hold: None,
            confine: None,
            stop_after: None,
        })
    }
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// It ended by itself, or another process ended it.
    Itself(Ending),
    /// The guardian ended it at this limit.
    OutOfTime(TimeLeft),
}

/// Returns the folder of a turn's dispatch bundle.
fn bundle(root: &Root, turn: &Turn) -> PathBuf {
    root.folder().join(dispatch_folder(turn.id()))
}

/// Refuses a worker for a turn in a plain folder while another turn is active: no process could say which
/// change belongs to which turn.
///
/// # Errors
/// [`GovernError::Beside`].
pub(crate) fn alone(root: &Root, state: &State, role: &str) -> Result<(), GovernError> {
    // A slot belongs to its run alone.
    if std::env::var_os("AYNIG_RUN_ID").is_some() {
        return Ok(());
    }
    match get_active_turns(state).into_values().find(|turn| turn.role() != role) {
        None => Ok(()),
        Some(other) => Err(GovernError::Beside {
            role: role.to_owned(),
            turn: other.id().to_owned(),
            of: other.role().to_owned(),
            folder: root.folder().to_owned(),
        }),
    }
}

/// The run's own files while a worker works. What the worker changes of them is put back, and is a violation.
pub(crate) struct Guarded {
    own: Own,
    lock: Option<LockGuard>,
}

impl Guarded {
    /// Records the files before the worker starts. In a plain folder the lock is held until the worker has
    /// ended, so that whatever changed was its doing.
    pub(crate) fn before(root: &Root, turn: &str) -> Result<Self, GovernedError> {
        let lock = match std::env::var_os("AYNIG_RUN_ID") {
            // A slot belongs to its run alone.
            Some(_) => None,
            None => Some(acquire_lock(root)?),
        };
        Ok(Self { own: Own::take(root, turn)?, lock })
    }

    /// Puts the files back after the worker has ended, and returns what it did wrong.
    pub(crate) fn after(self, root: &Root) -> Result<Vec<String>, GovernedError> {
        let changed = self.own.put_back(root)?;
        drop(self.lock);
        let told = |path: String| format!("'{path}' is the run's own: it was changed, and put back");
        Ok(changed.into_iter().map(told).collect())
    }
}
