//! Policies: rules that the configuration sets, judged when a result is about to be accepted.
//!
//! Each is `{id, rule, action, params?, scope?{phases, roles}, message?}`. Broken policies are handled in
//! their order: one that warns adds a warning; the first that blocks or escalates refuses the acceptance, and
//! an escalation also blocks the run until a person acts. The history is read only where a rule counts turns.

use super::config::check::Problem;
use super::config::model::{Params, Scope};
use super::history::Facts;
use super::journal::HISTORY;
use super::json::{self, Object};
use super::records::HistoryEntry;
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

/// Checks the `policies` part of a configuration, and adds its problems to `found`.
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

/// Returns the policies that a result breaks, in their order.
pub(super) fn broken(root: &Root, config: &Config, facts: &Facts<'_>) -> Result<Vec<Broken>, GovernedError> {
    let mut broken = Vec::new();
    let mut history: Option<Vec<HistoryEntry>> = None;
    for policy in config.model().policies.iter().filter(|policy| is_in_scope(&policy.scope, facts)) {
        let Some(action) = policy.action.as_deref().and_then(Action::named) else { continue };
        let rule = policy.rule.as_deref().unwrap_or_default();
        if rule.starts_with("max_") && rule != "max_cost_per_turn" && history.is_none() {
            let run = facts.state.run_id().unwrap_or_default();
            let all = lines::all(root, &root.join(HISTORY))?.into_iter().map(HistoryEntry::from_object);
            history = Some(all.filter(|entry| entry.run_id() == run).collect());
        }
        if let Some(why) = breach(rule, &policy.params, facts, history.as_deref().unwrap_or_default()) {
            let id = policy.id.clone().unwrap_or_default();
            let message = policy.message.clone().unwrap_or(why);
            broken.push(Broken { id, action, message });
        }
    }
    Ok(broken)
}

fn is_in_scope(scope: &Scope, facts: &Facts<'_>) -> bool {
    let holds = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    };
    holds(&scope.phases, facts.state.phase().unwrap_or_default()) && holds(&scope.roles, facts.turn.role())
}

/// Returns why one more turn breaks a rule; `None` where the rule holds.
fn breach(rule: &str, params: &Params, facts: &Facts<'_>, history: &[HistoryEntry]) -> Option<String> {
    let limit = params.limit.unwrap_or(f64::INFINITY);
    let over = |count: usize, what: &str| {
        (count as f64 > limit).then(|| format!("{what}: {count}, and {limit} are allowed"))
    };
    match rule {
        "max_total_turns" => over(history.len() + 1, "turns of the run"),
        "max_turns_per_phase" => {
            let is_same = |entry: &&HistoryEntry| entry.phase() == facts.state.phase().unwrap_or_default();
            over(history.iter().filter(is_same).count() + 1, "turns of the phase")
        }
        "max_consecutive_same_role" => {
            let is_same = |entry: &&HistoryEntry| entry.role() == facts.turn.role();
            over(history.iter().rev().take_while(is_same).count() + 1, "turns of the role in a row")
        }
        "max_cost_per_turn" => {
            let cost = facts.result.cost().unwrap_or(0.0);
            let most = params.limit_usd.unwrap_or(f64::INFINITY);
            (cost > most).then(|| format!("the turn cost {cost} USD, and {most} are allowed"))
        }
        "require_status" => {
            let status = facts.result.status();
            let is_allowed = params.allowed.iter().any(|allowed| allowed == status);
            (!is_allowed).then(|| format!("status '{status}' is not allowed"))
        }
        "require_reproducible_verification" => {
            let is_reproducible = super::history::normalized_verification(facts).reproducible;
            (!is_reproducible).then(|| "the verification is not reproducible".to_owned())
        }
        _ => None,
    }
}
