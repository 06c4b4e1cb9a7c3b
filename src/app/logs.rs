//! `logs`: what the latest run's command printed.
//!
//! A branch, or any commit of a run: trigger, lease, outcome or stall. [`Request::open`] finds the run, [`Run::find`]
//! its log, [`Run::read`] its bytes. Implements git-aynig-logs(1), K16, K48a.

use super::config::Flags;
use super::session::Session;
use super::{AppError, Exit, mend};
use crate::protocol::event::{RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::text::{escape, with_causes};
use crate::runner::settings::Settings;
use crate::runner::{Runner, Tip, logs};
use crate::store::RefName;
use crate::supervisor::beneath::BeneathError;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why there is no log to show.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// No command ran on the branch.
    #[error("no command ran on '{}' yet", escape(branch.short()))]
    NoRun {
        /// The branch.
        branch: RefName,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// What was named is nothing that is known here.
    #[error("'{}' is neither a branch nor a commit", escape(what.as_bytes()))]
    NoSuch {
        /// What was named.
        what: OsString,
        /// The remote whose branches are meant.
        remote: Option<String>,
        /// That remote, where it was not asked (K34).
        unasked: Option<String>,
    },
    /// The log is not here.
    #[error("no log of {trigger} here")]
    NoLog {
        /// What the run answered.
        trigger: ObjectId,
        /// The runner that has it, where that is another.
        elsewhere: Option<String>,
        /// Where logs are kept here.
        folder: PathBuf,
    },
    /// The log can't be opened.
    #[error("{}", with_causes(.0))]
    NotOpened(BeneathError),
    /// The log can't be read.
    #[error("cannot read '{}': {cause}", path.display())]
    Unreadable {
        /// The log.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

/// What is wanted.
pub struct Request<'a> {
    /// A branch or a commit; `None`: the current branch.
    pub what: Option<&'a OsStr>,
    /// Wait for more while the command runs.
    pub follow: bool,
    /// Which of the run's files.
    pub which: Which,
}

/// A file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What the command printed.
    Stdout,
    /// What it complained about.
    Stderr,
    /// What it appended to the file that `AYNIG_EVENTS` names; often there is none.
    Events,
}

/// The run whose log is wanted.
pub struct Run<'a> {
    session: &'a Session,
    runner: Runner<'a>,
    request: &'a Request<'a>,
    wanted: Wanted,
}

struct Wanted {
    trigger: ObjectId,
    /// A commit of the run, or the trigger itself.
    at: ObjectId,
    /// The run itself, if that is said.
    run_id: Option<String>,
    /// The branch that a run of it may hold now.
    branch: Option<RefName>,
    /// Who ran it, if that is said.
    runner_id: Option<String>,
}

/// The settings of the verb, once what an earlier process left is mended.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    Ok(settings)
}

impl Request<'_> {
    /// Finds the run.
    pub fn open<'a>(
        &'a self,
        session: &'a Session,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Run<'a>, AppError> {
        let runner = session.reader(settings, interrupt)?;
        let wanted = self.wanted(session, &runner)?;
        Ok(Run { session, runner, request: self, wanted })
    }

    fn wanted(&self, session: &Session, runner: &Runner<'_>) -> Result<Wanted, AppError> {
        let Some(what) = self.what else {
            let branch = session.branch_or_current(None, "logs <branch>")?;
            return match runner.store.tip(&branch)? {
                Some(head) => of_branch(session, runner, branch, head),
                None => Err(session.no_branch(runner.settings, &branch)),
            };
        };
        if let Ok(branch) = session.branch(what)
            && let Some(head) = runner.store.tip(&branch)?
        {
            return of_branch(session, runner, branch, head);
        }
        self.of_commit(session, runner, what)
    }

    fn of_commit(&self, session: &Session, runner: &Runner<'_>, what: &OsStr) -> Result<Wanted, AppError> {
        let parse =
            |name| session.repo.git.rev_parse(&session.repo.git_dir, &format!("{name}^{{commit}}")).ok();
        let id = what.to_str().and_then(parse).ok_or_else(|| LogsError::NoSuch {
            what: what.to_owned(),
            remote: runner.settings.remote.clone(),
            unasked: session.unasked(runner.settings).map(str::to_owned),
        })?;
        let wanted = of_tip(&Tip::from(runner.store.read_commit(id)?));
        if !self.follow {
            return Ok(wanted);
        }
        let heads = runner.store.read_heads("refs/heads/")?.heads;
        let holds = |tip: &Tip| {
            tip.event.as_ref().is_some_and(|e| e.is_working() && e.trigger() == Some(wanted.trigger))
        };
        let branch = heads.into_iter().find(|(_, commit)| holds(&Tip::from(commit.clone())));
        Ok(Wanted { branch: branch.map(|(name, _)| name), ..wanted })
    }
}

