//! The parts of a configuration that stand apart: runtimes, notifications, budget, rules, time limits.

use super::check::Problem;
use super::{Object, json};
use serde_json::Value;

const RUNTIMES: [&str; 5] = ["manual", "local_cli", "api_proxy", "mcp", "remote_agent"];

/// The values of `capabilities.can_write_files`, in the format's published schema: how a runtime writes
/// files.
const WRITES: [&str; 4] = ["direct", "proposal_only", "tool_defined", "unknown"];

pub(super) fn runtimes(runtimes: &Object, found: &mut Vec<Problem>) {
    for (id, runtime) in runtimes {
        let place = format!("runtimes.{id}");
        let Some(runtime) = runtime.as_object() else {
            found.push(Problem::invalid(place, "be an object"));
            continue;
        };
        let kind = json::text(runtime, "type").unwrap_or_default();
        let mut wrong = |key: &str, must: &str| found.push(Problem::invalid(format!("{place}.{key}"), must));
        match kind {
            "manual" => {}
            "local_cli" => local_cli(runtime, &mut wrong),
            "api_proxy" => api_proxy(runtime, &mut wrong),
            "mcp" => mcp(runtime, &mut wrong),
            "remote_agent" => {
                if !json::text(runtime, "url").is_some_and(is_http) {
                    wrong("url", "be an http or https address");
                }
                positive(runtime, &["timeout_ms"], &mut wrong);
            }
            _ => wrong("type", &format!("be one of {}", RUNTIMES.join(", "))),
        }
        let capabilities = json::object(runtime, "capabilities");
        if let Some(said) = capabilities.and_then(|all| all.get("can_write_files"))
            && !said.as_str().is_some_and(|said| WRITES.contains(&said))
        {
            wrong("capabilities.can_write_files", &format!("be one of {}", WRITES.join(", ")));
        }
        if runtime.get("headers").is_some_and(|headers| !is_text_map(headers)) {
            wrong("headers", "hold strings");
        }
    }
}

/// True for an address that a POST can go to.
pub(super) fn is_http(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}

pub(super) fn is_text_map(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.values().all(Value::is_string))
}

fn positive(object: &Object, keys: &[&str], wrong: &mut dyn FnMut(&str, &str)) {
    for key in keys {
        if object.get(*key).is_some_and(|value| json::whole(value).is_none_or(|n| n < 1)) {
            wrong(key, "be a whole number of at least 1");
        }
    }
}

fn local_cli(runtime: &Object, wrong: &mut dyn FnMut(&str, &str)) {
    let transport = runtime.get("prompt_transport");
    let name = transport.and_then(Value::as_str).unwrap_or_default();
    if transport.is_some() && !["argv", "stdin", "dispatch_bundle_only"].contains(&name) {
        wrong("prompt_transport", "be argv, stdin or dispatch_bundle_only");
    }
    let words = [json::texts(runtime, "command"), json::texts(runtime, "args")].concat();
    let single = json::text(runtime, "command").unwrap_or_default();
    if name == "argv" && !words.iter().chain([&single]).any(|word| word.contains("{prompt}")) {
        wrong("command", "hold {prompt} where the prompt is an argument");
    }
    positive(runtime, &["startup_watchdog_ms", "startup_heartbeat_ms", "liveness_heartbeat_ms"], wrong);
}

fn api_proxy(runtime: &Object, wrong: &mut dyn FnMut(&str, &str)) {
    let provider = json::text(runtime, "provider").unwrap_or_default();
    if !["anthropic", "openai", "google", "ollama"].contains(&provider) {
        wrong("provider", "be anthropic, openai, google or ollama");
    }
    if !json::is_filled(runtime.get("model")) {
        wrong("model", "be a string that is not blank");
    }
    if provider != "ollama" && !json::is_filled(runtime.get("auth_env")) {
        wrong("auth_env", "be a string that is not blank");
    }
    if runtime.get("base_url").is_some_and(|url| !url.as_str().is_some_and(is_http)) {
        wrong("base_url", "be an http or https address");
    }
    positive(runtime, &["max_output_tokens", "context_window_tokens"], wrong);
}

fn mcp(runtime: &Object, wrong: &mut dyn FnMut(&str, &str)) {
    let has = |keys: &[&str]| keys.iter().any(|key| runtime.contains_key(*key));
    match json::text(runtime, "transport").unwrap_or("stdio") {
        "stdio" => {
            let command = runtime.get("command");
            let is_list = command
                .and_then(Value::as_array)
                .is_some_and(|c| !c.is_empty() && c.iter().all(Value::is_string));
            if !is_list && !json::is_filled(command) {
                wrong("command", "be a string or a list of strings");
            }
            if has(&["url", "headers"]) {
                wrong("url", "not be set where the transport is stdio");
            }
        }
        "streamable_http" => {
            if !json::text(runtime, "url").is_some_and(is_http) {
                wrong("url", "be an http or https address");
            }
            if has(&["command", "args", "cwd"]) {
                wrong("command", "not be set where the transport is streamable_http");
            }
        }
        _ => wrong("transport", "be stdio or streamable_http"),
    }
}

