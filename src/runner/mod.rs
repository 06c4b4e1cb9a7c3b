//! One tick as a straight line: read the head, decide, claim, run, complete, swap.
//!
//! A [`Runner`] is given all that a tick needs: repository, settings, clock, identity, and the environment
//! for commands. It prompts for nothing, prints nothing, and returns one [`report::Report`] per branch. An
//! [`Observer`] that is passed in receives the progress of runs and cannot influence them. Implements K6-K11,
//! K13-K29, K43-K45 on top of the lower layers (`protocol`, `supervisor`, `store`).

#![warn(unreachable_pub)]

mod active_run;
mod again;
pub(crate) mod attempt;
pub(crate) mod change;
pub(crate) mod checkup;
pub(crate) mod clock;
mod complete;
mod declared;
mod deliver;
pub(crate) mod gc;
mod handed;
mod head;
mod heard;
pub(crate) mod history;
pub(crate) mod home;
pub(crate) mod housekeeping;
mod inbox;
mod judge;
mod known;
mod landing;
mod last_words;
mod lease;
pub(crate) mod logs;
mod lookups;
mod move_branch;
pub(crate) mod named;
pub(crate) mod nodes;
pub(crate) mod notice;
pub(crate) mod past;
pub(crate) mod pending;
mod preflight;
pub(crate) mod queue;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod resolve;
mod run;
pub(crate) mod run_events;
pub(crate) mod sandbox;
pub(crate) mod select;
pub(crate) mod settings;
mod signed;
pub(crate) mod slot;
pub(crate) mod spent;
mod start;
pub(crate) mod supervise;
pub(crate) mod survey;
pub(crate) mod talk;
pub(crate) mod tick;
mod tip;
pub(crate) mod uninstall;
mod visit;

use crate::protocol::body_line::with_body_line;
use crate::protocol::decide::{Facts, Policy, Takeover};
use crate::protocol::message::Message;
use crate::protocol::swap::{AfterEnd, Swap, after_end};
use crate::store::repository::Repository;
use crate::store::slots::Pool;
use crate::store::{RefName, Signature, Store, StoreError};
use crate::supervisor::SupervisorError;
use crate::supervisor::interrupt::Interrupt;
use clock::Clock;
use settings::Settings;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::PathBuf;
pub(crate) use tip::Tip;
pub(crate) use visit::Left;

/// An event in the life of a run, reported as it happens.
#[derive(Debug)]
pub enum Progress<'a> {
    /// All slots are taken; the branch waits for one.
    WaitingForSlot,
    /// The branch was claimed by this run.
    Claimed {
        run_id: &'a str,
        /// The state that the run answers.
        state: &'a str,
    },
    /// The command was started.
    Started {
        /// The id of the process.
        pid: u32,
    },
    /// Output grew: bytes so far, and the last line.
    Output {
        /// Bytes on stdout and stderr together.
        bytes: u64,
        /// The last line, cut to a bounded length.
        last: &'a [u8],
    },
    /// A piece of output as the command wrote it, reported only where [`Settings::tee`] is set.
    Chunk {
        /// True for standard error, false for standard output.
        stderr: bool,
        bytes: &'a [u8],
    },
    /// The lease was renewed.
    Renewed,
    /// The command ended.
    Ended {
        /// How it ended, in words.
        exit: &'a str,
    },
}

/// Receives the progress of runs, and cannot influence them.
pub trait Observer: Sync {
    /// Receives one event of the run on `branch`.
    fn told(&self, branch: &RefName, progress: Progress<'_>);
}

/// An observer that ignores everything.
pub(crate) struct Silent;
impl Observer for Silent {
    fn told(&self, _: &RefName, _: Progress<'_>) {}
}

/// Everything that a tick needs.
pub struct Runner<'a> {
    /// The repository.
    pub repo: &'a Repository,
    /// The refs and objects that the tick works on, the repository's or a remote's, as durable as configured.
    pub store: Box<dyn Store>,
    /// What [`Runner::scratch`] returns, once it was asked for.
    pub scratch: OnceCell<Box<dyn Store>>,
    /// The configuration.
    pub settings: &'a Settings,
    /// This runner's id, `<host>-<random>`.
    pub runner_id: String,
    pub clock: &'a dyn Clock,
    /// The signals that ask this process to stop.
    pub interrupt: &'a Interrupt,
    /// Receives the progress of runs.
    pub observer: &'a dyn Observer,
    /// Says whether the trust configuration is still what it was when this runner was made.
    pub mandate: &'a dyn Mandate,
    /// The `git-aynig` binary, which is also the guardian.
    pub program: PathBuf,
    /// What [`Runner::environment`] returns, once it was asked for.
    pub environment: OnceCell<Vec<(OsString, OsString)>>,
}

/// An error that ends the tick of one branch. A lost race is not one of these.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// Refs, objects or slots could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The guardian failed.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// A file or folder could not be used.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What failed, as a verb.
        what: &'static str,
        /// The path that it failed on.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A folder that every run needs can't be written to: nothing was claimed.
    #[error("cannot write to '{}', where {what} are kept", path.display())]
    Unready {
        /// What is kept there.
        what: &'static str,
        /// The folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The program of `aynig.exec`, which starts every command, or what that needs, is not on this machine: nothing
    /// was claimed.
    #[error("cannot start '{program}', which 'aynig.exec' names: {why}")]
    NoWrapper {
        /// The program, as the configuration names it.
        program: String,
        /// Why it can't be started.
        why: String,
    },
    /// The note about what is in a worktree can't be read, so the worktree is left as it is.
    #[error("cannot read '{}': {why}; whose work is in '{}' is not known", note.display(), dir.display())]
    SlotNote {
        note: PathBuf,
        /// The worktree.
        dir: PathBuf,
        why: String,
    },
    /// `git aynig uninstall` is removing what git-aynig keeps in this repository: nothing was claimed.
    #[error("cannot take a worktree for '{branch}': 'git aynig uninstall' is at work")]
    Closed { branch: RefName },
    /// It stayed unknown whether a compare-and-swap succeeded.
    #[error("cannot tell whether '{branch}' was moved: {cause}")]
    Unknown {
        branch: RefName,
        /// Why it could not be found out.
        cause: String,
    },
    /// A message that the runner built can't be written as a commit message.
    #[error("cannot write the commit message: {cause}")]
    Message {
        /// Why.
        cause: String,
    },
    /// The signature that the policy asks for can't be made.
    #[error("cannot sign: {cause}")]
    Signing {
        /// What Git said about it.
        cause: String,
    },
}

/// The trust configuration as it was when this runner was made.
pub trait Mandate: Sync {
    /// True where the configuration is unchanged. The runner asks before each claim. A configuration that
    /// can't be read counts as changed.
    fn holds(&self) -> bool;

