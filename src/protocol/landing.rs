//! Landing a branch on another: what is asked for, what is checked, and what came of it.
//!
//! A request is a state event `land` that names its target. A runner answers it with a candidate: an event of
//! the state whose command checks, which names the very commit that the target is to hold, and the one that
//! the target has to hold until then. The target's `.aynig/land` holds the [`Rules`]. A request, or rules,
//! that can't be read in full count as none: nothing lands by half of what was said. Implements K60
//! (messages).

use super::declaration::travelling;
use super::dialect::{Dialect, HOP, ORIGIN_STATE, RECOVERY_ID, STATE, TRIGGER};
use super::event::Event;
use super::heard::heard_again;
use super::id::ObjectId;
use super::message::{Message, Trailer};
use super::name::{CANCELED, STALLED, StateName, WORKING};
use super::obstacle::Obstacle;
use super::text::escape;
use std::fmt;

/// The state of a branch that asks to be landed.
pub const LAND: &str = "land";
/// The state of a branch that has landed.
pub const LANDED: &str = "landed";
/// The trailer that names the target.
pub const ONTO: &str = "dwp-land-onto";
/// The trailer that says which history is wanted.
pub const HISTORY: &str = "dwp-land-history";
/// The trailer of a candidate: the commit that the target is moved to, and the one that it has to hold until
/// then.
pub const AS: &str = "dwp-land-as";
/// The file of the rules, below `.aynig/`.
pub const RULES: &str = "land";
/// Most paths of a conflict that are named.
const PATHS_MAX: usize = 100;

/// How the target's history looks after a landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// A merge commit of the target and the branch.
    Merge,
    /// The branch's own commits, one after the other on top of the target.
    Linear,
}

impl History {
    fn read(text: &str) -> Option<Self> {
        match text {
            "merge" => Some(Self::Merge),
            "linear" => Some(Self::Linear),
            _ => None,
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            History::Merge => "merge",
            History::Linear => "linear",
        })
    }
}

/// The rules in a target's `.aynig/land`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The state whose command checks what is to land.
    pub check: StateName,
    /// The history that a landing makes, where a request does not say.
    pub history: History,
}

impl Rules {
    /// Reads the file: lines `check: <state>` and `history: merge` or `history: linear`; `#` begins a comment.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
        let (mut check, mut history) = (None, History::Merge);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let said = || escape(line.chars().take(80).collect::<String>().as_bytes());
            let (key, value) =
                line.split_once(':').ok_or_else(|| format!("'{}' is no '<key>: <value>'", said()))?;
            let value = value.trim();
            match key.trim_end() {
                "check" => {
                    let state = StateName::new(value).map_err(|why| format!("'{}': {why}", said()))?;
                    if [WORKING, STALLED, LAND, LANDED].contains(&state.as_str()) {
                        return Err(format!("'{state}' checks nothing"));
                    }
                    check = Some(state);
                }
                "history" => {
                    history = History::read(value)
                        .ok_or_else(|| format!("'{}': the history is merge or linear", said()))?;
                }
                _ => return Err(format!("'{}' is neither check nor history", said())),
            }
        }
        let check = check.ok_or_else(|| "it has no line 'check: <state>'".to_owned())?;
        Ok(Self { check, history })
    }
}

/// A branch's request to be landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The target, without `refs/heads/`.
    pub onto: Vec<u8>,
    /// The history that is wanted; `None` leaves that to the target's rules.
    pub history: Option<History>,
}

impl Request {
    /// Returns the request that this event is; `None` where it is none that can be read.
    pub fn of(event: &Event) -> Option<Self> {
        let asks = event.dialect == Dialect::Dwp && event.state_name().is_some_and(|s| s.as_str() == LAND);
        let onto = onto(&event.message).filter(|_| asks)?;
        Some(Self { onto: onto.to_owned(), history: history(&event.message)? })
    }

