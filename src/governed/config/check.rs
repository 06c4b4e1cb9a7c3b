//! Checks a configuration: everything that is wrong is collected, each problem with its place.
//!
//! References have problems of their own ([`Problem`]), because a person who mends a configuration wants the
//! name that is missing.

use super::super::{hooks, policy};
use super::{Authority, Config, Object, json, keys, parts};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Problem {
    /// The version is not one of governed projects.
    SchemaVersion { found: Value },
    /// A role is named that is not declared.
    UnknownRole { field: String, role: String },
    /// A runtime is named that is not declared.
    UnknownRuntime { field: String, runtime: String },
    /// A gate is named that is not declared.
    UnknownGate { field: String, gate: String },
    /// A value is not what its place allows.
    Invalid { field: String, must: String },
}

impl Problem {
    pub(crate) fn invalid(field: impl Into<String>, must: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), must: must.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchemaVersion { found } => write!(f, "schema_version must be \"1.0\", is {found}"),
            Self::UnknownRole { field, role } => write!(f, "{field} names the undeclared role '{role}'"),
            Self::UnknownRuntime { field, runtime } => {
                write!(f, "{field} names the undeclared runtime '{runtime}'")
            }
            Self::UnknownGate { field, gate } => write!(f, "{field} names the undeclared gate '{gate}'"),
            Self::Invalid { field, must } => write!(f, "{field} must {must}"),
        }
    }
}

/// Returns everything that is wrong with a raw configuration; with a folder, the programs of hooks are looked
/// for there.
pub(crate) fn problems(raw: &Value, root: Option<&Path>) -> Vec<Problem> {
    let Some(config) = raw.as_object() else {
        return vec![Problem::invalid("the configuration", "be an object")];
    };
    let mut found = Vec::new();
    let version = config.get("schema_version").cloned().unwrap_or(Value::Null);
    if version != "1.0" && version != 4 {
        found.push(Problem::SchemaVersion { found: version });
    }
    project(config, &mut found);
    let none = Object::new();
    let roles = required(config, "roles", &none, &mut found);
    let runtimes = required(config, "runtimes", &none, &mut found);
    parts::runtimes(runtimes, &mut found);
    for (id, role) in roles {
        self::role(id, role, runtimes, &mut found);
    }
    routing(config, roles, &mut found);
    gates(config, &mut found);
    hooks::check(config.get("hooks"), root, &mut |field, must| found.push(Problem::invalid(field, must)));
    parts::notifications(config.get("notifications"), &mut found);
    parts::budget(config.get("budget"), &mut found);
    parts::rules(config.get("rules"), &mut found);
    parts::timeouts(config.get("timeouts"), &mut found);
    parts::approval_policy(config.get("approval_policy"), &mut found);
    policy::check(config, &mut found);
    parts::workflow_kit(config, &mut found);
    keys::misspelt(raw, &mut found);
    if found.is_empty()
        && let Some(config) = Config::from_value(raw.clone())
    {
        policy::possible(&config, &mut found);
    }
    found
}

fn required<'a>(config: &'a Object, key: &str, none: &'a Object, found: &mut Vec<Problem>) -> &'a Object {
    let part = json::object(config, key).filter(|part| !part.is_empty());
    part.unwrap_or_else(|| {
        found.push(Problem::invalid(key, "be an object that is not empty"));
        none
    })
}

fn filled(object: &Object, key: &str, place: &str, found: &mut Vec<Problem>) {
    if !json::is_filled(object.get(key)) {
        found.push(Problem::invalid(format!("{place}.{key}"), "be a string that is not blank"));
    }
}

fn project(config: &Object, found: &mut Vec<Problem>) {
    let Some(project) = json::object(config, "project") else {
        return found.push(Problem::invalid("project", "be an object"));
    };
    filled(project, "id", "project", found);
    filled(project, "name", "project", found);
    for key in ["default_branch", "goal"].into_iter().filter(|key| project.contains_key(*key)) {
        filled(project, key, "project", found);
    }
    if json::text(project, "goal").is_some_and(|goal| goal.trim().chars().count() > 500) {
        found.push(Problem::invalid("project.goal", "have at most 500 characters"));
    }
}

fn role(id: &str, role: &Value, runtimes: &Object, found: &mut Vec<Problem>) {
    let place = format!("roles.{id}");
    if !json::is_name(id) {
        found.push(Problem::invalid(&place, "be named with lower-case letters, digits, '_' and '-'"));
    }
    let Some(role) = role.as_object() else { return found.push(Problem::invalid(place, "be an object")) };
    filled(role, "title", &place, found);
    filled(role, "mandate", &place, found);
    let authority = json::text(role, "write_authority").and_then(Authority::named);
    if authority.is_none() {
        found.push(Problem::invalid(
            format!("{place}.write_authority"),
            "be authoritative, proposed or review_only",
        ));
    }
    let level = role.get("decision_authority").filter(|level| !level.is_null());
    if level.is_some_and(|level| json::whole(level).is_none_or(|n| n > 99)) {
        found.push(Problem::invalid(format!("{place}.decision_authority"), "be a whole number from 0 to 99"));
    }
    let key = if role.contains_key("runtime") { "runtime" } else { "runtime_id" };
    let Some(runtime) = json::filled(role, key) else {
        return found.push(Problem::invalid(format!("{place}.runtime"), "be a string that is not blank"));
    };
    match json::object(runtimes, runtime) {
        None if runtimes.contains_key(runtime) => {}
        None => found
            .push(Problem::UnknownRuntime { field: format!("{place}.{key}"), runtime: runtime.to_owned() }),
        Some(of) => binding(&place, authority, of, found),
    }
}

