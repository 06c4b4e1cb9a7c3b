//! Branches that a tick would not get far with.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, Mend, name, shown};
use crate::protocol::accepts::{ACCEPTS, Accepts};
use crate::protocol::decide::Held;
use crate::protocol::resemble::{Missed, missed_state};
use crate::protocol::text::{escape, with_causes};
use crate::runner::home::Home;
use crate::runner::survey::{BranchStatus, Standing, Survey};
use crate::runner::{Runner, RunnerError};
use crate::store::command_tree::FOLDER;

/// The most branches that are named for the same problem.
const NAMED: usize = 20;

impl Runner<'_> {
    pub(super) fn check_branches(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let surveyed = Survey::new(self)?.all(|tip| tip.event.is_some())?;
        for (branch, error) in surveyed.failed.iter().take(NAMED) {
            let text = format!("{}: {}", escape(branch.short()), with_causes(error));
            found.push(Finding::new(Error, "branches", text).mend(Mend::Status(branch.clone())));
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
            let shown = escape(branch.short());
            let (text, state) = match missed {
                Missed::Key(key, meant) => {
                    (format!("{shown}: its head says '{}', not '{meant}'", escape(key.as_bytes())), None)
                }
                Missed::Outside(key, state) => (
                    format!("{shown}: its head's '{key}' is not in the last paragraph"),
                    Some(state.to_string()),
                ),
            };
            let mend = Mend::SetState(branch.clone(), state);
            found.push(Finding::new(Warning, "branches", text).mend(mend));
        }
        let mut text = format!("{} with a state event", surveyed.branches.len());
        if left_out > 0 {
            text.push_str(&format!(", {left_out} of them left out by 'aynig.branches'"));
        }
        found.push(Finding::new(Fine, "branches", text));
        Ok(())
    }
}

fn judge(status: &BranchStatus, home: &Home) -> Option<Finding> {
    let branch = escape(status.branch.short());
    if let Some((busy, dir)) = &status.busy {
        let text = format!("{branch} is skipped: it is being {busy} in '{}'", shown(dir));
        return Some(Finding::new(Warning, "branches", text).mend(Mend::GitStatus(dir.clone())));
    }
    let name = || status.branch.clone();
    let set = |state| Mend::SetState(name(), state);
    let accepts = status.tip.event.as_ref().map(Accepts::of).unwrap_or_default();
    if let Some(item) = accepts.unreadable.first() {
        let text = format!("{branch}: its '{ACCEPTS}: {}' is no '<kind>=<state>'", escape(item));
        return Some(Finding::new(Warning, "branches", text).mend(set(None)));
    }
    let (level, text, mend) = match &status.standing {
        Standing::Unusable(path, why) => {
            let text = format!("{branch}: {FOLDER}/{}: {why}", escape(path.as_bytes()));
            let (home, file, why) = (home.clone(), format!("{FOLDER}/{path}"), why.clone());
            (Error, text, Mend::FixCommand { home, file, why, branch: Some(name()) })
        }
        Standing::InvalidState(_, why) => {
            (Warning, format!("{branch}: its state is not usable: {why}"), set(None))
        }
        Standing::HopLimit { hop, max } => {
            (Warning, format!("{branch}: {hop} dispatches led here, the limit is {max}"), set(None))
        }
        // A wait that passes by itself or by `resume` is no problem; one that can't be read never passes.
        Standing::Held(by @ Held::NotBefore(Err(_))) => (Warning, format!("{branch}: {by}"), set(None)),
        Standing::Held(by @ Held::After(unmet)) if !unmet.unreadable.is_empty() => {
            (Warning, format!("{branch}: {by}"), set(None))
        }
        Standing::Held(_) => return None,
        Standing::Waits if !status.alike.is_empty() => {
            let state = status.tip.event.as_ref().and_then(|event| event.state_name());
            let (state, meant) = (state.map_or("", |name| name.as_str()), status.alike.join("' or '"));
            let text = format!("{branch}: no command answers its state '{state}': did you mean '{meant}'?");
            (Warning, text, set(Some(status.alike[0].clone())))
        }
        Standing::Waits => return None,
        Standing::Expired { .. } => {
            let text = format!("{branch}: its lease has expired; the next tick recovers it");
            (Warning, text, Mend::Tick(name()))
        }
        Standing::Leased { malformed: true, .. } => {
            let text =
                format!("{branch}: its lease has an unusable date or length, and is judged by observation");
            (Warning, text, Mend::Cancel(name()))
        }
        Standing::Leased { malformed: false, .. }
        | Standing::NoState
        | Standing::Ready
        | Standing::NotTrusted
        | Standing::LeftOut => return None,
    };
    Some(Finding::new(level, "branches", text).mend(mend))
}
