//! What a verb works with: the repository, its configuration, and runners made from both.

use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output;
use super::settings::{Config, Flags};
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Inside;
use crate::runner::clock::SystemClock;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::{Mandate, Observer, Runner, RunnerError, Silent, housekeeping};
use crate::store::git_calls::branch_from_arg;
use crate::store::protected::leads_to;
use crate::store::repository::Repository;
use crate::store::{RefName, config};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Flags that stand before the verb.
pub struct Global {
    /// `--git-dir`.
    pub git_dir: Option<PathBuf>,
    /// `-q`.
    pub quiet: bool,
    /// `-v`, how often.
    pub verbose: u8,
}

/// A repository with its configuration.
pub struct Session {
    /// The repository.
    pub repo: Repository,
    /// Its configuration.
    pub config: Config,
    quiet: bool,
    /// Commands inherit little: they run for whoever pushed.
    pub short_environment: bool,
    /// It is a chain's: `aynig.hooks` can end it.
    pub is_chain: bool,
    /// The folder and the Git directory that it was opened by.
    opened: (PathBuf, Option<PathBuf>),
}

impl Mandate for Session {
    fn holds(&self) -> bool {
        let (folder, named) = &self.opened;
        let now = Self::open_at(folder, named.as_deref(), true);
        now.is_ok_and(|now| now.config.policy(self.is_chain) == self.config.policy(self.is_chain))
    }
}

impl Session {
    /// Finds the repository that we stand in, or that flag or environment name.
    pub fn open(global: &Global) -> Result<Self, Failure> {
        let here = std::env::current_dir()
            .map_err(|e| Failure::fatal(format!("cannot read the current directory: {e}")))?;
        let named = global.git_dir.clone().or_else(|| std::env::var_os("GIT_DIR").map(PathBuf::from));
        Self::open_at(&here, named.as_deref(), global.quiet)
    }

    /// Opens the repository that a folder lies in, or the one that is named.
    pub fn open_at(folder: &Path, named: Option<&Path>, quiet: bool) -> Result<Self, Failure> {
        let mut repo = Repository::discover(folder, named)?;
        let config = Config::new(&repo, &config::read(&repo)?);
        repo.set_durable(config.durable()?);
        if config.commands_from()? == CommandsFrom::Nowhere {
            repo.confine();
        }
        let opened = (folder.to_owned(), named.map(Path::to_owned));
        Ok(Self { repo, config, quiet, short_environment: false, is_chain: false, opened })
    }

    /// Says which keys of the repository's own configuration do not count.
    pub fn warn_ignored(&self) {
        if self.quiet {
            return;
        }
        for key in &self.config.ignored {
            let key = escape(key.as_bytes());
            output::note(&format!(
                "warning: '{key}' in the repository's own configuration is ignored; only system, global and \
                 command line count"
            ));
        }
        for key in &self.config.conditional {
            let key = escape(key.as_bytes());
            output::note(&format!(
                "warning: '{key}' is in a file that is included only for this branch or remote, so nothing may run; \
                 include it always, or by 'gitdir:'"
            ));
        }
    }

    /// Flags and configuration as a runner takes them.
    pub fn settings(&self, flags: &Flags) -> Result<Settings, Failure> {
        self.config.settings(&self.repo, flags)
    }

