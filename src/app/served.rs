//! What the page asks of a repository: the verbs that only look, for a long-lived reader in another process.
//!
//! [`Place::find`] finds a repository once; every question opens it again, by its configuration of that
//! moment. Answers are the lines that `--json` prints, from the same types. Nothing is written by this
//! module: a question that writes goes to the program itself, which has the wording, the hints and the
//! chains. Implements W7 (what is read).

mod flows;
mod hearing;

use super::config::Flags;
use super::events::{EventLine, Filter};
use super::logs::{self, Request};
use super::session::Session;
use super::shown::{full, short};
use super::status::{StatusLine, Statuses};
use super::talk::{PauseLine, QuestionLine};
use super::{AppError, Exit, Misuse, Unheard, diff, events, status};
use crate::protocol::text::{escape, shell_word};
use crate::runner::logs as files;
use crate::runner::settings::CommandsFrom;
use crate::runner::survey::BranchStatus;
use crate::runner::talk::TalkError;
use crate::runner::{Runner, RunnerError};
use crate::store::RefName;
use crate::store::git_calls::branch_from_arg;
use crate::store::hooks::Hooks;
use crate::supervisor::interrupt::Interrupt;
use hearing::Hearing;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use super::logs::Which;
pub use flows::RunState;

/// A repository that is served.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder by which people know it: its working tree, or its Git directory.
    pub folder: PathBuf,
    /// The Git directory that it is opened by.
    pub git_dir: PathBuf,
    /// The Git directory that all its worktrees share.
    pub common_dir: PathBuf,
    /// The folder of its logs.
    pub logs: PathBuf,
    /// How long a look at a flow waits for another process that projects the flow and does not get on.
    patience: Duration,
    hearing: Arc<Hearing>,
}

/// How long a [`Place`] is patient unless the caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The call was wrong.
    Invalid,
    /// What was asked for does not exist.
    Unknown,
    /// A policy forbids it.
    Refused,
    /// A run or another process holds it now, or a working tree is not ready for it.
    Held,
    /// It may be answered later.
    Later,
    /// It failed.
    Failed,
}

/// A question without an answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Unanswered {
    /// The kind of reason.
    pub cause: Cause,
    /// The reason in words.
    pub message: String,
}

impl From<AppError> for Unanswered {
    fn from(error: AppError) -> Self {
        let of_exit = match Exit::from(&error) {
            Exit::Usage => Cause::Invalid,
            Exit::Refused => Cause::Refused,
            Exit::Held | Exit::Unfinished => Cause::Held,
            Exit::Later => Cause::Later,
            Exit::Done | Exit::Failed | Exit::Terminated | Exit::Interrupted => Cause::Failed,
        };
        let is_missing = matches!(
            error,
            AppError::NoBranch { .. } | AppError::Logs(_) | AppError::Past(diff::PastError::NoRun { .. })
        ) || matches!(error, AppError::Past(diff::PastError::NoSuch { .. }));
        let message = escape(error.to_string().as_bytes());
        Self { cause: if is_missing { Cause::Unknown } else { of_exit }, message }
    }
}

/// How branches stand.
#[derive(Debug, Serialize)]
pub struct Branches {
    /// The time by which leases were judged, in seconds since 1970.
    pub now: i64,
    /// The lines of `status --json`.
    pub branches: Vec<Line>,
    /// Branches that could not be read.
    pub failed: Vec<Unread>,
}

/// A branch that could not be read.
#[derive(Debug, Serialize)]
pub struct Unread {
    branch: String,
    error: String,
}

/// How all branches stand: [`Branches`] as JSON. Each line is written as its branch is read, and nothing else
/// of the branch is kept.
#[derive(Debug, Default)]
pub struct AllBranches {
    /// The line of each branch, sorted by the branch's name.
    lines: Vec<(RefName, Box<str>)>,
    /// The JSON before the lines, and the JSON after them.
    around: (String, String),
}

impl AllBranches {
    /// Returns the length of the JSON in bytes.
    pub fn length(&self) -> usize {
        let commas = self.lines.len().saturating_sub(1);
        let lines: usize = self.lines.iter().map(|(_, line)| line.len()).sum();
        self.around.0.len() + lines + commas + self.around.1.len()
    }

    /// Returns the JSON from piece `from` on, and how many pieces that is: as many as fit into `most` bytes,
    /// but at least one. Returns an empty text at the end.
    pub fn piece(&self, from: usize, most: usize) -> (String, usize) {
        let (mut text, mut taken) = (String::new(), 0);
        while let Some(next) =
            self.at(from + taken).filter(|next| text.is_empty() || text.len() + next.len() < most)
        {
            if (2..=self.lines.len()).contains(&(from + taken)) {
                text.push(',');
            }
            text.push_str(next);
            taken += 1;
        }
        (text, taken)
    }

    fn at(&self, piece: usize) -> Option<&str> {
        match piece.checked_sub(1) {
            None => Some(&self.around.0),
            Some(line) if line < self.lines.len() => Some(&self.lines[line].1),
            Some(line) if line == self.lines.len() => Some(&self.around.1),
            Some(_) => None,
        }
    }
}

