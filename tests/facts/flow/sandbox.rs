//! Turns where commands are confined (K59): the turn itself is not, and all that it starts is. Skipped without Landlock.

use super::stage::Stage;
use super::turn::{agent, calls, left, says, turn};
use crate::support::life::{Done, Running};
use aynig::contract::words::{Mode, Provider};
use serde_json::{Value, json};
use std::fs;

/// The command of a turn as `flow init` writes it.
const OWN: &str = "# A node of a flow has its turn. See gitaynig-flow(7).\nexec git aynig flow turn";

/// A flow whose turns are as `flow init` has them, and whose agent is this script; `None` where nothing can be confined.
fn confined(command: &str, script: &str) -> Option<Stage> {
    if aynig::supervisor::confine::kernel_version() < aynig::supervisor::confine::FOR_WRITE {
        crate::support::skipped("this kernel has no Landlock");
        return None;
    }
    let stage = Stage::with(command, Mode::Interactive, &[("solo", "implementer"), ("other", "implementer")]);
    agent(&stage, script);
    stage.life.config("aynig.sandbox", "write");
    Some(stage)
}

fn went(stage: &Stage, done: Done) {
    assert_eq!(done.code, Some(0), "{done:?}");
    let branch = stage.branch("solo");
    assert_eq!(stage.life.state(&branch), "route", "{}", stage.life.body(&branch));
}

/// K59: the agent's program works in the slot, and writes nowhere else; its turn is told, kept, asked and routed all the same.
#[test]
fn a_turn_is_had_and_its_agent_is_confined() {
    let handoff = json!({"name": "send_handoff", "args": {"to": "other", "message": "yours"}});
    let work = [
        json!({"id": "in", "name": "command", "args": {"cmd": "echo two >by-command; git rev-parse HEAD >head"}}),
        json!({"id": "out", "name": "command", "args": {"cmd": "echo x >\"$OUT/command\""}}),
    ];
    let script = format!(
        "read -r prompt; echo one >made; git add made; git commit -qm mine; echo x 2>/dev/null >\"$T/agent\"\n\
         git update-ref refs/heads/evil HEAD 2>/dev/null; mktemp >where; echo \"$AYNIG_SANDBOX\" >mode\n{}\n\
         read -r line; read -r line; {}",
        calls("Working.", &work),
        calls("All done.", &[handoff])
    );
    let Some(stage) = confined(OWN, &script) else { return };
    let out = stage.life.shared().display().to_string();
    stage.life.config("aynig.provider.custom.env", &format!("OUT={out}"));
    stage.life.config("aynig.flowVerify", &format!("sh -c 'echo x >\"{out}/verified\"'"));
    went(&stage, turn(&stage, "solo", "go"));
    let branch = stage.branch("solo");
    assert_eq!(
        (stage.life.show(&branch, "made"), stage.life.show(&branch, "by-command")),
        ("one".into(), "two".into())
    );
    assert_eq!(stage.life.show(&branch, "mode"), "write");
    assert!(
        stage.life.show(&branch, "where").contains("/turn/tmp/"),
        "{}",
        stage.life.show(&branch, "where")
    );
    for name in ["agent", "command", "verified"] {
        assert!(!stage.life.shared().join(name).exists(), "{name} was written");
    }
    assert_eq!(stage.life.try_rev("refs/heads/evil"), None);
    assert!(left(&stage, "solo", "transcript.txt").contains("All done."));
    // And what follows from it, with its own command, too.
    stage.go();
    let heard = stage.life.state(&stage.branch("other"));
    assert!(["turn", "route", "idle"].contains(&heard.as_str()), "{heard}");
    assert!(stage.letters().iter().any(|name| name.contains("/heard/")), "{:?}", stage.letters());
    stage.life.repo.assert_sound();
}

/// What speaks to the turn as the server of tools does, from inside the agent's program.
const KNOCK: &str = r#"
import json, os, socket, sys
words = sys.argv[1:]
server = json.loads(words[words.index("--mcp-config") + 1])["mcpServers"]["aynig"]
here = os.getcwd()
os.chdir(os.path.dirname(server["args"][2]))
turn = socket.socket(socket.AF_UNIX)
turn.connect(os.path.basename(server["args"][2]))
call = {"name": "send_handoff", "args": {"to": "other", "message": "yours"}}
turn.sendall((json.dumps({"id": 1, "call": call}) + "\n").encode())
os.chdir(here)
open("answer", "w").write(turn.makefile().readline())
"#;

