//! What a verb wrote to a branch, as people and programs are told.

use super::hints::Addressed;
use super::output;
use super::render::note;
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Written;
use serde_json::json;

/// The schema of what a verb wrote.
pub const SCHEMA: &str = "aynig.change/1";

/// Prints what a verb wrote.
pub fn print(written: &Written, remote: Option<&str>, as_json: bool, quiet: bool) {
    let at = Addressed::new(&written.branch, remote);
    let branch = &at.shown;
    if as_json {
        let object = json!({
            "schema": SCHEMA,
            "branch": String::from_utf8_lossy(written.branch.short()),
            "state": written.state.as_str(),
            "commit": written.commit.to_string(),
            "run_id": written.run_id,
            "created": written.created,
            "overruled": written.overruled,
            "notes": written.notes.iter().filter_map(|n| note(&at, n)).collect::<Vec<_>>(),
        });
        output::line(&output::json(&object));
        return;
    }
    let new = if written.created { " (new branch)" } else { "" };
    output::line(&format!("{branch}: {} ({}){new}", written.state, written.commit.short(8)));
    if quiet {
        return;
    }
    for path in &written.overruled {
        let (shown, file) = (escape(path.as_bytes()), shell_word(format!(":(top,literal){path}").as_bytes()));
        output::note(&format!(
            "warning: both sides changed the same lines of '{shown}': the run's version was taken\n\
             hint: git diff {0}~ {0} -- {file}",
            written.commit
        ));
    }
    written.notes.iter().filter_map(|n| note(&at, n)).for_each(|n| output::note(&n));
}