fn line_of<'a>(looked: &'a Statuses, status: &'a BranchStatus) -> StatusLine<'a> {
    StatusLine::of(status, (&looked.asking, &looked.pauses), &looked.settings, looked.now)
}

fn unread(branch: &RefName, error: &RunnerError) -> Unread {
    Unread { branch: escape(branch.short()), error: escape(error.to_string().as_bytes()) }
}

/// An object as `--json` prints it.
pub type Line = serde_json::Value;

fn line(object: &impl Serialize) -> Line {
    // None of ours fails to become JSON: keys are texts, and numbers are finite or null.
    serde_json::to_value(object).unwrap_or_default()
}

/// The latest run of a branch, which is over: schema `aynig.run/1`.
#[derive(Debug, Serialize)]
pub struct RunLine {
    schema: &'static str,
    branch: String,
    run_id: Option<String>,
    trigger: String,
    /// The commit that holds its work, if it left any.
    work: Option<String>,
    /// The ref that keeps the work, where the work is not on the branch.
    kept: Option<String>,
    left_out: Option<String>,
    /// True where the run changed no file.
    unchanged: bool,
}

/// Whether and how commands run in a repository.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    /// True where the user has said which commands may run.
    pub trusted: bool,
    /// The command that gives trust, where there is none.
    pub hint: Option<String>,
    /// True where hooks are installed, so that what is written in the repository starts by itself.
    pub hooks: bool,
}

impl Place {
    /// Finds the repository that a folder lies in.
    pub fn find(folder: &Path) -> Result<Self, Unanswered> {
        let session = Session::open_at(folder, None, Arc::new(Unheard))?;
        let repo = &session.repo;
        Ok(Self {
            folder: repo.work_dir.clone().unwrap_or_else(|| repo.git_dir.clone()),
            git_dir: std::path::absolute(&repo.git_dir).unwrap_or_else(|_| repo.git_dir.clone()),
            common_dir: repo.common_dir.clone(),
            logs: files::folder(repo).0,
            patience: PATIENCE,
            hearing: Arc::default(),
        })
    }

