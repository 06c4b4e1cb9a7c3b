//! Every key of the format: what is done holds, what is not is refused or told by name.

use crate::rig::{Project, config};
use aynig::governed::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What becomes of a key.
#[derive(Debug, PartialEq)]
enum Fate {
    Kept,
    Refused,
    Told,
}
use Fate::{Kept, Refused, Told};

/// The keys of the format's schema and of its documentation, each with a value that real projects have.
fn keys() -> Vec<(&'static str, Value, Fate)> {
    let capabilities = "runtimes.cli.capabilities";
    let mut all = vec![
        ("schema_version", json!("1.0"), Kept),
        ("template", json!("web-app"), Kept),
        ("project.goal", json!("ship it"), Kept),
        ("project.default_branch", json!("trunk"), Kept),
        ("roles.pm.decision_authority", json!(40), Kept),
        ("roles.pm.declared_file_scope", json!(["src/"]), Told),
        ("runtimes.cli.command", json!(["worker", "{prompt}"]), Kept),
        ("runtimes.cli.args", json!(["-v"]), Kept),
        ("runtimes.cli.prompt_transport", json!("stdin"), Kept),
        ("runtimes.cli.cwd", json!("."), Kept),
        ("runtimes.cli.cwd", json!("packages/a"), Told),
        ("runtimes.cli.startup_watchdog_ms", json!(60_000), Told),
        ("runtimes.cli.startup_heartbeat_ms", json!(10_000), Told),
        ("runtimes.cli.liveness_heartbeat_ms", json!(10_000), Told),
        ("runtimes.cli.capabilities.proposal_support", json!("optional"), Told),
        ("runtimes.cli.capabilities.workflow_artifact_ownership", json!("yes"), Told),
        ("runtimes.api.provider", json!("google"), Told),
        ("runtimes.api.model", json!("m"), Told),
        ("runtimes.api.auth_env", json!("KEY"), Told),
        ("runtimes.api.base_url", json!("https://example.com"), Told),
        ("runtimes.api.context_window_tokens", json!(1000), Told),
        ("runtimes.api.max_output_tokens", json!(1000), Told),
        ("runtimes.api.retry_policy", json!({ "enabled": true }), Told),
        ("runtimes.api.retry_policy", json!({ "enabled": false }), Kept),
        ("runtimes.api.preflight_tokenization", json!({ "enabled": true }), Told),
        ("runtimes.mcp.transport", json!("stdio"), Told),
        ("runtimes.mcp.tool_name", json!("turn"), Told),
        ("runtimes.agent.url", json!("https://example.com"), Told),
        ("runtimes.agent.headers", json!({ "a": "b" }), Told),
        ("runtimes.agent.timeout_ms", json!(1000), Told),
        ("routing.plan.timeout_minutes", json!(30), Kept),
        ("routing.plan.timeout_action", json!("escalate"), Kept),
        ("routing.plan.timeout_action", json!("warn"), Kept),
        ("routing.plan.timeout_action", json!("skip_phase"), Refused),
        ("routing.plan.max_concurrent_turns", json!(2), Kept),
        ("gates.planned.requires_verification_pass", json!(true), Kept),
        ("gates.planned.credentialed", json!(true), Kept),
        ("gates.built.gate_actions", json!([{ "run": "make release" }]), Refused),
        ("hooks.before_gate", json!([]), Kept),
        ("notifications.webhooks", json!([]), Kept),
        ("notifications.approval_sla", json!({ "reminder_after_seconds": [300] }), Told),
        ("notifications.approval_sla", json!({ "enabled": false }), Kept),
        ("notifications.local", json!({ "desktop": true }), Told),
        ("notifications.pager", json!({}), Refused),
        ("budget.per_turn_max_usd", json!(1.0), Kept),
        ("budget.per_run_max_usd", json!(10.0), Kept),
        ("budget.on_exceed", json!("warn"), Kept),
        ("budget.cost_rates", json!({ "m": { "input_per_1m": 3 } }), Told),
        ("rules.challenge_required", json!(true), Kept),
        ("rules.max_turn_retries", json!(3), Kept),
        ("rules.max_deadlock_cycles", json!(2), Kept),
        ("rules.max_deadlock_cycles", json!(3), Told),
        (
            "policies",
            json!([{ "id": "few", "rule": "max_total_turns", "action": "warn",
            "params": { "limit": 9 }, "scope": { "phases": ["plan"] }, "message": "m" }]),
            Kept,
        ),
        ("approval_policy", json!({ "phase_transitions": { "default": "require_human" } }), Kept),
        ("approval_policy", json!({ "run_completion": { "action": "auto_approve" } }), Refused),
        ("approval_policy", json!({ "run_completion": { "action": "require_human" } }), Kept),
        ("approval_policy", json!({ "run_completion": { "action": "nonsense" } }), Refused),
        ("approval_policy", json!({ "phase_transitions": { "default": "nonsense" } }), Refused),
        ("approval_policy", json!({ "phase_transitions": { "rules": [{ "action": 7 }] } }), Refused),
        ("approval_policy", json!({ "phase_transitions": { "rules": {} } }), Refused),
        ("approval_policy", json!({ "phase_transitions": [] }), Refused),
        ("approval_policy", json!("require_human"), Refused),
        (
            "policies",
            json!([{ "id": "a", "rule": "max_total_turns", "action": "warn", "params": { "limit": 0.5 } }]),
            Refused,
        ),
        (
            "policies",
            json!([{ "id": "a", "rule": "require_status", "action": "warn", "params": { "allowed": ["completed "] } }]),
            Refused,
        ),
        (
            "policies",
            json!([{ "id": "a", "rule": "max_total_turns", "action": "warn", "params": { "limit": 9 }, "scope": "plan" }]),
            Refused,
        ),
        (
            "policies",
            json!([{ "id": "a", "rule": "max_total_turns", "action": "warn", "params": { "limit": 9 },
            "scope": { "phases": ["nosuch"] } }]),
            Refused,
        ),
        (
            "policies",
            json!([{ "id": "a", "rule": "max_total_turns", "action": "warn", "params": { "limit": 9 },
            "scope": { "roles": "pm" } }]),
            Refused,
        ),
        ("workflow_kit.phases.nosuch", json!({}), Refused),
        ("workflow_kit.phases.plan.artifacts", json!({ "path": "plan.md" }), Refused),
        ("workflow_kit.phases.plan.artifacts", json!([{ "file": "plan.md" }]), Refused),
        ("timeouts.per_turn_minutes", json!(20), Kept),
        ("timeouts.per_phase_minutes", json!(20), Kept),
        ("timeouts.per_run_minutes", json!(20), Kept),
        ("timeouts.action", json!("warn"), Kept),
        ("timeouts.action", json!("skip_phase"), Refused),
        ("workflow_kit", json!({}), Kept),
        ("workflow_kit.phases.plan.artifacts", json!([{ "path": "plan.md" }]), Kept),
        ("workflow_kit.phases.plan.template", json!("planning-default"), Told),
        ("prompts.pm", json!(".agentxchain/prompts/pm.md"), Told),
        ("files", json!({ "talk": "TALK.md", "state": ".agentxchain/state.json" }), Kept),
        ("files", json!({ "talk": "docs/TALK.md" }), Told),
        ("retention", json!({ "days": 30 }), Told),
        ("schedules", json!({ "nightly": {} }), Told),
        ("run_loop.max_turns", json!(9), Kept),
        ("run_loop.continuous", json!({ "enabled": true }), Told),
        ("mission_planner", json!({ "runtime": "cli" }), Told),
        ("gate_semantic_coverage_mode", json!("strict"), Told),
        ("intent_coverage_mode", json!("strict"), Told),
    ];
    // As the format's published schema has it.
    for said in ["direct", "proposal_only", "tool_defined", "unknown"] {
        all.push(("runtimes.cli.capabilities.can_write_files", json!(said), Kept));
    }
    for said in [json!("none"), json!("yes"), json!(true), json!(false), json!(1), Value::Null] {
        all.push(("runtimes.cli.capabilities.can_write_files", said, Refused));
    }
    all.push((capabilities, json!({}), Kept));
    all
}

