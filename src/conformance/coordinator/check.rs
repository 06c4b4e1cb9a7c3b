//! What may be wrong with a coordinator's configuration: each error is `code: text`.

use crate::governed::json::{self, Object};
use serde_json::Value;

const BARRIERS: [&str; 5] = [
    "all_repos_accepted",
    "interface_alignment",
    "ordered_repo_sequence",
    "shared_human_gate",
    "named_decisions",
];
/// The phases, where no routing names others.
const PHASES: [&str; 3] = ["planning", "implementation", "qa"];

#[derive(Default)]
struct Errors(Vec<String>);

impl Errors {
    fn add(&mut self, code: &str, text: impl std::fmt::Display) {
        self.0.push(format!("{code}: {text}"));
    }

    fn demand(&mut self, holds: bool, code: &str, text: impl std::fmt::Display) {
        if !holds {
            self.add(code, text);
        }
    }
}

/// Returns everything that is wrong with a configuration.
pub(in crate::conformance) fn errors(config: &Value) -> Vec<String> {
    let mut errors = Errors::default();
    let Some(config) = config.as_object() else {
        errors.add("config_invalid", "the configuration must be an object");
        return errors.0;
    };
    let version = config.get("schema_version");
    errors.demand(
        version.is_some_and(|v| v == "0.1"),
        "schema_version_invalid",
        "schema_version must be \"0.1\"",
    );
    match json::object(config, "project") {
        None => errors.add("project_invalid", "project must be an object"),
        Some(project) => {
            errors.demand(
                json::is_filled(project.get("id")),
                "project_id_invalid",
                "project.id must say something",
            );
            let has_name = json::is_filled(project.get("name"));
            errors.demand(has_name, "project_name_invalid", "project.name must say something");
        }
    }
    let none = Object::new();
    let repos = json::object(config, "repos").filter(|repos| !repos.is_empty());
    errors.demand(repos.is_some(), "repos_invalid", "repos must be an object that is not empty");
    let repos = repos.unwrap_or(&none);
    for (id, repo) in repos {
        self::repo(id, repo, &mut errors);
    }
    let phases = json::object(config, "routing").map(|routing| routing.keys().map(String::as_str).collect());
    let phases: Vec<&str> = phases.unwrap_or_else(|| PHASES.to_vec());
    let streams = json::object(config, "workstreams").filter(|streams| !streams.is_empty());
    errors.demand(
        streams.is_some(),
        "workstreams_invalid",
        "workstreams must be an object that is not empty",
    );
    let streams = streams.unwrap_or(&none);
    for (id, stream) in streams {
        workstream(id, stream, repos, streams, &phases, &mut errors);
    }
    if let Some(cycle) = cycle(streams) {
        errors.add("workstream_cycle", format_args!("workstream '{cycle}' depends on itself"));
    }
    routing(config, streams, &mut errors);
    gates(config, repos, &mut errors);
    crate::governed::hooks::check(config.get("hooks"), None, &mut |field, must| {
        errors.add("hooks_invalid", format_args!("{field} must {must}"));
    });
    errors.0
}

fn repo(id: &str, repo: &Value, errors: &mut Errors) {
    errors.demand(json::is_name(id), "repo_id_invalid", format_args!("'{id}' is no name"));
    let Some(repo) = repo.as_object() else {
        return errors.add("repo_invalid", format_args!("repos.{id} must be an object"));
    };
    let has_path = json::is_filled(repo.get("path"));
    errors.demand(has_path, "repo_path_invalid", format_args!("repos.{id}.path must say something"));
    let branch = repo.get("default_branch");
    let is_branch = branch.is_none_or(|branch| json::is_filled(Some(branch)));
    errors.demand(
        is_branch,
        "repo_default_branch_invalid",
        format_args!("repos.{id}.default_branch is none"),
    );
    let is_bool = repo.get("required").is_none_or(Value::is_boolean);
    errors.demand(
        is_bool,
        "repo_required_invalid",
        format_args!("repos.{id}.required must be true or false"),
    );
}

