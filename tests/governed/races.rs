//! Many processes at one project at once: what comes of it is some serial order (G2).

use crate::rig::{Project, config, role};
use aynig::governed::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TOLD: &str = "AYNIG_TEST_RACE";
const PROCESSES: usize = 16;
const ROUNDS: usize = 6;

fn crowded() -> Value {
    let mut config = config();
    for n in 0..PROCESSES {
        config["roles"][format!("r{n}")] = role("authoritative");
    }
    config["routing"] = json!({ "build": { "entry_role": "r0", "max_concurrent_turns": 4 } });
    config["rules"]["max_turn_retries"] = json!(1000);
    config
}

/// Accepts, assigns and rejects what it finds, and tells what was done: `<what> <turn> <sequence>`.
#[test]
#[ignore = "one of many processes"]
fn racer() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let (n, folder) = told.split_once('\n').unwrap();
    let n: usize = n.parse().unwrap();
    let root = Root::new(Path::new(folder)).with_sync(false).with_lock_wait(Duration::from_secs(60));
    let config = Config::from_value(crowded()).unwrap();
    for round in 0..ROUNDS {
        match assign_turn(&root, &config, &format!("r{n}")) {
            Ok(done) => println!("assign {} {}", done.turn.id(), done.turn.assigned_sequence()),
            Err(GovernedError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
        // Whichever role's turn it is.
        let turns = get_active_turns(&load_state(&root, &config).unwrap());
        let Some(turn) = turns.values().nth((n + round) % turns.len().max(1)) else { continue };
        let turn_id = Some(turn.id().to_owned());
        if (n + round).is_multiple_of(3) {
            let rejection = Rejection { turn_id, ..Rejection::default() };
            match reject_turn(&root, &config, &rejection, "try again") {
                Ok(done) => println!("reject {} {}", done.turn.id(), done.turn.attempt()),
                Err(GovernedError::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
            continue;
        }
        let result = json!({
            "schema_version": "1.0", "run_id": null, "turn_id": turn.id(), "role": turn.role(), "runtime_id": "manual",
            "status": "completed", "summary": "s", "objections": [], "files_changed": [],
            "decisions": [{ "id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r" }],
            "verification": { "status": "skipped" }, "artifact": { "type": "workspace" }, "proposed_next_role": "human",
        });
        let path = root.folder().join(get_turn_staging_result_path(turn.id()));
        let aside = path.with_file_name(format!("aside-{n}"));
        let staged = std::fs::create_dir_all(path.parent().unwrap())
            .and_then(|()| std::fs::write(&aside, result.to_string()))
            .and_then(|()| std::fs::rename(&aside, &path));
        // Another process may have accepted the turn, and its folder be gone.
        if staged.is_err() {
            continue;
        }
        match accept_turn(&root, &config, &AcceptOptions { turn_id, ..AcceptOptions::default() }) {
            Ok(done) => println!("accept {} {}", turn.id(), done.accepted.accepted_sequence()),
            Err(GovernedError::Refused(_) | GovernedError::InvalidResult(_)) => {}
            Err(GovernedError::Io { what: "list" | "remove", .. }) => panic!("a folder was not removed"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn sixteen_processes_make_some_serial_order() {
    let project = Project::with(crowded());
    init_run(&project.root(), &project.config).unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|n| {
            Command::new(std::env::current_exe().unwrap())
                .args(["races::racer", "--exact", "--ignored", "--nocapture"])
                .env(TOLD, format!("{n}\n{}", project.path().display()))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut told = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        for line in text.lines() {
            // The harness writes the test's name before the first.
            let words: Vec<&str> = line.split_whitespace().rev().take(3).collect();
            if let [number, turn, what @ ("assign" | "accept" | "reject")] = words[..] {
                told.push((what.to_owned(), turn.to_owned(), number.parse::<u64>().unwrap()));
            }
        }
    }
    let of = |what: &str| told.iter().filter(|(w, _, _)| w == what).collect::<Vec<_>>();
    let (assigned, accepted) = (of("assign"), of("accept"));
    assert!(assigned.len() > 8 && accepted.len() > 4, "{told:?}");
    // One counter: every number was given once, and none was left out.
    let numbers: BTreeSet<u64> = assigned.iter().chain(&accepted).map(|(_, _, number)| *number).collect();
    let count = (assigned.len() + accepted.len()) as u64;
    assert_eq!(numbers, (1..=count).collect());
    let state = project.state();
    assert_eq!(state.turn_sequence(), count);
    let history = project.lines("history.jsonl");
    let turns: Vec<&str> = history.iter().map(|entry| entry["turn_id"].as_str().unwrap()).collect();
    let sequences: Vec<u64> =
        history.iter().map(|entry| entry["accepted_sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    assert_eq!(turns.iter().collect::<BTreeSet<_>>().len(), accepted.len());
    assert_eq!(project.lines("decision-ledger.jsonl").len(), accepted.len());
    let talk = std::fs::read_to_string(project.path().join("TALK.md")).unwrap();
    for (_, turn, _) in &assigned {
        let is_accepted = turns.contains(&turn.as_str());
        assert_eq!(state.turn(turn).is_some(), !is_accepted, "{turn}");
        assert_eq!(talk.matches(turn.as_str()).count(), usize::from(is_accepted), "{turn}");
    }
    for turn in get_active_turns(&state).into_values() {
        let rejections = of("reject").iter().filter(|(_, id, _)| id == turn.id()).count() as u64;
        assert_eq!(turn.attempt(), 1 + rejections, "{turn:?}");
    }
    let rejected = std::fs::read_dir(project.path().join(".agentxchain/transactions/accept"));
    assert_eq!(rejected.map_or(0, Iterator::count), 0, "a journal was left");
}

#[test]
fn the_lock_is_reentrant_on_its_thread_and_held_against_others() {
    let project = Project::begun();
    let root = project.root();
    let guard = acquire_lock(&root).unwrap();
    let turn = project.assign("pm");
    project.stage(&turn, json!({}));
    project.accept(&turn).unwrap();
    let content: Value = serde_json::from_slice(&std::fs::read(guard.path()).unwrap()).unwrap();
    assert_eq!(content["owner_pid"], std::process::id());
    assert!(content["acquired_at"].is_string());
    let quick = root.clone().with_lock_wait(Duration::from_millis(50));
    let config = project.config.clone();
    let other = std::thread::spawn(move || {
        assert_eq!(acquire_lock(&quick).unwrap_err().code(), Some("lock_timeout"));
        assign_turn(&quick, &config, "pm").unwrap_err()
    });
    assert_eq!(other.join().unwrap().code(), Some("lock_timeout"));
    let path = guard.path().to_owned();
    release_lock(guard);
    assert!(!path.exists());
    drop(acquire_lock(&root).unwrap());
}

#[test]
fn a_lock_of_a_tool_without_flock_holds_while_it_is_young_and_its_owner_lives() {
    let project = Project::begun();
    let root = project.root().with_lock_wait(Duration::ZERO);
    let mut owner = Command::new("sleep").arg("60").spawn().unwrap();
    let lock = |pid: u32, at: &str| {
        let content = json!({ "owner_pid": pid, "acquired_at": at });
        project.write(".agentxchain/locks/accept-turn.lock", &content.to_string());
        acquire_lock(&root).map(drop)
    };
    // A lock of the moment, by the clock that names its own.
    drop(acquire_lock(&root).unwrap());
    let now = project.raw_state()["created_at"].as_str().unwrap().to_owned();
    assert!(lock(owner.id(), &now).is_err());
    assert!(lock(owner.id(), "2020-01-01T00:00:00.000Z").is_ok());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(lock(owner.id(), &now).is_ok());
    project.write(".agentxchain/locks/accept-turn.lock", "no JSON");
    assert!(acquire_lock(&root).is_ok());
}
