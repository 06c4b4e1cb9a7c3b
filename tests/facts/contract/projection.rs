//! The projection of what Git holds to events and state. (N13)

use super::schema;
use aynig::contract::edge::{EdgeSpec, Envelope};
use aynig::contract::event::{ApprovalRequest, ApprovalResolution, Body, Event, StallEvidence};
use aynig::contract::flow::{Flow, Mutation, NewRun, apply, create};
use aynig::contract::id::{
    ApprovalId, ArtifactId, EdgeId, MessageId, NodeId, PayloadId, RunId, ToolId, TurnId,
};
use aynig::contract::node::{NodeChange, NodePatch, NodeSpec, Todo, Usage};
use aynig::contract::projection::{Ended, Fact, Heard, Log, Projection, Rest, Step, Turned, in_order};
use aynig::contract::run::{Artifact, Run};
use aynig::contract::time::Time;
use aynig::contract::words::{
    ApprovalStatus, ArtifactKind, ConnectionStatus, EnvelopeKind, GlobalMode, LogSource, Mode, NodeStatus,
    Provider, RunStatus, TodoStatus, TurnStatus,
};
use aynig::protocol::id::ObjectId;
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

fn run_id() -> RunId {
    RunId(Uuid::from_bytes([0xf; 16]))
}

fn node(n: u8) -> NodeId {
    NodeId(Uuid::from_bytes([n; 16]))
}

fn commit(n: u64) -> ObjectId {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    ObjectId::from_bytes(&bytes).unwrap()
}

fn turn_id(n: u64) -> TurnId {
    TurnId(Uuid::from_u128(u128::from(n) + 1))
}

fn flow(nodes: u8) -> Flow {
    let new = NewRun {
        id: run_id(),
        name: None,
        mode: Mode::Auto,
        global_mode: GlobalMode::Planning,
        base: "c0ffee".into(),
        folder: None,
    };
    let mut flow = create(&new, &[], Time(0)).unwrap().flow;
    for n in 1..=nodes {
        let spec: NodeSpec = serde_json::from_value(
            json!({"label": format!("n{n}"), "provider": "custom", "roleTemplate": "x"}),
        )
        .unwrap();
        let add = Mutation::AddNode { id: node(n), spec, branch: format!("flow/f/{n}") };
        flow = apply(&flow, &add, Time(i64::from(n))).unwrap().flow;
    }
    flow
}

fn join(flow: &Flow) -> Flow {
    let spec =
        EdgeSpec { id: None, from: node(1), to: node(2), bidirectional: None, edge_type: None, label: None };
    apply(flow, &Mutation::PutEdge { id: EdgeId(Uuid::from_bytes([0xe; 16])), spec }, Time(9)).unwrap().flow
}

fn of_flow(n: u64, at: i64, flow: Flow) -> Fact {
    Fact::Flow { commit: commit(n), at: Time(at), flow: Box::new(flow) }
}

fn step(n: u8, c: u64, at: i64, step: Step) -> Fact {
    Fact::Step { node: node(n), at: Time(at), commit: commit(c), step }
}

fn message(n: u64, at: i64) -> Heard {
    Heard::Message {
        id: MessageId(Uuid::from_u128(u128::from(n) | 1 << 100)),
        at: Time(at),
        text: format!("m{n}"),
        interrupt: false,
    }
}

fn handoff(n: u64, at: i64) -> Heard {
    Heard::Handoff(Box::new(Envelope {
        kind: EnvelopeKind::Handoff,
        id: PayloadId(Uuid::from_u128(u128::from(n) | 1 << 101)),
        from_node_id: node(1),
        to_node_id: node(2),
        created_at: Time(at),
        payload: serde_json::from_value(json!({"message": "done"})).unwrap(),
        context_ref: None,
    }))
}

