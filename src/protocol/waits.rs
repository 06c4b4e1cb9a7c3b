//! What a head waits for besides a command: a moment (`dwp-not-before`), other branches (`dwp-after`).
//!
//! A head whose wait can't be read is not dispatched, and that is reported: its author wanted a wait. In the
//! dialect `aynig` these trailers have the same names and mean the same. Implements K51, K52 (reading).

use super::event::Event;
use super::message::Trailer;
use super::name::StateName;

/// The trailer of the moment before which a head is not dispatched.
pub const NOT_BEFORE: &str = "dwp-not-before";
/// The trailer of a branch and the state that it must have.
pub const AFTER: &str = "dwp-after";
/// Most branches that a head waits for.
pub const AFTER_MAX: usize = 1000;

/// A moment that can't be read, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTime(pub Vec<u8>);

/// Returns the moment before which this head is not dispatched, in seconds since 1970; `None` where it names
/// none.
pub fn not_before(event: &Event) -> Option<Result<i64, BadTime>> {
    let raw = event.message.last(NOT_BEFORE)?;
    let read = std::str::from_utf8(raw).ok().and_then(parse_time);
    Some(read.ok_or_else(|| BadTime(raw.to_vec())))
}

/// Reads seconds since 1970 or an RFC 3339 moment, whose fraction is rounded up.
pub fn parse_time(text: &str) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    let text = text.as_bytes();
    let (date, rest) = (text.get(..19)?, &text[19..]);
    let marks: [(usize, &[u8]); 5] = [(4, b"-"), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")];
    if !marks.iter().all(|(at, marks)| marks.contains(&date[*at])) {
        return None;
    }
    let [year, month, day] = [number(&date[..4])?, number(&date[5..7])?, number(&date[8..10])?];
    let [hour, minute, second] = [number(&date[11..13])?, number(&date[14..16])?, number(&date[17..19])?];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    // The second 60, a leap second, counts as the first of the next minute.
    if !(1..=longest).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, zone) = match rest.strip_prefix(b".") {
        Some(rest) => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            (Some(&rest[..digits]).filter(|digits| !digits.is_empty())?, &rest[digits..])
        }
        None => (&b""[..], rest),
    };
    let up = i64::from(fraction.iter().any(|b| *b != b'0'));
    let time = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(time - offset(zone)? + up)
}

/// Returns a moment as people and programs read it; outside the years 1970 to 9999, the plain seconds.
pub fn show_time(seconds: i64) -> String {
    let moment = u64::try_from(seconds).ok().filter(|seconds| *seconds < 253_402_300_800);
    let moment = moment.map(|seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    moment.map_or_else(|| seconds.to_string(), |moment| humantime::format_rfc3339_seconds(moment).to_string())
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let seconds = (hours <= 23 && minutes <= 59).then_some(hours * 3600 + minutes * 60)?;
            Some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

/// Returns the days from 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The year is counted from March on, so that a leap day is its last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A branch and the state that its head must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// The branch, without `refs/heads/`.
    pub branch: Vec<u8>,
    /// The state.
    pub state: StateName,
}

/// The branches that a head waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct After {
    /// The branches and the states that they must have, all of them.
    pub wants: Vec<Want>,
    /// Trailers that can't be read, as they were written; a head with one is not dispatched.
    pub unreadable: Vec<Vec<u8>>,
}

impl After {
    /// Returns what this head waits for. All `dwp-after` trailers count, an exception to K3.
    pub fn of(event: &Event) -> Self {
        let mut after = Self::default();
        for raw in event.message.all(AFTER) {
            match read_want(raw) {
                Some(want) if after.wants.contains(&want) => {}
                Some(want) if after.wants.len() < AFTER_MAX => after.wants.push(want),
                Some(_) | None if after.unreadable.len() < 16 => after.unreadable.push(raw.to_vec()),
                Some(_) | None => {}
            }
        }
        after
    }

    /// True where the head waits for no branch.
    pub fn is_empty(&self) -> bool {
        self.wants.is_empty() && self.unreadable.is_empty()
    }
}

