//! What is written to disk, byte for byte: other tools read it, and versions before and after do (G1).
//!
//! One run with a fixed clock and fixed ids passes every operation; what each left behind is compared with
//! `bytes.txt`. `AYNIG_BLESS=1` writes that file anew: only where the format is to change.

use crate::notify::{listener, webhook};
use crate::rig::{LONG, Project, config};
use aynig::governed::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A project whose files are told after each operation.
struct Told {
    project: Project,
    root: Root,
    url: String,
    told: String,
    /// What was told of each file last.
    known: BTreeMap<PathBuf, String>,
}

impl Told {
    fn new(url: String) -> Self {
        let mut config = config();
        let hook = |name: &str, mode: &str, script: &str| json!({ "name": name, "type": "process", "command": ["sh", "-c", script], "mode": mode, "timeout_ms": 60000 });
        let noted = r#"cat >/dev/null; echo '{"verdict":"warn","message":"look","annotations":[{"key":"k","value":"v"}]}'"#;
        config["hooks"] = json!({
            "before_acceptance": [hook("one", "advisory", "exit 3"), hook("two", "advisory", noted)],
            "after_acceptance": [hook("three", "advisory", noted)],
            "before_gate": [hook("gone", "blocking", r#"test ! -e stop && echo '{"verdict":"allow"}'"#), hook("after", "advisory", noted)],
        });
        let events = [
            "run_blocked",
            "operator_escalation_raised",
            "escalation_resolved",
            "phase_transition_pending",
            "run_completion_pending",
            "run_completed",
        ];
        let mut to = webhook("ops", &url, &events);
        to["timeout_ms"] = json!(60000);
        config["notifications"] = json!({ "webhooks": [to] });
        config["budget"] = json!({ "per_turn_max_usd": 1.5, "per_run_max_usd": 10 });
        let project = Project::with(config);
        let next = Arc::new(AtomicU64::new(1));
        let root = project
            .root()
            .with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000))
            .with_ids(move || next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Self { project, root, url, told: String::new(), known: BTreeMap::new() }
    }

    /// Notes every file below `.agentxchain`, and the talk, that an operation changed.
    fn tell(&mut self, operation: &str) {
        writeln!(self.told, "######## {operation}").unwrap();
        for (path, bytes) in self.project.files() {
            let path = path.strip_prefix(self.project.path()).unwrap();
            let is_ours = path.starts_with(".agentxchain") || path == Path::new("TALK.md");
            // Prompts are for people, and the staged result is the worker's.
            if is_ours && path.extension().is_some_and(|e| e != "md" || path == Path::new("TALK.md")) {
                let text = self.plain(&String::from_utf8(bytes).unwrap());
                if self.known.get(path) != Some(&text) {
                    writeln!(self.told, "==== {}\n{text}", path.display()).unwrap();
                    self.known.insert(path.to_owned(), text);
                }
            }
        }
    }

    /// A text without what differs from run to run: the folder, the port, how long hooks took, our process.
    fn plain(&self, text: &str) -> String {
        let mut plain = text.replace(self.project.path().to_str().unwrap(), "ROOT").replace(&self.url, "URL");
        for key in ["\"duration_ms\":", "\"duration_ms\": ", "\"pid\": ", "\"owner_pid\": ", "\"pid\":"] {
            let pieces: Vec<&str> = plain.split(key).collect();
            let rest = pieces[1..].iter().map(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit()));
            plain = std::iter::once(pieces[0]).chain(rest).collect::<Vec<_>>().join(&format!("{key}N"));
        }
        plain
    }

    fn stage(&self, turn: &Turn, more: Value) {
        self.project.stage(turn, more);
    }

    fn accept(&self, turn: &Turn) -> Result<Accepted, GovernedError> {
        let turn_id = Some(turn.id().to_owned());
        accept_turn(&self.root, &self.project.config, &AcceptOptions { turn_id, ..AcceptOptions::default() })
    }

    fn assign(&self, role: &str) -> Turn {
        assign_turn(&self.root, &self.project.config, role).unwrap().turn
    }

    fn bundle(&self, turn: &Turn) {
        let warnings = vec!["two turns in one folder".to_owned()];
        let options = BundleOptions { turn_id: Some(turn.id().to_owned()), warnings };
        write_dispatch_bundle(&self.root, &self.project.state(), &self.project.config, &options).unwrap();
    }

    fn path(&self, below: &str) -> PathBuf {
        self.project.path().join(".agentxchain").join(below)
    }
}

fn decision(id: &str, more: Value) -> Value {
    let mut decision = json!({ "id": id, "category": "scope", "statement": "s \u{e9}", "rationale": "r" });
    decision.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    decision
}

