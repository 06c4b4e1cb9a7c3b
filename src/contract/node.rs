//! Nodes on the wire: their state, their configuration, and changes to both.
//!
//! State and configuration differ only in `session`: the state names the session, the configuration says
//! whether a turn resumes one. An absent key means that nothing was said; only `customSystemPrompt` can also
//! be `null`.

use super::id::{NodeId, RunId};
use super::time::Time;
use super::words::{CliPermissionsMode, ConnectionStatus, EdgeManagement, NodeStatus, Provider, TodoStatus};
use serde::{Deserialize, Deserializer, Serialize};

/// The role template whose nodes lead a flow; compared in any case, and without the blanks around it.
pub const ORCHESTRATOR: &str = "orchestrator";

/// True if nodes of this role template lead a flow.
pub fn orchestrates(role_template: &str) -> bool {
    role_template.trim().eq_ignore_ascii_case(ORCHESTRATOR)
}

/// Reads a key that may be missing, `null` or a value; `null` is read as `Some(None)`.
pub(crate) fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What a node may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Which edges the node may make.
    pub edge_management: EdgeManagement,
    /// Whether it may change what is not below `docs/`.
    pub write_code: bool,
    /// Whether it may change what is below `docs/`.
    pub write_docs: bool,
    /// Whether it may run commands.
    pub run_commands: bool,
    /// Whether it may only hand work on, and change no file.
    pub delegate_only: bool,
}

impl Capabilities {
    /// Returns what a node of this role may do, unless its configuration says otherwise.
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

/// Some of a node's capabilities; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesPart {
    /// Which edges the node may make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_management: Option<EdgeManagement>,
    /// Whether it may change what is not below `docs/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_code: Option<bool>,
    /// Whether it may change what is below `docs/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_docs: Option<bool>,
    /// Whether it may run commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_commands: Option<bool>,
    /// Whether it may only hand work on, and change no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate_only: Option<bool>,
}

impl CapabilitiesPart {
    /// Returns what a new node of this role may do: what was asked for, but no more than its maker may.
    /// `delegate_only` is not inherited: a maker that only delegates needs nodes for the work that it does
    /// not do itself.
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

    /// Returns the capabilities in `base`, replaced by those that `self` has.
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

/// What a person has to approve before a node does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permissions {
    /// Whether every tool waits for a person.
    pub cli_permissions_mode: CliPermissionsMode,
    /// Whether spawning a node and making an edge wait for a person.
    pub agent_management_requires_approval: bool,
}

impl Permissions {
    /// Returns what waits for a person at a node of this role, unless its configuration says otherwise.
    pub fn of_role(role_template: &str) -> Self {
        Self {
            cli_permissions_mode: CliPermissionsMode::Skip,
            agent_management_requires_approval: !orchestrates(role_template),
        }
    }
}

/// Some of a node's permissions; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsPart {
    /// Whether every tool waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_permissions_mode: Option<CliPermissionsMode>,
    /// Whether spawning a node and making an edge wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_management_requires_approval: Option<bool>,
}

impl PermissionsPart {
    /// Returns what waits for a person at a new node of this role: all that does at its maker, and what was
    /// asked for.
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

    /// Returns the permissions in `base`, replaced by those that `self` has.
    pub fn over(&self, base: &Permissions) -> Permissions {
        Permissions {
            cli_permissions_mode: self.cli_permissions_mode.unwrap_or(base.cli_permissions_mode),
            agent_management_requires_approval: self
                .agent_management_requires_approval
                .unwrap_or(base.agent_management_requires_approval),
        }
    }
}

/// Returns the texts that reset an agent's session if a node does not configure others.
pub fn reset_commands() -> Vec<String> {
    vec!["/new".to_owned(), "/clear".to_owned()]
}

/// The session in a node's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The provider's name of the session; `pending` until a turn reported one.
    pub session_id: String,
    /// The texts by which a person asks for a new session.
    pub reset_commands: Vec<String>,
}

/// The session id before there is a session.
pub const PENDING: &str = "pending";

