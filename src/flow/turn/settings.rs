//! What the account says of a provider's program: `aynig.provider.<name>.*`, as values.
//!
//! A node names a provider, never a program. Implements N9, N9a (`projectSettings`).

use crate::agents::custom::Protocol;
use std::time::Duration;

/// How long a program may say nothing, where nothing else is configured.
pub const SILENCE: Duration = Duration::from_secs(600);
/// How long a turn may take in all, without what waits for a person.
pub const TIME: Duration = Duration::from_secs(2 * 3600);

/// A provider's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// It, and words that come first; none where the provider has no program of its own and none is configured.
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// What its environment has beside ours.
    pub env: Vec<(String, String)>,
    /// The model.
    pub model: Option<String>,
    /// What `custom` speaks.
    pub protocol: Protocol,
    /// Whether what a branch brings for it counts.
    pub project_settings: bool,
    /// How long it may say nothing; `None`: as long as it likes.
    pub silence: Option<Duration>,
    /// How long it may take.
    pub time: Option<Duration>,
}
