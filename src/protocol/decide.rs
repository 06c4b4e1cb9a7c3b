//! What a runner does about the head of a branch: one pure, total function.
//!
//! Only the head counts: history is never read, and nothing is remembered except when this runner first saw
//! the head. Whatever else may hold a head back or move it on is passed in as plain facts: pauses, waiting
//! messages, the states of other branches, what was spent. Implements K6, K7, K9, K29 (the grace), K47 (what
//! is delivered), K50-K52, K54 (what waits).

use super::accepts::Accepts;
use super::dialect::Dialect;
use super::event::Event;
use super::heard::heard_of;
use super::inbox::{Kind, MESSAGES_MAX, MessageId, QUESTION, answer_id};
use super::name::{BadName, StateName};
use super::pause::Holder;
use super::text::escape;
use super::usage::Usd;
use super::waits::{AFTER, After, BadTime, NOT_BEFORE, Want, not_before, show_time};
use std::fmt;

/// How far ahead of this machine's clock a committer date may lie before it is absurd, in seconds.
pub const AHEAD_MAX: i64 = 3600;
/// The lease length that is assumed where a lease does not give a readable one, in seconds.
pub const LEASE_DEFAULT: u64 = 300;

/// The head of a branch, as far as [`decide`] looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The head's state event; `None` where the head is no state event.
    pub event: Option<&'a Event>,
    /// The head's committer date in seconds since 1970; `None` where it is unreadable.
    pub committed: Option<i64>,
}

/// Which clock judges the lease of another runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// The lease's own committer date is compared with this machine's clock.
    Date,
    /// Only this machine's clock counts: the head must have stayed the same for the length of the lease and
    /// the grace since this runner first saw it.
    Observe,
}

/// A message that waits for a branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// The message's id.
    pub id: MessageId,
    /// The message's kind.
    pub kind: Kind,
}

/// The pause that holds a branch back (K50).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The pause's id.
    pub id: MessageId,
    /// Who holds the pause.
    pub holder: Holder,
    /// Why the branch is paused.
    pub reason: String,
}

/// What a head still waits for in other branches (K52).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmet {
    /// Branches that are not yet in the state that the head waits for.
    pub missing: Vec<Want>,
    /// Trailers of the wait that could not be read.
    pub unreadable: Vec<Vec<u8>>,
}

impl Unmet {
    /// True where nothing keeps the head waiting.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unreadable.is_empty()
    }
}

/// Returns what a head still waits for: the branches that are not in the wanted state, and the wants that
/// can't be read. `None` if it waits for nothing. `is_there` says whether a branch has the wanted state.
pub fn unmet(after: After, is_there: impl Fn(&Want) -> bool) -> Option<Unmet> {
    let missing: Vec<Want> = after.wants.into_iter().filter(|want| !is_there(want)).collect();
    Some(Unmet { missing, unreadable: after.unreadable }).filter(|unmet| !unmet.is_empty())
}

/// What a budget counts (K54).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Everything that was spent today.
    Day,
    /// Everything that was spent on the branch.
    Branch,
}

/// A budget that is used up (K54).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overspent {
    /// What the budget counts.
    pub per: Per,
    /// The amount that was spent.
    pub spent: Usd,
    /// The amount that may be spent.
    pub limit: Usd,
}

/// What is known besides the head. None of these facts matters where the head is a run's lease.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The pause that holds the branch.
    pub paused: Option<&'a Paused>,
    /// The messages that wait for the branch, in any order.
    pub waiting: &'a [Waiting],
    /// What the head still waits for in other branches.
    pub after: Option<&'a Unmet>,
    /// The budget that is used up.
    pub budget: Option<&'a Overspent>,
    /// The limit of dispatches of the branch, where it has one of its own.
    pub max_hops: Option<u32>,
}

/// The settings and facts that a runner decides by.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// Seconds that are added to a lease of the dialect `dwp` before it counts as expired.
    pub grace: u64,
    /// The same grace for leases of the dialect `aynig`, which only their commands renew (K29).
    pub aynig_grace: u64,
    /// How leases of other runners are judged.
    pub takeover: Takeover,
    /// The id of this runner; its own leases are judged by date even where those of others are observed.
    pub runner_id: &'a str,
    /// Most dispatches in a chain, where the branch has no limit of its own.
    pub max_hops: u32,
    /// Whether the head's state has a command that this runner can start.
    pub has_command: bool,
    /// What is known besides the head.
    pub facts: Facts<'a>,
}

/// Why a lease was not judged by its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// The lease's length is missing, unreadable, zero or absurd.
    Seconds,
    /// The lease's date is missing, unreadable or too far ahead.
    Date,
    /// The policy is to observe leases.
    Policy,
}

