//! Branches that a tick would not get far with.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, name, quoted, shown};
use crate::protocol::resemble::{Missed, missed_state};
use crate::protocol::text::with_causes;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::home::Home;
use crate::runner::survey::{BranchStatus, Standing, Survey};
use crate::runner::{Runner, RunnerError};
use crate::store::RefName;
use crate::store::command_tree::FOLDER;

/// At most so many branches are named for the same thing.
const NAMED: usize = 20;

impl Runner<'_> {
    pub(super) fn check_branches(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let surveyed = Survey::new(self)?.all(true)?;
        for (branch, error) in surveyed.failed.iter().take(NAMED) {
            let text = format!("{}: {}", escape(branch.short()), with_causes(error));
            let hint = format!("git aynig status {}", word(branch));
            found.push(Finding::new(Error, "branches", text).hint(hint));
        }
        for (branch, target) in self.repo.git.symbolic_branches()?.into_iter().take(NAMED) {
            let text = format!("{} is another name for {} and is never ticked", name(&branch), name(&target));
            found.push(Finding::new(Warning, "branches", text));
        }
        let home = self.home();
        found.extend(surveyed.branches.iter().filter_map(|status| judge(status, &home)).take(NAMED));
        let left_out = surveyed.branches.iter().filter(|b| matches!(b.standing, Standing::LeftOut)).count();
        let heads = self.store.read_heads("refs/heads/")?.heads;
        let missed = heads.iter().filter_map(|(name, commit)| Some((name, missed_state(&commit.message)?)));
        for (branch, missed) in missed.take(NAMED) {
            let (shown, named) = (escape(branch.short()), word(branch));
            let (text, state) = match missed {
                Missed::Key(key, meant) => (
                    format!("{shown}: its head says '{}', not '{meant}'", escape(key.as_bytes())),
                    "<state>".to_owned(),
                ),
                Missed::Outside(key, state) => {
                    (format!("{shown}: its head's '{key}' is not in the last paragraph"), state.to_string())
                }
            };
            let hint = format!("git aynig set-state {state} -b {named}");
            found.push(Finding::new(Warning, "branches", text).hint(hint));
        }
        let mut text = format!("{} with a state event", surveyed.branches.len());
        if left_out > 0 {
            text.push_str(&format!(", {left_out} of them left out by 'aynig.branches'"));
        }
        found.push(Finding::new(Fine, "branches", text));
        Ok(())
    }
}

fn word(branch: &RefName) -> String {
    branch_word(branch.short())
}

fn judge(status: &BranchStatus, home: &Home) -> Option<Finding> {
    let branch = escape(status.branch.short());
    if let Some((busy, dir)) = &status.busy {
        let text = format!("{branch} is skipped: it is being {busy} in '{}'", shown(dir));
        return Some(Finding::new(Warning, "branches", text).hint(format!("git -C {} status", quoted(dir))));
    }
    let named = word(&status.branch);
    let set = format!("git aynig set-state <state> -b {named}");
    let (level, text, hint) = match &status.standing {
        Standing::Unusable(path, why) => {
            let text = format!("{branch}: {FOLDER}/{}: {why}", escape(path.as_bytes()));
            (Error, text, home.mend(&format!("{FOLDER}/{path}"), why, Some(&status.branch), ""))
        }
        Standing::InvalidState(_, why) => (Warning, format!("{branch}: its state is not usable: {why}"), set),
        Standing::HopLimit { hop, max } => {
            (Warning, format!("{branch}: {hop} dispatches led here, the limit is {max}"), set)
        }
        Standing::Waits if !status.alike.is_empty() => {
            let text = format!("{branch}: no command answers its state");
            (
                Warning,
                text,
                format!("git aynig set-state {} -b {named}", shell_word(status.alike[0].as_bytes())),
            )
        }
        Standing::Waits => return None,
        Standing::Expired { .. } => {
            let text = format!("{branch}: its lease has expired; the next tick recovers it");
            (Warning, text, format!("git aynig tick {named}"))
        }
        Standing::Leased { malformed: true, .. } => {
            let text =
                format!("{branch}: its lease has an unusable date or length, and is judged by observation");
            (Warning, text, format!("git aynig cancel {named}"))
        }
        Standing::Leased { malformed: false, .. }
        | Standing::NoState
        | Standing::Ready
        | Standing::NotTrusted
        | Standing::LeftOut => return None,
    };
    Some(Finding::new(level, "branches", text).hint(hint))
}