    /// Returns this place, with looks at flows that wait this long for another process.
    pub fn within(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Notes that another program, which this one started, has written something, so that what a remote has
    /// is asked anew.
    pub fn wrote(&self) {
        self.hearing.wrote();
    }

    /// Asks what a remote has, where branches are a remote's; returns true there.
    pub fn hear(&self) -> Result<bool, Unanswered> {
        Ok(self.session()?.has_heard)
    }

    /// Returns the folder of this program's files in the Git directory.
    pub fn own(&self) -> PathBuf {
        self.common_dir.join("aynig")
    }

    /// Opens the repository as it is now; asks no remote.
    fn opened(&self) -> Result<Session, AppError> {
        Session::open_at(&self.folder, Some(&self.git_dir), Arc::new(Unheard))
    }

    /// Opens the repository as it is now, and asks what its remote has, in one fetch with all others who
    /// look.
    fn session(&self) -> Result<Session, Unanswered> {
        let mut session = self.opened()?;
        let settings = session.settings(&Flags::default())?;
        if settings.remote.is_none() || session.unasked(&settings).is_some() {
            return Ok(session);
        }
        let place = self.clone();
        self.hearing.hear(move || Ok(place.fetch()?))?;
        session.has_heard = true;
        Ok(session)
    }

    /// Fetches all that a remote has.
    fn fetch(&self) -> Result<(), AppError> {
        let session = self.opened()?;
        let settings = session.settings(&Flags::default())?;
        let interrupt = Interrupt::never()?;
        Ok(session.reader(&settings, &interrupt)?.store.refresh_all()?)
    }

    /// Returns what may run in this repository.
    pub fn policy(&self) -> Result<Policy, Unanswered> {
        let session = self.opened()?;
        let trusted = session.config.commands_from()? != CommandsFrom::Nowhere;
        let place = shell_word(session.place().as_os_str().as_encoded_bytes());
        let hint = (!trusted).then(|| format!("git -C {place} aynig trust"));
        Ok(Policy { trusted, hint, hooks: Hooks::any_installed(&session.repo) })
    }

    /// Returns how every branch stands whose head is a state event.
    pub fn all_branches(&self) -> Result<AllBranches, Unanswered> {
        let session = self.session()?;
        let (mut lines, mut failed) = (Vec::new(), Vec::new());
        // None of our types fails to become JSON.
        let now = status::each(&session, &mut |branch, read| match read {
            Ok(line) => {
                lines.push((branch, serde_json::to_string(&line).unwrap_or_default().into_boxed_str()))
            }
            Err(error) => failed.push(unread(&branch, &error)),
        })?;
        lines.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        failed.sort_unstable_by(|one, other| one.branch.cmp(&other.branch));
        let failed = serde_json::to_string(&failed).unwrap_or_default();
        let around = (format!("{{\"now\":{now},\"branches\":["), format!("],\"failed\":{failed}}}"));
        Ok(AllBranches { lines, around })
    }

    /// Returns how this branch stands, whatever its head is.
    pub fn branch(&self, one: &str) -> Result<Branches, Unanswered> {
        let session = self.session()?;
        let looked = status::look(&session, &[whole(one)?], None)?;
        if let Some(branch) = looked.missing.first() {
            return Err(session.no_branch(&looked.settings, branch).into());
        }
        let branches = looked.surveyed.branches.iter().map(|status| line(&line_of(&looked, status)));
        let failed = looked.surveyed.failed.iter().map(|(branch, error)| unread(branch, error));
        Ok(Branches { now: looked.now, branches: branches.collect(), failed: failed.collect() })
    }

    /// Returns the latest run of a branch, and where its work is. Fails while that run is under way.
    pub fn run(&self, branch: &str) -> Result<RunLine, Unanswered> {
        let found = diff::find(&self.session()?, Some(&whole(branch)?), None)?;
        let name = |name: &RefName| full(name).into_owned();
        Ok(RunLine {
            schema: "aynig.run/1",
            branch: short(&found.branch).into_owned(),
            trigger: found.trigger.to_string(),
            work: found.work.map(|work| work.to_string()),
            kept: found.kept.as_ref().map(name),
            left_out: found.left_out.as_ref().map(name),
            run_id: found.run_id,
            unchanged: found.is_same,
        })
    }

    /// Returns the questions that wait for an answer, the oldest first: the lines of `ask --json`.
    pub fn questions(&self) -> Result<Vec<Line>, Unanswered> {
        self.heard(|runner| {
            let open = runner.open_questions(None)?;
            Ok(open.iter().map(|(asked, _)| line(&QuestionLine::of(asked))).collect())
        })
    }

    /// Returns the pauses that stand, the oldest first, as the lines of `pause --json`, and the holder that a
    /// pause made by this process would have.
    pub fn pauses(&self) -> Result<(Vec<Line>, String), Unanswered> {
        self.heard(|runner| {
            let pauses = runner.pauses()?;
            let lines = pauses.iter().map(|paused| line(&PauseLine::of(paused, &[]))).collect();
            Ok((lines, runner.speaker(None).to_string()))
        })
    }

    fn heard<T>(&self, look: impl FnOnce(&Runner<'_>) -> Result<T, TalkError>) -> Result<T, Unanswered> {
        let session = self.session()?;
        let settings = session.settings(&Flags::default())?;
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        let runner = session.reader(&settings, &interrupt).map_err(AppError::from)?;
        let talked = |error| AppError::Talk { error: Box::new(error), remote: settings.remote.clone() };
        Ok(look(&runner).map_err(talked)?)
    }

    /// Returns a branch's state events, newest first, at most `most`; with `history`, leases and renewals
    /// too. They are the lines of `events --json`.
    pub fn events(&self, branch: &str, history: bool, most: usize) -> Result<Vec<Line>, Unanswered> {
        let (session, branch) = (self.session()?, whole(branch)?);
        let settings = events::settings(&session, None)?;
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        let filter = Filter { history, ..Filter::default() };
        let reading = events::open(&session, &settings, &interrupt, Some(&branch), filter)?;
        let mut lines = Vec::new();
        reading.list(most, |told| {
            lines.push(line(&EventLine::of(told)));
            true
        })?;
        Ok(lines)
    }

    /// Opens a file of the latest run of a branch, or of the run that a commit belongs to, through no link.
    /// Returns the file's name, and the file; `None` where the command has not written to it.
    pub fn log(&self, what: &str, which: Which) -> Result<(String, Option<File>), Unanswered> {
        let session = self.session()?;
        // Git takes many texts for a name; this takes only an id or a branch.
        let is_id = matches!(what.len(), 40 | 64) && what.bytes().all(|b| b.is_ascii_hexdigit());
        let what = if is_id { OsString::from(what) } else { whole(what)? };
        let settings = logs::settings(&session, None)?;
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        let request = Request { what: Some(&what), follow: false, which };
        let run = request.open(&session, &settings, &interrupt)?;
        let Some(path) = run.find()? else {
            return Err(Unanswered { cause: Cause::Later, message: "interrupted".to_owned() });
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match files::open(&path) {
            Ok(file) => Ok((name, Some(file))),
            Err(error) if error.is_missing() => Ok((name, None)),
            Err(error) => Err(AppError::Logs(logs::LogsError::NotOpened(error)).into()),
        }
    }
}

/// Returns a branch's full name, which Git takes for no option, no commit, and no other branch.
pub fn whole(branch: &str) -> Result<OsString, Unanswered> {
    let name = format!("refs/heads/{branch}");
    match branch_from_arg(OsStr::new(&name)) {
        Some(_) => Ok(name.into()),
        None => Err(AppError::from(Misuse::Branch(branch.into())).into()),
    }
}
