//! What a verb wrote to a branch, as people and programs are told.

use super::hints::Addressed;
use super::output;
use super::render::note;
use crate::app::change::ChangeLine;
use crate::protocol::text::{escape, shell_word};
use crate::runner::change::Written;
use crate::store::git_merge::{Overruled, Why};

/// Prints what a verb wrote.
pub fn print(written: &Written, remote: Option<&str>, as_json: bool, quiet: bool) {
    let at = Addressed::new(&written.branch, remote);
    let branch = &at.shown;
    if as_json {
        let notes = written.notes.iter().filter_map(|n| note(&at, n)).collect();
        output::line(&output::json(&ChangeLine::new(written, notes)));
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