    /// Returns the request's message, as a person or a subcommand writes it; `others` are further trailers.
    pub fn message(&self, state: &StateName, others: Vec<Trailer>) -> Message {
        let mut trailers = vec![Dialect::Dwp.trailer(STATE, state)];
        trailers.push(Trailer { key: ONTO.into(), value: self.onto.clone() });
        trailers.extend(self.history.map(|history| Trailer::new(HISTORY, history.to_string())));
        trailers.extend(others);
        Message::new(format!("aynig: land on '{}'", escape(&self.onto)), "", trailers)
    }
}

/// Returns the target that a message names, without `refs/heads/`.
pub fn onto(message: &Message) -> Option<&[u8]> {
    let raw = message.last(ONTO)?;
    Some(raw.strip_prefix(b"refs/heads/").unwrap_or(raw)).filter(|name| !name.is_empty())
}

/// Returns the history that a message asks for. The inner `None` leaves that to the target's rules; the outer
/// one means that the trailer can't be read.
pub fn history(message: &Message) -> Option<Option<History>> {
    match message.last(HISTORY) {
        None => Some(None),
        Some(raw) => std::str::from_utf8(raw).ok().and_then(History::read).map(Some),
    }
}

/// A commit that is checked, and landed where the check succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The target, without `refs/heads/`.
    pub onto: Vec<u8>,
    /// The commit that the target is moved to.
    pub commit: ObjectId,
    /// The commit that the target has to hold until then.
    pub base: ObjectId,
}

impl Candidate {
    /// Returns the candidate that this event is; `None` where it is none.
    pub fn of(event: &Event) -> Option<Self> {
        let may = event.dialect == Dialect::Dwp && event.state_name().is_some_and(|s| s.as_str() != LAND);
        let onto = onto(&event.message).filter(|_| may)?.to_owned();
        let (commit, base) = std::str::from_utf8(event.message.last(AS)?).ok()?.split_once(' ')?;
        Some(Self { onto, commit: commit.parse().ok()?, base: base.parse().ok()? })
    }

    fn trailer(&self) -> Trailer {
        Trailer::new(AS, format!("{} {}", self.commit, self.base))
    }

    /// Returns the message of the event that answers a request with this candidate.
    pub fn message(&self, branch: &[u8], check: &StateName, request: &Event, id: &str) -> Message {
        let dialect = Dialect::Dwp;
        let mut trailers = vec![dialect.trailer(STATE, check), dialect.trailer(RECOVERY_ID, id)];
        trailers.extend(hop(request));
        trailers.extend(heard_again(&request.message, dialect));
        trailers.extend(asked(&request.message));
        trailers.push(self.trailer());
        let subject =
            format!("aynig: {check} '{}' before it lands on '{}'", escape(branch), escape(&self.onto));
        Message::new(subject, "", trailers)
    }

    /// Returns the trailers of the outcome that says that the candidate landed.
    pub fn landed(&self) -> Vec<Trailer> {
        vec![Trailer { key: ONTO.into(), value: self.onto.clone() }, self.trailer()]
    }
}

/// Returns the workflow trailers of a request that another commit repeats: all but the one that names a
/// candidate.
pub fn asked(message: &Message) -> Vec<Trailer> {
    let mut asked = travelling(message, Dialect::Dwp);
    asked.retain(|trailer| trailer.key != AS);
    asked
}

fn hop(event: &Event) -> Option<Trailer> {
    Some(event.hop()).filter(|hop| *hop > 0).map(|hop| Dialect::Dwp.trailer(HOP, hop))
}

/// True for an event that belongs to a landing and brings no work of its own: a request, its candidate, or
/// its result.
pub fn is_of_a_landing(event: &Event) -> bool {
    let rests = [WORKING, STALLED, CANCELED];
    event.message.last(ONTO).is_some() || event.state_name().is_some_and(|s| rests.contains(&s.as_str()))
}

