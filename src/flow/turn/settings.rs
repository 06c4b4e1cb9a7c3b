//! What the account says of a provider's program: `aynig.provider.<name>.*`, as values.
//!
//! A node names a provider, never a program. Implements N9, N9a (`projectSettings`).

use crate::agents::custom::Protocol;
use std::time::Duration;

/// How long a program may say nothing, unless something else is configured.
pub const SILENCE: Duration = Duration::from_secs(600);
/// How long a turn may take in all, not counting the time that waits for a person, unless something else is
/// configured.
pub const TIME: Duration = Duration::from_secs(2 * 3600);

/// A provider's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program that is configured, and its first arguments; empty where none is, so that the provider's
    /// own is used.
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables that are configured for the program's environment.
    pub env: Vec<(String, String)>,
    /// The model that is configured.
    pub model: Option<String>,
    /// The protocol that a program of `custom` speaks.
    pub protocol: Protocol,
    /// Whether the settings that a branch brings for the program count.
    pub project_settings: bool,
    /// How long the program may say nothing; `None` where there is no limit.
    pub silence: Option<Duration>,
    /// How long the program may take; `None` where there is no limit.
    pub time: Option<Duration>,
}