fn turned(n: u64, ended: Ended, told: bool) -> Step {
    let turn = turn_id(n);
    let artifact = Artifact {
        id: ArtifactId::of(turn, "prompt.full.txt"),
        run_id: run_id(),
        node_id: node(1),
        kind: ArtifactKind::Prompt,
        name: "prompt.full.txt".into(),
        path: "/data/p".into(),
        created_at: Time(1),
        metadata: None,
    };
    Step::Turned(Box::new(Turned {
        turn,
        ended,
        summary: format!("did {n}"),
        text: format!("text {n}"),
        told,
        session: Some(format!("session-{n}")),
        provider: Provider::Custom,
        model: "m".into(),
        usage: Usage::of(10, 5),
        artifacts: vec![artifact],
    }))
}

fn request(n: u128, of: u8) -> ApprovalRequest {
    let tool =
        serde_json::from_value(json!({"id": Uuid::from_u128(n).to_string(), "name": "command", "args": {}}))
            .unwrap();
    ApprovalRequest { approval_id: ApprovalId(Uuid::from_u128(n)), node_id: node(of), tool, context: None }
}

fn line(n: u8, turn: u64, number: u64, at: i64, body: Body) -> Fact {
    Fact::Line { node: node(n), at: Time(at), turn: turn_id(turn), number, body: Box::new(body) }
}

fn delta(n: u8) -> Body {
    Body::MessageDelta { node_id: node(n), delta: "d".into() }
}

fn project(facts: &[Fact]) -> (Vec<Event>, Projection) {
    let mut projection = Projection::new(run_id());
    let events = facts.iter().flat_map(|fact| projection.take(fact)).collect();
    (events, projection)
}

fn words(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.body.word()).collect()
}

/// The state that events make, for a reader that has nothing but them.
fn folded(events: &[Event]) -> Option<Run> {
    let mut run: Option<Run> = None;
    for event in events {
        match (&mut run, &event.body) {
            (Some(run), _) => run.apply(event),
            (none, Body::RunPatch { patch }) => *none = patch.made(),
            (None, _) => {}
        }
    }
    run
}

fn right(events: &[Event]) {
    let schema = schema::contract();
    for event in events {
        let value = serde_json::to_value(event).unwrap();
        assert_eq!(schema::wrong(&schema, "event", &value), Vec::<String>::new());
        assert_eq!(&serde_json::from_value::<Event>(value).unwrap(), event);
    }
}

/// A turn from the message that asks for it to its end.
fn a_turn(n: u8, c: u64, at: i64) -> Vec<Fact> {
    vec![
        Fact::Waits { node: node(n), at: Time(at), heard: message(c, at) },
        step(n, c, at + 1, Step::Delivered(vec![message(c, at)])),
        step(n, c + 1, at + 2, Step::Leased),
        line(n, c, 0, at + 3, delta(n)),
        step(n, c + 2, at + 4, turned(c, Ended::Completed, false)),
        step(n, c + 3, at + 5, Step::Rests(Rest::Idle)),
    ]
}

