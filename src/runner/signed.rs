//! Commits that this runner writes, and signatures: how its commits are signed, and for which branch a head
//! is.
//!
//! A signature says who wrote a commit, and holds wherever the commit is pushed to. So where signatures are
//! required, each state event says in `dwp-branch` which branch it is signed for: on any other branch it
//! counts as unsigned. Implements K35 (signing).

use super::report::Refusal;
use super::{Runner, RunnerError, Tip};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::BRANCH;
use crate::protocol::id::ObjectId;
use crate::protocol::message::{Message, Trailer};
use crate::store::{NewCommit, RefName, StoreError};

impl Runner<'_> {
    /// Writes a commit of this runner for a branch, signed where the policy requires that.
    pub fn write(
        &self,
        branch: &RefName,
        tree: ObjectId,
        parents: Vec<ObjectId>,
        message: &Message,
    ) -> Result<ObjectId, RunnerError> {
        if !self.settings.require_signature {
            return self.write_unsigned(tree, parents, message);
        }
        let message = self.render(&signed_for(branch, message))?;
        let commit = NewCommit { tree, parents, signature: self.signature(), message };
        self.repo.git.commit_signed(&commit).map_err(not_signed)
    }

    /// True where what lands on a target is to be signed: by the policy, or as the user has Git sign commits.
    pub(super) fn signs_landed(&self) -> bool {
        self.settings.require_signature || self.settings.sign_landed
    }

    /// Writes a commit that is to land, and that is no state event.
    pub(super) fn write_landing(
        &self,
        tree: ObjectId,
        parents: Vec<ObjectId>,
        message: &Message,
        signed: bool,
    ) -> Result<ObjectId, RunnerError> {
        if !signed {
            return self.write_unsigned(tree, parents, message);
        }
        let commit = NewCommit { tree, parents, signature: self.signature(), message: self.render(message)? };
        self.repo.git.commit_signed(&commit).map_err(not_signed)
    }

    /// Writes a commit without a signature.
    pub(super) fn write_unsigned(
        &self,
        tree: ObjectId,
        parents: Vec<ObjectId>,
        message: &Message,
    ) -> Result<ObjectId, RunnerError> {
        let message = self.render(message)?;
        let commit = NewCommit { tree, parents, signature: self.signature(), message };
        Ok(self.store.write_commit(&commit)?)
    }

    /// Returns why a head does not count as signed for this branch; `None` where it does, or where no
    /// signature is required.
    pub(crate) fn not_vouched(&self, branch: &RefName, tip: &Tip) -> Result<Option<Refusal>, RunnerError> {
        if !self.settings.require_signature {
            return Ok(None);
        }
        let said = tip.event.as_ref().and_then(|event| event.last(BRANCH));
        if !self.repo.git.verify_commit(tip.id())? {
            return Ok(Some(Refusal::Unsigned));
        }
        Ok(match said {
            Some(said) if said == branch.short() => None,
            other => Some(Refusal::SignedElsewhere {
                key: BRANCH.of(tip.event.as_ref().map(|e| e.dialect).unwrap_or_default()),
                said: other.map(<[u8]>::to_vec),
                branch: branch.clone(),
            }),
        })
    }
}

/// Returns the error for a commit that could not be signed.
pub(super) fn not_signed(error: StoreError) -> RunnerError {
    match error {
        StoreError::Git { message, .. } => RunnerError::Signing { cause: message },
        other => RunnerError::Store(other),
    }
}

/// Returns a state event with the name of its branch, in place of another that may have been copied along.
fn signed_for(branch: &RefName, message: &Message) -> Message {
    let mut message = message.clone();
    if let Some(dialect) = Dialect::of(&message) {
        let key = BRANCH.of(dialect);
        message.trailers.retain(|trailer| trailer.key != key);
        message.trailers.push(Trailer { key: key.into(), value: branch.short().to_vec() });
    }
    message
}
