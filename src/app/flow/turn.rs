//! `flow turn`: the command of the state `turn`, run in a node's slot.
//!
//! This module reads what the account's configuration says of programs, and what this process was started
//! with, and hands both down as values. Implements N4 (the command), N9 (`aynig.provider.*`).

use crate::agents::custom::Protocol;
use crate::app::AppError;
use crate::app::change::Change;
use crate::app::config::{Config, bad_value, boolean, duration, words};
use crate::app::helper;
use crate::contract::id::TurnId;
use crate::contract::words::Provider;
use crate::flow::Flows;
use crate::flow::turn::settings::{Program, SILENCE, TIME};
use crate::flow::turn::{Ended, Ground, environment, run};
use crate::runner::Silent;
use crate::runner::settings::Sandbox;
use crate::runner::talk::TalkError;
use crate::store::beneath::{BeneathError, Root};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of a turn, below its run's folder.
const FOLDER: &str = "turn";
/// The folder for a turn's temporary files, below the turn's own.
const TEMPORARY: &str = "tmp";

/// Returns the folder of a slot that turns start in, which is reached through no link, and made where it is
/// missing.
fn start(slot: &Path, folder: Option<&str>) -> Result<PathBuf, AppError> {
    let Some(folder) = folder else { return Ok(slot.to_owned()) };
    let place = slot.join(folder);
    let failed = |error: BeneathError| AppError::from(crate::runner::io("start in", &place)(error.into()));
    let root = Root::open(slot).map_err(failed)?;
    root.create_dirs(Path::new(folder), 0o777).map_err(failed)?;
    root.below(Path::new(folder)).map_err(failed)?;
    Ok(place)
}

/// Returns the variables that tell everything a turn starts of its sandbox.
fn confined(sandbox: &Sandbox, tmp: &Path) -> Vec<(OsString, OsString)> {
    let Some(name) = sandbox.name() else { return Vec::new() };
    let mut told: Vec<(OsString, OsString)> = vec![("AYNIG_SANDBOX".into(), name.into())];
    told.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), tmp.into())));
    if let Sandbox::Strict(..) = sandbox {
        // The account's own configuration can't be read there, and Git fails where it can't read it.
        told.push(("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()));
    }
    told
}

/// Takes the turn of the run that this process is inside of, until it ends or a signal comes.
pub fn turn(change: &Change<'_>, interrupt: &Interrupt) -> Result<Ended, AppError> {
    let outside = || AppError::Talk { error: Box::new(TalkError::Outside), remote: None };
    let inside = change.inside.as_ref().ok_or_else(outside)?;
    // Confined programs can write to the slot's registration, so no Git that is asked meanwhile may go by
    // that.
    let apart = match change.settings.sandbox {
        Sandbox::Off => None,
        Sandbox::Write(_) | Sandbox::Strict(..) => {
            Some(change.session.beside(&change.session.repo.common_dir)?)
        }
    };
    let session = apart.as_ref().unwrap_or(change.session);
    let runner = session.runner(&change.settings, interrupt, &Silent)?;
    let flows = Flows::new(&runner);
    let (kept, node) = flows.of_branch(&inside.branch)?;
    let config = &kept.flow.nodes[&node].config;
    let program = session.config.provider(config.provider)?;
    let own: Vec<_> = std::env::vars_os().collect();
    let folder = runner.run_dir(&inside.run_id).join(FOLDER);
    let sandbox = runner.own_sandbox(inside, &folder.join(TEMPORARY))?;
    let with = |configured: &[(String, String)]| {
        let mut env = environment(&own, configured);
        for (name, value) in confined(&change.settings.sandbox, &folder.join(TEMPORARY)) {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        env
    };
    // A key that the account gives the provider's program is for that program alone, and not for checks.
    let (agent_env, check_env) = (with(&program.env), with(&[]));
    let turn = TurnId::parse(&inside.run_id).map_err(|_| outside())?;
    let place = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let slot = place("WORKTREE_PATH").ok_or_else(outside)?;
    let start = start(&slot, kept.flow.run.folder.as_deref())?;
    // Inside a strict sandbox, neither the server's program nor the turn's socket could be read.
    let server = match change.settings.sandbox {
        Sandbox::Off | Sandbox::Write(_) => helper::find(),
        Sandbox::Strict(..) => None,
    };
    let ground = Ground {
        trigger: runner.own_trigger(inside).map_err(|error| change.talked(error))?,
        template: flows.role_text(&kept.flow.nodes[&node].config.role_template)?,
        verify: words("flowVerify", &session.config.all("flowVerify"))?,
        slot,
        start,
        events: place("AYNIG_EVENTS"),
        folder,
        sandbox,
        runner: &runner,
        inside,
        kept,
        node,
        program,
        turn,
        agent_env,
        server,
        check_env,
    };
    Ok(run(&ground)?)
}

impl Config {
    /// Reads what the account's configuration says of a provider's program.
    fn provider(&self, provider: Provider) -> Result<Program, AppError> {
        let key = |name: &str| format!("provider.{provider}.{name}");
        let get = |name: &str| self.get(&key(name)).filter(|value| !value.is_empty());
        let bad = |name: &str, value: &str, want| bad_value(key(name), value, want);
        let limit = |name: &str, default: Duration| match get(name) {
            None => Ok(Some(default)),
            Some(text) => {
                let read =
                    duration(text).ok_or_else(|| bad(name, text, "a duration such as 90, 90s or 5m"))?;
                Ok::<_, AppError>(Some(read).filter(|limit| !limit.is_zero()))
            }
        };
        let command = words(&key("command"), &self.all(&key("command")))?;
        if command.is_empty() && provider == Provider::Custom {
            return Err(bad("command", "", "the program of 'custom' nodes"));
        }
        // It would be looked for where the turn works, which is in a branch's files.
        if let Some(program) = command.first().filter(|word| word.contains('/') && !word.starts_with('/')) {
            return Err(bad("command", program, "a program's name, or its absolute path"));
        }
        let pair = |value: &String| match value.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(bad("env", value, "NAME=value")),
        };
        let protocol = get("protocol").unwrap_or("jsonl");
        Ok(Program {
            command,
            args: self.all(&key("args")),
            env: self.all(&key("env")).iter().map(pair).collect::<Result<_, _>>()?,
            model: get("model").map(str::to_owned),
            protocol: Protocol::named(protocol).ok_or_else(|| bad("protocol", protocol, "jsonl or raw"))?,
            project_settings: match get("projectSettings") {
                None => false,
                Some(said) => boolean(said).ok_or_else(|| bad("projectSettings", said, "true or false"))?,
            },
            silence: limit("silence", SILENCE)?,
            time: limit("time", TIME)?,
        })
    }
}
