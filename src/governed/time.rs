//! Moments as the records write them: UTC, ISO 8601, milliseconds, `Z`.
//!
//! Reading accepts more forms than are written: an offset instead of `Z`, any number of fraction digits, no
//! seconds, a date alone.

use std::time::{Duration, SystemTime};

/// Writes a moment in the form `2026-04-03T12:00:00.000Z`.
pub(crate) fn iso(moment: SystemTime) -> String {
    humantime::format_rfc3339_millis(moment).to_string()
}

/// Reads the moment that a record names; `None` where the text is not one.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    if text.len() == 10 {
        return humantime::parse_rfc3339_weak(&format!("{text}T00:00:00")).ok();
    }
    let (date, clock) = text.split_once(['T', ' '])?;
    let Some(at) = clock.find(['+', '-']) else {
        let clock = clock.strip_suffix(['Z', 'z']).unwrap_or(clock);
        return humantime::parse_rfc3339_weak(&format!("{date}T{}", seconds(clock))).ok();
    };
    let base = humantime::parse_rfc3339_weak(&format!("{date}T{}", seconds(&clock[..at]))).ok()?;
    let (hours, minutes) = match clock[at + 1..].split_once(':') {
        Some((hours, minutes)) => (hours.parse::<u64>().ok()?, minutes.parse::<u64>().ok()?),
        None => {
            let digits = &clock[at + 1..];
            (
                digits.get(..2)?.parse().ok()?,
                digits.get(2..).filter(|d| !d.is_empty()).unwrap_or("0").parse().ok()?,
            )
        }
    };
    let offset = Duration::from_secs(hours.min(99) * 3600 + minutes.min(99) * 60);
    if clock[at..].starts_with('+') { base.checked_sub(offset) } else { base.checked_add(offset) }
}

/// Returns a time of day with its seconds, `:00` where they were left out.
fn seconds(clock: &str) -> String {
    if clock.len() == 5 { format!("{clock}:00") } else { clock.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_the_forms_that_tools_write() {
        let noon = parse("2026-04-03T12:00:00.000Z").unwrap();
        assert_eq!(iso(noon), "2026-04-03T12:00:00.000Z");
        for same in [
            "2026-04-03T12:00:00Z",
            "2026-04-03T14:00:00+02:00",
            "2026-04-03T09:30:00-0230",
            "2026-04-03T12:00Z",
        ] {
            assert_eq!(parse(same), Some(noon), "{same}");
        }
        assert!(parse("2026-04-03").is_some());
        for wrong in ["", "yesterday", "2026-13-40T00:00:00Z", "12"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
