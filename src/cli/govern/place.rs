//! Where a governed run is, and how a change to it is written.
//!
//! On a branch every change is one commit on its head by one compare-and-swap, made in a slot: two who act
//! on the same head cannot both succeed. In a plain folder the operation itself is the change. Which
//! configuration counts is a matter of trust, as with commands: that of the ref that commands are taken
//! from, for its hooks and workers are executed. Implements G6, G8, K33.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::{Global, Session};
use super::args::Where;
use crate::app::background;
use crate::app::config::Flags;
use crate::app::govern::next::Next;
use crate::app::govern::{Done, Facts};
use crate::governed::{Config, Context, GovernedError, Root, State, context_here, context_of, load_context};
use crate::protocol::id::ObjectId;
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Written;
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, Silent};
use crate::store::RefName;
use crate::store::repository::Repository;
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file that makes a folder a governed project.
pub const PROJECT: &str = "agentxchain.json";
/// The schema of what `--json` prints.
pub const SCHEMA: &str = "aynig.govern/1";

/// A governed project in a plain folder. In a repository its hooks and workers are executed only where that is
/// trusted, as commands are; inside a run it is.
pub fn folder(root: &Path) -> Result<Context, Failure> {
    // Only where there is none: a repository that can't be opened is not trusted.
    if !Repository::discover(root, None).is_err_and(|error| error.is_nowhere()) {
        let session = Session::open_at(root, None, std::sync::Arc::new(crate::app::Unheard))?;
        if session.inside().is_none() {
            session.require_trust(&session.settings(&Flags::default())?)?;
        }
    }
    Ok(load_context(&Root::new(root))?)
}

/// Acts on the run and says what came of it.
pub fn change(
    global: &Global,
    place: &Where,
    act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
) -> Result<i32, Failure> {
    change_or_begin(global, place, false, act)
}

/// The same; a local branch that is not there is made at HEAD where `may_create`, and what the configuration asks
/// for in vain is said.
pub fn change_or_begin(
    global: &Global,
    place: &Where,
    may_create: bool,
    act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
) -> Result<i32, Failure> {
    acted(global, place, may_create, act).map_err(|failed| place.there(failed))
}

