//! `govern status`: where a run is, and what it waits for. Reads one commit, and writes nothing.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::{Global, Session};
use super::args::{Look, Where};
use super::place::{PROJECT, SCHEMA};
use crate::app::config::Flags;
use crate::app::govern::next::Next;
use crate::governed::{
    Config, GovernedError, Root, RunStatus, State, context_of, get_active_turns, load_context, load_state,
};
use crate::protocol::id::ObjectId;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::Tip;
use crate::store::{RefName, Store};
use crate::supervisor::interrupt::Interrupt;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `git aynig govern status`.
pub fn run(global: &Global, args: &Look) -> Result<i32, Failure> {
    look(global, args).map_err(|failed| args.place.there(failed))
}

fn look(global: &Global, args: &Look) -> Result<i32, Failure> {
    if let Some(folder) = &args.place.root {
        let context = load_context(&Root::new(folder))?;
        match load_state(&context.root, &context.config) {
            Ok(state) => show(&state, &context.config, None, &args.place, None),
            Err(GovernedError::NoState { .. }) => nothing(&args.place),
            Err(error) => return Err(error.into()),
        }
        return Ok(0);
    }
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: args.place.remote.clone(), ..Flags::default() })?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    let branch = session.branch_or_current(args.place.branch.as_deref(), "govern status -b <branch>")?;
    let tip = runner.fresh_tip(&branch)?.ok_or_else(|| {
        Failure::fatal(format!("branch '{}' does not exist", escape(branch.short()))).hint("git aynig status")
    })?;
    let aside = tempfile(&session)?;
    let shown = escape(branch.short());
    let found = copy(&*runner.store, tip.commit.tree, &aside).and_then(|config| {
        let config = config.ok_or_else(|| {
            Failure::fatal(format!("branch '{shown}' has no {PROJECT}: it is no governed project"))
                .hint("git aynig install <repository of a pack> # or write agentxchain.json")
        })?;
        let from = format!("{shown}:{PROJECT}");
        let context = context_of(&Root::new(&aside), &config, Path::new(&from))?;
        let state = load_state(&context.root, &context.config).map_err(|error| match error {
            GovernedError::NoState { .. } => {
                Failure::fatal(format!("branch '{shown}' holds no run")).hint("git aynig govern start")
            }
            error => error.into(),
        })?;
        Ok((state, context.config))
    });
    let _ = std::fs::remove_dir_all(&aside);
    let (state, config) = found?;
    // Named, also where it is the current one: the hint may be pasted elsewhere.
    let place = Where { branch: Some(OsStr::from_bytes(branch.short()).to_owned()), ..args.place.clone() };
    let held = held(&tip, &branch, &place.flags());
    show(&state, &config, Some(&branch), &place, held);
    Ok(0)
}

/// What goes on from here where the branch's head says more than the run does: a lease, or the end of one that
/// changed nothing of the run.
fn held(tip: &Tip, branch: &RefName, place: &str) -> Option<String> {
    let Some(event) = &tip.event else {
        return Some(format!("nobody's: the branch has no state; git aynig govern start{place}"));
    };
    if event.is_working() {
        return Some("a turn is being taken".to_owned());
    }
    let is_stalled = event.state_name().is_some_and(|state| state.as_str() == "stalled");
    is_stalled.then(|| format!("a person: the turn stalled; git aynig retry {}", branch_word(branch.short())))
}

/// A folder without a run.
fn nothing(place: &Where) {
    if place.json {
        let object = json!({ "schema": SCHEMA, "branch": null, "state": "", "run": null });
        return output::line(&output::json(&object));
    }
    output::line("run       none yet");
    output::line(&escape(format!("next      git aynig govern start{}", place.flags()).as_bytes()));
}

fn tempfile(session: &Session) -> Result<std::path::PathBuf, Failure> {
    let name = format!("aynig-govern-{}", uuid::Uuid::new_v4());
    // Whoever may not write here may still look.
    let folders = [std::env::temp_dir(), session.repo.aynig_dir().join("runs")];
    let mut last = None;
    for folder in folders {
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(folder.join(&name)) {
            Ok(()) => return Ok(folder.join(&name)),
            Err(error) => last = Some(error),
        }
    }
    let why = last.map(|error| error.to_string()).unwrap_or_default();
    Err(Failure::fatal(format!("cannot make a temporary folder: {why}")))
}

/// The two files that say where a run is: the configuration's bytes, and a copy of the state.
fn copy(store: &dyn Store, tree: ObjectId, to: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let mut config = None;
    let failed = |e: std::io::Error| Failure::fatal(format!("cannot write '{}': {e}", to.display()));
    for entry in store.read_tree(tree)? {
        if entry.name == PROJECT.as_bytes() {
            config = Some(store.read_blob(entry.id)?);
        }
        if entry.name == b".agentxchain" {
            let state = store.read_tree(entry.id)?.into_iter().find(|e| e.name == b"state.json");
            let Some(state) = state else { continue };
            std::fs::create_dir(to.join(".agentxchain")).map_err(failed)?;
            let bytes = store.read_blob(state.id)?;
            std::fs::write(to.join(".agentxchain/state.json"), bytes).map_err(failed)?;
        }
    }
    Ok(config)
}

fn show(state: &State, config: &Config, branch: Option<&RefName>, place: &Where, held: Option<String>) {
    let next = Next::of(state, config);
    let name = next.state().map(|s| s.as_str().to_owned()).unwrap_or_default();
    if place.json {
        let object = json!({
            "schema": SCHEMA,
            "branch": branch.map(|b| String::from_utf8_lossy(b.short()).into_owned()),
            "state": name,
            "run": state.to_value(),
        });
        output::line(&output::json(&object));
        return;
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
        let status = turn.get("status").and_then(Value::as_str).unwrap_or("unknown");
        say("turn", &format!("{} of {}: {status}, attempt {}", turn.id(), turn.role(), turn.attempt()));
    }
    for (gate, status) in state.get("phase_gate_status").and_then(Value::as_object).into_iter().flatten() {
        say("gate", &format!("{gate}: {}", status.as_str().unwrap_or("unknown")));
    }
    let detail = state.blocked_reason().and_then(|reason| reason.get("recovery")?.get("detail")?.as_str());
    say("blocked", state.blocked_on().unwrap_or_default());
    say("detail", detail.unwrap_or_default());
    say("next", &held.unwrap_or_else(|| hint(&next, state, &place.flags())));
}

/// What goes on from here, as a command where it is a person's.
fn hint(next: &Next, state: &State, place: &str) -> String {
    match next {
        Next::Turn(role) => format!("a turn of {role}"),
        Next::Waiting(role) => format!("{role}'s worker, then: git aynig govern accept{place} -F <result>"),
        // A run that is blocked at a gate goes on through the gate.
        Next::Gate | Next::Blocked if state.pending_phase_transition().is_some() => {
            format!("a person: git aynig govern approve-phase{place}")
        }
        // The run is active, and its turn can't be given to a worker: done by hand, or again.
        Next::Blocked if state.status() == Some(RunStatus::Active) => {
            match get_active_turns(state).values().next() {
                Some(turn) => {
                    format!(
                        "a person: git aynig govern reject{place} -m <reason> {}",
                        shell_word(turn.id().as_bytes())
                    )
                }
                None => format!("a person: git aynig govern assign{place} <role>"),
            }
        }
        Next::Blocked if state.pending_run_completion().is_none() => {
            format!("a person; then: git aynig govern unblock{place}")
        }
        Next::Gate | Next::Blocked => format!("a person: git aynig govern approve-completion{place}"),
        Next::Done => "nothing: the run is over".to_owned(),
    }
}
