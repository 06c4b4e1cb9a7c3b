//! Every key of the format, and what this program does with it: it is kept, refused by name, or reported once
//! by name.
//!
//! Projects carry keys that this program does nothing with. These are no reason to refuse a project: [`told`]
//! reports them to the person who begins a run. A key is refused instead where ignoring it would approve or
//! run something (in [`super::check`] and [`super::parts`]). In a pattern, `*` is any name of an object; what
//! is below a row belongs to that row. Implements G16.

use super::Object;
use super::check::Problem;
use crate::protocol::resemble::nearest;
use serde_json::{Value, json};

/// What this program does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The key is in effect, or holds anyway: a name, a text for workers, a choice that this program always
    /// makes.
    Kept,
    /// It is an error to set the key.
    Refused,
    /// Nothing acts on the key, for this reason.
    Told(&'static str),
}
use Fate::{Kept, Refused, Told};

const NO_DAEMON: &str = "nothing stays running here that could";
const NO_WATCH: &str = "timeouts.per_turn_minutes and routing.<phase>.timeout_minutes end a worker";
const THEIRS: &str = "such a turn waits for a worker of your own, which may go by it";
const OTHERS: &str = "it belongs to other tools of the format";
const DECLARED: &str = "it is a description";

const KEYS: &[(&str, Fate)] = &[
    ("schema_version", Kept),
    ("template", Kept),
    ("project.id", Kept),
    ("project.name", Kept),
    ("project.goal", Kept),
    ("project.default_branch", Kept),
    ("roles.*.title", Kept),
    ("roles.*.mandate", Kept),
    ("roles.*.write_authority", Kept),
    ("roles.*.decision_authority", Kept),
    ("roles.*.runtime", Kept),
    ("roles.*.declared_file_scope", Told("what a turn may change is its write_authority's to say")),
    ("runtimes.*.type", Kept),
    ("runtimes.*.command", Kept),
    ("runtimes.*.args", Kept),
    ("runtimes.*.prompt_transport", Kept),
    ("runtimes.*.cwd", Told("workers are started in the project's folder")),
    ("runtimes.*.startup_watchdog_ms", Told(NO_WATCH)),
    ("runtimes.*.startup_heartbeat_ms", Told(NO_WATCH)),
    ("runtimes.*.liveness_heartbeat_ms", Told(NO_WATCH)),
    ("runtimes.*.capabilities.can_write_files", Kept),
    ("runtimes.*.capabilities.proposal_support", Told(DECLARED)),
    ("runtimes.*.capabilities.workflow_artifact_ownership", Told(DECLARED)),
    ("runtimes.*.provider", Told(THEIRS)),
    ("runtimes.*.model", Told(THEIRS)),
    ("runtimes.*.auth_env", Told(THEIRS)),
    ("runtimes.*.base_url", Told(THEIRS)),
    ("runtimes.*.context_window_tokens", Told(THEIRS)),
    ("runtimes.*.max_output_tokens", Told(THEIRS)),
    ("runtimes.*.retry_policy", Told(THEIRS)),
    ("runtimes.*.preflight_tokenization", Told(THEIRS)),
    ("runtimes.*.transport", Told(THEIRS)),
    ("runtimes.*.url", Told(THEIRS)),
    ("runtimes.*.headers", Told(THEIRS)),
    ("runtimes.*.tool_name", Told(THEIRS)),
    ("runtimes.*.timeout_ms", Told(THEIRS)),
    ("routing.*.entry_role", Kept),
    ("routing.*.allowed_next_roles", Kept),
    ("routing.*.exit_gate", Kept),
    ("routing.*.max_concurrent_turns", Kept),
    ("routing.*.timeout_minutes", Kept),
    ("routing.*.timeout_action", Kept),
    ("gates.*.requires_files", Kept),
    ("gates.*.requires_verification_pass", Kept),
    ("gates.*.requires_human_approval", Kept),
    // Only people approve gates, so the key holds anyway.
    ("gates.*.credentialed", Kept),
    ("gates.*.gate_actions", Refused),
    ("hooks", Kept),
    ("notifications.webhooks", Kept),
    ("notifications.approval_sla", Told(NO_DAEMON)),
    ("notifications.local", Told(NO_DAEMON)),
    ("budget.per_turn_max_usd", Kept),
    ("budget.per_run_max_usd", Kept),
    ("budget.on_exceed", Kept),
    ("budget.cost_rates", Told("a turn costs what its result says")),
    ("rules.challenge_required", Kept),
    ("rules.max_turn_retries", Kept),
    ("rules.max_deadlock_cycles", Told("a run ends by turns, budget and time")),
    ("policies", Kept),
    // Only 'auto_approve' in it is not supported, and is refused.
    ("approval_policy", Kept),
    ("timeouts", Kept),
    ("workflow_kit.phases.*.artifacts", Kept),
    ("workflow_kit.phases.*.template", Told("name the artifacts themselves")),
    ("prompts", Told("a role is told its mandate")),
    ("files", Told("their places are fixed")),
    ("retention", Told("history is Git's")),
    ("schedules", Told(NO_DAEMON)),
    ("run_loop.max_turns", Kept),
    ("run_loop", Told(OTHERS)),
    ("mission_planner", Told(OTHERS)),
    ("gate_semantic_coverage_mode", Told(OTHERS)),
    ("intent_coverage_mode", Told(OTHERS)),
];

