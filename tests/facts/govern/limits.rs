//! Time: a worker ends with its turn's, and what the configuration asks for in vain is said.

use crate::govern::rig::*;
use crate::support::life::{Life, eventually, lives};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Ignores SIGTERM, and leaves a process in a session of its own behind.
const STUBBORN: &str = r#"trap '' TERM
echo half >half.txt
echo '{}' >"$AGENTXCHAIN_RESULT"
setsid sleep 600 & echo $! >>"$T/alive"
echo $$ >>"$T/alive"
while :; do sleep 600; done"#;

/// One minute ago, but for this.
fn ago(left: Duration) -> Value {
    json!(humantime::format_rfc3339_millis(SystemTime::now() - Duration::from_secs(60) + left).to_string())
}

/// Has the one active turn, and its phase, begun at this time.
fn began(state: &mut Value, at: &Value, scope: &str) {
    if scope == "phase" {
        state["phase_entered_at"] = at.clone();
    } else {
        for (_, turn) in state["active_turns"].as_object_mut().unwrap() {
            turn["started_at"] = at.clone();
        }
    }
}

fn is_alive(life: &Life) -> bool {
    life.said("alive").lines().any(lives)
}

/// G16, G12: at its limit a worker is ended, with all that it started; the branch has nothing of its, and says why.
#[test]
fn a_worker_is_ended_at_its_deadline() {
    for scope in ["turn", "phase"] {
        let life = life(|config| match scope {
            "turn" => config["timeouts"] = json!({ "per_turn_minutes": 1 }),
            _ => config["routing"]["planning"]["timeout_minutes"] = json!(1),
        });
        life.config("aynig.killGrace", "200ms");
        worker(&life, STUBBORN);
        let mut left = Duration::from_secs(3);
        // On a slow machine the time is over before the worker begins: with more of it once more.
        let branch = loop {
            let branch = format!("work{}", left.as_secs());
            govern(&life, &["start", "-b", &branch]).expect(0);
            govern(&life, &["assign", "-b", &branch]).expect(0);
            life.git(&["checkout", "-q", &branch]);
            let mut state: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
            began(&mut state, &ago(left), scope);
            life.write(".agentxchain/state.json", &format!("{state:#}\n"));
            life.git(&["commit", "-qam", "earlier\n\ndwp-state: turn/pm"]);
            life.git(&["checkout", "-q", "main"]);
            life.run(&["tick", &branch]);
            if life.shared().join("alive").exists() {
                break branch;
            }
            left *= 2;
        };
        assert!(!is_alive(&life), "{scope}");
        let show = |path: &str| life.git(&["show", &format!("{branch}:{path}")]);
        let state: Value = serde_json::from_str(&show(".agentxchain/state.json")).unwrap();
        assert_eq!(
            (life.state(&branch).as_str(), &state["status"]),
            ("blocked", &json!("blocked")),
            "{state}"
        );
        assert_eq!(state["blocked_on"], format!("timeout:{scope}"));
        let why = state["blocked_reason"]["recovery"]["detail"].as_str().unwrap();
        assert!(why.contains("longer than 1 minutes") && why.contains("its worker was ended"), "{why}");
        let kept = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
        let kept = kept.lines().find(|name| name.ends_with("-rejected")).unwrap().to_owned();
        assert_eq!(life.git(&["show", &format!("{kept}:half.txt")]), "half");
        let files = life.git(&["ls-tree", "-r", "--name-only", &branch]);
        assert!(!files.contains("half.txt") && !files.contains("turn-result.json"), "{files}");
        // A person gives it that time again.
        worker(
            &life,
            std::fs::read_to_string(format!("{PACK}/govern/worker"))
                .unwrap()
                .trim_start_matches("#!/bin/sh\n"),
        );
        govern(&life, &["unblock", "-b", &branch]).expect(0);
        assert_eq!(life.state(&branch), "turn/pm");
        life.run(&["tick", &branch]).expect(0);
        assert_eq!(life.state(&branch), "gate");
    }
}