/// Returns the message for a branch whose work the target already has.
pub fn nothing_to_land(request: &Event, state: &StateName, onto: &[u8], id: &str) -> Message {
    let dialect = Dialect::Dwp;
    let mut trailers = vec![dialect.trailer(STATE, state), dialect.trailer(RECOVERY_ID, id)];
    trailers.extend(hop(request));
    trailers.push(Trailer { key: ONTO.into(), value: onto.to_owned() });
    Message::new(format!("aynig: '{}' has it already", escape(onto)), "", trailers)
}

/// Why a branch is not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotLanded {
    /// Both sides changed these paths, as far as Git names them, and the changes conflict.
    Conflict(Vec<String>),
    /// The target does not exist.
    NoTarget,
    /// A run holds the target.
    Leased,
    /// The candidate can't be brought into a working tree that has the branch checked out.
    Checkout(Obstacle),
    /// The commit that the target is to hold can't be made, for this reason.
    Unmade(String),
}

impl fmt::Display for NotLanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLanded::Conflict(_) => f.write_str("conflicts"),
            NotLanded::NoTarget => f.write_str("no such branch"),
            NotLanded::Leased => f.write_str("a run holds it"),
            NotLanded::Checkout(by) => write!(f, "checkout: {}", by.kind()),
            NotLanded::Unmade(_) => f.write_str("it cannot be made"),
        }
    }
}

impl NotLanded {
    /// Returns what a person has to know to mend the cause, in safe lines.
    fn details(&self, onto: &[u8]) -> String {
        let onto = escape(onto);
        let mut text = match self {
            NotLanded::Conflict(paths) if paths.is_empty() => {
                return format!("It does not go together with '{onto}': Git names no path.");
            }
            NotLanded::Conflict(_) => format!("It does not go together with '{onto}' in:\n"),
            NotLanded::NoTarget => return format!("There is no branch '{onto}'."),
            NotLanded::Leased => return format!("A run holds '{onto}'; what it does there comes first."),
            NotLanded::Checkout(by) => {
                return format!(
                    "What was to be checked could not be brought into a working tree: {}",
                    escape(by.to_string().as_bytes())
                );
            }
            NotLanded::Unmade(why) => {
                return format!("What '{onto}' is to hold cannot be made: {}", escape(why.as_bytes()));
            }
        };
        for path in self.paths().iter().take(PATHS_MAX) {
            text += &format!("\n    {}", escape(path.as_bytes()));
        }
        match self.paths().len().saturating_sub(PATHS_MAX) {
            0 => text,
            more => text + &format!("\n    and {more} more"),
        }
    }

    /// Returns the paths that conflict.
    pub fn paths(&self) -> &[String] {
        match self {
            NotLanded::Conflict(paths) => paths,
            NotLanded::NoTarget | NotLanded::Leased | NotLanded::Checkout(_) | NotLanded::Unmade(_) => &[],
        }
    }

