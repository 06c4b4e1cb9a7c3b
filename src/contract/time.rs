//! Instants on the wire: ISO-8601 in UTC, always with milliseconds, so that their texts sort by time.
//!
//! All forms of RFC 3339 are read: with or without a fraction, with `Z` or an offset. Years are 0000 to 9999;
//! an instant outside of these is written as the nearest one inside.

use std::fmt;

/// An instant: milliseconds since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time(pub i64);

/// A text that is no instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no time as 2026-01-01T00:00:00Z is")]
pub struct NotATime {
    /// The text as it was given, shortened.
    pub given: String,
}

/// The first and the last millisecond whose year has four digits.
const FIRST: i64 = -62_167_219_200_000;
const LAST: i64 = 253_402_300_799_999;
const DAY: i64 = 86_400_000;

impl Time {
    /// Returns the instant that many seconds after 1970 began.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Reads an instant from its text.
    pub fn parse(text: &str) -> Result<Self, NotATime> {
        read(text.as_bytes()).map(Self).ok_or_else(|| NotATime {
            given: crate::protocol::text::escape(text.chars().take(64).collect::<String>().as_bytes()),
        })
    }
}

/// Returns the number that these bytes spell, if all of them are digits.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0_i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

fn read(text: &[u8]) -> Option<i64> {
    let shape = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if text.len() < 20 || shape.iter().any(|(at, mark)| text[*at] != *mark) || !b"Tt ".contains(&text[10]) {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[5..7])?, digits(&text[8..10])?);
    let (hour, minute, second) = (digits(&text[11..13])?, digits(&text[14..16])?, digits(&text[17..19])?);
    let real = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    // A leap second is read as the second before it.
    if !real || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = &text[19..];
    let mut millis = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let len = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if len == 0 {
            return None;
        }
        let three: Vec<u8> = fraction[..len].iter().copied().chain(*b"00").take(3).collect();
        millis = digits(&three)?;
        rest = &fraction[len..];
    }
    let offset = match rest {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let days = days_before(year, month) + day - 1;
    let seconds = hour * 3600 + minute * 60 + second.min(59) - offset * 60;
    Some(days * DAY + seconds * 1000 + millis)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970 to the first of a month. Years are counted from March, so that a leap day is
/// the last day of a year.
fn days_before(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the year, month and day of a day that is counted from 1970.
fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, date)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.clamp(FIRST, LAST);
        let (day, of_day) = (at.div_euclid(DAY), at.rem_euclid(DAY));
        let (year, month, date) = date_of(day);
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
        write!(f, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
