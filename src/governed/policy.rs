//! Policies: rules that the configuration sets, judged when a result is about to be accepted.
//!
//! Each is `{id, rule, action, params?, scope?{phases, roles}, message?}`. Broken policies are handled in
//! their order: one that warns adds a warning; the first that blocks or escalates refuses the acceptance, and
//! an escalation also blocks the run until a person acts. The history is read only where a rule counts turns.
//! A worker is told beforehand what they ask of its result. Implements G14.

use super::config::check::Problem;
use super::config::model::{Params, Policy, Scope};
use super::history::{Facts, is_attested};
use super::journal::HISTORY;
use super::json::{self, Object};
use super::outcome::STATUSES;
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
pub(super) fn check(config: &Object, found: &mut Vec<Problem>) {
    let policies = match config.get("policies") {
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
        let limit = |key: &str| params.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        let allowed = json::texts(params, "allowed");
        match json::text(policy, "rule").unwrap_or_default() {
            "max_turns_per_phase" | "max_total_turns" | "max_consecutive_same_role"
                if limit("limit") < 1.0 =>
            {
                wrong("params.limit", "be a number of at least 1");
            }
            "max_cost_per_turn" if limit("limit_usd") <= 0.0 => {
                wrong("params.limit_usd", "be a number above 0");
            }
            "require_status" if allowed.is_empty() || allowed.iter().any(|one| !STATUSES.contains(one)) => {
                wrong("params.allowed", &format!("be a list of {}", STATUSES.join(", ")));
            }
            rule if !RULES.contains(&rule) => wrong("rule", &format!("be one of {}", RULES.join(", "))),
            _ => {}
        }
        match policy.get("scope") {
            None | Some(Value::Null) => {}
            Some(Value::Object(scope)) => {
                for (key, declared) in [("phases", "routing"), ("roles", "roles")] {
                    let known = json::object(config, declared);
                    let is_known = |name: &Value| {
                        let has = |all: &Object| name.as_str().is_some_and(|name| all.contains_key(name));
                        known.is_none_or(has)
                    };
                    let names = scope.get(key).filter(|names| !names.is_null());
                    if names
                        .is_some_and(|names| !names.as_array().is_some_and(|all| all.iter().all(is_known)))
                    {
                        wrong(
                            &format!("scope.{key}"),
                            &format!("be a list of names that {declared} declares"),
                        );
                    }
                }
            }
            Some(_) => wrong("scope", "be an object"),
        }
    }
}

/// Refuses a policy that no result of a role could keep: one that wants a reproducible verification of a role whose
/// runtime has none. Each of the role's attempts would be refused, whatever its worker did.
pub(super) fn possible(config: &Config, found: &mut Vec<Problem>) {
    for (at, policy) in config.model().policies.iter().enumerate() {
        let action = policy.action.as_deref().and_then(Action::named);
        let wants = policy.rule.as_deref() == Some("require_reproducible_verification");
        if !wants || action.is_none_or(|action| action == Action::Warn) {
            continue;
        }
        let judges = |role: &str| {
            let phases = config.phases();
            let is_judged =
                |phase: &&str| is_in_scope(&policy.scope, phase, role) && goes(config, phase, role);
            if phases.is_empty() {
                is_in_scope(&policy.scope, "", role)
            } else {
                phases.iter().any(is_judged)
            }
        };
        for role in config.roles().filter(|role| is_attested(config.runtime_type_of(role)) && judges(role)) {
            let kind = config.runtime_type_of(role);
            let must = format!(
                "not be require_reproducible_verification for role '{role}': no verification of a {kind} runtime is \
                 reproducible, so none of its results would be accepted (scope.roles names the roles that it is for)"
            );
            found.push(Problem::invalid(format!("policies[{at}].rule"), must));
        }
    }
}

/// True for a role that may have turns in a phase: any, where the phase names none.
fn goes(config: &Config, phase: &str, role: &str) -> bool {
    let Some(route) = config.route(phase) else { return true };
    let names = route.allowed();
    names.is_empty() || route.entry_role.as_deref() == Some(role) || names.iter().any(|name| name == role)
}

