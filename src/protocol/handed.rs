//! What a confined command hands over: a verb that writes refs, which the kernel keeps from itself, or reads what it may not.
//!
//! A request is a typed value, never a command line: what becomes of it are the words of one of five verbs, about the
//! run's own branch, with each value in one word with its flag, so that none is taken for another. Whatever else a
//! command writes there is refused. Implements K59 (the hand-over).

use serde::{Deserialize, Serialize};

/// Where requests are, in the run's folder; the answer to `<id>` is `<id>.done`.
pub const FOLDER: &str = "handed";
/// Most bytes of a request: a text of 1 MiB, escaped.
pub const REQUEST_MAX: u64 = 8 << 20;
/// Most bytes of each of the two streams of an answer.
pub const ANSWER_MAX: usize = 1 << 20;
/// Most requests of one run.
pub const REQUESTS_MAX: usize = 1000;

/// The verbs that are handed over.
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
    /// Which verb.
    pub verb: Verb,
    /// The state, or the question.
    pub what: Option<String>,
    /// The message, on standard input.
    pub text: Option<String>,
    /// Flags with their values, such as `trailer` and `ticket: 7`.
    pub flags: Vec<(String, String)>,
    /// Flags without.
    pub switches: Vec<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The verb's exit code.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it said beside that.
    pub err: String,
}

impl Answer {
    /// It was refused.
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
    /// Why it is none.
    pub fn parse(raw: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(raw).map_err(|why| format!("it is no request: {why}"))
    }

    /// The words of its verb. A branch's name is not among them: inside a run that is the run's own, and `own` is how it is
    /// called where a verb has to be told.
    ///
    /// # Errors
    /// What is not handed over.
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

    /// K59: no value becomes a flag, and none but the verb's own flags are taken.
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
