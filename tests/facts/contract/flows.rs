//! Changes of a flow, as pure functions of the flow as it was read. (N1)

use aynig::contract::edge::EdgeSpec;
use aynig::contract::flow::{
    BadFlow, Done, Flow, Mutation, NewRun, OpenPromise, Refused, apply, branch_of, create, slug,
};
use aynig::contract::id::{EdgeId, NodeId, PayloadId, RunId};
use aynig::contract::node::{NodeChange, NodeSpec};
use aynig::contract::time::Time;
use aynig::contract::words::{EdgeManagement, EdgeType, GlobalMode, Mode, Provider, RunStatus};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

fn node(n: u8) -> NodeId {
    NodeId(Uuid::from_bytes([n; 16]))
}

fn edge(n: u8) -> EdgeId {
    EdgeId(Uuid::from_bytes([0xe0 | n; 16]))
}

fn new(name: Option<&str>) -> NewRun {
    NewRun {
        id: RunId(Uuid::from_bytes([0xf; 16])),
        name: name.map(str::to_owned),
        mode: Mode::Interactive,
        global_mode: GlobalMode::Implementation,
        base: "c0ffee".into(),
        folder: None,
    }
}

fn empty() -> Flow {
    create(&new(None), &[], Time(0)).unwrap().flow
}

fn spec(label: &str, alias: Option<&str>, role: &str) -> NodeSpec {
    let mut spec: NodeSpec =
        serde_json::from_value(json!({"label": label, "provider": "custom", "roleTemplate": role})).unwrap();
    spec.alias = alias.map(str::to_owned);
    spec
}

fn add(flow: &Flow, n: u8, label: &str, alias: Option<&str>, role: &str) -> Result<Done, Refused> {
    let branch = branch_of(&flow.run.slug, alias.unwrap_or(label), node(n), |name| {
        flow.nodes.values().any(|node| node.branch == name)
    });
    apply(
        flow,
        &Mutation::AddNode { id: node(n), spec: spec(label, alias, role), branch },
        Time(i64::from(n)),
    )
}

fn join(n: u8, from: u8, to: u8) -> Mutation {
    let spec = EdgeSpec {
        id: None,
        from: node(from),
        to: node(to),
        bidirectional: None,
        edge_type: None,
        label: None,
    };
    Mutation::PutEdge { id: edge(n), spec }
}

/// An orchestrator, 1, and a planner, 2, joined by an edge.
fn pair() -> Flow {
    let flow = add(&empty(), 1, "Lead", None, "Orchestrator").unwrap().flow;
    let flow = add(&flow, 2, "Planner", Some("Plan"), "planner").unwrap().flow;
    apply(&flow, &join(1, 1, 2), Time(9)).unwrap().flow
}

fn read(files: &BTreeMap<String, Vec<u8>>) -> Result<Flow, BadFlow> {
    Flow::read(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))
}

#[test]
fn what_is_written_is_read_again_with_what_a_later_version_wrote() {
    let flow = pair();
    assert_eq!(read(&flow.files()), Ok(flow.clone()));
    let mut files = flow.files();
    for (path, text) in &mut files {
        let mut value: Value = serde_json::from_slice(text).unwrap();
        value["later"] = json!({"of": path});
        *text = serde_json::to_vec(&value).unwrap();
    }
    files.insert("layout/later.json".into(), b"{}".to_vec());
    let changed =
        apply(&read(&files).unwrap(), &Mutation::ResetNode(node(1)), Time(10)).unwrap().flow.files();
    assert_eq!(changed["layout/later.json"], b"{}");
    for path in files.keys().filter(|path| !path.starts_with("layout")) {
        let value: Value = serde_json::from_slice(&changed[path]).unwrap();
        assert_eq!(value["later"], json!({"of": path}), "{path}");
    }
}