/// A configuration with this key set, and what it needs beside it.
fn with(path: &str, value: &Value) -> Value {
    let mut raw = config();
    raw["runtimes"]["cli"] = json!({ "type": "local_cli", "command": ["worker", "{prompt}"] });
    for (name, runtime) in [
        ("api", json!({ "type": "api_proxy", "provider": "ollama", "model": "m", "auth_env": "KEY" })),
        ("mcp", json!({ "type": "mcp", "command": "serve" })),
        ("agent", json!({ "type": "remote_agent", "url": "http://localhost" })),
    ] {
        if path.starts_with(&format!("runtimes.{name}.")) {
            raw["runtimes"][name] = runtime;
        }
    }
    let mut place = &mut raw;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value.clone();
    raw
}

/// G16: nothing that the format has is taken and then forgotten.
#[test]
fn every_key_is_kept_or_refused_or_told_by_its_name() {
    for (path, value, fate) in keys() {
        let case = format!("{path}: {value}");
        let project = Project::with(with(path, &value));
        let named = |all: &[String]| all.iter().any(|text| text.contains(path.rsplit('.').next().unwrap()));
        match load_context(&project.root()) {
            Ok(context) => {
                assert_ne!(fate, Refused, "{case}");
                // A part that no reader uses is told as a whole.
                let name = match path {
                    "prompts.pm" => "prompts",
                    "run_loop.continuous" => "run_loop",
                    path => path,
                };
                let start = format!("'{name}' is not enforced: ");
                let is_told = context.warnings.iter().any(|told| told.starts_with(&start));
                assert_eq!(is_told, fate == Told, "{case}: {:?}", context.warnings);
                // Once, and the project can be used.
                let once: BTreeSet<&String> = context.warnings.iter().collect();
                assert_eq!(once.len(), context.warnings.len(), "{case}");
                init_run(&project.root(), &context.config).unwrap_or_else(|e| panic!("{case}: {e}"));
            }
            Err(GovernedError::InvalidConfig { errors, .. }) => {
                assert_eq!(fate, Refused, "{case}: {errors:?}");
                assert!(
                    errors.iter().any(|error| error.starts_with(path.split('.').next().unwrap())),
                    "{errors:?}"
                );
                assert!(named(&errors), "{case}: {errors:?}");
            }
            Err(error) => panic!("{case}: {error}"),
        }
    }
}

