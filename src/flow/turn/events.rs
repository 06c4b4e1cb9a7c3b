//! What a turn tells while it runs: lines of `AYNIG_EVENTS`, and of them what is kept.
//!
//! A line is one of the contract's events without its envelope, with `ts`, when it was said. What only streams (pieces of
//! a message or a thought) is in the file alone; everything else is kept too, in the same order, so that both number
//! alike. What a turn used is a line of the kernel's own, so it counts however the turn ends. Implements N4 (events), K48a.

use crate::contract::event::Body;
use crate::contract::time::Time;
use crate::runner::clock::Clock;
use crate::store::beneath::apart;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;

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
    clock: &'a dyn Clock,
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
            clock,
        }
    }

    /// Says something.
    pub fn say(&mut self, body: &Body) {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(body) else { return };
        let at = Time(i64::try_from(self.clock.millis()).unwrap_or(i64::MAX));
        fields.insert("ts".to_owned(), at.to_string().into());
        let line = line(fields);
        let streams = matches!(body, Body::MessageDelta { .. } | Body::ThinkingDelta { .. });
        if streams {
            self.streamed += line.len();
            if self.streamed <= STREAMED_MAX {
                self.write(&line);
            }
            return;
        }
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

    /// Says each.
    pub fn say_all(&mut self, bodies: &[Body]) {
        bodies.iter().for_each(|body| self.say(body));
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

fn line(fields: Map<String, Value>) -> Vec<u8> {
    let mut line = Value::Object(fields).to_string().into_bytes();
    line.push(b'\n');
    line
}