#[test]
fn a_tree_that_is_no_flow_is_refused_by_name() {
    let files = pair().files();
    let without = |path: &str| {
        let mut files = files.clone();
        files.remove(path).unwrap();
        read(&files).unwrap_err().to_string()
    };
    assert_eq!(without("run.json"), "there is no 'run.json' in it");
    let gone = node(2);
    let loose = without(&format!("nodes/{gone}.json"));
    assert!(loose.contains(&format!("leads to node {gone}, which is not there")), "{loose}");
    let with = |path: &str, text: &str| {
        let mut files = files.clone();
        files.insert(path.to_owned(), text.as_bytes().to_vec());
        read(&files)
    };
    assert!(with("nodes/x.json", "{}").unwrap_err().to_string().contains("'x' is no UUID"));
    assert!(with(&format!("nodes/{}.json", node(3)), "{").unwrap_err().to_string().contains("can't be read"));
    let version = String::from_utf8(files["run.json"].clone()).unwrap().replace("\"1\"", "\"2\"");
    assert!(with("run.json", &version).unwrap_err().to_string().contains("contractVersion '2' is not known"));
    // A file can't speak for another node.
    let lead = String::from_utf8(files[&format!("nodes/{}.json", node(1))].clone()).unwrap();
    let read = with(&format!("nodes/{}.json", node(3)), &lead).unwrap();
    assert_eq!(read.nodes[&node(3)].config.id, Some(node(3)));
}

#[test]
fn a_new_flow_runs_and_has_a_name_of_its_own() {
    let run = empty().run;
    assert_eq!(
        (run.name.as_str(), run.slug.as_str(), run.status),
        ("flow-0f0f0f0f", "flow-0f0f0f0f", RunStatus::Running)
    );
    let others = [("Build It".to_owned(), "build-it".to_owned())];
    assert_eq!(
        create(&new(Some(" build it ")), &others, Time(0)),
        Err(Refused::NameTaken("build it".into()))
    );
    // Another name may have the same slug.
    assert_eq!(
        create(&new(Some("build, it!")), &others, Time(0)).unwrap().flow.run.slug,
        "build-it-0f0f0f0f"
    );
    assert_eq!(create(&new(Some("  ")), &[], Time(0)), Err(Refused::Empty { what: "the flow's name" }));
}

#[test]
fn a_branch_is_named_for_its_node_and_fixed() {
    let flow = pair();
    assert_eq!(flow.nodes[&node(2)].branch, "flow/flow-0f0f0f0f/plan");
    let renamed = apply(
        &flow,
        &Mutation::SetNode {
            id: node(2),
            change: NodeChange { alias: Some("x".into()), ..NodeChange::default() },
        },
        Time(3),
    )
    .unwrap();
    assert_eq!(renamed.flow.nodes[&node(2)].branch, "flow/flow-0f0f0f0f/plan");
    let third = add(&renamed.flow, 3, "PLAN", None, "planner").unwrap().flow;
    assert_eq!(third.nodes[&node(3)].branch, "flow/flow-0f0f0f0f/plan-03030303");
    let taken = Mutation::AddNode {
        id: node(4),
        spec: spec("d", None, "x"),
        branch: "FLOW/flow-0f0f0f0f/plan".into(),
    };
    assert!(matches!(apply(&flow, &taken, Time(4)), Err(Refused::BranchTaken(_))));
}

#[test]
fn a_role_fills_in_what_is_not_said() {
    let flow = pair();
    let lead = &flow.nodes[&node(1)].config;
    assert_eq!(
        (lead.capabilities.edge_management, lead.permissions.agent_management_requires_approval),
        (EdgeManagement::All, false)
    );
    let edges =
        |from, to| apply(&flow, &join(2, from, to), Time(5)).unwrap().flow.edges[&edge(2)].edge.clone();
    let (down, up, across) = (edges(1, 2), edges(2, 1), edges(2, 2));
    assert_eq!((down.edge_type, down.label.as_str(), down.bidirectional), (EdgeType::Handoff, "task", true));
    assert_eq!((up.edge_type, up.label.as_str()), (EdgeType::Report, "report"));
    assert_eq!((across.edge_type, across.label.as_str()), (EdgeType::Handoff, "task"));
}

#[test]
fn an_unknown_id_a_doubled_alias_and_an_edge_to_nowhere_are_refused_by_name() {
    let flow = pair();
    let said = |mutation: Mutation| apply(&flow, &mutation, Time(5)).unwrap_err().to_string();
    let nobody = node(7);
    assert_eq!(said(Mutation::ResetNode(nobody)), format!("there is no node '{nobody}'"));
    assert_eq!(said(Mutation::RemoveNode(nobody)), format!("there is no node '{nobody}'"));
    assert_eq!(said(Mutation::RemoveEdge(edge(7))), format!("there is no edge {}", edge(7)));
    assert!(said(join(2, 1, 7)).ends_with(&format!("would lead to node {nobody}, which is not there")));
    assert_eq!(
        add(&flow, 3, "C", Some(" pLAN "), "x").unwrap_err().to_string(),
        format!("alias 'pLAN' is node {}'s", node(2))
    );
    let id = node(1).to_string();
    assert!(matches!(add(&flow, 3, "C", Some(&id), "x"), Err(Refused::AliasTaken { .. })));
    assert!(matches!(add(&flow, 3, " ", None, "x"), Err(Refused::Empty { what: "the label" })));
    assert!(matches!(add(&flow, 3, &"x".repeat(300), None, "x"), Err(Refused::TooLong { .. })));
    assert!(matches!(add(&flow, 2, "Other", None, "x"), Err(Refused::NodeExists(_))));
    assert_eq!(
        "weird".parse::<Mode>().unwrap_err().to_string(),
        "'weird' is no mode: it is one of AUTO, INTERACTIVE"
    );
}

