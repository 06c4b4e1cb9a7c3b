//! Flows are made, joined and changed; by several at once; and refused by name.

use super::{ACCEPTS, ROUTE, TURN, review};
use crate::support::Repo;
use crate::support::life::{Life, Running};

/// N1, N3: a flow is a commit with its files, and a node a branch at the flow's base.
#[test]
fn a_flow_is_a_commit_and_a_node_is_a_branch() {
    for kind in [Repo::build(), Repo::build().sha256(), Repo::build().reftable()] {
        let Some(repo) = kind.create() else { continue };
        drop(repo);
        let life = Life::of(kind, &[("turn", TURN), ("route", ROUTE)]);
        super::make(&life, &[]);
        let base = life.rev("main");
        let run = life.flow_file("run.json");
        assert_eq!(
            (&run["name"], &run["slug"], &run["base"]),
            (&"Review".into(), &"review".into(), &base.into())
        );
        assert_eq!((&run["status"], &run["mode"]), (&"running".into(), &"INTERACTIVE".into()));
        assert_eq!(life.flow_ref(), format!("refs/aynig/flows/{}", run["id"].as_str().unwrap()));
        // One commit a change, each with what was done and by whom.
        let log =
            life.git(&["log", "--format=%s|%(trailers:key=dwp-from,valueonly,separator=)", &life.flow_ref()]);
        let log: Vec<&str> = log.lines().collect();
        assert_eq!(log.len(), 4, "{log:?}");
        assert_eq!(
            log[1..],
            [
                "flow: add node 'ada'|person ada@example.com",
                "flow: add node 'lead'|person ada@example.com",
                "flow: new flow 'Review'|person ada@example.com",
            ]
        );
        for node in ["lead", "ada"] {
            let branch = format!("flow/review/{node}");
            assert_eq!(life.git(&["log", "-1", "--format=%P", &branch]), life.rev("main"));
            assert_eq!(life.rev(&format!("{branch}^{{tree}}")), life.rev("main^{tree}"));
            assert_eq!(life.state(&branch), "idle");
            assert!(life.body(&life.rev(&branch)).contains(ACCEPTS));
            let file = format!("nodes/{}.json", life.trailer(&branch, "dwp-node").unwrap());
            assert_eq!(life.flow_file(&file)["branch"], branch);
        }
        life.repo.assert_sound();
        let shown = life.flow(&["show", "REVIEW"]).expect(0).stdout;
        assert!(shown.contains("  lead: idle, orchestrator, custom\n"), "{shown}");
        assert!(shown.contains("  lead <-> ada: handoff, 'task' ("), "{shown}");
    }
}

/// N1: two who change one flow at once both land, and so do their nodes' branches.
#[test]
fn all_who_change_one_flow_at_once_land() {
    let life = review();
    let label = |n: usize| format!("Same Name {}", n % 2);
    let add = |n: usize| {
        let label = label(n);
        life.start(&[
            "flow",
            "node",
            "add",
            "review",
            "--label",
            &label,
            "--role",
            "r",
            "--provider",
            "custom",
        ])
    };
    let all: Vec<Running> = (0..6).map(add).collect();
    for one in all {
        one.done().expect(0);
    }
    let nodes = life.git(&["ls-tree", "--name-only", &life.flow_ref(), "nodes/"]);
    assert_eq!(nodes.lines().count(), 8, "{nodes}");
    let mut named: Vec<String> =
        nodes.lines().map(|file| life.flow_file(file)["branch"].as_str().unwrap().to_owned()).collect();
    named.sort();
    let branches: Vec<String> = life.branches().into_iter().filter(|name| name != "main").collect();
    assert_eq!(named, branches);
    life.repo.assert_sound();
}

/// N1: what is refused is refused by name, and nothing is written.
#[test]
fn what_cannot_be_is_refused_by_name() {
    let life = review();
    let before = life.rev(&life.flow_ref());
    let said = life.flow(&["send", "review", "nobody", "-m", "x"]);
    assert!(said.stderr.contains("hint: git aynig flow show review\n"), "{said:?}");
    let add = |more: &[&str]| {
        let add = ["node", "add", "review", "--label", "x", "--role", "r", "--provider", "custom"];
        life.flow(&[&add[..], more].concat())
    };
    let nobody = "11111111-1111-4111-8111-111111111111";
    let lead = life.trailer("flow/review/lead", "dwp-node").unwrap();
    for (done, code, words) in [
        (add(&["--alias", "LEAD"]), 2, "alias 'LEAD' is node"),
        (add(&["--alias", &lead]), 2, "alias"),
        (add(&["--id", "lead"]), 129, "'lead' is no UUID"),
        (add(&["--id", &lead]), 2, "there is a node"),
        (add(&["--set", "writeCode=perhaps"]), 129, "'writeCode=perhaps'"),
        (life.flow(&["edge", "add", "review", "lead", "nobody"]), 2, "there is no node 'nobody'"),
        (
            life.flow(&["edge", "add", "review", "lead", "ada", "--type", "love"]),
            129,
            "'love' is no edge type",
        ),
        (life.flow(&["edge", "remove", "review", nobody]), 2, "there is no edge"),
        (life.flow(&["mode", "review", "manual"]), 129, "'manual' is no mode"),
        (life.flow(&["set", "review", "--status", "asleep"]), 129, "'asleep' is no run status"),
        (life.flow(&["node", "set", "review", "lead", "--label", " "]), 2, "the label is empty"),
        (life.flow(&["show", "rev"]), 2, "there is no flow 'rev'"),
        (life.flow(&["show", nobody]), 2, "there is no flow"),
        (life.flow(&["new", "REVIEW"]), 2, "a flow called 'REVIEW' is there already"),
    ] {
        let said = done.expect(code).stderr;
        assert!(said.starts_with("error: ") && said.contains(words), "{said}");
    }
    assert_eq!(life.rev(&life.flow_ref()), before);
    assert_eq!(life.branches().len(), 3);
}

