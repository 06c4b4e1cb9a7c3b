//! Whether what is pushed to a repository survives a loss of power there: a remote's branch is only as
//! durable as its repository. Git syncs neither loose objects nor refs unless `core.fsync` says so.
//! Implements K42.

use super::Level::Warning;
use super::{Finding, Findings, Mend, shown};
use crate::runner::{Runner, RunnerError};
use std::path::Path;

impl Runner<'_> {
    /// Checks this repository if it is bare, and so one that others push to.
    pub(super) fn check_durability(&self, found: &mut Findings) -> Result<(), RunnerError> {
        if self.repo.bare {
            found.extend(self.unsynced_pushes(&self.repo.common_dir));
        }
        Ok(())
    }

    /// Checks a repository on this machine; `None` if it syncs what counts, or can't be asked.
    pub(super) fn unsynced_pushes(&self, dir: &Path) -> Option<Finding> {
        let asked = self.repo.git.setting_at(dir, "core.fsync").ok()?;
        let value = match asked.status.code() {
            Some(0) => String::from_utf8_lossy(&asked.stdout).into_owned(),
            Some(1) => String::new(),
            _ => return None,
        };
        let text = format!(
            "what is pushed to '{}' is not synced there: a power loss may take back what was reported, or leave half of it",
            shown(dir)
        );
        let mend = Mend::SyncPushes(dir.to_owned());
        (!covers_pushes(value.trim())).then(|| Finding::new(Warning, "durability", text).mend(mend))
    }
}

/// True for a `core.fsync` that has loose objects and refs synced. See git-config(1).
fn covers_pushes(value: &str) -> bool {
    let (mut objects, mut refs) = (false, false);
    for part in value.split(',').map(str::trim) {
        let (wanted, name) = match part.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, part),
        };
        match name {
            "none" => (objects, refs) = (false, false),
            "all" | "added" | "committed" => (objects, refs) = (wanted, wanted),
            "objects" | "loose-object" => objects = wanted,
            "reference" => refs = wanted,
            _ => {}
        }
    }
    objects && refs
}

#[cfg(test)]
mod tests {
    use super::covers_pushes;

    #[test]
    fn objects_and_refs_have_to_be_synced() {
        for value in
            ["committed", "all", "added", "objects,reference", "loose-object, reference", "all,-index"]
        {
            assert!(covers_pushes(value), "{value}");
        }
        for value in ["", "none", "objects", "reference", "committed,-reference", "all,none", "default"] {
            assert!(!covers_pushes(value), "{value}");
        }
    }
}
