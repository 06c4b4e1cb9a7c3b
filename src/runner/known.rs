//! What holds a branch back, or moves it on, besides its head: pauses, messages, other branches.
//!
//! It is read only for a head that something may be done about, so a branch that none of this concerns costs
//! no more than a look for pauses. What can't be read holds a branch rather than letting it go. Implements
//! K47 (what waits), K50, K52 (what is looked at).

use super::inbox::Inbox;
use super::lease::Claim;
use super::report::{Note, Report, Verdict};
use super::{Runner, RunnerError, Tip};
use crate::protocol::accepts::Accepts;
use crate::protocol::decide::{Facts, Held, Idle, Overspent, Paused, Unmet, is_undispatched_delivery};
use crate::protocol::event::{Event, RECOVERY_ID};
use crate::protocol::flow::{FLOWS, slug_of};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{INBOX, MessageId, PAUSED, derived_id, inbox_prefix, parse_id_ref};
use crate::protocol::landing::Request;
use crate::protocol::message::Message;
use crate::protocol::pause::Pause;
use crate::protocol::swap::{Patience, try_again};
use crate::protocol::transition::retried;
use crate::protocol::waits::After;
use crate::store::{Commit, RefName, StoreError, Unread, pattern};
use std::cell::OnceCell;
use std::time::Duration;

/// What is known of a branch besides its head.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The pause that holds the branch.
    pub paused: Option<Paused>,
    /// The messages that wait for it.
    pub inbox: Inbox,
    /// What the branch waits for on other branches and is still missing.
    pub after: Option<Unmet>,
    /// The budget that is used up, if one is.
    pub budget: Option<Overspent>,
    /// The most dispatches in a chain, where the branch has a limit of its own.
    pub max_hops: Option<u32>,
}

/// How many dispatches beyond the limit of flows a node may have: the turn that reached the limit is still
/// routed, which pauses the flow and says why.
const FLOW_MORE: u32 = 8;

impl Known {
    /// Returns the notes about messages that are not delivered.
    pub(crate) fn passed_over(&self) -> impl Iterator<Item = Note> {
        let said = |(name, why): &(RefName, String)| Note::PassedOver(name.clone(), why.clone());
        self.inbox.passed_over.iter().map(said).collect::<Vec<_>>().into_iter()
    }

    /// Returns these facts as `decide` takes them.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            paused: self.paused.as_ref(),
            waiting: &self.inbox.waiting,
            after: self.after.as_ref(),
            budget: self.budget.as_ref(),
            max_hops: self.max_hops,
        }
    }
}

/// The pauses that stand, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Vec<(Paused, Pause)>);

impl Pauses {
    /// Returns the first pause that holds a branch.
    pub(crate) fn holding(&self, branch: &RefName) -> Option<&Paused> {
        let holds = |pause: &Pause| pause.holds(|patterns| pattern::any(patterns, branch));
        self.0.iter().find(|(_, pause)| holds(pause)).map(|(paused, _)| paused)
    }
}

/// A pause as it was read from its ref.
pub(super) struct ReadPause {
    /// The pause's ref.
    pub name: RefName,
    /// The pause's id, or one derived from the ref's name where that name is not a valid id.
    pub id: MessageId,
    /// What the ref holds, where it can be read.
    pub at: Option<ObjectId>,
    /// The commit that the ref holds, where that can be read.
    pub commit: Option<Commit>,
    /// Which branches it holds; a pause that can't be read holds every branch.
    pub pause: Pause,
}

impl ReadPause {
    fn new(name: RefName, at: Option<ObjectId>, commit: Option<Commit>, pause: Pause) -> Self {
        let id = parse_id_ref(PAUSED, name.as_bytes());
        let id = id.unwrap_or_else(|| derived_id(0, &[b"pause", name.as_bytes()]));
        Self { name, id, at, commit, pause }
    }
}

/// What one look at branches has read already.
#[derive(Debug, Default)]
pub(crate) struct Around {
    pauses: OnceCell<Pauses>,
    /// Set once the inboxes of all branches were fetched.
    inboxes: OnceCell<()>,
    /// The candidates that are being checked before they land: the target of each, without `refs/heads/`, and
    /// its branch.
    landings: OnceCell<Vec<(Vec<u8>, RefName)>>,
    /// True for a look at one branch alone.
    one: bool,
    /// Messages that can't be moved to `heard`, each with the ref that is in the way there.
    in_the_way: Vec<(RefName, RefName)>,
}

