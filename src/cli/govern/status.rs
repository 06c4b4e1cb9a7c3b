//! `govern status`: where a run is, and what it waits for. Reads one commit, and writes nothing.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::{Look, Where};
use super::place::SCHEMA;
use crate::app::govern::look::{self, Head, Seen};
use crate::app::govern::next::Next;
use crate::governed::{RunStatus, State, TurnStatus, get_active_turns};
use crate::protocol::text::{branch_word, escape, shell_word};
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Runs `git aynig govern status`.
pub(crate) fn run(global: &Global, args: &Look) -> Result<i32, Failure> {
    look(global, args).map_err(|failed| args.place.there(failed))
}

fn look(global: &Global, args: &Look) -> Result<i32, Failure> {
    let mut place = args.place.clone();
    let seen = match &place.root {
        Some(root) => look::folder(root)?,
        None => Some(place.run("govern status -b <branch>").look(&global.open()?)?),
    };
    let Some(seen) = seen else {
        nothing(&place);
        return Ok(0);
    };
    // The hints name the branch even where it is the current one: they may be pasted elsewhere.
    if let Some(branch) = &seen.branch {
        place.branch = Some(OsStr::from_bytes(branch.short()).to_owned());
    }
    show(&seen, &place);
    Ok(0)
}

/// Returns what comes next where the branch's head says more than the run does: it has no state, a lease, or
/// a turn that stalled. `None` where the run's own state decides.
fn held(seen: &Seen, place: &str) -> Option<String> {
    match (&seen.head, &seen.branch) {
        (Head::AsTheRun | Head::Waiting, _) | (_, None) => None,
        (Head::Stateless, _) => Some(format!("none: the branch has no state; git aynig govern start{place}")),
        (Head::Elsewhere(name), Some(_)) => {
            let next = seen.next().state().map(|state| state.as_str().to_owned()).unwrap_or_default();
            Some(format!(
                "a person: the head's state '{}' is not the run's; git aynig set-state {next}{place}",
                name.as_str()
            ))
        }
        (Head::Leased, _) => Some("a turn is being taken".to_owned()),
        // The turn of a run that is not active would stall again.
        (Head::Stalled, _) if seen.state.status() != Some(RunStatus::Active) => None,
        (Head::Stalled, Some(branch)) => {
            Some(format!("a person: the turn stalled; git aynig retry {}", branch_word(branch.short())))
        }
    }
}

/// Prints that a folder has no run yet, and the command that begins one.
fn nothing(place: &Where) {
    if place.json {
        let nothing = Run { schema: SCHEMA, branch: None, state: "", run: None };
        return output::line(&output::json(&nothing));
    }
    output::line("run       none yet");
    output::line(&escape(format!("next      git aynig govern start{}", place.flags()).as_bytes()));
}

/// The object that `--json` prints about a run.
#[derive(Serialize)]
struct Run<'a> {
    schema: &'static str,
    branch: Option<Cow<'a, str>>,
    state: &'a str,
    run: Option<&'a State>,
}

fn show(seen: &Seen, place: &Where) {
    let state = &seen.state;
    let next = seen.next();
    if place.json {
        let name = next.state().map(|s| s.as_str().to_owned()).unwrap_or_default();
        let branch = seen.branch.as_ref().map(|branch| String::from_utf8_lossy(branch.short()));
        let run = Run { schema: SCHEMA, branch, state: &name, run: Some(state) };
        return output::line(&output::json(&run));
    }
    let say = |what: &str, value: &str| {
        if !value.is_empty() {
            output::line(&format!("{what:<9} {}", escape(value.as_bytes())));
        }
    };
    say("run", state.run_id().unwrap_or("none yet"));
    say("status", state.status().map_or("unknown", |status| status.name()));
    say("phase", state.phase().unwrap_or_default());
    for turn in get_active_turns(state).into_values() {
        let status = turn.status_name().unwrap_or("unknown");
        say("turn", &format!("{} of {}: {status}, attempt {}", turn.id(), turn.role(), turn.attempt()));
    }
    for (gate, status) in state.gates() {
        say("gate", &format!("{gate}: {}", status.unwrap_or("unknown")));
    }
    state.gate_failure().iter().for_each(|why| say("why", why));
    say("blocked", state.blocked_on().unwrap_or_default());
    say("detail", state.blocked_detail().unwrap_or_default());
    let place = place.flags();
    say("next", &held(seen, &place).unwrap_or_else(|| hint(&next, state, &place)));
}

/// Returns what comes next, with the command to type where a person has to act.
pub(crate) fn hint(next: &Next, state: &State, place: &str) -> String {
    match next {
        // Another tool has left it so; it does not go on.
        _ if state.status() == Some(RunStatus::Failed) => {
            format!("a person: the run failed; git aynig govern start{place} # begins another")
        }
        Next::Turn(role) => format!("a turn of {role}"),
        Next::Waiting(role) => {
            let all = get_active_turns(state);
            let own = all.values().find(|turn| turn.role() == role).filter(|_| all.len() > 1);
            let turn = own.map(|turn| format!(" {}", shell_word(turn.id().as_bytes()))).unwrap_or_default();
            format!("{role}'s worker, then: git aynig govern accept{place} -F <result>{turn}")
        }
        // A run that is blocked at a gate goes on once the gate is approved.
        Next::Gate | Next::Blocked if state.pending_phase_transition().is_some() => {
            format!("a person: git aynig govern approve-phase{place}")
        }
        // The run is active, but its turn can't be given to a worker: a person has to have it done again, or
        // to assign one.
        Next::Blocked if state.status() == Some(RunStatus::Active) => {
            match get_active_turns(state).values().next() {
                Some(turn) => {
                    let id = shell_word(turn.id().as_bytes());
                    let merged = match turn.status() {
                        Some(TurnStatus::Conflicted) => {
                            format!(
                                "merge by hand, then: git aynig govern accept{place} --human-merge {id}; or: "
                            )
                        }
                        Some(_) | None => String::new(),
                    };
                    format!("a person: {merged}git aynig govern reject{place} -m <reason> {id}")
                }
                None => format!("a person: git aynig govern assign{place} <role>"),
            }
        }
        Next::Gate | Next::Blocked if state.pending_run_completion().is_none() => {
            format!("a person; then: git aynig govern unblock{place}")
        }
        Next::Gate | Next::Blocked => format!("a person: git aynig govern approve-completion{place}"),
        Next::Done => "nothing: the run is over".to_owned(),
    }
}