#[test]
fn the_same_node_twice_is_one() {
    let flow = pair();
    let again = add(&flow, 2, "Planner", Some("Plan"), "planner").unwrap();
    assert_eq!((again.changed, &again.flow), (false, &flow));
    let promise = OpenPromise { to: node(1), from: node(2), about: "the plan".into(), since: Time(3) };
    let promise = Mutation::Promise { id: PayloadId(Uuid::nil()), promise };
    let once = apply(&flow, &promise, Time(3)).unwrap();
    assert!(once.changed && !apply(&once.flow, &promise, Time(4)).unwrap().changed);
    let kept = apply(&once.flow, &Mutation::Keep { from: node(2), to: node(1) }, Time(5)).unwrap();
    assert!(kept.changed && kept.flow.run.promises.is_empty());
    assert!(!apply(&kept.flow, &Mutation::Keep { from: node(2), to: node(1) }, Time(5)).unwrap().changed);
    // One that gets no answer takes no other with it.
    let other = OpenPromise { to: node(1), from: node(2), about: "the rest".into(), since: Time(3) };
    let other = Mutation::Promise { id: PayloadId(Uuid::max()), promise: other };
    let both = apply(&once.flow, &other, Time(5)).unwrap().flow;
    let release = Mutation::Release(PayloadId(Uuid::nil()));
    let released = apply(&both, &release, Time(5)).unwrap();
    assert!(released.changed && released.flow.run.promises.keys().eq([&PayloadId(Uuid::max())]));
    assert!(!apply(&released.flow, &release, Time(6)).unwrap().changed);
}

#[test]
fn a_node_is_meant_by_id_alias_or_label() {
    let flow = add(&pair(), 3, "Lead", None, "x").unwrap().flow;
    for name in ["plan", " PLAN ", "planner", &node(2).to_string().to_uppercase()] {
        assert_eq!(flow.named(name), Ok(node(2)), "{name}");
    }
    assert_eq!(
        flow.named("LEAD"),
        Err(Refused::AmbiguousNode { name: "LEAD".into(), nodes: vec![node(1), node(3)] })
    );
    assert_eq!(flow.named("no\x1bbody").unwrap_err().to_string(), "there is no node 'no\\x1bbody'");
    // An alias is stronger than a label.
    let flow = add(&flow, 4, "x", Some("lead"), "x").unwrap().flow;
    assert_eq!(flow.named("lead"), Ok(node(4)));
}

#[test]
fn a_removed_node_takes_its_edges_and_promises_along() {
    let promise = OpenPromise { to: node(1), from: node(2), about: "x".into(), since: Time(3) };
    let flow =
        apply(&pair(), &Mutation::Promise { id: PayloadId(Uuid::nil()), promise }, Time(3)).unwrap().flow;
    let done = apply(&flow, &Mutation::RemoveNode(node(2)), Time(5)).unwrap();
    assert_eq!(
        (done.line.as_str(), done.flow.nodes.len(), done.flow.edges.len()),
        ("remove node 'Plan'", 1, 0)
    );
    assert!(done.flow.run.promises.is_empty());
    assert_eq!(read(&done.flow.files()), Ok(done.flow));
}

#[test]
fn an_edge_is_put_by_its_id_and_leads_as_it_is_directed() {
    let mut flow = pair();
    assert!(flow.leads(node(1), node(2)) && flow.leads(node(2), node(1)));
    let Mutation::PutEdge { id, mut spec } = join(1, 2, 1) else { unreachable!() };
    (spec.bidirectional, spec.label) = (Some(false), Some(String::new()));
    flow = apply(&flow, &Mutation::PutEdge { id, spec }, Time(5)).unwrap().flow;
    assert_eq!((flow.edges.len(), flow.edges[&edge(1)].edge.label.as_str()), (1, ""));
    assert!(!flow.leads(node(1), node(2)) && flow.leads(node(2), node(1)));
}

