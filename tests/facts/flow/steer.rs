//! Interrupts, resets, pauses of turns that run, and what goes on in AUTO.

use super::{ROUTE, make, review};
use crate::support::life::{Life, Running, eventually};

/// A turn that follows its inbox: it ends when it is told to, with what it was told.
const HEEDS: &str = "echo $$ >>\"$T/began\"\n\
    until m=$(git aynig inbox --kind interrupt --json) && [ -n \"$m\" ]; do sleep 0.05; done\n\
    echo \"$m\" >>\"$T/told\"\n\
    git aynig inbox --take \"$(echo \"$m\" | sed -n 's/.*\"id\":\"\\([0-9a-f-]*\\)\".*/\\1/p')\" >/dev/null\n\
    echo 'SET_STATE {\"state\":\"idle\",\"subject\":\"interrupted\",\"trailers\":[\"dwp-accepts: message=turn, handoff=turn, interrupt=turn\"]}'";

fn heeding() -> Life {
    let life = Life::new(&[("turn", HEEDS), ("route", ROUTE)]);
    make(&life, &[]);
    life
}

fn begin(life: &Life) -> Running {
    let before = life.said("began").lines().count();
    life.flow(&["send", "review", "ada", "-m", "go"]).expect(0);
    let run = life.start_tick(&["flow/review/ada"]);
    eventually("it runs", || (life.said("began").lines().count() > before).then_some(()));
    run
}

/// N12: a pause ends the turns that run, by an interrupt without a text, of which nothing is left.
#[test]
fn a_pause_interrupts_the_turns_that_run() {
    let life = heeding();
    let run = begin(&life);
    let said = life.flow(&["pause", "review"]).expect(0).stdout;
    assert!(said.contains("flow/review/ada: ended by itself"), "{said}");
    run.done().expect(0);
    assert!(life.said("told").contains("\"text\":\"\""), "{}", life.said("told"));
    assert_eq!(
        (life.state("flow/review/ada"), life.flow_file("run.json")["status"].as_str()),
        ("idle".into(), Some("paused"))
    );
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]), "");
}

/// N12: a bare interrupt of a node that does not run is refused; with a text it is a message; and what a killed 'pause' left is
/// taken away by 'resume'.
#[test]
fn an_interrupt_is_for_a_turn_that_runs() {
    let life = heeding();
    let said = life.flow(&["interrupt", "review", "ada"]).expect(2).stderr;
    assert!(said.contains("'flow/review/ada' has no turn under way"), "{said}");
    let run = begin(&life);
    let said = life.flow(&["interrupt", "review", "ada"]).expect(0).stdout;
    assert!(said.contains("ended by itself"), "{said}");
    run.done().expect(0);
    let sent = life.flow(&["interrupt", "review", "ada", "-m", "Do this.", "--json"]).expect(0).json();
    assert_eq!((&sent["kind"], &sent["text"]), (&"message".into(), &"Do this.".into()));
    life.flow(&["reset", "review", "ada"]).expect(0);
    life.flow(&["pause", "review"]).expect(0);
    life.run(&["send", "flow/review/ada", "--kind", "interrupt", "-m", ""]).expect(0);
    life.flow(&["resume", "review"]).expect(0);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]), "");
}

/// N12: what waits is dropped by its ids, and the node's number of resets grows.
#[test]
fn a_reset_drops_what_waits_and_says_what() {
    let life = review();
    let id = "01890000-0000-7000-8000-000000000001";
    life.flow(&["send", "review", "ada", "-m", "x", "--id", id]).expect(0);
    let said = life.flow(&["reset", "review", "ada"]).expect(0).stdout;
    assert_eq!(said, format!("ada: message {id} dropped\nada: its next turn begins a new session\n"));
    let file = format!("nodes/{}.json", life.trailer("flow/review/ada", "dwp-node").unwrap());
    assert_eq!(life.flow_file(&file)["resets"], 1);
    life.tick(&[]).expect(0);
    assert_eq!((life.said("heard"), life.state("flow/review/ada")), (String::new(), "idle".into()));
}

fn head(life: &Life, branch: &str, message: &str) {
    let (tree, parent) = (life.rev(&format!("{branch}^{{tree}}")), life.rev(branch));
    let commit = life.git(&["commit-tree", &tree, "-p", &parent, "-m", message]);
    life.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
}

/// N10, N11: switching to AUTO has an idle orchestrator go on that has had a turn, and no other; 'resume' sets a node idle that
/// went in a circle, and says up to which turn that was seen.
#[test]
fn an_orchestrator_goes_on_and_a_node_that_went_in_a_circle_is_resumed() {
    let life = review();
    life.flow(&["mode", "review", "auto"]).expect(0);
    assert_eq!(life.state("flow/review/lead"), "idle");
    for node in ["lead", "ada"] {
        life.flow(&["send", "review", node, "-m", "x"]).expect(0);
    }
    life.tick(&[]).expect(0);
    life.flow(&["mode", "review", "interactive"]).expect(0);
    assert_eq!(life.state("flow/review/lead"), "idle");
    life.flow(&["mode", "review", "auto"]).expect(0);
    assert_eq!(
        (life.state("flow/review/lead"), life.state("flow/review/ada")),
        ("turn".into(), "idle".into())
    );
    let turn = life.trailer("flow/review/ada", "dwp-run-id").unwrap();
    head(&life, "flow/review/ada", "x\n\ndwp-state: blocked\ndwp-run-id: r\ndwp-origin-state: route\n");
    life.flow(&["pause", "review"]).expect(0);
    life.flow(&["resume", "review"]).expect(0);
    assert_eq!(life.state("flow/review/ada"), "idle");
    let file = format!("nodes/{}.json", life.trailer("flow/review/ada", "dwp-node").unwrap());
    assert_eq!(life.flow_file(&file)["resumedAfter"], turn);
    // A person's own 'blocked' is not theirs to lift.
    head(&life, "flow/review/ada", "x\n\ndwp-state: blocked\n");
    life.flow(&["resume", "review"]).expect(0);
    assert_eq!(life.state("flow/review/ada"), "blocked");
}

/// K49b, N3: a node that waits for a message waits for no person in particular.
#[test]
fn an_idle_node_is_not_listed_as_waiting_for_a_person() {
    let life = review();
    assert_eq!(life.run(&["status", "--waiting"]).expect(0).stdout, "");
    let all = life.run(&["status"]).expect(0).stdout;
    assert!(all.contains("flow/review/ada") && all.contains("waits for a message"), "{all}");
    life.event("person", "idle", "");
    assert!(life.run(&["status", "--waiting"]).expect(0).stdout.contains("person"));
}
