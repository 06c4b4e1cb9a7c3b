//! `wait`: returns once a branch rests, or was in a state that is waited for: schema `aynig.wait/1`.
//!
//! A branch rests where its head is no lease, and nothing will be done about it by itself. [`wait`] reads the
//! head when local refs may have moved, and asks a remote every few seconds. A state that the branch passed
//! between two looks counts too: the commits between them are read. Implements K55 (`wait`).

use super::config::{self, Flags};
use super::events::state_of;
use super::session::Session;
use super::shown::{Shown, short};
use super::status::{by_a_run, standing_name};
use super::{AppError, Exit, Misuse, Warning, mend};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::name::{STALLED, StateName};
use crate::runner::settings::Settings;
use crate::runner::survey::{BranchStatus, Standing, Survey};
use crate::runner::{Runner, Tip};
use crate::store::watch::Watch;
use crate::store::{RefName, StoreError};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// The schema of how a wait ended.
pub const WAIT_SCHEMA: &str = "aynig.wait/1";

/// How often to check whether refs may have moved, and how often to ask a remote.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);
/// After how long a head that did not move is judged again: what answers its state, or whether that may run,
/// can change.
const JUDGE_EVERY: Duration = Duration::from_secs(10);
/// Most state events that are read at one look.
const PASSED_MAX: usize = 1000;

/// What is waited for.
pub struct Request<'a> {
    pub branch: &'a OsStr,
    /// The states that end the wait; empty to wait until the branch rests.
    pub states: Vec<StateName>,
    /// How long to wait at most.
    pub timeout: Option<Duration>,
    /// The remote whose branch it is.
    pub remote: Option<String>,
}

/// How a wait ended.
pub struct Waited {
    /// The branch as it is now.
    pub status: BranchStatus,
    /// What ended it.
    pub reached: Reached,
    /// How long it took.
    pub took: Duration,
    /// The settings that were used.
    pub settings: Settings,
    /// The time at which the wait ended, in seconds since 1970.
    pub now: i64,
}

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// The branch rests.
    Rest,
    /// The branch was in a state that is waited for, and the commit that says so.
    State(ObjectId, StateName),
    /// A run on it stalled, and nothing answers that.
    Stalled,
    /// Its state has a command that is not dispatched here.
    Refused,
    /// The time that was given is over.
    Late,
    /// A signal came.
    Signal(i32),
}

impl Reached {
    /// Returns its name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Reached::Rest => "rest",
            Reached::State(..) => "state",
            Reached::Stalled => "stalled",
            Reached::Refused => "refused",
            Reached::Late => "timeout",
            Reached::Signal(_) => "signal",
        }
    }

    /// Returns how the verb ends.
    pub fn exit(&self) -> Exit {
        match self {
            Reached::Rest | Reached::State(..) => Exit::Done,
            Reached::Stalled => Exit::Unfinished,
            Reached::Refused => Exit::Refused,
            Reached::Late => Exit::Later,
            Reached::Signal(signal) => Exit::of_signal(*signal),
        }
    }
}

/// Reads the states that `--for` names. `working` is among those that it may name: leases have it.
pub fn states(names: &[String]) -> Result<Vec<StateName>, AppError> {
    let read = |name: &String| {
        let wrong = |why: String| Misuse::State { state: name.clone(), why };
        StateName::new(name).map_err(|why| wrong(why.to_string()).into())
    };
    names.iter().map(read).collect()
}

/// Reads how long `--timeout` allows.
pub fn timeout(text: Option<&str>) -> Result<Option<Duration>, AppError> {
    let read = |text: &str| config::duration(text).ok_or_else(|| Misuse::Duration(text.to_owned()).into());
    text.map(read).transpose()
}

/// Waits until the branch rests or was in a wanted state, or until the time is over or a signal comes.
pub fn wait(session: &Session, request: &Request<'_>) -> Result<Waited, AppError> {
    let begun = Instant::now();
    let settings = session.settings(&Flags { remote: request.remote.clone(), ..Flags::default() })?;
    if let Some(remote) = session.unasked(&settings) {
        // What is known of a remote that is not asked never changes.
        return Err(AppError::Unasked(remote.to_owned()));
    }
    mend::all(session);
    let branch = session.branch(request.branch)?;
    let interrupt = Interrupt::by_signals()?;
    let (status, reached, now) = {
        let runner = session.reader(&settings, &interrupt)?;
        let deadline = request.timeout.and_then(|timeout| begun.checked_add(timeout));
        let watch = settings.remote.is_none().then(|| Watch::new(&session.repo, &["refs/heads"]));
        let mut waiting =
            Waiting { session, runner: &runner, request, branch: &branch, watch, deadline, told: false };
        let (status, reached) = waiting.end()?;
        (status, reached, runner.clock.now())
    };
    Ok(Waited { status, reached, took: begun.elapsed(), settings, now })
}

struct Waiting<'a> {
    session: &'a Session,
    runner: &'a Runner<'a>,
    request: &'a Request<'a>,
    branch: &'a RefName,
    watch: Option<Watch>,
    deadline: Option<Instant>,
    /// True once the user was told that the remote can't be asked.
    told: bool,
}

