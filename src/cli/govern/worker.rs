//! The worker of a turn: whoever does the work that the dispatch bundle describes.
//!
//! Given on the command line, or what the role's `local_cli` runtime names. It is started in the project's
//! folder, is told where bundle and result are by its environment, and its standard output goes to our
//! standard error, so that nothing it prints can pass for a declaration of ours. Implements G7.

use super::super::fail::Failure;
use crate::governed::{
    Config, GovernedError, LockGuard, Own, Root, State, Turn, acquire_lock, get_max_concurrent_turns,
    get_turn_staging_result_path,
};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What is started for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    argv: Vec<OsString>,
    /// Whether the prompt is fed to its standard input.
    fed: bool,
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
    ) -> Result<Option<Self>, Failure> {
        if !given.is_empty() {
            return Ok(Some(Self { argv: given.to_vec(), fed: false }));
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
        Ok(Some(Self { argv, fed }))
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// A program that can't be started.
    pub fn run(&self, root: &Root, state: &State, turn: &Turn, prompt: &str) -> Result<ExitStatus, Failure> {
        let (program, args) = self.argv.split_first().ok_or_else(|| Failure::usage("no worker"))?;
        let failed = |e: std::io::Error| {
            Failure::fatal(format!("cannot start worker '{}': {e}", Path::new(program).display()))
        };
        let mut command = Command::new(program);
        command.args(args).current_dir(root.folder());
        command.env("AGENTXCHAIN_TURN_ID", turn.id()).env("AGENTXCHAIN_ROLE", turn.role());
        command.env("AGENTXCHAIN_RUNTIME", turn.runtime());
        command.env("AGENTXCHAIN_ATTEMPT", turn.attempt().to_string());
        command.env("AGENTXCHAIN_RUN_ID", state.run_id().unwrap_or_default());
        command.env("AGENTXCHAIN_PHASE", state.phase().unwrap_or_default());
        command.env("AGENTXCHAIN_PROJECT_ROOT", root.folder());
        command.env("AGENTXCHAIN_DISPATCH_DIR", bundle(root, turn));
        command.env("AGENTXCHAIN_RESULT", root.folder().join(get_turn_staging_result_path(turn.id())));
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        command.stdout(Stdio::from(stderr));
        command.stdin(if self.fed { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A worker that does not read it needs it not.
            let _ = stdin.write_all(prompt.as_bytes());
        }
        child.wait().map_err(failed)
    }
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

/// The run's own files while a worker works: what it changes of them is put back, and is a violation.
pub struct Guarded(Option<(Own, Option<LockGuard>)>);

impl Guarded {
    /// Before the worker. In a plain folder the lock is held until after it, so that whatever changed was its doing;
    /// where a phase has several turns at once nobody can say that, and nothing is guarded.
    pub fn before(root: &Root, config: &Config, state: &State, turn: &str) -> Result<Self, GovernedError> {
        let lock = match std::env::var_os("AYNIG_RUN_ID") {
            // A slot is its run's alone.
            Some(_) => None,
            None if get_max_concurrent_turns(config, state.phase().unwrap_or_default()) > 1 => {
                return Ok(Self(None));
            }
            None => Some(acquire_lock(root)?),
        };
        Ok(Self(Some((Own::take(root, turn)?, lock))))
    }

    /// After it: what it did wrong.
    pub fn after(self, root: &Root) -> Result<Vec<String>, GovernedError> {
        let Some((own, lock)) = self.0 else { return Ok(Vec::new()) };
        let changed = own.put_back(root)?;
        drop(lock);
        let told = |path: String| format!("'{path}' is the run's own: it was changed, and put back");
        Ok(changed.into_iter().map(told).collect())
    }
}