#[test]
fn a_flow_and_its_nodes_appear_with_all_that_a_page_needs() {
    let (events, projection) = project(&[of_flow(1, 20, join(&flow(2)))]);
    assert_eq!(words(&events), ["run.patch", "node.patch", "node.patch", "run.patch", "edge.created"]);
    right(&events);
    let Body::RunPatch { patch } = &events[0].body else { panic!() };
    assert_eq!(patch.id, Some(run_id()));
    // No later patch carries the id: a page would show that run.
    assert!(
        events[1..]
            .iter()
            .all(|event| !matches!(&event.body, Body::RunPatch { patch } if patch.id.is_some()))
    );
    let run = projection.run().unwrap();
    assert_eq!((run.nodes.len(), run.node_configs.len(), run.edges.len()), (2, 2, 1));
    assert_eq!(
        (run.status, run.nodes[&node(1)].session.session_id.as_str()),
        (RunStatus::Running, "pending")
    );
    let wrong = schema::wrong(&schema::contract(), "run", &serde_json::to_value(run).unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_turn_is_told_from_its_message_to_its_end() {
    let mut facts = vec![of_flow(1, 20, flow(1))];
    facts.extend(a_turn(1, 10, 30));
    let (events, projection) = project(&facts);
    right(&events);
    assert_eq!(
        words(&events)[3..],
        [
            "message.user",
            "node.patch",
            "node.patch",
            "turn.status",
            "node.patch",
            "node.progress",
            "message.assistant.delta",
            "artifact.created",
            "message.assistant.final",
            "telemetry.usage",
            "node.patch",
            "run.patch",
            "node.patch",
            "turn.status",
            "node.patch",
            "node.progress",
            "node.patch",
            "node.progress",
        ]
    );
    // A page shows a turn's status over the summary, so a node's own comes after the last one.
    let last = events.iter().rposition(|event| matches!(event.body, Body::TurnStatus { .. })).unwrap();
    assert!(events[last..].iter().any(|event| matches!(event.body, Body::NodePatch { .. })));
    let run = projection.run().unwrap();
    let node = &run.nodes[&node(1)];
    assert_eq!(
        (node.status, node.summary.as_str(), node.session.session_id.as_str()),
        (NodeStatus::Idle, "did 10", "session-10")
    );
    assert_eq!(
        (node.usage, run.usage, node.inbox_count),
        (Some(Usage::of(10, 5)), Some(Usage::of(10, 5)), Some(0))
    );
    assert_eq!((run.artifacts.len(), node.connection.as_ref().unwrap().status), (1, ConnectionStatus::Idle));
}

#[test]
fn a_message_is_told_once_wherever_it_is_seen() {
    let start = of_flow(1, 20, flow(2));
    let seen = Fact::Waits { node: node(2), at: Time(30), heard: handoff(1, 30) };
    let taken = step(2, 5, 40, Step::Delivered(vec![handoff(1, 30)]));
    let told = |facts: &[Fact]| {
        let (events, _) = project(facts);
        events
            .into_iter()
            .filter(|event| matches!(event.body, Body::HandoffSent { .. }))
            .map(|event| event.id)
            .collect::<Vec<_>>()
    };
    let waiting = told(&[start.clone(), seen.clone(), taken.clone()]);
    // Who comes later sees only that it was taken, and gives it the same id.
    let later = told(&[start.clone(), taken.clone()]);
    assert_eq!((waiting.len(), &waiting), (1, &later));
    // Nor does it wait again, nor arrive a second time where a run is asked for again.
    let retried = step(2, 6, 50, Step::Delivered(vec![handoff(1, 30)]));
    assert_eq!(told(&[start, taken, seen, retried]), later);
}

/// N13: a bare interrupt has no words, and no event that shows some; one with words is told as they are.
#[test]
fn a_bare_interrupt_is_no_word_of_the_users() {
    for (text, told) in [("", 0), (" \n", 0), ("stop", 1)] {
        let heard = match message(5, 30) {
            Heard::Message { id, at, .. } => Heard::Message { id, at, text: text.into(), interrupt: true },
            Heard::Handoff(_) => unreachable!(),
        };
        let facts = [of_flow(1, 20, flow(2)), Fact::Waits { node: node(2), at: Time(30), heard }];
        let (events, _) = project(&facts);
        let users = events.iter().filter(|event| matches!(event.body, Body::MessageUser { .. }));
        assert_eq!(users.count(), told, "{text:?}");
    }
}

#[test]
fn an_interrupted_turn_and_a_failed_one_say_so() {
    for (ended, turn, status) in [
        (Ended::Interrupted, TurnStatus::Interrupted, NodeStatus::Idle),
        (Ended::Failed, TurnStatus::Failed, NodeStatus::Failed),
    ] {
        let (events, projection) =
            project(&[of_flow(1, 20, flow(1)), step(1, 2, 30, turned(1, ended, false))]);
        let said = events
            .iter()
            .any(|event| matches!(event.body, Body::TurnStatus { status, .. } if status == turn));
        let cut = events.iter().any(|event| matches!(event.body, Body::MessageFinal { status: Some(_), .. }));
        assert_eq!((said, cut, projection.run().unwrap().nodes[&node(1)].status), (true, true, status));
    }
    // What a turn's lines told already is not told again.
    let (events, _) = project(&[of_flow(1, 20, flow(1)), step(1, 2, 30, turned(1, Ended::Completed, true))]);
    assert!(!words(&events).contains(&"message.assistant.final"));
}

#[test]
fn an_approval_that_ends_in_any_way_is_resolved_once() {
    let asked = Fact::Asked { at: Time(30), request: request(7, 1) };
    let resolution =
        ApprovalResolution { status: ApprovalStatus::Approved, modified_args: None, reason: None };
    let yes = Fact::Answered { at: Time(40), id: request(7, 1).approval_id, resolution };
    let ends = step(1, 9, 50, Step::Rests(Rest::Failed("crashed".into())));
    let goes = of_flow(9, 50, apply(&flow(2), &Mutation::RemoveNode(node(1)), Time(50)).unwrap().flow);
    for (after, status) in [
        (vec![yes.clone()], ApprovalStatus::Approved),
        (vec![yes.clone(), yes.clone(), ends.clone()], ApprovalStatus::Approved),
        (vec![ends.clone()], ApprovalStatus::Denied),
        (vec![ends, yes], ApprovalStatus::Denied),
        (vec![goes], ApprovalStatus::Denied),
    ] {
        let facts: Vec<Fact> =
            [of_flow(1, 20, flow(2)), asked.clone(), asked.clone()].into_iter().chain(after).collect();
        let (events, _) = project(&facts);
        right(&events);
        let resolved: Vec<ApprovalStatus> = events
            .iter()
            .filter_map(|event| {
                if let Body::ApprovalResolved { resolution, .. } = &event.body {
                    Some(resolution.status)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(resolved, [status]);
        assert_eq!(
            words(&events).iter().filter(|word| **word == "approval.requested").count(),
            1,
            "asked once"
        );
    }
}

#[test]
fn what_goes_is_told_with_its_edges() {
    let flow = join(&flow(2));
    let gone = apply(&flow, &Mutation::RemoveNode(node(2)), Time(50)).unwrap().flow;
    let (events, projection) = project(&[of_flow(1, 20, flow.clone()), of_flow(2, 50, gone)]);
    assert_eq!(words(&events)[5..], ["edge.deleted", "node.deleted"]);
    assert_eq!((projection.run().unwrap().nodes.len(), projection.run().unwrap().edges.len()), (1, 0));
    let edge = EdgeId(Uuid::from_bytes([0xe; 16]));
    let cut = apply(&flow, &Mutation::RemoveEdge(edge), Time(50)).unwrap().flow;
    assert_eq!(words(&project(&[of_flow(1, 20, flow), of_flow(2, 50, cut)]).0)[5..], ["edge.deleted"]);
}

#[test]
fn a_change_of_the_flow_is_told_as_that_change() {
    let before = flow(1);
    let change =
        NodeChange { alias: Some("a".into()), provider: Some(Provider::Codex), ..NodeChange::default() };
    let set = apply(&before, &Mutation::SetNode { id: node(1), change }, Time(5)).unwrap().flow;
    let set = apply(&set, &Mutation::HoldNode { id: node(1), stopped: true }, Time(5)).unwrap().flow;
    let status = Mutation::SetRun {
        status: Some(RunStatus::Paused),
        mode: Some(Mode::Interactive),
        global_mode: None,
        summary: None,
    };
    let set = apply(&set, &status, Time(5)).unwrap().flow;
    let (events, projection) = project(&[of_flow(1, 20, before), of_flow(2, 30, set.clone())]);
    right(&events);
    assert_eq!(words(&events)[3..], ["run.patch", "run.mode", "node.patch", "node.patch", "run.patch"]);
    let run = projection.run().unwrap();
    let node = &run.nodes[&node(1)];
    assert_eq!(
        (run.status, run.mode, node.alias.as_deref(), node.provider),
        (RunStatus::Paused, Mode::Interactive, Some("a"), Provider::Codex)
    );
    assert_eq!(node.connection.as_ref().unwrap().status, ConnectionStatus::Disconnected);
    assert_eq!(run.node_configs[&node.id], set.nodes[&node.id].config);
    // The same flow under another commit means nothing.
    let mut same = projection;
    assert_eq!(same.take(&of_flow(3, 40, set)), []);
}

#[test]
fn a_stall_pauses_the_run_and_blocks_the_node() {
    let evidence = StallEvidence {
        output_hash: Some("h".into()),
        summaries: vec!["s".into()],
        ..StallEvidence::default()
    };
    let stalled = Fact::Stalled { commit: commit(5), at: Time(30), node: node(1), evidence };
    let (events, projection) = project(&[of_flow(1, 20, flow(1)), stalled]);
    assert_eq!(words(&events)[3..], ["run.patch", "run.stalled", "node.patch"]);
    let run = projection.run().unwrap();
    assert_eq!((run.status, run.nodes[&node(1)].status), (RunStatus::Paused, NodeStatus::Blocked));
}

#[test]
fn a_line_says_an_agents_words_and_nothing_of_the_flow() {
    let start = of_flow(1, 20, flow(2));
    let (_, mut projection) = project(&[start]);
    let before = projection.run().cloned();
    let todo = Todo { content: "c".into(), status: TodoStatus::Pending, active_form: String::new() };
    let todos = NodePatch {
        todos: Some(vec![todo]),
        status: Some(NodeStatus::Failed),
        label: Some("mine".into()),
        ..NodePatch::default()
    };
    let lies = [
        Body::NodeDeleted { node_id: node(2) },
        Body::NodeProgress { node_id: node(2), status: NodeStatus::Failed, summary: "x".into() },
        Body::ApprovalResolved {
            approval_id: ApprovalId(Uuid::nil()),
            resolution: ApprovalResolution {
                status: ApprovalStatus::Approved,
                modified_args: None,
                reason: None,
            },
        },
        Body::RunMode { mode: Some(Mode::Interactive), global_mode: None },
        Body::NodePatch {
            node_id: node(2),
            patch: Box::new(NodePatch { label: Some("x".into()), ..NodePatch::default() }),
        },
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        assert_eq!(projection.take(&line(1, 1, n as u64, 30, lie)), []);
    }
    assert_eq!(projection.run().cloned(), before);
    // Whatever node a line names, it is the turn's own that speaks.
    let log = Body::NodeLog { node_id: node(2), source: LogSource::Stderr, line: "l".into() };
    let said = projection.take(&line(1, 1, 10, 30, log));
    assert!(matches!(&said[..], [Event { body: Body::NodeLog { node_id, .. }, .. }] if *node_id == node(1)));
    let said =
        projection.take(&line(1, 1, 11, 30, Body::NodePatch { node_id: node(2), patch: Box::new(todos) }));
    assert_eq!(said.len(), 1);
    let run = projection.run().unwrap();
    assert_eq!((run.nodes[&node(1)].label.as_str(), run.nodes[&node(1)].status), ("n1", NodeStatus::Idle));
    assert_eq!(run.nodes[&node(1)].todos.as_ref().unwrap().len(), 1);
    // Nor does anything mean anything for a node that the flow does not have.
    assert_eq!(projection.take(&line(9, 1, 12, 30, delta(9))), []);
    assert_eq!(projection.take(&step(9, 1, 30, Step::Leased)), []);
    let id = ToolId::of(turn_id(1), "toolu_1");
    assert_ne!(id, ToolId::of(turn_id(2), "toolu_1"), "an agent's own id is another in each turn");
}

#[test]
fn a_log_is_appended_to_only_with_what_is_new_and_its_times_never_go_back() {
    let (events, _) =
        project(&[of_flow(1, 90, flow(1)), line(1, 1, 0, 50, delta(1)), line(1, 1, 1, 95, delta(1))]);
    let mut log = Log::default();
    let new = log.append(events.clone());
    let times: Vec<_> = new.iter().map(|event| (event.ts.0, event.at.map(|at| at.0))).collect();
    assert_eq!(times, [(90, None), (90, None), (90, None), (90, Some(50)), (95, None)]);
    right(&new);
    let bytes = log.lines(&new);
    assert_eq!((log.append(events.clone()), log.len()), (vec![], bytes.len() as u64));
    let beat = event_of(Body::NodeHeartbeat { node_id: node(1) });
    assert_eq!(log.append(vec![beat]), []);
    // Read again, with a torn tail and a line that is none: the same is known.
    let mut torn = [&bytes[..], b"no event\n"].concat();
    let whole = torn.len() as u64;
    torn.extend_from_slice(&bytes[..20]);
    let mut again = Log::default();
    assert_eq!(again.read(&torn), whole);
    assert_eq!((again.append(events), again.is_empty(), Log::default().is_empty()), (vec![], false, true));
}

fn event_of(body: Body) -> Event {
    let id = aynig::contract::id::EventId::of(run_id(), &[b"x"]);
    Event { id, run_id: run_id(), ts: Time(1), body, at: None }
}

/// Two nodes' branches, their turns' lines, questions and a flow that changes meanwhile.
fn history() -> impl Strategy<Value = Vec<Fact>> {
    let fact = (0_u8..11, 1_u8..4, 0_u64..6, 0_i64..100).prop_map(|(kind, n, c, at)| match kind {
        0 => of_flow(100 + c, at, flow(1 + (c % 3) as u8)),
        1 => of_flow(200 + c, at, join(&flow(2 + (c % 2) as u8))),
        2 => Fact::Waits { node: node(n), at: Time(at), heard: message(c, at) },
        3 => Fact::Waits { node: node(n), at: Time(at), heard: handoff(c, at) },
        4 => step(n, 300 + c + 10 * u64::from(n), at, Step::Delivered(vec![message(c, at), handoff(c, at)])),
        5 => step(n, 400 + c + 10 * u64::from(n), at, Step::Leased),
        6 => step(n, 500 + c + 10 * u64::from(n), at, turned(c, Ended::Completed, c % 2 == 0)),
        7 => step(n, 600 + c + 10 * u64::from(n), at, Step::Rests(Rest::Blocked("why".into()))),
        8 => Fact::Asked { at: Time(at), request: request(u128::from(c) + 1, n) },
        9 => Fact::Answered {
            at: Time(at),
            id: ApprovalId(Uuid::from_u128(u128::from(c) + 1)),
            resolution: ApprovalResolution {
                status: ApprovalStatus::Denied,
                modified_args: None,
                reason: Some("r".into()),
            },
        },
        _ => line(n, c, at as u64, at, delta(n)),
    });
    prop::collection::vec(fact, 0..40).prop_map(|mut facts| {
        facts.insert(0, of_flow(1, 0, flow(2)));
        facts
    })
}

proptest! {
    #[test]
    fn projecting_again_yields_the_same_ids(facts in history()) {
        let (once, left) = project(&facts);
        let (again, right) = project(&facts);
        prop_assert_eq!(&once, &again);
        prop_assert_eq!(left, right);
        // A process that comes second appends nothing.
        let mut log = Log::default();
        let first = log.append(once.clone());
        prop_assert_eq!(log.append(again), vec![]);
        let distinct: HashSet<_> = first.iter().map(|event| event.id).collect();
        prop_assert_eq!(distinct.len(), first.len());
        prop_assert!(first.windows(2).all(|two| two[0].ts <= two[1].ts));
    }

    #[test]
    fn any_part_and_the_rest_are_the_whole(facts in history(), at in any::<prop::sample::Index>()) {
        let (whole, left) = project(&facts);
        let at = at.index(facts.len() + 1);
        let (mut parts, projection) = project(&facts[..at]);
        // Kept as text, and gone on with by another process.
        let kept = serde_json::to_string(&projection).unwrap();
        let mut on: Projection = serde_json::from_str(&kept).unwrap();
        parts.extend(facts[at..].iter().flat_map(|fact| on.take(fact)));
        prop_assert_eq!(parts, whole);
        prop_assert_eq!(on, left);
    }

    #[test]
    fn the_state_is_what_the_events_make(facts in history()) {
        let (events, projection) = project(&facts);
        let made = folded(&events);
        prop_assert_eq!(made.as_ref(), projection.run());
        // As a log has them, so what is read of it makes the same state.
        prop_assert!(events.windows(2).all(|two| two[0].ts <= two[1].ts));
        let schema = schema::contract();
        for event in &events {
            let value = serde_json::to_value(event).unwrap();
            prop_assert_eq!(schema::wrong(&schema, "event", &value), Vec::<String>::new());
        }
        let run = serde_json::to_value(projection.run().unwrap()).unwrap();
        prop_assert_eq!(schema::wrong(&schema, "run", &run), Vec::<String>::new());
    }

    #[test]
    fn a_sources_order_is_kept_and_sources_are_put_together_by_time(sources in prop::collection::vec(prop::collection::vec(0_i64..20, 0..6), 0..5)) {
        let facts: Vec<Vec<Fact>> = sources.iter().enumerate()
            .map(|(n, times)| times.iter().enumerate().map(|(k, at)| line(n as u8, n as u64, k as u64, *at, delta(1))).collect())
            .collect();
        let ordered = in_order(facts);
        prop_assert_eq!(ordered.len(), sources.iter().map(Vec::len).sum::<usize>());
        let place = |fact: &Fact| if let Fact::Line { node, number, .. } = fact { (node.0.as_bytes()[0], *number) } else { unreachable!() };
        for n in 0..sources.len() as u8 {
            let own: Vec<u64> = ordered.iter().map(place).filter(|(of, _)| *of == n).map(|(_, number)| number).collect();
            prop_assert!(own.windows(2).all(|two| two[0] < two[1]));
        }
        if sources.iter().all(|times| times.windows(2).all(|two| two[0] <= two[1])) {
            prop_assert!(ordered.windows(2).all(|two| two[0].at() <= two[1].at()));
        }
    }
}

/// How long this thread was at work: what else the machine does is not counted.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// 100,000 events within 5 s, and one more within 5 ms at any length; built for tests it has four times as long.
#[test]
fn a_long_history_is_projected_in_time_and_one_more_event_at_once() {
    let mut projection = Projection::new(run_id());
    let mut log = Log::default();
    let begun = thread_time();
    let (mut count, mut c) = (projection.take(&of_flow(1, 0, join(&flow(20)))).len(), 10);
    while count < 100_000 {
        let n = 1 + (c % 20) as u8;
        let mut facts = a_turn(n, c, c as i64 * 10);
        let text: Vec<Fact> = (1..20).map(|k| line(n, c, k, c as i64 * 10 + 3, delta(n))).collect();
        facts.splice(4..4, text);
        for fact in &facts {
            let new = log.append(projection.take(fact));
            count += new.len();
            log.lines(&new);
        }
        c += 10;
    }
    let took = thread_time() - begun;
    assert!(took < Duration::from_secs(20), "{count} events took {took:?}");
    let begun = thread_time();
    for k in 0..100 {
        let new = log.append(projection.take(&line(1, c, k, c as i64 * 10, delta(1))));
        assert_eq!(log.lines(&new).is_empty(), new.is_empty());
    }
    let each = (thread_time() - begun) / 100;
    assert!(each < Duration::from_millis(20), "one more took {each:?}");
    println!("{count} events in {took:?}, one more in {each:?}, {} bytes", log.len());
}
