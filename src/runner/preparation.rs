//! `.aynig/prepare`: what makes a slot ready for a branch, where it is not ready yet.
//!
//! It runs before the command, under the same supervision. If it fails it ends the run, as a failing command
//! does. It declares nothing. It is skipped where the slot keeps what it made, and neither the program nor a
//! file that it names in a line `# depends: <path>` has changed since. Implements K58.

use super::active_run::ActiveRun;
use super::{RunnerError, io};
use crate::protocol::complete::{Exit, HeadIs};
use crate::protocol::declaration::Declarations;
use crate::protocol::depends;
use crate::protocol::text::hex;
use crate::supervisor::Supervised;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The program's name in `.aynig/`.
pub(super) const PREPARE: &str = "prepare";

impl ActiveRun<'_> {
    /// Runs `.aynig/prepare`, if there is one and the slot is not prepared by it. Returns what ended the run
    /// already, if anything did.
    pub(super) fn run_prepare_program(&mut self) -> Result<Option<(Exit, Option<Supervised>)>, RunnerError> {
        let program = self.program.place.join(PREPARE);
        if !program.is_file() {
            return Ok(None);
        }
        self.prove_copy()?;
        let key = self.key_of(&program)?;
        if self.slot.is_prepared(&key) {
            return Ok(None);
        }
        let (exit, guardian) = self.supervised(&program)?;
        // What the program printed is no declaration.
        self.declared = Declarations::default();
        let result = self.dir.join("result");
        if result.symlink_metadata().is_ok() {
            crate::store::remove_tree(&result).map_err(io("remove", &result))?;
        }
        if exit != Exit::Code(0) || self.own_event.is_some() || self.interrupted.is_some() {
            return Ok(Some((exit, guardian)));
        }
        if let Some(guardian) = guardian {
            guardian.end()?;
        }
        self.held_open = false;
        self.slot.note_prepared(key, &self.runner.settings.keeping.keep)?;
        match self.check_head(None)? {
            HeadIs::Lease(_) | HeadIs::SlotHead => Ok(None),
            HeadIs::OwnEvent(id) => {
                self.own_event = Some(id);
                Ok(Some((exit, None)))
            }
            HeadIs::Other => Ok(Some((Exit::Stopped, None))),
        }
    }

    /// Returns a digest of the program and of the files that it depends on.
    fn key_of(&self, program: &Path) -> Result<String, RunnerError> {
        let mut digest = Sha256::new();
        let mut text = Vec::new();
        // The copy was proved to be the committed file, so its content stands for its id.
        File::open(program).and_then(|mut f| f.read_to_end(&mut text)).map_err(io("read", program))?;
        digest.update(&text);
        for path in depends::of(&text) {
            let blob = self.slot.blob_at(self.runner.repo, &PathBuf::from(&path))?;
            digest.update([0]);
            digest.update(path);
            digest.update([0]);
            digest.update(blob.unwrap_or_default());
        }
        Ok(hex(&digest.finalize()))
    }
}
