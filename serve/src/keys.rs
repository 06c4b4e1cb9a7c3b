//! Tokens and codes: who holds one may look, or ask for changes. In memory only, new at each start, compared in constant
//! time. A code is traded for its token once. Implements W12 (token), W12a, W13 (codes).

use crate::Stopped;
use std::io::Read;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;

/// Most codes that wait to be traded.
const CODES_MAX: usize = 64;

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All that the page can.
    All,
    /// Look.
    Looks,
}

/// The tokens of this start, and the codes that lead to them.
pub struct Keys {
    all: String,
    looks: String,
    codes: Mutex<Vec<(String, Scope)>>,
}

/// So many random bytes, in hexadecimal digits.
pub fn random(bytes: usize) -> String {
    let mut raw = vec![0; bytes];
    // Without randomness there is no token, and no browser is let in.
    getrandom::fill(&mut raw).expect("the system has no random numbers");
    raw.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Keys {
    /// New ones; the first token may be handed in.
    pub fn new(token: Option<String>) -> Self {
        let all = token.unwrap_or_else(|| random(32));
        Self { all, looks: random(32), codes: Mutex::default() }
    }

    /// A token.
    pub fn token(&self, scope: Scope) -> &str {
        match scope {
            Scope::All => &self.all,
            Scope::Looks => &self.looks,
        }
    }

    /// What a token lets its holder do. Every token is compared, whole.
    pub fn scope_of(&self, given: &str) -> Option<Scope> {
        let all = self.all.as_bytes().ct_eq(given.as_bytes());
        let looks = self.looks.as_bytes().ct_eq(given.as_bytes());
        match (bool::from(all), bool::from(looks)) {
            (true, _) => Some(Scope::All),
            (false, true) => Some(Scope::Looks),
            (false, false) => None,
        }
    }

    /// A new code.
    pub fn code(&self, scope: Scope) -> String {
        let code = random(16);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() >= CODES_MAX {
            codes.remove(0);
        }
        codes.push((code.clone(), scope));
        code
    }

    /// Trades a code, which is worth nothing afterwards.
    pub fn trade(&self, given: &str) -> Option<Scope> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |code: &str| bool::from(code.as_bytes().ct_eq(given.as_bytes()));
        // All of them are compared, whichever it is.
        let found =
            codes.iter().enumerate().filter(|(_, (code, _))| is_it(code)).map(|(at, _)| at).next_back();
        found.map(|at| codes.remove(at).1)
    }
}

/// Reads what a supervisor hands in: the token on the first line, and on a second one a name to answer to.
pub fn handed_in(fd: RawFd) -> Result<(String, Option<String>), Stopped> {
    let wrong = |why: String| Stopped { code: 129, message: format!("--token-fd {fd}: {why}"), hint: None };
    let path = format!("/dev/fd/{fd}");
    let mut text = String::new();
    let file = std::fs::File::open(&path).map_err(|error| wrong(error.to_string()))?;
    file.take(1024).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    let mut lines = text.lines();
    let token = lines.next().unwrap_or_default();
    let is_token = token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit());
    let label = lines.next().map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned);
    match is_token {
        true => Ok((token.to_owned(), label)),
        false => Err(wrong("want 64 hexadecimal digits".to_owned())),
    }
}
