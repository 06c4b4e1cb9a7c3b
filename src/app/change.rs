//! `set-state`, `set-working`, `cancel`, `retry`: the verbs that write one commit, and what programs are told of it:
//! schema `aynig.change/1`.
//!
//! [`Change::begin`], one of the verbs, then [`Change::push`] where that was asked for, then [`Change::answer`]: the
//! event is on its branch whatever comes of the last two.

use super::background;
use super::config::Flags;
use super::session::Session;
use super::shown::{Shown, short};
use super::{AppError, Exit, Misuse, mend};
use crate::protocol::declaration::{Declaration, Take, parse_trailer};
use crate::protocol::dialect::Dialect;
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::runner::Runner;
use crate::runner::Silent;
use crate::runner::change::{ChangeError, Inside, Written};
use crate::runner::settings::Settings;
use crate::store::Swap;
use crate::store::remote::push_branch;
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;

/// The schema of what a verb wrote.
pub const CHANGE_SCHEMA: &str = "aynig.change/1";

/// A state that may be written by hand.
pub fn state(name: &str) -> Result<StateName, AppError> {
    let wrong = |why: String| Misuse::State { state: name.to_owned(), why };
    let state = StateName::new(name).map_err(|why| wrong(why.to_string()))?;
    if state.is_working() { Err(Misuse::Working.into()) } else { Ok(state) }
}

/// The declaration of a state, from a message in Git's form and trailers as `key: value`.
pub fn declaration(
    state: StateName,
    message: &str,
    trailers: &[String],
    keep_trailers: bool,
) -> Result<Declaration, AppError> {
    let text = message.trim_start_matches('\n');
    let (subject, body) = text.split_once('\n').unwrap_or((text, ""));
    let subject = match subject.trim() {
        "" => format!("chore: set {state}"),
        subject => subject.to_owned(),
    };
    let trailers = trailers.iter().map(|t| parse_trailer(t)).collect::<Result<_, _>>();
    let trailers = trailers.map_err(|why| Misuse::Trailer(why.to_string()))?;
    let body = body.trim_matches('\n').to_owned();
    let declaration = Declaration { state, subject, body, keep_trailers, trailers, take: Take::default() };
    let rendered = declaration.message(Dialect::Dwp, &[]).render();
    rendered.map_err(|why| Misuse::Message(why.to_string()))?;
    Ok(declaration)
}

/// Why an event that is on its branch here is not known to be on a remote.
#[derive(Debug)]
pub enum NotPushed {
    /// There is no remote to push to.
    NoRemote,
    /// The remote's branch has other commits.
    Behind,
    /// No answer came, for this reason.
    Unknown(String),
    /// The push failed.
    Failed(Box<AppError>),
}

/// A change that is about to be made.
pub struct Change<'a> {
    session: &'a Session,
    settings: Settings,
    inside: Option<Inside>,
}

impl<'a> Change<'a> {
    /// Reads the settings, and mends what an earlier process left. What a run says of its own branch is said where
    /// that branch is.
    pub fn begin(session: &'a Session, flags: &Flags) -> Result<Self, AppError> {
        let inside = session.inside();
        let remote =
            flags.remote.clone().or_else(|| inside.as_ref().map(|i| i.remote.clone().unwrap_or(".".into())));
        let settings = session.settings(&Flags { remote, ..flags.clone() })?;
        if let Some(remote) = session.unasked(&settings) {
            // How that remote is reached, and with which programs, is what the repository's own configuration says.
            return Err(AppError::Unasked(remote.to_owned()));
        }
        mend::all(session);
        Ok(Self { session, settings, inside })
    }

    /// The remote whose branch is changed.
    pub fn remote(&self) -> Option<&str> {
        self.settings.remote.as_deref()
    }

