//! A run's history in pages, cut so that a reader can apply an older page after the newer ones.
//!
//! Older events that are applied after newer ones would bring back what was undone since. So a page leaves
//! out deltas whose final message exists, approvals that were resolved, and edges that were removed or
//! replaced. The events that undo others are found by reading the log once, and then only what it grew by; a
//! page is read backwards from its end. The cursor is a place in the log; the `seq` of each event is the
//! place after it. Implements W5 (`events`).

use crate::fail::Failed;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Most events of a page, and how many if the request does not say.
const LIMIT_MAX: usize = 2000;
const LIMIT_USUAL: usize = 200;
/// How much of a log is read at once; how much for a page at first; and the most for a line that is longer.
const PIECE: u64 = 4 << 20;
const PAGE: u64 = 256 << 10;
const LINE_MAX: u64 = 128 << 20;
/// How many bytes at the end tell one log from another.
const END: usize = 64;

/// The parameters of a request, as text.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    limit: Option<String>,
    before: Option<String>,
}

/// The parts of an event that decide whether it stays.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    node_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    approval_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    edge: Option<Named<'a>>,
    #[serde(borrow, default)]
    edge_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool: Option<Named<'a>>,
    #[serde(borrow, default)]
    tool_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

impl Wanted {
    fn read(&self) -> Result<(usize, Option<u64>), Failed> {
        let limit = match self.limit.as_deref().filter(|text| !text.is_empty()) {
            None => LIMIT_USUAL,
            Some(text) => {
                let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit.ok_or_else(|| Failed::invalid("'limit' is no number from 1 to 2000"))?
            }
        };
        let place = |text: &String| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            // A place beyond the end of the log counts as its end.
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        };
        let before = self.before.as_ref().map(|text| {
            place(text).ok_or_else(|| Failed::invalid("'before' is no cursor: it is a number, as it came"))
        });
        Ok((limit, before.transpose()?))
    }
}

/// Returns the line of an event with the place after it as `seq`; `None` if the line is no object.
pub fn with_seq(line: &str, end: u64) -> Option<String> {
    Some(format!("{},\"seq\":{end}}}", line.trim_end().strip_suffix('}')?))
}

/// Reads whole lines of a log: from the first argument, a place, on, as many as fit in that many bytes.
pub trait Reads: Fn(u64, u64) -> Result<Vec<u8>, Failed> {}

impl<R: Fn(u64, u64) -> Result<Vec<u8>, Failed>> Reads for R {}

