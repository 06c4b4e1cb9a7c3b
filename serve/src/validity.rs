//! From when to when a certificate is good: the two times in its DER, and nothing else of it.
//!
//! What is no certificate of the usual form has none; nothing is believed of it, and nothing panics.

/// Seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: u64,
    pub to: u64,
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl Validity {
    /// Reads it.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (whole, _) = inside(certificate, SEQUENCE)?;
        let (mut signed, _) = inside(whole, SEQUENCE)?;
        if signed.first() == Some(&VERSION) {
            signed = item(signed)?.2;
        }
        // Its number, the algorithm, and who issued it.
        for _ in 0..3 {
            signed = item(signed)?.2;
        }
        let (times, _) = inside(signed, SEQUENCE)?;
        let (kind, from, rest) = item(times)?;
        let from = time(kind, from)?;
        let (kind, to, _) = item(rest)?;
        Some(Self { from, to: time(kind, to)? })
    }
}

/// What an item of this kind holds, and what follows it.
fn inside(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    item(bytes).filter(|(kind, _, _)| *kind == wanted).map(|(_, held, rest)| (held, rest))
}

/// The first item: its kind, what it holds, and what follows it.
fn item(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short if short < 0x80 => (short, rest),
        long => {
            let (digits, rest) =
                rest.split_at_checked(long - 0x80).filter(|(digits, _)| digits.len() <= 4)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (held, rest) = rest.split_at_checked(length)?;
    Some((*kind, held, rest))
}

/// `YYMMDDHHMMSSZ`, or with a year of four digits.
fn time(kind: u8, text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |text: &str| text.parse::<i64>().ok();
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| number(rest.get(at..at + 2)?);
    let (month, date) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    if rest.len() != 10 || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, date) * 86_400 + hour * 3600 + minute * 60 + second;
    // Before 1970 everything is over.
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Days from 1970 to this one; years begin with March, so that a leap day is the last of its year.
fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + date - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day of a time, as `YYYY-MM-DD`.
pub fn day(seconds: u64) -> String {
    let since = i64::try_from(seconds / 86_400).unwrap_or(0) + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}")
}

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, UTC_TIME, Validity, day, time};

    /// W12: times are those of the calendar.
    #[test]
    fn w12_times_of_certificates_are_read() {
        assert_eq!(time(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(GENERALIZED_TIME, b"20240229120000Z"), Some(1_709_208_000));
        assert_eq!(time(GENERALIZED_TIME, b"99991231235959Z"), Some(253_402_300_799));
        assert_eq!(time(UTC_TIME, b"500101000000Z"), Some(0));
        for wrong in
            ["", "Z", "2402291200Z", "240229120000", "24022912000xZ", "241329120000Z", "240229240000Z"]
        {
            assert_eq!(time(UTC_TIME, wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!((day(0), day(1_709_208_000)), ("1970-01-01".to_owned(), "2024-02-29".to_owned()));
        assert_eq!(day(253_402_300_799), "9999-12-31");
    }

    /// W12: what is no certificate has no times, and no bytes make it panic.
    #[test]
    fn w12_no_bytes_are_too_strange() {
        let own = rcgen::generate_simple_self_signed(["box.example".to_owned()]).unwrap();
        let good = own.cert.der().to_vec();
        let found = Validity::of(&good).unwrap();
        assert!(found.from < found.to, "{found:?}");
        for at in 0..good.len() {
            let _ = Validity::of(&good[..at]);
            for other in [0, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = other;
                let _ = Validity::of(&bytes);
            }
        }
    }
}
