//! What a command can ask and write while it runs.

use crate::support::world::World;

/// A command that runs this shell text.
fn script(text: &str) -> String {
    format!("#!/bin/sh\nset -eu\n{text}\n")
}

/// K44: a fence for what a command does elsewhere.
#[test]
fn a_living_run_can_ask_whether_it_still_holds_its_branch() {
    let world = World::any();
    let dir = world.init("repo");
    let text = script(
        "git rev-parse \"refs/aynig/run/$AYNIG_RUN_ID\" \"refs/heads/$AYNIG_BRANCH\" >asked\n\
         echo 'SET_STATE {\"state\":\"done\"}'",
    );
    world.commit_files(&dir, "main", &[(".aynig/command/ask", &text)], "commands");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.aynig(&dir, &["set-state", "ask", "-b", "work"]).expect(0);
    world.aynig(&dir, &["tick", "work"]).expect(0);
    let asked = world.git(&dir, &["show", "work:asked"]);
    let lease = world.git(&dir, &["rev-parse", "work^"]);
    assert_eq!(asked.lines().collect::<Vec<_>>(), [&lease, &lease]);
    assert_eq!(world.git(&dir, &["for-each-ref", "refs/aynig"]), "");
}

/// K22, K9: what `set-state` writes inside a command is the outcome, whatever the exit status says.
#[test]
fn a_set_state_inside_a_command_is_its_outcome() {
    let world = World::any();
    let dir = world.init("repo");
    let text = script(
        "echo made >made.txt\ngit aynig set-state done -m 'done: by hand'\n\
         echo 'SET_STATE {\"state\":\"other\"}'\nexit 7",
    );
    world.commit_files(&dir, "main", &[(".aynig/command/own", &text)], "commands");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.aynig(&dir, &["set-state", "own", "-b", "work"]).expect(0);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("own -> done") && said.out.contains("by its command, exit 7"), "{}", said.out);
    assert_eq!(world.git(&dir, &["log", "-1", "--format=%s", "work"]), "done: by hand");
    assert_eq!(world.git(&dir, &["show", "work:made.txt"]), "made");
    let trailer = |key: &str, at: &str| {
        world.git(&dir, &["log", "-1", &format!("--format=%(trailers:key={key},valueonly)"), at])
    };
    assert_eq!(trailer("dwp-run-id", "work"), trailer("dwp-run-id", "work^"));
    assert_eq!(trailer("dwp-hop", "work").trim(), "1");
}