fn of_tip(tip: &Tip) -> Wanted {
    let event = tip.event.as_ref();
    let trigger = event.and_then(|e| e.trigger()).unwrap_or(tip.id());
    let runner_id = event.and_then(|e| e.text(RUNNER_ID)).map(str::to_owned);
    let run_id = event.and_then(|e| e.text(RUN_ID).or_else(|| e.text(STALLED_RUN))).map(str::to_owned);
    Wanted { trigger, at: tip.id(), run_id, branch: None, runner_id }
}

/// The head where it was run itself, or the newest state event below that names what it answers.
fn of_branch(
    session: &Session,
    runner: &Runner<'_>,
    branch: RefName,
    head: ObjectId,
) -> Result<Wanted, AppError> {
    let mut found = None;
    runner.walk(head, &HashSet::new(), &mut |tip| {
        let names = tip.event.as_ref().is_some_and(|e| e.trigger().is_some());
        if names || (tip.id() == head && logs::latest(&session.repo, head).is_some()) {
            found = Some(of_tip(&tip));
        }
        found.is_none()
    })?;
    match found {
        Some(found) => Ok(Wanted { branch: Some(branch), ..found }),
        None => Err(LogsError::NoRun { branch, remote: runner.settings.remote.clone() }.into()),
    }
}

impl Run<'_> {
    /// The runner that ran it: what a lease says, and an outcome leaves to the lease below it.
    fn runner_id(&self) -> Result<Option<String>, AppError> {
        let mut found = self.wanted.runner_id.clone();
        if found.is_none() {
            self.runner.walk(self.wanted.at, &HashSet::new(), &mut |tip| {
                let event = tip.event.as_ref().filter(|event| event.trigger() == Some(self.wanted.trigger));
                found = event.and_then(|event| event.text(RUNNER_ID)).map(str::to_owned);
                // From the outcome down to the first lease, and no further.
                found.is_none() && event.is_some()
            })?;
        }
        Ok(found)
    }

    /// True while the run holds its branch, where that matters.
    fn is_running(&self) -> Result<bool, AppError> {
        match &self.wanted.branch {
            Some(branch) if self.request.follow => {
                Ok(self.runner.is_leased_for(branch, self.wanted.trigger)?)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// The log's path; `None` where a signal came while waiting for it.
    pub fn find(&self) -> Result<Option<PathBuf>, AppError> {
        let (repo, wanted) = (&self.session.repo, &self.wanted);
        loop {
            // In this order: a log that the run made before it ended is seen.
            let running = self.is_running()?;
            let own = wanted.run_id.as_deref().and_then(|id| logs::of_run(repo, id, wanted.trigger));
            let other = || logs::latest(repo, wanted.trigger);
            // While the very run is under way its own log is waited for, not an earlier one shown.
            let found = if running && wanted.run_id.is_some() { own } else { own.or_else(other) };
            if let Some(found) = found {
                return Ok(Some(match self.request.which {
                    Which::Stdout => found.stdout,
                    Which::Stderr => found.stderr,
                    Which::Events => found.events(),
                }));
            }
            if !running {
                break;
            }
            self.runner.interrupt.wait(LOOK_EVERY);
            if self.runner.interrupt.signal().is_some() {
                return Ok(None);
            }
        }
        let elsewhere = self.runner_id()?.filter(|id| *id != self.runner.runner_id);
        let (trigger, folder) = (wanted.trigger, logs::folder(repo).0);
        Err(LogsError::NoLog { trigger, elsewhere, folder }.into())
    }

    /// Reads the log, and what is added while the command runs where it is followed. `show` says false once its
    /// reader wants no more, `is_gone` whether there is none left.
    pub fn read(
        &self,
        path: &Path,
        mut show: impl FnMut(&[u8]) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let failed = |cause| LogsError::Unreadable { path: path.to_owned(), cause };
        let mut file = match logs::open(path) {
            // It is there once its command has written to it.
            Err(error) if self.request.which == Which::Events && error.is_missing() => None,
            opened => Some(opened.map_err(LogsError::NotOpened)?),
        };
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // Asked first: what was written before the run ended is read after.
            let running = self.is_running()?;
            if file.is_none() {
                file = logs::open(path).ok();
            }
            while let Some(file) = &mut file {
                let n = file.read(&mut buffer).map_err(failed)?;
                if n == 0 {
                    break;
                }
                if !show(&buffer[..n]) {
                    return Ok(Exit::Done);
                }
            }
            if !running {
                return Ok(Exit::Done);
            }
            self.runner.interrupt.wait(LOOK_EVERY);
            if self.runner.interrupt.signal().is_some() || is_gone() {
                return Ok(self.runner.interrupt.signal().map_or(Exit::Done, Exit::of_signal));
            }
        }
    }
}
