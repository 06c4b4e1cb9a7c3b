//! Hands an envelope to a hook and takes its answer: by a child process's stdin and stdout, or by a POST.
//!
//! A process gets no shell, a group of its own, the root as its folder, and SIGKILL at its deadline, which
//! reaches its children too. An answer is one JSON object with a verdict.

use super::super::config::model::{Hook, Post};
use super::super::http;
use super::super::json;
use super::super::root::Root;
use super::HookPhase;
use super::audit::{Annotation, Verdict};
use crate::supervisor::bounded::{Bounded, Input, Output, Verdict as End};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The most that is read of an answer, in bytes.
const ANSWER_MAX: usize = 1 << 20;
/// The most that is kept of a hook's stderr, in bytes.
const STDERR_MAX: usize = 4096;
const ANNOTATIONS_MAX: usize = 16;
const ANNOTATION_MAX: usize = 1000;

/// How a hook ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Said { verdict: Verdict, message: Option<String>, annotations: Vec<Annotation> },
    Failed(String),
    TimedOut,
    Nonsense(String),
}

/// What is known of one execution of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delivered {
    pub outcome: Outcome,
    pub exit_code: Option<i64>,
    pub stderr: String,
    pub duration_ms: u64,
}

/// Runs one hook to its end, or to its deadline.
pub(super) fn deliver(
    root: &Root,
    hook: &Hook,
    phase: HookPhase,
    run_id: &Option<String>,
    envelope: &str,
) -> Delivered {
    let timeout = hook.post.timeout();
    let started = Instant::now();
    let mut delivered = if hook.is_http() {
        post(root, &hook.post, envelope, timeout)
    } else {
        process(root, hook, phase, run_id, envelope, timeout)
    };
    delivered.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    delivered
}

fn ended(outcome: Outcome, exit_code: Option<i64>, stderr: String) -> Delivered {
    Delivered { outcome, exit_code, stderr, duration_ms: 0 }
}

fn process(
    root: &Root,
    hook: &Hook,
    phase: HookPhase,
    run_id: &Option<String>,
    envelope: &str,
    timeout: Duration,
) -> Delivered {
    let Some((program, arguments)) = hook.command.split_first() else {
        return ended(Outcome::Failed("the hook has no command".to_owned()), None, String::new());
    };
    let folder = std::path::absolute(root.folder()).unwrap_or_else(|_| root.folder().to_owned());
    let is_below = program.contains('/') && !Path::new(program).is_absolute();
    let mut command = if is_below { Command::new(folder.join(program)) } else { Command::new(program) };
    if let Some(environment) = root.environment() {
        command.env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
    }
    command.args(arguments).current_dir(&folder);
    command.env("AGENTXCHAIN_HOOK_PHASE", phase.name());
    command.env("AGENTXCHAIN_HOOK_NAME", hook.name.as_deref().unwrap_or_default());
    command.env("AGENTXCHAIN_RUN_ID", run_id.as_deref().unwrap_or_default());
    command.env("AGENTXCHAIN_PROJECT_ROOT", &folder);
    command.envs(&hook.post.env);
    let mut child = Bounded::new(command);
    child.input = Input::Bytes(envelope.as_bytes().to_vec());
    child.stdout = Output::Capture(ANSWER_MAX);
    child.stderr = Output::Capture(STDERR_MAX);
    child.own_group = true;
    child.term_grace = Duration::ZERO;
    child.deadline = Some(Instant::now() + timeout);
    let finished = match child.run() {
        Ok(finished) => finished,
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            let message = format!("{error}{}", source.unwrap_or_default());
            return ended(Outcome::Failed(message), None, String::new());
        }
    };
    let stderr = cut(&String::from_utf8_lossy(&finished.stderr.bytes), STDERR_MAX);
    let code = finished.status.code().map(i64::from);
    let outcome = if finished.verdict != End::Ended {
        Outcome::TimedOut
    } else if !finished.status.success() {
        Outcome::Failed(match code {
            Some(code) => format!("the hook exited with {code}"),
            None => format!("the hook was ended by a signal ({})", finished.status),
        })
    } else if finished.stdout.truncated {
        Outcome::Failed("the hook said more than 1 MiB".to_owned())
    } else {
        read(&finished.stdout.bytes)
    };
    ended(outcome, code, stderr)
}

fn post(root: &Root, hook: &Post, envelope: &str, timeout: Duration) -> Delivered {
    let url = hook.url.as_deref().unwrap_or_default();
    let headers = match headers(root, hook) {
        Ok(headers) => headers,
        Err(name) => {
            let message = format!("the environment has no '{name}', which a header needs");
            return ended(Outcome::Failed(message), Some(1), String::new());
        }
    };
    match http::post(root, url, &headers, envelope.trim_end().as_bytes(), timeout, ANSWER_MAX) {
        Ok(answer) if (200..300).contains(&answer.status) => {
            ended(read(&answer.body), Some(0), String::new())
        }
        Ok(answer) => {
            let message = format!("'{url}' answered {}", answer.status);
            ended(Outcome::Failed(message), Some(1), String::new())
        }
        Err(http::Failure::TimedOut) => ended(Outcome::TimedOut, None, String::new()),
        Err(http::Failure::Failed(message)) => ended(Outcome::Failed(message), Some(1), String::new()),
    }
}

/// Returns the headers of a hook or a webhook, each `${NAME}` taken from its own `env`, else from the root's
/// environment.
///
/// # Errors
/// The name of a variable that neither of them has.
pub(crate) fn headers(root: &Root, of: &Post) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (name, value) in &of.headers {
        let (mut rest, mut whole) = (value.as_str(), String::new());
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, after)) = after.split_once('}') else { break };
            let outer = || root.variable(variable).map(|value| value.to_string_lossy().into_owned());
            let found = of.env.get(variable).cloned().or_else(outer);
            whole.push_str(before);
            whole.push_str(&found.ok_or_else(|| variable.to_owned())?);
            rest = after;
        }
        whole.push_str(rest);
        headers.push((name.clone(), whole));
    }
    Ok(headers)
}

/// Returns the first characters of a text, at most `most`.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn read(answer: &[u8]) -> Outcome {
    let nonsense = |why: &str| Outcome::Nonsense(format!("the hook's answer {why}"));
    let Ok(Value::Object(answer)) = serde_json::from_slice::<Value>(answer) else {
        return nonsense("is no JSON object");
    };
    let verdict = answer.get("verdict").filter(|verdict| verdict.is_string());
    let verdict = verdict.and_then(|verdict| Verdict::deserialize(verdict).ok());
    let Some(verdict) = verdict else {
        return nonsense("has no verdict: allow, warn or block");
    };
    let message = match answer.get("message") {
        None | Some(Value::Null) => None,
        Some(Value::String(message)) => Some(message.clone()),
        Some(_) => return nonsense("has a message that is no string"),
    };
    let annotations = json::list(&answer, "annotations").iter().filter_map(annotation);
    let annotations = annotations.take(ANNOTATIONS_MAX).collect();
    Outcome::Said { verdict, message, annotations }
}

fn annotation(value: &Value) -> Option<Annotation> {
    let value = value.as_object()?;
    let key = json::text(value, "key").filter(|key| json::is_name(key))?;
    let text = cut(json::text(value, "value")?, ANNOTATION_MAX);
    Some(Annotation { key: key.to_owned(), value: text })
}