/// Returns what the value of such a trailer has to be, where it can't be read; `None` for any other trailer. A user
/// hears it before the head is written that nothing would be done about.
pub fn wanted(trailer: &Trailer) -> Option<&'static str> {
    let value = &trailer.value;
    match &*trailer.key {
        NOT_BEFORE => {
            let read = std::str::from_utf8(value).ok().and_then(parse_time);
            read.is_none().then_some("a moment as 2026-01-31T12:00:00Z, or seconds since 1970")
        }
        AFTER => read_want(value).is_none().then_some("<branch>=<state>"),
        _ => None,
    }
}

fn read_want(raw: &[u8]) -> Option<Want> {
    // The name of a branch may have a `=`, the name of a state may not.
    let at = raw.iter().rposition(|b| *b == b'=')?;
    let branch = &raw[..at];
    let branch = branch.strip_prefix(b"refs/heads/").unwrap_or(branch);
    let state = StateName::new(&raw[at + 1..]).ok()?;
    (!branch.is_empty()).then(|| Want { branch: branch.to_vec(), state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::Message;
    use proptest::prelude::*;

    fn event(trailers: &[(&str, &str)]) -> Event {
        let trailers = trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect();
        Event::of(Message::new("s", "", trailers)).unwrap()
    }

    /// K51.
    #[test]
    fn a_moment_is_seconds_or_rfc_3339() {
        for (text, time) in [
            ("0", 0),
            ("1750000000", 1_750_000_000),
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:30:15z", 951_827_415),
            ("2025-06-15 15:06:40+00:00", 1_750_000_000),
            ("2025-06-15T17:06:40+02:00", 1_750_000_000),
            ("2025-06-15t09:36:40.000-05:30", 1_750_000_000),
            ("2025-06-15T15:06:39.001Z", 1_750_000_000),
            ("1969-12-31T23:59:59Z", -1),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
        ] {
            assert_eq!(parse_time(text), Some(time), "{text}");
        }
        for bad in [
            "",
            "x",
            "-1",
            "+5",
            "99999999999999999999",
            "2025-06-15",
            "2025-06-15T15:06:40",
            "2025-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-00-01T00:00:00Z",
            "2025-01-32T00:00:00Z",
            "2025-06-15T24:00:00Z",
            "2025-06-15T15:06:40.Z",
            "2025-06-15T15:06:40+2:00",
            "2025-06-15T15:06:40+24:00",
            "2025-06-15T15:06:40Zx",
            "é025-06-15T15:06:40Z",
            "2025/06-15T15:06:40Z",
        ] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    /// K51: a wait that can't be read is still a wait.
    #[test]
    fn a_head_says_until_when_or_what_it_says_instead() {
        assert_eq!(not_before(&event(&[("dwp-state", "a")])), None);
        assert_eq!(not_before(&event(&[("dwp-state", "a"), (NOT_BEFORE, "5")])), Some(Ok(5)));
        let bad = not_before(&event(&[("dwp-state", "a"), (NOT_BEFORE, "5"), (NOT_BEFORE, "soon")]));
        assert_eq!(bad, Some(Err(BadTime(b"soon".to_vec()))));
    }

    /// K52.
    #[test]
    fn every_branch_that_is_waited_for_counts_and_its_name_may_have_an_equals_sign() {
        let after = After::of(&event(&[
            ("dwp-state", "merge"),
            (AFTER, "a=done"),
            (AFTER, "refs/heads/b/c=d=turn/done"),
            (AFTER, "a=done"),
            (AFTER, "done"),
            (AFTER, "=done"),
            (AFTER, "a=../x"),
        ]));
        let want =
            |branch: &str, state| Want { branch: branch.into(), state: StateName::new(state).unwrap() };
        assert_eq!(after.wants, [want("a", "done"), want("b/c=d", "turn/done")]);
        assert_eq!(after.unreadable, [&b"done"[..], b"=done", b"a=../x"]);
        assert!(After::of(&event(&[("dwp-state", "merge")])).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_or_none(text in "\\PC*", digits in "[0-9T:Z+. -]{0,30}") {
            let _ = (parse_time(&text), parse_time(&digits));
        }

        /// Moments are counted as another library counts them.
        #[test]
        fn moments_are_counted_as_elsewhere(seconds in 0u64..250_000_000_000) {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            let text = humantime::format_rfc3339_seconds(time).to_string();
            let seconds = i64::try_from(seconds).unwrap();
            prop_assert_eq!((parse_time(&text), show_time(seconds)), (Some(seconds), text));
        }
    }
}