fn workstream(
    id: &str,
    stream: &Value,
    repos: &Object,
    streams: &Object,
    phases: &[&str],
    errors: &mut Errors,
) {
    errors.demand(json::is_name(id), "workstream_id_invalid", format_args!("'{id}' is no name"));
    let Some(stream) = stream.as_object() else {
        return errors.add("workstream_invalid", format_args!("workstreams.{id} must be an object"));
    };
    let phase = json::text(stream, "phase").unwrap_or_default();
    let is_phase = phases.contains(&phase);
    errors.demand(is_phase, "workstream_phase_invalid", format_args!("workstreams.{id}: no phase '{phase}'"));
    let own = stream_repos(id, stream, repos, errors);
    match json::filled(stream, "entry_repo") {
        None => errors
            .add("workstream_entry_repo_invalid", format_args!("workstreams.{id}.entry_repo is missing")),
        Some(entry) => errors.demand(
            own.contains(&entry),
            "workstream_entry_repo_mismatch",
            format_args!("workstreams.{id}.entry_repo '{entry}' is not one of its repos"),
        ),
    }
    match stream.get("depends_on") {
        None | Some(Value::Array(_)) => {}
        Some(_) => errors
            .add("workstream_depends_on_invalid", format_args!("workstreams.{id}.depends_on must be a list")),
    }
    for other in json::list(stream, "depends_on") {
        match other.as_str() {
            None => errors
                .add("workstream_dependency_invalid", format_args!("workstreams.{id} depends on {other}")),
            Some(other) => errors.demand(
                streams.contains_key(other),
                "workstream_dependency_unknown",
                format_args!("workstreams.{id} depends on '{other}'"),
            ),
        }
    }
    let barrier = json::text(stream, "completion_barrier").unwrap_or_default();
    errors.demand(
        BARRIERS.contains(&barrier),
        "workstream_completion_barrier_invalid",
        format_args!("workstreams.{id}: no barrier '{barrier}'"),
    );
    for part in ["interface_alignment", "named_decisions"] {
        let is_needed = barrier == part;
        match stream.get(part) {
            None if !is_needed => {}
            given => decisions(id, part, given, &own, errors),
        }
    }
}

fn stream_repos<'a>(id: &str, stream: &'a Object, repos: &Object, errors: &mut Errors) -> Vec<&'a str> {
    let all = json::list(stream, "repos");
    errors.demand(
        !all.is_empty(),
        "workstream_repos_invalid",
        format_args!("workstreams.{id}.repos must name some"),
    );
    let mut own: Vec<&str> = Vec::new();
    for repo in all {
        match repo.as_str() {
            None => errors.add("workstream_repo_invalid", format_args!("workstreams.{id}.repos has {repo}")),
            Some(repo) if own.contains(&repo) => {
                errors.add(
                    "workstream_repo_duplicate",
                    format_args!("workstreams.{id}.repos has '{repo}' twice"),
                );
            }
            Some(repo) => {
                let is_known = repos.contains_key(repo);
                errors.demand(
                    is_known,
                    "workstream_repo_unknown",
                    format_args!("workstreams.{id}.repos: '{repo}'"),
                );
                own.push(repo);
            }
        }
    }
    own
}

/// Returns the decisions that each repository of a workstream has to take.
pub(super) fn by_repo(part: &Object) -> Option<&Object> {
    ["decision_ids_by_repo", "required_decision_ids_by_repo"].iter().find_map(|key| json::object(part, key))
}

fn decisions(id: &str, part: &str, given: Option<&Value>, own: &[&str], errors: &mut Errors) {
    let code = |suffix: &str| format!("workstream_{part}_{suffix}");
    let place = format!("workstreams.{id}.{part}");
    let Some(given) = given.and_then(Value::as_object) else {
        return errors.add(&code("invalid"), format_args!("{place} must be an object"));
    };
    let Some(all) = by_repo(given) else {
        return errors
            .add(&code("decisions_invalid"), format_args!("{place}.decision_ids_by_repo must be an object"));
    };
    for repo in own.iter().filter(|repo| !all.contains_key(**repo)) {
        errors.add(&code("repo_missing"), format_args!("{place} says nothing of '{repo}'"));
    }
    for (repo, ids) in all {
        errors.demand(own.contains(&repo.as_str()), &code("repo_unknown"), format_args!("{place}: '{repo}'"));
        let Some(ids) = ids.as_array().filter(|ids| !ids.is_empty()) else {
            errors
                .add(&code("repo_invalid"), format_args!("{place}.{repo} must be a list that is not empty"));
            continue;
        };
        for (at, decision) in ids.iter().enumerate() {
            let is_id = decision.as_str().is_some_and(|d| json::is_numbered(d, "DEC-"));
            errors.demand(is_id, &code("decision_invalid"), format_args!("{place}.{repo} has {decision}"));
            let is_new = !ids[..at].contains(decision);
            errors.demand(
                is_new,
                &code("decision_duplicate"),
                format_args!("{place}.{repo} has {decision} twice"),
            );
        }
    }
}