impl Around {
    /// Returns a look at one branch.
    pub(crate) fn one() -> Self {
        Self { one: true, ..Self::default() }
    }

    /// Returns the candidates that are being checked before they land.
    pub(super) fn landings(&self, runner: &Runner<'_>) -> Result<&[(Vec<u8>, RefName)], StoreError> {
        if self.landings.get().is_none() {
            let _ = self.landings.set(runner.landings()?);
        }
        Ok(self.landings.get().map_or(&[], Vec::as_slice))
    }

    /// Returns a look at one branch that leaves these messages where they are.
    pub(super) fn one_without(in_the_way: &[(RefName, RefName)]) -> Self {
        Self { in_the_way: in_the_way.to_vec(), ..Self::one() }
    }

    /// Fetches what waits for a branch of a remote. A look at many branches fetches once for all of them.
    fn hear_inbox(&self, runner: &Runner<'_>, branch: &RefName) -> Result<(), StoreError> {
        if self.one {
            return runner.store.hear_shared(&[&inbox_prefix(branch.short())]);
        }
        if self.inboxes.get().is_none() {
            runner.store.hear_shared(&[INBOX])?;
            let _ = self.inboxes.set(());
        }
        Ok(())
    }
}

/// True for a head that takes messages.
pub(super) fn takes_any(event: &Event) -> bool {
    !Accepts::of(event).is_empty()
}

