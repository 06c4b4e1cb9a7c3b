//! The messages of the commits that move a branch: claim, renewal, outcome, stall, recovery.
//!
//! Each message is built from values alone, so that the runner and the model of the protocol share the code.
//! Every message carries something unique (the run's or the recovery's id) and tells its whole story
//! (trigger, hop), so that nothing has to read history. Implements K8-K10, K20, K23, K27, K29 (its trailers),
//! K47 (what is heard again).

use super::body_line::body_said;
use super::complete::Stall;
use super::declaration::{Declaration, travelling};
use super::dialect::{Dialect, Key, PAUSED_BY};
use super::event::{
    Event, HOP, LEASE_SECONDS, ORIGIN_STATE, RECOVERY_ID, RUN_ID, RUNNER_ID, SOURCE, STALLED_RUN, STATE,
    TRIGGER,
};
use super::heard::{heard_again, heard_trailers};
use super::id::ObjectId;
use super::inbox::{MessageId, QUESTION};
use super::landing::{self, Candidate, LAND};
use super::message::{Message, Trailer};
use super::name::{CANCELED, STALLED, StateName, WORKING};
use super::waits::{AFTER, NOT_BEFORE};

/// The values that stay the same for the whole of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The run's id, a UUID v4.
    pub id: String,
    /// The dialect of the trigger.
    pub dialect: Dialect,
    /// The id of the runner that executes the run.
    pub runner_id: String,
    /// The state that the run answers.
    pub state: StateName,
    /// The commit that the run answers.
    pub trigger: ObjectId,
    /// The dispatch count that the lease carries: the trigger's plus one.
    pub hop: u32,
    /// The lease's length in seconds.
    pub lease_seconds: u64,
    /// The name of the remote; `None` outside of remote mode.
    pub remote: Option<String>,
}

impl Dialect {
    /// Returns a trailer that the runner manages, with its key as this dialect spells it.
    pub fn trailer(self, key: Key, value: impl ToString) -> Trailer {
        Trailer { key: key.of(self).into(), value: value.to_string().into_bytes() }
    }
}

impl Run {
    fn source(&self) -> Option<Trailer> {
        self.remote.as_ref().map(|name| self.dialect.trailer(SOURCE, format!("git:{name}")))
    }

    /// Returns the lease's message (K10). `trigger` is the message of the commit that the run answers.
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
        trailers.extend(heard_trailers(trigger, self.dialect));
        trailers.extend(travelling(trigger, self.dialect));
        Message::new(format!("aynig: working on {}", self.state), "", trailers)
    }

    /// Returns the trailers that an outcome and a stall both carry (K27).
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

    /// Returns the outcome's message (K20). `lease` is the message of the lease that the outcome ends.
    pub fn outcome(&self, declared: &Declaration, lease: &Message) -> Message {
        let mut own = self.trailers();
        if declared.keep_trailers {
            own.extend(travelling(lease, self.dialect));
        }
        declared.message(self.dialect, &own)
    }

    /// Returns the message of the `stalled` commit of a run that failed (K23). `lease` is the message of the
    /// lease that the commit ends, `details` text that was already made safe.
    pub fn stalled(&self, why: &Stall, details: &str, lease: &Message) -> Message {
        let dialect = self.dialect;
        let mut trailers = vec![dialect.trailer(STATE, STALLED), dialect.trailer(STALLED_RUN, &self.id)];
        trailers.extend(self.trailers());
        trailers.extend(heard_trailers(lease, dialect));
        Message::new(
            format!("aynig: {} stalled: {}", self.state, first_line(&why.short())),
            details,
            trailers,
        )
    }
}

/// Returns the message that recovers an expired lease (K8): all that it says of the run is copied from the
/// lease.
pub fn recovered(lease: &Event, recovery_id: &str, details: &str) -> Message {
    let dialect = lease.dialect;
    let mut trailers = vec![dialect.trailer(STATE, STALLED)];
    let run = lease.run_id().unwrap_or("unknown");
    trailers.push(dialect.trailer(STALLED_RUN, run));
    copy(lease, &[RUN_ID, ORIGIN_STATE, TRIGGER, HOP, SOURCE], &mut trailers);
    trailers.push(dialect.trailer(RECOVERY_ID, recovery_id));
    trailers.extend(heard_trailers(&lease.message, dialect));
    let state = lease.text(ORIGIN_STATE).unwrap_or("run");
    Message::new(format!("aynig: {} stalled: lease expired", first_line(state)), details, trailers)
}

