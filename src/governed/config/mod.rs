//! The configuration of a governed project, `agentxchain.json`: found, checked, normalized.
//!
//! [`Config`] keeps the whole object; operations take a normalized one (from `load_context`) and one built
//! by hand alike: a role's runtime is `runtime_id`, else `runtime`. The order of `routing` is the order of
//! the phases. What is checked is in [`check`], the parts of other tools' in [`parts`].

pub(crate) mod check;
mod keys;
mod load;
mod parts;

pub use load::{Context, context_here, context_of, load_context};
pub(crate) use parts::NOTIFIED;

use super::json::{self, Object};
use serde_json::Value;

/// A project's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config(Object);

/// A role's hold on the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Its changes count as they are.
    Authoritative,
    /// Its changes are proposals.
    Proposed,
    /// It reads, and writes reviews.
    ReviewOnly,
}

impl Authority {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Authoritative => "authoritative",
            Self::Proposed => "proposed",
            Self::ReviewOnly => "review_only",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Authoritative, Self::Proposed, Self::ReviewOnly].into_iter().find(|a| a.name() == name)
    }
}

impl Config {
    /// A configuration from its JSON, unchecked; `None` where that is no object.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(object) => Some(Self(object)),
            _ => None,
        }
    }

    /// The configuration as JSON.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Any key of the top level.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The names of the roles, as declared.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        json::object(&self.0, "roles").into_iter().flatten().map(|(id, _)| id.as_str())
    }

    /// The names of the phases, in their order.
    pub fn phases(&self) -> Vec<&str> {
        json::object(&self.0, "routing").into_iter().flatten().map(|(id, _)| id.as_str()).collect()
    }

    /// The runtime of a role.
    pub fn runtime_of(&self, role: &str) -> Option<&str> {
        let role = self.role(role)?;
        json::filled(role, "runtime_id").or_else(|| json::filled(role, "runtime"))
    }

    /// The type of a role's runtime, such as `local_cli`; `manual` where none is said.
    pub fn runtime_type_of(&self, role: &str) -> &str {
        let named = self.runtime_of(role).and_then(|id| json::object(self.part("runtimes")?, id));
        let class = self.role(role).and_then(|role| json::filled(role, "runtime_class"));
        named.and_then(|runtime| json::filled(runtime, "type")).or(class).unwrap_or("manual")
    }

    /// What a runtime is configured as.
    pub fn runtime(&self, id: &str) -> Option<&Value> {
        self.part("runtimes")?.get(id)
    }

    pub(crate) fn part(&self, key: &str) -> Option<&Object> {
        json::object(&self.0, key)
    }

    pub(crate) fn role(&self, id: &str) -> Option<&Object> {
        json::object(self.part("roles")?, id)
    }

    pub(crate) fn authority(&self, role: &str) -> Authority {
        let named = self.role(role).and_then(|role| json::text(role, "write_authority"));
        named.and_then(Authority::named).unwrap_or(Authority::Authoritative)
    }

    pub(crate) fn route(&self, phase: &str) -> Option<&Object> {
        json::object(self.part("routing")?, phase)
    }

    pub(crate) fn gate(&self, id: &str) -> Option<&Object> {
        json::object(self.part("gates")?, id)
    }

    /// The gate at the end of a phase, by name.
    pub(crate) fn exit_gate(&self, phase: &str) -> Option<&str> {
        json::filled(self.route(phase)?, "exit_gate")
    }

    /// The phase after this one.
    pub(crate) fn phase_after(&self, phase: &str) -> Option<&str> {
        let phases = self.phases();
        let at = phases.iter().position(|p| *p == phase)?;
        phases.get(at + 1).copied()
    }

    pub(crate) fn first_phase(&self) -> Option<&str> {
        self.phases().first().copied()
    }

    pub(crate) fn rule(&self, key: &str) -> Option<&Value> {
        self.part("rules")?.get(key)
    }

    /// How many attempts a turn has.
    pub(crate) fn attempts(&self) -> u64 {
        self.rule("max_turn_retries").and_then(json::whole).unwrap_or(2)
    }

    /// A number of `budget`.
    pub(crate) fn budget(&self, key: &str) -> Option<f64> {
        self.part("budget")?.get(key)?.as_f64()
    }

    /// True where a spent budget is a warning only.
    pub(crate) fn only_warns_of_budget(&self) -> bool {
        self.part("budget").and_then(|budget| json::text(budget, "on_exceed")) == Some("warn")
    }

    pub(crate) fn project(&self, key: &str) -> Option<&str> {
        json::filled(self.part("project")?, key)
    }
}

/// How many turns may be active at once in a phase: what its routing says, from 1 to 4; 1 by default.
///
/// The seed's signature lacks the phase, without which there is no answer.
pub fn get_max_concurrent_turns(config: &Config, phase: &str) -> usize {
    let said = config.route(phase).and_then(|route| route.get("max_concurrent_turns"));
    said.and_then(Value::as_f64).map_or(1, |limit| limit.clamp(1.0, 4.0) as usize)
}