/// Returns one sentence for each key that a raw configuration sets and nothing acts on, in the order of the
/// table.
pub(super) fn told(raw: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (pattern, fate) in KEYS {
        let why = match fate {
            Told(why) => why,
            Kept | Refused => continue,
        };
        let segments: Vec<&str> = pattern.split('.').collect();
        let mut found = Vec::new();
        find(raw, &segments, String::new(), &mut found);
        let spoken = found.into_iter().filter(|(path, value)| says(pattern, path, value));
        all.extend(spoken.map(|(path, _)| format!("'{path}' is not enforced: {why}")));
    }
    all.extend(unknown(raw).into_iter().filter_map(Unknown::told));
    all
}

/// The parts whose keys may be misspelt: the top level first, and whether any unknown key in them is told.
/// Elsewhere the format's tools have keys of their own, and only one that is nearly a known key is told.
const PARTS: [(&str, bool); 7] = [
    ("", true),
    ("roles.*", false),
    ("runtimes.*", false),
    ("routing.*", true),
    ("gates.*", true),
    ("rules", false),
    ("budget", true),
];
/// Keys that are read, or written by this program into a normalized configuration, and are in no row.
const MORE: [&str; 4] = ["protocol_mode", "compat", "roles.*.runtime_id", "roles.*.runtime_class"];
/// The keys without which a phase ends unasked.
const GATING: [&str; 4] = [
    "routing.*.exit_gate",
    "gates.*.requires_files",
    "gates.*.requires_verification_pass",
    "gates.*.requires_human_approval",
];

/// A key that is not of the format.
struct Unknown<'v> {
    /// The pattern of the part that has it.
    part: &'static str,
    path: String,
    value: &'v Value,
    /// The part's other keys.
    beside: &'v Object,
    /// The known keys that it nearly is.
    near: Vec<&'static str>,
    is_told: bool,
}

impl Unknown<'_> {
    fn told(self) -> Option<String> {
        let meant = self.near.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(" or ");
        match self.near.is_empty() {
            false => Some(format!("'{}' is no key of the format: did you mean {meant}?", self.path)),
            true => self.is_told.then(|| format!("'{}' is no key of the format", self.path)),
        }
    }

    /// Returns the key that this one asks for in vain, where no phase would wait for what it asks.
    fn gating(&self) -> Option<&'static str> {
        let asks = !matches!(self.value, Value::Null | Value::Bool(false));
        let is_gating = |key: &&&str| GATING.contains(&format!("{}.{key}", self.part).as_str());
        let missing = |key: &&&str| !self.beside.contains_key(**key);
        self.near.iter().filter(|_| asks).filter(is_gating).find(missing).copied()
    }
}

/// Finds the keys that are not of the format, in the order of [`PARTS`].
fn unknown(raw: &Value) -> Vec<Unknown<'_>> {
    let mut all = Vec::new();
    for (part, is_told) in PARTS {
        let within = if part.is_empty() { String::new() } else { format!("{part}.") };
        let rows = KEYS.iter().map(|(row, _)| *row).chain(MORE);
        let known: Vec<&'static str> = rows
            .filter_map(|row| row.strip_prefix(&*within))
            .map(|row| row.split('.').next().unwrap_or(row))
            .collect();
        let segments: Vec<&str> = part.split('.').filter(|segment| !segment.is_empty()).collect();
        let mut found = Vec::new();
        find(raw, &segments, String::new(), &mut found);
        for (path, value) in found {
            let Some(beside) = value.as_object() else { continue };
            for (key, value) in beside.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
                let mut near = nearest(key, known.iter().copied());
                near.extend(of_gates(part, key));
                near.dedup();
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                all.push(Unknown { part, path, value, beside, near, is_told });
            }
        }
    }
    all
}

/// Returns the gating key that a key of a route or a gate means by one of its words, however else it is spelt.
fn of_gates(part: &str, key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    let words: &[(&str, &str)] = match part {
        "routing.*" => &[("gate", "exit_gate")],
        "gates.*" => &[
            ("human", "requires_human_approval"),
            ("approv", "requires_human_approval"),
            ("verif", "requires_verification_pass"),
            ("file", "requires_files"),
        ],
        _ => &[],
    };
    words.iter().find(|(word, _)| key.contains(word)).map(|(_, meant)| *meant)
}

/// Refuses a misspelt key that asks for a gate, or for what a gate is to ask: ignoring it would let the phase end
/// without a person.
pub(super) fn misspelt(raw: &Value, found: &mut Vec<Problem>) {
    for unknown in unknown(raw) {
        if let Some(meant) = unknown.gating() {
            found.push(Problem::invalid(&unknown.path, format!("be '{meant}': it is no key of the format")));
        }
    }
}

/// Finds the values at a pattern, with their paths.
fn find<'v>(value: &'v Value, segments: &[&str], path: String, found: &mut Vec<(String, &'v Value)>) {
    let Some((first, rest)) = segments.split_first() else { return found.push((path, value)) };
    for (name, value) in value.as_object().into_iter().flatten() {
        if *first == "*" || first == name {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            find(value, rest, path, found);
        }
    }
}

/// True for a value that asks for something, unless it asks for what holds anyway.
fn says(pattern: &str, path: &str, value: &Value) -> bool {
    let asks = match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        // Keys with rows of their own are judged by those rows: a part asks for something by its other keys.
        Value::Object(all) => {
            let is_off = all.get("enabled") == Some(&Value::Bool(false));
            let below = |key: &String| KEYS.iter().any(|(row, _)| *row == format!("{path}.{key}"));
            !is_off && all.keys().any(|key| !below(key))
        }
    };
    let same = match pattern {
        "runtimes.*.cwd" => value == ".",
        "rules.max_deadlock_cycles" => *value == json!(2),
        "files" => {
            let fixed = super::load::files();
            value.as_object().is_some_and(|all| all.iter().all(|(key, value)| fixed.get(key) == Some(value)))
        }
        _ => false,
    };
    asks && !same
}
