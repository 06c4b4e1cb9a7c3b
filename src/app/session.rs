//! What a verb works with: the repository, its configuration, and runners made from both.

use super::config::{Config, Flags};
use super::{AppError, Listener, Misuse, Warning};
use crate::runner::change::Inside;
use crate::runner::clock::SystemClock;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::{Mandate, Observer, Runner, RunnerError, Silent, housekeeping};
use crate::store::git_calls::branch_from_arg;
use crate::store::protected::leads_to;
use crate::store::repository::Repository;
use crate::store::{RefName, config};
use crate::supervisor::interrupt::Interrupt;
use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A repository with its configuration.
pub struct Session {
    /// The repository.
    pub repo: Repository,
    /// Its configuration.
    pub config: Config,
    listener: Arc<dyn Listener>,
    /// True where commands inherit little of the environment, since they run for a user who pushed.
    pub short_environment: bool,
    /// True for the session of a chain, which `aynig.hooks` can end.
    pub is_chain: bool,
    /// True where the remote was asked a moment ago: a reader uses what came then.
    pub has_heard: bool,
    /// The folder and the Git directory by which the repository was opened.
    opened: (PathBuf, Option<PathBuf>),
    /// The time just before its configuration was read.
    read: Instant,
}

/// For how long the configuration is believed without being read again. A claim itself takes longer than
/// that, so a change that is made during the claim comes too late as well.
const JUST_NOW: Duration = Duration::from_millis(10);

impl Mandate for Session {
    fn holds(&self) -> bool {
        if self.read.elapsed() < JUST_NOW {
            return true;
        }
        let (folder, named) = &self.opened;
        let now = || -> Result<Config, AppError> {
            let repo = self.repo.again(folder, named.as_deref())?;
            let config = Config::new(&repo, &config::read(&repo)?);
            config.durable()?;
            config.commands_from()?;
            Ok(config)
        };
        now().is_ok_and(|now| now.policy(self.is_chain) == self.config.policy(self.is_chain))
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.config.environment(self.short_environment)
    }
}

impl Session {
    /// Finds the repository that the caller stands in, or the one that `git_dir` or the environment names.
    pub fn open(git_dir: Option<&Path>, listener: Arc<dyn Listener>) -> Result<Self, AppError> {
        let here = std::env::current_dir().map_err(AppError::NoFolder)?;
        let named = git_dir.map(Path::to_owned).or_else(|| std::env::var_os("GIT_DIR").map(PathBuf::from));
        Self::open_at(&here, named.as_deref(), listener)
    }

    /// Opens the repository that a folder lies in, or the one that is named.
    pub fn open_at(
        folder: &Path,
        named: Option<&Path>,
        listener: Arc<dyn Listener>,
    ) -> Result<Self, AppError> {
        let read = Instant::now();
        let mut repo = Repository::discover(folder, named)?;
        let config = Config::new(&repo, &config::read(&repo)?);
        repo.set_durable(config.durable()?);
        if config.commands_from()? == CommandsFrom::Nowhere {
            repo.confine();
        }
        let opened = (folder.to_owned(), named.map(Path::to_owned));
        Ok(Self {
            repo,
            config,
            listener,
            short_environment: false,
            is_chain: false,
            has_heard: false,
            opened,
            read,
        })
    }

    /// Opens the same repository again, by what its configuration says now.
    pub fn reopened(&self) -> Result<Self, AppError> {
        let (folder, named) = &self.opened;
        // The folder may have been renamed, with this process in it.
        let here = std::env::current_dir().ok().filter(|_| named.is_none());
        Self::open_at(here.as_deref().unwrap_or(folder), named.as_deref(), self.listener.clone())
    }

    /// Opens another repository, with the same listener.
    pub fn beside(&self, git_dir: &Path) -> Result<Self, AppError> {
        Self::open_at(&self.opened.0, Some(git_dir), self.listener.clone())
    }

    /// Passes a warning to the listener.
    pub fn warn(&self, warning: Warning) {
        self.listener.warned(&warning);
    }

    /// Warns of each key of the repository's own configuration that does not count, and of each key with
    /// which nothing may run.
    pub fn warn_ignored(&self) {
        self.config.ignored.iter().for_each(|key| self.warn(Warning::Ignored(key.clone())));
        self.config.unsure.iter().for_each(|key| self.warn(Warning::Unsure(key.clone())));
    }

    /// Makes the settings of a runner from flags and configuration.
    pub fn settings(&self, flags: &Flags) -> Result<Settings, AppError> {
        self.config.settings(&self.repo, flags)
    }

