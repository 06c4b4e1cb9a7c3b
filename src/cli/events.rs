//! `events`: a branch's state events, newest first; with `--follow` as they land, oldest first.
//!
//! A reader that goes away ends the verb, and is no failure. Implements section 13 (`events`), K36.

use super::args::Events;
use super::fail::Failure;
use super::output::{self, Shown};
use super::session::Global;
use crate::app::config::Flags;
use crate::app::mend;
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::text::escape;
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

/// The schema of an event.
pub const EVENTS_SCHEMA: &str = "aynig.events/1";
/// How many earlier events `--follow` begins with.
const FOLLOW_FROM: usize = 10;
/// How many it shows at most between two looks.
const AT_ONCE: usize = 1000;
/// How often `--follow` looks at the branch: here, and on a remote.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);

/// `git aynig events`.
pub fn run(global: &Global, args: &Events) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: args.remote.clone(), ..Flags::default() })?;
    mend::all(&session);
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let runner = session.reader(&settings, &interrupt)?;
    let branch = session.branch_or_current(args.branch.as_deref(), "events <branch>")?;
    let Some(head) = runner.store.tip(&branch)? else {
        return Err(session.no_branch(&settings, &branch).into());
    };
    if args.follow {
        return follow(&runner, &branch, head, args);
    }
    let (mut left, mut any) = (args.n.unwrap_or(usize::MAX), false);
    if left > 0 {
        let mut lines = output::Lines::begin();
        runner.walk(head, &HashSet::new(), &mut |tip| {
            if !args.history && is_lease(&tip) {
                return true;
            }
            (left, any) = (left - 1, true);
            let Some(event) = &tip.event else { return true };
            let shown = match args.json {
                true => lines.offer_json(&EventLine::of(&branch, &tip, event)),
                false => lines.offer(&line(&tip, event)),
            };
            shown && left > 0
        })?;
    }
    if !any && !global.quiet && args.n != Some(0) {
        output::note(&format!("'{}' has no state events", escape(branch.short())));
    }
    Ok(0)
}

fn is_lease(tip: &Tip) -> bool {
    tip.event.as_ref().is_some_and(Event::is_working)
}

/// Shows what is there, then what lands, until a signal or until nobody reads any more.
fn follow(runner: &Runner<'_>, branch: &RefName, head: ObjectId, args: &Events) -> Result<i32, Failure> {
    let mut known = HashSet::new();
    let mut seen: Option<ObjectId> = None;
    let mut next = Some(head);
    let mut limit = args.n.unwrap_or(FOLLOW_FROM);
    loop {
        if let Some(id) = next
            && next != seen
        {
            let walked = runner.newest(id, args.history, limit, &known)?;
            known.insert(id);
            known.extend(walked.events.iter().map(Tip::id));
            let showed = walked.events.iter().rev().all(|tip| show(branch, tip, args.json));
            if !showed {
                return Ok(0);
            }
            seen = next;
            // A branch that was put elsewhere meets nothing known: no more of it than this.
            limit = AT_ONCE;
        }
        let remote = runner.settings.remote.is_some();
        runner.interrupt.wait(if remote { REMOTE_LOOK_EVERY } else { LOOK_EVERY });
        match runner.interrupt.signal() {
            Some(2) => return Ok(130),
            Some(_) => return Ok(143),
            None if output::reader_gone() => return Ok(0),
            None => next = runner.store.tip(branch)?,
        }
    }
}

fn show(branch: &RefName, tip: &Tip, as_json: bool) -> bool {
    tip.event.as_ref().is_none_or(|event| {
        output::offer(&match as_json {
            true => output::json(&EventLine::of(branch, tip, event)),
            false => line(tip, event),
        })
    })
}

/// A moment as people and programs read it, in UTC.
pub fn date(seconds: Option<i64>) -> Option<String> {
    moment(seconds).map(|moment| moment.to_string())
}

fn moment(seconds: Option<i64>) -> Option<humantime::Rfc3339Timestamp> {
    let seconds = u64::try_from(seconds?).ok().filter(|s| *s < 253_402_300_800)?;
    Some(humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)))
}

fn state_of(event: &Event) -> Cow<'_, str> {
    match &event.state {
        Ok(state) => state.as_str().into(),
        Err((raw, _)) => String::from_utf8_lossy(raw),
    }
}

fn run_of(event: &Event) -> Option<&str> {
    event.text(RUN_ID).or_else(|| event.text(STALLED_RUN))
}

fn line(tip: &Tip, event: &Event) -> String {
    let date = date(tip.commit.committed).unwrap_or_else(|| "no date".to_owned());
    let date = date.replace('T', " ");
    let state: String = state_of(event).chars().take(80).collect();
    let mut line = format!(
        "{}  {date}  {:<8}  {}",
        tip.id().short(10),
        escape(state.as_bytes()),
        escape(&event.message.subject)
    );
    let mut about = Vec::new();
    if let Some(run) = run_of(event) {
        about.push(format!("run {}", escape(run.as_bytes()).chars().take(8).collect::<String>()));
    }
    if let Some(trigger) = event.trigger() {
        let origin = event.text(ORIGIN_STATE).map(|s| format!("{} ", escape(s.as_bytes())));
        about.push(format!("answers {}{}", origin.unwrap_or_default(), trigger.short(10)));
    }
    if !about.is_empty() {
        line += &format!("  ({})", about.join(", "));
    }
    line
}

/// An event as programs read it.
#[derive(Serialize)]
struct EventLine<'a> {
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
    fn of(branch: &'a RefName, tip: &'a Tip, event: &'a Event) -> Self {
        Self {
            schema: EVENTS_SCHEMA,
            branch: String::from_utf8_lossy(branch.short()),
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
