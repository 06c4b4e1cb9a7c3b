//! The worker of a turn: whoever does the work that the dispatch bundle describes.
//!
//! Given on the command line, or what the role's `local_cli` runtime names. It is started in the project's
//! folder below a guardian of its own, is told where bundle and result are by its environment, and what it prints
//! goes to our standard error, so that nothing of it can pass for a declaration of ours. It ends at the first limit
//! of its turn, its phase or its run; once it has ended, or we have, no process of it is left. Implements G7, G13,
//! G16, K17.

use super::super::fail::Failure;
use super::super::output;
use crate::governed::{
    Config, GovernedError, LockGuard, Own, Root, State, TimeLeft, Turn, acquire_lock, get_active_turns,
    get_turn_staging_result_path, time_left,
};
use crate::protocol::text::shell_word;
use crate::supervisor::{Ending, Event, Spec, Supervised, SupervisorError, Wake};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// SIGTERM to SIGKILL where no repository says how long.
pub const KILL_GRACE: Duration = Duration::from_secs(10);

/// What is started for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    argv: Vec<OsString>,
    /// Whether the prompt is fed to its standard input.
    fed: bool,
    /// SIGTERM to SIGKILL at the end of its time.
    grace: Duration,
}

impl Worker {
    /// The worker of a role: this one where one is given, else the runtime's. `None`: somebody else's.
    ///
    /// # Errors
    /// A `local_cli` runtime whose command is no string or list of strings.
    pub fn of(
        given: &[OsString],
        config: &Config,
        role: &str,
        prompt: &str,
        grace: Duration,
    ) -> Result<Option<Self>, Failure> {
        if !given.is_empty() {
            return Ok(Some(Self { argv: given.to_vec(), fed: false, grace }));
        }
        if config.runtime_type_of(role) != "local_cli" {
            return Ok(None);
        }
        let id = config.runtime_of(role).unwrap_or_default();
        let runtime = config.runtime(id).cloned().unwrap_or(Value::Null);
        let mut words = words(runtime.get("command"));
        words.extend(self::words(runtime.get("args")));
        if words.is_empty() {
            return Err(Failure::fatal(format!("runtime '{id}' of role '{role}' has no command"))
                .hint("name one in agentxchain.json, or: git aynig govern turn -- <worker>"));
        }
        let fed = runtime.get("prompt_transport").and_then(Value::as_str) == Some("stdin");
        let argv = words.into_iter().map(|word| OsString::from(word.replace("{prompt}", prompt))).collect();
        Ok(Some(Self { argv, fed, grace }))
    }

    /// Runs it to its end, or to that of its time.
    ///
    /// # Errors
    /// A program that can't be started.
    pub fn run(&self, root: &Root, config: &Config, state: &State, turn: &Turn) -> Result<Worked, Failure> {
        let time = time_left(root, config, state, turn);
        let mut guardian =
            Supervised::start(&self.spec(root, state, turn, time.as_ref())?).map_err(failed)?;
        let mut ending = Ending::GuardianLost;
        loop {
            match guardian.next(None, None) {
                Ok(Wake::Event(Event::Chunk { bytes, .. })) => output::raw(true, &bytes),
                Ok(Wake::Event(Event::Exited { ending: how, .. })) => {
                    ending = how;
                    break;
                }
                Ok(Wake::Event(Event::Done { .. })) | Err(SupervisorError::Over) => break,
                Ok(Wake::Event(_) | Wake::Deadline | Wake::Interrupted) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let ended = guardian.end().map_err(failed)?;
        if ended.survivors > 0 {
            output::note(&format!("warning: {} processes of the worker can't be killed", ended.survivors));
        }
        if let Ending::NotStarted { .. } = &ending {
            let program = self.argv.first().map_or(Path::new(""), Path::new);
            return Err(Failure::fatal(format!("cannot start worker '{}': it {ending}", program.display())));
        }
        Ok(match time.filter(|_| matches!(ending, Ending::TimedOut { .. })) {
            Some(time) => Worked::OutOfTime(time),
            None => Worked::Ended(ending),
        })
    }

    fn spec(
        &self,
        root: &Root,
        state: &State,
        turn: &Turn,
        time: Option<&TimeLeft>,
    ) -> Result<Spec, Failure> {
        if self.argv.is_empty() {
            return Err(Failure::usage("no worker"));
        }
        let guardian = std::env::current_exe()
            .map_err(|e| Failure::fatal(format!("cannot find the program of this process: {e}")))?;
        let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let mut tell = |name: &str, value: OsString| {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value));
        };
        tell("AGENTXCHAIN_TURN_ID", turn.id().into());
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
            // It is passed on as it comes, and whoever reads our standard error keeps it.
            stdout_log: PathBuf::from("/dev/null"),
            stderr_log: PathBuf::from("/dev/null"),
            log_max: u64::MAX,
            timeout: time.map(|time| time.left),
            kill_grace: self.grace,
            watch: Vec::new(),
            line_max: 0,
            tee: true,
            hold: None,
        })
    }
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Worked {
    /// By itself, or by somebody else's hand.
    Ended(Ending),
    /// At this limit, by ours.
    OutOfTime(TimeLeft),
}

fn failed(error: SupervisorError) -> Failure {
    Failure::caused(&error)
}

/// The folder of a turn's dispatch bundle.
pub fn bundle(root: &Root, turn: &Turn) -> std::path::PathBuf {
    root.folder().join(".agentxchain/dispatch/turns").join(turn.id())
}

fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// Why no worker may be started for a turn in a plain folder: another turn is active, and nobody could say whose
/// change is whose.
pub fn beside(root: &Root, state: &State, role: &str) -> Option<Failure> {
    if std::env::var_os("AYNIG_RUN_ID").is_some() {
        // A slot is its run's alone.
        return None;
    }
    let other = get_active_turns(state).into_values().find(|turn| turn.role() != role)?;
    let folder = shell_word(root.folder().as_os_str().as_bytes());
    let (id, of) = (other.id(), other.role());
    Some(
        Failure::refused(format!(
            "cannot run a worker for '{role}' beside turn '{id}' of '{of}': nobody could say whose change is whose in a \
             plain folder"
        ))
        .hint(format!("git aynig govern accept --root {folder} {id}"))
        .hint("git aynig govern start -b <branch> # there each turn has a worktree of its own"),
    )
}

/// The run's own files while a worker works: what it changes of them is put back, and is a violation.
pub struct Guarded {
    own: Own,
    lock: Option<LockGuard>,
}

impl Guarded {
    /// Before the worker. In a plain folder the lock is held until after it, so that whatever changed was its doing.
    pub fn before(root: &Root, turn: &str) -> Result<Self, GovernedError> {
        let lock = match std::env::var_os("AYNIG_RUN_ID") {
            // A slot is its run's alone.
            Some(_) => None,
            None => Some(acquire_lock(root)?),
        };
        Ok(Self { own: Own::take(root, turn)?, lock })
    }

    /// After it: what it did wrong.
    pub fn after(self, root: &Root) -> Result<Vec<String>, GovernedError> {
        let changed = self.own.put_back(root)?;
        drop(self.lock);
        let told = |path: String| format!("'{path}' is the run's own: it was changed, and put back");
        Ok(changed.into_iter().map(told).collect())
    }
}