/// The events that a webhook may ask for.
pub(crate) const NOTIFIED: [&str; 9] = [
    "run_blocked",
    "operator_escalation_raised",
    "escalation_resolved",
    "phase_transition_pending",
    "run_completion_pending",
    "run_completed",
    "human_escalation_raised",
    "human_escalation_resolved",
    "approval_sla_reminder",
];

pub(super) fn notifications(value: Option<&Value>, found: &mut Vec<Problem>) {
    let part = match value {
        None | Some(Value::Null) => return,
        Some(Value::Object(part)) => part,
        Some(_) => return found.push(Problem::invalid("notifications", "be an object")),
    };
    for key in part.keys().filter(|key| !["webhooks", "approval_sla", "local"].contains(&key.as_str())) {
        found.push(Problem::invalid(format!("notifications.{key}"), "be webhooks, approval_sla or local"));
    }
    let Some(webhooks) = part.get("webhooks") else { return };
    let Some(webhooks) = webhooks.as_array().filter(|all| all.len() <= 8) else {
        return found.push(Problem::invalid("notifications.webhooks", "be a list of at most 8"));
    };
    let mut names: Vec<&str> = Vec::new();
    for (at, webhook) in webhooks.iter().enumerate() {
        let mut wrong = |key: &str, must: &str| {
            found.push(Problem::invalid(format!("notifications.webhooks[{at}].{key}"), must));
        };
        let Some(webhook) = webhook.as_object() else {
            wrong("name", "be set");
            continue;
        };
        let name = json::text(webhook, "name").unwrap_or_default();
        if !json::is_name(name) || names.contains(&name) {
            wrong("name", "be a name that no other webhook has");
        }
        names.push(name);
        if !json::text(webhook, "url").is_some_and(is_http) {
            wrong("url", "be an http or https address");
        }
        let events = json::list(webhook, "events");
        let are_known =
            events.iter().all(|event| event.as_str().is_some_and(|event| NOTIFIED.contains(&event)));
        if events.is_empty() || !are_known {
            wrong("events", "be a list of events to be notified of");
        }
        if !webhook.get("timeout_ms").and_then(json::whole).is_some_and(|ms| (100..=30_000).contains(&ms)) {
            wrong("timeout_ms", "be a whole number from 100 to 30000");
        }
        for key in ["headers", "env"] {
            if webhook.get(key).is_some_and(|map| !is_text_map(map)) {
                wrong(key, "hold strings");
            }
        }
    }
}

pub(super) fn budget(value: Option<&Value>, found: &mut Vec<Problem>) {
    let budget = match value {
        None | Some(Value::Null) => return,
        Some(Value::Object(budget)) => budget,
        Some(_) => return found.push(Problem::invalid("budget", "be an object or null")),
    };
    let mut amounts = Vec::new();
    for key in ["per_turn_max_usd", "per_run_max_usd"] {
        match budget.get(key).filter(|value| !value.is_null()) {
            None => amounts.push(None),
            Some(value) => {
                let amount = value.as_f64().filter(|amount| amount.is_finite() && *amount > 0.0);
                if amount.is_none() {
                    found.push(Problem::invalid(format!("budget.{key}"), "be a number above 0"));
                }
                amounts.push(amount);
            }
        }
    }
    if let [Some(turn), Some(run)] = amounts[..]
        && turn > run
    {
        found.push(Problem::invalid("budget.per_turn_max_usd", "be at most per_run_max_usd"));
    }
    let on_exceed = budget.get("on_exceed");
    if on_exceed.is_some_and(|on| on != "pause_and_escalate" && on != "warn") {
        found.push(Problem::invalid("budget.on_exceed", "be pause_and_escalate or warn"));
    }
}

pub(super) fn rules(value: Option<&Value>, found: &mut Vec<Problem>) {
    let rules = match value {
        None | Some(Value::Null) => return,
        Some(Value::Object(rules)) => rules,
        Some(_) => return found.push(Problem::invalid("rules", "be an object")),
    };
    if rules.get("challenge_required").is_some_and(|value| !value.is_boolean()) {
        found.push(Problem::invalid("rules.challenge_required", "be true or false"));
    }
    if rules.get("max_turn_retries").is_some_and(|value| json::whole(value).is_none()) {
        found.push(Problem::invalid("rules.max_turn_retries", "be a whole number of at least 0"));
    }
}

