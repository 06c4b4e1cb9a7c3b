//! Whether the branch exists for which messages wait: its name may be misspelled, or the branch gone.
//!
//! Implements K46 (an inbox without a branch).

use super::{Finding, Findings, Mend, Warning, name};
use crate::protocol::inbox::{INBOX, parse_inbox_ref};
use crate::runner::{Runner, RunnerError};
use crate::store::RefName;
use std::collections::BTreeMap;

/// The most branches that are named.
const NAMED_MAX: usize = 20;

impl Runner<'_> {
    pub(super) fn check_inboxes(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let mut waiting: BTreeMap<RefName, usize> = BTreeMap::new();
        for (name, _) in self.store.known_scan(&String::from_utf8_lossy(INBOX))? {
            if let Some(at) = parse_inbox_ref(name.as_bytes()) {
                *waiting.entry(RefName::branch(at.branch)).or_default() += 1;
            }
        }
        let mut named = 0;
        for (branch, count) in waiting {
            if named < NAMED_MAX && self.store.known_tip(&branch)?.is_none() {
                named += 1;
                let messages =
                    if count == 1 { "a message waits".to_owned() } else { format!("{count} messages wait") };
                let text = format!("{messages} for '{}', which does not exist", name(&branch));
                found.push(Finding::new(Warning, "inbox", text).mend(Mend::ListBranches));
            }
        }
        Ok(())
    }
}
