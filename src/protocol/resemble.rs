//! What a user may have meant: names that are nearly one that is known, and trailers that are nearly a state.
//!
//! Used only for a hint to a person: nothing is dispatched, refused or written differently because of it. A
//! name resembles another if few letters differ for its length, where two that changed places count once.
//! Implements K6 (its last sentence), K56.

use super::dialect::Dialect;
use super::event::STATE;
use super::message::Message;
use super::name::StateName;

/// Most names that are suggested.
const TOLD: usize = 3;

/// Returns the known names that are nearest to this one; none where no name is near enough, or one is the
/// same.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = allowed(name.len());
    let mut best = (most + 1, Vec::new());
    for one in known.filter(|one| one.len().abs_diff(name.len()) <= most) {
        match distance(&name.to_ascii_lowercase(), &one.to_ascii_lowercase()) {
            0 if one == name => return Vec::new(),
            far if far < best.0 => best = (far, vec![one]),
            far if far == best.0 && !best.1.is_empty() && best.1.len() < TOLD => best.1.push(one),
            _ => {}
        }
    }
    best.1
}

/// Returns how many letters of a name of this length may be wrong.
fn allowed(length: usize) -> usize {
    match length {
        0..=2 => 0,
        3..=5 => 1,
        6.. => 2,
    }
}

/// Counts the letters that were put in, left out, changed, or swapped with the next, between two names; by
/// the byte.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let change = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

/// A line of a message without a state that may have been meant as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// Its key is nearly the one that makes a state: the key as written, and the right one.
    Key(String, &'static str),
    /// The line is not in the message's last paragraph, so it is no trailer: the key, and the state.
    Outside(&'static str, StateName),
}

/// Returns the first line that may have been meant as a state, in a message that is no state event; `None`
/// where there is no such line, or the message is one.
pub fn missed_state(message: &[u8]) -> Option<Missed> {
    let lines = message.split(|b| *b == b'\n').filter_map(|line| {
        // More bytes than any key has that is nearly a state's.
        let colon = line.iter().take(16).position(|b| *b == b':')?;
        let key = std::str::from_utf8(&line[..colon]).ok()?.trim_end();
        let state = StateName::new(line[colon + 1..].trim_ascii()).ok()?;
        Some((key, state)).filter(|(key, _)| !key.starts_with([' ', '\t']))
    });
    let mut lines = lines.peekable();
    lines.peek()?;
    if Dialect::of(&Message::parse(message)).is_some() {
        return None;
    }
    let keys = Dialect::ALL.map(|dialect| STATE.of(dialect));
    lines.find_map(|(key, state)| {
        if let Some(exact) = keys.iter().find(|known| **known == key) {
            return Some(Missed::Outside(exact, state));
        }
        let near = |known: &&&'static str| distance(&key.to_ascii_lowercase(), known) <= allowed(known.len());
        keys.iter().find(near).map(|known| Missed::Key(key.to_owned(), known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K6
    #[test]
    fn a_name_is_told_where_few_letters_differ() {
        let known = ["build", "test", "ship/eu", "review", "built"];
        for (name, meant) in [
            ("biuld", &["build"][..]),
            ("Build", &["build"]),
            ("buil", &["build", "built"]),
            ("tset", &["test"]),
            ("ship/ue", &["ship/eu"]),
            ("reveiw", &["review"]),
            ("build", &[]),
            ("done", &[]),
            ("te", &[]),
            ("b", &[]),
            ("buildings", &[]),
        ] {
            assert_eq!(nearest(name, known.into_iter()), meant, "{name}");
        }
    }

    /// K1, K6
    #[test]
    fn what_is_nearly_a_state_is_found_and_nothing_else() {
        let state = |name: &str| StateName::new(name).unwrap();
        for (message, missed) in [
            ("go\n\ndwp-sate: build\n", Some(Missed::Key("dwp-sate".into(), "dwp-state"))),
            ("go\n\nDWP-State: build\n", Some(Missed::Key("DWP-State".into(), "dwp-state"))),
            ("go\n\ndwp_state: build\n", Some(Missed::Key("dwp_state".into(), "dwp-state"))),
            ("go\n\naynig-sttae: x\n", Some(Missed::Key("aynig-sttae".into(), "aynig-state"))),
            ("go\n\ndwp-state: build\n\nmore words\n", Some(Missed::Outside("dwp-state", state("build")))),
            ("go\n\ndwp-state: build\n", None),
            ("go\n\ndwp-stage: build\n\ndwp-state: x\n", None),
            ("go\n\n  dwp-state: build\n\nquoted\n", None),
            ("go\n\ndwp-state: what <you> want\n\nmore\n", None),
            ("go\n\nState: build\nSigned-off-by: Ada\n", None),
            ("plain\n", None),
        ] {
            assert_eq!(missed_state(message.as_bytes()), missed, "{message}");
        }
    }
}
