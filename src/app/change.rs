//! `set-state`, `set-working`, `cancel`, `retry`: the verbs that write one commit, and what programs are told of it:
//! schema `aynig.change/1`.
//!
//! A caller uses [`Change::begin`], one of the verbs, then [`Change::push`] if the user asked for it, then
//! [`Change::answer`]. The event is on its branch whatever comes of the last two.

use super::background;
use super::config::Flags;
use super::govern::TURN_OF;
use super::session::Session;
use super::shown::{Shown, short};
use super::status::by_a_run;
use super::{AppError, Exit, Misuse, mend};
use crate::protocol::declaration::{Declaration, Take, parse_trailer};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::name::{STALLED, StateName};
use crate::protocol::waits;
use crate::runner::change::{ChangeError, Inside, Written};
use crate::runner::settings::Settings;
use crate::runner::{Runner, Silent, Tip};
use crate::store::remote::push_branch;
use crate::store::{RefName, Swap, pattern};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The schema of the line that says what a verb wrote.
pub const CHANGE_SCHEMA: &str = "aynig.change/1";

/// Reads the name of a state that may be written by hand to a branch of a remote or, without either, to the
/// current branch of this repository. `working` is refused, since it is reserved for leases.
pub fn state(name: &str, branch: Option<&OsStr>, remote: Option<&str>) -> Result<StateName, AppError> {
    let wrong = |why: String| Misuse::State { state: name.to_owned(), why };
    let state = StateName::new(name).map_err(|why| wrong(why.to_string()))?;
    if state.is_working() {
        let (branch, remote) = (branch.map(OsStr::to_owned), remote.map(str::to_owned));
        return Err(Misuse::Working { branch, remote }.into());
    }
    Ok(state)
}

/// Makes the declaration of a state from a message in Git's form (an empty one gets a subject) and from
/// trailers as `key: value`. Fails where it could not be written as a commit message.
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
    let trailers = trailers.iter().map(|t| parse_trailer(t)).collect::<Result<Vec<_>, _>>();
    let trailers = trailers.map_err(|why| Misuse::Trailer(why.to_string()))?;
    if let Some((trailer, want)) = trailers.iter().find_map(|one| Some((one, waits::wanted(one)?))) {
        let value = String::from_utf8_lossy(&trailer.value);
        return Err(Misuse::Trailer(format!("'{}: {value}' can't be read: want {want}", trailer.key)).into());
    }
    let body = body.trim_matches('\n').to_owned();
    let declaration = Declaration {
        state,
        subject,
        body,
        keep_trailers,
        trailers,
        take: Take::default(),
        not_before: None,
        usage: None,
    };
    let rendered = declaration.message(Dialect::Dwp, &[]).render();
    rendered.map_err(|why| Misuse::Message(why.to_string()))?;
    Ok(declaration)
}

/// True inside of a governed turn of the run that this process is inside of, and not of a run below that.
pub fn is_in_turn() -> bool {
    let run = std::env::var_os("AYNIG_RUN_ID");
    run.is_some() && std::env::var_os(TURN_OF) == run
}

/// Refuses to write an event of a run's own branch for a worker of a governed turn (G7): the kernel would take
/// that for the run's outcome, and the turn would never be judged.
fn refuse_in_turn(branch: &RefName, inside: Option<&Inside>) -> Result<(), AppError> {
    let is_own = inside.is_some_and(|inside| inside.branch == *branch);
    if is_own && is_in_turn() { Err(Misuse::InsideTurn.into()) } else { Ok(()) }
}

/// Which branches a verb can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Branches that a run holds.
    Leased,
    /// Branches on which a run stalled.
    Stalled,
}

impl About {
    fn can_be(self, event: &Event) -> bool {
        match self {
            About::Leased => event.is_working(),
            About::Stalled => event.state_name().is_some_and(|s| s.as_str() == STALLED) && by_a_run(event),
        }
    }

    /// Returns the word for such a branch in messages.
    pub fn word(self) -> &'static str {
        match self {
            About::Leased => "leased",
            About::Stalled => "stalled",
        }
    }
}

/// Why an event that is on its local branch is not known to be on a remote.
#[derive(Debug)]
pub enum NotPushed {
    /// There is no remote to push to.
    NoRemote,
    /// The remote's branch has other commits.
    Behind,
    /// It is not known whether the push arrived, for this reason.
    Unknown(String),
    /// The push failed.
    Failed(Box<AppError>),
}

/// A change that is about to be made.
pub struct Change<'a> {
    pub(super) session: &'a Session,
    pub(super) settings: Settings,
    pub(super) inside: Option<Inside>,
}

