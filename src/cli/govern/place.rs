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
use super::merges;
use super::next::Next;
use crate::app::background;
use crate::app::config::Flags;
use crate::governed::{
    Config, Context, GovernedError, Root, State, context_here, context_of, load_context, own_paths,
};
use crate::protocol::declaration::{Declaration, Rest, Take};
use crate::protocol::id::ObjectId;
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Written;
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, Silent};
use crate::store::RefName;
use crate::store::repository::Repository;
use crate::supervisor::interrupt::Interrupt;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file that makes a folder a governed project.
pub const PROJECT: &str = "agentxchain.json";
const SCHEMA: &str = "aynig.govern/1";

/// What an act did.
pub struct Done {
    /// The run's state after it.
    pub state: State,
    /// What happened, in one line.
    pub happened: String,
    /// More of it.
    pub body: String,
    /// Facts for programs.
    pub facts: Value,
    /// What comes next, where the state does not say it.
    pub next: Option<Next>,
    /// Why it is no success, where it is none although something was written.
    pub failure: Option<Failure>,
    /// What becomes of what is in the worktree besides the run's own files.
    pub rest: Rest,
    /// Paths that are committed besides the run's own, whatever rules for ignoring say.
    pub paths: Vec<String>,
}

impl Done {
    /// An act that did what it was to do.
    pub fn new(state: State, happened: impl Into<String>) -> Self {
        let (happened, body) = (happened.into(), String::new());
        let (rest, paths) = (Rest::AsConfigured, Vec::new());
        Self { state, happened, body, facts: json!({}), next: None, failure: None, rest, paths }
    }

    /// What comes next.
    pub fn next(&self, config: &Config) -> Next {
        self.next.clone().unwrap_or_else(|| Next::of(&self.state, config))
    }
}

/// What an act came to: a refusal changed nothing.
pub type Act = Result<Done, Failure>;

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
    load_context(&Root::new(root)).map_err(|e| failure(&e))
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
        for hint in failed.hints.iter_mut().filter(|hint| !hint.contains(" -b ")) {
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
        let done = settled(act(&context.root, &context.config))?;
        let next = done.next(&context.config);
        if may_create {
            warn(global, &context.warnings);
        }
        show(global, place.json, &done, &next, None);
        return done.failure.map_or(Ok(0), Err);
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
        let done = settled(act(&root, &config))?;
        let next = done.next(&config);
        let declared = declare(&root, &next, &done);
        kept = Some((done, next));
        declared
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
    done.failure.map_or(Ok(0), Err)
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
            return context_here(&root).map_err(|e| failure(&e));
        }
    };
    let shown = escape(from.short());
    let bytes = runner.trusted_file(branch, PROJECT)?.ok_or_else(|| {
        Failure::refused(format!("'{shown}' has no {PROJECT}: workers and hooks are taken from there"))
            .hint(format!("git switch {} && git add {PROJECT} && git commit", shell_word(from.short())))
    })?;
    let from = format!("{shown}:{PROJECT}");
    context_of(&root, &bytes, Path::new(&from)).map_err(|e| failure(&e))
}

/// An act that failed but was written down, as a change; any other failure changed nothing.
pub fn settled(acted: Result<Done, GovernedError>) -> Act {
    acted.or_else(|error| {
        let (GovernedError::Hook { state, .. }
        | GovernedError::Conflict { state, .. }
        | GovernedError::TimedOut { state, .. }
        | GovernedError::PolicyViolation { escalated: Some(state), .. }) = &error
        else {
            return Err(failure(&error));
        };
        let state = (**state).clone();
        let mut done = Done::new(state, error.to_string());
        done.failure = Some(Failure { code: 1, ..failure(&error) });
        Ok(done)
    })
}

/// The commit that an act is written as. The run's own files are in it whatever rules for ignoring say.
pub fn declare(root: &Root, next: &Next, done: &Done) -> Result<Declaration, Failure> {
    merges::follow(root, &done.state).map_err(|e| failure(&e))?;
    let mut paths = own_paths(root).map_err(|e| failure(&e))?;
    paths.extend_from_slice(&done.paths);
    let take = Take { paths, rest: done.rest };
    next.declaration(done, take).map_err(|why| Failure::fatal(format!("cannot name what comes next: {why}")))
}

