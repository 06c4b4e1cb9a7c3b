//! Decisions that outlive their run: `repo-decisions.jsonl`, and who may override them.

use super::super::Config;
use super::super::history::Facts;
use super::super::journal::REPO_DECISIONS;
use super::super::json::{self, Object};
use super::super::records::Decision;
use super::super::root::Root;
use super::super::{GovernedError, lines};
use serde::Serialize;
use serde_json::{Value, json};

/// What an acceptance does to `repo-decisions.jsonl`.
pub(super) enum Carryover {
    /// Nothing.
    None,
    /// New decisions at the end of the file.
    Append(String),
    /// The whole file anew, because a decision was overridden.
    Rewrite(String),
}

/// Returns a role's authority over decisions: the configured one; without it, a person's above all, and none
/// for any other role.
fn authority(config: &Config, role: &str) -> Option<u64> {
    let said = config.role(role).and_then(|of| of.decision_authority);
    said.or_else(|| (role == "human").then_some(100))
}

/// Judges the overrides of a result, and returns what becomes of the file.
///
/// # Errors
/// [`GovernedError::OverrideRefused`] where a decision overrides one that is not active for the repository,
/// or one of a role with more authority.
pub(super) fn carryover(root: &Root, facts: &Facts<'_>) -> Result<Carryover, GovernedError> {
    let decisions = facts.result.decisions();
    let has_overrides = decisions.iter().any(|decision| decision.overrides().is_some());
    let lasting = decisions.iter().filter(|d| d.is_lasting()).map(|decision| Lasting::of(facts, decision));
    let text: String = lasting.map(|line| json::line(&line)).collect();
    if !has_overrides {
        return Ok(if text.is_empty() { Carryover::None } else { Carryover::Append(text) });
    }
    let mut all = lines::all(root, &root.join(REPO_DECISIONS))?;
    let mut errors = Vec::new();
    for decision in &decisions {
        let Some(overridden) = decision.overrides() else { continue };
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
    Ok(Carryover::Rewrite(all.iter().map(json::line).collect::<String>() + &text))
}

/// A line of `repo-decisions.jsonl`; the order of the fields is the order on disk.
#[derive(Serialize)]
struct Lasting<'a> {
    id: Option<&'a Value>,
    run_id: Option<&'a str>,
    turn_id: &'a str,
    role: &'a str,
    phase: Option<&'a str>,
    category: Option<&'a Value>,
    statement: Option<&'a Value>,
    rationale: Option<&'a Value>,
    durability: &'static str,
    overrides: Option<&'a Value>,
    status: &'static str,
    overridden_by: (),
    accepted_at: &'a str,
}

impl<'a> Lasting<'a> {
    fn of(facts: &Facts<'a>, decision: &'a Decision) -> Self {
        Self {
            id: decision.get("id"),
            run_id: facts.state.run_id(),
            turn_id: facts.turn.id(),
            role: facts.turn.role(),
            phase: facts.state.phase(),
            category: decision.get("category"),
            statement: decision.get("statement"),
            rationale: decision.get("rationale"),
            durability: "repo",
            overrides: decision.get("overrides"),
            status: "active",
            overridden_by: (),
            accepted_at: facts.at,
        }
    }
}