#[test]
fn a_branch_is_held_by_its_node_or_by_the_run() {
    let flow = pair();
    let set = |flow: &Flow, status| {
        let mutation =
            Mutation::SetRun { status: Some(status), mode: None, global_mode: None, summary: None };
        apply(flow, &mutation, Time(5)).unwrap().flow
    };
    let held = |flow: &Flow| [1, 2].map(|n| flow.holds(node(n)));
    assert_eq!(held(&flow), [false, false]);
    let stopped = apply(&flow, &Mutation::HoldNode { id: node(1), stopped: true }, Time(5)).unwrap().flow;
    assert_eq!(held(&stopped), [true, false]);
    for status in RunStatus::ALL {
        assert_eq!(held(&set(&flow, *status)), [*status != RunStatus::Running; 2]);
    }
    // A resumed run does not start what was stopped by itself, and nodes that come while it is paused are held.
    assert_eq!(held(&set(&set(&stopped, RunStatus::Paused), RunStatus::Running)), [true, false]);
    assert!(add(&set(&flow, RunStatus::Paused), 3, "C", None, "x").unwrap().flow.holds(node(3)));
}

#[test]
fn another_provider_begins_a_new_session() {
    let flow = pair();
    let set = |provider| {
        let change = NodeChange { provider: Some(provider), ..NodeChange::default() };
        apply(&flow, &Mutation::SetNode { id: node(2), change }, Time(5)).unwrap().flow.nodes[&node(2)].resets
    };
    assert_eq!((set(Provider::Custom), set(Provider::Claude)), (0, 1));
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let n = 0_u8..5;
    prop_oneof![
        (n.clone(), 0_u8..3, prop::sample::select(vec!["planner", "orchestrator"])).prop_map(
            |(n, alias, role)| {
                let alias = ["", "a", "B"][usize::from(alias)];
                Mutation::AddNode {
                    id: node(n),
                    spec: spec(&format!("n{n}"), Some(alias), role),
                    branch: format!("flow/f/{n}"),
                }
            }
        ),
        n.clone().prop_map(|n| Mutation::RemoveNode(node(n))),
        n.clone().prop_map(|n| Mutation::ResetNode(node(n))),
        (n.clone(), "[aB]{0,1}").prop_map(|(n, alias)| Mutation::SetNode {
            id: node(n),
            change: NodeChange { alias: Some(alias), ..NodeChange::default() }
        }),
        (n.clone(), n.clone(), n.clone()).prop_map(|(id, from, to)| join(id, from, to)),
        n.prop_map(|n| Mutation::RemoveEdge(edge(n))),
    ]
}

proptest! {
    #[test]
    fn whatever_is_done_a_flow_stays_one(mutations in prop::collection::vec(mutation(), 0..40)) {
        let mut flow = empty();
        for (n, mutation) in mutations.iter().enumerate() {
            let Ok(done) = apply(&flow, mutation, Time(n as i64)) else { continue };
            prop_assert_eq!(done.changed, done.flow != flow);
            prop_assert!(!done.line.contains('\n'));
            flow = done.flow;
            // It can be read again as it is, in the same order, and no two aliases are one.
            prop_assert_eq!(&read(&flow.files()), &Ok(flow.clone()));
            prop_assert!(read(&flow.files()).unwrap().nodes.keys().eq(flow.nodes.keys()));
            let mut aliases: Vec<String> = flow.nodes.values().filter_map(|node| node.config.alias.as_ref()).map(|a| a.to_lowercase()).collect();
            aliases.sort();
            prop_assert!(aliases.windows(2).all(|two| two[0] != two[1]));
        }
    }

    #[test]
    fn a_slug_is_part_of_a_branchs_name(text in ".{0,60}") {
        let slug = slug(&text, "node");
        prop_assert!(!slug.is_empty() && slug.len() <= 40);
        prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        prop_assert!(!slug.starts_with('-') && !slug.ends_with('-'));
    }

    #[test]
    fn no_file_breaks_a_reader(path in "(run|nodes/[0-9a-f-]{0,36}|edges/x|x).json", text in ".{0,80}") {
        let _ = Flow::read([(path.as_str(), text.as_bytes())]);
    }
}
