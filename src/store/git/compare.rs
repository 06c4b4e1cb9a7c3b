//! What commits have in common, and how much they changed since. Implements K61 (figures).

use super::calls::RepoGit;
use crate::protocol::id::ObjectId;
use crate::store::StoreError;

/// How much was changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Files; a renamed file counts once.
    pub files: u64,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
}

impl RepoGit {
    /// Returns the newest commit that all of these stand on; `None` where there is none.
    pub(crate) fn common_base(&self, commits: &[ObjectId]) -> Result<Option<ObjectId>, StoreError> {
        let ids = commits.iter().map(ObjectId::to_string);
        let output = self.here().verb("merge-base").args(["--octopus"]).args(ids).output()?;
        match output.status.code() {
            Some(0) => Ok(ObjectId::from_hex(output.stdout.trim_ascii()).ok()),
            Some(1) => Ok(None),
            _ => Err(StoreError::Git { verb: "merge-base".into(), message: output.message }),
        }
    }

    /// Counts what the commit `work` changed of the commit `base`.
    pub(crate) fn changed_between(&self, base: ObjectId, work: ObjectId) -> Result<Changed, StoreError> {
        let (base, work) = (base.to_string(), work.to_string());
        // No program that the repository names is started.
        let args = ["--numstat", "-r", "-M", "--no-ext-diff", "--no-textconv", &base, &work];
        let listed = self.here().verb("diff-tree").args(args).ok()?;
        let mut changed = Changed::default();
        for line in listed.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            // A file that is no text has '-' for both.
            let mut numbers = line.split(|b| *b == b'\t').map(|field| {
                std::str::from_utf8(field).ok().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
            });
            changed.files += 1;
            changed.insertions += numbers.next().unwrap_or(0);
            changed.deletions += numbers.next().unwrap_or(0);
        }
        Ok(changed)
    }
}
