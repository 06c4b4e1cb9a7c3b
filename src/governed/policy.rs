//! Policies: limits of the configuration's own, judged when a result is about to be accepted.
//!
//! Each is `{id, rule, action, params?, scope?{phases, roles}, message?}`. The first that is broken and blocks
//! refuses the acceptance; one that escalates blocks the run for a person; the others warn. The history is
//! read only where a rule counts turns.

use super::config::check::Problem;
use super::history::Facts;
use super::journal::HISTORY;
use super::json::{self, Object};
use super::root::Root;
use super::{Config, GovernedError, lines};
use serde_json::Value;

const RULES: [&str; 6] = [
    "max_turns_per_phase",
    "max_total_turns",
    "max_consecutive_same_role",
    "max_cost_per_turn",
    "require_status",
    "require_reproducible_verification",
];

/// What is done about a policy that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Block,
    Warn,
    Escalate,
}

impl Action {
    fn named(name: &str) -> Option<Self> {
        match name {
            "block" => Some(Self::Block),
            "warn" => Some(Self::Warn),
            "escalate" => Some(Self::Escalate),
            _ => None,
        }
    }
}

/// A policy that a result breaks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Broken {
    pub id: String,
    pub action: Action,
    pub message: String,
}

/// What a configuration of policies must be.
pub(super) fn check(policies: Option<&Value>, found: &mut Vec<Problem>) {
    let policies = match policies {
        None | Some(Value::Null) => return,
        Some(Value::Array(policies)) => policies,
        Some(_) => return found.push(Problem::invalid("policies", "be a list")),
    };
    let mut ids: Vec<&str> = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        let mut wrong =
            |key: &str, must: &str| found.push(Problem::invalid(format!("policies[{at}].{key}"), must));
        let Some(policy) = policy.as_object() else {
            wrong("id", "be set");
            continue;
        };
        let id = json::text(policy, "id").unwrap_or_default();
        if !json::is_phase_name(id) || ids.contains(&id) {
            wrong("id", "be a name that no other policy has");
        }
        ids.push(id);
        if json::text(policy, "action").and_then(Action::named).is_none() {
            wrong("action", "be block, warn or escalate");
        }
        let none = Object::new();
        let params = json::object(policy, "params").unwrap_or(&none);
        let is_limit = |key: &str| params.get(key).and_then(Value::as_f64).is_some_and(|limit| limit > 0.0);
        match json::text(policy, "rule").unwrap_or_default() {
            "max_turns_per_phase" | "max_total_turns" | "max_consecutive_same_role" if !is_limit("limit") => {
                wrong("params.limit", "be a number above 0");
            }
            "max_cost_per_turn" if !is_limit("limit_usd") => wrong("params.limit_usd", "be a number above 0"),
            "require_status" if json::texts(params, "allowed").is_empty() => {
                wrong("params.allowed", "be a list of statuses");
            }
            rule if !RULES.contains(&rule) => wrong("rule", &format!("be one of {}", RULES.join(", "))),
            _ => {}
        }
    }
}

/// The policies that a result breaks, in their order.
pub(super) fn broken(root: &Root, config: &Config, facts: &Facts<'_>) -> Result<Vec<Broken>, GovernedError> {
    let policies = config.get("policies").and_then(Value::as_array);
    let policies: Vec<&Object> = policies.into_iter().flatten().filter_map(Value::as_object).collect();
    let mut broken = Vec::new();
    let mut history: Option<Vec<Object>> = None;
    for policy in policies.into_iter().filter(|policy| is_in_scope(policy, facts)) {
        let Some(action) = json::text(policy, "action").and_then(Action::named) else { continue };
        let rule = json::text(policy, "rule").unwrap_or_default();
        if rule.starts_with("max_") && rule != "max_cost_per_turn" && history.is_none() {
            let run = facts.state.run_id();
            let all = lines::all(root, &root.join(HISTORY))?;
            history = Some(all.into_iter().filter(|entry| json::text(entry, "run_id") == run).collect());
        }
        if let Some(why) = breach(rule, policy, facts, history.as_deref().unwrap_or_default()) {
            let id = json::text(policy, "id").unwrap_or_default().to_owned();
            let message = json::filled(policy, "message").map_or(why, str::to_owned);
            broken.push(Broken { id, action, message });
        }
    }
    Ok(broken)
}

fn is_in_scope(policy: &Object, facts: &Facts<'_>) -> bool {
    let Some(scope) = json::object(policy, "scope") else { return true };
    let named = |key: &str, name: &str| !scope.contains_key(key) || json::texts(scope, key).contains(&name);
    named("phases", facts.state.phase().unwrap_or_default()) && named("roles", facts.turn.role())
}

/// Why a rule is broken by one turn more; `None` where it holds.
fn breach(rule: &str, policy: &Object, facts: &Facts<'_>, history: &[Object]) -> Option<String> {
    let params = json::object(policy, "params");
    let limit = |key: &str| params.and_then(|params| params.get(key)?.as_f64()).unwrap_or(f64::INFINITY);
    let over = |count: usize, what: &str| {
        (count as f64 > limit("limit"))
            .then(|| format!("{what}: {count}, and {} are allowed", limit("limit")))
    };
    match rule {
        "max_total_turns" => over(history.len() + 1, "turns of the run"),
        "max_turns_per_phase" => {
            let is_same = |entry: &&Object| json::text(entry, "phase") == facts.state.phase();
            over(history.iter().filter(is_same).count() + 1, "turns of the phase")
        }
        "max_consecutive_same_role" => {
            let is_same = |entry: &&Object| json::text(entry, "role") == Some(facts.turn.role());
            over(history.iter().rev().take_while(is_same).count() + 1, "turns of the role in a row")
        }
        "max_cost_per_turn" => {
            let cost =
                json::object(facts.result, "cost").and_then(|cost| cost.get("usd")?.as_f64()).unwrap_or(0.0);
            let most = limit("limit_usd");
            (cost > most).then(|| format!("the turn cost {cost} USD, and {most} are allowed"))
        }
        "require_status" => {
            let status = json::text(facts.result, "status").unwrap_or_default();
            let allowed = params.map(|params| json::texts(params, "allowed")).unwrap_or_default();
            (!allowed.contains(&status)).then(|| format!("status '{status}' is not allowed"))
        }
        "require_reproducible_verification" => {
            let is_reproducible = super::history::normalized_verification(facts).reproducible;
            (!is_reproducible).then(|| "the verification is not reproducible".to_owned())
        }
        _ => None,
    }
}
