//! A log, in pieces: by an offset, from the end too, or by HTTP's `Range`.
//!
//! Headers say which log it is, its size, and where the piece begins. A piece is bounded, whatever is asked
//! for. Implements W7 (logs).

use crate::fail::Failed;
use crate::routes::{Answer, Asked, Named, Ours, reading};
use axum::body::Body;
use axum::extract::{Path, Query, State as Of};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use aynig::served::{Place, Which, whole};
use serde::Deserialize;
use std::io::{Read, Seek, SeekFrom};

/// Most bytes of a log in one answer, and how many if the request does not say.
const LOG_MAX: u64 = 1 << 20;
const LOG_USUAL: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stream {
    #[default]
    Stdout,
    Stderr,
    Events,
}

/// The parameters of a request for a log.
#[derive(Debug, Deserialize)]
pub struct OfLogs {
    repo: Option<usize>,
    commit: Option<String>,
    #[serde(default)]
    stream: Stream,
    /// The first byte; counted from the end if negative.
    offset: Option<i64>,
    limit: Option<u64>,
}

/// The bytes that `Range` names: from one to another or the end, or that many from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    From(u64, Option<u64>),
    Last(u64),
}

impl Range {
    /// Reads the one form of range that is supported. Any other header means the whole log, as HTTP demands.
    fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(header::RANGE)?.to_str().ok()?;
        let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
        match (from, to) {
            ("", last) => Some(Self::Last(last.parse().ok()?)),
            (from, "") => Some(Self::From(from.parse().ok()?, None)),
            (from, to) => {
                let (from, to) = (from.parse().ok()?, to.parse().ok()?);
                (from <= to).then_some(Self::From(from, Some(to)))
            }
        }
    }

    /// Returns the first byte and the number of bytes; `None` if a log of this size has none of them.
    fn within(self, size: u64) -> Option<(u64, u64)> {
        match self {
            Self::From(from, _) if from >= size => None,
            Self::From(from, to) => Some((from, to.map_or(size, |to| to.saturating_add(1).min(size)) - from)),
            Self::Last(0) => None,
            Self::Last(last) => (size > 0).then(|| (size - last.min(size), last.min(size))),
        }
    }
}

/// A piece of a log that was read.
struct Piece {
    name: String,
    size: u64,
    from: u64,
    bytes: Vec<u8>,
    /// Whether the range that `Range` asked for has any bytes; `None` without a range.
    range: Option<bool>,
}

fn piece(place: &Place, branch: &str, asked: &OfLogs, range: Option<Range>) -> Result<Piece, Failed> {
    // The path has to name a branch, whichever commit of it is meant.
    whole(branch)?;
    let which = match asked.stream {
        Stream::Stdout => Which::Stdout,
        Stream::Stderr => Which::Stderr,
        Stream::Events => Which::Events,
    };
    let (name, file) = place.log(asked.commit.as_deref().unwrap_or(branch), which)?;
    let empty = range.map(|_| false);
    let Some(mut file) = file else {
        return Ok(Piece { name, size: 0, from: 0, bytes: Vec::new(), range: empty });
    };
    let unread = |error: std::io::Error| Failed::broken(format!("cannot read '{name}': {error}"));
    let size = file.metadata().map_err(unread)?.len();
    let limit = asked.limit.unwrap_or(LOG_USUAL);
    let from = match asked.offset.unwrap_or(0) {
        end if end < 0 => size.saturating_sub(end.unsigned_abs()),
        start => start.unsigned_abs().min(size),
    };
    let (from, limit, range) = match range.map(|range| range.within(size)) {
        None => (from, limit, None),
        Some(None) => return Ok(Piece { name, size, from: 0, bytes: Vec::new(), range: empty }),
        Some(Some((from, many))) => (from, many, Some(true)),
    };
    file.seek(SeekFrom::Start(from)).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(limit.min(LOG_MAX)).read_to_end(&mut bytes).map_err(unread)?;
    let size = size.max(from + bytes.len() as u64);
    Ok(Piece { name, size, from, bytes, range })
}

/// Answers with a piece of a branch's log.
pub async fn read(Of(state): Ours, named: Named, asked: Asked<OfLogs>, headers: HeaderMap) -> Answer {
    let (Query(asked), Path(branch)) = (asked?, named?);
    let place = state.place(asked.repo)?;
    let is_id = |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if asked.commit.as_deref().is_some_and(|commit| !is_id(commit)) {
        return Err(Failed::invalid("'commit' is no whole commit id"));
    }
    let range = Range::read(&headers);
    let Piece { name, size, from, bytes, range } =
        reading(move || piece(&place, &branch, &asked, range)).await?;
    let (status, content) = match range {
        None => (StatusCode::OK, None),
        Some(true) => {
            let last = from + (bytes.len() as u64).saturating_sub(1);
            (StatusCode::PARTIAL_CONTENT, Some(format!("bytes {from}-{last}/{size}")))
        }
        Some(false) => (StatusCode::RANGE_NOT_SATISFIABLE, Some(format!("bytes */{size}"))),
    };
    let mut response = match range {
        Some(false) => Failed::new(status, "range", "the log has no such bytes").into_response(),
        Some(true) | None => {
            let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
            (status, kind, Body::from(bytes)).into_response()
        }
    };
    about(&mut response, &name, (from, size), content);
    Ok(response)
}

fn about(response: &mut Response, name: &str, (from, size): (u64, u64), content: Option<String>) {
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert("aynig-log", HeaderValue::from_str(name).unwrap_or(HeaderValue::from_static("log")));
    headers.insert("aynig-from", from.into());
    headers.insert("aynig-size", size.into());
    if let Some(content) = content.and_then(|content| HeaderValue::from_str(&content).ok()) {
        headers.insert(header::CONTENT_RANGE, content);
    }
}
