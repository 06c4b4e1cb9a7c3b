//! One trigger, several branches that answer it, and the one that is chosen.
//!
//! Meanwhile the branch itself is in state `fanned` and names its attempts, each with the trigger that the
//! attempt began with. An attempt names its branch and its own number. Implements K61 (messages).

use super::dialect::{Dialect, HOP, ORIGIN_STATE, RECOVERY_ID, STATE};
use super::event::Event;
use super::id::ObjectId;
use super::message::{Message, Trailer, is_managed_key};
use super::name::{CANCELED, StateName};
use super::text::escape;
use super::transition::retried;

/// The state of a branch whose trigger several others answer.
pub const FANNED: &str = "fanned";
/// The trailer of a fanned branch that names an attempt and the trigger that the attempt began with.
pub const ATTEMPT: &str = "dwp-fan-branch";
/// The trailer of an attempt that names the branch it belongs to.
pub const OF: &str = "dwp-fan";
/// The trailer of an attempt's number, from 1 on.
pub const NUMBER: &str = "dwp-fan-number";
/// The state of an attempt that was chosen: the branch itself goes on.
pub const DONE: &str = "done";
/// The trailer that names the chosen attempt: in the commit with which the branch goes on, and in those that
/// end the attempts.
pub const CHOSEN: &str = "dwp-chosen";
/// Most attempts at a time.
pub const ATTEMPTS_MAX: usize = 64;

/// An attempt: its branch, without `refs/heads/`, and the trigger that it began with.
pub type Attempt = (Vec<u8>, ObjectId);

/// Returns the message that an attempt begins with: the trigger's once more, with the attempt's own trailers.
pub fn attempt(
    trigger: &Event,
    (state, branch): (&StateName, &[u8]),
    (number, of): (usize, usize),
    own: &[Trailer],
    id: &str,
) -> Message {
    let hop = Some(trigger.hop()).filter(|hop| *hop > 0);
    let mut message = retried(state, trigger, hop);
    message.subject = format!("aynig: {state}, attempt {number} of {of}").into_bytes();
    message.trailers.retain(|t| !own.iter().any(|own| own.key == t.key) && ![OF, NUMBER].contains(&&*t.key));
    message.trailers.push(Trailer { key: OF.into(), value: branch.to_vec() });
    message.trailers.push(Trailer::new(NUMBER, number.to_string()));
    message.trailers.extend_from_slice(own);
    message.trailers.push(trigger.dialect.trailer(RECOVERY_ID, id));
    message
}

/// Returns the message of the branch whose trigger these attempts answer.
pub fn fanned(trigger: &Event, state: &StateName, attempts: &[Attempt], id: &str) -> Message {
    let dialect = Dialect::Dwp;
    let mut trailers = vec![dialect.trailer(STATE, state), dialect.trailer(RECOVERY_ID, id)];
    trailers.extend(Some(trigger.hop()).filter(|hop| *hop > 0).map(|hop| dialect.trailer(HOP, hop)));
    trailers.extend(attempts.iter().map(|(name, commit)| Trailer {
        key: ATTEMPT.into(),
        value: [name, &b" "[..], commit.to_string().as_bytes()].concat(),
    }));
    let asked = trigger.state_name().map(|state| format!("{state}, ")).unwrap_or_default();
    Message::new(format!("aynig: {asked}{} attempts", attempts.len()), "", trailers)
}

/// Returns the attempts that a fanned branch names; none for any other branch.
pub fn attempts_of(event: &Event) -> Vec<Attempt> {
    if event.dialect != Dialect::Dwp || event.state_name().is_none_or(|state| state.as_str() != FANNED) {
        return Vec::new();
    }
    let read = |raw: &[u8]| {
        let at = raw.iter().rposition(|b| *b == b' ')?;
        let commit = ObjectId::from_hex(&raw[at + 1..]).ok()?;
        Some((raw[..at].to_vec(), commit)).filter(|(name, _)| !name.is_empty())
    };
    event.message.all(ATTEMPT).filter_map(read).take(ATTEMPTS_MAX).collect()
}

/// True where `attempt` is an attempt of `branch` that began with this event.
pub fn began(event: &Event, branch: &[u8], attempt: &[u8]) -> bool {
    let number = event.message.last(NUMBER).unwrap_or_default();
    let name = [branch, b"-", number].concat();
    event.dialect == Dialect::Dwp && event.message.last(OF) == Some(branch) && name == attempt
}