/// Returns the message that takes a lease away for `cancel` or for a pause. It carries no run id: with one,
/// the run would take the commit for its own outcome (K22).
pub fn canceled(lease: &Event, recovery_id: &str, details: &str, paused_by: Option<MessageId>) -> Message {
    let dialect = lease.dialect;
    let mut trailers = vec![dialect.trailer(STATE, CANCELED)];
    copy(lease, &[ORIGIN_STATE, TRIGGER, HOP, SOURCE], &mut trailers);
    trailers.push(dialect.trailer(RECOVERY_ID, recovery_id));
    trailers.extend(paused_by.map(|pause| dialect.trailer(PAUSED_BY, pause)));
    trailers.extend(heard_trailers(&lease.message, dialect));
    let state = lease.text(ORIGIN_STATE).unwrap_or("run");
    Message::new(format!("aynig: {} canceled", first_line(state)), details, trailers)
}

/// Returns the message that asks for a trigger again, as a person would write it. Of the trailers that the
/// runner manages only heard messages and conflicts are kept. Waits and the question are left out: what the
/// trigger waited for has come, and what it asked was answered.
pub fn retried(state: &StateName, trigger: &Event, hop: Option<u32>) -> Message {
    let dialect = trigger.dialect;
    // A landing candidate becomes a request again, so that a new one is made: the target may have moved
    // since.
    let land = StateName::new(LAND).ok().filter(|_| Candidate::of(trigger).is_some());
    let state = land.as_ref().unwrap_or(state);
    let mut trailers = vec![dialect.trailer(STATE, state)];
    trailers.extend(hop.map(|hop| dialect.trailer(HOP, hop)));
    let trigger = &trigger.message;
    trailers.extend(heard_again(trigger, dialect));
    let is_over = |key: &str| [QUESTION, NOT_BEFORE, AFTER, landing::AS].contains(&key);
    let others = trigger.trailers.iter();
    let others = others.filter(|t| !super::message::is_managed_key(&t.key) && !is_over(&t.key));
    trailers.extend(others.filter(|t| t.is_writable()).cloned());
    let subject = format!("aynig: retry {state}");
    Message::new(subject, body_said(trigger), trailers)
}

/// Copies the trailers of these keys, where their values are readable text.
fn copy(from: &Event, keys: &[Key], into: &mut Vec<Trailer>) {
    for key in keys {
        into.extend(from.text(*key).map(|value| from.dialect.trailer(*key, first_line(value))));
    }
}