pub(super) fn phase_timeout(place: &str, route: &Object, found: &mut Vec<Problem>) {
    if route.get("timeout_minutes").is_some_and(|value| value.as_f64().is_none_or(|minutes| minutes < 1.0)) {
        found.push(Problem::invalid(format!("{place}.timeout_minutes"), "be a number of at least 1"));
    }
    let action = route.get("timeout_action");
    if action.is_some_and(|a| a != "escalate" && a != "warn" && a != "skip_phase") {
        found.push(Problem::invalid(format!("{place}.timeout_action"), "be escalate or warn"));
    }
    if action.is_some_and(|action| action == "skip_phase") {
        found.push(Problem::invalid(
            format!("{place}.timeout_action"),
            "not be skip_phase: no phase is skipped here",
        ));
    }
}

/// Checks `timeouts`, the time limits that hold in all phases.
pub(super) fn timeouts(value: Option<&Value>, found: &mut Vec<Problem>) {
    let timeouts = match value {
        None | Some(Value::Null) => return,
        Some(Value::Object(timeouts)) => timeouts,
        Some(_) => return found.push(Problem::invalid("timeouts", "be an object")),
    };
    for (key, value) in timeouts {
        let is_right = match key.as_str() {
            "per_turn_minutes" | "per_phase_minutes" | "per_run_minutes" => {
                value.as_f64().is_some_and(|minutes| minutes >= 1.0)
            }
            "action" => value == "escalate" || value == "warn",
            _ => false,
        };
        if !is_right {
            let must = "be per_turn_minutes, per_phase_minutes or per_run_minutes, a number of at least 1, or action, \
                        escalate or warn";
            found.push(Problem::invalid(format!("timeouts.{key}"), must));
        }
    }
}

/// Checks `workflow_kit`: a phase that routing does not have, and artifacts that are none, would ask for nothing.
pub(super) fn workflow_kit(config: &Object, found: &mut Vec<Problem>) {
    let kit = match config.get("workflow_kit") {
        None | Some(Value::Null) => return,
        Some(Value::Object(kit)) => kit,
        Some(_) => return found.push(Problem::invalid("workflow_kit", "be an object")),
    };
    let phases = match kit.get("phases") {
        None | Some(Value::Null) => return,
        Some(Value::Object(phases)) => phases,
        Some(_) => return found.push(Problem::invalid("workflow_kit.phases", "be an object")),
    };
    let routing = json::object(config, "routing").filter(|routing| !routing.is_empty());
    for (phase, of_phase) in phases {
        let place = format!("workflow_kit.phases.{phase}");
        if routing.is_some_and(|routing| !routing.contains_key(phase)) {
            found.push(Problem::invalid(&place, "be a phase of routing"));
        }
        let Some(of_phase) = of_phase.as_object() else {
            found.push(Problem::invalid(place, "be an object"));
            continue;
        };
        let is_one =
            |artifact: &Value| artifact.as_object().is_some_and(|one| json::filled(one, "path").is_some());
        let artifacts = of_phase.get("artifacts").filter(|all| !all.is_null());
        if artifacts.is_some_and(|all| !all.as_array().is_some_and(|all| all.iter().all(is_one))) {
            found.push(Problem::invalid(format!("{place}.artifacts"), "be a list of objects with a path"));
        }
    }
}

/// Checks `approval_policy`. Only people approve here, so its one action is `require_human`, and `auto_approve` is refused
/// wherever it stands.
pub(super) fn approval_policy(value: Option<&Value>, found: &mut Vec<Problem>) {
    fn approves(value: &Value) -> bool {
        match value {
            Value::String(word) => word == "auto_approve",
            Value::Array(all) => all.iter().any(approves),
            Value::Object(all) => all.values().any(approves),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    if value.is_some_and(approves) {
        let must = "not say auto_approve: gates are approved by people here";
        return found.push(Problem::invalid("approval_policy", must));
    }
    let policy = match value {
        None | Some(Value::Null) => return,
        Some(Value::Object(policy)) => policy,
        Some(_) => return found.push(Problem::invalid("approval_policy", "be an object")),
    };
    let mut action = |of: &Value, key: &str, place: String| match of.as_object() {
        Some(of) if of.get(key).is_none_or(|action| action == "require_human") => {}
        Some(_) => found.push(Problem::invalid(format!("{place}.{key}"), "be require_human")),
        None => found.push(Problem::invalid(place, "be an object")),
    };
    if let Some(completion) = policy.get("run_completion") {
        action(completion, "action", "approval_policy.run_completion".to_owned());
    }
    let Some(transitions) = policy.get("phase_transitions") else { return };
    action(transitions, "default", "approval_policy.phase_transitions".to_owned());
    match transitions.get("rules") {
        None => {}
        Some(Value::Array(rules)) => {
            for (at, rule) in rules.iter().enumerate() {
                action(rule, "action", format!("approval_policy.phase_transitions.rules[{at}]"));
            }
        }
        Some(_) => found.push(Problem::invalid("approval_policy.phase_transitions.rules", "be a list")),
    }
}
