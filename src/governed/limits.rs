//! How long turns, phases and runs may take: `timeouts` and `routing.<phase>.timeout_*` of the configuration.
//!
//! A pure function of the configuration, the state and the moment. Who asks does what the limit says: `escalate`
//! blocks the run on `timeout:<scope>`, `warn` warns. A person who lets the run go on gives it that time once more.
//! Implements G16.

use super::json::{self, Object};
use super::state::{State, Turn};
use super::{Config, time};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Since when a person let a limit begin again, by its scope.
pub(super) const EXTENDED: &str = "timeouts_extended_at";
/// How what a run waits for begins, where that is a limit.
pub(super) const BLOCKED: &str = "timeout:";

/// A limit that was passed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Passed {
    /// `turn`, `phase` or `run`.
    pub scope: &'static str,
    pub minutes: f64,
    /// It is a warning only.
    pub warns: bool,
}

impl Passed {
    pub(super) fn told(&self) -> String {
        format!("the {} has taken longer than {} minutes", self.scope, self.minutes)
    }
}

/// The limits that are passed now, the turn's first.
pub(super) fn passed(config: &Config, state: &State, turn: Option<&Turn>, now: SystemTime) -> Vec<Passed> {
    let none = Object::new();
    let all = config.part("timeouts").unwrap_or(&none);
    let route = state.phase().and_then(|phase| config.route(phase)).unwrap_or(&none);
    let warns = |object: &Object, key: &str| json::text(object, key).map(|action| action == "warn");
    let by_all = warns(all, "action").unwrap_or(false);
    let of = |object: &Object, key: &str| object.get(key).and_then(Value::as_f64);
    let of_state = |key: &str| state.get(key).and_then(Value::as_str);
    let of_turn = |key: &str| turn.and_then(|turn| turn.get(key)).and_then(Value::as_str);
    let phase = of(route, "timeout_minutes");
    let limits = [
        ("turn", of(all, "per_turn_minutes"), of_turn("started_at").or(of_turn("assigned_at")), by_all),
        (
            "phase",
            phase.or(of(all, "per_phase_minutes")),
            of_state("phase_entered_at"),
            warns(route, "timeout_action").filter(|_| phase.is_some()).unwrap_or(by_all),
        ),
        ("run", of(all, "per_run_minutes"), of_state("created_at"), by_all),
    ];
    let extended = json::object(state.object(), EXTENDED);
    let is_passed = |scope: &str, minutes: f64, since: &str| {
        let again = extended.and_then(|extended| json::text(extended, scope)).and_then(time::parse);
        let since = time::parse(since).max(again);
        let limit = Duration::try_from_secs_f64(minutes * 60.0).ok();
        since
            .zip(limit)
            .is_some_and(|(since, limit)| now.duration_since(since).is_ok_and(|took| took > limit))
    };
    let passed = limits.into_iter().filter_map(|(scope, minutes, since, warns)| {
        let (minutes, since) = (minutes?, since?);
        is_passed(scope, minutes, since).then_some(Passed { scope, minutes, warns })
    });
    passed.collect()
}
