//! Where a governed run is, and how a change to it is written.
//!
//! On a branch every change is one commit on its head by one compare-and-swap, made in a slot: of two acts on
//! the same head one succeeds. In a plain folder the operation itself is the change. Which configuration
//! counts is a matter of trust, as with commands, since its hooks and workers are executed: it is that of the
//! ref that commands are taken from. Implements G6, G8, K33.

use super::next::Next;
use super::{Act, Done, GovernError};
use crate::app::config::Flags;
use crate::app::session::Session;
use crate::app::{AppError, Unheard, background, mend};
use crate::governed::{
    Config, Context, GovernedError, Root, STATE_MAX, State, brings_work, context_here, context_of,
    forget_work, load_context,
};
use crate::protocol::id::ObjectId;
use crate::runner::change::{Ground, Written};
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, RunnerError, Silent};
use crate::store::repository::Repository;
use crate::store::workspace::KnownTree;
use crate::store::{FOLDER, RefName, SUBMODULE, TreeEntry};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a governed project.
pub(crate) const PROJECT: &str = "agentxchain.json";

/// A run's branch.
pub struct Branch {
    /// Its name; `None` for the branch of the run that this process is inside of, else the current one.
    pub name: Option<OsString>,
    /// The remote whose branch it is, in place of `aynig.remote`.
    pub remote: Option<String>,
    /// How the verb takes a branch, for the message to a user who has to name one.
    pub naming: &'static str,
}

/// What an act came to.
pub struct Changed {
    /// What it did.
    pub done: Done,
    /// What comes next in the run.
    pub next: Next,
    /// The commit, where the run is on a branch.
    pub written: Option<Written>,
    /// What the configuration asks for and this program does not do.
    pub warnings: Vec<String>,
}

/// Opens a governed project in a plain folder. If the folder is in a repository, its hooks and workers are
/// executed only where that repository is trusted, as commands are. Inside a run it is.
pub(crate) fn folder(root: &Path) -> Result<Context, GovernError> {
    // Where a repository lies is told from whole paths.
    let whole = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let root = whole.as_path();
    let unusable = |source| GovernedError::Io { what: "open", path: root.to_owned(), source };
    if !root.metadata().map_err(unusable)?.is_dir() {
        return Err(unusable(std::io::ErrorKind::NotADirectory.into()).into());
    }
    // Trust is not asked for only where there is no repository at all: one that can't be opened is not
    // trusted.
    if !Repository::discover(root, None).is_err_and(|error| error.is_nowhere()) {
        let session = Session::open_at(root, None, Arc::new(Unheard))?;
        if session.inside().is_none() {
            session.require_trust(&session.settings(&Flags::default())?)?;
        }
    }
    Ok(load_context(&Root::new(root))?)
}

/// Acts on the run in a plain folder.
pub(crate) fn change_folder(
    root: &Path,
    act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
) -> Result<Changed, GovernError> {
    let Context { root, config, warnings, .. } = folder(root)?;
    let done = Done::settled(act(&root, &config))?;
    let next = done.next.clone().unwrap_or_else(|| Next::without_command(&done.state, &config));
    Ok(Changed { next, done, written: None, warnings })
}

impl Branch {
    pub(super) fn flags(&self) -> Flags {
        Flags { remote: self.remote.clone(), ..Flags::default() }
    }

    pub(super) fn of(&self, session: &Session) -> Result<RefName, AppError> {
        session.branch_or_current(self.name.as_deref(), self.naming)
    }

    /// Acts on the run of this branch. With `dispatch`, the branch's chain is started where hooks are installed.
    pub fn change(
        &self,
        session: Session,
        dispatch: bool,
        act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
    ) -> Result<Changed, GovernError> {
        self.write(session, false, dispatch, |root, config, _| Done::settled(act(root, config)))
    }

    /// Does what [`Branch::change`] does; `act` is told too what the change begins from. With `may_create`, a local
    /// branch that does not exist is made at HEAD.
    pub(super) fn write(
        &self,
        mut session: Session,
        may_create: bool,
        dispatch: bool,
        act: impl FnOnce(&Root, &Config, Ground) -> Act,
    ) -> Result<Changed, GovernError> {
        // The signal that ends this process ends hooks and workers too.
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        session.repo.ended_by(interrupt.force_stop());
        let settings = session.settings(&self.flags())?;
        session.require_trust(&settings)?;
        mend::all(&session);
        let runner = session.runner(&settings, &interrupt, &Silent)?;
        let branch = self.of(&session)?;
        let mut kept = None;
        let written = runner.edit(&branch, may_create, |dir, ground| {
            // The slot is new, so that no process is at work in it.
            let root = Root::new(dir);
            forget_work(&root)?;
            let Context { config, warnings, .. } = project(&runner, &branch, &root)?;
            let done = match act(&root, &config, ground) {
                // The file would be in a slot, whose path tells a user nothing.
                Err(GovernError::Governed(GovernedError::NoState { .. })) => {
                    return Err(GovernError::NoRun(branch.clone()));
                }
                done => done?,
            };
            let next = done.next(&config);
            let declared = done.declare(&root, &next)?;
            kept = Some((done, next, warnings));
            Ok::<_, GovernError>(declared)
        })?;
        if dispatch {
            background::as_the_hook_would(&session, &settings, &branch)?;
        }
        let (done, next, warnings) = kept.ok_or_else(|| GovernError::NotWritten(branch))?;
        read_back(&runner, &written, &done)?;
        Ok(Changed { done, next, written: Some(written), warnings })
    }
}

