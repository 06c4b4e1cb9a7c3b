//! Decisions that outlive their run: `repo-decisions.jsonl`, and who may override them.

use super::super::Config;
use super::super::history::Facts;
use super::super::journal::REPO_DECISIONS;
use super::super::json::{self, Object};
use super::super::root::Root;
use super::super::{GovernedError, lines};
use serde_json::{Value, json};

/// What an acceptance does to the file.
pub(super) enum Carryover {
    /// Nothing.
    None,
    /// New decisions at its end.
    Append(String),
    /// All of it anew: something was overridden.
    Rewrite(String),
}

fn decisions(result: &Object) -> impl Iterator<Item = &Object> {
    json::list(result, "decisions").iter().filter_map(Value::as_object)
}

/// A role's say over decisions: what it is configured with, a person's above all.
fn authority(config: &Config, role: &str) -> Option<u64> {
    let said = config.role(role).and_then(|of| json::count(of, "decision_authority"));
    said.or_else(|| (role == "human").then_some(100))
}

/// Judges the overrides of a result and says what becomes of the file.
///
/// # Errors
/// [`GovernedError::OverrideRefused`] where a decision overrides one that is not active for the repository,
/// or one of a role with more authority.
pub(super) fn carryover(root: &Root, facts: &Facts<'_>) -> Result<Carryover, GovernedError> {
    let result = facts.result;
    let is_durable = |d: &&Object| json::text(d, "durability") == Some("repo");
    let has_overrides = decisions(result).any(|decision| json::text(decision, "overrides").is_some());
    let new: Vec<Value> =
        decisions(result).filter(is_durable).map(|decision| line(facts, decision)).collect();
    if !has_overrides {
        let text: String = new.iter().map(json::line).collect();
        return Ok(if text.is_empty() { Carryover::None } else { Carryover::Append(text) });
    }
    let mut all = lines::all(root, &root.join(REPO_DECISIONS))?;
    let mut errors = Vec::new();
    for decision in decisions(result) {
        let Some(overridden) = json::text(decision, "overrides") else { continue };
        let is_it = |d: &&mut Object| {
            json::text(d, "id") == Some(overridden) && json::text(d, "status").unwrap_or("active") == "active"
        };
        let Some(old) = all.iter_mut().find(is_it) else {
            errors.push(format!(
                "decision '{overridden}' can't be overridden: it is not active in the repository"
            ));
            continue;
        };
        let by = json::text(old, "role").unwrap_or_default();
        let (own, other) = (authority(facts.config, facts.turn.role()), authority(facts.config, by));
        if own.zip(other).is_some_and(|(own, other)| own < other) {
            errors.push(format!("decision '{overridden}' can't be overridden: '{by}' has more authority"));
            continue;
        }
        old.insert("status".to_owned(), json!("overridden"));
        old.insert("overridden_by".to_owned(), decision.get("id").cloned().unwrap_or(Value::Null));
    }
    if !errors.is_empty() {
        return Err(GovernedError::OverrideRefused { errors });
    }
    let lines = all.into_iter().map(Value::Object).chain(new);
    Ok(Carryover::Rewrite(lines.map(|line| json::line(&line)).collect()))
}

fn line(facts: &Facts<'_>, decision: &Object) -> Value {
    let of = |key: &str| decision.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "id": of("id"),
        "run_id": facts.state.run_id(),
        "turn_id": facts.turn.id(),
        "role": facts.turn.role(),
        "phase": facts.state.phase(),
        "category": of("category"),
        "statement": of("statement"),
        "rationale": of("rationale"),
        "durability": "repo",
        "overrides": of("overrides"),
        "status": "active",
        "overridden_by": null,
        "accepted_at": facts.at,
    })
}