    /// Returns the environment that commands inherit, already reduced to what `aynig.passEnv` lets through.
    fn environment(&self) -> Vec<(OsString, OsString)>;
}

impl RunnerError {
    /// Returns the error for a swap of this branch whose result stayed unknown.
    pub(crate) fn unknown(branch: &RefName, cause: String) -> Self {
        RunnerError::Unknown { branch: branch.clone(), cause }
    }
}

pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    let path = path.to_owned();
    move |source| RunnerError::Io { what, path, source }
}

/// True where a new commit is on its branch; false where the branch has another head or is gone; an error
/// where that is not known.
pub(crate) fn is_written(branch: &RefName, verdict: Swap) -> Result<bool, RunnerError> {
    match after_end(verdict) {
        AfterEnd::Written => Ok(true),
        AfterEnd::JudgeAgain => Ok(false),
        AfterEnd::Unknown(cause) => Err(RunnerError::unknown(branch, cause)),
    }
}

impl Runner<'_> {
    /// Returns the repository's own refs and objects, written without syncing where that endangers no other ref:
    /// for refs that only protect objects while a run lives. They are opened when they are first needed.
    pub fn scratch(&self) -> Result<&dyn Store, StoreError> {
        if let Some(open) = self.scratch.get() {
            return Ok(&**open);
        }
        let opened = self.repo.open_scratch()?;
        Ok(&**self.scratch.get_or_init(|| opened))
    }

    /// Returns the environment that commands inherit. A tick that looks for no command needs none.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        self.environment.get_or_init(|| self.mandate.environment())
    }

    /// Returns the pool of slots, each of which may be locked.
    pub fn pool(&self) -> Result<Pool<'_>, StoreError> {
        let pool = self.known_pool();
        pool.make()?;
        Ok(pool)
    }

    /// Returns the pool of slots to look at. Makes nothing.
    pub fn known_pool(&self) -> Pool<'_> {
        Pool::new(self.repo, self.settings.worktree_dir.clone(), self.settings.jobs.get())
    }

    /// Calls `work` with a runner like this one for the branches of this remote; `None`: for the local
    /// branches.
    pub(crate) fn elsewhere<T>(
        &self,
        remote: Option<&str>,
        work: impl FnOnce(&Runner<'_>) -> Result<T, RunnerError>,
    ) -> Result<T, RunnerError> {
        let settings = self.settings.on_remote(remote);
        let store = match remote {
            Some(name) => self.repo.open_remote(name, self.repo.durable)?,
            None => self.repo.open_store(self.repo.durable)?,
        };
        let runner = Runner {
            repo: self.repo,
            store,
            scratch: OnceCell::new(),
            settings: &settings,
            runner_id: self.runner_id.clone(),
            clock: self.clock,
            interrupt: self.interrupt,
            observer: self.observer,
            mandate: self.mandate,
            program: self.program.clone(),
            environment: OnceCell::new(),
        };
        work(&runner)
    }

    /// Returns the author and committer of what this runner writes now.
    pub fn signature(&self) -> Signature {
        let (name, email) = self.settings.identity.clone();
        Signature { name, email, seconds: self.clock.now() }
    }

    /// Returns the policy that `decide` applies to a head of which nothing else is known.
    pub fn policy(&self, has_command: bool) -> Policy<'_> {
        self.policy_with(has_command, Facts::default())
    }

    /// Returns the policy that `decide` applies, with what is known besides the head.
    pub(crate) fn policy_with<'f>(&'f self, has_command: bool, facts: Facts<'f>) -> Policy<'f> {
        Policy {
            grace: self.settings.grace,
            aynig_grace: self.settings.aynig_grace,
            takeover: if self.settings.observe { Takeover::Observe } else { Takeover::Date },
            runner_id: &self.runner_id,
            max_hops: self.settings.max_hops,
            has_command,
            facts,
        }
    }

    /// Renders a message, or says why it can't be rendered.
    pub fn render(&self, message: &Message) -> Result<Vec<u8>, RunnerError> {
        with_body_line(message).render().map_err(|e| RunnerError::Message { cause: e.to_string() })
    }
}