fn first_line(s: &str) -> &str {
    s.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::complete::Exit;

    const COMMIT: &str = "1111111111111111111111111111111111111111";

    fn run(dialect: Dialect, remote: Option<&str>) -> Run {
        Run {
            id: "r1".into(),
            dialect,
            runner_id: "host-1".into(),
            state: StateName::new("build").unwrap(),
            trigger: COMMIT.parse().unwrap(),
            hop: 3,
            lease_seconds: 300,
            remote: remote.map(str::to_owned),
        }
    }

    fn message(trailers: &[(&str, &str)]) -> Message {
        Message::new("s", "Why.", trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect())
    }

    fn event(trailers: &[(&str, &str)]) -> Event {
        Event::of(message(trailers)).unwrap()
    }

    /// Returns subject, body and trailers as they are read back from the message that would be committed
    /// (K2).
    fn read(message: &Message) -> (String, String, Vec<(String, String)>) {
        let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).unwrap();
        let message = Message::parse(&message.render().unwrap());
        let trailers = message.trailers.iter().map(|t| (t.key.clone(), text(&t.value))).collect();
        (text(&message.subject), text(&message.body), trailers)
    }

    fn says(message: &Message, subject: &str, body: &str, trailers: &[(&str, &str)]) {
        let trailers = trailers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(read(message), (subject.to_owned(), body.to_owned(), trailers));
    }

    /// K10.
    #[test]
    fn a_lease_tells_its_whole_run_and_carries_the_triggers_trailers_on() {
        let trigger =
            message(&[("dwp-state", "build"), ("dwp-hop", "2"), ("dwp-ticket", "7"), ("by", "ada")]);
        let own = [
            ("dwp-state", "working"),
            ("dwp-origin-state", "build"),
            ("dwp-run-id", "r1"),
            ("dwp-runner-id", "host-1"),
            ("dwp-lease-seconds", "300"),
            ("dwp-trigger", COMMIT),
            ("dwp-hop", "3"),
        ];
        let local = [&own[..], &[("dwp-ticket", "7")]].concat();
        says(&run(Dialect::Dwp, None).lease(&trigger), "aynig: working on build", "", &local);
        let remote = [&own[..], &[("dwp-source", "git:origin"), ("dwp-ticket", "7")]].concat();
        says(&run(Dialect::Dwp, Some("origin")).lease(&trigger), "aynig: working on build", "", &remote);
    }

    /// K20, K27, K30: the lease's workflow trailers are copied only where the declaration asks for it.
    #[test]
    fn an_outcome_tells_the_whole_story_and_keeps_trailers_where_asked() {
        let run = run(Dialect::Dwp, Some("origin"));
        let lease = run.lease(&message(&[("dwp-ticket", "7")]));
        let own = [
            ("dwp-state", "review"),
            ("dwp-run-id", "r1"),
            ("dwp-origin-state", "build"),
            ("dwp-trigger", COMMIT),
            ("dwp-hop", "3"),
            ("dwp-source", "git:origin"),
        ];
        for (keep, kept) in [(false, &[][..]), (true, &[("dwp-ticket", "7")][..])] {
            let json =
                format!(r#"{{"state":"review","body":"b","keep_trailers":{keep},"trailers":["k: v"]}}"#);
            let declared = Declaration::parse(json.as_bytes()).unwrap();
            let trailers = [&own[..], kept, &[("k", "v")]].concat();
            says(&run.outcome(&declared, &lease), "chore: set review", "b", &trailers);
        }
    }

    /// K23, K27.
    #[test]
    fn a_stalled_commit_names_the_run_and_says_on_one_line_what_ended_it() {
        let trailers = [
            ("aynig-state", "stalled"),
            ("aynig-stalled-run", "r1"),
            ("aynig-run-id", "r1"),
            ("aynig-origin-state", "build"),
            ("aynig-trigger", COMMIT),
            ("aynig-hop", "3"),
        ];
        let run = run(Dialect::Aynig, None);
        let lease = message(&[]);
        let failed = run.stalled(&Stall::Exit(Exit::Code(1)), "dwp-state: x", &lease);
        says(&failed, "aynig: build stalled: exit 1", "dwp-state: x", &trailers);
        let unfilled = run.stalled(&Stall::Slot("disk full\nhint: x".into()), "", &lease);
        says(&unfilled, "aynig: build stalled: worktree: disk full", "", &trailers);
    }

    /// K8: a recovery says of the run what the lease says, which may be nothing, and no more.
    #[test]
    fn a_recovery_copies_what_the_lease_says_and_is_unlike_every_other() {
        let lease = event(&[
            ("dwp-state", "working"),
            ("dwp-runner-id", "host-1"),
            ("dwp-source", "git:origin"),
            ("dwp-hop", "3"),
            ("dwp-trigger", COMMIT),
            ("dwp-origin-state", "build"),
            ("dwp-run-id", "r1"),
            ("dwp-ticket", "7"),
        ]);
        let trailers = [
            ("dwp-state", "stalled"),
            ("dwp-stalled-run", "r1"),
            ("dwp-run-id", "r1"),
            ("dwp-origin-state", "build"),
            ("dwp-trigger", COMMIT),
            ("dwp-hop", "3"),
            ("dwp-source", "git:origin"),
            ("dwp-recovery-id", "x1"),
        ];
        says(&recovered(&lease, "x1", "d"), "aynig: build stalled: lease expired", "d", &trailers);
        let bare = recovered(&event(&[("dwp-state", "working"), ("dwp-hop", "")]), "x2", "");
        let trailers = [("dwp-state", "stalled"), ("dwp-stalled-run", "unknown"), ("dwp-recovery-id", "x2")];
        says(&bare, "aynig: run stalled: lease expired", "", &trailers);
    }

    /// K22: with a run id, the run would take the commit for its own outcome.
    #[test]
    fn a_cancellation_carries_no_run_id() {
        let lease = [("aynig-state", "working"), ("aynig-origin-state", "build"), ("aynig-run-id", "r1")];
        let trailers =
            [("aynig-state", "canceled"), ("aynig-origin-state", "build"), ("aynig-recovery-id", "x1")];
        says(&canceled(&event(&lease), "x1", "d", None), "aynig: build canceled", "d", &trailers);
        let id = "0192f0a0-1234-7abc-8def-0123456789ab";
        let held = [&trailers[..], &[("aynig-paused-by", id)]].concat();
        let pause = MessageId::parse(id).ok();
        says(&canceled(&event(&lease), "x1", "d", pause), "aynig: build canceled", "d", &held);
        let bare = canceled(&event(&[("aynig-state", "working")]), "x1", "", None);
        assert_eq!(read(&bare).0, "aynig: run canceled");
    }

    /// K47: a run that is asked for again hears the same messages, and its outcome carries none of them.
    #[test]
    fn what_a_trigger_brings_is_copied_by_all_that_may_lead_to_it_again() {
        let id = "0192f0a0-1234-7abc-8def-0123456789ab";
        let heard = Trailer::new("dwp-heard", format!("{id} {COMMIT}"));
        let mut trigger = message(&[("dwp-state", "rework"), ("dwp-conflict", COMMIT), ("dwp-question", id)]);
        trigger.trailers.extend([heard.clone(), heard.clone()]);
        trigger.trailers.extend(
            [("dwp-accepts", "answer=go"), ("dwp-not-before", "5"), ("dwp-after", "a=b")]
                .map(|(key, value)| Trailer::new(key, value)),
        );
        let of = |message: &Message, key: &str| message.all(key).count();
        let run = run(Dialect::Dwp, None);
        let lease = run.lease(&trigger);
        let event = Event::of(lease.clone()).unwrap();
        let stalled = run.stalled(&Stall::Exit(Exit::Code(1)), "", &lease);
        for copy in [&lease, &stalled, &recovered(&event, "x", ""), &canceled(&event, "x", "", None)] {
            assert_eq!((of(copy, "dwp-heard"), of(copy, "dwp-conflict")), (2, 0), "{copy:?}");
        }
        let again = retried(&run.state, &Event::of(trigger).unwrap(), None);
        let kept =
            ["dwp-heard", "dwp-conflict", "dwp-accepts", "dwp-question", "dwp-not-before", "dwp-after"];
        assert_eq!(kept.map(|key| of(&again, key)), [2, 1, 1, 0, 0, 0]);
        let declared = Declaration::parse(br#"{"state":"review","keep_trailers":true}"#).unwrap();
        let outcome = run.outcome(&declared, &lease);
        assert_eq!(kept.map(|key| of(&outcome, key)), [0; 6]);
    }

    /// K9, K4a: a retry is what a person would write again, with nothing of the run that answered the
    /// trigger.
    #[test]
    fn a_retry_keeps_the_triggers_body_and_its_own_trailers_alone() {
        let trigger = event(&[
            ("dwp-state", "build"),
            ("dwp-ticket", "7"),
            ("by", "ada"),
            ("dwp-hop", "9"),
            ("aynig-run-id", "q"),
            ("odd", "a\rb"),
        ]);
        let state = StateName::new("build").unwrap();
        for (hop, told) in [(None, &[][..]), (Some(4), &[("dwp-hop", "4")][..])] {
            let trailers = [&[("dwp-state", "build")], told, &[("dwp-ticket", "7"), ("by", "ada")]].concat();
            says(&retried(&state, &trigger, hop), "aynig: retry build", "Why.", &trailers);
        }
    }
}
