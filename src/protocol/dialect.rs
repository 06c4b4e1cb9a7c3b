//! The two dialects of the contract: which prefix the trailers have, and who writes the commit that ends a run.
//!
//! In `dwp` the runner keeps the lease and writes the outcome from what the command declared; in `aynig`
//! only the command advances the branch, and its own commits renew the lease. Everything else is the same,
//! so every function takes a [`Dialect`] or an event that has one. Implements K29, and K4a (the keys).

use super::message::Message;
use std::fmt;

/// The prefix of the trailers, and who writes the commit that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// `dwp-*`: the runner writes the outcome, and renews the lease.
    #[default]
    Dwp,
    /// `aynig-*`: the command writes both.
    Aynig,
}

/// Who writes the commits between claim and completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The runner renews the lease and writes what the command declared.
    Runner,
    /// The command alone writes; the runner only forwards its commits to the branch.
    Command,
}

/// A trailer key that only a runner may set, by its name without the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    dwp: &'static str,
    aynig: &'static str,
}

impl Key {
    /// Returns the whole key in a dialect.
    pub const fn of(self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Dwp => self.dwp,
            Dialect::Aynig => self.aynig,
        }
    }
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $key:literal;)*) => {
        $($(#[$doc])* pub const $name: Key = Key { dwp: concat!("dwp-", $key), aynig: concat!("aynig-", $key) };)*
        /// All managed keys (K4a).
        pub const MANAGED: &[Key] = &[$($name),*];
    };
}

keys! {
    /// Makes a commit a state event.
    STATE = "state";
    /// Where a run came from in remote mode: `git:<remote>`.
    SOURCE = "source";
    /// The state that a run answers.
    ORIGIN_STATE = "origin-state";
    /// The id of a run.
    RUN_ID = "run-id";
    /// The id of the runner that executes a run.
    RUNNER_ID = "runner-id";
    /// How long a lease holds from its committer date, in seconds.
    LEASE_SECONDS = "lease-seconds";
    /// The run that a `stalled` commit ends.
    STALLED_RUN = "stalled-run";
    /// The commit that a run answers.
    TRIGGER = "trigger";
    /// How many dispatches led to the commit.
    HOP = "hop";
    /// A unique id, which makes a recovery unlike every other one.
    RECOVERY_ID = "recovery-id";
    /// The branch that a signed commit is meant for.
    BRANCH = "branch";
    /// A message's id; it makes a commit a message.
    MESSAGE = "message";
    /// A message's kind.
    KIND = "kind";
    /// Who sent a message.
    FROM = "from";
    /// The head that a message's sender saw, or the question that an answer is for.
    SEEN = "seen";
    /// A message that a trigger brings: its id and its commit.
    HEARD = "heard";
    /// Attached work that a trigger could not take in.
    CONFLICT = "conflict";
    /// What a run used and cost.
    USAGE = "usage";
    /// The pause that a run was canceled for.
    PAUSED_BY = "paused-by";
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Dialect; 2] = [Dialect::Dwp, Dialect::Aynig];

    /// Returns the dialect of a message; `None` where it is no state event. With both trailers it is `dwp`
    /// (K29).
    pub fn of(message: &Message) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| message.last(STATE.of(*dialect)).is_some())
    }

    /// Returns the dialect of this name; `None` for any other name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the dialect's name.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Dwp => "dwp",
            Dialect::Aynig => "aynig",
        }
    }

    /// Returns the prefix of every trailer that travels with a workflow.
    pub const fn prefix(self) -> &'static str {
        match self {
            Dialect::Dwp => "dwp-",
            Dialect::Aynig => "aynig-",
        }
    }

    /// Returns who writes the commits between claim and completion.
    pub const fn writer(self) -> Writer {
        match self {
            Dialect::Dwp => Writer::Runner,
            Dialect::Aynig => Writer::Command,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Trailer, is_managed_key};

    fn message(keys: &[&str]) -> Message {
        let trailers = keys.iter().map(|key| Trailer::new(*key, "x")).collect();
        Message::new("s", "", trailers)
    }

    /// K29.
    #[test]
    fn a_commit_with_both_states_is_dwp() {
        assert_eq!(Dialect::of(&message(&["dwp-state"])), Some(Dialect::Dwp));
        assert_eq!(Dialect::of(&message(&["aynig-state"])), Some(Dialect::Aynig));
        assert_eq!(Dialect::of(&message(&["aynig-state", "dwp-state"])), Some(Dialect::Dwp));
        assert_eq!(Dialect::of(&message(&["aynig-run-id", "Aynig-State"])), None);
    }

    /// K4a, K29: the keys of both dialects are managed in both.
    #[test]
    fn every_key_has_the_prefix_of_its_dialect_and_is_managed() {
        assert_eq!(MANAGED.len(), 19);
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name()), Some(dialect));
            for key in MANAGED {
                let name = key.of(dialect);
                assert!(name.starts_with(dialect.prefix()) && is_managed_key(name), "{name}");
                assert!(is_managed_key(&name.to_ascii_uppercase()), "{name}");
            }
        }
    }

    /// K29, K4a.
    #[test]
    fn a_dialect_is_named_as_its_trailers_begin() {
        let all = Dialect::ALL.map(|dialect| (dialect.to_string(), dialect.prefix(), dialect.writer()));
        let right = [("dwp".into(), "dwp-", Writer::Runner), ("aynig".into(), "aynig-", Writer::Command)];
        assert_eq!(all, right);
        assert_eq!(Dialect::named("git"), None);
    }
}