/// What a runtime says of its files counts where its type says the contrary, and nowhere else.
#[test]
fn what_a_runtime_says_of_its_files_binds_its_roles() {
    let usable = |kind: Value, authority: &str, said: Option<&str>| {
        let mut raw = config();
        raw["runtimes"]["own"] = kind;
        if let Some(said) = said {
            raw["runtimes"]["own"]["capabilities"] = json!({ "can_write_files": said });
        }
        raw["roles"]["pm"]["runtime_id"] = json!("own");
        raw["roles"]["pm"]["write_authority"] = json!(authority);
        load_context(&Project::with(raw).root()).is_ok()
    };
    let cli = || json!({ "type": "local_cli", "command": "worker" });
    let agent = || json!({ "type": "remote_agent", "url": "http://localhost" });
    for (said, reviews, writes) in [
        (None, false, false),
        (Some("direct"), false, true),
        (Some("proposal_only"), true, false),
        (Some("tool_defined"), false, false),
        (Some("unknown"), false, false),
    ] {
        assert_eq!(usable(cli(), "review_only", said), reviews, "{said:?}");
        assert_eq!(usable(agent(), "authoritative", said), writes, "{said:?}");
        assert!(usable(cli(), "authoritative", said) && usable(agent(), "review_only", said), "{said:?}");
    }
}
