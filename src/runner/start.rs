//! What a command is told through its environment, and what the program of `aynig.exec` in front of it is
//! told.
//!
//! What the runner says itself is for both. What comes from the commit (its trailers, its body, the log level
//! that a trailer asks for) is for the command alone: with a prefix program it is written to a file in the
//! run's folder, which becomes standard input, and a launcher behind the prefix reads it
//! (`protocol/launch.rs`). Implements K15, K35, K48a (`AYNIG_EVENTS`), K57.

use super::active_run::ActiveRun;
use super::heard;
use super::report::Note;
use super::sandbox::TEMPORARY;
use super::settings::{CommandsFrom, Sandbox};
use super::{RunnerError, io};
use crate::protocol::heard::heard_of;
use crate::protocol::message::Message;
use crate::protocol::{environment, launch};
use crate::store::pattern;
use crate::store::slots::affinity::port_base;
use crate::supervisor::own_program;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is started, with which environment, and the file that it reads as standard input.
pub(super) struct Start {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Option<PathBuf>,
}

impl ActiveRun<'_> {
    /// Returns how a program of `.aynig/` is started. For one that `is_ours` git-aynig is started directly,
    /// without the shell and the Git that would only lead to it; but a prefix program of the user's is given
    /// the file.
    pub(super) fn start_of(
        &mut self,
        program: &Path,
        is_ours: bool,
        sandbox: &Sandbox,
    ) -> Result<Start, RunnerError> {
        let mut env = self.own_environment(sandbox);
        let told = self.told_of_commit(&env);
        let mut argv: Vec<OsString> = self.runner.settings.exec.iter().map(OsString::from).collect();
        let stdin = if argv.is_empty() {
            env.extend(told.into_iter().map(|(name, value)| (name.into(), OsString::from_vec(value))));
            None
        } else {
            argv.extend(launch::argv().map(OsString::from));
            Some(write_script(&self.dir, &told)?)
        };
        if is_ours && argv.is_empty() {
            argv.push(own_program(&self.runner.program).into());
            argv.extend(["flow", self.claim.run.state.as_str()].map(OsString::from));
        } else {
            argv.push(program.into());
        }
        Ok(Start { argv, env: env.into_iter().collect(), stdin })
    }

    /// Returns the variables that come from the trigger, which the command alone is given.
    fn told_of_commit(&mut self, env: &BTreeMap<OsString, OsString>) -> BTreeMap<String, Vec<u8>> {
        let settings = self.runner.settings;
        let trigger = Message::parse(&self.claim.trigger.commit.message);
        let wanted = |name: &str| match settings.commands_from {
            // A user who pushes the branch brings its commands too, so trailers add no danger.
            CommandsFrom::Branch => true,
            CommandsFrom::Ref(_) | CommandsFrom::Nowhere => {
                let key = name.to_ascii_lowercase().replace('_', "-");
                let named = |name: &str| pattern::named(&settings.trailer_env, name);
                named(name) || named(&key)
            }
        };
        let told =
            environment::trailer_variables(&trigger, &wanted, &|name| env.contains_key(OsStr::new(name)));
        if !told.left_out.is_empty() {
            self.report.note_once(Note::TrailersLeftOut(told.left_out));
        }
        let mut variables = told.variables;
        let log_level = format!("{}log-level", self.claim.run.dialect.prefix());
        let level = trigger.last(&log_level).and_then(|v| std::str::from_utf8(v).ok());
        let level = level.filter(|level| level.len() < 1024 && !level.contains('\0'));
        if let (Some(level), None) = (level, &settings.log_level_flag) {
            for name in ["LOG_LEVEL", "AYNIG_LOG_LEVEL"] {
                variables.insert(name.into(), level.as_bytes().to_vec());
            }
        }
        variables
    }

    /// Returns the variables that the runner sets, and those of its own environment that it lets through.
    fn own_environment(&self, sandbox: &Sandbox) -> BTreeMap<OsString, OsString> {
        let settings = self.runner.settings;
        let mut all: BTreeMap<OsString, OsString> = self.runner.environment().iter().cloned().collect();
        let run = &self.claim.run;
        let level = settings.log_level_flag.as_deref().unwrap_or(&settings.log_level);
        let role = settings.role.as_ref().map_or("", |r| r.as_str()).to_owned();
        let text = |value: &str| OsString::from(value);
        let mut set = |names: &[&str], value: OsString| {
            for name in names {
                all.insert((*name).into(), value.clone());
            }
        };
        set(&["COMMIT_HASH", "AYNIG_COMMIT_HASH"], text(&run.trigger.to_string()));
        set(&["LOG_LEVEL", "AYNIG_LOG_LEVEL"], text(level));
        set(&["ROLE", "AYNIG_ROLE"], text(&role));
        set(&["WORKTREE_PATH", "PWD"], self.slot.dir().into());
        set(&["STDOUT_LOG_PATH"], self.logs.stdout.clone().into());
        set(&["STDERR_LOG_PATH"], self.logs.stderr.clone().into());
        set(&["AYNIG_EVENTS"], self.logs.events().into());
        set(&["AYNIG_BRANCH"], OsStr::from_bytes(self.branch.short()).into());
        set(&["AYNIG_RUN_ID"], text(&run.id));
        set(&["AYNIG_RUNNER_ID"], text(&run.runner_id));
        set(&["AYNIG_LEASE_COMMIT"], text(&self.claim.first.to_string()));
        set(&["AYNIG_LEASE_SECONDS"], text(&run.lease_seconds.to_string()));
        set(&["AYNIG_REMOTE"], text(run.remote.as_deref().unwrap_or("")));
        set(&["AYNIG_STATE"], text(run.state.as_str()));
        set(&["AYNIG_HOP"], text(&run.hop.to_string()));
        set(&["AYNIG_DIR"], self.program.place.clone().into());
        set(&["AYNIG_RUN_DIR"], self.dir.clone().into());
        set(&["AYNIG_SLOT"], text(&self.slot.number().to_string()));
        if let Some(port) = port_base(settings.port_base, self.slot.number()) {
            set(&["AYNIG_PORT_BASE"], text(&port.to_string()));
        }
        if let Some(name) = sandbox.name() {
            set(&["AYNIG_SANDBOX"], text(name));
            set(&["TMPDIR", "TMP", "TEMP"], self.dir.join(TEMPORARY).into());
            if matches!(sandbox, Sandbox::Strict(..)) {
                // The account's own file can't be read in this sandbox, and Git fails where it can't read it.
                set(&["GIT_CONFIG_GLOBAL"], text("/dev/null"));
            }
        }
        set(&["AYNIG_BODY_FILE"], self.dir.join("body").into());
        let trigger = self.claim.trigger.event.as_ref();
        if trigger.is_some_and(|event| !heard_of(&event.message, event.dialect).is_empty()) {
            set(&["AYNIG_MESSAGES"], self.dir.join(heard::FILE).into());
        }
        set(&["AYNIG_RESULT"], self.dir.join("result").into());
        all.remove(OsStr::new("OLDPWD"));
        all
    }
}

/// Writes what the launcher reads into the run's folder.
fn write_script(dir: &Path, told: &BTreeMap<String, Vec<u8>>) -> Result<PathBuf, RunnerError> {
    let path = dir.join("told");
    let script =
        launch::script(told, &|name| name.starts_with("AYNIG_") || matches!(name, "BODY" | "LOG_LEVEL"));
    if path.symlink_metadata().is_ok() {
        // The program that prepared the slot was given such a file too, and could write to this folder.
        crate::store::remove_tree(&path).map_err(io("remove", &path))?;
    }
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(&script)).map_err(io("write", &path))?;
    Ok(path)
}
