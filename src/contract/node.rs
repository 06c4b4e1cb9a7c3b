//! Nodes on the wire: their state, their configuration, and changes of both.
//!
//! State and configuration differ in `session` alone: the state says which session there is, the configuration
//! whether one is resumed. A key that is absent means nothing was said; only `customSystemPrompt` is also `null`.

use super::id::{NodeId, RunId};
use super::time::Time;
use super::words::{CliPermissionsMode, ConnectionStatus, EdgeManagement, NodeStatus, Provider, TodoStatus};
use serde::{Deserialize, Deserializer, Serialize};

/// The role template whose nodes lead a flow; compared without regard to case and to blanks around it.
pub const ORCHESTRATOR: &str = "orchestrator";

/// True for the role template of those that lead a flow.
pub fn orchestrates(role_template: &str) -> bool {
    role_template.trim().eq_ignore_ascii_case(ORCHESTRATOR)
}

/// A key that may be missing, `null`, or a value: reads `null` as `Some(None)`.
pub(crate) fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What a node may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Which edges it may make.
    pub edge_management: EdgeManagement,
    /// Whether it may change code.
    pub write_code: bool,
    /// Whether it may change what is below `docs/`.
    pub write_docs: bool,
    /// Whether it may run commands.
    pub run_commands: bool,
    /// Whether it may only hand work on.
    pub delegate_only: bool,
}

impl Capabilities {
    /// What a node of this role may do unless something else is said.
    pub fn of_role(role_template: &str) -> Self {
        let lead = orchestrates(role_template);
        Self {
            edge_management: if lead { EdgeManagement::All } else { EdgeManagement::None },
            write_code: true,
            write_docs: true,
            run_commands: true,
            delegate_only: false,
        }
    }
}

/// Part of a node's capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesPart {
    /// Which edges it may make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_management: Option<EdgeManagement>,
    /// Whether it may change code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_code: Option<bool>,
    /// Whether it may change what is below `docs/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_docs: Option<bool>,
    /// Whether it may run commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_commands: Option<bool>,
    /// Whether it may only hand work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate_only: Option<bool>,
}

impl CapabilitiesPart {
    /// What a new node of this role may do whose maker may do that: no more. `delegate_only` is the maker's alone, which
    /// has others for what it does not do itself.
    pub fn within(&self, maker: &Capabilities, role_template: &str) -> Self {
        let wanted = self.over(&Capabilities::of_role(role_template.trim()));
        Self {
            edge_management: Some(match (maker.edge_management, wanted.edge_management) {
                (EdgeManagement::All, wanted) => wanted,
                (EdgeManagement::None, _) | (EdgeManagement::SelfOnly, EdgeManagement::None) => {
                    EdgeManagement::None
                }
                (EdgeManagement::SelfOnly, EdgeManagement::SelfOnly | EdgeManagement::All) => {
                    EdgeManagement::SelfOnly
                }
            }),
            write_code: Some(wanted.write_code && maker.write_code),
            write_docs: Some(wanted.write_docs && maker.write_docs),
            run_commands: Some(wanted.run_commands && maker.run_commands),
            delegate_only: Some(wanted.delegate_only),
        }
    }

    /// These over those.
    pub fn over(&self, base: &Capabilities) -> Capabilities {
        Capabilities {
            edge_management: self.edge_management.unwrap_or(base.edge_management),
            write_code: self.write_code.unwrap_or(base.write_code),
            write_docs: self.write_docs.unwrap_or(base.write_docs),
            run_commands: self.run_commands.unwrap_or(base.run_commands),
            delegate_only: self.delegate_only.unwrap_or(base.delegate_only),
        }
    }
}

/// What waits for a person before a node does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permissions {
    /// Whether every tool does.
    pub cli_permissions_mode: CliPermissionsMode,
    /// Whether spawning nodes and making edges does.
    pub agent_management_requires_approval: bool,
}