/// K59, N7: a program that is confined reaches the tools of the flow all the same, and nothing else outside of its slot.
#[test]
fn a_confined_agent_calls_the_tools_of_the_flow() {
    let Some(mut stage) = confined(OWN, "exit 0") else { return };
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return crate::support::skipped("there is no python3");
    }
    let solo = stage.id("solo");
    stage.flow.nodes[&solo].config.provider = Provider::Claude;
    stage.write_flow();
    let t = stage.life.shared();
    fs::write(t.join("knock.py"), KNOCK).unwrap();
    let last = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "11111111-2222-4333-8444-555555555555", "result": "Done.",
        "usage": {"input_tokens": 1, "output_tokens": 1}});
    let (t, said) = (t.display(), last.to_string());
    let script = format!(
        "cat >/dev/null\npython3 '{t}/knock.py' \"$@\" 2>why\necho x 2>/dev/null >'{t}/escaped'\necho '{said}'"
    );
    fs::write(stage.life.shared().join("claude.sh"), script).unwrap();
    stage.life.config("aynig.provider.claude.command", &format!("sh '{t}/claude.sh'"));
    let helper = stage.life.shared().join("git-aynig-serve");
    crate::support::write_program(&helper, "#!/bin/sh\nexit 1\n");
    let branch = stage.branch("solo");
    stage.life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let mut tick = stage.life.aynig(&["tick", &branch]);
    let own = tick.get_envs().find_map(|(name, value)| value.filter(|_| name == "PATH")).unwrap().to_owned();
    tick.env("PATH", format!("{t}:{}", own.display()));
    went(&stage, Running::of(tick).done());
    assert_eq!(stage.life.show(&branch, "why"), "");
    let answer: Value = serde_json::from_str(&stage.life.show(&branch, "answer")).unwrap();
    assert_eq!(answer["result"]["ok"], true, "{answer}");
    assert!(!stage.life.shared().join("escaped").exists());
    stage.go();
    assert!(stage.letters().iter().any(|name| name.contains("/heard/")), "{:?}", stage.letters());
}

/// K59: a file that does more than call this program is a command as any, and is confined.
#[test]
fn a_command_that_does_more_is_confined() {
    let more = format!("echo x >\"$T/escaped\"\n{OWN}");
    let Some(stage) = confined(&more, &format!("read -r prompt\n{}", says("Well."))) else { return };
    turn(&stage, "solo", "go");
    assert_eq!(stage.life.state(&stage.branch("solo")), "stalled");
    assert!(!stage.life.shared().join("escaped").exists());
}

/// K59: nothing that a node's command hands over is done: it would count as a turn's outcome, calls included.
#[test]
fn a_nodes_command_hands_nothing_over() {
    let more = "git aynig set-state route --trailer 'dwp-flow-call: {}' >\"$AYNIG_RUN_DIR/said\" 2>&1; \
        cat \"$AYNIG_RUN_DIR/said\"; exit 3";
    let Some(stage) = confined(more, "exit 0") else { return };
    turn(&stage, "solo", "go");
    let branch = stage.branch("solo");
    assert_eq!(stage.life.state(&branch), "stalled");
    let said = stage.life.run(&["logs", &branch]).expect(0).stdout;
    assert!(said.contains("a node's turn hands nothing over"), "{said}");
    assert!(!stage.life.states(&branch).iter().any(|state| state == "route"));
}

/// K59: what leads Git elsewhere, written by the agent, ends the turn before Git is asked.
#[test]
fn an_agent_that_leads_git_elsewhere_ends_its_turn() {
    let evil = "read -r prompt; mkdir -p evil; cp -r \"$(git rev-parse --git-common-dir)/objects\" evil/ 2>/dev/null\n\
        echo \"$PWD/evil\" >\"$(git rev-parse --git-dir)/commondir\"";
    let Some(stage) = confined(OWN, &format!("{evil}\n{}", says("Well."))) else { return };
    turn(&stage, "solo", "go");
    let body = stage.life.body(&stage.branch("solo"));
    assert!(body.contains("commondir"), "{body}");
    assert_eq!(stage.life.state(&stage.branch("solo")), "stalled");
    // The next turn is one as any.
    agent(&stage, &format!("read -r prompt\n{}", says("Well.")));
    went(&stage, turn(&stage, "solo", "again"));
}
