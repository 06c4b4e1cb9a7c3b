//! `land`: asks that a branch be landed on another. A request that can be known to be wrong is refused before
//! anything is written; a request that the head already holds is not written twice. Implements K60 (asking).

use super::super::Runner;
use super::{ChangeError, Inside, Written, refuse_leased, written};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::{HOP, RECOVERY_ID};
use crate::protocol::landing::{History, LAND, LANDED, Request};
use crate::protocol::message::Trailer;
use crate::protocol::name::StateName;
use crate::protocol::waits::AFTER;
use crate::store::RefName;

/// How a branch is to be landed.
#[derive(Debug, Clone)]
pub struct Landing {
    /// The target: the branch to land on.
    pub onto: RefName,
    /// Which history the target is to have; `None`: as the target's rules say.
    pub history: Option<History>,
    /// The branches that have to land first.
    pub after: Vec<RefName>,
}

impl Runner<'_> {
    /// Writes the request to land `branch`, unless its head is that request already.
    ///
    /// # Errors
    /// [`ChangeError::Itself`], [`ChangeError::NoRules`], [`ChangeError::MayNotLand`],
    /// [`ChangeError::NoBranch`] of either branch, [`ChangeError::Leased`], [`ChangeError::Raced`].
    pub fn ask_to_land(
        &self,
        branch: &RefName,
        landing: &Landing,
        inside: Option<&Inside>,
    ) -> Result<Written, ChangeError> {
        let onto = &landing.onto;
        let tip = self.fresh_tip(branch)?.ok_or_else(|| ChangeError::NoBranch(branch.clone()))?;
        if onto == branch {
            return Err(ChangeError::Itself(branch.clone()));
        }
        self.fresh_tip(onto)?;
        let target = self.target(onto)?.ok_or_else(|| ChangeError::NoBranch(onto.clone()))?;
        if let Err(why) = target.rules.unwrap_or_else(|| Err(String::new())) {
            return Err(ChangeError::NoRules(onto.clone(), why));
        }
        if let Some(refusal) = self.may_land_on(onto) {
            return Err(ChangeError::MayNotLand(refusal));
        }
        refuse_leased(branch, &tip)?;
        let state = StateName::new(LAND).map_err(|why| ChangeError::Message(why.to_string()))?;
        let request = Request { onto: onto.short().to_vec(), history: landing.history };
        let mut others: Vec<Trailer> = Vec::new();
        for after in &landing.after {
            let value = [after.short(), b"=", LANDED.as_bytes()].concat();
            others.push(Trailer { key: AFTER.into(), value });
        }
        let stands = tip.event.as_ref().is_some_and(|event| {
            let waits = event.message.all(AFTER).eq(others.iter().map(|trailer| &trailer.value[..]));
            Request::of(event).as_ref() == Some(&request) && waits
        });
        if stands {
            return Ok(written(branch, tip.id(), &state));
        }
        others.extend(inside.map(|inside| Dialect::Dwp.trailer(HOP, inside.hop.saturating_add(1))));
        others.push(Dialect::Dwp.trailer(RECOVERY_ID, uuid::Uuid::new_v4()));
        let message = request.message(&state, others);
        let commit = self.write_declared(branch, &message, tip.commit.tree, vec![tip.id()])?;
        self.write_on_head(branch, (tip.id(), commit), "aynig: land")?;
        Ok(written(branch, commit, &state))
    }
}
