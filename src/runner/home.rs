//! Where a command has to be committed so that it counts. Implements K13, K33 (where commands come from).

use super::Runner;
use super::settings::CommandsFrom;
use crate::protocol::text::escape;
use crate::store::RefName;

/// The branch that commands come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The ref; `None` where each branch brings its own.
    pub from: Option<RefName>,
    /// The remote that has the branch; `None` where this repository does.
    pub remote: Option<String>,
    /// True where the repository has a main working tree.
    pub has_work_tree: bool,
}

impl Runner<'_> {
    /// Returns where the commands of this runner come from.
    pub fn home(&self) -> Home {
        let from = match &self.settings.commands_from {
            CommandsFrom::Ref(name) => Some(name.clone()),
            CommandsFrom::Branch | CommandsFrom::Nowhere => None,
        };
        let remote = self.settings.remote.clone().filter(|_| !self.settings.commands_here);
        Home { from, remote, has_work_tree: self.repo.main_dir.is_some() }
    }
}

impl Home {
    /// Returns the place in words, for display.
    pub fn shown(&self) -> String {
        let name = match &self.from {
            Some(name) => escape(name.as_bytes()),
            None => "the commit".to_owned(),
        };
        match &self.remote {
            Some(remote) => format!("{name} of '{}'", escape(remote.as_bytes())),
            None => name,
        }
    }

    /// True where commands for this branch come from the branch itself.
    pub fn is(&self, branch: &RefName) -> bool {
        self.from.as_ref().is_none_or(|from| from == branch)
    }
}