impl Permissions {
    /// What waits for a person at a node of this role unless something else is said.
    pub fn of_role(role_template: &str) -> Self {
        Self {
            cli_permissions_mode: CliPermissionsMode::Skip,
            agent_management_requires_approval: !orchestrates(role_template),
        }
    }
}

/// Part of a node's permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsPart {
    /// Whether every tool waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_permissions_mode: Option<CliPermissionsMode>,
    /// Whether spawning nodes and making edges does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_management_requires_approval: Option<bool>,
}

impl PermissionsPart {
    /// What waits for a person at a new node of this role: whatever does at its maker, and what it asks for.
    pub fn within(&self, maker: &Permissions, role_template: &str) -> Self {
        let wanted = self.over(&Permissions::of_role(role_template.trim()));
        let approval = wanted.agent_management_requires_approval || maker.agent_management_requires_approval;
        Self {
            cli_permissions_mode: Some(match maker.cli_permissions_mode {
                CliPermissionsMode::Gated => CliPermissionsMode::Gated,
                CliPermissionsMode::Skip => wanted.cli_permissions_mode,
            }),
            agent_management_requires_approval: Some(approval),
        }
    }

    /// These over those.
    pub fn over(&self, base: &Permissions) -> Permissions {
        Permissions {
            cli_permissions_mode: self.cli_permissions_mode.unwrap_or(base.cli_permissions_mode),
            agent_management_requires_approval: self
                .agent_management_requires_approval
                .unwrap_or(base.agent_management_requires_approval),
        }
    }
}

/// The words that reset an agent's session, where nothing else is said.
pub fn reset_commands() -> Vec<String> {
    vec!["/new".to_owned(), "/clear".to_owned()]
}

/// The session of a node's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The provider's name for it; `pending` before there is one.
    pub session_id: String,
    /// What a person types for a new one.
    pub reset_commands: Vec<String>,
}

/// The name of a session that there is not yet.
pub const PENDING: &str = "pending";

/// The session of a node's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// Whether a turn goes on with the session of the one before.
    #[serde(default = "yes")]
    pub resume: bool,
    /// What a person types for a new one.
    #[serde(default = "reset_commands")]
    pub reset_commands: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { resume: true, reset_commands: reset_commands() }
    }
}

/// Tokens that were used; an increment in `telemetry.usage`, a total elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What was read.
    pub prompt_tokens: u64,
    /// What was written.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
}

impl Usage {
    /// That many tokens read and written.
    pub fn of(prompt_tokens: u64, completion_tokens: u64) -> Self {
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens }
    }

    /// Both together.
    pub fn and(self, more: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(more.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(more.completion_tokens),
            total_tokens: self.total_tokens.saturating_add(more.total_tokens),
        }
    }
}

/// How a node is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Whether it is.
    pub status: ConnectionStatus,
    /// Whether text is coming.
    pub streaming: bool,
    /// When it was last seen alive.
    pub last_heartbeat_at: Time,
    /// When it last said something.
    pub last_output_at: Time,
}

/// One line of a node's list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// The task.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The task as it is worded while it is done.
    #[serde(default)]
    pub active_form: String,
}

/// A node's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its run.
    pub run_id: RunId,
    /// What it is called.
    pub label: String,
    /// A short name, unique in the run without regard to case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The template of its role.
    pub role_template: String,
    /// The text that stands in for the template; `null` where none does.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub custom_system_prompt: Option<Option<String>>,
    /// Whose program has its turns.
    pub provider: Provider,
    /// What it is doing.
    pub status: NodeStatus,
    /// The same in a few words.
    pub summary: String,
    /// When it last did something.
    pub last_activity_at: Time,
    /// What it may do.
    pub capabilities: Capabilities,
    /// What waits for a person.
    pub permissions: Permissions,
    /// Its session.
    pub session: Session,
    /// What all its turns used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How many messages wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_count: Option<u64>,
    /// Its list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<Todo>>,
}

/// What changes of a node's state. Objects inside are replaced whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "each is the node's of that name")]
pub struct NodePatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Blank where it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub custom_system_prompt: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbox_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<Todo>>,
}

