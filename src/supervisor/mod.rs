//! Child processes: commands under a guardian, and bounded helpers.
//!
//! A command runs below a guardian ([`guardian`]): the same binary in a small role, which outlives the caller
//! just long enough that no process of the run does. [`Supervised`] is the caller's end of it: `start`, then
//! `next` until [`Event::Exited`], then `end` or `linger`; dropping it kills the run. [`bounded`] runs short
//! helpers that need no guardian, and polls the caller's interrupt while it waits. Guardian and caller each
//! wait for a run in one loop, without threads and callbacks; only a confined command is started by a
//! short-lived thread. This room knows nothing of what the commands are for. Implements K16-K18.

pub(crate) mod attended;
pub(crate) mod background;
pub(crate) mod beneath;
pub mod bounded;
mod client;
pub mod confine;
mod ending;
mod exec;
pub mod guardian;
pub(crate) mod hold;
pub(crate) mod holders;
pub mod interrupt;
mod orders;
mod orphans;
mod pulse;
pub mod socket;
mod wire;

pub use client::{Ended, Spec, Supervised, Wake};
pub use ending::{Ending, Exit};
pub use wire::Event;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns a variable of this process's environment, which every child inherits unless it is given a value of
/// its own.
pub fn inherited(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns the file from which to start this program once more; `path` is where its file lies. That is the
/// running binary even after another version has replaced the file, because a guardian and its caller must
/// speak one protocol.
pub fn own_program(path: &Path) -> PathBuf {
    let running = Path::new("/proc/self/exe");
    let file = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino()));
    match (file(path), file(running)) {
        (found, Ok(ours)) if found.as_ref().ok() != Some(&ours) => running.to_owned(),
        // Without `/proc`, the path is all that is known.
        _ => path.to_owned(),
    }
}

/// Why supervision itself failed; how a command ended is an [`Ending`], not an error.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The binary that should become the guardian could not be started.
    #[error("cannot start guardian '{}'", path.display())]
    NoGuardian {
        /// The binary.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A helper could not be started.
    #[error("cannot start '{}'", program.display())]
    NoHelper {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A system call that does not fail on a healthy machine failed.
    #[error("cannot {what}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The guardian sent bytes that no guardian of this version sends.
    #[error("cannot read guardian's report: garbled event")]
    Garbled,
    /// The run is over, and every event of it was returned already.
    #[error("cannot wait for run: it is over")]
    Over,
}

impl SupervisorError {
    /// Returns the system's error, if a system call failed.
    pub fn system_error(&self) -> Option<&std::io::Error> {
        match self {
            Self::NoGuardian { source, .. } | Self::NoHelper { source, .. } | Self::System { source, .. } => {
                Some(source)
            }
            Self::Garbled | Self::Over => None,
        }
    }

    /// Makes an error of a failed system call; `what` says what was being done.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