/// Returns a workstream that depends on itself, directly or through others.
fn cycle(streams: &Object) -> Option<&str> {
    let needs = |id: &str| {
        json::object(streams, id).map(|stream| json::texts(stream, "depends_on")).unwrap_or_default()
    };
    streams.keys().map(String::as_str).find(|start| {
        let (mut seen, mut open) = (Vec::new(), needs(start));
        while let Some(next) = open.pop() {
            if next == *start {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                open.extend(needs(next));
            }
        }
        false
    })
}

fn routing(config: &Object, streams: &Object, errors: &mut Errors) {
    let routing = match config.get("routing") {
        None => return,
        Some(Value::Object(routing)) => routing,
        Some(_) => return errors.add("routing_invalid", "routing must be an object"),
    };
    for (phase, route) in routing {
        let is_phase = json::is_phase_name(phase);
        errors.demand(is_phase, "routing_phase_invalid", format_args!("'{phase}' is no name of a phase"));
        let Some(route) = route.as_object() else {
            errors.add("routing_entry_invalid", format_args!("routing.{phase} must be an object"));
            continue;
        };
        let Some(entry) = route.get("entry_workstream") else { continue };
        let Some(entry) = entry.as_str() else {
            errors.add(
                "routing_entry_workstream_invalid",
                format_args!("routing.{phase}.entry_workstream is none"),
            );
            continue;
        };
        match json::object(streams, entry) {
            None => {
                errors.add("routing_entry_workstream_unknown", format_args!("routing.{phase}: '{entry}'"))
            }
            Some(stream) => errors.demand(
                json::text(stream, "phase") == Some(phase),
                "routing_phase_mismatch",
                format_args!("workstream '{entry}' is of another phase than '{phase}'"),
            ),
        }
    }
}

fn gates(config: &Object, repos: &Object, errors: &mut Errors) {
    let gates = match config.get("gates") {
        None => return,
        Some(Value::Object(gates)) => gates,
        Some(_) => return errors.add("gates_invalid", "gates must be an object"),
    };
    for (id, gate) in gates {
        errors.demand(json::is_name(id), "gate_id_invalid", format_args!("'{id}' is no name"));
        let Some(gate) = gate.as_object() else {
            errors.add("gate_invalid", format_args!("gates.{id} must be an object"));
            continue;
        };
        let is_bool = gate.get("requires_human_approval").is_none_or(Value::is_boolean);
        let place = format!("gates.{id}");
        errors.demand(
            is_bool,
            "gate_requires_human_approval_invalid",
            format_args!("{place}: true or false"),
        );
        let is_list = gate.get("requires_repos").is_none_or(Value::is_array);
        errors.demand(
            is_list,
            "gate_requires_repos_invalid",
            format_args!("{place}.requires_repos must be a list"),
        );
        let all = json::list(gate, "requires_repos");
        for (at, repo) in all.iter().enumerate() {
            match repo.as_str() {
                None => errors.add("gate_requires_repo_invalid", format_args!("{place} requires {repo}")),
                Some(name) => {
                    let is_new = !all[..at].contains(repo);
                    errors.demand(
                        is_new,
                        "gate_requires_repo_duplicate",
                        format_args!("{place} requires '{name}' twice"),
                    );
                    let is_known = repos.contains_key(name);
                    errors.demand(
                        is_known,
                        "gate_requires_repo_unknown",
                        format_args!("{place} requires '{name}'"),
                    );
                }
            }
        }
    }
}