/// The plan: a turn that asks for the next phase, and its approval.
fn plan(told: &mut Told) {
    let config = told.project.config.clone();
    init_run(&told.root, &config).unwrap();
    told.tell("init_run");
    let pm = told.assign("pm");
    told.bundle(&pm);
    told.tell("assign_turn, write_dispatch_bundle");
    told.stage(&pm, json!({ "status": "needs_human", "proposed_next_role": "human" }));
    let options = Rejection { stage: Some("schema".to_owned()), errors: vec!["a".to_owned()], turn_id: None };
    // A file where a folder is to be: the journal is written, and stays.
    std::fs::write(told.path("dispatch/rejected"), "").unwrap();
    reject_turn(&told.root, &config, &options, "not \"enough\"").unwrap_err();
    told.tell("reject_turn, interrupted");
    std::fs::remove_file(told.path("dispatch/rejected")).unwrap();
    drop(acquire_lock(&told.root).unwrap());
    told.tell("reject_turn, redone");
    told.project.write("plan.md", "# Plan\n\nWe do it.\n");
    let objection = json!({ "id": "OBJ-001", "severity": "low", "statement": "o", "against_turn_id": null });
    told.stage(
        &pm,
        json!({
            "phase_transition_request": "build",
            "proposed_next_role": "dev",
            "decisions": [decision("DEC-001", json!({ "durability": "repo" })), decision("DEC-002", json!({}))],
            "objections": [objection],
            "cost": { "usd": 0.25, "input_tokens": 3 },
        }),
    );
    told.accept(&pm).unwrap();
    told.tell("accept_turn, a phase passed");
}

/// The build: a conflict, an escalation, a block, a late gate.
fn build(told: &mut Told) {
    let config = told.project.config.clone();
    let (dev, ops) = (told.assign("dev"), told.assign("ops"));
    told.bundle(&ops);
    let evidence = json!([{ "command": "true", "exit_code": 0 }]);
    told.stage(
        &dev,
        json!({
            "files_changed": ["src/a"],
            "decisions": [decision("DEC-003", json!({ "overrides": "DEC-001", "durability": "repo" }))],
            "verification": { "status": "pass", "commands": ["true"], "machine_evidence": evidence },
        }),
    );
    told.stage(&ops, json!({ "files_changed": ["src/a", "src/b"] }));
    told.accept(&dev).unwrap();
    told.tell("accept_turn, an override");
    assert!(matches!(told.accept(&ops), Err(GovernedError::Conflict { .. })));
    told.tell("accept_turn, a conflict");
    let turn_id = Some(ops.id().to_owned());
    let merge = AcceptOptions { turn_id, resolution: Resolution::HumanMerge };
    // A link where a folder is to go: the journal is written, and stays.
    std::fs::rename(told.path("dispatch/turns"), told.path("dispatch/elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", told.path("dispatch/turns")).unwrap();
    accept_turn(&told.root, &config, &merge).unwrap_err();
    told.tell("accept_turn, merged, interrupted");
    std::fs::remove_file(told.path("dispatch/turns")).unwrap();
    std::fs::rename(told.path("dispatch/elsewhere"), told.path("dispatch/turns")).unwrap();
    drop(acquire_lock(&told.root).unwrap());
    told.tell("accept_turn, merged, redone");
    let escalation = Escalation { reason: "no disk", detail: Some("since noon"), ..Escalation::default() };
    escalate(&told.root, &config, &escalation).unwrap();
    told.tell("escalate");
    let note = Reactivation { via: Some("operator"), note: Some("grown"), config: Some(&config) };
    reactivate_run(&told.root, &told.project.state(), &note).unwrap();
    told.tell("reactivate_run");
    let details =
        Block { blocked_on: "human:x", category: "needs_human", config: Some(&config), ..Block::default() };
    mark_run_blocked(&told.root, &details).unwrap();
    told.tell("mark_run_blocked");
    reactivate_run(&told.root, &told.project.state(), &Reactivation::default()).unwrap();
}

/// The end: a completion that a hook holds back first, and the next run.
fn end(told: &mut Told) {
    let config = told.project.config.clone();
    let dev = told.assign("dev");
    told.stage(
        &dev,
        json!({ "run_completion_request": true, "decisions": [], "proposed_next_role": "human" }),
    );
    told.accept(&dev).unwrap();
    told.tell("accept_turn, a completion asked for");
    told.project.write("stop", "");
    approve_completion_gate(&told.root, &config).unwrap_err();
    std::fs::remove_file(told.project.path().join("stop")).unwrap();
    told.tell("approve_completion_gate, held by a hook");
    approve_completion_gate(&told.root, &config).unwrap();
    told.tell("approve_completion_gate");
}

/// How many notifications the run sends.
const POSTS: usize = 7;

#[test]
fn what_is_written_is_what_it_was() {
    let (url, posts) = listener("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut told = Told::new(url);
    plan(&mut told);
    build(&mut told);
    end(&mut told);
    // The listener tells of a post after it has answered it.
    for _ in 0..POSTS {
        let (_, body) = posts.recv_timeout(LONG).unwrap();
        let body = told.plain(&body.to_string());
        writeln!(told.told, "######## posted\n{body}").unwrap();
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/governed/bytes.txt");
    if std::env::var_os("AYNIG_BLESS").is_some() {
        return std::fs::write(golden, told.told).unwrap();
    }
    let golden = std::fs::read_to_string(golden).unwrap();
    let mut operation = "";
    for (wanted, found) in golden.lines().zip(told.told.lines()) {
        if wanted.starts_with("####") || wanted.starts_with("====") {
            operation = wanted;
        }
        assert_eq!(found, wanted, "{operation}");
    }
    assert_eq!(told.told, golden);
}