/// The session in a node's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// Whether a turn resumes the session of the turn before.
    #[serde(default = "yes")]
    pub resume: bool,
    /// The texts by which a person asks for a new session.
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

/// Tokens used; an increment in `telemetry.usage`, a total elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens that the model read.
    pub prompt_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
    /// The sum of both.
    pub total_tokens: u64,
}

impl Usage {
    /// Returns the usage of that many tokens read and written.
    pub fn of(prompt_tokens: u64, completion_tokens: u64) -> Self {
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens }
    }

    /// Returns the sum of two usages.
    pub fn and(self, more: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(more.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(more.completion_tokens),
            total_tokens: self.total_tokens.saturating_add(more.total_tokens),
        }
    }
}

/// How a node can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Whether a turn is leased, or the node is stopped.
    pub status: ConnectionStatus,
    /// Whether a turn is under way, so that output may come.
    pub streaming: bool,
    /// When it was last seen alive.
    pub last_heartbeat_at: Time,
    /// When it last printed something.
    pub last_output_at: Time,
}

/// One task of a node's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// The task.
    pub content: String,
    /// How far the task is.
    pub status: TodoStatus,
    /// The wording of the task while it is being done.
    #[serde(default)]
    pub active_form: String,
}

/// A node's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The id of the node.
    pub id: NodeId,
    /// The id of its run.
    pub run_id: RunId,
    /// The node's name, for people.
    pub label: String,
    /// A short name, unique in the run without regard to case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The template of its role.
    pub role_template: String,
    /// The text that replaces the role's template; `null` if none does.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub custom_system_prompt: Option<Option<String>>,
    /// The provider whose program runs its turns.
    pub provider: Provider,
    /// What the node is doing.
    pub status: NodeStatus,
    /// What it is doing, in a few words.
    pub summary: String,
    /// When it last did something.
    pub last_activity_at: Time,
    /// What it may do.
    pub capabilities: Capabilities,
    /// What a person has to approve.
    pub permissions: Permissions,
    /// Its session.
    pub session: Session,
    /// The tokens of all its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How many messages wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_count: Option<u64>,
    /// Its list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<Todo>>,
}

/// A change of a node's state. An object inside replaces the whole object.
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
    /// Empty if the alias is removed.
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
    /// Returns the patch with all of a node, for a reader that does not know the node yet.
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

    /// Returns the node that the patch makes; `None` if a field is missing that every node has.
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

    /// Applies the patch to a node.
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
    /// The id of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// The node's name, for people.
    pub label: String,
    /// A short name, unique in the run without regard to case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The provider whose program runs its turns.
    pub provider: Provider,
    /// The template of its role.
    pub role_template: String,
    /// The text that replaces the role's template.
    #[serde(default)]
    pub custom_system_prompt: Option<String>,
    /// What it may do.
    pub capabilities: Capabilities,
    /// What a person has to approve.
    pub permissions: Permissions,
    /// Whether sessions are resumed, and how a person resets them.
    #[serde(default)]
    pub session: SessionConfig,
}

impl NodeConfig {
    /// Returns the name that people use: the alias, or else the label.
    pub fn called(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.label)
    }
}

/// A node as a request asks for it; the role fills in what the request does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The id that the node is to have; a new one is made if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// The node's name, for people.
    pub label: String,
    /// A short name; blank means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The provider whose program is to run its turns.
    pub provider: Provider,
    /// The template of its role.
    pub role_template: String,
    /// The text that replaces the role's template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_system_prompt: Option<String>,
    /// What it may do.
    #[serde(default)]
    pub capabilities: CapabilitiesPart,
    /// What a person has to approve.
    #[serde(default)]
    pub permissions: PermissionsPart,
    /// Whether sessions are resumed, and how a person resets them.
    #[serde(default)]
    pub session: SessionConfig,
}

/// A change to a node's configuration, as a request asks for it. An object inside may be partial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "each is the configuration's of that name")]
pub struct NodeChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Blank if the alias is to be removed.
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
