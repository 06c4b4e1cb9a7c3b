//! `doctor`: what would stop a tick here, one line a finding, each with the command that mends it.
//!
//! Goes as far as it can: without git, without a repository, with an unreadable configuration it says so
//! and ends. What needs the environment is looked at here, the rest by `runner::checkup`.
//! Implements section 13 (`doctor`), K33 (ignored keys).

use super::args::Doctor;
use super::fail::Failure;
use super::output;
use super::session::{Global, Session};
use crate::protocol::text::{escape, shell_word};
use crate::runner::checkup::{Finding, Level};
use crate::runner::settings::Settings;
use crate::store::git_command::Git;
use crate::store::{RefName, tracking};
use crate::supervisor::interrupt::Interrupt;
use serde_json::json;

/// The schema of a finding.
pub const DOCTOR_SCHEMA: &str = "aynig.doctor/1";
/// The oldest Git that is enough.
const GIT_MIN: (u32, u32) = (2, 30);

/// `git aynig doctor`.
pub fn run(global: &Global, args: &Doctor) -> Result<i32, Failure> {
    let mut found = Vec::new();
    if std::env::var_os("AYNIG").is_some_and(|v| v == "0") {
        let text = "AYNIG=0 switches every tick off";
        found.push(Finding::new(Level::Error, "environment", text).hint("unset AYNIG"));
    }
    match Git::find_here() {
        Ok(_) => in_repository(global, args, &mut found),
        Err(error) => {
            let text = escape(error.to_string().as_bytes());
            found.push(Finding::new(Level::Error, "git", text).hint("install git, or put it on PATH"));
        }
    }
    for finding in &found {
        if args.json {
            output::line(&json(finding));
        } else if !global.quiet || finding.level != Level::Ok {
            output::line(&text(finding));
        }
    }
    Ok(i32::from(found.iter().any(|f| f.level == Level::Error)))
}

fn in_repository(global: &Global, args: &Doctor, found: &mut Vec<Finding>) {
    let session = match global.open() {
        Ok(session) => session,
        Err(error) => {
            return found.push(failed("repository", &error.into(), "cd into a repository, or git init"));
        }
    };
    found.push(git(&session));
    for key in &session.config.ignored {
        let (shown, word) = (escape(key.as_bytes()), shell_word(key.as_bytes()));
        let text = format!("'{shown}' in the repository's own configuration does not count");
        let instead = match key.as_str() {
            // For this repository alone.
            "aynig.commandsfrom" => "git aynig trust --ref <branch>".to_owned(),
            _ => format!("git config --global {word} <value>"),
        };
        let hint = format!("git config --local --unset-all {word}; {instead}");
        found.push(Finding::new(Level::Warning, "configuration", text).hint(hint));
    }
    for key in &session.config.conditional {
        let (shown, word) = (escape(key.as_bytes()), shell_word(key.as_bytes()));
        let text = format!(
            "'{shown}' is in a file that is included only for this branch or remote: nothing may run; include it \
             always, or by 'gitdir:'"
        );
        let hint = format!("git config --show-origin --get-all {word}");
        found.push(Finding::new(Level::Error, "configuration", text).hint(hint));
    }
    let checked = || -> Result<Vec<Finding>, Failure> {
        let ticked = session.settings(&Default::default())?;
        let remote = ticked.remote.clone();
        let settings = Settings { remote: None, ..ticked.clone() };
        for (key, days) in [("logExpire", 30), ("attemptExpire", 90)] {
            session.config.expiry(key, days)?;
        }
        let interrupt = Interrupt::never()?;
        let runner = session.reader(&settings, &interrupt)?;
        // Of a remote's branches what was last heard is looked at.
        let known = remote.as_ref().filter(|remote| session.repo.has_remote(remote));
        let ticked = known.map(|remote| session.recaller(remote, &ticked, &interrupt)).transpose()?;
        let mut found = runner.checkup(ticked.as_ref().unwrap_or(&runner));
        let prefix = remote.as_deref().map_or_else(|| "refs/heads/".to_owned(), tracking);
        if let Some(history) = &args.history {
            let branch = history.as_deref().map(|name| session.branch(name)).transpose()?;
            let branch = branch.map(|b| RefName::new([prefix.as_bytes(), b.short()].concat()));
            found.extend(runner.check_history(branch.as_ref(), &prefix));
        }
        match remote {
            Some(remote) => found.extend(runner.checkup_remote(&remote, args.network)),
            None if args.network => {
                let text = "none is configured, so nothing was asked";
                found.push(Finding::new(Level::Ok, "remote", text).hint("git config aynig.remote <name>"));
            }
            None => {}
        }
        Ok(found)
    };
    match checked() {
        Ok(more) => found.extend(more),
        Err(failure) => found.push(failed("configuration", &failure, "git config --list --show-origin")),
    }
}

/// A failure as a finding.
fn failed(subject: &'static str, failure: &Failure, otherwise: &str) -> Finding {
    let words: Vec<&str> =
        std::iter::once(&failure.message).chain(&failure.causes).map(String::as_str).collect();
    let hint = failure.hints.first().map_or(otherwise, String::as_str);
    let text = escape(words.join(": ").as_bytes());
    Finding::new(Level::Error, subject, text).hint(escape(hint.as_bytes()))
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
            Finding::new(Level::Error, "git", text).hint("install a newer git, or put it first on PATH")
        }
        Some(_) => Finding::new(Level::Ok, "git", shown),
    }
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn text(finding: &Finding) -> String {
    let mut text = format!("{:<7}  {:<13}  {}", finding.level.name(), finding.subject, finding.text);
    if let Some(hint) = &finding.hint {
        text += &format!("\n         hint: {hint}");
    }
    text
}

fn json(finding: &Finding) -> String {
    output::json(&json!({
        "schema": DOCTOR_SCHEMA,
        "level": finding.level.name(),
        "subject": finding.subject,
        "text": finding.text,
        "hint": finding.hint,
    }))
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