/// Why nothing is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// The head is no state event.
    NoState,
    /// The head's state can't be a command's name.
    InvalidState {
        /// The state as it was written.
        raw: Vec<u8>,
        /// What is wrong with it.
        why: BadName,
    },
    /// No command answers this state: the branch waits for a person, or has come to an end.
    NoCommand {
        /// The state.
        state: StateName,
    },
    /// The chain is as long as it may get.
    HopLimit {
        /// The state that is not dispatched.
        state: StateName,
        /// How many dispatches led to the head.
        hop: u32,
        /// The limit on dispatches.
        max: u32,
    },
    /// There is something to do about the head, but something holds it back.
    Held {
        /// The state that is not dispatched.
        state: StateName,
        /// What holds the head back.
        by: Held,
    },
}

/// What holds back a head for which there is something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// The branch is paused.
    Paused(Paused),
    /// The moment before which the head is not dispatched, in seconds since 1970, has not come, or can't be
    /// read.
    NotBefore(Result<i64, BadTime>),
    /// Other branches are not yet in the states that the head waits for.
    After(Unmet),
    /// A budget is used up.
    Budget(Overspent),
}

impl Held {
    /// Returns what holds the head back as one word, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Held::Paused(_) => "paused",
            Held::NotBefore(_) => "not-before",
            Held::After(_) => "after",
            Held::Budget(_) => "budget",
        }
    }
}

impl fmt::Display for Held {
    /// Writes the reason in one line, even if what the pause's author wrote has several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Held::Paused(Paused { holder, reason, .. }) => {
                write!(f, "paused by {}", escape(holder.to_string().as_bytes()))?;
                match reason.lines().next().filter(|reason| !reason.is_empty()) {
                    Some(reason) => write!(f, ": {}", escape(reason.as_bytes())),
                    None => Ok(()),
                }
            }
            Held::NotBefore(Ok(until)) => write!(f, "not before {}", show_time(*until)),
            Held::NotBefore(Err(BadTime(raw))) => {
                write!(f, "its '{NOT_BEFORE}: {}' is no time", escape(&raw[..raw.len().min(80)]))
            }
            Held::After(Unmet { missing, unreadable }) => {
                if let Some(raw) = unreadable.first() {
                    return write!(
                        f,
                        "its '{AFTER}: {}' is no '<branch>=<state>'",
                        escape(&raw[..raw.len().min(80)])
                    );
                }
                let mut wants =
                    missing.iter().map(|want| format!("'{}' in '{}'", escape(&want.branch), want.state));
                let first: Vec<String> = wants.by_ref().take(3).collect();
                write!(f, "waits for {}", first.join(", "))?;
                match wants.count() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Held::Budget(Overspent { per, spent, limit }) => {
                let per = match per {
                    Per::Day => "today",
                    Per::Branch => "on this branch",
                };
                write!(f, "{spent} USD were spent {per}, the budget is {limit} USD")
            }
        }
    }
}

/// What to do about a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Nothing(Idle),
    /// A run holds the branch.
    Leased {
        /// The last second in which the lease counts, grace included, by this machine's clock.
        until: i64,
        /// Why the lease was not judged by its date; `None` where it was.
        observed: Option<Observed>,
    },
    /// The lease has expired, so its holder counts as gone: recover the branch, then decide again.
    Expired {
        /// The last second in which the lease counted, grace included, by this machine's clock.
        since: i64,
        /// Why the lease was not judged by its date; `None` where it was.
        observed: Option<Observed>,
    },
    /// Write a trigger of this state that brings these messages.
    Deliver {
        /// The state that the messages bring.
        state: StateName,
        /// The messages, in the order of their ids; never empty.
        take: Vec<MessageId>,
    },
    /// Claim the branch and run this state's command.
    Dispatch {
        /// The state.
        state: StateName,
    },
}

/// Judges one head at `now`. `first_seen` is when this runner first found the head on the branch, by its own
/// clock; `None` means just now. Times are whole seconds since 1970.
pub fn decide(head: Head<'_>, first_seen: Option<i64>, now: i64, policy: Policy<'_>) -> Decision {
    let Some(event) = head.event else {
        return Decision::Nothing(Idle::NoState);
    };
    let state = match &event.state {
        Ok(state) => state,
        Err((raw, why)) => {
            return Decision::Nothing(Idle::InvalidState { raw: raw.clone(), why: *why });
        }
    };
    if state.is_working() {
        return judge_lease(event, head.committed, first_seen.unwrap_or(now), now, policy);
    }
    let decision = go_on(event, state, now, policy);
    let rests = matches!(decision, Decision::Nothing(Idle::NoCommand { .. } | Idle::HopLimit { .. }));
    match policy.facts.paused.filter(|_| !rests) {
        // A pause holds nothing back where nothing would be done anyway.
        Some(paused) => held(state, Held::Paused(paused.clone())),
        None => decision,
    }
}

