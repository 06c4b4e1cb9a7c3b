//! `inbox`: the messages that wait for a branch, and with `--follow` each that comes.
//!
//! A message that was shown and that a tick took in meanwhile is not shown again. Implements K48.

use super::super::change::Change;
use super::super::session::Session;
use super::super::{AppError, Exit, events};
use super::{id, kind};
use crate::protocol::inbox::Kind;
use crate::runner::Runner;
use crate::runner::settings::Settings;
use crate::runner::talk::TalkError;
pub use crate::runner::talk::inbox::Waiting;
use crate::runner::talk::looks::Looks;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::ffi::OsStr;

/// A branch whose inbox is read.
pub struct Reading<'a> {
    pub branch: RefName,
    kind: Option<Kind>,
    runner: Runner<'a>,
}

/// Reads the settings of the verb; inside a run, the remote is that of the run's own branch.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let own = || session.inside().map(|inside| inside.remote.unwrap_or_else(|| ".".to_owned()));
    events::settings(session, remote.or_else(own))
}

/// Finds the branch: the named one, the run's own, or the current one. A branch that is gone may still have
/// an inbox.
pub fn open<'a>(
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    branch: Option<&OsStr>,
    of_kind: Option<&str>,
) -> Result<Reading<'a>, AppError> {
    let kind = of_kind.map(kind).transpose()?;
    let runner = session.reader(settings, interrupt)?;
    let branch = session.branch_or_current(branch, "inbox <branch>")?;
    if runner.store.bare_tip(&branch)?.is_none() {
        let waits = runner.inbox(&branch, None, &|_, _| false).map_err(|e| talked(settings, e))?;
        if waits.is_empty() {
            return Err(session.no_branch(settings, &branch));
        }
    }
    Ok(Reading { branch, kind, runner })
}

fn talked(settings: &Settings, error: TalkError) -> AppError {
    let remote = settings.remote.clone();
    match error {
        TalkError::Change(error) => AppError::Change { error, remote },
        error => AppError::Talk { error: Box::new(error), remote },
    }
}

impl Reading<'_> {
    /// Returns the messages that wait now, the oldest first.
    pub fn list(&self) -> Result<Vec<Waiting>, AppError> {
        let found = self.runner.inbox(&self.branch, self.kind.as_ref(), &|_, _| false);
        found.map_err(|error| talked(self.runner.settings, error))
    }

    /// Shows the messages that wait, and then each that comes, until a signal comes or the reader is gone.
    pub fn follow(
        &self,
        mut show: impl FnMut(&Waiting) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let mut shown = HashSet::new();
        let mut looks = Looks::new(&self.runner, &self.branch);
        loop {
            if looks.is_due() {
                let known = |id, commit| shown.contains(&(id, commit));
                let found = self.runner.inbox(&self.branch, self.kind.as_ref(), &known);
                for waiting in found.map_err(|error| talked(self.runner.settings, error))? {
                    if !show(&waiting) {
                        return Ok(Exit::Done);
                    }
                    shown.insert((waiting.id, waiting.commit));
                }
            }
            self.runner.interrupt.wait(looks.every());
            match self.runner.interrupt.signal() {
                Some(signal) => return Ok(Exit::of_signal(signal)),
                None if is_gone() => return Ok(Exit::Done),
                None => {}
            }
        }
    }
}

/// Marks a message as heard by the run that this process is inside of.
pub fn take(
    change: &Change<'_>,
    branch: Option<&OsStr>,
    typed: &str,
) -> Result<(RefName, Waiting), AppError> {
    let id = id(typed, Some("inbox"))?;
    let inside = change.inside.as_ref().ok_or_else(|| change.talked(TalkError::Outside))?;
    let branch = branch.map(|arg| change.session.branch(arg)).transpose()?;
    if let Some(branch) = branch.filter(|branch| *branch != inside.branch) {
        return Err(change.talked(TalkError::NotWaiting(branch, id)));
    }
    let taken = change.talk(|runner| runner.take(inside, id))?;
    Ok((inside.branch.clone(), taken))
}
