//! `trust`: the account's owner says which commands may run in a repository.
//!
//! Written to the account's own configuration, per repository, where no push reaches. Implements K33, K34.

use super::session::Session;
use super::{AppError, Exit, Misuse};
use crate::protocol::text::escape;
use crate::runner::settings::CommandsFrom;
use crate::store::{RefName, command_tree, config};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const KEY: &str = "commandsFrom";

/// Why trust was not given, or taken away.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The name of the ref is no UTF-8: another ref's name would be written, and that ref would be trusted.
    #[error("cannot trust '{}': its name is no UTF-8", escape(.0.as_bytes()))]
    NoText(RefName),
    /// `GIT_CONFIG_GLOBAL` names something that is no file, and Git would put a file in its place.
    #[error("GIT_CONFIG_GLOBAL is '{}', which is no file", escape(path.as_os_str().as_bytes()))]
    NoFile {
        /// What is there.
        path: PathBuf,
        /// What was to be written.
        value: String,
        /// A folder of the repository.
        place: PathBuf,
    },
    /// `git config` failed.
    #[error("cannot write the global configuration: {message}")]
    NotWritten {
        /// What Git said.
        message: String,
        /// What was to be written.
        value: String,
        /// A folder of the repository.
        place: PathBuf,
    },
    /// `git config` failed to remove the key.
    #[error("git config failed: {0}")]
    NotRevoked(String),
    /// A wider setting (every repository, a glob, the system's) still trusts this repository.
    #[error("still trusted: a setting for more than this repository says so")]
    Still,
}

impl From<&TrustError> for Exit {
    fn from(error: &TrustError) -> Self {
        match error {
            TrustError::Still => Exit::Refused,
            TrustError::NoText(_)
            | TrustError::NoFile { .. }
            | TrustError::NotWritten { .. }
            | TrustError::NotRevoked(_) => Exit::Failed,
        }
    }
}

/// Returns the ref of this name as a source of commands.
pub fn source(name: &OsStr) -> Result<CommandsFrom, AppError> {
    let name = if name.as_bytes().starts_with(b"refs/") {
        RefName::new(name.as_bytes())
    } else {
        RefName::branch(name.as_bytes())
    };
    if name.is_valid() { Ok(CommandsFrom::Ref(name)) } else { Err(Misuse::Ref(name).into()) }
}

/// Returns the source where none is named: the branch that is current now, so that a branch which is pushed
/// or fetched later brings no commands of its own.
pub fn default_source(session: &Session) -> Result<CommandsFrom, AppError> {
    let branch = session.current_branch()?;
    branch.map(CommandsFrom::Ref).ok_or_else(|| Misuse::NoSource.into())
}

/// Writes the trust to the account's configuration.
pub fn give(session: &Session, source: &CommandsFrom) -> Result<(), AppError> {
    let value = match source {
        CommandsFrom::Nowhere => "none".to_owned(),
        CommandsFrom::Branch => "branch".to_owned(),
        CommandsFrom::Ref(name) => match std::str::from_utf8(name.as_bytes()) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(TrustError::NoText(name.clone()).into()),
        },
    };
    let place = session.place().to_owned();
    if let Some(path) = std::env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from)
        && std::fs::metadata(&path).is_ok_and(|m| !m.is_file())
    {
        return Err(TrustError::NoFile { path, value, place }.into());
    }
    let output = session.repo.git.set_global(&key(session), Some(&value))?;
    if !output.status.success() {
        return Err(TrustError::NotWritten { message: output.refusal("config"), value, place }.into());
    }
    Ok(())
}

/// Takes the trust away; fails where a wider setting still gives it.
pub fn revoke(session: &Session) -> Result<(), AppError> {
    // A key may name the repository by its working tree, too.
    let is_its = |entry: &config::Entry| {
        let is_for_this = |place| session.repo.site.is_only_this(place);
        entry.protected
            && matches!(entry.of_ours(), Some((Some(place), "commandsfrom")) if is_for_this(place))
    };
    let said = config::read(&session.repo)?.into_iter().filter(is_its).map(|entry| entry.key);
    for key in said.chain([key(session)]) {
        let output = session.repo.git.set_global(&key, None)?;
        // Status 5: there was nothing to remove.
        if !matches!(output.status.code(), Some(0 | 5)) {
            return Err(TrustError::NotRevoked(output.refusal("config")).into());
        }
    }
    match session.reopened()?.config.commands_from()? {
        CommandsFrom::Nowhere => Ok(()),
        CommandsFrom::Branch | CommandsFrom::Ref(_) => Err(TrustError::Still.into()),
    }
}

fn key(session: &Session) -> String {
    config::key_of(session.repo.site.dir(), KEY)
}

/// Returns the ref that commands are to come from, where it does not exist.
pub fn absent<'a>(session: &Session, source: &'a CommandsFrom) -> Result<Option<&'a RefName>, AppError> {
    match source {
        CommandsFrom::Ref(name) if session.repo.open_store(false)?.tip(name)?.is_none() => Ok(Some(name)),
        CommandsFrom::Ref(_) | CommandsFrom::Branch | CommandsFrom::Nowhere => Ok(None),
    }
}

/// Returns what the account trusts: for each entry where commands come from, and the repository, or `*` for
/// all.
pub fn list(session: &Session) -> Result<Vec<(String, String)>, AppError> {
    let counts = |entry: &config::Entry| entry.protected && !entry.conditional;
    let place = |entry: config::Entry| {
        let (place, _) = entry.of_ours().filter(|(_, name)| *name == "commandsfrom")?;
        let place = place.unwrap_or("*").to_owned();
        Some((entry.value.unwrap_or_default(), place))
    };
    Ok(config::read(&session.repo)?.into_iter().filter(counts).filter_map(place).collect())
}

/// Returns the states and roles that have a command in a ref.
pub fn commands(session: &Session, name: &RefName) -> Result<Vec<(String, Option<String>)>, AppError> {
    let store = session.repo.open_store(false)?;
    let tree = match store.tip(name)? {
        Some(id) => command_tree::find(&*store, store.read_commit(session.repo.peeled(name, id)?)?.tree)?,
        None => None,
    };
    Ok(tree.map_or(Ok(Vec::new()), |tree| command_tree::list(&*store, tree))?)
}