impl NodePatch {
    /// All of a node: what a reader that does not know it yet needs.
    pub fn whole(node: &Node) -> Self {
        let node = node.clone();
        Self {
            id: Some(node.id),
            run_id: Some(node.run_id),
            label: Some(node.label),
            alias: node.alias,
            role_template: Some(node.role_template),
            custom_system_prompt: node.custom_system_prompt,
            provider: Some(node.provider),
            status: Some(node.status),
            summary: Some(node.summary),
            last_activity_at: Some(node.last_activity_at),
            capabilities: Some(node.capabilities),
            permissions: Some(node.permissions),
            session: Some(node.session),
            usage: node.usage,
            connection: node.connection,
            inbox_count: node.inbox_count,
            todos: node.todos,
        }
    }

    /// The node that this makes, if it says all that one needs.
    pub fn made(self) -> Option<Node> {
        Some(Node {
            id: self.id?,
            run_id: self.run_id?,
            label: self.label?,
            alias: self.alias.filter(|alias| !alias.is_empty()),
            role_template: self.role_template?,
            custom_system_prompt: self.custom_system_prompt,
            provider: self.provider?,
            status: self.status?,
            summary: self.summary?,
            last_activity_at: self.last_activity_at?,
            capabilities: self.capabilities?,
            permissions: self.permissions?,
            session: self.session?,
            usage: self.usage,
            connection: self.connection,
            inbox_count: self.inbox_count,
            todos: self.todos,
        })
    }

    /// Lays it over a node.
    pub fn lay_over(self, node: &mut Node) {
        put(&mut node.label, self.label);
        match self.alias {
            Some(alias) if alias.is_empty() => node.alias = None,
            Some(alias) => node.alias = Some(alias),
            None => {}
        }
        put(&mut node.role_template, self.role_template);
        put_some(&mut node.custom_system_prompt, self.custom_system_prompt);
        put(&mut node.provider, self.provider);
        put(&mut node.status, self.status);
        put(&mut node.summary, self.summary);
        put(&mut node.last_activity_at, self.last_activity_at);
        put(&mut node.capabilities, self.capabilities);
        put(&mut node.permissions, self.permissions);
        put(&mut node.session, self.session);
        put_some(&mut node.usage, self.usage);
        put_some(&mut node.connection, self.connection);
        put_some(&mut node.inbox_count, self.inbox_count);
        put_some(&mut node.todos, self.todos);
    }
}

pub(crate) fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

pub(crate) fn put_some<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}

/// A node's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeConfig {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// What it is called.
    pub label: String,
    /// A short name, unique in the run without regard to case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Whose program has its turns.
    pub provider: Provider,
    /// The template of its role.
    pub role_template: String,
    /// The text that stands in for the template.
    #[serde(default)]
    pub custom_system_prompt: Option<String>,
    /// What it may do.
    pub capabilities: Capabilities,
    /// What waits for a person.
    pub permissions: Permissions,
    /// How its sessions are kept.
    #[serde(default)]
    pub session: SessionConfig,
}

impl NodeConfig {
    /// What people call it: its alias, else its label.
    pub fn called(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.label)
    }
}

/// A node as a request asks for it: what is not said is filled in by its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The id that it shall have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// What it shall be called.
    pub label: String,
    /// A short name; blank means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Whose program shall have its turns.
    pub provider: Provider,
    /// The template of its role.
    pub role_template: String,
    /// The text that stands in for the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_system_prompt: Option<String>,
    /// What it may do.
    #[serde(default)]
    pub capabilities: CapabilitiesPart,
    /// What waits for a person.
    #[serde(default)]
    pub permissions: PermissionsPart,
    /// How its sessions are kept.
    #[serde(default)]
    pub session: SessionConfig,
}

/// What a request wants changed of a node's configuration. Objects inside may be partial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "each is the configuration's of that name")]
pub struct NodeChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Blank takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub custom_system_prompt: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<CapabilitiesPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionsPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionConfig>,
}
