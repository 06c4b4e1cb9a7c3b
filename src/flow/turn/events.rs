//! What a turn tells while it runs: lines of `AYNIG_EVENTS`, and of them what is kept.
//!
//! A line is one of the contract's events without its envelope, with `ts`, when it was said. What only streams (pieces of
//! a message or a thought) is in the file alone; everything else is kept too, in the same order, so that both number
//! alike. Pieces that follow one another within a moment are one line: the first at once, what comes meanwhile at its end.
//! What a turn used is a line of the kernel's own, so it counts however the turn ends. Implements N4 (events), K48a, W6
//! (text that streams).

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

/// Pieces that come within so long after one that was written are one line.
const MOMENT: Duration = Duration::from_millis(50);
/// Most bytes of such a line.
const PIECES_MAX: usize = 64 << 10;
/// Most bytes of lines that are kept; what comes then is in the file alone.
const KEPT_MAX: usize = 32 << 20;
/// Most bytes of lines that only stream, and of the program's own: the whole of the one follows, and the other is in its
/// transcript.
const STREAMED_MAX: usize = 32 << 20;
/// See [`STREAMED_MAX`].
const LOGGED_MAX: usize = 2 << 20;

/// The lines of a turn.
pub struct Events<'a> {
    /// None where it can't be written.
    file: Option<File>,
    kept: Vec<u8>,
    full: bool,
    streamed: usize,
    logged: usize,
    /// Lines of the program's that were left out.
    left_out: u64,
    /// Until when what streams is gathered.
    moment: Option<Instant>,
    /// What was gathered, and when its first piece came.
    gathered: Option<(Body, Time)>,
    clock: &'a dyn Clock,
}

/// The piece that this is, where it streams.
fn piece(body: &mut Body) -> Option<&mut String> {
    if let Body::MessageDelta { delta, .. } | Body::ThinkingDelta { delta, .. } = body {
        Some(delta)
    } else {
        None
    }
}

impl<'a> Events<'a> {
    /// Lines of the file at this path, if it can be written.
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

    /// Says something.
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
        // Once one is left out, all that follow are: what is kept is a beginning.
        self.full = self.kept.len() + line.len() > KEPT_MAX;
        if !self.full {
            self.kept.extend_from_slice(&line);
        }
    }

    /// Says a piece at once, or gathers it with those before it.
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

    /// Writes what was gathered.
    pub fn flush(&mut self) {
        self.moment = None;
        let Some(line) = self.gathered.take().and_then(|(body, at)| said(&body, at)) else { return };
        self.streamed += line.len();
        if self.streamed <= STREAMED_MAX {
            self.write(&line);
        }
    }

    /// When there is something to write that was gathered.
    pub fn due(&self) -> Option<Instant> {
        self.moment.filter(|_| self.gathered.is_some())
    }

    /// Writes what was gathered, if its moment is over.
    pub fn look(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.flush();
            self.moment = Some(now + MOMENT);
        }
    }

    /// Says each.
    pub fn say_all(&mut self, bodies: &[Body]) {
        bodies.iter().for_each(|body| self.say(body));
    }

    /// Says why the turn failed.
    pub fn failed(&mut self, node_id: NodeId, why: &str) {
        let detail = Some(shown::line(why.as_bytes()));
        self.say(&Body::TurnStatus { node_id, status: TurnStatus::Failed, detail });
    }

    /// Says to who looks at the branch what the turn is at.
    pub fn progress(&mut self, text: &str) {
        if let Value::Object(fields) = json!({"type": "progress", "text": text}) {
            self.write(&line(fields));
        }
    }

    /// Says what was used since this was said last.
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
            // A disk that is full costs the lines, not the turn.
            self.file = None;
        }
    }

    /// How many of the program's own lines were too many; asked once, at the end.
    pub fn left_out(&mut self) -> u64 {
        self.logged = 0;
        std::mem::take(&mut self.left_out)
    }

    /// What is kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }
}

/// The line that says this.
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
