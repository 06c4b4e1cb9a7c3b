//! The messages that a run has heard: it marks them in its folder, and its outcome takes them in.
//!
//! A mark moves nothing: the message becomes a parent of the outcome, and its ref moves with that swap. A run
//! that ends otherwise leaves the message where it was. The command may write to the folder, so what is read
//! there is bounded, and only messages of the run's own inbox are accepted. Implements K48 (`--take`).

use super::super::change::{ChangeError, Inside};
use super::super::inbox::{Found, Read};
use super::super::{Runner, RunnerError, io};
use super::TalkError;
use super::inbox::Waiting;
use crate::protocol::dialect::Writer;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{MESSAGES_MAX, MessageId, inbox_prefix, inbox_ref, parse_inbox_ref};
use crate::store::RefName;
use crate::store::beneath::apart;
use std::io::Write;
use std::path::Path;

/// The name of the file of marks.
const TAKEN: &str = "taken";
/// The most bytes of the file that are read, as a command may write any number.
const TAKEN_MAX: u64 = 1 << 20;

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
        let path = dir.join(TAKEN);
        let failed = |error| ChangeError::from(io("write", &path)(error));
        // The command may write to the folder, and this process may run outside of the sandbox: no link is
        // followed.
        let opened = apart(&path).and_then(|(folder, name)| folder.append(name, 0o644));
        // Each mark is one write, so that the lines of two processes do not mix.
        opened.map_err(std::io::Error::from).and_then(|mut file| file.write_all(&line)).map_err(failed)?;
        Ok(waiting)
    }

    /// Returns the messages that a run marked and its outcome takes in: those that still wait and could be
    /// delivered, and whose work is in the history of `head`, on which the outcome stands.
    pub(in crate::runner) fn taken_by(
        &self,
        run_dir: &Path,
        branch: &RefName,
        head: ObjectId,
    ) -> Result<Vec<Found>, RunnerError> {
        let mut found = taken(run_dir, branch);
        let mut kept = Vec::with_capacity(found.len());
        for found in found.drain(..) {
            if self.store.tip(&found.name)? == Some(found.commit)
                && matches!(self.letter(branch, &found)?, Read::Letter(_))
            {
                kept.push(found);
            }
        }
        self.whose_work_is_in(kept, head)
    }
}

/// Returns what a run of this branch marked, ordered by id, and at most as many as one delivery takes.
fn taken(run_dir: &Path, branch: &RefName) -> Vec<Found> {
    let path = run_dir.join(TAKEN);
    let read = apart(&path).and_then(|(folder, name)| folder.read(name, TAKEN_MAX));
    let raw = read.unwrap_or_default();
    let mut all: Vec<Found> = Vec::new();
    for line in raw.split(|b| *b == b'\n') {
        let mut words = line.split(|b| *b == b' ');
        let (Some(kind), Some(id), Some(commit)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let name = [&inbox_prefix(branch.short())[..], kind, b"/", id].concat();
        let (Some(at), Ok(commit)) = (parse_inbox_ref(&name), ObjectId::from_hex(commit)) else { continue };
        if at.branch != branch.short() || all.iter().any(|found| found.at.id == at.id) {
            continue;
        }
        let name = RefName::new(inbox_ref(&at.branch, &at.kind, at.id));
        all.push(Found { at, name, commit });
        if all.len() == MESSAGES_MAX {
            break;
        }
    }
    all.sort_by_key(|found| found.at.id);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K48: the marks that a command wrote name messages of its own branch, or nothing.
    #[test]
    fn only_the_runs_own_inbox_is_believed_of_its_marks() {
        let dir = tempfile::tempdir().unwrap();
        let branch = RefName::branch("work");
        let ids: Vec<String> = (1..=3).map(|n| MessageId::v7(n, 0, [n as u8; 8]).to_string()).collect();
        let commit = "1111111111111111111111111111111111111111";
        let lines = [
            format!("message {} {commit}\n", ids[1]),
            format!("message {} {commit}\n", ids[0]),
            format!("message {} {commit}\n", ids[1]),
            format!("../other/message {} {commit}\n", ids[2]),
            format!("deeper/message {} {commit}\n", ids[2]),
            format!("message {} nothing\n\0\n{}\n", ids[2], "x".repeat(5000)),
        ];
        std::fs::write(dir.path().join(TAKEN), lines.concat()).unwrap();
        let found: Vec<String> =
            taken(dir.path(), &branch).iter().map(|taken| taken.at.id.to_string()).collect();
        assert_eq!(found, ids[..2]);
        std::fs::remove_file(dir.path().join(TAKEN)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join(TAKEN)).unwrap();
        assert!(taken(dir.path(), &branch).is_empty());
        let many: String =
            (0..200).map(|n| format!("message {} {commit}\n", MessageId::v7(n, 0, [0; 8]))).collect();
        std::fs::remove_file(dir.path().join(TAKEN)).unwrap();
        std::fs::write(dir.path().join(TAKEN), many).unwrap();
        assert_eq!(taken(dir.path(), &branch).len(), MESSAGES_MAX);
    }
}
