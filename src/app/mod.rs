//! What verbs do: opening a repository, settings, chains, dispatch, and one file for each verb.
//!
//! A verb takes plain values, never arguments as typed, and returns its result as a type: a value,
//! [`AppError`], or an [`Exit`]. Nothing in this module prints: what a user should hear while a verb is at
//! work goes to the caller's [`Listener`] as a [`Warning`], reports of branches to its [`Audience`]. Wording,
//! the numbers of exit codes, and the shell commands that mend something are `cli`'s, so that another reader
//! than a command line can call the same verbs.

pub mod asking;
pub mod background;
pub mod chain;
pub mod change;
pub mod config;
pub mod demo;
pub mod diff;
pub mod dispatch;
pub mod doctor;
mod error;
pub mod events;
mod exit;
pub mod fan;
pub mod flow;
pub mod gc;
pub(crate) mod govern;
pub mod handed;
pub mod helper;
pub mod hook;
pub mod land;
pub mod logs;
pub mod mend;
pub mod notice;
pub mod paused;
pub mod report;
pub mod served;
pub mod session;
pub mod shell;
mod shown;
pub mod status;
pub mod talk;
pub mod trust;
pub mod uninstall;
pub mod usage;
pub mod wait;
mod warning;
pub mod watch;

pub use error::{AppError, Misuse};
pub use exit::Exit;
pub use warning::{Audience, Listener, Unheard, Warning};

/// True where `AYNIG=0` is set, which switches off everything that would run a command.
pub fn is_switched_off() -> bool {
    std::env::var_os("AYNIG").is_some_and(|value| value == "0")
}
