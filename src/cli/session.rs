//! Flags that every verb takes, and the session that they open.

use super::warn::Teller;
use crate::app::AppError;
pub use crate::app::session::Session;
use std::path::PathBuf;
use std::sync::Arc;

/// Flags that every verb takes.
pub struct Global {
    /// `--git-dir`.
    pub git_dir: Option<PathBuf>,
    /// `-q`.
    pub quiet: bool,
    /// How often `-v` was given.
    pub verbose: u8,
}

impl Global {
    /// Opens the repository that the flags or the current folder name. Warnings are printed as they come.
    pub fn open(&self) -> Result<Session, AppError> {
        Session::open(self.git_dir.as_deref(), Arc::new(Teller { quiet: self.quiet }))
    }
}
