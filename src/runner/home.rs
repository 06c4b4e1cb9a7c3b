//! Where a command has to be committed so that it counts, and the shell commands which do that.
//!
//! A commit on a branch that waits would take its request away: there the state is asked for again. Implements
//! K13, K33 (where commands come from), as K36 says it.

use super::Runner;
use super::settings::CommandsFrom;
use crate::protocol::text::{escape, shell_word};
use crate::store::RefName;
use crate::store::command_start::Unfit;

/// The branch that commands come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The ref; `None` where each branch brings its own.
    from: Option<RefName>,
    /// The remote that it is a branch of.
    remote: Option<String>,
    /// True where a working tree is at hand.
    has_work_tree: bool,
}

impl Runner<'_> {
    /// Where the commands of this runner come from.
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
    /// As people read it.
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

    /// True where commands for this branch come from that branch.
    pub fn is(&self, branch: &RefName) -> bool {
        self.from.as_ref().is_none_or(|from| from == branch)
    }

    /// The shell commands that make a change and commit it where commands come from; for commands of this
    /// branch, or of whichever is checked out.
    pub fn commit(&self, change: &str, branch: Option<&RefName>) -> String {
        let home = self.from.as_ref().or(branch);
        let Some(home) = home else { return format!("{change} && git commit") };
        if !home.as_bytes().starts_with(b"refs/heads/") {
            return format!("in {}: {change} && git commit", escape(home.as_bytes()));
        }
        let word = shell_word(home.short());
        let mut line = format!("git switch {word} && {change} && git commit");
        if !self.has_work_tree {
            line = format!("in a clone: {line} && git push");
        } else if let Some(remote) = &self.remote {
            line = format!("{line} && git push {} {word}", shell_word(remote.as_bytes()));
        }
        line
    }

    /// What makes a command's file one that can be started, committed as above; `again` follows the commit.
    pub fn mend(&self, file: &str, why: &Unfit, branch: Option<&RefName>, again: &str) -> String {
        let file = shell_word(file.as_bytes());
        let edit = format!("$(git var GIT_EDITOR) {file} && git add {file}");
        let (first, change) = match why {
            Unfit::NotExecutable => ("", format!("chmod +x {file} && git add --chmod=+x {file}")),
            Unfit::Leaves | Unfit::Links | Unfit::Nowhere => (
                "with the path of a file inside .aynig/: ",
                format!("ln -sf <path> {file} && git add {file}"),
            ),
            Unfit::CarriageReturn(_) => ("", format!("sed -i 's/\\r$//' {file} && git add {file}")),
            Unfit::Words(_) => ("", format!("sed -i '1s/env /env -S /' {file} && git add {file}")),
            Unfit::Empty | Unfit::NoInterpreter | Unfit::BadLine => {
                ("begin it with #!/bin/sh, or with what it is written for: ", edit)
            }
            Unfit::Interpreter(_) | Unfit::Program(_) => ("install that, or name another program: ", edit),
            Unfit::Relative(_) => ("name it from the root on, or begin with #!/usr/bin/env: ", edit),
        };
        format!("{first}{}{again}", self.commit(&change, branch))
    }
}
