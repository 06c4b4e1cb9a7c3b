//! Delegations: a turn hands work to other roles, and reviews what came of it.
//!
//! An accepted turn's `delegations` are queued, and the role of the first one is recommended next. When a
//! role with a pending delegation is assigned a turn, the turn gets the charter as `delegation_context`, and
//! its acceptance settles the entry. When all entries of a parent are settled, the parent's role is
//! recommended, and its next turn gets the `delegation_review`.

use super::super::json::{self, Object};
use super::{Acceptance, State, Turn};
use serde_json::{Value, json};

fn entries(state: &State) -> Vec<Object> {
    let queue = json::list(state.object(), "delegation_queue");
    queue.iter().filter_map(Value::as_object).cloned().collect()
}

/// Returns the first entry that waits for this role.
fn waiting<'a>(queue: &'a [Object], role: &str) -> Option<&'a Object> {
    let is_for =
        |e: &&Object| json::text(e, "to_role") == Some(role) && json::text(e, "status") == Some("pending");
    queue.iter().find(is_for)
}

/// Attaches to a new turn the charter that waits for its role, or else the review that its role owes.
pub(super) fn attach(state: &State, turn: &mut Turn) {
    if let Some(entry) = waiting(&entries(state), turn.role()) {
        let of = |key: &str| entry.get(key).cloned().unwrap_or(Value::Null);
        turn.set(
            "delegation_context",
            json!({
                "delegation_id": of("delegation_id"),
                "parent_turn_id": of("parent_turn_id"),
                "parent_role": of("parent_role"),
                "charter": of("charter"),
                "acceptance_contract": of("acceptance_contract"),
                "required_decision_ids": of("required_decision_ids"),
            }),
        );
        return;
    }
    if let Some(review) = json::object(state.object(), "pending_delegation_review")
        && json::text(review, "parent_role") == Some(turn.role())
    {
        turn.set("delegation_review", Value::Object(review.clone()));
    }
}

/// Queues what an accepted turn delegates, and settles what was delegated to it.
pub(super) fn settle(next: &mut State, turn: &Turn, new: &Acceptance) {
    let mut queue = entries(next);
    let delegated = new.result.delegations();
    let context = turn.delegation_context();
    if queue.is_empty() && delegated.is_empty() && turn.get("delegation_review").is_none() {
        return;
    }
    if turn.get("delegation_review").is_some() {
        next.set("pending_delegation_review", Value::Null);
    }
    if let Some(context) = context {
        settle_own(next, &mut queue, context, new);
    }
    for delegation in delegated {
        queue.push(queued(delegation, turn, &new.at));
    }
    let pending = queue.iter().find(|entry| json::text(entry, "status") == Some("pending"));
    if let Some(role) = pending.and_then(|entry| json::text(entry, "to_role")) {
        next.set("next_recommended_role", role);
    }
    next.set("delegation_queue", Value::Array(queue.into_iter().map(Value::Object).collect()));
}

fn queued(delegation: &Object, parent: &Turn, at: &str) -> Object {
    let of = |key: &str| delegation.get(key).cloned().unwrap_or(Value::Null);
    let entry = json!({
        "delegation_id": of("id"),
        "parent_turn_id": parent.id(),
        "parent_role": parent.role(),
        "to_role": of("to_role"),
        "charter": of("charter"),
        "acceptance_contract": of("acceptance_contract"),
        "required_decision_ids": delegation.get("required_decision_ids").cloned().unwrap_or_else(|| json!([])),
        "status": "pending",
        "created_at": at,
    });
    entry.as_object().cloned().unwrap_or_default()
}

fn settle_own(next: &mut State, queue: &mut Vec<Object>, context: &Object, new: &Acceptance) {
    let same = |e: &Object, key: &str| e.get(key) == context.get(key);
    let is_own = |e: &&mut Object| same(e, "delegation_id") && same(e, "parent_turn_id");
    let Some(entry) = queue.iter_mut().find(is_own) else { return };
    let is_done = new.result.status() == "completed";
    let decisions = new.result.decisions().into_iter().filter_map(|decision| decision.get("id").cloned());
    entry.insert("status".to_owned(), json!(if is_done { "completed" } else { "failed" }));
    entry.insert("child_turn_id".to_owned(), json!(new.turn_id));
    entry.insert("summary".to_owned(), new.result.said("summary").unwrap_or(Value::Null));
    entry.insert("decision_ids".to_owned(), Value::Array(decisions.collect()));
    let parent = entry.get("parent_turn_id").cloned();
    let role = json::text(entry, "parent_role").unwrap_or_default().to_owned();
    let is_sibling = |e: &Object| e.get("parent_turn_id") == parent.as_ref();
    let is_open = |e: &Object| is_sibling(e) && json::text(e, "status") == Some("pending");
    if queue.iter().any(is_open) {
        return;
    }
    let results: Vec<Value> = queue.iter().filter(|e| is_sibling(e)).cloned().map(Value::Object).collect();
    queue.retain(|e| !is_sibling(e));
    next.set("next_recommended_role", role.as_str());
    next.set(
        "pending_delegation_review",
        json!({ "parent_turn_id": parent, "parent_role": role, "delegation_results": results }),
    );
}
