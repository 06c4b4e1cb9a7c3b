//! `events`: a branch's state events, or those of all, and what programs are told of each: schema `aynig.events/1`.
//!
//! [`Reading::list`] gives events newest first; [`Reading::follow`] gives the latest ones and then each new
//! one as it lands, oldest first. The callback of either returns false once its reader wants no more.
//! Implements git-aynig-events(1), K55 (`--all`, `--since`, durations).

use super::config::{self, Flags};
use super::session::Session;
use super::shown::{Shown, each_trailer, short};
use super::{AppError, Exit, Misuse, mend};
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::StateName;
use crate::runner::settings::Settings;
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

pub const EVENTS_SCHEMA: &str = "aynig.events/1";
/// How many earlier events [`Reading::follow`] begins with, unless the caller says otherwise.
const FOLLOW_FROM: usize = 10;
/// Most events of a branch that [`Reading::follow`] gives at one look.
const AT_ONCE: usize = 1000;
/// How often [`Reading::follow`] looks: at one local branch, at all of them, and at a remote.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const ALL_LOOK_EVERY: Duration = Duration::from_secs(1);
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);

/// A branch is read no further once more events in a row than this are too old. Fewer do not end the reading,
/// since dates need not be in order.
const OLDER_MAX: usize = 10;

/// Branches whose events are read.
pub struct Reading<'a> {
    branches: Vec<(RefName, ObjectId)>,
    /// True where these are all branches.
    all: bool,
    runner: Runner<'a>,
    filter: Filter,
}

/// Which events are wanted.
#[derive(Debug, Default)]
pub struct Filter {
    /// Include leases and renewals.
    pub history: bool,
    /// Only events that were committed no earlier, in seconds since 1970.
    pub since: Option<i64>,
    /// Only events of these states; empty for all.
    pub states: Vec<StateName>,
}

impl Filter {
    fn wants(&self, tip: &Tip, event: &Event) -> bool {
        let is_named = event.state_name().is_some_and(|state| self.states.contains(state));
        let is_state = if self.states.is_empty() { self.history || !event.is_working() } else { is_named };
        is_state && !self.is_older(tip)
    }

    fn is_older(&self, tip: &Tip) -> bool {
        self.since.is_some_and(|since| tip.commit.committed.is_none_or(|at| at < since))
    }
}

/// Returns the time that `--since` names, in seconds since 1970: a duration before now, a day, or a point in
/// time.
pub fn since(text: &str) -> Result<i64, AppError> {
    let now = SystemTime::now();
    let day = || humantime::parse_rfc3339_weak(&format!("{} 00:00:00", text.trim())).ok();
    let moment = match config::duration(text) {
        Some(ago) => now.checked_sub(ago),
        None => humantime::parse_rfc3339_weak(text.trim()).ok().or_else(day),
    };
    let seconds = moment.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = seconds.and_then(|since| i64::try_from(since.as_secs()).ok());
    seconds.ok_or_else(|| Misuse::Since(text.to_owned()).into())
}

/// Reads the settings of the verb, and mends what an earlier process left.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    Ok(settings)
}

/// Finds the branch: the named one, else the run's own, else the current one.
pub fn open<'a>(
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    branch: Option<&OsStr>,
    filter: Filter,
) -> Result<Reading<'a>, AppError> {
    let runner = session.reader(settings, interrupt)?;
    let branch = session.branch_or_current(branch, "events <branch>")?;
    match runner.store.tip(&branch)? {
        Some(head) => Ok(Reading { branches: vec![(branch, head)], all: false, runner, filter }),
        None => Err(session.no_branch(settings, &branch)),
    }
}

/// Finds all branches.
pub fn open_all<'a>(
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    filter: Filter,
) -> Result<Reading<'a>, AppError> {
    let runner = session.reader(settings, interrupt)?;
    runner.store.refresh()?;
    let branches = runner.store.scan("refs/heads/")?;
    Ok(Reading { branches, all: true, runner, filter })
}

