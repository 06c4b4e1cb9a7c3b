//! The lines that a running command appends to the file which `AYNIG_EVENTS` names.
//!
//! Each line is one JSON object with a `type`: `progress`, `usage`, or one of the command's own. A process
//! that may write that file may write anything: a line that is torn, too long, not UTF-8, not JSON or not an
//! object is passed over, and so is one of a known type that has another shape. Nothing in this module fails.
//! Implements K48a.

use super::declaration::used;
use super::usage::Usage;
use serde_json::{Map, Value};

/// Longest line that is read, in bytes; longer ones are passed over.
pub const EVENT_LINE_MAX: usize = 64 << 10;
/// Most characters of a progress text that are kept.
pub const PROGRESS_TEXT_MAX: usize = 200;

/// How far a command says that its work has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The command's own words; they may hold any character that JSON may.
    pub text: String,
    /// How much of the work is done, from 0 to 1.
    pub ratio: Option<f64>,
}

/// What one line says.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// How far the work has come.
    Progress(Progress),
    /// What was used since the run's last line of this type.
    Usage(Usage),
    /// Something of a type that only its readers know.
    Own,
}

impl RunEvent {
    /// Reads one line, without its end; `None` where it says nothing that could be understood.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > EVENT_LINE_MAX {
            return None;
        }
        let Ok(Value::Object(fields)) = serde_json::from_slice(line) else { return None };
        match fields.get("type").and_then(Value::as_str)? {
            "progress" => Progress::of(&fields).map(RunEvent::Progress),
            "usage" => used::read(&fields).map(RunEvent::Usage),
            _ => Some(RunEvent::Own),
        }
    }
}

impl Progress {
    fn of(fields: &Map<String, Value>) -> Option<Self> {
        let text = match fields.get("text") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.chars().take(PROGRESS_TEXT_MAX).collect(),
            Some(_) => return None,
        };
        let ratio = match fields.get("ratio") {
            None | Some(Value::Null) => None,
            Some(ratio) => Some(ratio.as_f64().filter(|ratio| (0.0..=1.0).contains(ratio))?),
        };
        (ratio.is_some() || !text.is_empty()).then_some(Self { text, ratio })
    }

    /// Returns the last progress in `tail`, the end of a file; `whole` says that `tail` is all of the file.
    /// Otherwise what stands before the first line's end is part of a line and is skipped. A last line
    /// without an end may be incomplete; it counts only if it can be parsed.
    pub fn last(tail: &[u8], whole: bool) -> Option<Self> {
        let from = match whole {
            true => 0,
            false => tail.iter().position(|b| *b == b'\n').map(|at| at + 1)?,
        };
        tail[from..].split(|b| *b == b'\n').rev().find_map(|line| match RunEvent::parse(line)? {
            RunEvent::Progress(progress) => Some(progress),
            RunEvent::Usage(_) | RunEvent::Own => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(text: &[u8]) -> Option<(String, Option<f64>)> {
        Progress::last(text, true).map(|p| (p.text, p.ratio))
    }

    /// K48a
    #[test]
    fn the_last_progress_counts_and_what_cannot_be_read_is_passed_over() {
        let good = br#"{"type":"progress","text":"half","ratio":0.5}"#;
        let long = format!("{{\"type\":\"progress\",\"text\":\"{}\"}}", "x".repeat(EVENT_LINE_MAX));
        for noise in [
            &b"{\"type\":\"progress\",\"text\":\"torn"[..],
            b"\xff\xfe{\"type\":\"progress\"}",
            b"nonsense",
            b"[1]",
            b"",
            b"{}",
            b"{\"type\":7}",
            b"{\"type\":\"progress\"}",
            b"{\"type\":\"progress\",\"text\":[]}",
            b"{\"type\":\"progress\",\"text\":\"x\",\"ratio\":2}",
            b"{\"type\":\"progress\",\"text\":\"x\",\"ratio\":-0.1}",
            b"{\"type\":\"progress\",\"text\":\"x\",\"ratio\":\"1\"}",
            b"{\"type\":\"mine\",\"text\":\"x\"}",
            b"{\"type\":\"usage\",\"input_tokens\":3}",
            long.as_bytes(),
        ] {
            let text = [good, noise].join(&b'\n');
            let shown = String::from_utf8_lossy(noise);
            assert_eq!(last(&text), Some(("half".into(), Some(0.5))), "{shown:.80}");
            assert_eq!(last(noise), None, "{shown:.80}");
        }
        let second = [&good[..], br#"{"type":"progress","ratio":1}"#, b""].join(&b'\n');
        assert_eq!(last(&second), Some((String::new(), Some(1.0))));
    }

    /// K48a: the end of a file may begin in the middle of a line.
    #[test]
    fn a_line_whose_beginning_is_not_there_says_nothing() {
        let tail = br#"{"type":"progress","text":"inner"}"#;
        assert_eq!(Progress::last(tail, false), None);
        let tail = [&tail[..], br#"{"type":"progress","text":"whole"}"#].join(&b'\n');
        assert_eq!(Progress::last(&tail, false).unwrap().text, "whole");
    }

    /// K48a
    #[test]
    fn a_text_is_cut_at_a_character() {
        let text = "ß".repeat(PROGRESS_TEXT_MAX + 1);
        let line = serde_json::json!({"type": "progress", "text": text}).to_string();
        assert_eq!(last(line.as_bytes()).unwrap().0.chars().count(), PROGRESS_TEXT_MAX);
    }
}
