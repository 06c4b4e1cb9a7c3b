//! The note of a checkout on disk, whose name says how far that is. Implements K28.

use crate::store::{StoreError, io_error};
use nix::fcntl::Flock;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A note on disk, locked for as long as its writer lives.
pub(super) struct Held {
    pub(super) path: PathBuf,
    /// `None` where the file system has no locks.
    pub(super) _alive: Option<Flock<File>>,
}

/// How far a noted checkout is. What was not begun can't be half done: each change there is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No file was written.
    Waits,
    /// Files may have been written.
    Begun,
    /// Files may have been put back.
    Back,
}

impl Stage {
    /// Returns the end of the name of a note in this stage. The name says it, since a new one takes no space, which
    /// a full disk has not.
    pub(super) fn end(self) -> &'static str {
        match self {
            Stage::Waits => ".waits.json",
            Stage::Begun => ".json",
            Stage::Back => ".back.json",
        }
    }
}

impl Held {
    pub(super) fn stage(&self) -> Stage {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let is_in = |stage: &Stage| name.ends_with(stage.end().as_bytes());
        [Stage::Waits, Stage::Back].into_iter().find(is_in).unwrap_or(Stage::Begun)
    }

    pub(super) fn enter(&mut self, stage: Stage) -> Result<(), StoreError> {
        if self.stage() == stage {
            return Ok(());
        }
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let id: &[u8] = name.split(|b| *b == b'.').next().unwrap_or_default();
        let named = self.path.with_file_name(OsStr::from_bytes(&[id, stage.end().as_bytes()].concat()));
        std::fs::rename(&self.path, &named).map_err(io_error("rename", &self.path))?;
        self.path = named;
        Ok(())
    }
}
