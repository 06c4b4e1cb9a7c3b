//! What one head says, for a tick of its branch and for a look at all branches alike.
//!
//! Implements K30 (whose branch it is), K32 (`aynig.branches`), K35 (what of a lease can't be used).

use super::Runner;
use super::Tip;
use super::report::{Note, Report, Verdict};
use super::slot::Occupants;
use crate::protocol::decide::Observed;
use crate::protocol::dialect::Dialect;
use crate::protocol::event::SOURCE;
use crate::store::RefName;

impl Runner<'_> {
    /// True where `aynig.branches` lets a branch be ticked.
    pub fn may_tick(&self, branch: &RefName) -> bool {
        self.settings.branches.is_empty() || crate::store::pattern::any(&self.settings.branches, branch)
    }

    /// Returns the remote that a local head says it came from, if that remote is configured in this
    /// repository: decisions about such a branch are made on the remote (K30). Only a remote's name is taken
    /// from a commit, never an address.
    pub(super) fn source_of(&self, tip: &Tip) -> Option<String> {
        let event = tip.event.as_ref().filter(|_| self.settings.remote.is_none())?;
        let source = event.text(SOURCE).and_then(|source| source.strip_prefix("git:"));
        // In the `aynig` dialect, the trailer `aynig-remote` may hold the remote's bare name, because the
        // kernel contract's runner accepts that.
        let pinned = || match event.dialect {
            Dialect::Aynig => {
                event.message.last("aynig-remote").and_then(|name| std::str::from_utf8(name).ok())
            }
            Dialect::Dwp => None,
        };
        let name = source.or_else(pinned)?;
        self.repo.has_remote(name).then(|| name.to_owned())
    }

    /// Returns the verdict about a branch that a run holds: its head is that run's lease. Notes a lease whose
    /// length or date can't be used.
    pub(super) fn leased(
        &self,
        tip: &Tip,
        until: i64,
        observed: Option<Observed>,
        occupants: &Occupants,
        report: &mut Report,
    ) -> Verdict {
        let malformed = observed.is_some_and(|o| o != Observed::Policy);
        if malformed {
            report.notes.push(Note::MalformedLease);
        }
        let text = |key| tip.event.as_ref().and_then(|e| e.text(key)).map(str::to_owned);
        Verdict::Leased {
            until,
            left: until - self.clock.now(),
            run_id: text(crate::protocol::event::RUN_ID),
            runner_id: text(crate::protocol::event::RUNNER_ID),
            malformed,
            abandoned: tip.event.as_ref().and_then(|lease| self.abandoned(lease, occupants)),
        }
    }
}
