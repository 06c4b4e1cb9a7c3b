//! Checks the `hooks` part of a configuration.

use super::super::json::{self, Object};
use super::HookPhase;
use serde_json::Value;
use std::path::Path;

/// The most hooks of one phase.
const HOOKS_MAX: usize = 8;

/// Reports what is wrong with the `hooks` part: its place, and what it must be. With a root, programs that
/// are named by a path must exist.
pub(crate) fn check(hooks: Option<&Value>, root: Option<&Path>, tell: &mut dyn FnMut(String, String)) {
    let hooks = match hooks {
        None | Some(Value::Null) => return,
        Some(Value::Object(hooks)) => hooks,
        Some(_) => return tell("hooks".to_owned(), "be an object".to_owned()),
    };
    for (name, of_phase) in hooks {
        let place = format!("hooks.{name}");
        let Some(phase) = HookPhase::named(name) else {
            tell(place, "be one of the eight phases".to_owned());
            continue;
        };
        let Some(all) = of_phase.as_array().filter(|all| all.len() <= HOOKS_MAX) else {
            tell(place, format!("be a list of at most {HOOKS_MAX}"));
            continue;
        };
        let mut names: Vec<&str> = Vec::new();
        for (at, hook) in all.iter().enumerate() {
            let place = format!("{place}[{at}]");
            let mut wrong = |key: &str, must: &str| tell(format!("{place}.{key}"), must.to_owned());
            let Some(hook) = hook.as_object() else {
                wrong("name", "be set");
                continue;
            };
            let own = json::text(hook, "name").unwrap_or_default();
            if !json::is_name(own) || names.contains(&own) {
                wrong("name", "be a name that no other hook of the phase has");
            }
            names.push(own);
            self::hook(hook, phase, root, &mut wrong);
        }
    }
}

fn hook(hook: &Object, phase: HookPhase, root: Option<&Path>, wrong: &mut dyn FnMut(&str, &str)) {
    let can_block = !matches!(phase, HookPhase::AfterAcceptance | HookPhase::OnEscalation);
    match json::text(hook, "mode") {
        Some("advisory") => {}
        Some("blocking") if can_block => {}
        Some("blocking") => wrong("mode", "be advisory: nothing can be blocked any more"),
        _ => wrong("mode", "be blocking or advisory"),
    }
    if !hook.get("timeout_ms").and_then(json::whole).is_some_and(|ms| (100..=30_000).contains(&ms)) {
        wrong("timeout_ms", "be a whole number from 100 to 30000");
    }
    let is_text_map = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    for key in ["env", "headers"] {
        if hook.get(key).is_some_and(|map| !is_text_map(map)) {
            wrong(key, "hold strings");
        }
    }
    match json::text(hook, "type") {
        Some("process") => {
            let command = json::texts(hook, "command");
            let is_list = !command.is_empty() && command.len() == json::list(hook, "command").len();
            if !is_list || command[0].is_empty() {
                return wrong("command", "be a list of strings that is not empty");
            }
            // A bare name is looked for on PATH when the hook runs, and that PATH is not known yet.
            let is_there =
                root.is_none_or(|root| !command[0].contains('/') || root.join(command[0]).exists());
            if !is_there {
                wrong("command", "name a program that is there");
            }
        }
        Some("http") => {
            let url = json::text(hook, "url").unwrap_or_default();
            if !url.starts_with("http://") && !url.starts_with("https://") {
                wrong("url", "be an http or https address");
            }
            if json::text(hook, "method") != Some("POST") {
                wrong("method", "be POST");
            }
        }
        _ => wrong("type", "be process or http"),
    }
}
