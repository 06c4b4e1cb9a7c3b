//! Flags that stand before the verb, and the session that they open.

use super::warn::Teller;
use crate::app::AppError;
pub use crate::app::session::Session;
use std::path::PathBuf;
use std::sync::Arc;

/// Flags that stand before the verb.
pub struct Global {
    /// `--git-dir`.
    pub git_dir: Option<PathBuf>,
    /// `-q`.
    pub quiet: bool,
    /// `-v`, how often.
    pub verbose: u8,
}

impl Global {
    /// Opens the repository that is meant. Its warnings are printed.
    pub fn open(&self) -> Result<Session, AppError> {
        Session::open(self.git_dir.as_deref(), Arc::new(Teller { quiet: self.quiet }))
    }
}
