//! `logs`: what the latest run's command printed.
//!
//! A run is named by its branch, or by any commit of it: trigger, lease, outcome or stall. [`Request::open`]
//! finds the run, [`Run::find`] its log, [`Run::read`] the log's bytes. Implements git-aynig-logs(1), K16,
//! K48a.

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

/// How often to look at a log that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why there is no log to show.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// No command ran on the branch.
    #[error("no command ran on '{}' yet", escape(branch.short()))]
    NoRun {
        branch: RefName,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// What was named is no branch and no commit that is known in this repository.
    #[error("'{}' is neither a branch nor a commit", escape(what.as_bytes()))]
    NoSuch {
        /// What was named.
        what: OsString,
        /// The remote whose branches are meant.
        remote: Option<String>,
        /// The remote's name, where it was not asked (K34).
        unasked: Option<String>,
    },
    /// The log is not in this repository.
    #[error("no log of {trigger} here")]
    NoLog {
        /// The trigger that the run answered.
        trigger: ObjectId,
        /// The id of the runner that has the log, where it is another one.
        elsewhere: Option<String>,
        /// The folder of this repository's logs.
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

/// Which log is wanted.
pub struct Request<'a> {
    /// A branch or a commit; `None` for the run's own branch, else the current one.
    pub what: Option<&'a OsStr>,
    /// True where the reader waits for more while the command runs.
    pub follow: bool,
    /// Which of the run's files.
    pub which: Which,
}

/// A file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What the command printed to standard output.
    Stdout,
    /// What the command printed to standard error.
    Stderr,
    /// What the command appended to the file that `AYNIG_EVENTS` names; often there is none.
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
    /// The run's id, where the commit says it.
    run_id: Option<String>,
    /// The branch that a run for the trigger may hold now.
    branch: Option<RefName>,
    /// The id of the runner, where the commit says it.
    runner_id: Option<String>,
}

/// Reads the settings of the verb, and mends what an earlier process left.
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

/// Finds the newest run of a branch: one that answered the head, where its log is here, or the one that the
/// newest state event which names a trigger is about.
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
    /// Returns the id of the runner that ran it. A lease names the runner; an outcome does not, so the leases
    /// below it are read.
    fn runner_id(&self) -> Result<Option<String>, AppError> {
        let mut found = self.wanted.runner_id.clone();
        if found.is_none() {
            self.runner.walk(self.wanted.at, &HashSet::new(), &mut |tip| {
                let event = tip.event.as_ref().filter(|event| event.trigger() == Some(self.wanted.trigger));
                found = event.and_then(|event| event.text(RUNNER_ID)).map(str::to_owned);
                // The walk goes from the outcome down to the first lease, and no further.
                found.is_none() && event.is_some()
            })?;
        }
        Ok(found)
    }

    /// True while the run holds its branch; always false where the log is not followed.
    fn is_running(&self) -> Result<bool, AppError> {
        match &self.wanted.branch {
            Some(branch) if self.request.follow => {
                Ok(self.runner.is_leased_for(branch, self.wanted.trigger)?)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Returns the log's path; `None` where a signal came while waiting for the log.
    pub fn find(&self) -> Result<Option<PathBuf>, AppError> {
        let (repo, wanted) = (&self.session.repo, &self.wanted);
        loop {
            // Asked before the log is looked for, so that a log is seen which the run made just before it
            // ended.
            let running = self.is_running()?;
            let own = wanted.run_id.as_deref().and_then(|id| logs::of_run(repo, id, wanted.trigger));
            let other = || logs::latest(repo, wanted.trigger);
            // While this very run is under way, its own log is waited for, rather than an earlier one shown.
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

    /// Reads the log, and where it is followed, what is added while the command runs. `show` returns false
    /// once its reader wants no more; `is_gone` says whether the reader is gone.
    pub fn read(
        &self,
        path: &Path,
        mut show: impl FnMut(&[u8]) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let failed = |cause| LogsError::Unreadable { path: path.to_owned(), cause };
        let mut file = match logs::open(path) {
            // The file is there only once the command has written to it.
            Err(error) if self.request.which == Which::Events && error.is_missing() => None,
            opened => Some(opened.map_err(LogsError::NotOpened)?),
        };
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // Asked first, so that what was written before the run ended is read afterwards.
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
