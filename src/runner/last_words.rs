//! The body of a `stalled` commit: what ended the command, how long it took, its last lines.
//!
//! Implements K23.

use super::Runner;
use super::active_run::ActiveRun;
use crate::protocol::complete::{Exit, Stall};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::secrets::Secrets;
use crate::protocol::text::{escape, retry_call, tail_block};
use crate::store::RefName;
use crate::store::beneath::apart;
use crate::store::slots::modules;
use std::path::Path;
use std::time::Duration;

/// How much of each log goes into a `stalled` body, in bytes.
const TAIL: usize = 3 * 1024;
/// How many bytes before that are read too, so that a secret is recognized even if its beginning is not
/// shown.
const BEFORE: usize = 64 * 1024;

impl ActiveRun<'_> {
    /// Returns the body of a `stalled` commit: what ended the command, how long it took, its last lines
    /// (K23).
    pub(super) fn details(&self, exit: Option<&Exit>, why: &Stall, attempt: Option<&RefName>) -> String {
        let took = self.took();
        let whole_millis = Duration::new(took.as_secs(), took.subsec_millis() * 1_000_000);
        let took = humantime::format_duration(whole_millis);
        // What a command printed becomes part of a commit, and commits are pushed: secrets must not be among
        // it. The reason may quote a declaration.
        let secrets = self.runner.secrets();
        let masked = |text: String| escape(&secrets.mask(text.as_bytes()));
        let what = if self.ended_preparing { "'.aynig/prepare'" } else { "The command" };
        let mut text = match (exit, why) {
            (_, Stall::Exit(exit)) => {
                format!("{what} ended after {took}: {}.\n", escape(exit.to_string().as_bytes()))
            }
            (Some(exit), why) => {
                format!("{}.\n{what} ended after {took}: {exit}.\n", masked(why.to_string()))
            }
            (None, why) => format!("{}.\n", masked(why.to_string())),
        };
        if let Stall::Checkout(obstacle) = why {
            text += &format!("\n{}\n", tail_block(obstacle.to_string().as_bytes(), TAIL));
        }
        let (invalid, _) = self.declared.invalid();
        if matches!(why, Stall::BadLine(_)) && invalid.len() > 1 {
            text += "\nNone of its declarations is valid:\n\n";
            for (line, why) in invalid {
                let shown = tail_block(&secrets.mask(line.as_bytes()), TAIL);
                text += &format!("{shown}\n    {}\n", masked(why.to_string()));
            }
        }
        for (name, path) in [("stderr", &self.logs.stderr), ("stdout", &self.logs.stdout)] {
            let tail = tail_block(&secrets.mask(&last_bytes(path, BEFORE + TAIL)), TAIL);
            if !tail.is_empty() && exit.is_some() {
                text += &format!("\nLast lines of {name}:\n\n{tail}\n");
            }
        }
        if let Some(name) = attempt {
            text += &format!(
                "\nWork that is not on the branch is kept in {}.\n",
                String::from_utf8_lossy(name.as_bytes())
            );
        }
        let kept = modules::kept_of(self.runner.repo, self.run_id());
        if kept.is_dir() {
            // The report uses the same words.
            let what = match modules::names(&kept).unwrap_or_default().is_empty() {
                true => "What was in its worktree, and no tree can hold, is",
                false => "Repositories that were in its worktree are",
            };
            text += &format!(
                "\n{what} kept in aynig/submodules/{}/ of the runner's Git directory.\n",
                self.run_id()
            );
        }
        let retry = retry_call(self.branch.short(), self.runner.settings.remote.as_deref());
        text += &match why {
            Stall::Checkout(Obstacle::Changes(_)) => {
                format!("\nOnce the local changes are out of the way, {retry} lands the outcome.\n")
            }
            Stall::Checkout(_) => format!("\nOnce that is mended, {retry} lands the outcome.\n"),
            Stall::Declined(_) => format!("\nOnce it is allowed, {retry} lands the outcome.\n"),
            _ => format!("\n{retry} asks for it again.\n"),
        };
        text
    }
}

impl Runner<'_> {
    /// Returns the secrets of the environment, which must not travel with a commit.
    pub(super) fn secrets(&self) -> Secrets {
        Secrets::of(
            self.environment().iter().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.as_encoded_bytes().to_vec())
            }),
        )
    }
}

/// Reads the end of a log, through no link, since the command may have put anything there. Empty if that
/// fails.
fn last_bytes(path: &Path, limit: usize) -> Vec<u8> {
    apart(path).and_then(|(folder, name)| folder.read_tail(name, limit as u64)).unwrap_or_default()
}
