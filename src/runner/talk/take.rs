//! What a run says that it has heard: marks in its folder, which its outcome takes up.
//!
//! A mark moves nothing: the message is a parent of the outcome, and its ref goes with that swap; a run that ends
//! otherwise leaves it where it was. The folder is the command's to write, so what is read there is bounded, and only
//! the run's own inbox is believed of it. Implements K48 (`--take`).

use super::super::change::{ChangeError, Inside};
use super::super::{Runner, io};
use super::TalkError;
use super::inbox::Waiting;
use crate::protocol::dialect::Writer;
use crate::protocol::inbox::MessageId;
use std::io::Write;

/// How the file is called.
const TAKEN: &str = "taken";

impl Runner<'_> {
    /// Marks a message of the run's own inbox as heard: `inbox --take`.
    ///
    /// # Errors
    /// [`TalkError::NotWaiting`]; [`TalkError::Dialect`] where the command writes its outcome itself.
    pub fn take(&self, inside: &Inside, id: MessageId) -> Result<Waiting, TalkError> {
        let branch = &inside.branch;
        let (_, _, run) = self.own_lease(branch, inside)?;
        if run.dialect.writer() == Writer::Command {
            return Err(TalkError::Dialect(branch.clone()));
        }
        let waits = self.inbox(branch, None, &|other, _| other != id)?;
        let waiting = waits.into_iter().next().ok_or_else(|| TalkError::NotWaiting(branch.clone(), id))?;
        if let Err(why) = &waiting.letter {
            return Err(TalkError::Unreadable(id, why.clone()));
        }
        let dir = self.run_dir(&inside.run_id);
        let mut line =
            [waiting.kind.as_str(), &id.to_string(), &waiting.commit.to_string()].join(" ").into_bytes();
        line.push(b'\n');
        // One write each: two that mark at once don't mix.
        let failed = |error| ChangeError::from(io("write", &dir.join(TAKEN))(error));
        let mut file =
            std::fs::File::options().create(true).append(true).open(dir.join(TAKEN)).map_err(failed)?;
        file.write_all(&line).map_err(failed)?;
        Ok(waiting)
    }
}
