//! `events`: a branch's state events, and what programs are told of each: schema `aynig.events/1`.
//!
//! [`Reading::list`] gives them newest first, [`Reading::follow`] those that are there and then each as it lands, oldest first. The
//! reader of either says false once it wants no more. Implements section 13 (`events`).

use super::config::Flags;
use super::session::Session;
use super::shown::{Shown, short};
use super::{AppError, Exit, mend};
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::runner::settings::Settings;
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

/// The schema of an event.
pub const EVENTS_SCHEMA: &str = "aynig.events/1";
/// How many earlier events [`Reading::follow`] begins with.
const FOLLOW_FROM: usize = 10;
/// How many it gives at most between two looks.
const AT_ONCE: usize = 1000;
/// How often [`Reading::follow`] looks at the branch: here, and on a remote.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);

/// A branch whose events are read.
pub struct Reading<'a> {
    /// The branch.
    pub branch: RefName,
    runner: Runner<'a>,
    head: ObjectId,
}

/// The settings of the verb, once what an earlier process left is mended.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    Ok(settings)
}

/// Finds the branch: named, or the current one.
pub fn open<'a>(
    session: &'a Session,
    settings: &'a Settings,
    interrupt: &'a Interrupt,
    branch: Option<&OsStr>,
) -> Result<Reading<'a>, AppError> {
    let runner = session.reader(settings, interrupt)?;
    let branch = session.branch_or_current(branch, "events <branch>")?;
    match runner.store.tip(&branch)? {
        Some(head) => Ok(Reading { branch, runner, head }),
        None => Err(session.no_branch(settings, &branch)),
    }
}

impl Reading<'_> {
    /// At most `most` events, newest first; with `history`, leases and renewals too. False where there is none.
    pub fn list(
        &self,
        history: bool,
        most: usize,
        mut show: impl FnMut(&Tip, &Event) -> bool,
    ) -> Result<bool, AppError> {
        let (mut left, mut any) = (most, false);
        if left > 0 {
            self.runner.walk(self.head, &HashSet::new(), &mut |tip| {
                let Some(event) = &tip.event else { return true };
                if !history && event.is_working() {
                    return true;
                }
                (left, any) = (left - 1, true);
                show(&tip, event) && left > 0
            })?;
        }
        Ok(any)
    }

    /// The last events, 10 unless `most` says otherwise, and then each that lands, oldest first, until a signal
    /// comes or the reader is gone.
    pub fn follow(
        &self,
        history: bool,
        most: Option<usize>,
        mut show: impl FnMut(&Tip, &Event) -> bool,
        is_gone: impl Fn() -> bool,
    ) -> Result<Exit, AppError> {
        let runner = &self.runner;
        let mut known = HashSet::new();
        let mut seen: Option<ObjectId> = None;
        let mut next = Some(self.head);
        let mut limit = most.unwrap_or(FOLLOW_FROM);
        loop {
            if let Some(id) = next
                && next != seen
            {
                let walked = runner.newest(id, history, limit, &known)?;
                known.insert(id);
                known.extend(walked.events.iter().map(Tip::id));
                let mut events = walked.events.iter().rev();
                if !events.all(|tip| tip.event.as_ref().is_none_or(|event| show(tip, event))) {
                    return Ok(Exit::Done);
                }
                seen = next;
                // A branch that was put elsewhere meets nothing known: no more of it than this.
                limit = AT_ONCE;
            }
            let remote = runner.settings.remote.is_some();
            runner.interrupt.wait(if remote { REMOTE_LOOK_EVERY } else { LOOK_EVERY });
            match runner.interrupt.signal() {
                Some(signal) => return Ok(Exit::of_signal(signal)),
                None if is_gone() => return Ok(Exit::Done),
                None => next = runner.store.tip(&self.branch)?,
            }
        }
    }
}

/// A moment as people and programs read it, in UTC.
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
}

fn each_id<S: Serializer>(ids: &&[ObjectId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(Shown))
}

fn each_trailer<S: Serializer>(trailers: &&[Trailer], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pair<'a> {
        key: &'a str,
        value: Cow<'a, str>,
    }
    fn pair(trailer: &Trailer) -> Pair<'_> {
        Pair { key: &trailer.key, value: String::from_utf8_lossy(&trailer.value) }
    }
    serializer.collect_seq(trailers.iter().map(pair))
}

impl<'a> EventLine<'a> {
    /// The line of an event on this branch.
    pub fn of(branch: &'a RefName, tip: &'a Tip, event: &'a Event) -> Self {
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
        }
    }
}
