//! How a program is called: what a turn needs, and the arguments and the environment that follow from it.

use super::Talk;
use crate::contract::words::Provider;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// What a turn needs.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The prompt, which is written to standard input whatever its length and first character.
    pub prompt: &'a str,
    /// The folder in which the program works.
    pub cwd: &'a Path,
    /// A folder for temporary files that belongs to this turn.
    pub temporary: &'a Path,
    /// The model, if one is configured. It is given at each turn, as programs do not remember it.
    pub model: Option<&'a str>,
    /// The session to resume, if any.
    pub resume: Resume<'a>,
    /// Whether every tool waits for a person.
    pub gated: bool,
    /// Whether the program is confined from outside, with every process that it starts.
    pub confined: bool,
    /// Whether the branch's own settings for agents count.
    pub project_settings: bool,
    /// The server of the flow's tools, if there is one.
    pub tools: Option<Tools<'a>>,
    /// More arguments, from protected configuration.
    pub extra: &'a [String],
}

/// The session that a turn resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume<'a> {
    /// No session: the turn begins a new one.
    New,
    /// The session of this name.
    Id(&'a str),
    /// The session in this file, given by its absolute path.
    File(&'a Path),
}

/// A server of tools that speaks the Model Context Protocol on stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tools<'a> {
    /// The name by which the program knows the server.
    pub name: &'a str,
    /// The program of the server.
    pub program: &'a str,
    /// The arguments of that program.
    pub args: &'a [String],
    /// For gemini: the home folder whose settings name the server.
    pub home: Option<&'a Path>,
}

/// How long a call of a flow's tool may take before the program gives it up; long, as a person may be asked.
pub(super) const TOOL_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the server may take to start, on a busy machine.
pub(super) const SERVER_TIME: Duration = Duration::from_secs(60);

/// A call of a program.
pub struct Call {
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Changes to the caller's environment; `None` removes the variable.
    pub env: Vec<(&'static str, Option<OsString>)>,
    /// The conversation with the program once it runs.
    pub talk: Box<dyn Talk>,
}

/// A tree from which a provider's program would take settings or credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{path}' of the branch can't be kept from {provider}: set 'aynig.provider.{provider}.projectSettings' where the repository is trusted with it"
)]
pub struct Refused {
    /// The provider of the program.
    pub provider: Provider,
    /// The path of the file that it would read.
    pub path: String,
}

/// Returns words as arguments.
pub(super) fn args<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

/// Returns the variable that puts temporary files into the turn's own folder, as programs leave such files
/// behind.
pub(super) fn temporary(turn: &Turn) -> (&'static str, Option<OsString>) {
    ("TMPDIR", Some(turn.temporary.into()))
}