/// A plain folder with this configuration.
fn plain(edit: impl FnOnce(&mut Value)) -> (Life, PathBuf) {
    let life = Life::new(&[]);
    let folder = life.repo.home().join("plain");
    std::fs::create_dir(&folder).unwrap();
    let config = std::fs::read(format!("{PACK}/govern/agentxchain.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    edit(&mut config);
    std::fs::write(folder.join("agentxchain.json"), format!("{config:#}\n")).unwrap();
    (life, folder)
}

/// G16: in a plain folder, by the loop.
#[test]
fn the_loop_ends_a_worker_at_its_deadline() {
    let (life, folder) = plain(|config| config["timeouts"] = json!({ "per_turn_minutes": 1 }));
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    govern(&life, &["assign", "--root", root]).expect(0);
    let path = folder.join(".agentxchain/state.json");
    let mut left = Duration::from_secs(2);
    let script = format!("T='{}'; {}", life.shared().display(), STUBBORN.replace("trap '' TERM", ""));
    let report = loop {
        let mut state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        began(&mut state, &ago(left), "turn");
        std::fs::write(&path, format!("{state:#}\n")).unwrap();
        let said = govern(&life, &["loop", "--json", "--root", root, "--", "sh", "-c", &script]);
        if life.shared().join("alive").exists() {
            break said.json();
        }
        govern(&life, &["unblock", "--root", root]);
        left *= 2;
    };
    assert!(!is_alive(&life));
    assert_eq!(report["stop_reason"], "blocked", "{report}");
    assert_eq!(report["run"]["blocked_on"], "timeout:turn", "{report}");
    assert!(report["errors"][0].as_str().unwrap().contains("its worker was ended"), "{report}");
    let turn = report["turn_history"][0]["turn_id"].as_str().unwrap();
    assert!(!folder.join(format!(".agentxchain/staging/{turn}/turn-result.json")).exists());
}

/// G13: whose change it was is known where a phase has several turns at once too: workers go one after another.
#[test]
fn a_worker_in_a_folder_works_beside_no_other_turn() {
    let (life, folder) = plain(|config| config["routing"]["planning"]["max_concurrent_turns"] = json!(3));
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    let script = r#"sed -i 's/"phase": "planning"/"phase": "qa"/' .agentxchain/state.json"#;
    govern(&life, &["turn", "--root", root, "--role", "pm", "--", "sh", "-c", script]).expect(0);
    let read = || std::fs::read_to_string(folder.join(".agentxchain/state.json")).unwrap();
    let state = read();
    assert!(state.contains("\"phase\": \"planning\"") && state.contains("the run's own"), "{state}");
    // The turn of 'pm' is still to be done.
    let ran = format!("touch '{}'", life.shared().join("ran").display());
    let said = govern(&life, &["turn", "--root", root, "--role", "dev", "--", "sh", "-c", &ran]).expect(2);
    assert!(said.stderr.contains("beside turn") && said.stderr.contains("of 'pm'"), "{said:?}");
    assert!(said.stderr.contains("hint: git aynig govern"), "{said:?}");
    assert!(!life.shared().join("ran").exists());
    assert_eq!(read(), state, "a refusal changes nothing");
    // Nor does the loop, which says what mends it as 'turn' does.
    govern(&life, &["assign", "--root", root, "dev"]).expect(0);
    let looped = govern(&life, &["loop", "--root", root, "--", "sh", "-c", &ran]).expect(1);
    assert!(looped.stderr.contains("error: dispatch failed: cannot run a worker for 'pm'"), "{looped:?}");
    let accept = format!("hint: git aynig govern accept --root '{root}' turn_");
    assert!(looped.stderr.contains(&accept) && !life.shared().join("ran").exists(), "{looped:?}");
    // What begins anew is said of this folder, which no Git knows.
    std::fs::write(folder.join(".agentxchain/state.json"), "{}").unwrap();
    let looped = govern(&life, &["loop", "--root", root]).expect(1);
    let aside = format!("hint: mv '{root}/.agentxchain/state.json' ");
    assert!(looped.stderr.contains(&aside), "{looped:?}");
}

/// G16: what a project of another tool asks for in vain is said once, when its run begins.
#[test]
fn what_is_not_enforced_is_said_once() {
    let life = life(|config| {
        let runtimes = config["runtimes"].as_object_mut().unwrap();
        let cli = runtimes.values_mut().find(|runtime| runtime["type"] == "local_cli").unwrap();
        cli["startup_watchdog_ms"] = json!(1000);
        config["notifications"] = json!({ "approval_sla": { "reminder_after_seconds": [300] } });
    });
    let said = govern(&life, &["start", "-b", "work"]).expect(0);
    for named in ["startup_watchdog_ms' is not enforced", "'notifications.approval_sla' is not enforced"] {
        assert_eq!(said.stderr.matches(named).count(), 1, "{said:?}");
    }
    for verb in [&["status", "-b", "work"][..], &["assign", "-b", "work"]] {
        let said = govern(&life, verb).expect(0);
        assert!(!said.stderr.contains("not enforced"), "{said:?}");
    }
}

/// G16: a key that is nearly one of the format is said, and one that asks for a gate in vain is refused by name.
#[test]
fn a_misspelt_key_is_told_and_takes_no_gate_away() {
    let loose = life(|config| {
        config["rulez"] = json!({});
        config["rules"]["max_turn_retrys"] = json!(5);
        config["roles"]["dev"]["write_autority"] = json!("proposed");
        config["roles"]["dev"]["favourite_colour"] = json!("red");
        config["routing"]["planning"]["colour"] = json!("red");
        config["routing"]["planning"]["exit_gates"] = json!("none");
    });
    let said = govern(&loose, &["start", "-b", "work"]).expect(0).stderr;
    for told in [
        "'rulez' is no key of the format: did you mean 'rules'?",
        "'rules.max_turn_retrys' is no key of the format: did you mean 'max_turn_retries'?",
        "'roles.dev.write_autority' is no key of the format: did you mean 'write_authority'?",
        "'routing.planning.colour' is no key of the format\n",
        "'routing.planning.exit_gates' is no key of the format: did you mean 'exit_gate'?",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(!said.contains("favourite_colour"), "{said}");
    let renamed = |part: &mut Value, from: &str, to: &str| {
        let part = part.as_object_mut().unwrap();
        let value = part.remove(from).unwrap();
        part.insert(to.to_owned(), value);
    };
    let life = life(|config| {
        renamed(&mut config["routing"]["planning"], "exit_gate", "exit_gat");
        for (_, gate) in config["gates"].as_object_mut().unwrap() {
            if gate["requires_human_approval"] == true {
                renamed(gate, "requires_human_approval", "requires_human_aproval");
            }
        }
    });
    let said = govern(&life, &["start", "-b", "work"]).expect(128).stderr;
    assert!(said.contains("routing.planning.exit_gat must be 'exit_gate'"), "{said}");
    assert!(said.contains(".requires_human_aproval must be 'requires_human_approval'"), "{said}");
}

/// G14, G16: a policy that no result of a role could keep is refused before the role's first attempt.
#[test]
fn a_policy_that_nobody_can_keep_is_refused() {
    let started = |action: &str, scope: Value| {
        let life = life(|config| {
            config["runtimes"]["hand"] = json!({ "type": "manual" });
            config["roles"]["qa"]["runtime"] = json!("hand");
            let rule = "require_reproducible_verification";
            config["policies"] = json!([{ "id": "shown", "rule": rule, "action": action, "scope": scope }]);
        });
        govern(&life, &["start", "-b", "work"])
    };
    for scope in [json!({}), json!({ "roles": ["qa"] })] {
        let said = started("block", scope).expect(128).stderr;
        assert!(said.contains("policies[0].rule must not be") && said.contains("for role 'qa'"), "{said}");
        assert!(!said.contains("for role 'dev'"), "{said}");
    }
    started("warn", json!({})).expect(0);
    started("block", json!({ "roles": ["dev"] })).expect(0);
}

/// G16, K17: what ends the verb, outright too, ends its worker and all that this started.
#[test]
fn a_worker_does_not_outlive_its_verb() {
    let (life, folder) = plain(|_| {});
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    let script =
        format!("T='{}'; {STUBBORN}", life.shared().display()).replace("while", "echo up >\"$T/up\"; while");
    let turn = ["govern", "turn", "--root", root, "--role", "pm", "--", "sh", "-c", &script];
    let running = life.start(&turn);
    life.hear("up");
    assert!(is_alive(&life));
    running.signal(nix::sys::signal::Signal::SIGKILL);
    drop(running);
    eventually("the worker's end", || (!is_alive(&life)).then_some(()));
}

/// G7: a prompt is an argument or standard input, as the runtime says; what a worker prints declares nothing.
#[test]
fn a_prompt_is_given_as_the_runtime_says() {
    for (transport, command) in [
        ("stdin", json!(["sh", "-c", "cat >told; echo 'SET_STATE {}'; echo x >&2"])),
        (
            "argv",
            json!([
                "sh",
                "-c",
                "printf '%s' \"$1\" >told; echo 'SET_STATE {}'; echo x >&2",
                "sh",
                "{prompt}"
            ]),
        ),
    ] {
        let (life, folder) = plain(|config| {
            config["runtimes"]["shell"]["command"] = command;
            config["runtimes"]["shell"]["prompt_transport"] = json!(transport);
        });
        let root = folder.to_str().unwrap();
        govern(&life, &["start", "--root", root]).expect(0);
        let said = govern(&life, &["turn", "--root", root, "--role", "pm"]).expect(0);
        let told = std::fs::read_to_string(folder.join("told")).unwrap();
        assert!(told.starts_with('#') && told.contains("Write one JSON object to `"), "{transport}: {told}");
        assert!(said.stderr.contains("SET_STATE {}\n") && said.stderr.contains("x\n"), "{said:?}");
        assert_eq!(said.stdout.matches("SET_STATE ").count(), 1, "{said:?}");
    }
}

/// G4, G8: what could not be accepted takes the place of nothing.
#[test]
fn a_result_that_is_refused_leaves_what_was_staged() {
    let (life, folder) = plain(|_| {});
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    govern(&life, &["assign", "--root", root]).expect(0);
    let turns = std::fs::read_dir(folder.join(".agentxchain/dispatch/turns")).unwrap();
    let turn = turns.flatten().next().unwrap().file_name();
    let staged = folder.join(".agentxchain/staging").join(turn).join("turn-result.json");
    let _ = std::fs::remove_file(&staged);
    let result = folder.join("result.json");
    for broken in ["{\"bad\":", "{}"] {
        std::fs::write(&result, broken).unwrap();
        govern(&life, &["accept", "--root", root, "-F", result.to_str().unwrap()]).expect(2);
        assert!(!staged.exists(), "{broken}");
    }
    std::fs::create_dir_all(staged.parent().unwrap()).unwrap();
    std::fs::write(&staged, "mine").unwrap();
    govern(&life, &["accept", "--root", root, "-F", result.to_str().unwrap()]).expect(2);
    assert_eq!(std::fs::read_to_string(&staged).unwrap(), "mine");
}

/// G13: a state that would take a hundred times its size in memory is refused before it is read.
#[test]
fn a_state_of_a_branch_is_of_a_bounded_size() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.git(&["checkout", "-q", "work"]);
    let mut state: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
    state["more"] = json!(vec![0; 2 << 20]);
    life.write(".agentxchain/state.json", &state.to_string());
    life.git(&["commit", "-qam", "larger"]);
    life.git(&["checkout", "-q", "main"]);
    let said = govern(&life, &["status", "-b", "work"]).expect(128);
    assert!(said.stderr.contains(".agentxchain/state.json': it must have at most 4194304 bytes"), "{said:?}");
    let head = life.rev("work");
    let said = govern(&life, &["block", "-b", "work", "-m", "no"]).expect(128);
    assert!(said.stderr.contains("at most 4194304 bytes"), "{said:?}");
    assert_eq!(life.rev("work"), head, "an error means that nothing was changed");
}

/// G12, G13: a result that would make the state larger than its readers take is rejected.
#[test]
fn a_result_makes_no_state_too_large() {
    let life = life(|config| config["gates"]["plan_signed"] = json!({}));
    let script = std::fs::read_to_string(format!("{PACK}/govern/worker")).unwrap();
    let long =
        "\"needs_human_reason\": \"$(head -c 5000000 /dev/zero | tr '\\0' x)\", \"status\": \"needs_human\"";
    let script = script.replace("\"status\": \"completed\"", long).replace("set -eu", "");
    worker(&life, script.trim_start_matches("#!/bin/sh\n"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("more than 4194304 bytes"));
    govern(&life, &["status", "-b", "work"]).expect(0);
    govern(&life, &["block", "-b", "work", "-m", "no"]).expect(0);
}
