//! Warnings in words, on standard error.

use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output;
use crate::app::{Listener, Warning};
use crate::protocol::text::{escape, shell_word};

/// Prints warnings as they come; with `quiet`, only those about something that was not done.
pub struct Teller {
    /// `-q`.
    pub quiet: bool,
}

impl Listener for Teller {
    fn warned(&self, warning: &Warning) {
        let is_note = match warning {
            Warning::Ignored(_)
            | Warning::Unsure(_)
            | Warning::NotAsked(_)
            | Warning::LeftToOthers(_)
            | Warning::NotTaken(..)
            | Warning::NoCurrentBranch => true,
            Warning::CannotFollow(..)
            | Warning::NotRemoved(..)
            | Warning::Stands(_)
            | Warning::CannotNote(..)
            | Warning::HooksOff
            | Warning::Failed(_) => false,
        };
        if !(is_note && self.quiet) {
            output::error(&text(warning));
        }
    }
}

fn text(warning: &Warning) -> String {
    match warning {
        Warning::Ignored(key) => format!(
            "warning: '{}' in the repository's own configuration is ignored; only system, global and command line \
             count\n",
            escape(key.as_bytes())
        ),
        Warning::Unsure(unsure) => format!("warning: {unsure}, so nothing may run; {}\n", unsure.mend()),
        Warning::NotAsked(remote) => {
            let (shown, word) = (escape(remote.as_bytes()), shell_word(remote.as_bytes()));
            format!("not trusted: remote '{shown}' is not asked; --remote {word} asks it\n")
        }
        Warning::CannotFollow(dir, by) => {
            let words = escape(by.to_string().as_bytes());
            let dir = escape(dir.as_os_str().as_encoded_bytes());
            let mended = hints::of_obstacle(by);
            format!(
                "warning: '{dir}' cannot follow its branch: {words}\nhint: {mended}, then git aynig status\n"
            )
        }
        Warning::NotRemoved(dir, words) => {
            let dir = escape(dir.as_os_str().as_encoded_bytes());
            format!("warning: in '{dir}', which follows its branch: {}\n", escape(words.as_bytes()))
        }
        Warning::Stands(dir) => {
            let (shown, place) = (escape(dir.as_os_str().as_encoded_bytes()), hints::place(dir));
            format!(
                "warning: a checkout was cut short in '{shown}': files of an outcome that did not land may be among your \
                 changes\nhint: git -C {place} status\n"
            )
        }
        Warning::CannotNote(branch, why) => {
            format!("warning: cannot note '{}' for the runner: {why}\n", escape(branch.short()))
        }
        Warning::LeftToOthers(branch) => {
            let shown = escape(branch.short());
            format!("nothing may run on '{shown}' here: it waits for the next tick of a user who may\n")
        }
        Warning::NotTaken(branch, kind, remote) => format!(
            "the head of '{}' takes no '{kind}' (dwp-accepts): it waits for one that does\n\
             hint: {} --trailer 'dwp-accepts: {kind}=<state>'\n",
            escape(branch.short()),
            Addressed::new(branch, remote.as_deref()).set("<state>")
        ),
        Warning::NoCurrentBranch => {
            "HEAD is detached: no branch is the current one\nhint: git switch <branch>\n".to_owned()
        }
        Warning::HooksOff => "aynig.hooks is off now: what waits is left to the next tick\n".to_owned(),
        Warning::Failed(error) => Failure::from(error).render(),
    }
}