impl<'a> Change<'a> {
    /// Reads the settings, and mends what an earlier process left. Inside a run, the remote is that of the
    /// run's own branch unless a flag names another.
    pub fn begin(session: &'a Session, flags: &Flags) -> Result<Self, AppError> {
        let inside = session.inside();
        let remote =
            flags.remote.clone().or_else(|| inside.as_ref().map(|i| i.remote.clone().unwrap_or(".".into())));
        let settings = session.settings(&Flags { remote, ..flags.clone() })?;
        if let Some(remote) = session.unasked(&settings) {
            // The repository's own configuration says how that remote is reached, and with which programs.
            return Err(AppError::Unasked(remote.to_owned()));
        }
        mend::all(session);
        Ok(Self { session, settings, inside })
    }

    /// Returns the remote whose branch is changed; `None` for a local branch.
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
            refuse_in_turn(&branch, inside)?;
            self.changed(runner.set_state(&branch, declaration, dialect, inside))
        })
    }

    /// Takes or renews a lease by hand.
    pub fn set_working(&self, branch: Option<&OsStr>) -> Result<Written, AppError> {
        self.write(|runner, inside| {
            let branch = self.session.branch_or_current(branch, "set-working -b <branch>")?;
            refuse_in_turn(&branch, inside)?;
            self.changed(runner.set_working(&branch, inside))
        })
    }

    /// Returns the branches that names, patterns or `--all` select, each once. A pattern selects only those
    /// that the verb can be about, and a pattern that selects none is refused before anything is written.
    pub fn choose(&self, names: &[OsString], all: bool, about: About) -> Result<Vec<RefName>, AppError> {
        let is_one = |name: &&OsString| pattern::is_one(name.as_bytes());
        let mut chosen = Vec::new();
        let able = if all || names.iter().any(|name| is_one(&name)) { self.able(about)? } else { Vec::new() };
        for name in names {
            if !is_one(&name) {
                chosen.push(self.session.branch(name)?);
                continue;
            }
            let patterns = [name.as_bytes()];
            let matched: Vec<_> = able.iter().filter(|branch| pattern::any(&patterns, branch)).collect();
            if matched.is_empty() {
                let remote = self.settings.remote.clone();
                return Err(AppError::NoMatch { pattern: name.clone(), about, remote });
            }
            chosen.extend(matched.into_iter().cloned());
        }
        chosen.extend(able.into_iter().filter(|_| all));
        let mut met = HashSet::new();
        chosen.retain(|branch| met.insert(branch.clone()));
        Ok(chosen)
    }

    /// Returns all branches that the verb can be about, but never the one of the run that this process is
    /// inside of.
    fn able(&self, about: About) -> Result<Vec<RefName>, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.reader(&self.settings, &interrupt)?;
        runner.store.refresh()?;
        let mut able = Vec::new();
        runner.store.visit_heads("refs/heads/", &mut |name, read| {
            let event = read.ok().and_then(|commit| Tip::from(commit).event);
            let own = self.inside.as_ref().is_some_and(|inside| inside.branch == name);
            if !own && event.is_some_and(|event| about.can_be(&event)) {
                able.push(name);
            }
        })?;
        able.sort_unstable();
        Ok(able)
    }

    /// Starts what the installed hook would have started for these branches.
    pub fn answer_all(&self, written: &[RefName]) -> Result<(), AppError> {
        background::as_hooks_would(self.session, &self.settings, written)
    }

    /// Takes a lease away; for a pause, where `paused_by` names one.
    pub fn cancel(&self, branch: &RefName, paused_by: Option<MessageId>) -> Result<Written, AppError> {
        self.write(|runner, _| self.changed(runner.cancel(branch, paused_by)))
    }

    /// Asks again for the work of a stalled branch.
    pub fn retry(&self, branch: &RefName) -> Result<Written, AppError> {
        self.write(|runner, inside| self.changed(runner.retry(branch, inside)))
    }

    pub(super) fn changed(&self, written: Result<Written, ChangeError>) -> Result<Written, AppError> {
        written.map_err(|error| AppError::Change { error, remote: self.settings.remote.clone() })
    }

    pub(super) fn write(
        &self,
        write: impl FnOnce(&Runner<'_>, Option<&Inside>) -> Result<Written, AppError>,
    ) -> Result<Written, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        write(&runner, self.inside.as_ref())
    }

    /// Pushes what was written to the remote that the branch is pushed to, or to `origin`. Does nothing where
    /// the branch is a remote's already. `words` are what the remote's hooks say to who pushes, one line each,
    /// whether they take the push or refuse it.
    pub fn push(&self, written: &Written, words: &mut Vec<String>) -> Result<(), AppError> {
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
        match push_branch(repo, &remote, branch, written.commit, &by, words) {
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

/// Returns how the verb that wrote this ends.
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
    /// Makes the line of a change, with its notes in words.
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