fn show(global: &Global, as_json: bool, done: &Done, next: &Next, written: Option<&Written>) {
    let state = next.state().map(|s| s.as_str().to_owned()).unwrap_or_default();
    if as_json {
        let object = json!({
            "schema": SCHEMA,
            "branch": written.map(|w| String::from_utf8_lossy(w.branch.short()).into_owned()),
            "commit": written.map(|w| w.commit.to_string()),
            "state": state,
            "happened": done.happened,
            "facts": done.facts,
            "run": done.state.to_value(),
        });
        output::line(&output::json(&object));
    } else if !global.quiet {
        let place = match written {
            Some(w) => format!("{}: {state} ({}): ", escape(w.branch.short()), w.commit.short(8)),
            None => format!("{state}: "),
        };
        output::line(&format!("{place}{}", escape(done.happened.as_bytes())));
    }
}

/// What a governed operation's refusal is to a person.
pub fn failure(error: &GovernedError) -> Failure {
    let code = match error {
        GovernedError::Refused(_)
        | GovernedError::StaleStaging { .. }
        | GovernedError::InvalidResult(_)
        | GovernedError::OverrideRefused { .. }
        | GovernedError::PolicyViolation { .. }
        | GovernedError::DirtyWorkspace { .. }
        | GovernedError::StaleState
        | GovernedError::Blank { .. }
        | GovernedError::NoSuchRole { .. }
        | GovernedError::Hook { .. }
        | GovernedError::TimedOut { .. }
        | GovernedError::Conflict { .. } => 2,
        GovernedError::Locked { .. } => 75,
        GovernedError::NoProject { .. }
        | GovernedError::ForeignOwner { .. }
        | GovernedError::NoState { .. }
        | GovernedError::UnreadableConfig { .. }
        | GovernedError::InvalidConfig { .. }
        | GovernedError::UnreadableState { .. }
        | GovernedError::InvalidState { .. }
        | GovernedError::UnreadableJournal { .. }
        | GovernedError::UnsafeTurnId { .. }
        | GovernedError::UnknownNotification { .. }
        | GovernedError::Outside { .. }
        | GovernedError::Io { .. }
        | GovernedError::Workspace { .. } => 128,
    };
    let mut failed = Failure { code, ..Failure::caused(error) };
    if let GovernedError::InvalidResult(validation) = error {
        failed.causes.extend(validation.errors.iter().skip(1).cloned());
    }
    match hint(error) {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

fn hint(error: &GovernedError) -> Option<String> {
    if let GovernedError::ForeignOwner { folder } = error {
        let folder = shell_word(folder.as_os_str().as_bytes());
        return Some(format!("git config --global --add safe.directory {folder}"));
    }
    fixed_hint(error).map(str::to_owned)
}

fn fixed_hint(error: &GovernedError) -> Option<&'static str> {
    match error {
        GovernedError::NoState { .. } => Some("git aynig govern start"),
        GovernedError::NoProject { .. } => {
            Some("git aynig install <repository of a pack> # or write agentxchain.json")
        }
        GovernedError::Refused(_) | GovernedError::StaleState => Some("git aynig govern status"),
        GovernedError::InvalidResult(_) | GovernedError::StaleStaging { .. } => {
            Some("mend the staged result, or: git aynig govern reject -m <reason>")
        }
        GovernedError::Conflict { .. } => Some(
            "merge by hand, then: git aynig govern accept --human-merge; or: git aynig govern reject -m <reason>",
        ),
        GovernedError::Hook { .. } | GovernedError::TimedOut { .. } => {
            Some("git aynig govern status; once it is mended: git aynig govern unblock")
        }
        GovernedError::DirtyWorkspace { .. } => Some("git status"),
        GovernedError::Locked { .. } => Some("try again when the other process is done"),
        GovernedError::OverrideRefused { .. } | GovernedError::PolicyViolation { .. } => {
            Some("git aynig govern reject -m <reason>")
        }
        GovernedError::UnreadableState { .. } | GovernedError::InvalidState { .. } => {
            Some("git log -p -- .agentxchain/state.json")
        }
        GovernedError::UnreadableConfig { .. }
        | GovernedError::InvalidConfig { .. }
        | GovernedError::UnreadableJournal { .. }
        | GovernedError::UnsafeTurnId { .. }
        | GovernedError::UnknownNotification { .. }
        | GovernedError::Blank { .. }
        | GovernedError::NoSuchRole { .. }
        | GovernedError::Io { .. }
        | GovernedError::ForeignOwner { .. }
        | GovernedError::Workspace { .. } => None,
        GovernedError::Outside { .. } => Some("git log --stat -- .agentxchain"),
    }
}