/// N2: a flow is found by what its branches say, where no other has that name.
#[test]
fn a_flow_is_named_by_the_folder_of_its_branches() {
    let life = review();
    life.flow(&["new", "Release 2"]).expect(0);
    let shown = life.flow(&["show", "release-2"]).expect(0).stdout;
    assert!(shown.starts_with("Release 2: "), "{shown}");
    life.flow(&["new", "release-2"]).expect(0);
    let shown = life.flow(&["show", "release-2"]).expect(0).stdout;
    assert!(shown.starts_with("release-2: "), "{shown}");
}

/// N2a: a flow whose nodes could have no turn is refused, with the mend.
#[test]
fn a_flow_is_refused_where_no_turn_could_be_had() {
    let life = Life::new(&[("turn", TURN)]);
    let said = life.flow(&["new", "x"]).expect(2).stderr;
    assert!(said.contains("the trusted commands have no 'route'\nhint: git aynig flow init"), "{said}");
    // A folder of that name is in the way, as the pack `govern` has one for its turns: nothing is written.
    life.write(".aynig/command/route/x", "#!/bin/sh\n");
    life.git(&["add", "-A"]);
    let said = life.flow(&["init"]).expect(2).stderr;
    let mend = "git mv .aynig/command/route .aynig/command/<name>\n";
    assert!(said.contains("'.aynig/command/route' is a folder") && said.ends_with(mend), "{said}");
    life.git(&["mv", ".aynig/command/route", ".aynig/command/routes"]);
    let said = life.flow(&["init"]).expect(0).stdout;
    assert!(said.starts_with("Wrote .aynig/command/route\n"), "{said}");
    assert!(life.read(".aynig/command/route").contains("exec git aynig flow route"));
    // What is there stays.
    assert!(life.read(".aynig/command/turn").contains("cat"));
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "route"]);
    life.flow(&["new", "x"]).expect(0);
    life.config("aynig.commandsFrom", "none");
    let said = life.flow(&["new", "y"]).expect(2).stderr;
    assert!(said.contains("not trusted"), "{said}");
    // Without a first commit.
    life.config("aynig.commandsFrom", "refs/heads/main");
    life.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    let said = life.flow(&["new", "z"]).expect(128).stderr;
    assert!(said.contains("HEAD has no commit yet\nhint: git commit"), "{said}");
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/flows/"]).lines().count(), 1);
}

/// N1: the same node twice is one; a branch that is taken, in any case, gives another name.
#[test]
fn the_same_node_twice_is_one_and_no_branch_is_taken_from_another() {
    let life = review();
    let id = "22222222-2222-4222-8222-222222222222";
    life.git(&["branch", "flow/review/Eve"]);
    let theirs = life.rev("flow/review/Eve");
    let add = || {
        let add =
            ["node", "add", "review", "--label", "eve", "--role", "r", "--provider", "custom", "--id", id];
        life.flow(&[&add[..], &["--json"]].concat()).expect(0).json()
    };
    let (first, second) = (add(), add());
    assert_eq!(first["commit"], second["commit"]);
    assert_eq!(first["node"]["branch"], "flow/review/eve-22222222");
    assert_eq!((life.rev("flow/review/Eve"), life.branches().len()), (theirs, 5));
}

/// N3: a branch whose node never came to be, as its maker was killed between two refs, is made use of by the same
/// node, and taken away by another.
#[test]
fn a_branch_without_its_node_is_used_or_taken_away() {
    let life = review();
    let id = |n: u8| format!("{n}{n}{n}{n}{n}{n}{n}{n}-2222-4222-8222-222222222222");
    let add = |label: &str, id: &str| {
        let add =
            ["node", "add", "review", "--label", label, "--role", "r", "--provider", "custom", "--id", id];
        life.flow(&add).expect(0)
    };
    let flow = life.flow_ref();
    for (again, label) in [(2, "eve"), (3, "mallory")] {
        let before = life.rev(&flow);
        add("eve", &id(2));
        let made = life.rev("flow/review/eve");
        // As if the second ref had not been moved.
        life.git(&["update-ref", &flow, &before]);
        add(label, &id(again));
        match again {
            2 => {
                assert_eq!(life.rev("flow/review/eve"), made);
                life.git(&["update-ref", &flow, &before]);
                life.git(&["update-ref", "-d", "refs/heads/flow/review/eve"]);
            }
            _ => assert_eq!(life.try_rev("flow/review/eve"), None),
        }
    }
}
