//! How long turns, phases and runs may take: `timeouts` and `routing.<phase>.timeout_*` of the configuration.
//!
//! The limits are a pure function of the configuration, the state and the moment. The caller does what a
//! passed limit says: `escalate` blocks the run on `timeout:<scope>`, `warn` warns. A person who lets the run
//! go on gives it that time once more. [`time_left`] is for the caller that runs a turn's worker, and
//! [`out_of_time`](super::out_of_time) for the same caller once the worker was ended at a limit. Implements
//! G16.

use super::json;
use super::root::Root;
use super::state::{State, Turn};
use super::{Config, time};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The state's key for the moments at which a person let limits begin again, by their scopes.
pub(super) const EXTENDED: &str = "timeouts_extended_at";
/// How `blocked_on` begins where the run is blocked because of a limit.
pub(super) const BLOCKED: &str = "timeout:";

/// A limit that was passed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Passed {
    /// `turn`, `phase` or `run`.
    pub scope: &'static str,
    pub minutes: f64,
    /// True where the limit only warns.
    pub warns: bool,
}

impl Passed {
    pub(super) fn told(&self) -> String {
        format!("the {} has taken longer than {} minutes", self.scope, self.minutes)
    }
}

/// How long the worker of a turn may still take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeLeft {
    /// The time until the first limit that ends the worker; zero where that limit is passed.
    pub left: Duration,
    /// The limit that ends the worker.
    pub(super) limit: Passed,
}

/// Returns the time that a turn has left, until the first limit of its own, its phase's or its run's that
/// does more than warn; `None` without such a limit.
pub(crate) fn time_left(root: &Root, config: &Config, state: &State, turn: &Turn) -> Option<TimeLeft> {
    let all = limits(config, state, Some(turn)).into_iter().filter(|(limit, _)| !limit.warns);
    let (limit, until) = all.min_by_key(|(_, until)| *until)?;
    let left = until.duration_since(root.moment()).unwrap_or_default();
    Some(TimeLeft { left, limit })
}

/// Returns the limits that are passed now, the turn's first.
pub(super) fn passed(config: &Config, state: &State, turn: Option<&Turn>, now: SystemTime) -> Vec<Passed> {
    let is_passed = |until: &SystemTime| now > *until;
    limits(config, state, turn)
        .into_iter()
        .filter_map(|(limit, until)| is_passed(&until).then_some(limit))
        .collect()
}

/// Returns every limit that applies, with the moment at which it is passed; the turn's first.
fn limits(config: &Config, state: &State, turn: Option<&Turn>) -> Vec<(Passed, SystemTime)> {
    let all = &config.model().timeouts;
    let route = state.phase().and_then(|phase| config.route(phase));
    let warns = |action: &Option<String>| action.as_ref().map(|action| action == "warn");
    let by_all = warns(&all.action).unwrap_or(false);
    let of_state = |key: &str| state.get(key).and_then(Value::as_str);
    let of_turn = |key: &str| turn.and_then(|turn| turn.get(key)).and_then(Value::as_str);
    let phase = route.and_then(|route| route.timeout_minutes);
    let limits = [
        ("turn", all.per_turn_minutes, turn.and_then(Turn::started_at).or(of_turn("assigned_at")), by_all),
        (
            "phase",
            phase.or(all.per_phase_minutes),
            of_state("phase_entered_at"),
            route
                .and_then(|route| warns(&route.timeout_action))
                .filter(|_| phase.is_some())
                .unwrap_or(by_all),
        ),
        ("run", all.per_run_minutes, of_state("created_at"), by_all),
    ];
    let extended = json::object(state.object(), EXTENDED);
    let until = |scope: &str, minutes: f64, since: &str| {
        let again = extended.and_then(|extended| json::text(extended, scope)).and_then(time::parse);
        let limit = Duration::try_from_secs_f64(minutes * 60.0).ok()?;
        time::parse(since).max(again)?.checked_add(limit)
    };
    let found = limits.into_iter().filter_map(|(scope, minutes, since, warns)| {
        let (minutes, since) = (minutes?, since?);
        Some((Passed { scope, minutes, warns }, until(scope, minutes, since)?))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left(timeouts: Value, route: Value, extended: Value) -> Option<(u64, &'static str)> {
        let config = json!({ "timeouts": timeouts, "routing": { "plan": route } });
        let state = json!({
            "phase": "plan", "created_at": "2026-01-01T00:00:00.000Z",
            "phase_entered_at": "2026-01-01T01:00:00.000Z", "timeouts_extended_at": extended,
            "active_turns": { "turn_1": { "turn_id": "turn_1", "started_at": "2026-01-01T02:00:00.000Z" } },
        });
        let (config, state) = (Config::from_value(config)?, State::from_value(state)?);
        let now = time::parse("2026-01-01T02:05:00.000Z")?;
        let root = Root::new("/nowhere").with_clock(move || now);
        let left = time_left(&root, &config, &state, &state.turn("turn_1")?)?;
        Some((left.left.as_secs() / 60, left.limit.scope))
    }

    /// G16: the first limit that does more than warn ends a worker, and a person gives the turn its time
    /// again.
    #[test]
    fn a_worker_has_until_the_first_limit_that_ends_it() {
        let none = || json!({});
        assert_eq!(left(none(), none(), none()), None);
        let turn = json!({ "per_turn_minutes": 10 });
        assert_eq!(left(turn.clone(), none(), none()), Some((5, "turn")));
        assert_eq!(left(turn.clone(), json!({ "timeout_minutes": 67 }), none()), Some((2, "phase")));
        let all = json!({ "per_turn_minutes": 10, "per_phase_minutes": 69, "per_run_minutes": 126 });
        assert_eq!(left(all, none(), none()), Some((1, "run")));
        let warned = json!({ "timeout_minutes": 61, "timeout_action": "warn" });
        assert_eq!(left(turn.clone(), warned, none()), Some((5, "turn")));
        assert_eq!(left(json!({ "per_turn_minutes": 10, "action": "warn" }), none(), none()), None);
        assert_eq!(left(json!({ "per_turn_minutes": 4 }), none(), none()), Some((0, "turn")));
        let again = json!({ "turn": "2026-01-01T02:04:00.000Z" });
        assert_eq!(left(turn, none(), again), Some((9, "turn")));
    }
}