    /// Returns the message of the `stalled` event that reports this on top of `request`, whose commit is
    /// `trigger`. `id` makes the event unique; `mend` is the command that asks for the landing again.
    pub fn message(&self, request: &Event, trigger: ObjectId, (id, mend): (&str, &str)) -> Message {
        let dialect = Dialect::Dwp;
        let onto = onto(&request.message).unwrap_or_default();
        let mut trailers = vec![
            dialect.trailer(STATE, STALLED),
            dialect.trailer(ORIGIN_STATE, LAND),
            dialect.trailer(TRIGGER, trigger),
            dialect.trailer(RECOVERY_ID, id),
        ];
        trailers.extend(hop(request));
        let body = format!("{}\n\n{mend} asks for it again.", self.details(onto));
        Message::new(format!("aynig: land stalled: {self}"), body, trailers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn event(trailers: &[(&str, &str)]) -> Event {
        Event::of(Message::new("s", "", trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect())).unwrap()
    }

    fn read(message: &Message) -> Event {
        Event::in_message(&message.render().unwrap()).unwrap()
    }

    /// K60.
    #[test]
    fn rules_are_read_whole_or_not_at_all() {
        let rules = |check: &str, history| Ok(Rules { check: StateName::new(check).unwrap(), history });
        assert_eq!(Rules::parse(b"check: test\n"), rules("test", History::Merge));
        assert_eq!(Rules::parse(b"# c\n\nhistory : linear\n check:a/b"), rules("a/b", History::Linear));
        for bad in [
            "",
            "history: merge",
            "check: ../x",
            "check: working",
            "check: land",
            "check",
            "chekc: x\ncheck: y",
            "check: x\nhistory: squash",
        ] {
            assert!(Rules::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Rules::parse(b"check: \xff").is_err());
    }

    /// K60.
    #[test]
    fn a_request_names_its_target_and_what_cannot_be_read_is_none() {
        let asks = |more: &[(&str, &str)]| Request::of(&event(&[&[("dwp-state", "land")], more].concat()));
        let request = |history| Some(Request { onto: b"main".to_vec(), history });
        assert_eq!(asks(&[(ONTO, "main")]), request(None));
        assert_eq!(asks(&[(ONTO, "refs/heads/main"), (HISTORY, "linear")]), request(Some(History::Linear)));
        assert_eq!(asks(&[(ONTO, "main"), (HISTORY, "squash")]), None);
        assert_eq!(asks(&[]), None);
        assert_eq!(asks(&[(ONTO, "")]), None);
        assert_eq!(Request::of(&event(&[("dwp-state", "test"), (ONTO, "main")])), None);
        assert_eq!(Request::of(&event(&[("aynig-state", "land"), (ONTO, "main")])), None);
    }

    /// K60: a candidate says what lands; asked for again, it is a request once more.
    #[test]
    fn a_candidate_is_read_as_it_was_written() {
        let request = event(&[
            ("dwp-state", "land"),
            (ONTO, "main"),
            ("dwp-ticket", "7"),
            ("dwp-after", "a=b"),
            (AS, "old"),
        ]);
        let candidate =
            Candidate { onto: b"main".to_vec(), commit: ONE.parse().unwrap(), base: TWO.parse().unwrap() };
        let message = candidate.message(b"job", &StateName::new("test").unwrap(), &request, "x");
        let event = read(&message);
        assert_eq!(Candidate::of(&event), Some(candidate));
        assert_eq!(
            (message.all(AS).count(), message.all("dwp-ticket").count(), message.all("dwp-after").count()),
            (1, 1, 0)
        );
        let again = super::super::transition::retried(&StateName::new("test").unwrap(), &event, None);
        assert_eq!(Request::of(&read(&again)), Some(Request { onto: b"main".to_vec(), history: None }));
        assert_eq!(Candidate::of(&read(&again)), None);
    }

    /// K60, K2.
    #[test]
    fn a_conflict_is_told_with_its_paths() {
        let request = event(&[("dwp-state", "land"), (ONTO, "main"), ("dwp-hop", "3")]);
        let why = NotLanded::Conflict(vec!["a b".into(), "c\x1bd".into()]);
        let message = why.message(&request, ONE.parse().unwrap(), ("x", "git aynig retry job"));
        let event = read(&message);
        assert_eq!(event.state_name().map(StateName::as_str), Some("stalled"));
        assert_eq!((event.hop(), event.trigger()), (3, ONE.parse().ok()));
        let body = String::from_utf8(event.message.body.clone()).unwrap();
        assert!(body.contains("\n    a b\n    c\\x1bd\n"), "{body}");
    }

    proptest! {
        #[test]
        fn any_rules_are_read_or_refused(text in "(check|history|x|:| |merge|linear|test|#|\\n|\\PC){0,12}") {
            if let Ok(rules) = Rules::parse(text.as_bytes()) {
                prop_assert!(text.contains("check") && text.contains(rules.check.as_str()));
            }
        }
    }
}
