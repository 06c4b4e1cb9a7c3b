//! What a command says comes next: `SET_STATE {json}` lines, and the same JSON in a result file.
//!
//! The last valid line wins; each invalid one is kept with its reason, so that a report can name it.
//! Memory is bounded: only the winner, a count and the first few invalid lines are held.
//! Implements K19, K51 (`not_before`), K54 (`usage`).

mod moment;
mod take;
pub(super) mod used;

pub use moment::NotBefore;
pub(crate) use take::is_inside;
pub use take::{Rest, Take};

use super::accepts::ACCEPTS;
use super::dialect::{Dialect, STATE};
use super::inbox::QUESTION;
use super::message::{Message, RenderError, Trailer, is_managed_key};
use super::name::{BadName, StateName};
use super::usage::Usage;
use super::waits::{AFTER, NOT_BEFORE};
use serde_json::{Map, Value};
use std::fmt;

/// What a stdout line must begin with to be a declaration.
pub const LINE_PREFIX: &str = "SET_STATE ";
/// Longest line that is parsed, in bytes.
pub const LINE_MAX: usize = 16 << 20;
/// How many invalid lines are kept with their reasons; the rest are counted.
pub const INVALID_KEPT: usize = 16;

/// A valid declaration. Rendering it can't fail for anything that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// The next state; never `working`.
    pub state: StateName,
    /// The subject of the outcome commit.
    pub subject: String,
    /// The body of the outcome commit.
    pub body: String,
    /// Whether the lease's workflow trailers are copied.
    pub keep_trailers: bool,
    /// Further trailers, in order.
    pub trailers: Vec<Trailer>,
    /// What the outcome takes from the slot.
    pub take: Take,
    /// The earliest moment at which the state may be dispatched.
    pub not_before: Option<NotBefore>,
    /// What the run used, besides what it reported while it ran.
    pub usage: Option<Usage>,
}

/// Why a line or a result file is not a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It is not JSON, or more than one value.
    Json(String),
    /// It is JSON, but not an object.
    NoObject,
    /// `state` is missing.
    NoState,
    /// `state` can't be a command's name.
    BadState(String, BadName),
    /// The state is `working`, which only the runner may write.
    Working,
    /// A field has another type than the contract's.
    Type {
        /// The field.
        field: &'static str,
        /// What it should be.
        want: &'static str,
    },
    /// A trailer is not `key: value`.
    Trailer(String),
    /// A trailer that only the runner may set.
    Managed(String),
    /// The outcome could not be written so that Git reads it back the same.
    Unrenderable(RenderError),
    /// The line is longer than [`LINE_MAX`]; its length in bytes.
    TooLong(u64),
    /// The result file can't be read.
    Unreadable(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Json(why) => write!(f, "not valid JSON: {why}"),
            Invalid::NoObject => f.write_str("not a JSON object"),
            Invalid::NoState => f.write_str("'state' is missing"),
            Invalid::BadState(state, why) => write!(f, "state {state:?} is not usable: {why}"),
            Invalid::Working => f.write_str("state 'working' is reserved for leases"),
            Invalid::Type { field, want } => write!(f, "'{field}' must be {want}"),
            Invalid::Trailer(t) => {
                write!(f, "trailer {t:?} is not 'key: value', with a key of letters, digits and '-'")
            }
            Invalid::Managed(key) => write!(f, "trailer '{key}' is set by the runner alone"),
            Invalid::Unrenderable(why) => write!(f, "cannot be written as a commit message: {why}"),
            Invalid::TooLong(n) => write!(f, "the line has {n} bytes, more than 16 MiB"),
            Invalid::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

impl std::error::Error for Invalid {}

impl Declaration {
    /// Reads the JSON of a declaration.
    pub fn parse(json: &[u8]) -> Result<Self, Invalid> {
        if json.len() > LINE_MAX {
            return Err(Invalid::TooLong(json.len() as u64));
        }
        let value: Value = serde_json::from_slice(json).map_err(|e| Invalid::Json(e.to_string()))?;
        let Value::Object(fields) = value else {
            return Err(Invalid::NoObject);
        };
        let state = state_of(&fields)?;
        let subject = text(&fields, "subject", "a string")?
            .filter(|s| !s.is_empty())
            .unwrap_or_else(|| format!("chore: set {state}"));
        let body = text(&fields, "body", "a string")?.unwrap_or_default();
        let keep_trailers = match fields.get("keep_trailers") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(keep)) => *keep,
            Some(_) => return Err(Invalid::Type { field: "keep_trailers", want: "true or false" }),
        };
        let trailers = trailers_of(fields.get("trailers"))?;
        let take = Take::of(fields.get("take"))?;
        let not_before = NotBefore::of(fields.get("not_before"))?;
        let usage = used::used(fields.get("usage"))?;
        let this = Self { state, subject, body, keep_trailers, trailers, take, not_before, usage };
        this.message(Dialect::Dwp, &[]).render().map_err(Invalid::Unrenderable)?;
        Ok(this)
    }

    /// Reads a whole stdout line, which begins with [`LINE_PREFIX`].
    pub fn parse_line(line: &[u8]) -> Result<Self, Invalid> {
        Self::parse(line.strip_prefix(LINE_PREFIX.as_bytes()).unwrap_or(line))
    }

    /// Returns the outcome's message: the state, the runner's own trailers, then those that were declared.
    pub fn message(&self, dialect: Dialect, own: &[Trailer]) -> Message {
        let mut trailers = vec![Trailer::new(STATE.of(dialect), self.state.as_str())];
        trailers.extend_from_slice(own);
        trailers.extend_from_slice(&self.trailers);
        Message::new(self.subject.as_bytes(), self.body.as_bytes(), trailers)
    }

    /// Returns the one-line JSON of this declaration, as a command would print it after [`LINE_PREFIX`].
    pub fn to_json(&self) -> String {
        let mut fields = Map::new();
        fields.insert("state".into(), self.state.as_str().into());
        fields.insert("subject".into(), self.subject.as_str().into());
        if !self.body.is_empty() {
            fields.insert("body".into(), self.body.as_str().into());
        }
        if self.keep_trailers {
            fields.insert("keep_trailers".into(), true.into());
        }
        if !self.trailers.is_empty() {
            let list = self
                .trailers
                .iter()
                .map(|t| Value::String(format!("{}: {}", t.key, String::from_utf8_lossy(&t.value))));
            fields.insert("trailers".into(), list.collect());
        }
        self.take.put(&mut fields);
        if let Some(not_before) = self.not_before {
            not_before.put(&mut fields);
        }
        if let Some(usage) = &self.usage {
            used::put(usage, &mut fields);
        }
        Value::Object(fields).to_string()
    }
}

