//! A run's history in pages, so cut that any page can be laid under those after it.
//!
//! A page that shows older events under newer ones would bring back what was undone since: so deltas that have their final,
//! approvals that were resolved, and edges that are gone or were put again are left out. The cursor is a place in the
//! log; of each event `seq` says the place after it. Implements W5 (`events`).

use crate::fail::Failed;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Most events of a page, and how many where nothing is said.
const LIMIT_MAX: usize = 2000;
const LIMIT_USUAL: usize = 200;

/// What is asked for, as it came.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    limit: Option<String>,
    before: Option<String>,
}

/// What of an event decides whether it stays.
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
    tool: Option<Named<'a>>,
    #[serde(borrow, default)]
    tool_id: Option<Cow<'a, str>>,
}

impl Shape<'_> {
    /// What this event is a piece of: a text that is not at its end, a thought, a call.
    fn is_part_of(&self) -> Option<(&'static str, String)> {
        let of = |what, id: Option<&str>| Some((what, id?.to_owned()));
        match &*self.kind {
            "message.assistant.delta" => of("text", self.node_id.as_deref()),
            "message.assistant.thinking.delta" => of("thought", self.node_id.as_deref()),
            "tool.proposed" | "tool.started" => of("call", self.tool.as_ref().map(|tool| &*tool.id)),
            "tool.completed" => of("call", self.tool_id.as_deref()),
            _ => None,
        }
    }
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
            // A place beyond all logs is their end.
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        };
        let before = self.before.as_ref().map(|text| {
            place(text).ok_or_else(|| Failed::invalid("'before' is no cursor: it is a number, as it came"))
        });
        Ok((limit, before.transpose()?))
    }
}

/// An event with the place after it.
pub fn with_seq(line: &str, end: u64) -> Option<String> {
    Some(format!("{},\"seq\":{end}}}", line.trim_end().strip_suffix('}')?))
}

/// The page that is wanted of a log, as JSON.
pub fn page(log: &[u8], wanted: &Wanted) -> Result<String, Failed> {
    let (limit, before) = wanted.read()?;
    let lines = kept(log);
    let before = before.unwrap_or(u64::MAX);
    let older = lines.partition_point(|(_, end, _)| *end <= before);
    let first = sound(&lines, older.saturating_sub(limit));
    let events: Vec<String> =
        lines[first..older].iter().filter_map(|(_, end, line)| with_seq(line, *end)).collect();
    let cursor = match lines.get(first) {
        Some((start, _, _)) if first > 0 => format!("\"{start}\""),
        Some(_) | None => "null".to_owned(),
    };
    let more = first > 0;
    Ok(format!(
        "{{\"events\":[{}],\"page\":{{\"nextCursor\":{cursor},\"hasMore\":{more},\"last\":\"{}\"}}}}",
        events.join(","),
        log.len()
    ))
}

/// The last place, here or before, that no text and no call stands across: an older page is laid over a newer one, and
/// would begin what that one ended.
fn sound(lines: &[Line<'_>], at: usize) -> usize {
    let mut spans: HashMap<(&'static str, String), (usize, usize)> = HashMap::new();
    for (n, line) in lines.iter().enumerate() {
        let Ok(shape) = serde_json::from_str::<Shape<'_>>(line.2) else { continue };
        if let Some(whole) = shape.is_part_of() {
            spans.entry(whole).and_modify(|span| span.1 = n).or_insert((n, n));
        }
    }
    let mut spans: Vec<(usize, usize)> = spans.into_values().collect();
    // By their ends: one that is further back can't be cut by what a later one moved.
    spans.sort_unstable_by_key(|(_, last)| std::cmp::Reverse(*last));
    let mut cut = at;
    loop {
        let across = spans.iter().filter(|(begun, ended)| *begun < cut && cut <= *ended);
        match across.map(|(begun, _)| *begun).min() {
            Some(before) => cut = before,
            None => return cut,
        }
    }
}

/// Where an event begins and ends in the log, and its line.
type Line<'a> = (u64, u64, &'a str);

/// The lines that stay, oldest first.
fn kept(log: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let (start, end) = (at, at + line.len() as u64);
        at = end;
        let Ok(text) = std::str::from_utf8(line) else { continue };
        lines.push((start, end, text));
    }
    // From the newest on: what is said later undoes what was said before.
    let (mut finals, mut thoughts) = (HashSet::new(), HashSet::new());
    let (mut resolved, mut edges) = (HashSet::new(), HashSet::new());
    let mut kept = Vec::new();
    for (start, end, text) in lines.into_iter().rev() {
        // A later version's line is passed by.
        let Ok(shape) = serde_json::from_str::<Shape<'_>>(text) else { continue };
        let node = shape.node_id.as_deref().unwrap_or_default().to_owned();
        let approval = shape.approval_id.as_deref().unwrap_or_default().to_owned();
        let stays = match &*shape.kind {
            "message.assistant.delta" => !finals.contains(&node),
            "message.assistant.final" => {
                finals.insert(node);
                true
            }
            "message.assistant.thinking.delta" => !thoughts.contains(&node),
            "message.assistant.thinking.final" => {
                thoughts.insert(node);
                true
            }
            "approval.resolved" => {
                resolved.insert(approval);
                false
            }
            "approval.requested" => !resolved.contains(&approval),
            // What is gone is not in the run that the page was given.
            "edge.deleted" => {
                edges.insert(edge_of(text));
                false
            }
            "edge.created" => edges.insert(shape.edge.map(|edge| edge.id.into_owned())),
            _ => true,
        };
        if stays {
            kept.push((start, end, text));
        }
    }
    kept.reverse();
    kept
}

fn edge_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Gone {
        edge_id: String,
    }
    serde_json::from_str::<Gone>(text).ok().map(|gone| gone.edge_id)
}

#[cfg(test)]
mod tests {
    use super::{Wanted, page};
    use serde_json::{Value, json};

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
        let wanted = Wanted { limit: Some(limit.to_owned()), before: before.map(str::to_owned) };
        serde_json::from_str(&page(&log(), &wanted).unwrap_or_else(|_| panic!("refused"))).unwrap()
    }

    /// W5: no page begins within a text or a call that the page after it goes on with; it is longer instead.
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
        let read = |limit: &str, before: Option<&str>| -> Value {
            let wanted = Wanted { limit: Some(limit.to_owned()), before: before.map(str::to_owned) };
            serde_json::from_str(&page(&log, &wanted).unwrap_or_else(|_| panic!("refused"))).unwrap()
        };
        for limit in ["1", "2", "3", "5", "7"] {
            let newer = read(limit, None);
            assert_eq!(ids(&newer), ["2", "3", "4", "5", "6", "7", "8"], "{limit}");
            let cursor = newer["page"]["nextCursor"].as_str().unwrap().to_owned();
            assert_eq!(ids(&read(limit, Some(&cursor))), ["1"], "{limit}");
        }
    }

    /// W5: what was undone is in no page, wherever it is cut, and pages go on where the one before began.
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
            let wanted = Wanted { limit: Some(limit.to_owned()), before: before.map(str::to_owned) };
            assert!(page(&log(), &wanted).is_err(), "{limit} {before:?}");
        }
    }
}