/// What is known of a log as far as it was read: what was undone, and what extends across which places.
#[derive(Debug, Default)]
pub struct Known {
    /// The place up to which it was read.
    to: u64,
    /// The last bytes before that place. A log that was made anew has others there.
    end: Vec<u8>,
    /// The places of each node's last final text and last final thought.
    finals: HashMap<(&'static str, String), u64>,
    resolved: HashSet<String>,
    /// The places where each edge was last put or removed.
    edges: HashMap<String, u64>,
    /// The places of the first and the last event: of texts that have no end yet, of open calls, and of
    /// completed calls.
    texts: HashMap<(&'static str, String), (u64, u64)>,
    open: HashMap<String, (u64, u64)>,
    over: Vec<(u64, u64)>,
}

impl Known {
    /// Reads what the log grew by.
    fn read_on(&mut self, read: &impl Reads) -> Result<(), Failed> {
        let known = self.end.len() as u64;
        if known > 0 && read(self.to - known, known)? != self.end {
            *self = Self::default();
        }
        let mut piece = PIECE;
        loop {
            let lines = read(self.to, piece)?;
            if lines.is_empty() {
                // This is the end, or the next line is longer than the piece.
                if piece >= LINE_MAX || self.to == self.length(read)? {
                    return Ok(());
                }
                piece *= 4;
                continue;
            }
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                self.take(line);
                self.to += line.len() as u64;
            }
            self.end = lines[lines.len().saturating_sub(END)..].to_vec();
            piece = PIECE;
        }
    }

    /// Returns the place at which the whole lines end; no line may be longer than what is read for this.
    fn length(&self, read: &impl Reads) -> Result<u64, Failed> {
        Ok(self.to + read(self.to, LINE_MAX)?.len() as u64)
    }

    /// Learns from a line, which begins at `self.to`.
    fn take(&mut self, line: &[u8]) {
        let at = self.to;
        // A line of a later version is skipped.
        let Some((_, shape)) = shape_of(line) else { return };
        let spans = |spans: &mut HashMap<_, (u64, u64)>, key| {
            spans.entry(key).and_modify(|span| span.1 = at).or_insert((at, at));
        };
        let node = || shape.node_id.as_deref().unwrap_or_default().to_owned();
        match &*shape.kind {
            "message.assistant.delta" => spans(&mut self.texts, ("text", node())),
            "message.assistant.thinking.delta" => spans(&mut self.texts, ("thought", node())),
            "message.assistant.final" => self.ends(("text", node())),
            "message.assistant.thinking.final" => self.ends(("thought", node())),
            "tool.proposed" | "tool.started" => {
                let id = shape.tool.map(|tool| tool.id.into_owned()).unwrap_or_default();
                self.open.entry(id).and_modify(|span| span.1 = at).or_insert((at, at));
            }
            "tool.completed" => {
                let begun = self.open.remove(shape.tool_id.as_deref().unwrap_or_default());
                self.over.extend(begun.map(|(begun, _)| (begun, at)));
            }
            "approval.resolved" => {
                self.resolved.extend(shape.approval_id.map(Cow::into_owned));
            }
            "edge.created" | "edge.deleted" => {
                let id = shape.edge.map(|edge| edge.id).or(shape.edge_id);
                self.edges.extend(id.map(|id| (id.into_owned(), at)));
            }
            _ => {}
        }
    }

    fn ends(&mut self, text: (&'static str, String)) {
        self.texts.remove(&text);
        self.finals.insert(text, self.to);
    }

    /// True if no later event has undone this event, which begins at `at`.
    fn stays(&self, at: u64, shape: &Shape<'_>) -> bool {
        let id = |id: &Option<Cow<'_, str>>| id.as_deref().unwrap_or_default().to_owned();
        let has_end = |what| self.finals.get(&(what, id(&shape.node_id))).is_some_and(|end| *end > at);
        match &*shape.kind {
            "message.assistant.delta" => !has_end("text"),
            "message.assistant.thinking.delta" => !has_end("thought"),
            "approval.requested" => !self.resolved.contains(&id(&shape.approval_id)),
            "edge.created" => {
                let last = shape.edge.as_ref().and_then(|edge| self.edges.get(&*edge.id));
                last.is_none_or(|last| *last == at)
            }
            // What these events remove is not in the run that the page was given.
            "approval.resolved" | "edge.deleted" => false,
            _ => true,
        }
    }

    /// Returns the last place, at or before this one, that lies within no text and no call. An older page is
    /// applied after a newer one, and would otherwise begin a text or a call whose end the newer page has.
    fn sound(&self, at: u64) -> u64 {
        let mut cut = at;
        loop {
            let spans = self.texts.values().chain(self.open.values()).chain(&self.over);
            let across = spans.filter(|(begun, ended)| *begun < cut && cut <= *ended);
            match across.map(|(begun, _)| *begun).min() {
                Some(before) => cut = before,
                None => return cut,
            }
        }
    }

    /// Returns the lines that stay, oldest first, of those between two places.
    fn kept<'a>(&self, lines: &'a [u8], mut at: u64, before: u64) -> Vec<Line<'a>> {
        let mut kept = Vec::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let (start, end) = (at, at + line.len() as u64);
            at = end;
            if let Some((text, shape)) = shape_of(line).filter(|_| end <= before)
                && self.stays(start, &shape)
            {
                kept.push((start, end, text));
            }
        }
        kept
    }
}

/// The places at which an event begins and ends in the log, and its line.
type Line<'a> = (u64, u64, &'a str);

fn shape_of(line: &[u8]) -> Option<(&str, Shape<'_>)> {
    let text = std::str::from_utf8(line).ok()?;
    Some((text, serde_json::from_str(text).ok()?))
}

/// Returns a page of a log, as JSON.
pub fn page(known: &mut Known, read: &impl Reads, wanted: &Wanted) -> Result<String, Failed> {
    let (limit, before) = wanted.read()?;
    known.read_on(read)?;
    let before = before.unwrap_or(u64::MAX).min(known.to);
    let mut piece = PAGE;
    loop {
        let from = before.saturating_sub(piece);
        // The byte before the place shows whether a line begins there.
        let lines = read(from.saturating_sub(1), before - from.saturating_sub(1))?;
        let first = match from {
            0 => 0,
            _ => lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| end + 1),
        };
        let begin = from.saturating_sub(1) + first as u64;
        let kept = known.kept(&lines[first..], begin, before);
        let cut = kept.get(kept.len().saturating_sub(limit)).map(|(start, _, _)| known.sound(*start));
        let older = cut.map_or(0, |cut| kept.partition_point(|(start, _, _)| *start < cut));
        // An older event in the piece shows that there are more.
        if from == 0 || older > 0 && cut.is_some_and(|cut| cut >= begin) {
            return Ok(shown(&kept[older..], older > 0, known.to));
        }
        piece = piece.saturating_mul(4);
    }
}

