//! `flow events`, `flow artifacts`, and the state of a flow: all are read from the flow's projection, which
//! is kept in the data folder.
//!
//! Whichever process reads appends what is new to the projection first. With `--follow` each event is shown
//! as it comes. Implements N13 (reading).

use super::data_dir;
use crate::app::config::Flags;
use crate::app::session::Session;
use crate::app::warning::Warning;
use crate::app::{AppError, Exit, mend};
use crate::contract::event::Event;
use crate::contract::id::RunId;
use crate::contract::run::Run;
use crate::flow::Flows;
use crate::flow::project::{Project, Updated, folder};
use crate::runner::Runner;
use crate::runner::settings::Settings;
use crate::store::beneath::apart;
use crate::supervisor::interrupt::Interrupt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a reader that follows waits between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// How much of a log is read at once, in bytes.
const PIECE: u64 = 4 << 20;

/// A flow whose projection is read.
pub struct Reading<'a> {
    session: &'a Session,
    project: Project<'a>,
}

/// Reads the settings of these verbs, and mends what an earlier process left.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    Ok(settings)
}

impl<'a> Reading<'a> {
    /// Opens the flow of this name or id.
    pub fn open(
        session: &'a Session,
        runner: &'a Runner<'a>,
        flow: &str,
        data: Option<PathBuf>,
    ) -> Result<Self, AppError> {
        runner.store.refresh()?;
        let kept = Flows::new(runner).named(flow)?;
        Ok(Self { session, project: Project::new(runner, kept.id, data_dir(session, data)) })
    }

    /// Returns the state of the flow of this id, as its events make it.
    pub fn state_of(session: &Session, flags: &Flags, flow: RunId) -> Result<Option<Run>, AppError> {
        let settings = session.settings(flags)?;
        let interrupt = Interrupt::never()?;
        let runner = session.reader(&settings, &interrupt)?;
        let reading = Reading { session, project: Project::new(&runner, flow, data_dir(session, None)) };
        reading.project.hear()?;
        reading.state()
    }

    /// Brings the projection up to date, and returns the flow's state.
    pub fn state(&self) -> Result<Option<Run>, AppError> {
        Ok(self.updated()?.run)
    }

    fn updated(&self) -> Result<Updated, AppError> {
        let mut updated = self.project.update()?;
        for why in updated.left_out.drain(..) {
            self.session.warn(Warning::Failed(why.into()));
        }
        Ok(updated)
    }

    /// Does what [`Reading::state`] does, after asking a remote for what is new, and makes the file of each
    /// artifact again where it is missing.
    pub fn whole(&self) -> Result<Option<Run>, AppError> {
        self.project.hear()?;
        let run = self.state()?;
        for artifact in run.iter().flat_map(|run| run.artifacts.values()) {
            self.project.make(artifact)?;
        }
        Ok(run)
    }

    /// Passes all events of the log to `tell`, then with `follow` each that comes, until a signal comes or
    /// the reader is gone.
    pub fn each(
        &self,
        follow: bool,
        interrupt: &Interrupt,
        mut tell: impl FnMut(Event) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let mut read = 0;
        loop {
            self.project.hear()?;
            let length = self.updated()?.log;
            while read < length {
                let lines = self.lines(read)?;
                let whole = lines.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
                if whole == 0 {
                    break;
                }
                read += whole as u64;
                for line in lines[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                    // A line that a later version wrote is passed over.
                    if let Ok(event) = serde_json::from_slice(line)
                        && !tell(event)
                    {
                        return Ok(Exit::Done);
                    }
                }
            }
            if !follow {
                return Ok(Exit::Done);
            }
            interrupt.wait(LOOK);
            match interrupt.signal() {
                Some(signal) => return Ok(Exit::of_signal(signal)),
                None if is_gone() => return Ok(Exit::Done),
                None => {}
            }
        }
    }

    /// Reads a piece of the log from this byte on; a longer one where a single line is longer.
    fn lines(&self, from: u64) -> Result<Vec<u8>, AppError> {
        let path = folder::path(&self.project.data, self.project.id).join(folder::EVENTS);
        let failed = |error| AppError::from(crate::flow::project::ProjectError::Folder(error));
        let (place, name) = apart(&path).map_err(failed)?;
        let mut limit = PIECE;
        loop {
            let piece = place.read_from(name, from, limit).map_err(failed)?;
            if piece.contains(&b'\n') || (piece.len() as u64) < limit {
                return Ok(piece);
            }
            limit *= 4;
        }
    }
}
