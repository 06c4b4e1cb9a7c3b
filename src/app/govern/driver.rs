//! The one driver of turns: it starts the worker of an active turn, and reports what the worker left.
//!
//! `govern turn` ([`super::turn`]) takes one turn with it, `govern loop` ([`super::looping`]) as many as
//! there are. Both write the turn's bundle before, and accept or reject its result after. Implements G5, G7,
//! G13, G16.

use super::worker::{Ended, Guarded, Worker, alone};
use super::{GovernError, hooks};
use crate::governed::{
    Config, HookStop, Left, Root, State, TimeLeft, Turn, left, make_staging, read_prompt, too_long,
};
use crate::supervisor::Ending;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

pub(crate) use super::worker::Audience;

/// How workers are started in a project.
#[derive(Clone, Copy)]
pub(crate) struct Driver<'a> {
    /// The project.
    pub root: &'a Root,
    /// Its configuration.
    pub config: &'a Config,
    /// The worker of every role; empty for the one of the role's runtime.
    pub worker: &'a [OsString],
    /// From SIGTERM to SIGKILL for a worker.
    pub grace: Duration,
    /// Receives what workers print.
    pub audience: &'a dyn Audience,
}

/// What came of a turn whose bundle is written.
pub(super) enum Sent {
    /// A hook said no.
    Stopped(HookStop),
    /// Its worker is not ours to start.
    NotOurs,
    /// Its worker has ended.
    Worked(Worked),
}

/// What a worker left.
pub(super) enum Worked {
    /// A result, which is staged.
    Staged,
    /// Nothing that could be accepted: the stage that failed, and what the worker did wrong.
    Wrong(&'static str, Vec<String>),
    /// The worker's time was over before it ended.
    OutOfTime(TimeLeft),
}

impl Driver<'_> {
    /// True where the worker of a role is ours to start.
    pub(super) fn starts(&self, role: &str) -> bool {
        !self.worker.is_empty() || self.config.runtime_type_of(role) == "local_cli"
    }

    /// Refuses a worker beside another turn in a plain folder.
    pub(super) fn alone(&self, state: &State, role: &str) -> Result<(), GovernError> {
        alone(self.root, state, role)
    }

    /// Has a turn done whose bundle is written: asks the hooks of `after_dispatch`, and then its worker.
    pub(super) fn dispatch(&self, state: &State, turn: &Turn, bundle: &Path) -> Result<Sent, GovernError> {
        if let Some(stop) = hooks::stopped(self.root, self.config, state.run_id(), turn, bundle)? {
            return Ok(Sent::Stopped(stop));
        }
        match self.worker_of(turn)? {
            Some(worker) => self.work(&worker, state, turn).map(Sent::Worked),
            None => Ok(Sent::NotOurs),
        }
    }

    /// Returns the worker of a turn; `None` where it is not ours to start.
    fn worker_of(&self, turn: &Turn) -> Result<Option<Worker>, GovernError> {
        let prompt = read_prompt(self.root, turn.id())?;
        Worker::of(self.worker, self.config, turn.role(), &prompt, self.grace)
    }

    /// Has the worker do the turn. What it changed of the run's own files is put back.
    fn work(&self, worker: &Worker, state: &State, turn: &Turn) -> Result<Worked, GovernError> {
        make_staging(self.root, turn.id())?;
        let guarded = Guarded::before(self.root, turn.id())?;
        let ended = worker.run(self.root, self.config, state, turn, self.audience)?;
        let meddled = guarded.after(self.root)?;
        let left = left(self.root, turn.id())?;
        Ok(match ended {
            Ended::OutOfTime(time) => Worked::OutOfTime(time),
            Ended::Itself(_) if !meddled.is_empty() => Worked::Wrong("artifact", meddled),
            Ended::Itself(ending) => worked(&ending, left),
        })
    }
}

fn worked(ending: &Ending, left: Left) -> Worked {
    let wrong = |why: String| Worked::Wrong("dispatch", vec![why]);
    match (ending.is_success(), left) {
        (false, _) => wrong(format!("its worker failed ({ending})")),
        (true, Left::Nothing) => wrong("the worker left no result".to_owned()),
        (true, Left::TooLong) => Worked::Wrong("schema", vec![too_long()]),
        (true, Left::Result) => Worked::Staged,
    }
}
