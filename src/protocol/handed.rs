//! What a confined command hands over to its runner: subcommands that write refs, which the kernel forbids
//! the command, or that read what the command may not read.
//!
//! A request is a typed value, never a command line. It becomes the arguments of one of five subcommands, for
//! the run's own branch; each value stands in one argument with its flag, so that none is taken for another
//! flag. Whatever else a command writes there is refused. Implements K59 (the hand-over).

use serde::{Deserialize, Serialize};

/// The folder of requests, in the run's folder; the answer to `<id>` is `<id>.done`.
pub const FOLDER: &str = "handed";
/// Most bytes of a request: a text of 1 MiB, escaped.
pub const REQUEST_MAX: u64 = 8 << 20;
/// Most bytes of each of the two streams of an answer.
pub const ANSWER_MAX: usize = 1 << 20;
/// Most requests of one run.
pub const REQUESTS_MAX: usize = 1000;

/// The subcommands that are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// `set-state`.
    SetState,
    /// `set-working`.
    SetWorking,
    /// `send`, to the run's own branch.
    Send,
    /// `ask`, without waiting.
    Ask,
    /// `inbox`, with `--take` too.
    Inbox,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handed {
    /// The subcommand.
    pub verb: Verb,
    /// The state of `set-state`, or the question of `ask`.
    pub what: Option<String>,
    /// The text that the subcommand reads from its standard input.
    pub text: Option<String>,
    /// Flags with their values, such as `trailer` and `ticket: 7`.
    pub flags: Vec<(String, String)>,
    /// Flags without a value.
    pub switches: Vec<String>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The subcommand's exit code.
    pub code: i32,
    /// What the subcommand printed on its standard output.
    pub out: String,
    /// What the subcommand printed on its standard error.
    pub err: String,
}

impl Answer {
    /// Returns the answer to a request that is refused.
    pub fn refused(why: &str) -> Self {
        Self { code: 2, out: String::new(), err: format!("error: refused in the sandbox: {why}\n") }
    }
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::SetState => "set-state",
            Verb::SetWorking => "set-working",
            Verb::Send => "send",
            Verb::Ask => "ask",
            Verb::Inbox => "inbox",
        }
    }

    fn flags(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Verb::SetState => (&["trailer", "dialect"], &["keep-trailers", "json"]),
            Verb::SetWorking => (&["lease"], &["json"]),
            Verb::Send => (&["kind", "id", "trailer"], &["json"]),
            Verb::Ask => (&["choice"], &["json"]),
            Verb::Inbox => (&["kind", "take"], &["json"]),
        }
    }
}

impl Handed {
    /// Reads a request.
    ///
    /// # Errors
    /// Why the bytes are no request.
    pub fn parse(raw: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(raw).map_err(|why| format!("it is no request: {why}"))
    }

    /// Returns the arguments of the request's subcommand. They name no branch, because inside a run that is
    /// the run's own; `own`, the branch's short name, is added only for a subcommand that has to be given
    /// one.
    ///
    /// # Errors
    /// The part of the request that may not be handed over.
    pub fn words(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let (flags, switches) = self.verb.flags();
        let mut words = vec![self.verb.name().as_bytes().to_vec()];
        for (flag, value) in &self.flags {
            if !flags.contains(&flag.as_str()) || value.contains('\0') {
                return Err(format!("'--{flag}' of '{}'", self.verb.name()));
            }
            words.push(format!("--{flag}={value}").into_bytes());
        }
        for switch in &self.switches {
            if !switches.contains(&switch.as_str()) {
                return Err(format!("'--{switch}' of '{}'", self.verb.name()));
            }
            words.push(format!("--{switch}").into_bytes());
        }
        match (self.verb, &self.text) {
            (Verb::SetState | Verb::Send, Some(_)) => words.extend([b"-F".to_vec(), b"-".to_vec()]),
            (Verb::SetState | Verb::Send | Verb::SetWorking | Verb::Ask | Verb::Inbox, None) => {}
            (Verb::SetWorking | Verb::Ask | Verb::Inbox, Some(_)) => {
                return Err("a text that no flag is for".into());
            }
        }
        let what = self.what.as_ref().filter(|what| !what.contains('\0'));
        let positional = match (self.verb, what) {
            (Verb::SetState | Verb::Ask, Some(what)) => Some(what.clone().into_bytes()),
            (Verb::Send, None) => Some(own.to_vec()),
            (Verb::SetWorking | Verb::Inbox, None) => None,
            (Verb::SetState | Verb::Ask, None) | (Verb::Send | Verb::SetWorking | Verb::Inbox, Some(_)) => {
                return Err(format!("'{}' without its words, or with others", self.verb.name()));
            }
        };
        if let Some(positional) = positional {
            words.extend([b"--".to_vec(), positional]);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn handed(verb: Verb, what: Option<&str>, flags: &[(&str, &str)], switches: &[&str]) -> Handed {
        Handed {
            verb,
            what: what.map(str::to_owned),
            text: None,
            flags: flags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            switches: switches.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    fn words(of: &Handed) -> Result<String, String> {
        of.words(b"job")
            .map(|words| words.iter().map(|w| String::from_utf8_lossy(w)).collect::<Vec<_>>().join("|"))
    }

    /// K59: no value becomes a flag, and only the subcommand's own flags are taken.
    #[test]
    fn a_request_is_the_words_of_one_verb() {
        let set = handed(Verb::SetState, Some("-b"), &[("trailer", "--remote=x")], &["json"]);
        assert_eq!(words(&set).unwrap(), "set-state|--trailer=--remote=x|--json|--|-b");
        assert_eq!(words(&handed(Verb::Send, None, &[], &[])).unwrap(), "send|--|job");
        assert_eq!(
            words(&handed(Verb::Ask, Some("ok?"), &[("choice", "yes")], &[])).unwrap(),
            "ask|--choice=yes|--|ok?"
        );
        assert_eq!(words(&handed(Verb::Inbox, None, &[("take", "-x")], &[])).unwrap(), "inbox|--take=-x");
        for (verb, what, flag) in [
            (Verb::SetState, Some("x"), "branch"),
            (Verb::SetState, Some("x"), "remote"),
            (Verb::SetState, Some("x"), "file"),
            (Verb::Send, None, "attach"),
            (Verb::Send, None, "file"),
            (Verb::Ask, Some("x"), "wait"),
            (Verb::SetWorking, None, "branch"),
            (Verb::Inbox, None, "branch"),
            (Verb::Inbox, None, "follow"),
        ] {
            assert!(words(&handed(verb, what, &[(flag, "x")], &[])).is_err(), "{flag}");
            assert!(words(&handed(verb, what, &[], &[flag])).is_err(), "{flag}");
        }
        assert!(words(&handed(Verb::Send, Some("other"), &[], &[])).is_err());
        assert!(words(&handed(Verb::SetState, Some("a\0b"), &[], &[])).is_err());
        assert!(Handed::parse(br#"{"verb":"push","flags":[],"switches":[]}"#).is_err());
        assert!(Handed::parse(br#"{"verb":"ask","flags":[],"switches":[],"argv":[]}"#).is_err());
        assert_eq!(Handed::parse(&serde_json::to_vec(&set).unwrap()), Ok(set));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Handed::parse(&raw).map(|handed| handed.words(b"job"));
        }
    }
}
