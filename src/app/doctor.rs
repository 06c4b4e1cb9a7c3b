//! `doctor`: what would stop a tick here, one finding each, and what programs are told of it: schema
//! `aynig.doctor/1`.
//!
//! The checks go as far as they can: without Git, without a repository or with an unreadable configuration,
//! the findings say so and end there. This module makes the checks that need the environment,
//! `runner::checkup` the rest. Implements git-aynig-doctor(1), K33 (ignored keys).

use super::session::Session;
use super::{AppError, is_switched_off};
use crate::protocol::text::{escape, with_causes};
use crate::runner::checkup::{self, Level, Mend};
use crate::runner::settings::Settings;
use crate::store::git_command::Git;
use crate::store::{RefName, tracking};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::ffi::OsString;

/// The schema of a finding.
pub const DOCTOR_SCHEMA: &str = "aynig.doctor/1";
/// The oldest Git that is enough.
const GIT_MIN: (u32, u32) = (2, 31);

/// What to look at besides the usual.
pub struct Questions {
    /// Whether to ask the remote of `aynig.remote`.
    pub network: bool,
    /// Whether to read what commits say: of this branch, or with an inner `None` of every branch.
    pub history: Option<Option<OsString>>,
}

/// One thing that was looked at. All text is safe to show.
#[derive(Debug)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was looked at.
    pub subject: &'static str,
    /// What was found.
    pub text: String,
    /// What mends it.
    pub remedy: Option<Remedy>,
}

/// What mends a finding.
#[derive(Debug)]
pub enum Remedy {
    /// What the runner's checkup names.
    Mend(Mend),
    /// Unset `AYNIG`.
    SwitchOn,
    InstallGit,
    /// Install a newer git.
    NewerGit,
    /// Take a key out of the repository's own configuration.
    Unset(String),
    /// Show where a key is set.
    ShowKey(String),
    NameRemote,
    /// Whatever mends this error; where nothing does, the use of another folder.
    Repository(AppError),
    /// Whatever mends this error; where nothing does, another configuration.
    Configuration(AppError),
}

impl Finding {
    fn new(level: Level, subject: &'static str, text: impl Into<String>) -> Self {
        Self { level, subject, text: text.into(), remedy: None }
    }

