//! The place of a governed run, from the flags as typed, and the output about an act on the run.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::Where;
use crate::app::govern::acts::warned;
use crate::app::govern::place::{Branch, Changed, PROJECT, change_folder};
use crate::app::govern::{Done, Facts};
use crate::governed::{Config, GovernedError, Root, State};
use crate::protocol::text::{escape, shell_word};
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The schema of what `--json` prints.
pub(crate) const SCHEMA: &str = "aynig.govern/1";

/// Does `act` on the run, and prints what came of it.
pub(crate) fn change(
    global: &Global,
    place: &Where,
    act: impl FnOnce(&Root, &Config) -> Result<Done, GovernedError>,
) -> Result<i32, Failure> {
    let changed = match &place.root {
        Some(folder) => change_folder(folder, act),
        None => {
            let branch = place.run("govern <verb> -b <branch>");
            branch.change(global.open()?, !place.no_tick, act)
        }
    };
    changed
        .map_err(Failure::from)
        .and_then(|changed| told(global, place, changed))
        .map_err(|failed| place.there(failed))
}

/// Prints what came of an act.
pub(crate) fn told(global: &Global, place: &Where, changed: Changed) -> Result<i32, Failure> {
    doubts(global, &changed.done.warnings);
    show(global, place.json, &changed);
    // The change was written, but something kept the act from its end: that is exit code 1, not success.
    changed.done.failure.map_or(Ok(0), |error| Err(Failure { code: 1, ..error.into() }))
}

impl Where {
    /// Returns the run's branch. `naming` is the call that names a branch, for a user who has to give one.
    pub fn run(&self, naming: &'static str) -> Branch {
        Branch { name: self.branch.clone(), remote: self.remote.clone(), naming }
    }

    /// Returns the flags that name this place, for a command that can be pasted.
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

    /// Returns the failure with this place's flags in its hints, so that the hints mean this place wherever
    /// they are pasted.
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
            // What is done to files is done where the branch is checked out.
            if let (Some(branch), true) = (&self.branch, mended.contains("git mv ")) {
                let switch = format!("git switch {} && git mv ", shell_word(branch.as_bytes()));
                mended = mended.replacen("git mv ", &switch, 1);
            }
            if let Some(branch) = &self.branch {
                let log = format!("git log --stat {} -- ", shell_word(branch.as_bytes()));
                mended = mended.replacen("git log --stat -- ", &log, 1);
            }
            // A folder that is named need not be in a repository.
            if let (Some(root), true) = (&self.root, mended.contains("git mv ")) {
                let state = shell_word(root.join(".agentxchain/state.json").as_os_str().as_bytes());
                mended = format!("mv {state} {state}.old && {VERB}start{flags}");
            }
            *hint = mended;
        }
        failed
    }
}

/// Prints what the configuration asks for and this program does not do, for the user who begins a run with
/// it.
pub(crate) fn warn(global: &Global, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !global.quiet) {
        output::note(&format!("warning: {PROJECT}: {}", escape(warning.as_bytes())));
    }
}

/// Prints what is doubtful about a result that was accepted.
pub(crate) fn doubts(global: &Global, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !global.quiet) {
        output::note(&escape(warned(warning).as_bytes()));
    }
}

/// The object that `--json` prints about an act.
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

fn show(global: &Global, as_json: bool, Changed { done, next, written, .. }: &Changed) {
    let state = next.state().map(|s| s.as_str().to_owned()).unwrap_or_default();
    if as_json {
        let object = Act {
            schema: SCHEMA,
            branch: written.as_ref().map(|w| String::from_utf8_lossy(w.branch.short())),
            commit: written.as_ref().map(|w| w.commit.to_string()),
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