/// Returns the message by which the fanned branch goes on with what the chosen attempt's head says.
pub fn chosen(head: &Event, branch: &[u8], id: &str) -> Message {
    let dialect = head.dialect;
    let mut trailers: Vec<Trailer> =
        head.state_name().map(|s| dialect.trailer(STATE, s)).into_iter().collect();
    trailers.extend(head.origin_state().map(|origin| dialect.trailer(ORIGIN_STATE, origin)));
    trailers.push(dialect.trailer(RECOVERY_ID, id));
    trailers.extend(Some(head.hop()).filter(|hop| *hop > 0).map(|hop| dialect.trailer(HOP, hop)));
    let ours = |key: &str| is_managed_key(key) || [OF, NUMBER, CHOSEN].contains(&key);
    trailers.extend(head.message.trailers.iter().filter(|t| !ours(&t.key) && t.is_writable()).cloned());
    trailers.push(Trailer { key: CHOSEN.into(), value: branch.to_vec() });
    Message::new(
        format!("aynig: chose '{}'", escape(branch)),
        super::body_line::body_said(&head.message),
        trailers,
    )
}

/// Returns the message that ends an attempt after a choice: `state` is `canceled`, or `done` for the chosen
/// one itself. `branch` is the chosen attempt's.
pub fn ended(head: Option<&Event>, state: &str, branch: &[u8], id: &str) -> Message {
    let dialect = Dialect::Dwp;
    let mut trailers = vec![dialect.trailer(STATE, state), dialect.trailer(RECOVERY_ID, id)];
    let hop = head.map_or(0, Event::hop);
    trailers.extend(Some(hop).filter(|hop| *hop > 0).map(|hop| dialect.trailer(HOP, hop)));
    trailers.push(Trailer { key: CHOSEN.into(), value: branch.to_vec() });
    Message::new(format!("aynig: '{}' was chosen", escape(branch)), "", trailers)
}

/// True where an attempt's head says that a choice ended it: the choice of that attempt, or of another.
pub fn is_ended(event: &Event) -> bool {
    let ends = [DONE, CANCELED];
    event.dialect == Dialect::Dwp
        && event.message.last(CHOSEN).is_some()
        && event.state_name().is_some_and(|state| ends.contains(&state.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn event(trailers: &[(&str, &str)]) -> Event {
        let trailers = trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect();
        Event::of(Message::new("s", "Do it.", trailers)).unwrap()
    }

    fn read(message: &Message) -> Event {
        Event::in_message(&message.render().unwrap()).unwrap()
    }

    /// K61.
    #[test]
    fn an_attempt_asks_for_the_same_and_has_its_own_variables() {
        let trigger = event(&[
            ("dwp-state", "build"),
            ("dwp-model", "x"),
            ("dwp-ticket", "7"),
            ("dwp-hop", "2"),
            (OF, "old"),
        ]);
        let state = StateName::new("build").unwrap();
        let own = [Trailer::new("dwp-model", "opus")];
        let made = read(&attempt(&trigger, (&state, b"job"), (2, 3), &own, "x"));
        let said = |key: &str| {
            made.message.all(key).map(|v| String::from_utf8_lossy(v).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            [said(OF), said(NUMBER), said("dwp-model"), said("dwp-ticket")],
            [["job"], ["2"], ["opus"], ["7"]]
        );
        let is_of = |of: &str, name: &str| began(&made, of.as_bytes(), name.as_bytes());
        assert!(is_of("job", "job-2"));
        assert!(!is_of("job", "job-1") && !is_of("job", "main") && !is_of("jo", "job-2"));
        assert_eq!((made.hop(), &made.message.body[..]), (2, &b"Do it."[..]));
    }

    /// K61.
    #[test]
    fn a_fanned_branch_names_its_attempts() {
        let attempts: Vec<Attempt> =
            vec![(b"job-1".to_vec(), ONE.parse().unwrap()), (b"a b".to_vec(), ONE.parse().unwrap())];
        let state = StateName::new(FANNED).unwrap();
        let made = read(&fanned(&event(&[("dwp-state", "build")]), &state, &attempts, "x"));
        assert_eq!(attempts_of(&made), attempts);
        assert!(attempts_of(&event(&[("dwp-state", "build"), (ATTEMPT, &format!("a {ONE}"))])).is_empty());
        assert!(attempts_of(&event(&[("dwp-state", "fanned"), (ATTEMPT, "a"), (ATTEMPT, " 1")])).is_empty());
    }

    /// K61.
    #[test]
    fn what_was_chosen_goes_on_as_it_said() {
        let head = event(&[
            ("dwp-state", "review"),
            ("dwp-accepts", "message=rework"),
            ("dwp-run-id", "r"),
            (OF, "job"),
            ("by", "ada"),
        ]);
        let made = read(&chosen(&head, b"job-2", "x"));
        assert_eq!(made.state_name().map(StateName::as_str), Some("review"));
        let keys = ["dwp-accepts", "by", CHOSEN, OF, "dwp-run-id"].map(|key| made.message.all(key).count());
        assert_eq!(keys, [1, 1, 1, 0, 0]);
    }
}