/// Checks that the role is not asked to do what its runtime can't do.
fn binding(place: &str, authority: Option<Authority>, runtime: &Object, found: &mut Vec<Problem>) {
    let said = json::object(runtime, "capabilities").and_then(|c| c.get("can_write_files"));
    let said = match said.and_then(Value::as_str) {
        Some("direct") => Some(true),
        Some("proposal_only") => Some(false),
        // With 'tool_defined' or 'unknown' the runtime's type counts. Any other value is refused with the
        // runtime.
        Some(_) | None => None,
    };
    let kind = json::text(runtime, "type").unwrap_or_default();
    match (authority, kind) {
        (Some(Authority::ReviewOnly), "local_cli") if said != Some(false) => found.push(Problem::invalid(
            format!("{place}.write_authority"),
            "not be review_only on a local_cli runtime, which writes files",
        )),
        (Some(Authority::Authoritative), "api_proxy" | "remote_agent") if said != Some(true) => {
            found.push(Problem::invalid(
                format!("{place}.write_authority"),
                "not be authoritative on a runtime that writes no files",
            ))
        }
        _ => {}
    }
}

fn routing(config: &Object, roles: &Object, found: &mut Vec<Problem>) {
    let routing = match config.get("routing") {
        None | Some(Value::Null) => return,
        Some(Value::Object(routing)) => routing,
        Some(_) => return found.push(Problem::invalid("routing", "be an object")),
    };
    let gates = json::object(config, "gates");
    for (phase, route) in routing {
        let place = format!("routing.{phase}");
        if !json::is_phase_name(phase) {
            found.push(Problem::invalid(
                &place,
                "begin with a lower-case letter and have letters, digits, '_', '-'",
            ));
        }
        let Some(route) = route.as_object() else {
            found.push(Problem::invalid(place, "be an object"));
            continue;
        };
        if let Some(entry) = route.get("entry_role").filter(|entry| !entry.is_null()) {
            let name = entry.as_str().unwrap_or_default();
            if !roles.contains_key(name) {
                let field = format!("{place}.entry_role");
                found.push(Problem::UnknownRole { field, role: shown(entry) });
            }
        }
        next_roles(&place, route, roles, found);
        let limit = route.get("max_concurrent_turns");
        if limit.is_some_and(|limit| !json::whole(limit).is_some_and(|n| (1..=4).contains(&n))) {
            found.push(Problem::invalid(
                format!("{place}.max_concurrent_turns"),
                "be a whole number from 1 to 4",
            ));
        }
        // A gate that is nowhere declared would be open.
        let is_known = |gate: &str| gates.is_some_and(|gates| gates.contains_key(gate));
        if let Some(gate) = route.get("exit_gate").filter(|gate| !gate.is_null())
            && !gate.as_str().is_some_and(is_known)
        {
            found.push(Problem::UnknownGate { field: format!("{place}.exit_gate"), gate: shown(gate) });
        }
        parts::phase_timeout(&place, route, found);
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn next_roles(place: &str, route: &Object, roles: &Object, found: &mut Vec<Problem>) {
    let field = format!("{place}.allowed_next_roles");
    match route.get("allowed_next_roles") {
        None | Some(Value::Null) => {}
        Some(Value::Array(names)) => {
            for name in names {
                if !name.as_str().is_some_and(|name| name == "human" || roles.contains_key(name)) {
                    found.push(Problem::UnknownRole { field: field.clone(), role: shown(name) });
                }
            }
        }
        Some(_) => found.push(Problem::invalid(field, "be a list of roles")),
    }
}

fn gates(config: &Object, found: &mut Vec<Problem>) {
    let gates = match config.get("gates") {
        None | Some(Value::Null) => return,
        Some(Value::Object(gates)) => gates,
        Some(_) => return found.push(Problem::invalid("gates", "be an object")),
    };
    for (id, gate) in gates {
        let place = format!("gates.{id}");
        let Some(gate) = gate.as_object() else {
            found.push(Problem::invalid(place, "be an object"));
            continue;
        };
        let files = gate.get("requires_files");
        if files.is_some_and(|files| !files.as_array().is_some_and(|all| all.iter().all(Value::is_string))) {
            found.push(Problem::invalid(format!("{place}.requires_files"), "be a list of strings"));
        }
        for key in ["requires_verification_pass", "requires_human_approval", "credentialed"] {
            if gate.get(key).is_some_and(|value| !value.is_boolean()) {
                found.push(Problem::invalid(format!("{place}.{key}"), "be true or false"));
            }
        }
        // Gate actions run shell text, and no code of governed runs does.
        if gate.contains_key("gate_actions") {
            found.push(Problem::invalid(
                format!("{place}.gate_actions"),
                "not be set: gate actions are not run here",
            ));
        }
    }
}
