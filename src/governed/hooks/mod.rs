//! Hooks: programs of the project's own that may stop what is going on.
//!
//! There are eight phases; the hooks of a phase run one after the other, each with a deadline that counts for
//! its children too. A blocking hook that says no, fails, hangs or gives an invalid answer stops the phase;
//! of an advisory one this is only noted. Protected files that a hook changes are put back, and the phase is
//! aborted ([`protect`]). Each execution is one line of the audit, with one of twelve actions ([`audit`]).
//! The lock is held meanwhile, so that no other process's change is taken for tampering. Implements G5.

mod audit;
mod check;
mod deliver;
mod protect;

pub(crate) use check::check;
pub(crate) use deliver::headers;

use super::config::model::Hook;
use super::json;
use super::root::Root;
use super::{GovernedError, disk, lenient, lock};
use audit::{Action, Annotation, Entry};
use deliver::{Delivered, Outcome};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// When hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookPhase {
    /// Before a turn is assigned.
    BeforeAssignment,
    /// After a bundle was written, before a worker has it; run by the caller that dispatches, and by no
    /// operation.
    AfterDispatch,
    /// Before a staged result is validated.
    BeforeValidation,
    /// After a staged result was validated, whether it is valid or not.
    AfterValidation,
    /// Before a valid result is accepted.
    BeforeAcceptance,
    /// After a result was accepted; these hooks can't block.
    AfterAcceptance,
    /// Before a person's approval takes effect.
    BeforeGate,
    /// After the run was blocked or escalated; these hooks can't block.
    OnEscalation,
}

impl HookPhase {
    /// All phases.
    pub const ALL: [Self; 8] = [
        Self::BeforeAssignment,
        Self::AfterDispatch,
        Self::BeforeValidation,
        Self::AfterValidation,
        Self::BeforeAcceptance,
        Self::AfterAcceptance,
        Self::BeforeGate,
        Self::OnEscalation,
    ];

    /// Returns the phase's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeAssignment => "before_assignment",
            Self::AfterDispatch => "after_dispatch",
            Self::BeforeValidation => "before_validation",
            Self::AfterValidation => "after_validation",
            Self::BeforeAcceptance => "before_acceptance",
            Self::AfterAcceptance => "after_acceptance",
            Self::BeforeGate => "before_gate",
            Self::OnEscalation => "on_escalation",
        }
    }

    /// Returns the phase of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// What hooks are run for.
#[derive(Debug, Clone, Default)]
pub struct HookOptions {
    /// The id of the run, for the audit and the hooks.
    pub run_id: Option<String>,
    /// The id of the turn, for the audit.
    pub turn_id: Option<String>,
    /// The folder of the audit, below the root; `.agentxchain` by default.
    pub audit_dir: Option<PathBuf>,
    /// The files that no hook may change besides the state, the history and the ledger; below the root.
    pub protected_paths: Vec<PathBuf>,
}

/// The hook that stopped a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct HookStop {
    /// The hook's name.
    pub hook_name: String,
    /// The hook's message, or a description of what it did wrong.
    pub message: String,
    /// The original tool's code, where the hook changed protected files.
    pub tamper: Option<&'static str>,
}

/// What came of a phase's hooks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookReport {
    /// True where no hook stopped the phase.
    pub ok: bool,
    /// True where a blocking hook stopped the phase; false where a hook tampered.
    pub blocked: bool,
    /// The hook that stopped the phase.
    pub stop: Option<HookStop>,
    /// The audit's entries, as written.
    pub results: Vec<Value>,
}

/// Runs the hooks of a phase.
///
/// `hooks` is the `hooks` part of the configuration; a phase that is not in it has none. `payload` is handed
/// to each hook in its envelope.
///
/// # Errors
/// [`GovernedError::Locked`], and file operations that fail. What hooks do is no error, but a [`HookReport`].
pub fn run_hooks(
    root: &Root,
    hooks: Option<&Value>,
    phase: HookPhase,
    payload: &Value,
    options: &HookOptions,
) -> Result<HookReport, GovernedError> {
    if of_phase(hooks, phase).is_empty() {
        return Ok(HookReport { ok: true, ..HookReport::default() });
    }
    let _lock = lock::enter(root)?;
    run_locked(root, hooks, phase, payload, options)
}

fn of_phase(hooks: Option<&Value>, phase: HookPhase) -> Vec<Hook> {
    let all = hooks.and_then(|hooks| hooks.get(phase.name())?.as_array());
    all.into_iter().flatten().filter_map(lenient::read).collect()
}

/// True where a configuration has hooks for a phase.
pub(super) fn has_any(config: &super::Config, phase: HookPhase) -> bool {
    !of_phase(config.get("hooks"), phase).is_empty()
}