    /// Makes a runner on this repository.
    pub fn runner<'a>(
        &'a self,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        observer: &'a dyn Observer,
    ) -> Result<Runner<'a>, RunnerError> {
        let runner_id = housekeeping::runner_id(&self.repo)?;
        self.runner_as(runner_id, settings, interrupt, observer)
    }

    /// Makes a runner for verbs that only look: it leaves nothing behind, and needs no right to write.
    pub fn reader<'a>(
        &'a self,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Runner<'a>, RunnerError> {
        // The repository's own configuration says how a remote is reached, and with which programs: before it is
        // trusted, only a remote that the caller names is asked.
        if let Some(remote) = settings.remote.as_deref().filter(|_| self.has_heard) {
            return self.recaller(remote, settings, interrupt);
        }
        if let Some(remote) = self.unasked(settings) {
            let runner = self.recaller(remote, settings, interrupt)?;
            self.warn(Warning::NotAsked(remote.to_owned()));
            return Ok(runner);
        }
        let runner_id = housekeeping::known_runner_id(&self.repo).unwrap_or_default();
        self.runner_as(runner_id, settings, interrupt, &Silent)
    }

    /// Returns the remote that is meant but not asked, since only the repository's own configuration, which
    /// is not trusted, names it (K34).
    pub fn unasked<'s>(&self, settings: &'s Settings) -> Option<&'s str> {
        let unasked = settings.commands_from == CommandsFrom::Nowhere && !settings.remote_named;
        settings.remote.as_deref().filter(|_| unasked)
    }

    /// Returns the error for a branch that does not exist, as far as that can be known.
    pub fn no_branch(&self, settings: &Settings, branch: &RefName) -> AppError {
        AppError::NoBranch {
            branch: branch.clone(),
            remote: settings.remote.clone(),
            unasked: self.unasked(settings).map(str::to_owned),
        }
    }

    /// Makes a reader of a remote's branches as they were last fetched; it asks no remote.
    pub fn recaller<'a>(
        &'a self,
        remote: &str,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Runner<'a>, RunnerError> {
        let runner_id = housekeeping::known_runner_id(&self.repo).unwrap_or_default();
        let mut runner = self.runner_as(runner_id, settings, interrupt, &Silent)?;
        runner.store = self.repo.recall_remote(remote)?;
        Ok(runner)
    }

    fn runner_as<'a>(
        &'a self,
        runner_id: String,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        observer: &'a dyn Observer,
    ) -> Result<Runner<'a>, RunnerError> {
        static CLOCK: SystemClock = SystemClock;
        let program = std::env::current_exe().map_err(|source| RunnerError::Io {
            what: "find the program",
            path: PathBuf::from("git-aynig"),
            source,
        })?;
        Ok(Runner {
            repo: &self.repo,
            store: match &settings.remote {
                Some(remote) => self.repo.open_remote(remote, self.repo.durable)?,
                None => self.repo.open_store(self.repo.durable)?,
            },
            scratch: OnceCell::new(),
            settings,
            runner_id,
            clock: &CLOCK,
            interrupt,
            observer,
            mandate: self,
            program,
            environment: OnceCell::new(),
        })
    }

    /// Returns the branch that an argument names.
    pub fn branch(&self, arg: &OsStr) -> Result<RefName, AppError> {
        branch_from_arg(arg).ok_or_else(|| Misuse::Branch(arg.to_owned()).into())
    }

    /// Returns the branch that HEAD names in this working tree; `None` where HEAD is detached.
    pub fn current_branch(&self) -> Result<Option<RefName>, AppError> {
        Ok(self.repo.current_branch()?)
    }

    /// Returns the run that this process is inside of, if the run is one of this repository's.
    pub fn inside(&self) -> Option<Inside> {
        let text = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let run_id = text("AYNIG_RUN_ID")?.into_string().ok()?;
        let dir = PathBuf::from(text("AYNIG_RUN_DIR")?);
        let branch = RefName::branch(text("AYNIG_BRANCH")?.as_bytes());
        let hop = text("AYNIG_HOP").and_then(|h| h.into_string().ok()).and_then(|h| h.parse().ok());
        (dir == self.repo.aynig_dir().join("runs").join(&run_id)).then_some(Inside {
            run_id,
            branch,
            remote: text("AYNIG_REMOTE").and_then(|r| r.into_string().ok()),
            hop: hop.unwrap_or(0),
        })
    }

    /// Returns the branch that a verb is about: the named one, else the run's own, else the current one.
    /// `naming` shows how that verb takes a name.
    pub fn branch_or_current(&self, arg: Option<&OsStr>, naming: &'static str) -> Result<RefName, AppError> {
        if let Some(arg) = arg {
            return self.branch(arg);
        }
        if let Some(inside) = self.inside() {
            return Ok(inside.branch);
        }
        self.current_branch()?.ok_or_else(|| Misuse::Detached { naming }.into())
    }

    /// Returns a folder from which Git finds this very repository, wherever the caller stands: messages may
    /// tell the user to `trust` what is there.
    pub fn place(&self) -> &Path {
        let is_ours = |dir: &&PathBuf| leads_to(dir, &self.repo.git_dir);
        let dirs = [self.repo.work_dir.as_ref(), self.repo.main_dir.as_ref()].into_iter().flatten();
        dirs.into_iter().find(is_ours).map_or(self.repo.site.dir(), |dir| dir)
    }

    /// Fails where nothing says which commands may run.
    pub fn require_trust(&self, settings: &Settings) -> Result<(), AppError> {
        match settings.commands_from {
            CommandsFrom::Branch | CommandsFrom::Ref(_) => Ok(()),
            CommandsFrom::Nowhere => Err(self.not_trusted()),
        }
    }

    /// Returns the error for a repository where nothing says which commands may run.
    pub fn not_trusted(&self) -> AppError {
        let has = |name| std::env::var_os(name).is_some();
        AppError::NotTrusted {
            place: self.place().to_owned(),
            current: self.current_branch().ok().flatten(),
            is_writable: has("HOME") || has("GIT_CONFIG_GLOBAL"),
        }
    }
}
