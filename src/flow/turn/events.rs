//! What a turn reports while it runs: lines of `AYNIG_EVENTS`, and those of them that are kept.
//!
//! A line is one of the contract's events without its envelope, with `ts`, the time of the report. What only
//! streams (pieces of a message or a thought) is in the file alone; everything else is kept too, in the same
//! order, so that both number alike. Pieces that follow one another within a moment are joined: the first is
//! written at once, the later ones as one line at the moment's end. What a turn used is a line of the
//! kernel's own, so it counts however the turn ends. Implements N4 (events), K48a, W6 (text that streams).

use crate::contract::event::Body;
use crate::contract::id::NodeId;
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::words::TurnStatus;
use crate::runner::clock::Clock;
use crate::store::beneath::apart;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write;
use std::mem::discriminant;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long after a piece was written the pieces that follow are joined into one line.
const MOMENT: Duration = Duration::from_millis(50);
/// Most bytes of such a line of pieces.
const PIECES_MAX: usize = 64 << 10;
/// Most bytes of lines that are kept; later lines are in the file alone.
const KEPT_MAX: usize = 32 << 20;
/// Most bytes of lines that only stream; the whole of what they say follows.
const STREAMED_MAX: usize = 32 << 20;
/// Most bytes of the program's own log lines; its transcript has all of them.
const LOGGED_MAX: usize = 2 << 20;

/// The event lines of a turn.
pub struct Events<'a> {
    /// `None` where the file can't be written.
    file: Option<File>,
    kept: Vec<u8>,
    full: bool,
    streamed: usize,
    logged: usize,
    /// How many of the program's log lines were left out.
    left_out: u64,
    /// Until when streamed pieces are gathered.
    moment: Option<Instant>,
    /// The pieces that were gathered, and when the first of them came.
    gathered: Option<(Body, Time)>,
    clock: &'a dyn Clock,
}

/// Returns the text of a piece; `None` where the event is no piece.
fn piece(body: &mut Body) -> Option<&mut String> {
    if let Body::MessageDelta { delta, .. } | Body::ThinkingDelta { delta, .. } = body {
        Some(delta)
    } else {
        None
    }
}

impl<'a> Events<'a> {
    /// Opens the file at this path; where it can't be written, lines are only kept.
    pub fn new(path: Option<&Path>, clock: &'a dyn Clock) -> Self {
        let open = |path: &Path| {
            let (folder, name) = apart(path).ok()?;
            folder.append(name, 0o600).ok()
        };
        Self {
            file: path.and_then(open),
            kept: Vec::new(),
            full: false,
            streamed: 0,
            logged: 0,
            left_out: 0,
            moment: None,
            gathered: None,
            clock,
        }
    }

    /// Reports an event.
    pub fn say(&mut self, body: &Body) {
        let at = Time(i64::try_from(self.clock.millis()).unwrap_or(i64::MAX));
        if matches!(body, Body::MessageDelta { .. } | Body::ThinkingDelta { .. }) {
            self.stream(body.clone(), at);
            return;
        }
        self.flush();
        let Some(line) = said(body, at) else { return };
        if matches!(body, Body::NodeLog { .. }) {
            self.logged += line.len();
            if self.logged > LOGGED_MAX {
                self.left_out += 1;
                return;
            }
        }
        self.write(&line);
        if self.full {
            return;
        }
        // Once a line is left out, so are all that follow, so that what is kept is a beginning without gaps.
        self.full = self.kept.len() + line.len() > KEPT_MAX;
        if !self.full {
            self.kept.extend_from_slice(&line);
        }
    }

    /// Writes a piece at once, or gathers it with those before it.
    fn stream(&mut self, mut body: Body, at: Time) {
        let now = self.clock.instant();
        let waits = self.moment.is_some_and(|end| now < end);
        let same = |(before, _): &&mut (Body, Time)| discriminant(before) == discriminant(&body);
        match self.gathered.as_mut().filter(same).and_then(|(before, _)| piece(before)) {
            Some(text) => text.push_str(piece(&mut body).map_or("", |more| more)),
            None => {
                self.flush();
                self.gathered = Some((body, at));
            }
        }
        let is_long = self.gathered.as_mut().and_then(|(body, _)| piece(body));
        if !waits || is_long.is_some_and(|text| text.len() > PIECES_MAX) {
            self.flush();
        }
        self.moment.get_or_insert(now + MOMENT);
    }

    /// Writes the pieces that were gathered.
    pub fn flush(&mut self) {
        self.moment = None;
        let Some(line) = self.gathered.take().and_then(|(body, at)| said(&body, at)) else { return };
        self.streamed += line.len();
        if self.streamed <= STREAMED_MAX {
            self.write(&line);
        }
    }

    /// Returns when the gathered pieces are to be written; `None` where there are none.
    pub fn due(&self) -> Option<Instant> {
        self.moment.filter(|_| self.gathered.is_some())
    }

    /// Writes the gathered pieces if their moment is over.
    pub fn look(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.flush();
            self.moment = Some(now + MOMENT);
        }
    }

    /// Reports each of these events.
    pub fn say_all(&mut self, bodies: &[Body]) {
        bodies.iter().for_each(|body| self.say(body));
    }

    /// Reports why the turn failed.
    pub fn failed(&mut self, node_id: NodeId, why: &str) {
        let detail = Some(shown::line(why.as_bytes()));
        self.say(&Body::TurnStatus { node_id, status: TurnStatus::Failed, detail });
    }

    /// Reports what the turn is doing, for users who look at the branch.
    pub fn progress(&mut self, text: &str) {
        if let Value::Object(fields) = json!({"type": "progress", "text": text}) {
            self.write(&line(fields));
        }
    }

    /// Reports what was used since the last such report.
    pub fn used(&mut self, usage: &crate::protocol::usage::Usage) {
        let mut fields = Map::new();
        fields.insert("type".to_owned(), "usage".into());
        fields.insert("input_tokens".to_owned(), usage.input.into());
        fields.insert("output_tokens".to_owned(), usage.output.into());
        if let Some(cost) = usage.cost {
            fields.insert("cost_usd".to_owned(), cost.to_string().into());
        }
        for (key, name) in [("model", &usage.model), ("provider", &usage.provider)] {
            if let Some(name) = name {
                fields.insert(key.to_owned(), name.as_str().into());
            }
        }
        self.write(&line(fields));
    }

    fn write(&mut self, line: &[u8]) {
        if let Some(file) = &mut self.file
            && file.write_all(line).is_err()
        {
            // A full disk costs the lines, not the turn.
            self.file = None;
        }
    }

    /// Returns how many of the program's log lines were left out, and makes room for a log line that says so;
    /// called once, at the end.
    pub fn left_out(&mut self) -> u64 {
        self.logged = 0;
        std::mem::take(&mut self.left_out)
    }

    /// Returns the lines that are kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }
}

/// Returns the line that reports an event.
fn said(body: &Body, at: Time) -> Option<Vec<u8>> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(body) else { return None };
    fields.insert("ts".to_owned(), at.to_string().into());
    Some(line(fields))
}

fn line(fields: Map<String, Value>) -> Vec<u8> {
    let mut line = Value::Object(fields).to_string().into_bytes();
    line.push(b'\n');
    line
}
