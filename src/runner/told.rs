//! What a command is told through its environment, and what the program of `aynig.exec` in front of it is.
//!
//! What the runner says itself is for both. What comes of the commit (its trailers, its body, the log level that
//! a trailer asks for) is for the command alone: with a prefix program it is written to a file in the run's
//! folder, which becomes standard input, and a launcher behind the prefix reads it (`protocol/launch.rs`).
//! Implements K15, K35.

use super::live::Live;
use super::report::{Note, Report};
use super::settings::CommandsFrom;
use super::supervise::Program;
use super::{Runner, RunnerError, io};
use crate::protocol::message::Message;
use crate::protocol::{environment, launch};
use crate::store::{RefName, pattern};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is started, with which environment, and what it reads.
pub(super) struct Start {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Option<PathBuf>,
}

impl Runner<'_> {
    /// How a command is started.
    pub(super) fn start_of(
        &self,
        branch: &RefName,
        live: &Live,
        program: &Program,
        report: &mut Report,
    ) -> Result<Start, RunnerError> {
        let mut env = self.own_environment(branch, live, &program.place);
        let told = self.told_of_commit(live, &env, report);
        let mut argv: Vec<OsString> = self.settings.exec.iter().map(OsString::from).collect();
        let stdin = if argv.is_empty() {
            env.extend(told.into_iter().map(|(name, value)| (name.into(), OsString::from_vec(value))));
            None
        } else {
            argv.extend(launch::argv().map(OsString::from));
            Some(write_script(live, &told)?)
        };
        argv.push(program.place.join(&program.command.path).into());
        Ok(Start { argv, env: env.into_iter().collect(), stdin })
    }

    /// Variables that come of the trigger: the command's alone.
    fn told_of_commit(
        &self,
        live: &Live,
        env: &BTreeMap<OsString, OsString>,
        report: &mut Report,
    ) -> BTreeMap<String, Vec<u8>> {
        let trigger = Message::parse(&live.claimed.trigger.commit.message);
        let wanted = |name: &str| match self.settings.commands_from {
            // Whoever writes the branch brings its commands too.
            CommandsFrom::Branch => true,
            CommandsFrom::Ref(_) | CommandsFrom::Nowhere => {
                let key = name.to_ascii_lowercase().replace('_', "-");
                let named = |name: &str| pattern::named(&self.settings.trailer_env, name);
                named(name) || named(&key)
            }
        };
        let told = environment::tell(&trigger, &wanted, &|name| env.contains_key(OsStr::new(name)));
        if !told.left_out.is_empty() {
            report.notes.push(Note::TrailersLeftOut(told.left_out));
        }
        let mut variables = told.variables;
        let log_level = format!("{}log-level", live.claimed.run.dialect.prefix());
        let level = trigger.last(&log_level).and_then(|v| std::str::from_utf8(v).ok());
        let level = level.filter(|level| level.len() < 1024 && !level.contains('\0'));
        if let (Some(level), None) = (level, &self.settings.log_level_flag) {
            for name in ["LOG_LEVEL", "AYNIG_LOG_LEVEL"] {
                variables.insert(name.into(), level.as_bytes().to_vec());
            }
        }
        variables
    }

    /// Variables that the runner says, and what it lets through of its own.
    fn own_environment(
        &self,
        branch: &RefName,
        live: &Live,
        aynig_dir: &Path,
    ) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<OsString, OsString> = self.environment.iter().cloned().collect();
        let run = &live.claimed.run;
        let level = self.settings.log_level_flag.as_deref().unwrap_or(&self.settings.log_level);
        let role = self.settings.role.as_ref().map_or("", |r| r.as_str()).to_owned();
        let text = |value: &str| OsString::from(value);
        let mut set = |names: &[&str], value: OsString| {
            for name in names {
                all.insert((*name).into(), value.clone());
            }
        };
        set(&["COMMIT_HASH", "AYNIG_COMMIT_HASH"], text(&run.trigger.to_string()));
        set(&["LOG_LEVEL", "AYNIG_LOG_LEVEL"], text(level));
        set(&["ROLE", "AYNIG_ROLE"], text(&role));
        set(&["WORKTREE_PATH", "PWD"], live.slot.dir().into());
        set(&["STDOUT_LOG_PATH"], live.logs.stdout.clone().into());
        set(&["STDERR_LOG_PATH"], live.logs.stderr.clone().into());
        set(&["AYNIG_BRANCH"], OsStr::from_bytes(branch.short()).into());
        set(&["AYNIG_RUN_ID"], text(&run.id));
        set(&["AYNIG_RUNNER_ID"], text(&run.runner_id));
        set(&["AYNIG_LEASE_COMMIT"], text(&live.claimed.first.to_string()));
        set(&["AYNIG_LEASE_SECONDS"], text(&run.lease_seconds.to_string()));
        set(&["AYNIG_REMOTE"], text(run.remote.as_deref().unwrap_or("")));
        set(&["AYNIG_STATE"], text(run.state.as_str()));
        set(&["AYNIG_HOP"], text(&run.hop.to_string()));
        set(&["AYNIG_DIR"], aynig_dir.into());
        set(&["AYNIG_RUN_DIR"], live.dir.clone().into());
        set(&["AYNIG_BODY_FILE"], live.dir.join("body").into());
        set(&["AYNIG_RESULT"], live.dir.join("result").into());
        all.remove(OsStr::new("OLDPWD"));
        all
    }
}

/// Writes what the launcher reads into the run's folder.
fn write_script(live: &Live, told: &BTreeMap<String, Vec<u8>>) -> Result<PathBuf, RunnerError> {
    let path = live.dir.join("told");
    let script =
        launch::script(told, &|name| name.starts_with("AYNIG_") || matches!(name, "BODY" | "LOG_LEVEL"));
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(&script)).map_err(io("write", &path))?;
    Ok(path)
}
