//! Runs `git diff` in place of this process, with the user's own pager, colors and
//! drivers, and Git's own exit code.
//!
//! Unlike every other `git` child, this one gets the caller's whole environment, because the caller reads
//! what it shows. In a repository that is not trusted, what the repository's own configuration names is
//! overridden as for other children, and where that configuration names diff drivers, none is used.
//! Implements K34, K55 (`diff`).

use super::command::Git;
use super::confined::Found;
use crate::store::{StoreError, io_error};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

impl Git {
    /// Becomes `git diff` of two commits, the first two of `args`; returns only where that can't be started.
    pub(crate) fn become_diff(
        &self,
        git_dir: Option<&Path>,
        kept_from: Option<&Found>,
        args: &[OsString],
    ) -> StoreError {
        let mut command = Command::new(self.program());
        // Objects are what was hashed, as in every other child.
        command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null/none");
        if let Some(git_dir) = git_dir {
            command.arg("--git-dir").arg(git_dir);
        }
        command.arg("diff");
        if let Some(found) = kept_from {
            command.env("GIT_NO_LAZY_FETCH", "1").envs(found.env.iter().map(|(k, v)| (k, v)));
            // A submodule has configuration of its own, which settings for this repository do not override.
            command.arg("--submodule=short");
            if found.diffs {
                command.args(["--no-ext-diff", "--no-textconv"]);
            }
            let before =
                std::env::var("GIT_CONFIG_COUNT").ok().and_then(|n| n.parse().ok()).unwrap_or(0_usize);
            for (n, (key, value)) in (before..).zip(&found.settings) {
                command.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
            }
            command.env("GIT_CONFIG_COUNT", (before + found.settings.len()).to_string());
        }
        command.args(args);
        let program = Path::new(OsStr::new(command.get_program())).to_owned();
        io_error("start", &program)(command.exec())
    }
}