/// Runs the hooks of a phase for a caller that holds the lock.
pub(super) fn run_locked(
    root: &Root,
    hooks: Option<&Value>,
    phase: HookPhase,
    payload: &Value,
    options: &HookOptions,
) -> Result<HookReport, GovernedError> {
    let mut report = HookReport { ok: true, ..HookReport::default() };
    let mut run = Run { root, phase, payload, options };
    for hook in &of_phase(hooks, phase) {
        if report.blocked {
            report.results.push(run.skipped(hook)?);
            continue;
        }
        let (entry, stop) = run.one(hook)?;
        report.results.push(entry);
        if let Some(stop) = stop {
            report.ok = false;
            let tampered = stop.tamper.is_some();
            report.stop = Some(stop);
            if tampered {
                return Ok(report);
            }
            report.blocked = true;
        }
    }
    Ok(report)
}

/// The envelope that a hook is handed; the order of the fields is the order on the wire.
#[derive(Serialize)]
struct Envelope<'a> {
    hook_phase: &'static str,
    hook_name: &'a str,
    run_id: Option<&'a str>,
    project_root: &'a str,
    timestamp: &'a str,
    payload: &'a Value,
}

/// A line of `hook-annotations.jsonl`: a hook's notes on an accepted turn.
#[derive(Serialize)]
struct Annotated<'a> {
    timestamp: &'a str,
    turn_id: Option<&'a str>,
    hook_name: &'a str,
    annotations: &'a [Annotation],
}

struct Run<'a> {
    root: &'a Root,
    phase: HookPhase,
    payload: &'a Value,
    options: &'a HookOptions,
}

impl Run<'_> {
    fn skipped(&mut self, hook: &Hook) -> Result<Value, GovernedError> {
        let mut entry = self.entry(hook);
        entry.transport = None;
        entry.action = Action::Skipped;
        self.write(entry)
    }

    fn entry(&self, hook: &Hook) -> Entry {
        Entry {
            timestamp: self.root.now(),
            phase: self.phase.name(),
            hook: hook.name.clone().unwrap_or_default(),
            transport: Some(if hook.is_http() { "http" } else { "process" }),
            run_id: self.options.run_id.clone(),
            turn_id: self.options.turn_id.clone(),
            duration_ms: 0,
            verdict: None,
            message: None,
            annotations: Vec::new(),
            exit_code: None,
            timed_out: false,
            stderr_excerpt: String::new(),
            action: Action::Continued,
        }
    }

    fn one(&mut self, hook: &Hook) -> Result<(Value, Option<HookStop>), GovernedError> {
        let protected = protect::Snapshot::take(self.root, &self.options.protected_paths)?;
        let mut entry = self.entry(hook);
        let envelope = Envelope {
            hook_phase: self.phase.name(),
            hook_name: &entry.hook,
            run_id: entry.run_id.as_deref(),
            project_root: &self.root.folder().to_string_lossy(),
            timestamp: &entry.timestamp,
            payload: self.payload,
        };
        let envelope = json::line(&envelope);
        let delivered = deliver::deliver(self.root, hook, self.phase, &entry.run_id, &envelope);
        entry.take(&delivered);
        let hook_name = entry.hook.clone();
        if let Some(tampered) = protected.changed(self.root)? {
            protected.restore(self.root)?;
            entry.verdict = None;
            entry.action = Action::AbortedTamper;
            let message = format!("hook '{hook_name}' changed '{}', which was put back", tampered.file);
            entry.message = Some(message.clone());
            let stop = HookStop { hook_name, message, tamper: Some(tampered.code) };
            return Ok((self.write(entry)?, Some(stop)));
        }
        let is_blocking = hook.mode.as_deref() != Some("advisory");
        let stops = entry.judge(&delivered.outcome, is_blocking);
        let message = entry.message.clone().unwrap_or_else(|| "the hook blocked".to_owned());
        self.annotate(&entry)?;
        let entry = self.write(entry)?;
        Ok((entry, stops.then_some(HookStop { hook_name, message, tamper: None })))
    }

    fn folder(&self) -> PathBuf {
        self.root.join(self.options.audit_dir.clone().unwrap_or_else(|| PathBuf::from(".agentxchain")))
    }

    fn write(&self, entry: Entry) -> Result<Value, GovernedError> {
        self.append("hook-audit.jsonl", &entry)?;
        Ok(json::value(&entry))
    }

    fn append(&self, file: &str, line: &impl Serialize) -> Result<(), GovernedError> {
        let path = self.folder().join(file);
        let (_, torn) = disk::end(self.root, &path)?;
        let line = json::line(line);
        disk::append(self.root, &path, &if torn { format!("\n{line}") } else { line })
    }

    /// Keeps a hook's notes on an accepted turn, in a file beside the audit.
    fn annotate(&self, entry: &Entry) -> Result<(), GovernedError> {
        if self.phase != HookPhase::AfterAcceptance || entry.annotations.is_empty() {
            return Ok(());
        }
        let line = Annotated {
            timestamp: &entry.timestamp,
            turn_id: entry.turn_id.as_deref(),
            hook_name: &entry.hook,
            annotations: &entry.annotations,
        };
        self.append("hook-annotations.jsonl", &line)
    }
}