fn held(state: &StateName, by: Held) -> Decision {
    Decision::Nothing(Idle::Held { state: state.clone(), by })
}

/// Decides about a head that no run holds, as if its branch were not paused.
fn go_on(event: &Event, state: &StateName, now: i64, policy: Policy<'_>) -> Decision {
    if let Some((state, take)) = deliverable(event, policy) {
        return Decision::Deliver { state, take };
    }
    if !policy.has_command {
        return Decision::Nothing(Idle::NoCommand { state: state.clone() });
    }
    if let Some(until) = not_before(event).filter(|until| !until.as_ref().is_ok_and(|until| *until <= now)) {
        return held(state, Held::NotBefore(until));
    }
    if let Some(unmet) = policy.facts.after.filter(|unmet| !unmet.is_empty()) {
        return held(state, Held::After(unmet.clone()));
    }
    if let Some(overspent) = policy.facts.budget {
        return held(state, Held::Budget(overspent.clone()));
    }
    let hop = event.hop();
    let max = policy.facts.max_hops.unwrap_or(policy.max_hops);
    if hop >= max {
        return Decision::Nothing(Idle::HopLimit { state: state.clone(), hop, max });
    }
    Decision::Dispatch { state: state.clone() }
}

/// Returns the state that the oldest acceptable message brings, and the ids of all messages that bring that
/// state.
fn deliverable(event: &Event, policy: Policy<'_>) -> Option<(StateName, Vec<MessageId>)> {
    // The command first hears the messages that this head brought; only then are others delivered.
    if policy.facts.waiting.is_empty() || is_undispatched_delivery(event, policy.has_command) {
        return None;
    }
    let accepts = Accepts::of(event);
    let mut taken: Vec<(MessageId, &StateName)> = policy
        .facts
        .waiting
        .iter()
        .filter(|waiting| may_hear(event, waiting))
        .filter_map(|waiting| Some((waiting.id, accepts.state(&waiting.kind)?)))
        .collect();
    taken.sort_by_key(|(id, _)| *id);
    let (_, state) = *taken.first()?;
    let same = taken.iter().filter(|(_, brought)| *brought == state).map(|(id, _)| *id);
    Some((state.clone(), same.take(MESSAGES_MAX).collect()))
}

/// True for a trigger that brought messages and whose command has not heard them yet.
pub fn is_undispatched_delivery(event: &Event, has_command: bool) -> bool {
    has_command && !heard_of(&event.message, event.dialect).is_empty()
}

/// True where the head may take in this message. Only an answer to another question than the head's own is
/// refused, so that an old approval approves nothing new (K49a).
pub fn may_hear(event: &Event, waiting: &Waiting) -> bool {
    !waiting.kind.is_answer() || asked_by(event).is_some_and(|asked| answer_id(asked) == waiting.id)
}

/// Returns the id of the question whose answer a head waits for.
pub fn asked_by(event: &Event) -> Option<MessageId> {
    event.message.last(QUESTION).and_then(|id| MessageId::parse(id).ok())
}

fn judge_lease(
    event: &Event,
    committed: Option<i64>,
    first_seen: i64,
    now: i64,
    policy: Policy<'_>,
) -> Decision {
    let foreign = event.text(super::event::RUNNER_ID) != Some(policy.runner_id);
    let seconds = event.lease_seconds();
    let date = committed.filter(|date| *date >= 0 && *date <= now.saturating_add(AHEAD_MAX));
    let (from, observed) = match (seconds, date) {
        (None, _) => (first_seen, Some(Observed::Seconds)),
        (Some(_), None) => (first_seen, Some(Observed::Date)),
        (Some(_), Some(_)) if foreign && policy.takeover == Takeover::Observe => {
            (first_seen, Some(Observed::Policy))
        }
        (Some(_), Some(date)) => (date, None),
    };
    let grace = match event.dialect {
        Dialect::Dwp => policy.grace,
        Dialect::Aynig => policy.aynig_grace,
    };
    let length = seconds.unwrap_or(LEASE_DEFAULT).saturating_add(grace);
    let until = from.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
    if now > until {
        Decision::Expired { since: until, observed }
    } else {
        Decision::Leased { until, observed }
    }
}

#[cfg(test)]
mod tests;
