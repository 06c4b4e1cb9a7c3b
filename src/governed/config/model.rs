//! A configuration as operations read it: every key that one of them asks for, with its type.
//!
//! A hand-made configuration is read like a checked one: a value of the wrong type reads as missing
//! ([`lenient`]).

use super::super::lenient;
use indexmap::IndexMap;
use serde::Deserialize;
use std::time::Duration;

/// Parts by their names; `None` under the name of one that is no object.
pub(crate) type Named<T> = IndexMap<String, Option<T>>;

/// `agentxchain.json`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Model {
    #[serde(deserialize_with = "lenient::part")]
    pub project: Project,
    #[serde(deserialize_with = "lenient::named")]
    pub roles: Named<Role>,
    #[serde(deserialize_with = "lenient::named")]
    pub runtimes: Named<Runtime>,
    /// The phases, in their order.
    #[serde(deserialize_with = "lenient::named")]
    pub routing: Named<Route>,
    #[serde(deserialize_with = "lenient::named")]
    pub gates: Named<Gate>,
    #[serde(deserialize_with = "lenient::part")]
    pub rules: Rules,
    #[serde(deserialize_with = "lenient::part")]
    pub budget: Budget,
    #[serde(deserialize_with = "lenient::part")]
    pub timeouts: Timeouts,
    #[serde(deserialize_with = "lenient::parts")]
    pub policies: Vec<Policy>,
    #[serde(deserialize_with = "lenient::part")]
    pub notifications: Notifications,
    #[serde(deserialize_with = "lenient::part")]
    pub workflow_kit: WorkflowKit,
    #[serde(deserialize_with = "lenient::part")]
    pub run_loop: RunLoop,
}

/// `project`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Project {
    #[serde(deserialize_with = "lenient::filled")]
    pub id: Option<String>,
    #[serde(deserialize_with = "lenient::filled")]
    pub name: Option<String>,
    #[serde(deserialize_with = "lenient::filled")]
    pub goal: Option<String>,
}

/// `roles.<id>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    #[serde(deserialize_with = "lenient::filled")]
    pub title: Option<String>,
    #[serde(deserialize_with = "lenient::filled")]
    pub mandate: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub write_authority: Option<String>,
    #[serde(deserialize_with = "lenient::whole")]
    pub decision_authority: Option<u64>,
    /// The runtime's id, as a normalized configuration has it.
    #[serde(deserialize_with = "lenient::filled")]
    pub runtime_id: Option<String>,
    /// The runtime's id, as `agentxchain.json` has it.
    #[serde(deserialize_with = "lenient::filled")]
    pub runtime: Option<String>,
    #[serde(deserialize_with = "lenient::filled")]
    pub runtime_class: Option<String>,
}

/// `runtimes.<id>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Runtime {
    #[serde(rename = "type", deserialize_with = "lenient::filled")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lenient::words")]
    pub command: Vec<String>,
    #[serde(deserialize_with = "lenient::words")]
    pub args: Vec<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub prompt_transport: Option<String>,
}

/// `routing.<phase>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Route {
    #[serde(deserialize_with = "lenient::value")]
    pub entry_role: Option<String>,
    #[serde(deserialize_with = "lenient::maybe_texts")]
    pub allowed_next_roles: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient::filled")]
    pub exit_gate: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub max_concurrent_turns: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub timeout_minutes: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub timeout_action: Option<String>,
}

impl Route {
    /// Returns the roles that may go next; empty where the phase names none.
    pub(crate) fn allowed(&self) -> &[String] {
        self.allowed_next_roles.as_deref().unwrap_or_default()
    }
}

/// `gates.<id>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Gate {
    #[serde(deserialize_with = "lenient::texts")]
    pub requires_files: Vec<String>,
    #[serde(deserialize_with = "lenient::is_true")]
    pub requires_verification_pass: bool,
    #[serde(deserialize_with = "lenient::is_true")]
    pub requires_human_approval: bool,
}

/// `rules`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rules {
    #[serde(deserialize_with = "lenient::value")]
    pub challenge_required: Option<bool>,
    #[serde(deserialize_with = "lenient::whole")]
    pub max_turn_retries: Option<u64>,
}

