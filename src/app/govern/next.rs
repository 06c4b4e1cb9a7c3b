//! What comes next in a governed run, as the state that its branch is given.
//!
//! `turn/<role>` is answered by that role's command. `waiting` (a worker that is not ours to start has the
//! turn), `gate` (a person's approval is pending), `blocked` and `done` have no command. Implements G7.

use super::Done;
use crate::governed::{Config, RunStatus, State, Turn, TurnStatus, get_active_turns};
use crate::protocol::declaration::{Declaration, Take};
use crate::protocol::message::Trailer;
use crate::protocol::name::{BadName, StateName};

/// How the states that a role's command answers begin.
pub(crate) const TURN: &str = "turn/";

/// The trailer that names the run, on each commit that a governed run's branch is given.
pub(crate) const GOVERN_RUN: &str = "govern-run";

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A turn of this role.
    Turn(String),
    /// The result of this role's turn, whose worker is not ours to start.
    Waiting(String),
    /// A person's approval.
    Gate,
    /// A person's act.
    Blocked,
    /// Nothing.
    Done,
}

impl Next {
    /// Returns what this run waits for.
    pub fn of(state: &State, config: &Config) -> Self {
        Self::in_state(state, config, true)
    }

    /// Returns what this run waits for where no command is to be asked: in a plain folder there is none, and
    /// a command that has declared that the turn waits has answered already.
    pub fn without_command(state: &State, config: &Config) -> Self {
        Self::in_state(state, config, false)
    }

    fn in_state(state: &State, config: &Config, has_command: bool) -> Self {
        match state.status() {
            Some(RunStatus::Completed) => Self::Done,
            Some(RunStatus::Paused) => Self::Gate,
            Some(RunStatus::Active | RunStatus::Idle) => Self::of_active(state, config, has_command),
            Some(RunStatus::Blocked | RunStatus::Failed) | None => Self::Blocked,
        }
    }

    fn of_active(state: &State, config: &Config, has_command: bool) -> Self {
        let turns = get_active_turns(state);
        if let Some(turn) = turns.values().find(|turn| is_dispatchable(turn)) {
            let role = turn.role().to_owned();
            // The role's command says whether a worker does it: what stands behind its '--' is not known here.
            return if has_command || is_ours(config, &role) {
                Self::Turn(role)
            } else {
                Self::Waiting(role)
            };
        }
        if !turns.is_empty() {
            return Self::Blocked;
        }
        match role_after(state, config) {
            Some(role) => Self::Turn(role),
            None => Self::Blocked,
        }
    }

    /// Returns the name of the state.
    pub fn state(&self) -> Result<StateName, BadName> {
        match self {
            Self::Turn(role) => StateName::new(format!("{TURN}{role}")),
            Self::Waiting(_) => StateName::new("waiting"),
            Self::Gate => StateName::new("gate"),
            Self::Blocked => StateName::new("blocked"),
            Self::Done => StateName::new("done"),
        }
    }

    /// Makes the declaration of the commit that says so: its subject is what happened, its trailers are the
    /// run's place.
    pub fn declaration(&self, done: &Done, take: Take) -> Result<Declaration, BadName> {
        let state = &done.state;
        let mut trailers = Vec::new();
        let mut say = |key: &str, value: Option<&str>| {
            let line: String = value.unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
            if !line.trim().is_empty() {
                trailers.push(Trailer::new(key, line.trim()));
            }
        };
        say(GOVERN_RUN, state.run_id());
        say("govern-phase", state.phase());
        say("govern-status", state.status().map(RunStatus::name));
        let is_left = *self == Self::Blocked && state.is_left_to_human();
        say("govern-waits-for", state.blocked_on().or(is_left.then_some("human")));
        let subject: String =
            done.happened.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect();
        let body = done.body.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        Ok(Declaration {
            state: self.state()?,
            subject,
            body,
            keep_trailers: false,
            trailers,
            take,
            not_before: None,
            usage: None,
        })
    }
}

/// True for a turn that a worker may be given.
pub(crate) fn is_dispatchable(turn: &Turn) -> bool {
    match turn.status() {
        Some(
            TurnStatus::Assigned
            | TurnStatus::Dispatched
            | TurnStatus::Starting
            | TurnStatus::Running
            | TurnStatus::Retrying,
        ) => true,
        Some(
            TurnStatus::Failed
            | TurnStatus::FailedAcceptance
            | TurnStatus::Conflicted
            | TurnStatus::FailedStart
            | TurnStatus::Stalled,
        )
        | None => false,
    }
}

/// True for a role whose worker is ours to start.
fn is_ours(config: &Config, role: &str) -> bool {
    config.runtime_type_of(role) == "local_cli"
}

/// Returns the role whose turn it is: the recommended one, else the one that enters the phase. `None` where a
/// person decides.
pub(crate) fn role_after(state: &State, config: &Config) -> Option<String> {
    if state.is_left_to_human() {
        return None;
    }
    let known = |role: &&str| config.roles().any(|known| known == *role);
    let recommended = state.next_recommended_role();
    if let Some(role) = recommended {
        return known(&role).then(|| role.to_owned());
    }
    config.entry_role(state.phase().unwrap_or_default()).map(str::to_owned)
}
