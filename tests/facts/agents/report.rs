//! What programs say, as the contract's events: every transcript, held against the contract's schema. (N7, N8, N13)

use super::transcripts::{Transcript, all, of, play};
use crate::contract::schema;
use aynig::agents::report::Reporter;
use aynig::agents::{Asked, Decision, Said};
use aynig::contract::event::{Body, Event};
use aynig::contract::id::{EventId, NodeId, RunId, TurnId};
use aynig::contract::time::Time;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use uuid::Uuid;

fn reporter(gated: bool) -> Reporter {
    Reporter::new(NodeId(Uuid::from_u128(1)), TurnId(Uuid::from_u128(2)), gated)
}

fn gated(of: &Transcript) -> bool {
    ["stdio", "app-server", "--acp"].iter().any(|word| of.argv.iter().any(|arg| arg == word))
}

fn said(of: &Transcript) -> Vec<Said> {
    play(&mut *of.talk(), of.stdout.as_bytes(), 4096)
}

/// The events of what was said, each question answered as it comes.
fn events(said: &[Said], gated: bool, decision: &Decision) -> Vec<Body> {
    let mut reporter = reporter(gated);
    let mut events = Vec::new();
    for said in said {
        events.extend(reporter.events(said));
        if let Said::Asked(asked) = said {
            assert!(reporter.call(asked).is_some());
            events.extend(reporter.answered(asked, decision));
        }
    }
    events.extend(reporter.close());
    events
}

fn words(events: &[Body]) -> Vec<&'static str> {
    events.iter().map(Body::word).collect()
}

#[test]
fn every_transcript_makes_events_that_are_right_by_the_schema() {
    let schema = schema::contract();
    for transcript in all() {
        for body in events(&said(transcript), gated(transcript), &Decision::Approved) {
            let run_id = RunId(Uuid::from_u128(3));
            let event = Event { id: EventId::of(run_id, &[]), run_id, ts: Time(0), body, at: None };
            let wrong = schema::wrong(&schema, "event", &serde_json::to_value(&event).unwrap());
            assert!(wrong.is_empty(), "{}: {wrong:#?}", transcript.name);
        }
    }
}

#[test]
fn every_tool_is_proposed_then_perhaps_started_and_completed_once() {
    for transcript in all() {
        for decision in [Decision::Approved, Decision::Denied("no".into())] {
            let mut stages: HashMap<Uuid, u8> = HashMap::new();
            for body in events(&said(transcript), gated(transcript), &decision) {
                let (id, from, to) = match body {
                    Body::ToolProposed { tool, .. } => (tool.id, vec![0], 1),
                    Body::ToolStarted { tool, .. } => (tool.id, vec![1], 2),
                    Body::ToolCompleted { tool_id, .. } => (tool_id, vec![1, 2], 3),
                    _ => continue,
                };
                let stage = stages.entry(id.0).or_default();
                assert!(from.contains(stage), "{}: {stage} to {to}", transcript.name);
                *stage = to;
            }
            assert!(stages.values().all(|stage| *stage == 3), "{}", transcript.name);
        }
    }
}

#[test]
fn a_gated_tool_starts_when_a_person_lets_it() {
    let said = said(of("claude/ask-stdio-allow"));
    let tools = |decision: &Decision| {
        let words = words(&events(&said, true, decision));
        words.into_iter().filter(|word| word.starts_with("tool.")).map(|word| &word[5..]).collect::<Vec<_>>()
    };
    // The second tool of that turn was one that no person had to be asked about.
    let let_through = ["proposed", "started", "completed", "proposed", "started", "completed"];
    assert_eq!(tools(&Decision::Approved), let_through);
    assert_eq!(
        tools(&Decision::Denied("no".into())),
        ["proposed", "completed", "proposed", "started", "completed"]
    );
    let args: Map<String, Value> = json!({"file_path": "other"}).as_object().unwrap().clone();
    let changed = events(&said, true, &Decision::Modified(args.clone()));
    let started = changed
        .iter()
        .find_map(|body| if let Body::ToolStarted { tool, .. } = body { Some(&tool.args) } else { None });
    assert_eq!(started, Some(&args));
}

#[test]
fn a_gate_that_takes_no_changes_denies_and_says_so() {
    let asked =
        Asked { id: "0".into(), call: None, tool: "x".into(), args: Map::new(), takes_changes: false };
    let mut reporter = reporter(true);
    assert_eq!(words(&reporter.events(&Said::Asked(asked.clone()))), ["tool.proposed"]);
    let denied = reporter.answered(&asked, &Decision::Modified(Map::new()));
    assert!(matches!(&denied[..], [Body::ToolCompleted { result, error: Some(_), .. }] if !result.ok));
    assert_eq!(reporter.close(), []);
}

#[test]
fn a_programs_own_id_may_come_again_and_ours_does_not() {
    let mut reporter = reporter(false);
    let start = Said::ToolStarted { id: "item_0".into(), name: "x".into(), args: Map::new() };
    let end = Said::ToolEnded { id: "item_0".into(), ok: true, output: "o".into() };
    let mut ids = Vec::new();
    for said in [&start, &start, &end, &end, &start] {
        for body in reporter.events(said) {
            if let Body::ToolProposed { tool, .. } = body {
                assert_eq!(tool.provider_id.as_deref(), Some("item_0"));
                ids.push(tool.id);
            }
        }
    }
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    assert!(
        matches!(&reporter.close()[..], [Body::ToolCompleted { error: Some(error), .. }] if error.message == "its turn ended")
    );
}

#[test]
fn calls_of_the_flows_tools_are_no_part_of_what_people_read() {
    let text = "Done.\n{\"tool_call\":{\"name\":\"finish_run\"}}";
    let events = reporter(false).events(&Said::Text(text.into()));
    assert!(matches!(&events[..], [Body::MessageFinal { content, .. }] if content == "Done."));
    let log = reporter(false).stderr(b"\x1b[31m red");
    assert!(matches!(log, Body::NodeLog { line, .. } if line == "\\x1b[31m red"));
}