/// `budget`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Budget {
    #[serde(deserialize_with = "lenient::value")]
    pub per_turn_max_usd: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub per_run_max_usd: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub on_exceed: Option<String>,
}

/// `timeouts`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Timeouts {
    #[serde(deserialize_with = "lenient::value")]
    pub per_turn_minutes: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub per_phase_minutes: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub per_run_minutes: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub action: Option<String>,
}

/// One of `policies`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Policy {
    #[serde(deserialize_with = "lenient::value")]
    pub id: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub rule: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub action: Option<String>,
    #[serde(deserialize_with = "lenient::part")]
    pub params: Params,
    #[serde(deserialize_with = "lenient::part")]
    pub scope: Scope,
    #[serde(deserialize_with = "lenient::filled")]
    pub message: Option<String>,
}

/// The parameters of a policy's rule.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    #[serde(deserialize_with = "lenient::value")]
    pub limit: Option<f64>,
    #[serde(deserialize_with = "lenient::value")]
    pub limit_usd: Option<f64>,
    #[serde(deserialize_with = "lenient::texts")]
    pub allowed: Vec<String>,
}

/// Where a policy holds: in the named phases and for the named roles; where none are named, in all of them.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Scope {
    #[serde(deserialize_with = "scope")]
    pub phases: Option<Vec<String>>,
    #[serde(deserialize_with = "scope")]
    pub roles: Option<Vec<String>>,
}

/// Reads a list of names; a value that is not a list names none.
fn scope<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    lenient::texts(from).map(Some)
}

/// `notifications`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Notifications {
    #[serde(deserialize_with = "lenient::parts")]
    pub webhooks: Vec<Webhook>,
}

/// One of `notifications.webhooks`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Webhook {
    #[serde(deserialize_with = "lenient::value")]
    pub name: Option<String>,
    #[serde(deserialize_with = "lenient::texts")]
    pub events: Vec<String>,
    #[serde(flatten)]
    pub post: Post,
}

/// Where a POST goes to, with what, and for how long at most.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Post {
    #[serde(deserialize_with = "lenient::value")]
    pub url: Option<String>,
    #[serde(deserialize_with = "lenient::whole")]
    pub timeout_ms: Option<u64>,
    #[serde(deserialize_with = "lenient::text_map")]
    pub headers: IndexMap<String, String>,
    #[serde(deserialize_with = "lenient::text_map")]
    pub env: IndexMap<String, String>,
}

impl Post {
    /// Returns the most time that the hook or webhook may take.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(5000))
    }
}

/// One of `hooks.<phase>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Hook {
    #[serde(deserialize_with = "lenient::value")]
    pub name: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient::value")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub mode: Option<String>,
    #[serde(deserialize_with = "lenient::texts")]
    pub command: Vec<String>,
    #[serde(flatten)]
    pub post: Post,
}

impl Hook {
    /// True for a hook that is sent a POST; any other is a process.
    pub(crate) fn is_http(&self) -> bool {
        self.kind.as_deref() == Some("http")
    }
}

/// `workflow_kit`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkflowKit {
    #[serde(deserialize_with = "lenient::named")]
    pub phases: Named<KitPhase>,
}

/// `workflow_kit.phases.<phase>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KitPhase {
    #[serde(deserialize_with = "lenient::parts")]
    pub artifacts: Vec<Artifact>,
}

/// A file that a phase has to have at its end.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Artifact {
    #[serde(deserialize_with = "lenient::filled")]
    pub path: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    pub required: Option<bool>,
    #[serde(deserialize_with = "lenient::value")]
    pub semantics: Option<String>,
    #[serde(deserialize_with = "lenient::part")]
    pub semantics_config: Semantics,
    #[serde(deserialize_with = "lenient::filled")]
    pub owned_by: Option<String>,
}

/// What an artifact must say.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Semantics {
    #[serde(deserialize_with = "lenient::texts")]
    pub required_sections: Vec<String>,
}

/// `run_loop`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunLoop {
    #[serde(deserialize_with = "lenient::value")]
    pub max_turns: Option<u64>,
}