    /// Writes a state event.
    pub fn set_state(
        &self,
        branch: Option<&OsStr>,
        declaration: &Declaration,
        dialect: Option<Dialect>,
    ) -> Result<Written, AppError> {
        self.write(|runner, inside| {
            let branch = self.session.branch_or_current(branch, "set-state <state> -b <branch>")?;
            self.changed(runner.set_state(&branch, declaration, dialect, inside))
        })
    }

    /// Takes or renews a lease by hand.
    pub fn set_working(&self, branch: Option<&OsStr>) -> Result<Written, AppError> {
        self.write(|runner, inside| {
            let branch = self.session.branch_or_current(branch, "set-working -b <branch>")?;
            self.changed(runner.set_working(&branch, inside))
        })
    }

    /// Takes a lease away.
    pub fn cancel(&self, branch: &OsStr) -> Result<Written, AppError> {
        self.write(|runner, _| self.changed(runner.cancel(&self.session.branch(branch)?)))
    }

    /// Asks for a stalled branch's work again.
    pub fn retry(&self, branch: &OsStr) -> Result<Written, AppError> {
        self.write(|runner, inside| self.changed(runner.retry(&self.session.branch(branch)?, inside)))
    }

    fn changed(&self, written: Result<Written, ChangeError>) -> Result<Written, AppError> {
        written.map_err(|error| AppError::Change { error, remote: self.settings.remote.clone() })
    }

    fn write(
        &self,
        write: impl FnOnce(&Runner<'_>, Option<&Inside>) -> Result<Written, AppError>,
    ) -> Result<Written, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        write(&runner, self.inside.as_ref())
    }

    /// Brings what was written to the branch's remote, where it is not a remote's branch already.
    pub fn push(&self, written: &Written) -> Result<(), AppError> {
        if self.settings.remote.is_some() {
            return Ok(());
        }
        let (repo, branch) = (&self.session.repo, &written.branch);
        let remote = repo.git.push_remote(branch)?;
        let remote = remote.or_else(|| repo.has_remote("origin").then(|| "origin".to_owned()));
        let failed = |remote: Option<String>, why| AppError::NotPushed {
            branch: branch.clone(),
            commit: written.commit,
            remote: remote.unwrap_or_default(),
            why,
        };
        let Some(remote) = remote else { return Err(failed(None, NotPushed::NoRemote)) };
        let interrupt = Interrupt::never()?;
        let by = self.session.runner(&self.settings, &interrupt, &Silent)?.signature();
        match push_branch(repo, &remote, branch, written.commit, &by) {
            Ok(Swap::Won) => Ok(()),
            Ok(Swap::Unknown { cause }) => Err(failed(Some(remote), NotPushed::Unknown(cause))),
            Ok(Swap::Lost { .. }) => Err(failed(Some(remote), NotPushed::Behind)),
            Err(error) => Err(failed(Some(remote), NotPushed::Failed(Box::new(error.into())))),
        }
    }

    /// Starts what the installed hook would have started for the branch.
    pub fn answer(&self, written: &Written) -> Result<(), AppError> {
        background::as_the_hook_would(self.session, &self.settings, &written.branch)
    }
}

/// How a verb ends that wrote this.
pub fn end(written: &Written) -> Exit {
    Exit::of_notes(&written.notes)
}

/// What a verb wrote, as programs read it.
#[derive(Serialize)]
pub struct ChangeLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    state: &'a str,
    commit: Shown<&'a ObjectId>,
    run_id: Option<&'a str>,
    created: bool,
    overruled: Vec<&'a str>,
    notes: Vec<String>,
}

impl<'a> ChangeLine<'a> {
    /// The line of a change, with its notes in words.
    pub fn new(written: &'a Written, notes: Vec<String>) -> Self {
        Self {
            schema: CHANGE_SCHEMA,
            branch: short(&written.branch),
            state: written.state.as_str(),
            commit: Shown(&written.commit),
            run_id: written.run_id.as_deref(),
            created: written.created,
            overruled: written.overruled.iter().map(|overruled| &*overruled.path).collect(),
            notes,
        }
    }
}
