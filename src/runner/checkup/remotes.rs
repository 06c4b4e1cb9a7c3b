//! The remote that runners share: whether it is configured and, if the user asks for that, whether it
//! answers.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, Mend};
use crate::protocol::text::{escape, shown_url, with_causes};
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, RunnerError};
use crate::store::remote::network;
use std::path::Path;
use std::time::Duration;

/// How long the remote has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Runner<'_> {
    /// Checks the remote of this name. Without `network` nothing is sent to it.
    pub fn checkup_remote(&self, remote: &str, network: bool) -> Findings {
        let mut found = Findings::new();
        if let Err(error) = self.check_remote(remote, network, &mut found) {
            found.push(Finding::new(Error, "remote", with_causes(&error)));
        }
        found
    }

    fn check_remote(&self, remote: &str, network: bool, found: &mut Findings) -> Result<(), RunnerError> {
        let shown = escape(remote.as_bytes());
        let url = if self.repo.has_remote(remote) { self.repo.git.remote_url(remote)? } else { None };
        let Some(url) = url else {
            let text = format!("'{shown}', which aynig.remote names, is no remote here");
            let mend = Mend::AddRemote(remote.to_owned());
            found.push(Finding::new(Error, "remote", text).mend(mend));
            return Ok(());
        };
        let home = self.repo.main_dir.as_ref().unwrap_or(&self.repo.common_dir);
        if let Some(path) = self.repo.push_path(remote) {
            let path = home.join(path);
            found.extend(self.unsynced_pushes(&path));
            self.check_far_locks(&path, found)?;
        }
        let at = format!("'{shown}' is at {}", shown_url(&url));
        if let Some(to) = self.repo.git.push_url(remote)?.filter(|to| *to != url) {
            let text =
                format!("{at}, and is pushed to at {}: both have to lead to one repository", shown_url(&to));
            found.push(Finding::new(Fine, "remote", text));
        }
        if self.settings.commands_from == CommandsFrom::Nowhere {
            // The repository's configuration says the address and how it is reached, and is not trusted.
            let text = format!("{at} (not asked: this repository is not trusted)");
            found.push(Finding::new(Fine, "remote", text));
            return Ok(());
        }
        if !network {
            let text = format!("{at} (not asked: that is 'git aynig doctor --network')");
            found.push(Finding::new(Fine, "remote", text));
            return Ok(());
        }
        let asked = self.clock.instant();
        let answer = self.repo.git.ask_remote(remote, home, PATIENCE)?;
        let seconds = (self.clock.instant() - asked).as_secs_f64();
        found.push(match (answer.status.success(), answer.late) {
            (true, _) => Finding::new(Fine, "remote", format!("{at}, and answers ({seconds:.1}s)")),
            (false, true) => {
                let text = format!("{at}, and did not answer within {} s", PATIENCE.as_secs());
                Finding::new(Error, "remote", text).mend(Mend::AskRemote(remote.to_owned()))
            }
            (false, false) => {
                let said = escape(answer.message.as_bytes());
                let text = format!("{at}, and does not answer without a question: {said}");
                Finding::new(Error, "remote", text).mend(Mend::AskRemote(remote.to_owned()))
            }
        });
        if answer.status.success() && !self.takes_atomic(remote, home)? {
            let text = format!(
                "'{shown}' takes no atomic pushes: messages to its branches can't be delivered \
                 ('receive.advertiseAtomic' there)"
            );
            found.push(Finding::new(Warning, "remote", text));
        }
        Ok(())
    }

    /// False if the remote says that it can't move several refs as one. True where this user may not push or
    /// the trial can't be made: that will show at the push itself.
    fn takes_atomic(&self, remote: &str, home: &Path) -> Result<bool, RunnerError> {
        if self.repo.push_path(remote).is_some() && self.repo.git.may_push_to_paths().is_err() {
            return Ok(true);
        }
        let Some((_, commit)) = self.store.scan("refs/heads/")?.into_iter().next() else { return Ok(true) };
        let tried = self.repo.git.try_atomic_push(remote, home, commit, PATIENCE)?;
        Ok(tried.status.success() || !network::refuses_atomic(&tried))
    }
}