/// Makes sure that a reader of the commit finds what was written.
fn read_back(runner: &Runner<'_>, written: &Written, done: &Done) -> Result<(), GovernError> {
    let tree = runner.store.read_commit(written.commit)?.tree;
    let [_, state] = files(runner, &written.branch, tree)?;
    let found = state.and_then(|bytes| serde_json::from_slice(&bytes).ok()).and_then(State::from_value);
    if found.as_ref() == Some(&done.state) {
        return Ok(());
    }
    Err(GovernError::NotWritten(written.branch.clone()))
}

/// Reads the two files in a tree that say where a run is: the configuration and the state. Errors name them as those of
/// this branch.
pub(super) fn files(
    runner: &Runner<'_>,
    branch: &RefName,
    tree: ObjectId,
) -> Result<[Option<Vec<u8>>; 2], GovernError> {
    let store = &runner.store;
    let entry = |tree: ObjectId, name: &str| -> Result<Option<TreeEntry>, RunnerError> {
        Ok(store.read_tree(tree)?.into_iter().find(|entry| entry.name == name.as_bytes()))
    };
    let config = entry(tree, PROJECT)?;
    let state = match entry(tree, ".agentxchain")? {
        Some(folder) if folder.mode == FOLDER => entry(folder.id, "state.json")?,
        Some(_) => {
            let path = PathBuf::from(named(branch, ".agentxchain"));
            let source = std::io::ErrorKind::NotADirectory.into();
            return Err(GovernedError::Io { what: "read", path, source }.into());
        }
        None => None,
    };
    let read = |entry: Option<TreeEntry>, name: &str, unfit: fn(PathBuf, Vec<String>) -> GovernedError| {
        let Some(entry) = entry else { return Ok(None) };
        let must = match entry.mode {
            FOLDER | SUBMODULE => "be a file".to_owned(),
            _ if store.blob_size(entry.id)? > STATE_MAX => format!("have at most {STATE_MAX} bytes"),
            _ => return Ok::<_, GovernError>(Some(store.read_blob(entry.id)?)),
        };
        Err(unfit(PathBuf::from(named(branch, name)), vec![format!("it must {must}")]).into())
    };
    Ok([
        read(config, PROJECT, |path, errors| GovernedError::InvalidConfig { path, errors })?,
        read(state, ".agentxchain/state.json", |path, errors| GovernedError::InvalidState { path, errors })?,
    ])
}

/// Opens the project in a checkout of a branch, with the configuration that may be acted on.
///
/// # Errors
/// The trusted ref has no configuration, or an unusable one.
pub(crate) fn project(runner: &Runner<'_>, branch: &RefName, root: &Root) -> Result<Context, GovernError> {
    let from = match &runner.settings.commands_from {
        CommandsFrom::Ref(from) => from,
        // The branch's own configuration, and not one that a folder above may have.
        CommandsFrom::Branch | CommandsFrom::Nowhere => return Ok(context_here(root)?),
    };
    let bytes = runner.trusted_file(branch, PROJECT)?;
    let bytes = bytes.ok_or_else(|| GovernError::NotOnTrusted(from.clone()))?;
    Ok(context_of(root, &bytes, Path::new(&named(from, PROJECT)))?)
}

/// Opens the project in the slot of the run that this process is inside of.
///
/// # Errors
/// The trusted ref has no configuration, or an unusable one; a file operation that fails.
pub(crate) fn project_inside(
    session: &Session,
    runner: &Runner<'_>,
    branch: &RefName,
    dir: &Path,
) -> Result<Context, GovernError> {
    let lease =
        std::env::var("AYNIG_LEASE_COMMIT").ok().and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
    let tree = KnownTree::of(&session.repo, dir, lease);
    // The run is the branch's, wherever in the slot its command is.
    let top = tree.as_ref().map_or(dir, KnownTree::top).to_owned();
    let root = Root::new(top).with_tree(tree);
    if let Some(lease) = lease {
        let entries = runner.store.read_tree(runner.store.read_commit(lease)?.tree)?;
        let own = entries.into_iter().find(|entry| entry.name == b".agentxchain");
        let own = own.and_then(|own| runner.store.read_tree(own.id).ok()).unwrap_or_default();
        if brings_work(own.iter().map(|entry| &*entry.name)) {
            forget_work(&root)?;
        }
    }
    project(runner, branch, &root)
}

/// Returns how messages call a file on a ref.
pub(super) fn named(branch: &RefName, path: &str) -> String {
    format!("{}:{path}", crate::protocol::text::escape(branch.short()))
}
