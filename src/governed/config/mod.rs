//! The configuration of a governed project, `agentxchain.json`: found, checked, normalized.
//!
//! [`Config`] keeps the whole object. Operations take a normalized one (from `load_context`) and one built by
//! hand alike: a role's runtime is `runtime_id`, else `runtime`. The order of `routing` is the order of the
//! phases. The checks are in [`check`], those of the parts that stand apart in [`parts`].

pub(crate) mod check;
mod keys;
mod load;
pub(crate) mod model;
mod parts;

pub use load::{Context, context_here, context_of, load_context};
pub(crate) use parts::NOTIFIED;

use super::json::{self, Object};
use super::lenient;
use model::{Gate, Model, Role, Route, Runtime};
use serde_json::Value;

/// A project's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Every key, in its order.
    object: Object,
    /// The keys that operations read, with their types.
    model: Model,
}

/// What a role may do with the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The role's changes count as they are.
    Authoritative,
    /// The role's changes are proposals.
    Proposed,
    /// The role reads, and writes reviews.
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
    /// Makes a configuration of its JSON, unchecked; `None` where that is not an object.
    pub fn from_value(value: Value) -> Option<Self> {
        let model = lenient::read(&value)?;
        match value {
            Value::Object(object) => Some(Self { object, model }),
            _ => None,
        }
    }

    /// Returns the configuration as JSON.
    pub fn to_value(&self) -> Value {
        Value::Object(self.object.clone())
    }

    /// Returns any key of the top level.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.object.get(key)
    }

    /// Returns the keys that operations read, with their types.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the names of the roles, as declared.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.model.roles.keys().map(String::as_str)
    }

    /// Returns the names of the phases, in their order.
    pub fn phases(&self) -> Vec<&str> {
        self.model.routing.keys().map(String::as_str).collect()
    }

    /// Returns the names of the gates.
    pub(crate) fn gates(&self) -> Vec<&str> {
        self.model.gates.keys().map(String::as_str).collect()
    }

    /// Returns the role that enters a phase.
    pub fn entry_role(&self, phase: &str) -> Option<&str> {
        self.route(phase)?.entry_role.as_deref()
    }

    /// Returns how many turns a loop accepts, where the configuration says so.
    pub fn max_turns(&self) -> Option<u64> {
        self.model.run_loop.max_turns
    }

    /// Returns the id of a role's runtime.
    pub fn runtime_of(&self, role: &str) -> Option<&str> {
        let role = self.role(role)?;
        role.runtime_id.as_deref().or(role.runtime.as_deref())
    }

    /// Returns the type of a role's runtime, such as `local_cli`; `manual` where none is said.
    pub fn runtime_type_of(&self, role: &str) -> &str {
        let named = self.runtime_of(role).and_then(|id| self.runtime(id)?.kind.as_deref());
        let class = self.role(role).and_then(|role| role.runtime_class.as_deref());
        named.or(class).unwrap_or("manual")
    }

    pub(crate) fn runtime(&self, id: &str) -> Option<&Runtime> {
        self.model.runtimes.get(id)?.as_ref()
    }

    pub(crate) fn role(&self, id: &str) -> Option<&Role> {
        self.model.roles.get(id)?.as_ref()
    }

    /// Returns a role or a gate with every key, for hooks.
    pub(crate) fn whole(&self, part: &str, id: &str) -> Option<&Value> {
        self.object.get(part)?.get(id).filter(|value| value.is_object())
    }

    pub(crate) fn authority(&self, role: &str) -> Authority {
        let named = self.role(role).and_then(|role| role.write_authority.as_deref());
        named.and_then(Authority::named).unwrap_or(Authority::Authoritative)
    }

    pub(crate) fn route(&self, phase: &str) -> Option<&Route> {
        self.model.routing.get(phase)?.as_ref()
    }

    pub(crate) fn gate(&self, id: &str) -> Option<&Gate> {
        self.model.gates.get(id)?.as_ref()
    }

    /// Returns the name of the gate at the end of a phase.
    pub(crate) fn exit_gate(&self, phase: &str) -> Option<&str> {
        self.route(phase)?.exit_gate.as_deref()
    }

    /// Returns the phase after this one.
    pub(crate) fn phase_after(&self, phase: &str) -> Option<&str> {
        let at = self.model.routing.get_index_of(phase)?;
        self.model.routing.get_index(at + 1).map(|(name, _)| name.as_str())
    }

    /// True for a phase that the configuration knows, or where it has no routing. Nothing would say how any other
    /// phase ends: it has no gate and no roles.
    pub(crate) fn knows_phase(&self, phase: &str) -> bool {
        self.model.routing.is_empty() || self.route(phase).is_some()
    }

    /// Returns the files that the gate of a phase looks at.
    pub(crate) fn files_of_gate(&self, phase: &str) -> Vec<&str> {
        let gate = self.exit_gate(phase).and_then(|id| self.gate(id));
        let kit = self.model.workflow_kit.phases.get(phase).and_then(Option::as_ref);
        let required = gate.into_iter().flat_map(|gate| &gate.requires_files).map(String::as_str);
        let artifacts = kit.into_iter().flat_map(|kit| &kit.artifacts).filter_map(|one| one.path.as_deref());
        required.chain(artifacts).collect()
    }

    pub(crate) fn first_phase(&self) -> Option<&str> {
        self.model.routing.first().map(|(name, _)| name.as_str())
    }

    /// True where a review must object to something.
    pub(crate) fn is_challenged(&self) -> bool {
        self.model.rules.challenge_required != Some(false)
    }

    /// Returns how many attempts a turn has.
    pub(crate) fn attempts(&self) -> u64 {
        self.model.rules.max_turn_retries.unwrap_or(2)
    }

    /// True where a spent budget is a warning only.
    pub(crate) fn only_warns_of_budget(&self) -> bool {
        self.model.budget.on_exceed.as_deref() == Some("warn")
    }
}

/// Returns how many turns may be active at once in a phase: what its routing says, from 1 to 4; 1 by default.
///
/// The original tool's signature lacks the phase, without which there is no answer.
pub fn get_max_concurrent_turns(config: &Config, phase: &str) -> usize {
    let said = config.route(phase).and_then(|route| route.max_concurrent_turns);
    said.map_or(1, |limit| limit.clamp(1.0, 4.0) as usize)
}