fn shown(lines: &[Line<'_>], more: bool, length: u64) -> String {
    let events: Vec<String> = lines.iter().filter_map(|(_, end, line)| with_seq(line, *end)).collect();
    let cursor = match lines.first() {
        Some((start, _, _)) if more => format!("\"{start}\""),
        Some(_) | None => "null".to_owned(),
    };
    format!(
        "{{\"events\":[{}],\"page\":{{\"nextCursor\":{cursor},\"hasMore\":{more},\"last\":\"{length}\"}}}}",
        events.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::{Failed, Known, Wanted, page};
    use serde_json::{Value, json};
    use std::cell::Cell;

    /// Reads a log as the disk does, and counts the bytes that it read.
    fn reader<'a>(log: &'a [u8], bytes: &'a Cell<usize>) -> impl Fn(u64, u64) -> Result<Vec<u8>, Failed> {
        move |from, most| {
            let from = usize::try_from(from).unwrap().min(log.len());
            let many = usize::try_from(most).unwrap().min(log.len() - from);
            let piece = &log[from..from + many];
            let whole = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            bytes.set(bytes.get() + many);
            Ok(piece[..whole].to_vec())
        }
    }

    fn page_of(known: &mut Known, log: &[u8], limit: &str, before: Option<&str>) -> Option<Value> {
        let wanted = Wanted { limit: Some(limit.to_owned()), before: before.map(str::to_owned) };
        let page = page(known, &reader(log, &Cell::new(0)), &wanted).ok()?;
        Some(serde_json::from_str(&page).unwrap())
    }

    fn log() -> Vec<u8> {
        let (n, e) = ("6d0f2f6c-0000-4000-8000-000000000001", "e1");
        let events = [
            json!({"id": "1", "type": "edge.created", "edge": {"id": e}}),
            json!({"id": "2", "type": "message.assistant.delta", "nodeId": n, "delta": "a"}),
            json!({"id": "3", "type": "approval.requested", "nodeId": n, "approvalId": "p"}),
            json!({"id": "4", "type": "approval.resolved", "approvalId": "p"}),
            json!({"id": "5", "type": "message.assistant.final", "nodeId": n, "content": "ab"}),
            json!({"id": "6", "type": "edge.deleted", "edgeId": e}),
            json!({"id": "7", "type": "approval.requested", "nodeId": n, "approvalId": "q"}),
            json!({"id": "8", "type": "message.assistant.delta", "nodeId": n, "delta": "c"}),
        ];
        lines(&events)
    }

    fn lines(events: &[Value]) -> Vec<u8> {
        events.iter().flat_map(|event| format!("{event}\n").into_bytes()).collect()
    }

    fn ids(page: &Value) -> Vec<&str> {
        page["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap()).collect()
    }

    fn read(limit: &str, before: Option<&str>) -> Value {
        page_of(&mut Known::default(), &log(), limit, before).expect("refused")
    }

    /// W5: no page begins within a text or a call whose beginning would be in an older page; it is longer
    /// instead.
    #[test]
    fn w5_a_page_begins_where_nothing_is_under_way() {
        let of = |id: &str, kind: &str, more: Value| {
            let mut event = json!({"id": id, "type": kind, "nodeId": "n"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let delta = |id: &str| of(id, "message.assistant.delta", json!({"delta": id}));
        let log = lines(&[
            of("1", "message.user", json!({})),
            of("2", "tool.proposed", json!({"tool": {"id": "t"}})),
            of("3", "node.patch", json!({})),
            of("4", "tool.started", json!({"tool": {"id": "t"}})),
            delta("5"),
            of("6", "tool.completed", json!({"toolId": "t"})),
            delta("7"),
            delta("8"),
        ]);
        let read = |limit: &str, before: Option<&str>| {
            page_of(&mut Known::default(), &log, limit, before).expect("refused")
        };
        for limit in ["1", "2", "3", "5", "7"] {
            let newer = read(limit, None);
            assert_eq!(ids(&newer), ["2", "3", "4", "5", "6", "7", "8"], "{limit}");
            let cursor = newer["page"]["nextCursor"].as_str().unwrap().to_owned();
            assert_eq!(ids(&read(limit, Some(&cursor))), ["1"], "{limit}");
        }
    }

    /// W5: what was undone is in no page, wherever it is cut, and the next older page ends where a page
    /// begins.
    #[test]
    fn w5_any_cut_of_the_history_is_sound() {
        let all = read("200", None);
        assert_eq!(ids(&all), ["5", "7", "8"]);
        assert_eq!((&all["page"]["nextCursor"], &all["page"]["hasMore"]), (&Value::Null, &json!(false)));
        assert_eq!(all["events"][2]["seq"], log().len());
        let mut seen = Vec::new();
        let mut before = None;
        loop {
            let one = read("1", before.as_deref());
            seen.splice(0..0, ids(&one).into_iter().map(str::to_owned));
            before = one["page"]["nextCursor"].as_str().map(str::to_owned);
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["5", "7", "8"]);
        assert_eq!(ids(&read("5", Some("0"))), Vec::<&str>::new());
        for (limit, before) in
            [("0", None), ("2001", None), ("2x", None), ("5", Some("-1")), ("5", Some("x"))]
        {
            assert!(page_of(&mut Known::default(), &log(), limit, before).is_none(), "{limit} {before:?}");
        }
    }

    /// Returns the events of a conversation of that many turns, each with a streamed text, a call, and a
    /// person's message.
    fn long(turns: usize) -> Vec<Value> {
        let turn = |n: usize| {
            let node = format!("n{}", n % 3);
            let mut events =
                vec![json!({"id": format!("{n}u"), "type": "message.user", "message": {"nodeId": node}})];
            for d in 0..10 {
                events.push(json!({"id": format!("{n}d{d}"), "type": "message.assistant.delta", "nodeId": node, "delta": "some words of it"}));
            }
            events.push(json!({"id": format!("{n}p"), "type": "tool.proposed", "nodeId": node, "tool": {"id": format!("t{n}")}}));
            events.push(json!({"id": format!("{n}a"), "type": "approval.requested", "nodeId": node, "approvalId": format!("a{n}")}));
            events.push(
                json!({"id": format!("{n}r"), "type": "approval.resolved", "approvalId": format!("a{n}")}),
            );
            events.push(json!({"id": format!("{n}c"), "type": "tool.completed", "nodeId": node, "toolId": format!("t{n}")}));
            events.push(json!({"id": format!("{n}f"), "type": "message.assistant.final", "nodeId": node, "content": "all of it"}));
            events.push(json!({"id": format!("{n}e"), "type": "edge.created", "edge": {"id": "e"}}));
            events
        };
        (0..turns).flat_map(turn).collect()
    }

    /// W5: what is known of a log that grew is what reading all of it again would tell; a page costs as much
    /// as it shows, not as much as the log holds; a log that was made anew is read anew.
    #[test]
    fn w5_a_page_of_a_long_history_is_read_from_its_end() {
        let events = long(10_000);
        let (mut known, all) = (Known::default(), lines(&events));
        for many in [1, 7, 40, 41, 500, 501, 5000] {
            let log = lines(&events[..many]);
            for (limit, before) in [("1", None), ("30", None), ("30", Some((log.len() / 2).to_string()))] {
                let grown = page_of(&mut known, &log, limit, before.as_deref()).unwrap();
                let anew = page_of(&mut Known::default(), &log, limit, before.as_deref()).unwrap();
                assert_eq!(grown, anew, "{many} {limit} {before:?}");
            }
        }
        let bytes = Cell::new(0);
        let wanted = |before: Option<String>| Wanted { limit: Some("200".to_owned()), before };
        page(&mut known, &reader(&all, &bytes), &wanted(None)).unwrap_or_else(|_| panic!("refused"));
        bytes.set(0);
        for part in [1, 2, 3, 10] {
            let before = Some((all.len() / part).to_string());
            page(&mut known, &reader(&all, &bytes), &wanted(before)).unwrap_or_else(|_| panic!("refused"));
        }
        let most = 4 * (512 << 10);
        assert!(bytes.get() < most && all.len() > 4 * most, "{} of {}", bytes.get(), all.len());
        assert_eq!(page_of(&mut known, &log(), "200", None).unwrap(), read("200", None));
    }

    /// W5: a line that is longer than what is read at once is still read.
    #[test]
    fn w5_a_very_long_line_is_read() {
        let long = json!({"id": "1", "type": "message.user", "text": "x".repeat(5 << 20)});
        let log = lines(&[long, json!({"id": "2", "type": "node.patch"})]);
        let page = page_of(&mut Known::default(), &log, "10", None).unwrap();
        assert_eq!(ids(&page), ["1", "2"]);
    }
}