impl Runner<'_> {
    /// Returns the pause that holds a branch at this moment. A remote is asked again, because what came with
    /// the heads may be older.
    fn held_now(&self, branch: &RefName) -> Result<Option<Paused>, StoreError> {
        let mut waits = (0..).map_while(|tries| try_again(Patience::Tries, tries, Duration::ZERO));
        let heard: &[&[u8]] = if slug_of(branch.short()).is_some() { &[PAUSED, FLOWS] } else { &[PAUSED] };
        loop {
            match self.store.hear_shared(heard) {
                Ok(()) => return self.held_by(&self.standing_pauses()?, branch),
                Err(error) => match waits.next() {
                    Some(wait) => std::thread::sleep(wait),
                    None => return Err(error),
                },
            }
        }
    }

    /// Returns the first of these pauses that holds a branch, or else the flow that does (N12).
    fn held_by(&self, pauses: &Pauses, branch: &RefName) -> Result<Option<Paused>, StoreError> {
        match pauses.holding(branch) {
            Some(paused) => Ok(Some(paused.clone())),
            None => Ok(self.of_flows(branch)?.held),
        }
    }

    pub(crate) fn standing_pauses(&self) -> Result<Pauses, StoreError> {
        let paused = |ReadPause { id, pause, .. }| {
            (Paused { id, holder: pause.holder.clone(), reason: pause.reason.clone() }, pause)
        };
        Ok(Pauses(self.read_pauses()?.into_iter().map(paused).collect()))
    }

    /// Returns the pauses that stand, oldest first, with what their refs hold. A pause that can't be read, or
    /// whose name is no id, holds every branch, but lets every other verb work.
    pub(super) fn read_pauses(&self) -> Result<Vec<ReadPause>, StoreError> {
        let scan = self.store.scan_all(&String::from_utf8_lossy(PAUSED))?;
        let mut all = Vec::new();
        for (name, at) in scan.refs {
            let read = self.store.read_commit(at);
            let unreadable = |why: &str| {
                let or = if name.is_own() { " or 'git aynig resume --all'" } else { "" };
                let mend = format!("'git update-ref -d {name}'{or}");
                Pause::unreadable(&name.to_string(), why, &mend)
            };
            let pause = match &read {
                _ if parse_id_ref(PAUSED, name.as_bytes()).is_none() => unreadable("its name is no id"),
                Ok(commit) => Pause::read(&Message::parse(&commit.message)),
                Err(why) => unreadable(&why.to_string()),
            };
            all.push(ReadPause::new(name, Some(at), read.ok(), pause));
        }
        for (name, why) in scan.unreadable {
            let mend = match &why {
                Unread::Symbolic(_) => format!("'git symbolic-ref -d {name}'"),
                // Git does not delete a ref that it can't read, either.
                Unread::Content(_) | Unread::Tables(_) | Unread::System(_) => {
                    format!("to remove the file {name} in the repository's .git")
                }
            };
            let pause = Pause::unreadable(&name.to_string(), &why.to_string(), &mend);
            all.push(ReadPause::new(name, None, None, pause));
        }
        all.sort_by_key(|read| read.id);
        Ok(all)
    }

    /// Returns what is known of a branch whose head this is. `around` keeps what is read once for all
    /// branches of a look.
    pub(crate) fn known(
        &self,
        branch: &RefName,
        tip: &Tip,
        has_command: bool,
        around: &Around,
    ) -> Result<Known, RunnerError> {
        let Some(event) = tip.event.as_ref().filter(|event| !event.is_working()) else {
            return Ok(Known::default());
        };
        let hears = !is_undispatched_delivery(event, has_command) && takes_any(event);
        if !hears && !has_command {
            return Ok(Known::default());
        }
        let paused = match around.pauses.get() {
            Some(pauses) => self.held_by(pauses, branch)?,
            None => {
                let read = self.standing_pauses()?;
                self.held_by(around.pauses.get_or_init(|| read), branch)?
            }
        };
        if hears {
            around.hear_inbox(self, branch)?;
        }
        Ok(Known {
            paused,
            inbox: if hears {
                self.inbox_for(branch, tip, event, &around.in_the_way)?
            } else {
                Inbox::default()
            },
            after: if has_command { self.queued(event, around)? } else { None },
            budget: if has_command { self.overspent(tip)? } else { None },
            max_hops: branch.is_node().then(|| self.settings.flow_hops.saturating_add(FLOW_MORE)),
        })
    }

    /// Ends a lease before its command was started: the trigger is written once more, so that it is
    /// dispatched when what stood in the way is over. False where another process moved the branch first.
    fn give_back(
        &self,
        branch: &RefName,
        claim: &Claim,
        (why, until): (&str, Duration),
    ) -> Result<bool, RunnerError> {
        let state = &claim.run.state;
        if let Some(trigger) = &claim.trigger.event {
            let hop = Some(trigger.hop()).filter(|hop| *hop > 0);
            let mut message = retried(state, trigger, hop);
            message.subject = format!("aynig: {state} waits: {why}").into_bytes();
            message.trailers.push(trigger.dialect.trailer(RECOVERY_ID, uuid::Uuid::new_v4()));
            let commit = self.write(branch, claim.tree, vec![claim.lease.id], &message)?;
            if !self.end_lease(branch, claim.lease.id, commit, &format!("aynig: {why}"), until)? {
                return Ok(false);
            }
            self.unfollow(&claim.run.id, &[claim.lease.id, claim.first]);
        }
        Ok(true)
    }

    /// Looks once more for a pause, between the claim and the start. A pause that was made meanwhile ends the
    /// evaluation, and so does an error that keeps the runner from looking. Neither leaves a lease behind, if
    /// the branch can still be written to.
    pub(super) fn paused_since(
        &self,
        branch: &RefName,
        claim: &Claim,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let held = match self.held_now(branch) {
            Ok(held) => held,
            Err(error) => {
                report.claimed = Some(claim.run.id.clone());
                // Whether this succeeds or not, the error to report is the one that kept the pauses from
                // being read.
                let _ = self.give_back(branch, claim, ("pauses could not be read", self.soon()));
                return Err(error.into());
            }
        };
        let Some(paused) = held else { return Ok(None) };
        let by = Held::Paused(paused);
        Ok(Some(match self.give_back(branch, claim, ("paused", claim.ends()))? {
            true => Verdict::Idle(Idle::Held { state: claim.run.state.clone(), by }),
            false => Verdict::LostRace,
        }))
    }

    /// Returns those of these heads that wait for nothing any more, because what they waited for came, or a
    /// message did. Anything else that holds them is found when they are evaluated.
    pub(super) fn awaited(&self, heads: Vec<(RefName, Tip)>) -> Vec<(RefName, ObjectId)> {
        let (mut ready, around) = (Vec::new(), Around::default());
        for (branch, tip) in heads {
            let Some(event) = &tip.event else { continue };
            let queues = !After::of(event).is_empty() || Request::of(event).is_some();
            let waits = queues && self.queued(event, &around).is_ok_and(|unmet| unmet.is_none());
            // An inbox that can't be read is reported when its branch is evaluated; the other heads are
            // looked at all the same.
            let hears = takes_any(event) && self.inbox_of(&branch).is_ok_and(|found| !found.is_empty());
            if waits || hears {
                ready.push((branch, tip.id()));
            }
        }
        ready.sort();
        ready
    }
}