impl Waiting<'_> {
    fn end(&mut self) -> Result<(BranchStatus, Reached), AppError> {
        let gone = || self.session.no_branch(self.runner.settings, self.branch);
        let (mut head, mut before) = (self.runner.store.tip(self.branch)?.ok_or_else(gone)?, None);
        loop {
            let status = Survey::new(self.runner)?.one(self.branch)?.ok_or_else(gone)?;
            let reached = match self.passed(&status.tip, before)? {
                Some(reached) => Some(reached),
                None => self.judge(&status),
            };
            if let Some(reached) = reached {
                return Ok((status, reached));
            }
            (before, head) = match self.next(head)? {
                Next::Look(None) => return Err(gone()),
                Next::Look(Some(next)) => (Some(status.tip.id()), next),
                Next::End(reached) => return Ok((status, reached)),
            };
        }
    }

    /// Returns the wanted state, where the branch is in it or passed it since the last look.
    fn passed(&self, tip: &Tip, before: Option<ObjectId>) -> Result<Option<Reached>, StoreError> {
        let wanted = |tip: &Tip| {
            let state = tip.event.as_ref().and_then(Event::state_name)?;
            self.request.states.contains(state).then(|| Reached::State(tip.id(), state.clone()))
        };
        let (Some(before), false) = (before.filter(|id| *id != tip.id()), self.request.states.is_empty())
        else {
            return Ok(wanted(tip));
        };
        let walked = self.runner.newest(tip.id(), true, PASSED_MAX, &HashSet::from([before]))?;
        // A branch that was moved elsewhere passed no state on its way.
        let passed = if walked.met { walked.events.iter().find_map(wanted) } else { None };
        Ok(wanted(tip).or(passed))
    }

    /// Returns how the head alone ends the wait, if it does.
    fn judge(&self, status: &BranchStatus) -> Option<Reached> {
        let for_any = self.request.states.is_empty();
        let is_stalled =
            |event: &&Event| event.state_name().is_some_and(|s| s.as_str() == STALLED) && by_a_run(event);
        match &status.standing {
            Standing::Waits if status.tip.event.as_ref().filter(is_stalled).is_some() => {
                Some(Reached::Stalled)
            }
            Standing::NoState | Standing::InvalidState(..) | Standing::Waits => {
                for_any.then_some(Reached::Rest)
            }
            // A runner elsewhere may judge a remote's branch otherwise.
            Standing::NotTrusted | Standing::LeftOut | Standing::Unusable(..) | Standing::HopLimit { .. } => {
                self.runner.settings.remote.is_none().then_some(Reached::Refused)
            }
            Standing::Ready | Standing::Held(_) | Standing::Leased { .. } | Standing::Expired { .. } => None,
        }
    }

    /// Waits until there is something to judge again.
    fn next(&mut self, head: ObjectId) -> Result<Next, AppError> {
        let every = if self.watch.is_some() { LOOK_EVERY } else { REMOTE_LOOK_EVERY };
        let judge_at = Instant::now() + JUDGE_EVERY;
        loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Next::End(Reached::Late));
            }
            self.runner.interrupt.wait(left.map_or(every, |left| left.min(every)));
            if let Some(signal) = self.runner.interrupt.signal() {
                return Ok(Next::End(Reached::Signal(signal)));
            }
            let due = Instant::now() >= judge_at;
            if !due && self.watch.as_mut().is_some_and(|watch| !watch.has_moved()) {
                continue;
            }
            match self.runner.store.tip(self.branch) {
                Ok(tip) if due || tip != Some(head) => return Ok(Next::Look(tip)),
                Ok(_) => self.told = false,
                Err(error) => self.tell(error.into())?,
            }
        }
    }

    /// Warns once that a remote can't be asked just now; any other error ends the wait.
    fn tell(&mut self, error: AppError) -> Result<(), AppError> {
        if self.watch.is_some() || Exit::from(&error) != Exit::Later {
            return Err(error);
        }
        if !self.told {
            self.session.warn(Warning::Failed(error));
        }
        self.told = true;
        Ok(())
    }
}

enum Next {
    /// The branch's head now; `None` where the branch is gone.
    Look(Option<ObjectId>),
    End(Reached),
}

/// How a wait ended, as programs read it.
#[derive(Serialize)]
pub struct WaitLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    reached: &'static str,
    commit: Shown<ObjectId>,
    state: Option<Cow<'a, str>>,
    standing: &'static str,
    seconds: f64,
}

impl<'a> WaitLine<'a> {
    /// Makes the line of a wait.
    pub fn of(waited: &'a Waited) -> Self {
        let (status, reached) = (&waited.status, &waited.reached);
        let (commit, state) = match reached {
            Reached::State(commit, state) => (*commit, Some(state.as_str().into())),
            Reached::Rest | Reached::Stalled | Reached::Refused | Reached::Late | Reached::Signal(_) => {
                (status.tip.id(), status.tip.event.as_ref().map(state_of))
            }
        };
        Self {
            schema: WAIT_SCHEMA,
            branch: short(&status.branch),
            reached: reached.name(),
            commit: Shown(commit),
            state,
            standing: standing_name(&status.standing),
            seconds: (waited.took.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }
}