impl Reading<'_> {
    /// Returns the branch, where only one is read.
    pub fn branch(&self) -> Option<&RefName> {
        if let [(branch, _)] = &*self.branches { Some(branch) } else { None }
    }

    /// Returns the length of the longest branch name, in characters.
    pub fn width(&self) -> usize {
        let length =
            |(branch, _): &(RefName, ObjectId)| String::from_utf8_lossy(branch.short()).chars().count();
        self.branches.iter().map(length).max().unwrap_or(0)
    }

    /// Shows at most `most` events, newest first. Returns false where there is none.
    pub fn list(&self, most: usize, mut show: impl FnMut(&Told<'_>) -> bool) -> Result<bool, AppError> {
        let mut known = HashSet::new();
        if let [(branch, head)] = &*self.branches {
            let (mut left, mut any) = (most, false);
            if left > 0 {
                self.walk(*head, &mut known, &mut |tip| {
                    (left, any) = (left - 1, true);
                    self.tell(branch, tip, &mut show) && left > 0
                })?;
            }
            return Ok(any);
        }
        let mut all: Vec<(&RefName, Tip)> = Vec::new();
        for (branch, head) in &self.branches {
            self.walk(*head, &mut known, &mut |tip| {
                all.push((branch, tip.clone()));
                true
            })?;
        }
        // Events of one branch that have the same date stay in their order: the sort is stable.
        all.sort_by_key(|(_, tip)| std::cmp::Reverse(tip.commit.committed));
        all.truncate(most);
        let _ = all.iter().all(|(branch, tip)| self.tell(branch, tip, &mut show));
        Ok(!all.is_empty())
    }

    fn tell(&self, branch: &RefName, tip: &Tip, show: &mut impl FnMut(&Told<'_>) -> bool) -> bool {
        let Some(event) = &tip.event else { return true };
        show(&Told { branch, tip, event, took: self.runner.took(tip) })
    }

    /// Passes the wanted events to `told`, newest first, down to one in `known`: branches share history.
    fn walk(
        &self,
        head: ObjectId,
        known: &mut HashSet<ObjectId>,
        told: &mut dyn FnMut(&Tip) -> bool,
    ) -> Result<(), AppError> {
        let (mut older, mut met) = (0, Vec::new());
        self.runner.walk(head, known, &mut |tip| {
            let Some(event) = &tip.event else { return true };
            met.push(tip.id());
            older = if self.filter.is_older(&tip) { older + 1 } else { 0 };
            older <= OLDER_MAX && (!self.filter.wants(&tip, event) || told(&tip))
        })?;
        known.extend(met);
        Ok(())
    }

    /// Shows the latest events (10, unless `most` says otherwise), and then each new one as it lands, oldest
    /// first, until a signal comes or the reader is gone.
    pub fn follow(
        &self,
        most: Option<usize>,
        mut show: impl FnMut(&Told<'_>) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let (mut known, mut seen) = (HashSet::new(), HashMap::new());
        let mut heads = self.branches.clone();
        let mut limit = most.unwrap_or(FOLLOW_FROM);
        loop {
            let mut events: Vec<(&RefName, Tip)> = Vec::new();
            for (branch, head) in &heads {
                if seen.insert(branch.clone(), *head) == Some(*head) {
                    continue;
                }
                let mut left = limit;
                if left > 0 {
                    self.walk(*head, &mut known, &mut |tip| {
                        events.push((branch, tip.clone()));
                        left -= 1;
                        left > 0
                    })?;
                }
                known.insert(*head);
            }
            if self.all {
                events.sort_by_key(|(_, tip)| std::cmp::Reverse(tip.commit.committed));
                events.truncate(limit);
            }
            if !events.iter().rev().all(|(branch, tip)| self.tell(branch, tip, &mut show)) {
                return Ok(Exit::Done);
            }
            // The history of a branch that was moved elsewhere leads to no known event, so no more of it than
            // this is shown.
            limit = AT_ONCE;
            let runner = &self.runner;
            runner.interrupt.wait(match (runner.settings.remote.is_some(), self.all) {
                (true, _) => REMOTE_LOOK_EVERY,
                (false, true) => ALL_LOOK_EVERY,
                (false, false) => LOOK_EVERY,
            });
            match runner.interrupt.signal() {
                Some(signal) => return Ok(Exit::of_signal(signal)),
                None if is_gone() => return Ok(Exit::Done),
                None => heads = self.heads()?,
            }
        }
    }

    /// Returns the heads of the branches as they are now; where all are read, those of new branches too.
    fn heads(&self) -> Result<Vec<(RefName, ObjectId)>, AppError> {
        let store = &self.runner.store;
        if self.all {
            store.refresh()?;
            return Ok(store.scan("refs/heads/")?);
        }
        let mut heads = Vec::new();
        for (branch, _) in &self.branches {
            heads.extend(store.tip(branch)?.map(|head| (branch.clone(), head)));
        }
        Ok(heads)
    }
}

/// An event that is shown.
pub struct Told<'a> {
    /// Its branch, or one of those that have it.
    pub branch: &'a RefName,
    /// Its commit.
    pub tip: &'a Tip,
    /// The event that the commit holds.
    pub event: &'a Event,
    /// How long the run that the event ended took, in seconds.
    pub took: Option<i64>,
}

/// Formats a time in UTC, as people and programs read it.
pub fn date(seconds: Option<i64>) -> Option<String> {
    moment(seconds).map(|moment| moment.to_string())
}

fn moment(seconds: Option<i64>) -> Option<humantime::Rfc3339Timestamp> {
    let seconds = u64::try_from(seconds?).ok().filter(|s| *s < 253_402_300_800)?;
    Some(humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)))
}

