//! `events`: a branch's state events, newest first; with `--follow` as they land, oldest first.
//!
//! A reader that goes away ends the verb, and is no failure. Implements section 13 (`events`), K36.

use super::args::Events;
use super::fail::Failure;
use super::session::{Global, Session};
use super::settings::Flags;
use super::{mend, output};
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::text::escape;
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use serde_json::{Value, json};
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
    let session = Session::open(global)?;
    let settings = session.settings(&Flags { remote: args.remote.clone(), ..Flags::default() })?;
    mend::all(&session);
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let runner = session.reader(&settings, &interrupt)?;
    let branch = session.branch_or_current(args.branch.as_deref(), "events <branch>")?;
    let Some(head) = runner.store.tip(&branch)? else {
        return Err(session.no_branch(&settings, &branch));
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
            let shown = text(&branch, &tip, args.json).is_none_or(|text| lines.offer(&text));
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
    text(branch, tip, as_json).is_none_or(|text| output::offer(&text))
}

fn text(branch: &RefName, tip: &Tip, as_json: bool) -> Option<String> {
    let event = tip.event.as_ref()?;
    Some(if as_json { output::json(&json(branch, tip, event)) } else { line(tip, event) })
}

/// A moment as people and programs read it, in UTC.
pub fn date(seconds: Option<i64>) -> Option<String> {
    let seconds = u64::try_from(seconds?).ok().filter(|s| *s < 253_402_300_800)?;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Some(humantime::format_rfc3339_seconds(at).to_string())
}

fn state_of(event: &Event) -> String {
    match &event.state {
        Ok(state) => state.to_string(),
        Err((raw, _)) => String::from_utf8_lossy(raw).into_owned(),
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

fn json(branch: &RefName, tip: &Tip, event: &Event) -> Value {
    let lossy = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let trailers = event.message.trailers.iter();
    json!({
        "schema": EVENTS_SCHEMA,
        "branch": lossy(branch.short()),
        "commit": tip.id().to_string(),
        "committed": tip.commit.committed,
        "date": date(tip.commit.committed),
        "state": state_of(event),
        "valid": event.state.is_ok(),
        "subject": lossy(&event.message.subject),
        "body": lossy(&event.message.body),
        "run_id": run_of(event),
        "runner_id": event.text(RUNNER_ID),
        "trigger": event.trigger().map(|id| id.to_string()),
        "origin_state": event.text(ORIGIN_STATE),
        "hop": event.hop(),
        "dialect": event.dialect.name(),
        "parents": tip.commit.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "trailers": trailers.map(|t| json!({"key": t.key, "value": lossy(&t.value)})).collect::<Vec<_>>(),
    })
}
