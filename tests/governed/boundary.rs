//! The boundary is what the seed names, and the types that this needs; nothing else is public.

use std::collections::BTreeSet;
use std::path::Path;

/// What the seed names.
const OPERATIONS: &[&str] = &[
    "load_context",
    "load_state",
    "init_run",
    "reactivate_run",
    "assign_turn",
    "accept_turn",
    "reject_turn",
    "approve_phase_gate",
    "approve_completion_gate",
    "mark_run_blocked",
    "escalate",
    "write_dispatch_bundle",
    "get_turn_staging_result_path",
    "run_hooks",
    "emit_notifications",
    "acquire_lock",
    "release_lock",
    "get_active_turns",
    "get_active_turn_count",
    "get_active_turn",
    "get_max_concurrent_turns",
];

/// Beside them, for who writes a dispatch of their own.
const BESIDE: &[&str] = &["stage_turn_result"];

/// What these take and give.
const TYPES: &[&str] = &[
    "AcceptOptions",
    "Accepted",
    "Assigned",
    "Block",
    "Blocked",
    "Bundle",
    "BundleOptions",
    "CompletionApproved",
    "Conflict",
    "Config",
    "Context",
    "Decision",
    "Escalated",
    "Escalation",
    "GateAction",
    "GateKind",
    "GateResult",
    "GovernedError",
    "HistoryEntry",
    "HookOptions",
    "HookPhase",
    "HookReport",
    "HookStop",
    "Initialized",
    "LockGuard",
    "Notified",
    "PendingCompletion",
    "PendingTransition",
    "PhaseApproved",
    "Reactivated",
    "Reactivation",
    "Refusal",
    "Rejected",
    "Rejection",
    "Resolution",
    "Root",
    "RunStatus",
    "Stage",
    "State",
    "Turn",
    "TurnStatus",
    "Validation",
    "Verb",
];

fn source(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The names that a module shows.
fn shown(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let text: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    for item in text.split("pub ").skip(1) {
        let Some(rest) = item.strip_prefix("use ") else {
            names.insert(item.lines().next().unwrap().to_owned());
            continue;
        };
        let rest = rest.split(';').next().unwrap();
        let list = rest.split_once('{').map_or_else(|| rest.rsplit("::").next().unwrap(), |(_, list)| list);
        names.extend(
            list.trim_end_matches('}')
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|n| !n.is_empty()),
        );
    }
    names
}

#[test]
fn the_boundary_is_what_the_seed_names() {
    let shown = shown(&source("src/governed/mod.rs"));
    let version = "const RUNNER_INTERFACE_VERSION: &str = \"0.2\";";
    let wanted: BTreeSet<String> = OPERATIONS
        .iter()
        .chain(BESIDE)
        .chain(TYPES)
        .chain([&version])
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(shown, wanted);
    assert_eq!(aynig::governed::RUNNER_INTERFACE_VERSION, "0.2");
}

#[test]
fn the_run_loop_uses_the_boundary_alone() {
    for file in ["src/run_loop/mod.rs", "src/run_loop/report.rs"] {
        let text = source(file);
        let code: String =
            text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
        for (at, _) in code.match_indices("crate::") {
            let rest = code[at + "crate::".len()..].split(';').next().unwrap();
            let list = rest.strip_prefix("governed::{").unwrap_or_else(|| panic!("{file}: crate::{rest}"));
            for name in list.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty()) {
                assert!(
                    [OPERATIONS, BESIDE, TYPES].iter().any(|known| known.contains(&name)),
                    "{file}: {name}"
                );
            }
        }
    }
}

#[test]
fn no_rule_is_tied_to_a_fixture() {
    for folder in ["src/conformance", "src/governed"] {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let text = std::fs::read_to_string(entry.path()).unwrap();
                for surface in ["SM", "TR", "GS", "DL", "HS", "CS", "DEL", "DC", "PT", "EL", "DM", "HA", "CR"]
                {
                    let named = (0..20).any(|n| text.contains(&format!("{surface}-{n:03}")));
                    assert!(!named, "{}: {surface}", entry.path().display());
                }
            }
        }
    }
}
