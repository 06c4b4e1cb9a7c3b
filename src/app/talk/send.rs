//! `send`: says something to a branch, and starts what answers it where that may be now.
//!
//! A caller uses [`sending`], [`send`], then [`hear`]: the message is in the inbox whatever comes of the
//! last. Implements K46 (a sender that may not deliver).

use super::super::change::Change;
use super::super::{AppError, Misuse, Warning, background};
use super::{id, kind, trailers};
use crate::protocol::inbox::TEXT_MAX;
use crate::runner::settings::CommandsFrom;
pub use crate::runner::talk::send::{Head, Sending, Sent};
use crate::store::hooks::Hooks;
use crate::store::{RefName, pattern};
use std::ffi::OsStr;

/// A message as it was typed.
#[derive(Debug)]
pub struct Typed<'a> {
    /// The message's kind.
    pub kind: &'a str,
    /// The message's id, where the sender chose one.
    pub id: Option<&'a str>,
    /// The message's text.
    pub text: &'a str,
    /// The message's trailers, as `key: value`.
    pub trailers: &'a [String],
    /// The commit that the message hands over.
    pub attach: Option<&'a OsStr>,
}

/// Reads a message as it was typed.
pub fn sending(change: &Change<'_>, typed: &Typed<'_>) -> Result<Sending, AppError> {
    let text = typed.text.trim_matches('\n');
    if text.len() > TEXT_MAX {
        let why = format!("its text has {} bytes, more than 1 MiB", text.len());
        return Err(Misuse::Message(why).into());
    }
    Ok(Sending {
        kind: kind(typed.kind)?,
        id: typed.id.map(|typed| id(typed, None)).transpose()?,
        text: text.to_owned(),
        trailers: trailers(typed.trailers)?,
        attach: typed.attach.map(|name| change.commit(name)).transpose()?,
    })
}

/// Sends a message to a branch.
pub fn send(change: &Change<'_>, branch: &OsStr, sending: &Sending) -> Result<Sent, AppError> {
    let branch = change.session.branch(branch)?;
    change.talk(|runner| runner.send(&branch, sending, change.inside.as_ref()))
}

/// Starts what the installed hook would have started, if the branch takes the message in now. Warns where
/// nothing may run in this repository, or not on this branch: the next tick of a user who may run commands
/// there delivers the message.
pub fn hear(change: &Change<'_>, sent: &Sent) -> Result<(), AppError> {
    if sent.head != Head::Takes
        || change.settings.remote.is_some()
        || !Hooks::any_installed(&change.session.repo)
    {
        return Ok(());
    }
    let settings = &change.settings;
    let left_out = !settings.branches.is_empty() && !pattern::any(&settings.branches, &sent.branch);
    if settings.commands_from == CommandsFrom::Nowhere || left_out {
        change.session.warn(Warning::LeftToOthers(sent.branch.clone()));
        return Ok(());
    }
    start(change, &sent.branch)
}

fn start(change: &Change<'_>, branch: &RefName) -> Result<(), AppError> {
    background::as_the_hook_would(change.session, &change.settings, branch)
}

impl Change<'_> {
    /// Returns the commit that a name means in this repository.
    pub(in crate::app) fn commit(&self, name: &OsStr) -> Result<crate::protocol::id::ObjectId, AppError> {
        let none = || Misuse::Commit(name.to_owned());
        let text = name.to_str().filter(|text| !text.starts_with('-')).ok_or_else(none)?;
        let repo = &self.session.repo;
        Ok(repo.git.rev_parse(&repo.git_dir, &format!("{text}^{{commit}}")).map_err(|_| none())?)
    }
}
