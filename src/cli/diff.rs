//! `diff`: what a run changed, as `git diff` shows it.
//!
//! Implements git-aynig-diff(1), K36, K55.

use super::args::Diff;
use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output;
use super::render::full;
use super::session::Global;
use crate::app::diff::{self, Found, PastError};
use crate::protocol::text::{escape, shell_word};

/// Runs `git aynig diff`.
pub fn run(global: &Global, args: &Diff) -> Result<i32, Failure> {
    let session = global.open()?;
    let found = diff::find(&session, args.what.as_deref(), args.remote.clone())?;
    if !global.quiet {
        said(&found).iter().for_each(|line| output::note(line));
    }
    if found.is_same {
        return Ok(0);
    }
    match diff::show(&session, global.git_dir.as_deref(), &found, &args.options)? {}
}

/// Returns a run's title for people: its branch and the first eight characters of its id, or "its latest run"
/// where the id is not known.
pub(super) fn title(found: &Found) -> String {
    let run = found.run_id.as_ref().map(|run| escape(run.as_bytes()).chars().take(8).collect::<String>());
    let run = run.map_or_else(|| "its latest run".to_owned(), |run| format!("run {run}"));
    format!("{}: {run}", escape(found.branch.short()))
}

/// Returns what the difference itself does not show: that the run left no work, changed no file, did not
/// finish, or left something out of its outcome.
fn said(found: &Found) -> Vec<String> {
    let title = title(found);
    let mut lines = Vec::new();
    match (&found.work, &found.kept) {
        (None, _) => lines.push(format!("{title} left no work")),
        (Some(_), Some(name)) => {
            lines.push(format!("{title} did not finish: its work is kept in {}", escape(name.as_bytes())));
        }
        (Some(_), None) if found.is_same => lines.push(format!("{title} changed no file")),
        (Some(_), None) => {}
    }
    if let Some(name) = &found.left_out {
        let word = shell_word(full(name).as_bytes());
        lines.push(format!(
            "{title} left something out of its outcome\nhint: git diff {} {word}",
            found.trigger
        ));
    }
    lines
}

/// Returns the command that mends the error.
pub fn mended(error: &PastError) -> Option<String> {
    match error {
        PastError::NoRun { branch, remote } => Some(Addressed::new(branch, remote.as_deref()).call("status")),
        PastError::NoSuch { unasked: Some(remote), .. } => Some(hints::same_with_remote(remote)),
        PastError::NoSuch { unasked: None, remote, .. } => {
            Some(format!("git aynig status{}", hints::remote_option(remote.as_deref())))
        }
        PastError::Running { branch, remote, .. } => {
            let at = Addressed::new(branch, remote.as_deref());
            Some(format!("{}, or {}", at.call("wait"), at.call("logs -f")))
        }
        PastError::Submodules(_) => Some("git aynig trust".to_owned()),
    }
}
