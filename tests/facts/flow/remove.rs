//! What `rm` takes away, and what it must not.

use super::{make, review};
use crate::support::life::{Life, Running, eventually};

const ID: &str = "55555555-5555-4555-8555-555555555555";

/// Everything below `refs/aynig/`.
fn ours(life: &Life) -> Vec<String> {
    let all = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/"]);
    all.lines().map(str::to_owned).collect()
}

/// N2a: a flow goes with its branches and all that waits for them, and with nothing else.
#[test]
fn a_flow_goes_with_all_that_is_its_own() {
    let life = review();
    life.flow(&["pause", "review"]).expect(0);
    life.flow(&["send", "review", "ada", "-m", "x"]).expect(0);
    life.run(&["pause", "flow/review/ada"]).expect(0);
    life.run(&["pause", "flow/review/ada", "main"]).expect(0);
    life.event("other", "done", "");
    life.run(&["send", "other", "-m", "stays"]).expect(0);
    let id = life.flow_file("run.json")["id"].as_str().unwrap().to_owned();
    let data = life.path(&format!(".git/aynig/data/runs/{id}"));
    life.flow(&["events", "review"]).expect(0);
    assert!(data.join("events.jsonl").exists());
    let gone = life.flow(&["rm", "review"]).expect(0).stdout;
    assert!(gone.contains("flow/review/ada: deleted\n") && gone.contains("1 messages"), "{gone}");
    assert_eq!(life.branches(), ["main", "other"]);
    let left = ours(&life);
    assert!(left.iter().all(|name| name.contains("/paused/") || name.contains("/inbox/other/")), "{left:?}");
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!data.exists());
    life.flow(&["rm", "review"]).expect(2);
    // Its name is free again, and so are its branches.
    make(&life, &[]);
    assert_eq!(life.branches(), ["flow/review/ada", "flow/review/lead", "main", "other"]);
    life.repo.assert_sound();
}

/// N2a: a node goes with its edges; the others stay.
#[test]
fn a_node_goes_with_its_edges() {
    let life = review();
    let lead = life.rev("flow/review/lead");
    life.flow(&["node", "remove", "review", "ada"]).expect(0);
    assert_eq!(life.branches(), ["flow/review/lead", "main"]);
    assert_eq!(life.rev("flow/review/lead"), lead);
    let flow = life.flow_ref();
    assert_eq!(life.git(&["ls-tree", "--name-only", &flow, "nodes/"]).lines().count(), 1);
    assert_eq!(life.git(&["ls-tree", "--name-only", &flow, "edges/"]), "");
}

/// N2a: the turn that runs is ended first, and the flow is stopped before that.
#[test]
fn a_turn_that_runs_is_ended_before_its_branch_goes() {
    let life = Life::new(&[
        ("turn", "echo $$ >>\"$T/began\"; while :; do sleep 0.1; done"),
        ("route", super::ROUTE),
    ]);
    life.config("aynig.killGrace", "300ms");
    make(&life, &[]);
    life.flow(&["send", "review", "ada", "-m", "x"]).expect(0);
    let run: Running = life.start_tick(&["flow/review/ada"]);
    eventually("it runs", || (!life.said("began").is_empty()).then_some(()));
    let gone = life.flow(&["rm", "review"]).expect(0).stdout;
    assert!(
        gone.contains("flow/review/ada: canceled\n") && gone.contains("flow/review/ada: deleted"),
        "{gone}"
    );
    run.done();
    assert_eq!(life.branches(), ["main"]);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/", "refs/aynig/flows/"]), "");
}

/// N2a: no flow that is pushed takes away a branch that was not made for it, whatever its files name.
#[test]
fn a_flow_takes_no_branch_away_that_is_not_its_own() {
    let life = review();
    let mine = life.flow_file("run.json")["id"].as_str().unwrap().to_owned();
    let flow = life.flow_ref();
    let run =
        life.git(&["show", &format!("{flow}:run.json")]).replace(&mine, ID).replace("\"Review\"", "\"Eve\"");
    let ada = life.trailer("flow/review/ada", "dwp-node").unwrap();
    let ada = life.git(&["show", &format!("{flow}:nodes/{ada}.json")]);
    life.git(&["branch", "flow/review/theirs"]);
    let branches = ["main", "flow/review/theirs", "flow/review/ada", "flow/other/x"];
    life.git(&["branch", "flow/other/x"]);
    let ids: Vec<String> = (1..5).map(|n| format!("{n}{}", &ID[1..])).collect();
    let mut files = vec![("run.json".to_owned(), run)];
    for (branch, id) in branches.iter().zip(&ids) {
        let node = ada
            .replace("\"flow/review/ada\"", &format!("\"{branch}\""))
            .replace("\"alias\": \"ada\"", &format!("\"alias\": \"a{}\"", &id[..1]));
        files.push((format!("nodes/{id}.json"), node));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    life.push_flow(ID, &files);
    let before: Vec<String> = branches.iter().map(|branch| life.rev(branch)).collect();
    life.flow(&["send", "review", "ada", "-m", "stays"]).expect(0);
    let said = life.flow(&["rm", "eve"]).expect(0);
    assert!(said.stderr.contains("'flow/review/theirs' stays: it was not made for this flow"), "{said:?}");
    let after: Vec<String> = branches.iter().map(|branch| life.rev(branch)).collect();
    assert_eq!(after, before);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]).lines().count(), 1);
    assert_eq!(life.flow_ref(), flow);
}

/// N2a: a branch that is checked out stays, and nothing else goes before that is seen.
#[test]
fn what_is_checked_out_is_not_taken_away() {
    let life = review();
    life.git(&["switch", "-q", "flow/review/ada"]);
    let before = life.git(&["for-each-ref"]);
    let said = life.flow(&["rm", "review"]).expect(2).stderr;
    assert!(said.contains("'flow/review/ada' is checked out in"), "{said}");
    assert_eq!(life.git(&["for-each-ref"]), before);
    life.git(&["switch", "-q", "main"]);
    life.flow(&["rm", "review"]).expect(0);
}

/// N2a: killed in the middle, it goes on when it is called again.
#[test]
fn a_removal_that_was_cut_off_goes_on() {
    let life = review();
    life.flow(&["stop", "review"]).expect(0);
    life.git(&["update-ref", "-d", "refs/heads/flow/review/ada"]);
    let shown = life.flow(&["show", "review"]).expect(0).stdout;
    assert!(shown.contains("flow/review/ada: its branch is gone"), "{shown}");
    life.flow(&["rm", "review"]).expect(0);
    assert_eq!((life.branches(), life.flow_ref()), (vec!["main".to_owned()], String::new()));
}

/// N4: what turns left stays with its flow, and goes with 'gc' where that is not here any more.
#[test]
fn gc_takes_what_turns_left_of_flows_that_are_gone() {
    let stage = super::turn::played(&super::turn::says("Well."), &[("solo", "implementer")]);
    super::turn::turn(&stage, "solo", "go").expect(0);
    let life = &stage.life;
    let turns = || life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/turns/"]);
    let kept = turns();
    assert!(kept.starts_with("refs/aynig/turns/"), "{kept}");
    life.git(&["config", "aynig.attemptExpire", "0"]);
    life.run(&["gc"]).expect(0);
    assert_eq!(turns(), kept);
    life.git(&["update-ref", "-d", &life.flow_ref()]);
    let said = life.run(&["gc"]).expect(0).stdout;
    assert!(said.contains(&format!("removed turn '{kept}'")), "{said}");
    assert_eq!(turns(), "");
}
