//! Whose branches a flow holds, and which heads take a message as the retry.

use super::review;
use crate::support::life::Life;

/// N12: nothing is started on a flow that does not run, or on a node that is stopped; what was said waits.
#[test]
fn a_held_node_has_no_turn_and_its_messages_wait() {
    let life = review();
    life.flow(&["pause", "review"]).expect(0);
    let sent = life.flow(&["send", "review", "ada", "-m", "Do it."]).expect(0);
    assert!(sent.stderr.contains("it waits: the flow is paused\nhint: git aynig flow resume"), "{sent:?}");
    let (_, report) = life.report(&["flow/review/ada"]);
    assert_eq!((&report["result"], life.state("flow/review/ada")), (&"idle".into(), "idle".into()));
    let said = life.tick(&["flow/review/ada"]).expect(0);
    assert!(format!("{said:?}").contains("paused by flow Review: the flow is paused"), "{said:?}");
    assert!(life.flow(&["show", "review"]).expect(0).stdout.contains("held, 1 message waits"));
    // Others are not held by it.
    life.event("other", "turn", "");
    life.tick(&["other"]).expect(0);
    assert_eq!(life.state("other"), "idle");
    life.flow(&["resume", "review"]).expect(0);
    life.flow(&["stop", "review", "ada"]).expect(0);
    life.tick(&[]).expect(0);
    assert_eq!(life.said("heard"), "");
    life.flow(&["start", "review", "ada"]).expect(0);
    life.tick(&[]).expect(0);
    assert!(life.said("heard").contains("Do it."));
    for status in ["queued", "completed", "failed", "stopped"] {
        life.flow(&["set", "review", "--status", status]).expect(0);
        let said = life.flow(&["send", "review", "ada", "-m", status]).expect(0);
        assert!(said.stderr.contains("\nhint: git aynig flow resume review\n"), "{said:?}");
        life.tick(&[]).expect(0);
        assert!(!life.said("heard").contains(status), "{status}");
    }
    life.flow(&["resume", "review"]).expect(0);
    life.tick(&[]).expect(0);
    assert!(life.said("heard").contains("queued") && life.said("heard").contains("stopped"));
}

fn head(life: &Life, branch: &str, state: &str, more: &str) {
    let message = format!("x\n\ndwp-state: {state}\n{more}");
    let tree = life.rev(&format!("{branch}^{{tree}}"));
    let parent = life.rev(branch);
    let commit = life.git(&["commit-tree", &tree, "-p", &parent, "-m", &message]);
    life.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
}

/// N3: a message is the retry of a node whose turn went wrong, though no commit says so.
#[test]
fn a_message_is_the_retry_of_a_turn_that_went_wrong() {
    let life = review();
    let branch = "flow/review/ada";
    for state in ["failed", "stalled", "blocked", "canceled"] {
        head(&life, branch, state, "");
        let said = life.flow(&["show", "review"]).expect(0).stdout;
        let status = match state {
            "blocked" => "blocked",
            "canceled" => "idle",
            _ => "failed",
        };
        assert!(said.contains(&format!("  ada: {status},")), "{state}: {said}");
        life.flow(&["send", "review", "ada", "-m", state]).expect(0);
        life.tick(&[]).expect(0);
        assert!(life.said("heard").contains(state), "{state}");
        assert_eq!(life.state(branch), "idle");
    }
    // What a head says of a kind counts; and other states take nothing.
    head(&life, branch, "blocked", "dwp-accepts: message=other\n");
    life.flow(&["send", "review", "ada", "-m", "x"]).expect(0);
    life.tick(&[]).expect(0);
    assert_eq!(life.state(branch), "other");
    head(&life, branch, "done", "");
    life.flow(&["send", "review", "ada", "-m", "unheard"]).expect(0);
    life.tick(&[]).expect(0);
    assert!(!life.said("heard").contains("unheard"));
}

/// N3: no flow that is pushed makes a branch take messages that was not made for it; nor does one outside of its folder.
#[test]
fn a_flow_makes_no_other_branch_take_messages() {
    let life = review();
    let run = life.git(&["show", &format!("{}:run.json", life.flow_ref())]);
    let id = "33333333-3333-4333-8333-333333333333";
    let mine = life.flow_file("run.json")["id"].as_str().unwrap().to_owned();
    let flow = life.flow_ref();
    let file = format!("nodes/{}.json", life.trailer("flow/review/ada", "dwp-node").unwrap());
    let ada = life.git(&["show", &format!("{flow}:{file}")]);
    let node = |branch: &str| ada.replace("\"flow/review/ada\"", &format!("\"{branch}\""));
    for branch in ["main2", "flow/review/theirs", "flow/other/x", "feature/y"] {
        life.git(&["branch", "-f", branch, "main"]);
        head(&life, branch, "failed", "");
        let run = run.replace(&mine, id).replace("\"Review\"", "\"Eve\"");
        let file = format!("nodes/{id}.json");
        life.push_flow(id, &[("run.json", &run), (&file, &node(branch))]);
        life.run(&["send", branch, "-m", "taken?"]).expect(0);
        life.tick(&[]).expect(0);
        assert_eq!(life.state(branch), "failed", "{branch}");
    }
    assert!(!life.said("heard").contains("taken?"));
    // The run of this one answered a turn: it is a node, whichever user says so.
    head(&life, "flow/review/theirs", "failed", "dwp-run-id: r\ndwp-origin-state: turn\n");
    let run = run.replace(&mine, id).replace("\"Review\"", "\"Eve\"");
    life.push_flow(id, &[("run.json", &run), (&format!("nodes/{id}.json"), &node("flow/review/theirs"))]);
    life.tick(&[]).expect(0);
    assert!(life.said("heard").contains("taken?"));
}
