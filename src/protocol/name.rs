//! Names that become paths or refs, narrowed before anything uses them.
//!
//! Implements K4. A name of these types is safe to join to a folder: no empty, hidden or `..` segment, no
//! control character, bounded length.

use std::fmt;

/// Longest state name, in bytes.
pub const STATE_MAX: usize = 200;

/// The state of a branch while a run holds it.
pub const WORKING: &str = "working";
/// The state of a branch whose run failed or was abandoned.
pub const STALLED: &str = "stalled";
/// The state that `cancel` writes.
pub const CANCELED: &str = "canceled";

/// States that mean the same everywhere, with a command or without one.
pub const RESERVED: [&str; 8] = [WORKING, STALLED, CANCELED, "done", "failed", "blocked", "waiting", "noop"];

/// States that people use for an end; to the kernel they are like any other.
pub const ENDS: [&str; 5] = ["done", "failed", CANCELED, "noop", "landed"];

/// A state that could name a command: segments of `[A-Za-z0-9][A-Za-z0-9._+-]*` joined by `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateName(String);

/// A role: one segment of the same characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName(String);

/// Why a name is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadName {
    /// The name is empty.
    Empty,
    /// Longer than [`STATE_MAX`] bytes.
    TooLong,
    /// A segment that is empty or starts with a character other than a letter or digit.
    Segment,
    /// A character outside `[A-Za-z0-9._+-]`.
    Character,
    /// A role with a `/` in it.
    Slash,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadName::Empty => "it is empty",
            BadName::TooLong => "it is longer than 200 bytes",
            BadName::Segment => "each part between '/' must start with a letter or digit",
            BadName::Character => "only letters, digits, '.', '_', '+', '-' and '/' may occur",
            BadName::Slash => "a role is one name without '/'",
        })
    }
}

impl std::error::Error for BadName {}

fn check(raw: &[u8]) -> Result<&str, BadName> {
    if raw.is_empty() {
        return Err(BadName::Empty);
    }
    if raw.len() > STATE_MAX {
        return Err(BadName::TooLong);
    }
    for segment in raw.split(|b| *b == b'/') {
        match segment.first() {
            Some(b) if b.is_ascii_alphanumeric() => {}
            Some(b) if b"._+-".contains(b) => return Err(BadName::Segment),
            None => return Err(BadName::Segment),
            Some(_) => return Err(BadName::Character),
        }
        if !segment.iter().all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(b)) {
            return Err(BadName::Character);
        }
    }
    std::str::from_utf8(raw).map_err(|_| BadName::Character)
}

impl StateName {
    /// Returns the state of this name, or why it is not a state's (K4).
    pub fn new(raw: impl AsRef<[u8]>) -> Result<Self, BadName> {
        check(raw.as_ref()).map(|s| Self(s.to_owned()))
    }

    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for `working`, which only a lease may carry.
    pub fn is_working(&self) -> bool {
        self.0 == WORKING
    }
}

impl RoleName {
    /// Returns the role of this name, or why it is not a role's (K4).
    pub fn new(raw: impl AsRef<[u8]>) -> Result<Self, BadName> {
        let raw = raw.as_ref();
        if raw.contains(&b'/') {
            return Err(BadName::Slash);
        }
        check(raw).map(|s| Self(s.to_owned()))
    }

    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text {
    ($t:ty) => {
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}
text!(StateName);
text!(RoleName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_disguise_are_no_states() {
        let long = "a".repeat(300);
        for bad in ["", "../x", "a//b", "-x", "/a", "a/", ".a", "a/.b", "a b", "a\n", "a\0b", "ü", &long] {
            assert!(StateName::new(bad).is_err(), "{bad:?}");
        }
        for good in ["build", "turn/qa", "v1.2+x", "A_b-c", &"a".repeat(200)] {
            assert!(StateName::new(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_role_is_one_segment() {
        assert_eq!(RoleName::new("a/b"), Err(BadName::Slash));
        assert_eq!(RoleName::new("../.."), Err(BadName::Slash));
        assert!(RoleName::new("..").is_err());
        assert!(RoleName::new("qa").is_ok());
    }

    /// K4: what is reported of a value that is no name.
    #[test]
    fn a_name_that_is_none_is_told_why() {
        for (bad, why, said) in [
            ("", BadName::Empty, "it is empty"),
            (&"a".repeat(201), BadName::TooLong, "it is longer than 200 bytes"),
            ("a/.b", BadName::Segment, "each part between '/' must start with a letter or digit"),
            ("a//b", BadName::Segment, "each part between '/' must start with a letter or digit"),
            ("a b", BadName::Character, "only letters, digits, '.', '_', '+', '-' and '/' may occur"),
            ("ü", BadName::Character, "only letters, digits, '.', '_', '+', '-' and '/' may occur"),
        ] {
            assert_eq!(StateName::new(bad), Err(why), "{bad}");
            assert!(RoleName::new(bad).is_err(), "{bad}");
            assert_eq!(why.to_string(), said);
        }
        assert_eq!(BadName::Slash.to_string(), "a role is one name without '/'");
    }

    /// K4, K5.
    #[test]
    fn a_name_is_shown_as_it_was_written() {
        let (state, role) = (StateName::new("turn/qa").unwrap(), RoleName::new("qa").unwrap());
        assert_eq!([state.as_str(), role.as_str()], ["turn/qa", "qa"]);
        assert_eq!(format!("{state} {role} {state:?} {role:?}"), r#"turn/qa qa "turn/qa" "qa""#);
        assert!(
            StateName::new("working").unwrap().is_working()
                && !StateName::new("Working").unwrap().is_working()
        );
    }
}