    /// A runner on this repository.
    pub fn runner<'a>(
        &'a self,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
        observer: &'a dyn Observer,
    ) -> Result<Runner<'a>, RunnerError> {
        let runner_id = housekeeping::runner_id(&self.repo)?;
        self.runner_as(runner_id, settings, interrupt, observer)
    }

    /// A runner for verbs that only look: it leaves nothing behind, and needs no right to write.
    pub fn reader<'a>(
        &'a self,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Runner<'a>, RunnerError> {
        // Whoever wrote the repository's configuration says how a remote is reached, and with which programs:
        // before somebody trusts it, only a remote that the caller names is asked.
        if let Some(remote) = self.unasked(settings) {
            let runner = self.recaller(remote, settings, interrupt)?;
            if !self.quiet {
                let (shown, word) = (escape(remote.as_bytes()), shell_word(remote.as_bytes()));
                output::note(&format!("not trusted: remote '{shown}' is not asked; --remote {word} asks it"));
            }
            return Ok(runner);
        }
        let runner_id = housekeeping::known_runner_id(&self.repo).unwrap_or_default();
        self.runner_as(runner_id, settings, interrupt, &Silent)
    }

    /// The remote that is meant and not asked: only the repository's own configuration names it (K34).
    pub fn unasked<'s>(&self, settings: &'s Settings) -> Option<&'s str> {
        let unasked = settings.commands_from == CommandsFrom::Nowhere && !settings.remote_named;
        settings.remote.as_deref().filter(|_| unasked)
    }

    /// A branch that does not exist, as far as that can be known.
    pub fn no_branch(&self, settings: &Settings, branch: &RefName) -> Failure {
        let at = Addressed::new(branch, settings.remote.as_deref());
        match self.unasked(settings) {
            Some(remote) => {
                Failure::fatal(format!("nothing is known of branch '{}': '{remote}' was not asked", at.shown))
                    .hint(hints::same_with_remote(remote))
            }
            None => Failure::fatal(format!("branch '{}' does not exist", at.shown)).hint(at.set("<state>")),
        }
    }

    /// A reader of a remote's branches as they were last heard of: it asks nobody.
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
            scratch: self.repo.open_scratch()?,
            settings,
            runner_id,
            clock: &CLOCK,
            interrupt,
            observer,
            mandate: self,
            program,
            environment: self.config.environment(self.short_environment),
        })
    }

    /// The branch that an argument names.
    pub fn branch(&self, arg: &OsStr) -> Result<RefName, Failure> {
        let shown = escape(arg.as_bytes());
        branch_from_arg(arg).ok_or_else(|| Failure::usage(format!("'{shown}' is no valid branch name")))
    }

    /// The branch that HEAD names where we stand.
    pub fn current_branch(&self) -> Result<Option<RefName>, Failure> {
        Ok(self.repo.current_branch()?)
    }

    /// The run that we are inside of, if it is one of this repository's.
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

    /// The branch that a verb is about: named, or the run's own, or the current one. `naming` is how that verb
    /// takes a name.
    pub fn branch_or_current(&self, arg: Option<&OsStr>, naming: &str) -> Result<RefName, Failure> {
        if let Some(arg) = arg {
            return self.branch(arg);
        }
        if let Some(inside) = self.inside() {
            return Ok(inside.branch);
        }
        self.current_branch()?.ok_or_else(|| {
            Failure::usage("HEAD is detached: name the branch").hint(format!("git aynig {naming}"))
        })
    }

    /// The folder to name in a hint, so that it works wherever it is pasted.
    pub fn place(&self) -> String {
        // What is pasted may be `trust`: a folder counts that Git finds this very repository from.
        let is_ours = |dir: &&PathBuf| leads_to(dir, &self.repo.git_dir);
        let dirs = [self.repo.work_dir.as_ref(), self.repo.main_dir.as_ref()].into_iter().flatten();
        let dir = dirs.into_iter().find(is_ours).map_or(self.repo.site.dir(), |dir| dir);
        // What can't be shown as it is can't be pasted either: then the hint is for whoever stands here.
        let shown = dir.to_str().filter(|dir| escape(dir.as_bytes()) == *dir);
        let quoted = shown.and_then(|dir| shlex::try_quote(dir).ok());
        quoted.map_or_else(|| ".".to_owned(), |quoted| quoted.into_owned())
    }

    /// Refuses where nobody has said what may run.
    pub fn require_trust(&self, settings: &Settings) -> Result<(), Failure> {
        match settings.commands_from {
            CommandsFrom::Branch | CommandsFrom::Ref(_) => Ok(()),
            CommandsFrom::Nowhere => Err(self.not_trusted()),
        }
    }

    /// What is said where nobody has said what may run.
    pub fn not_trusted(&self) -> Failure {
        let place = self.place();
        let refusal = Failure::refused("not trusted: nothing runs here until you say which commands may");
        if std::env::var_os("HOME").is_none() && std::env::var_os("GIT_CONFIG_GLOBAL").is_none() {
            // A branch by its name: what is pushed to another one brings no commands of its own.
            let source = self.current_branch().ok().flatten();
            let source = source.map_or_else(|| "<ref>".to_owned(), |branch| shell_word(branch.as_bytes()));
            return refusal.hint(format!("git -C {place} -c aynig.commandsFrom={source} aynig tick"));
        }
        // Where no branch is current there is none to take commands from by default.
        let source = if matches!(self.current_branch(), Ok(Some(_))) { "" } else { " --branches" };
        refusal.hint(format!("git -C {place} aynig trust{source}"))
    }
}
