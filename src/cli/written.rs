//! What a verb wrote to a branch, as people and programs are told.

use super::hints::Addressed;
use super::output;
use super::render::note;
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Written;
use crate::store::git_merge::{Overruled, Why};
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
            "overruled": written.overruled.iter().map(|o| &o.path).collect::<Vec<_>>(),
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
    for Overruled { path, why } in &written.overruled {
        let (shown, file) = (escape(path.as_bytes()), shell_word(format!(":(top,literal){path}").as_bytes()));
        let said = match why {
            Why::Lines => {
                format!("both sides changed the same lines of '{shown}': the run's version was taken")
            }
            Why::Whole => format!("both sides changed '{shown}': the run's version was taken"),
            Why::Removed => {
                format!("'{shown}' was changed on the branch, and removed by the run: it is removed")
            }
            Why::BackAgain => {
                format!(
                    "'{shown}' was removed on the branch, and changed by the run: the run's version was taken"
                )
            }
        };
        output::note(&format!("warning: {said}\nhint: git diff {0}~ {0} -- {file}", written.commit));
    }
    written.notes.iter().filter_map(|n| note(&at, n)).for_each(|n| output::note(&n));
}
