//! How a program is called: what a turn needs, and the arguments and environment that come of it.

use super::Talk;
use crate::contract::words::Provider;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// What a turn is to be.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The prompt, given on standard input whatever its length and first character.
    pub prompt: &'a str,
    /// The folder that the program works in.
    pub cwd: &'a Path,
    /// A folder of the turn's own, for temporary files.
    pub temporary: &'a Path,
    /// The model, if one is configured. Programs do not remember it.
    pub model: Option<&'a str>,
    /// The session that goes on.
    pub resume: Resume<'a>,
    /// Whether every tool waits for a person.
    pub gated: bool,
    /// Whether the program is confined from outside, with all that it starts.
    pub confined: bool,
    /// Whether the branch's own settings for agents count.
    pub project_settings: bool,
    /// The server of our own tools, if there is one.
    pub tools: Option<Tools<'a>>,
    /// Further arguments, from protected configuration.
    pub extra: &'a [String],
}

/// The session that a turn goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume<'a> {
    /// None: a new one.
    New,
    /// The one of this name.
    Id(&'a str),
    /// The one in this file, by its absolute path.
    File(&'a Path),
}

/// A server of tools that speaks the Model Context Protocol on stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tools<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its program.
    pub program: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// For gemini: the home whose settings name it.
    pub home: Option<&'a Path>,
}

/// How long a call of ours may take before a program gives it up: a person may be asked.
pub(super) const TOOL_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the server may take to come up, on a machine that has much to do.
pub(super) const SERVER_TIME: Duration = Duration::from_secs(60);

/// A program's call.
pub struct Call {
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// What its environment has beside the caller's; `None` takes a variable away.
    pub env: Vec<(&'static str, Option<OsString>)>,
    /// What is said to it, and what its lines say.
    pub talk: Box<dyn Talk>,
}

/// A tree that a provider would take settings or credentials from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{path}' of the branch can't be kept from {provider}: set 'aynig.provider.{provider}.projectSettings' where the repository is trusted with it"
)]
pub struct Refused {
    /// Whose program.
    pub provider: Provider,
    /// Which file.
    pub path: String,
}

/// Arguments, put together.
pub(super) fn args<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

/// A folder for temporary files, which programs litter and leave.
pub(super) fn temporary(turn: &Turn) -> (&'static str, Option<OsString>) {
    ("TMPDIR", Some(turn.temporary.into()))
}