/// Returns the policies that a result breaks, in their order.
pub(super) fn broken(root: &Root, config: &Config, facts: &Facts<'_>) -> Result<Vec<Broken>, GovernedError> {
    let mut broken = Vec::new();
    let mut history: Option<Vec<HistoryEntry>> = None;
    let (phase, role) = (facts.state.phase().unwrap_or_default(), facts.turn.role());
    for (policy, action) in in_force(config, phase, role) {
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

/// Returns the policies that judge the results of a role in a phase, in their order.
fn in_force<'a>(
    config: &'a Config,
    phase: &'a str,
    role: &'a str,
) -> impl Iterator<Item = (&'a Policy, Action)> {
    let all = config.model().policies.iter().filter(move |policy| is_in_scope(&policy.scope, phase, role));
    all.filter_map(|policy| Some((policy, Action::named(policy.action.as_deref()?)?)))
}

fn is_in_scope(scope: &Scope, phase: &str, role: &str) -> bool {
    let holds = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    };
    holds(&scope.phases, phase) && holds(&scope.roles, role)
}

/// Returns what the policies ask of a result of a role in a phase, in words for its worker: each in one line,
/// with what becomes of a result that does not hold to it.
pub(super) fn told(config: &Config, phase: &str, role: &str) -> Vec<String> {
    let told = |(policy, action): (&Policy, Action)| {
        let asks = asks(policy.rule.as_deref()?, &policy.params, config.runtime_type_of(role))?;
        let id = policy.id.as_deref().unwrap_or_default();
        let then = match action {
            Action::Block => "else it is rejected",
            Action::Warn => "else it is accepted with a warning",
            Action::Escalate => "else it is rejected, and the run stops for a person",
        };
        let words = policy.message.iter().flat_map(|message| message.split_whitespace());
        let why = words.collect::<Vec<_>>().join(" ");
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        Some(format!("`{id}`: {asks}; {then}{why}."))
    };
    in_force(config, phase, role).filter_map(told).collect()
}

fn asks(rule: &str, params: &Params, runtime_type: &str) -> Option<String> {
    let limit = params.limit.unwrap_or(f64::INFINITY);
    let whatever = "this one included, whatever the result says";
    Some(match rule {
        "max_total_turns" => format!("the run has at most {limit} turns, {whatever}"),
        "max_turns_per_phase" => format!("the phase has at most {limit} turns, {whatever}"),
        "max_consecutive_same_role" => {
            format!("at most {limit} turns of one role come in a row, {whatever}")
        }
        "max_cost_per_turn" => {
            format!("`cost.usd` is at most {}", params.limit_usd.unwrap_or(f64::INFINITY))
        }
        "require_status" => {
            let allowed: Vec<String> = params.allowed.iter().map(|status| format!("`{status}`")).collect();
            format!("`status` is {}", allowed.join(" or "))
        }
        "require_reproducible_verification" if is_attested(runtime_type) => {
            format!(
                "the verification is reproducible, which none of a {runtime_type} runtime is, whatever the result says"
            )
        }
        "require_reproducible_verification" => {
            "`verification.status` is `pass`, and `machine_evidence` lists what you ran to show it, at least one \
             `command`, each with an `exit_code` of 0"
                .to_owned()
        }
        _ => return None,
    })
}

/// Returns the statuses that a result of a role in a phase may have: those that no policy refuses, or all
/// where policies refuse every one.
pub(super) fn statuses(config: &Config, phase: &str, role: &str) -> Vec<&'static str> {
    let refusing = |(policy, action): (&'_ Policy, Action)| {
        (action != Action::Warn && policy.rule.as_deref() == Some("require_status"))
            .then(|| policy.params.allowed.clone())
    };
    let lists: Vec<Vec<String>> = in_force(config, phase, role).filter_map(refusing).collect();
    let is_left =
        |status: &&&str| lists.iter().all(|allowed| allowed.iter().any(|allowed| allowed == **status));
    let left: Vec<&'static str> = STATUSES.iter().filter(is_left).copied().collect();
    if left.is_empty() { STATUSES.to_vec() } else { left }
}

/// True where a result of a role in a phase is rejected unless its verification is reproducible, which it can
/// be.
pub(super) fn wants_evidence(config: &Config, phase: &str, role: &str) -> bool {
    let wants = |(policy, action): (&Policy, Action)| {
        action != Action::Warn && policy.rule.as_deref() == Some("require_reproducible_verification")
    };
    !is_attested(config.runtime_type_of(role)) && in_force(config, phase, role).any(wants)
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
