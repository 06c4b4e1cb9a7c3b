//! The run of a claimed branch: its slot is filled, `.aynig/prepare` makes it ready where it is not ready yet, and
//! the command runs to its end.
//!
//! The program that prepares a slot runs under the same supervision. If it fails it ends the run, as a failing command
//! does. It declares nothing. It is skipped where the slot keeps what it made, and neither the program nor a
//! file that it names in a line `# depends: <path>` has changed since. Implements K16, K58.

use super::active_run::ActiveRun;
use super::supervise::PATIENCE;
use super::{Progress, RunnerError, io};
use crate::protocol::complete::{Declared, Exit, HeadIs};
use crate::protocol::declaration::Declarations;
use crate::protocol::depends;
use crate::protocol::holding::BeforeStart;
use crate::protocol::text::{hex, with_causes};
use crate::supervisor::Supervised;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The program's name in `.aynig/`.
pub(super) const PREPARE: &str = "prepare";

/// How the supervised part of a run ended.
pub(super) enum RunEnd {
    /// The slot was not filled, or a log not created, for this reason: the command was never started.
    NotSetUp(String),
    /// The command ended, or could not be started.
    Ended(Box<Ended>),
}

/// How the command ended, and what it declared, with the guardian, which waits to be told that it may end.
pub(super) struct Ended {
    pub exit: Exit,
    pub declared: Declared,
    pub guardian: Option<Supervised>,
    /// True where nothing shows another head: a success need not ask a remote for it, because the push will
    /// find out.
    pub head_trusted: bool,
}

impl Ended {
    /// Lets the guardian end, where there is one.
    pub(super) fn end_guardian(&mut self) -> Result<(), RunnerError> {
        if let Some(guardian) = self.guardian.take() {
            guardian.end()?;
        }
        Ok(())
    }
}

impl ActiveRun<'_> {
    /// Runs the command of a claimed branch until it ends.
    pub(super) fn run(&mut self) -> Result<RunEnd, RunnerError> {
        let (runner, state) = (self.runner, self.claim.run.state.as_str());
        runner.observer.told(self.branch, Progress::Claimed { run_id: self.run_id(), state });
        let occupant = self.occupant();
        self.slot.occupy(Some(occupant))?;
        if let Err(error) = self.set_up() {
            return Ok(RunEnd::NotSetUp(with_causes(&error)));
        }
        let (exit, guardian) =
            self.execute().unwrap_or_else(|error| (Exit::NotStarted(with_causes(&error)), None));
        runner.observer.told(self.branch, Progress::Ended { exit: &exit.to_string() });
        // The command is dead, so asking for the head may now take longer than the lease had left.
        runner.store.set_patience(PATIENCE);
        let declared = self.what_was_declared();
        self.usage = self.what_was_used(&declared);
        let succeeded = matches!((&exit, &declared), (Exit::Code(0), Declared::State(_)));
        let head_trusted = runner.settings.remote.is_some() && succeeded;
        Ok(RunEnd::Ended(Box::new(Ended { exit, declared, guardian, head_trusted })))
    }

    fn execute(&mut self) -> Result<(Exit, Option<Supervised>), RunnerError> {
        let runner = self.runner;
        match runner.deadlines(&self.claim).before_start(runner.clock.elapsed()) {
            BeforeStart::Renew if !runner.renew(self.branch, &mut self.claim)? => {
                return Ok((Exit::Stopped, None));
            }
            BeforeStart::Renew | BeforeStart::Start => {}
        }
        if let Some(ended) = self.run_prepare_program()? {
            return Ok(ended);
        }
        let program = self.program.place.join(&self.program.command.path);
        self.supervised(&program)
    }

    /// Runs `.aynig/prepare`, if there is one and the slot is not prepared by it. Returns what ended the run
    /// already, if anything did.
    fn run_prepare_program(&mut self) -> Result<Option<(Exit, Option<Supervised>)>, RunnerError> {
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
        self.ended_preparing = exit != Exit::Code(0);
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