impl Where {
    /// The flags that name this place, for a command to paste.
    pub fn flags(&self) -> String {
        let quoted = |flag: &str, value: &OsStr| format!(" {flag} {}", shell_word(value.as_bytes()));
        [
            self.branch.as_deref().map(|branch| quoted("-b", branch)),
            self.root.as_deref().map(|root| quoted("--root", root.as_os_str())),
            self.remote.as_deref().map(|remote| quoted("--remote", OsStr::new(remote))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The same failure, with hints that mean the same place when they are pasted.
    pub fn there(&self, mut failed: Failure) -> Failure {
        let flags = self.flags();
        const VERB: &str = "git aynig govern ";
        let is_open = |hint: &&mut String| !hint.contains(" -b ") && !hint.contains(" --root ");
        for hint in failed.hints.iter_mut().filter(is_open) {
            let mut parts = hint.split(VERB).map(str::to_owned);
            let mut mended = parts.next().unwrap_or_default();
            for part in parts {
                let verb = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
                mended += &format!("{VERB}{}{flags}{}", &part[..verb], &part[verb..]);
            }
            *hint = mended;
        }
        failed
    }
}

fn acted(
    global: &Global,
    place: &Where,
    may_create: bool,
    act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
) -> Result<i32, Failure> {
    if let Some(folder) = &place.root {
        let context = self::folder(folder)?;
        let done = Done::settled(act(&context.root, &context.config))?;
        let next = done.next(&context.config);
        if may_create {
            warn(global, &context.warnings);
        }
        show(global, place.json, &done, &next, None);
        return ended(done);
    }
    let mut session = global.open()?;
    // Whoever ends us ends hooks and workers.
    let interrupt = Interrupt::never()?;
    session.repo.ended_by(interrupt.force_stop());
    let flags = Flags { remote: place.remote.clone(), ..Flags::default() };
    let settings = session.settings(&flags)?;
    session.require_trust(&settings)?;
    crate::app::mend::all(&session);
    let runner = session.runner(&settings, &interrupt, &Silent)?;
    let branch = session.branch_or_current(place.branch.as_deref(), "govern <verb> -b <branch>")?;
    let mut kept: Option<(Done, Next)> = None;
    let mut warnings = Vec::new();
    let written = runner.edit(&branch, may_create, |dir| {
        let context = project(&runner, &branch, dir)?;
        let (root, config) = (context.root, context.config);
        warnings = context.warnings;
        let done = Done::settled(act(&root, &config))?;
        let next = done.next(&config);
        let declared = done.declare(&root, &next)?;
        kept = Some((done, next));
        Ok::<_, Failure>(declared)
    })??;
    if !place.no_tick {
        background::as_the_hook_would(&session, &settings, &branch)?;
    }
    let Some((done, next)) = kept else { return Ok(0) };
    if may_create {
        warn(global, &warnings);
    }
    read_back(&runner, &written, &done)?;
    show(global, place.json, &done, &next, Some(&written));
    ended(done)
}

/// Says what a configuration asks for and nothing here does, to whoever begins a run with it.
pub fn warn(global: &Global, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !global.quiet) {
        output::note(&format!("warning: {PROJECT}: {}", escape(warning.as_bytes())));
    }
}

/// Makes sure that what was written is what a reader finds.
fn read_back(runner: &Runner<'_>, written: &Written, done: &Done) -> Result<(), Failure> {
    let tree = runner.store.read_commit(written.commit)?.tree;
    let entries = |tree, name: &str| -> Result<Option<ObjectId>, Failure> {
        let entry = runner.store.read_tree(tree)?.into_iter().find(|entry| entry.name == name.as_bytes());
        Ok(entry.map(|entry| entry.id))
    };
    let state = match entries(tree, ".agentxchain")? {
        Some(folder) => entries(folder, "state.json")?,
        None => None,
    };
    let found = state.map(|id| runner.store.read_blob(id)).transpose()?;
    let found = found.and_then(|bytes| serde_json::from_slice(&bytes).ok()).and_then(State::from_value);
    if found.as_ref() == Some(&done.state) {
        return Ok(());
    }
    let branch = escape(written.branch.short());
    Err(Failure::fatal(format!("the commit on '{branch}' does not hold the run's state"))
        .hint("git log -1 --stat -- .agentxchain"))
}

/// The project in a checkout of a branch, with the configuration that may be acted on.
///
/// # Errors
/// No or an unusable configuration on the trusted ref.
pub fn project(runner: &Runner<'_>, branch: &RefName, dir: &Path) -> Result<Context, Failure> {
    let root = Root::new(dir);
    let from = match &runner.settings.commands_from {
        CommandsFrom::Ref(from) => from,
        CommandsFrom::Branch | CommandsFrom::Nowhere => {
            // The branch's own, and no other that a folder above may have.
            return Ok(context_here(&root)?);
        }
    };
    let shown = escape(from.short());
    let bytes = runner.trusted_file(branch, PROJECT)?.ok_or_else(|| {
        Failure::refused(format!("'{shown}' has no {PROJECT}: workers and hooks are taken from there"))
            .hint(format!("git switch {} && git add {PROJECT} && git commit", shell_word(from.short())))
    })?;
    let from = format!("{shown}:{PROJECT}");
    Ok(context_of(&root, &bytes, Path::new(&from))?)
}

/// What was written down is no success where something kept the act from its end.
fn ended(done: Done) -> Result<i32, Failure> {
    done.failure.map_or(Ok(0), |error| Err(Failure { code: 1, ..error.into() }))
}

/// An act as programs read it.
#[derive(Serialize)]
struct Act<'a> {
    schema: &'static str,
    branch: Option<Cow<'a, str>>,
    commit: Option<String>,
    state: &'a str,
    happened: &'a str,
    facts: &'a Facts,
    run: &'a State,
}

fn show(global: &Global, as_json: bool, done: &Done, next: &Next, written: Option<&Written>) {
    let state = next.state().map(|s| s.as_str().to_owned()).unwrap_or_default();
    if as_json {
        let object = Act {
            schema: SCHEMA,
            branch: written.map(|w| String::from_utf8_lossy(w.branch.short())),
            commit: written.map(|w| w.commit.to_string()),
            state: &state,
            happened: &done.happened,
            facts: &done.facts,
            run: &done.state,
        };
        output::line(&output::json(&object));
    } else if !global.quiet {
        let place = match written {
            Some(w) => format!("{}: {state} ({}): ", escape(w.branch.short()), w.commit.short(8)),
            None => format!("{state}: "),
        };
        output::line(&format!("{place}{}", escape(done.happened.as_bytes())));
    }
}
