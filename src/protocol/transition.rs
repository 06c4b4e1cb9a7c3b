//! The messages of the commits that move a branch: claim, renewal, outcome, stall, recovery.
//!
//! Each is built from values alone, so that the runner and a model of it share them. Every message
//! carries something unique (the run's or the recovery's id) and tells its whole story (trigger, hop),
//! so that nothing has to read history. Implements K8-K10, K20, K23, K27, K29 (its trailers).

use super::complete::Stall;
use super::declaration::{Declaration, travelling};
use super::dialect::{Dialect, Key};
use super::event::{
    Event, HOP, LEASE_SECONDS, ORIGIN_STATE, RECOVERY_ID, RUN_ID, RUNNER_ID, SOURCE, STALLED_RUN, STATE,
    TRIGGER,
};
use super::id::ObjectId;
use super::message::{Message, Trailer};
use super::name::{CANCELED, STALLED, StateName, WORKING};

/// What stays the same for the whole of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// UUID v4.
    pub id: String,
    /// The dialect of what it answers.
    pub dialect: Dialect,
    /// The runner's id.
    pub runner_id: String,
    /// The state that is answered.
    pub state: StateName,
    /// The commit that is answered.
    pub trigger: ObjectId,
    /// The dispatch count that the lease carries: the trigger's and one more.
    pub hop: u32,
    /// The lease's length in seconds.
    pub lease_seconds: u64,
    /// The remote, in remote mode.
    pub remote: Option<String>,
}

impl Dialect {
    /// A trailer that the runner manages.
    pub fn trailer(self, key: Key, value: impl ToString) -> Trailer {
        Trailer { key: key.of(self).into(), value: value.to_string().into_bytes() }
    }
}

impl Run {
    fn source(&self) -> Option<Trailer> {
        self.remote.as_ref().map(|name| self.dialect.trailer(SOURCE, format!("git:{name}")))
    }

    /// The lease's message (K10). `trigger` is the message of the commit that is answered.
    pub fn lease(&self, trigger: &Message) -> Message {
        let trailer = |key, value: &dyn ToString| self.dialect.trailer(key, value.to_string());
        let mut trailers = vec![
            trailer(STATE, &WORKING),
            trailer(ORIGIN_STATE, &self.state),
            trailer(RUN_ID, &self.id),
            trailer(RUNNER_ID, &self.runner_id),
            trailer(LEASE_SECONDS, &self.lease_seconds),
            trailer(TRIGGER, &self.trigger),
            trailer(HOP, &self.hop),
        ];
        trailers.extend(self.source());
        trailers.extend(travelling(trigger, self.dialect));
        Message::new(format!("aynig: working on {}", self.state), "", trailers)
    }

    /// What outcome and stall both carry (K27).
    pub fn trailers(&self) -> Vec<Trailer> {
        let trailer = |key, value: &dyn ToString| self.dialect.trailer(key, value.to_string());
        let mut trailers = vec![
            trailer(RUN_ID, &self.id),
            trailer(ORIGIN_STATE, &self.state),
            trailer(TRIGGER, &self.trigger),
            trailer(HOP, &self.hop),
        ];
        trailers.extend(self.source());
        trailers
    }

    /// The outcome's message (K20): `lease` is the message of the lease that it ends.
    pub fn outcome(&self, declared: &Declaration, lease: &Message) -> Message {
        let mut own = self.trailers();
        if declared.keep_trailers {
            own.extend(travelling(lease, self.dialect));
        }
        declared.message(self.dialect, &own)
    }

    /// The message of a run that failed (K23). `details` is text that was made safe already.
    pub fn stalled(&self, why: &Stall, details: &str) -> Message {
        let dialect = self.dialect;
        let mut trailers = vec![dialect.trailer(STATE, STALLED), dialect.trailer(STALLED_RUN, &self.id)];
        trailers.extend(self.trailers());
        Message::new(
            format!("aynig: {} stalled: {}", self.state, first_line(&why.to_string())),
            details,
            trailers,
        )
    }
}

/// The message that recovers an expired lease (K8): everything is copied from the lease.
pub fn recovered(lease: &Event, recovery_id: &str, details: &str) -> Message {
    let dialect = lease.dialect;
    let mut trailers = vec![dialect.trailer(STATE, STALLED)];
    let run = lease.run_id().unwrap_or("unknown");
    trailers.push(dialect.trailer(STALLED_RUN, run));
    copy(lease, &[RUN_ID, ORIGIN_STATE, TRIGGER, HOP, SOURCE], &mut trailers);
    trailers.push(dialect.trailer(RECOVERY_ID, recovery_id));
    let state = lease.text(ORIGIN_STATE).unwrap_or("run");
    Message::new(format!("aynig: {} stalled: lease expired", first_line(state)), details, trailers)
}

/// The message that takes a lease away by hand. It carries no run id: with it the run would take it
/// for its own outcome (K22).
pub fn canceled(lease: &Event, recovery_id: &str, details: &str) -> Message {
    let dialect = lease.dialect;
    let mut trailers = vec![dialect.trailer(STATE, CANCELED)];
    copy(lease, &[ORIGIN_STATE, TRIGGER, HOP, SOURCE], &mut trailers);
    trailers.push(dialect.trailer(RECOVERY_ID, recovery_id));
    let state = lease.text(ORIGIN_STATE).unwrap_or("run");
    Message::new(format!("aynig: {} canceled", first_line(state)), details, trailers)
}

/// A trigger's event once more, as written by a person: nothing that the runner manages is kept.
pub fn retried(state: &StateName, trigger: &Event, hop: Option<u32>) -> Message {
    let dialect = trigger.dialect;
    let mut trailers = vec![dialect.trailer(STATE, state)];
    trailers.extend(hop.map(|hop| dialect.trailer(HOP, hop)));
    let trigger = &trigger.message;
    let others = trigger.trailers.iter().filter(|t| !super::message::is_managed_key(&t.key));
    trailers.extend(others.filter(|t| t.is_writable()).cloned());
    let subject = format!("aynig: retry {state}");
    Message::new(subject, String::from_utf8_lossy(&trigger.body).into_owned(), trailers)
}

/// Copies trailers that are readable text.
fn copy(from: &Event, keys: &[Key], into: &mut Vec<Trailer>) {
    for key in keys {
        into.extend(from.text(*key).map(|value| from.dialect.trailer(*key, first_line(value))));
    }
}

fn first_line(s: &str) -> &str {
    s.lines().next().unwrap_or("")
}