fn state_of(fields: &Map<String, Value>) -> Result<StateName, Invalid> {
    let raw = match fields.get("state") {
        None | Some(Value::Null) => return Err(Invalid::NoState),
        Some(Value::String(raw)) => raw,
        Some(_) => return Err(Invalid::Type { field: "state", want: "a string" }),
    };
    let state = StateName::new(raw).map_err(|why| Invalid::BadState(shorten(raw), why))?;
    if state.is_working() { Err(Invalid::Working) } else { Ok(state) }
}

fn text(
    fields: &Map<String, Value>,
    field: &'static str,
    want: &'static str,
) -> Result<Option<String>, Invalid> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(s)) => Ok(Some(s.clone())),
        Some(_) => Err(Invalid::Type { field, want }),
    }
}

const TRAILERS_WANT: &str = "a list of \"key: value\" or {\"key\", \"value\"}, or an object";

fn trailers_of(value: Option<&Value>) -> Result<Vec<Trailer>, Invalid> {
    let wrong = || Invalid::Type { field: "trailers", want: TRAILERS_WANT };
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|item| match item {
                Value::String(line) => parse_trailer(line),
                Value::Object(pair) => match (pair.get("key"), pair.get("value")) {
                    (Some(Value::String(key)), Some(Value::String(value))) => trailer(key, value),
                    _ => Err(wrong()),
                },
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(wrong()),
            })
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(key, value)| match value {
                Value::String(value) => trailer(key, value),
                _ => Err(wrong()),
            })
            .collect(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Err(wrong()),
    }
}

/// Reads `key: value`, as given to `--trailer` or in a declaration.
pub fn parse_trailer(line: &str) -> Result<Trailer, Invalid> {
    let (key, value) = line.split_once(':').ok_or_else(|| Invalid::Trailer(shorten(line)))?;
    trailer(key.trim_end_matches([' ', '\t']), value)
}

fn trailer(key: &str, value: &str) -> Result<Trailer, Invalid> {
    if is_managed_key(key) {
        return Err(Invalid::Managed(key.to_owned()));
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(Invalid::Trailer(shorten(key)));
    }
    Ok(Trailer { key: key.to_owned(), value: value.trim_matches([' ', '\t']).as_bytes().to_vec() })
}

/// Trailers that concern one head alone: what it accepts, what it waits for and what it asks.
const OF_ONE_HEAD: [&str; 4] = [ACCEPTS, NOT_BEFORE, AFTER, QUESTION];

/// Returns the workflow trailers that travel on to the next commit: those with the dialect's prefix that the
/// runner does not manage, that do not concern one head alone, and that can be written again. One that can't
/// (with a CR inside, or not UTF-8) must not keep a branch from being claimed.
pub fn travelling(message: &Message, dialect: Dialect) -> Vec<Trailer> {
    let travels =
        |key: &str| key.starts_with(dialect.prefix()) && !is_managed_key(key) && !OF_ONE_HEAD.contains(&key);
    message.trailers.iter().filter(|t| travels(&t.key) && t.is_writable()).cloned().collect()
}

fn shorten(s: &str) -> String {
    let mut short: String = s.chars().take(80).collect();
    if short.len() < s.len() {
        short.push_str("...");
    }
    short
}

/// The declarations of one run, collected as its output passes by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    last: Option<Declaration>,
    invalid: Vec<(String, Invalid)>,
    invalid_count: u64,
    valid_count: u64,
}

impl Declarations {
    /// Takes one line that begins with [`LINE_PREFIX`].
    pub fn line(&mut self, line: &[u8]) {
        match Declaration::parse_line(line) {
            Ok(declaration) => {
                self.valid_count += 1;
                self.last = Some(declaration);
            }
            Err(why) => self.reject(&String::from_utf8_lossy(&line[..line.len().min(400)]), why),
        }
    }

    /// Notes a line that was too long to be kept, with its length in bytes.
    pub fn too_long(&mut self, length: u64) {
        self.reject(LINE_PREFIX, Invalid::TooLong(length));
    }

    fn reject(&mut self, line: &str, why: Invalid) {
        self.invalid_count += 1;
        if self.invalid.len() < INVALID_KEPT {
            self.invalid.push((shorten(line), why));
        }
    }

    /// Returns the last valid declaration.
    pub fn last(&self) -> Option<&Declaration> {
        self.last.as_ref()
    }

    /// Returns the first invalid lines with their reasons, and how many there were in all.
    pub fn invalid(&self) -> (&[(String, Invalid)], u64) {
        (&self.invalid, self.invalid_count)
    }

    /// Returns how many valid lines there were.
    pub fn valid_count(&self) -> u64 {
        self.valid_count
    }
}

#[cfg(test)]
mod tests;