pub fn state_of(event: &Event) -> Cow<'_, str> {
    match &event.state {
        Ok(state) => state.as_str().into(),
        Err((raw, _)) => String::from_utf8_lossy(raw),
    }
}

pub fn run_of(event: &Event) -> Option<&str> {
    event.text(RUN_ID).or_else(|| event.text(STALLED_RUN))
}

/// An event as programs read it.
#[derive(Serialize)]
pub struct EventLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    commit: Shown<ObjectId>,
    committed: Option<i64>,
    date: Option<Shown<humantime::Rfc3339Timestamp>>,
    state: Cow<'a, str>,
    valid: bool,
    subject: Cow<'a, str>,
    body: Cow<'a, str>,
    run_id: Option<&'a str>,
    runner_id: Option<&'a str>,
    trigger: Option<Shown<ObjectId>>,
    origin_state: Option<&'a str>,
    hop: u32,
    dialect: &'static str,
    #[serde(serialize_with = "each_id")]
    parents: &'a [ObjectId],
    #[serde(serialize_with = "each_trailer")]
    trailers: &'a [Trailer],
    seconds: Option<i64>,
}

fn each_id<S: Serializer>(ids: &&[ObjectId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(Shown))
}

impl<'a> EventLine<'a> {
    /// Makes the line of an event on this branch.
    pub fn of(told: &Told<'a>) -> Self {
        let Told { branch, tip, event, took } = *told;
        Self {
            schema: EVENTS_SCHEMA,
            branch: short(branch),
            commit: Shown(tip.id()),
            committed: tip.commit.committed,
            date: moment(tip.commit.committed).map(Shown),
            state: state_of(event),
            valid: event.state.is_ok(),
            subject: String::from_utf8_lossy(&event.message.subject),
            body: String::from_utf8_lossy(&event.message.body),
            run_id: run_of(event),
            runner_id: event.text(RUNNER_ID),
            trigger: event.trigger().map(Shown),
            origin_state: event.text(ORIGIN_STATE),
            hop: event.hop(),
            dialect: event.dialect.name(),
            parents: &tip.commit.parents,
            trailers: &event.message.trailers,
            seconds: took,
        }
    }
}
