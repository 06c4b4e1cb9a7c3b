//! The messages that wait for a branch, as they are shown.
//!
//! A message that can't be read is listed with the reason, and never hides the others. Implements K48.

use super::super::Runner;
use super::super::inbox::Found;
use super::TalkError;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Kind, Letter, MessageId};
use crate::protocol::message::Message;
use crate::store::RefName;

/// A message that waits.
#[derive(Debug)]
pub struct Waiting {
    /// Its ref.
    pub name: RefName,
    pub id: MessageId,
    /// Its kind, as its ref's name says.
    pub kind: Kind,
    pub commit: ObjectId,
    /// When the commit was made, in seconds since 1970.
    pub committed: Option<i64>,
    /// Its content, or why that can't be read.
    pub letter: Result<Letter, String>,
}

impl Runner<'_> {
    /// Returns the messages that wait for a branch, in the order of their ids; only those of `kind`, if that
    /// is given. Those for which `known` returns true are left out, and not read again.
    pub fn inbox(
        &self,
        branch: &RefName,
        kind: Option<&Kind>,
        known: &dyn Fn(MessageId, ObjectId) -> bool,
    ) -> Result<Vec<Waiting>, TalkError> {
        let mut found: Vec<Waiting> = Vec::new();
        for Found { at, name, commit } in self.inbox_now(branch)? {
            if kind.is_some_and(|kind| *kind != at.kind) || known(at.id, commit) {
                continue;
            }
            let (committed, letter) = match self.store.read_commit(commit) {
                Ok(read) => {
                    let letter = Letter::read_at(&at, &Message::parse(&read.message), &read.parents);
                    (read.committed, letter.map_err(|why| why.to_string()))
                }
                Err(error) => (None, Err(error.to_string())),
            };
            found.push(Waiting { name, id: at.id, kind: at.kind, commit, committed, letter });
        }
        Ok(found)
    }
}