    fn by(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}

impl From<checkup::Finding> for Finding {
    fn from(finding: checkup::Finding) -> Self {
        let checkup::Finding { level, subject, text, mend } = finding;
        Self { level, subject, text, remedy: mend.map(Remedy::Mend) }
    }
}

/// Makes all checks, and returns their findings.
pub fn examine(open: impl FnOnce() -> Result<Session, AppError>, questions: &Questions) -> Vec<Finding> {
    let mut found = Vec::new();
    if is_switched_off() {
        let text = "AYNIG=0 switches every tick off";
        found.push(Finding::new(Level::Error, "environment", text).by(Remedy::SwitchOn));
    }
    match Git::find_here() {
        Ok(_) => match open() {
            Ok(session) => in_repository(&session, questions, &mut found),
            Err(error) => {
                let text = with_causes(&error);
                found.push(Finding::new(Level::Error, "repository", text).by(Remedy::Repository(error)));
            }
        },
        Err(error) => {
            let text = escape(error.to_string().as_bytes());
            found.push(Finding::new(Level::Error, "git", text).by(Remedy::InstallGit));
        }
    }
    found
}

fn in_repository(session: &Session, questions: &Questions, found: &mut Vec<Finding>) {
    found.push(git(session));
    for key in &session.config.ignored {
        let shown = escape(key.as_bytes());
        let text = format!("'{shown}' in the repository's own configuration does not count");
        let unset = Remedy::Unset(key.clone());
        found.push(Finding::new(Level::Warning, "configuration", text).by(unset));
    }
    for unsure in &session.config.unsure {
        let text = format!("{unsure}: nothing may run; {}", unsure.mend());
        let show = Remedy::ShowKey(unsure.key().to_owned());
        found.push(Finding::new(Level::Error, "configuration", text).by(show));
    }
    match checked(session, questions) {
        Ok(more) => found.extend(more),
        Err(error) => {
            let text = with_causes(&error);
            found.push(Finding::new(Level::Error, "configuration", text).by(Remedy::Configuration(error)));
        }
    }
}

fn checked(session: &Session, questions: &Questions) -> Result<Vec<Finding>, AppError> {
    let ticked = session.settings(&Default::default())?;
    let remote = ticked.remote.clone();
    let settings = Settings { remote: None, ..ticked.clone() };
    for (key, days) in [("logExpire", 30), ("attemptExpire", 90)] {
        session.config.expiry(key, days)?;
    }
    session.config.hooks()?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    // Of a remote's branches, those that were last fetched are looked at; the remote is not asked.
    let known = remote.as_ref().filter(|remote| session.repo.has_remote(remote));
    let ticked = known.map(|remote| session.recaller(remote, &ticked, &interrupt)).transpose()?;
    let mut found = runner.checkup(ticked.as_ref().unwrap_or(&runner));
    let prefix = remote.as_deref().map_or_else(|| "refs/heads/".to_owned(), tracking);
    if let Some(history) = &questions.history {
        let branch = history.as_deref().map(|name| session.branch(name)).transpose()?;
        let branch = branch.map(|b| RefName::new([prefix.as_bytes(), b.short()].concat()));
        found.extend(runner.check_history(branch.as_ref(), &prefix));
    }
    if let Some(remote) = &remote {
        found.extend(runner.checkup_remote(remote, questions.network));
    }
    let mut found: Vec<Finding> = found.into_iter().map(Finding::from).collect();
    if let Some(program) = settings.notify.first()
        && which::which_in(program, std::env::var_os("PATH"), &session.repo.common_dir).is_err()
    {
        let text = format!(
            "'{}', which 'aynig.notify' names, is no program that is found",
            escape(program.as_bytes())
        );
        let show = Remedy::ShowKey("aynig.notify".to_owned());
        found.push(Finding::new(Level::Warning, "notify", text).by(show));
    }
    if remote.is_none() && questions.network {
        let text = "none is configured, so nothing was asked";
        found.push(Finding::new(Level::Ok, "remote", text).by(Remedy::NameRemote));
    }
    Ok(found)
}

fn git(session: &Session) -> Finding {
    let program = escape(session.repo.git.git().program().as_os_str().as_encoded_bytes());
    let version = session.repo.git.version().unwrap_or_default();
    let words = version.trim_start_matches("git version ");
    let shown = format!("{} at '{program}'", escape(words.as_bytes()));
    match number(words) {
        None => Finding::new(Level::Warning, "git", format!("{shown} does not say which version it is")),
        Some(found) if found < GIT_MIN => {
            let text = format!("{shown} is too old: {}.{} is needed", GIT_MIN.0, GIT_MIN.1);
            Finding::new(Level::Error, "git", text).by(Remedy::NewerGit)
        }
        Some(_) => Finding::new(Level::Ok, "git", shown),
    }
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// A finding as programs read it.
#[derive(Serialize)]
pub struct DoctorLine<'a> {
    schema: &'static str,
    level: &'static str,
    subject: &'static str,
    text: &'a str,
    hint: Option<String>,
}

impl<'a> DoctorLine<'a> {
    /// Makes the line of a finding; `hint` says in words what mends it.
    pub fn new(finding: &'a Finding, hint: Option<String>) -> Self {
        let Finding { level, subject, text, remedy: _ } = finding;
        Self { schema: DOCTOR_SCHEMA, level: level.name(), subject, text, hint }
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_of_other_builders_are_read() {
        assert_eq!(number("2.47.3"), Some((2, 47)));
        assert_eq!(number("2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(number("2.55.0-rc1"), Some((2, 55)));
        assert_eq!(number("whatever"), None);
    }
}
