//! Tokens and codes, which let their holder look, or ask for changes. Both are in memory only, new at each
//! start, and compared in constant time. A code can be exchanged for its token once. Implements W12 (token),
//! W12a, W13 (codes).

use crate::Stopped;
use std::io::Read;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;

/// Most codes that are not exchanged yet; a new one replaces the oldest.
const CODES_MAX: usize = 64;

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everything that the page can do.
    All,
    /// Only look.
    Looks,
}

/// The tokens of this start, and the codes that can be exchanged for them.
pub struct Keys {
    all: String,
    looks: String,
    codes: Mutex<Vec<(String, Scope)>>,
}

/// Returns that many random bytes, in hexadecimal digits.
pub fn random(bytes: usize) -> String {
    let mut raw = vec![0; bytes];
    // Without randomness no token can be made, and no browser may be let in.
    getrandom::fill(&mut raw).expect("the system has no random numbers");
    raw.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Keys {
    /// Makes new tokens; the one for all scopes can be given.
    pub fn new(token: Option<String>) -> Self {
        let all = token.unwrap_or_else(|| random(32));
        Self { all, looks: random(32), codes: Mutex::default() }
    }

    /// Returns the token of a scope.
    pub fn token(&self, scope: Scope) -> &str {
        match scope {
            Scope::All => &self.all,
            Scope::Looks => &self.looks,
        }
    }

    /// Returns the scope of a token. It is compared with every token, and as a whole, so that the time tells
    /// nothing.
    pub fn scope_of(&self, given: &str) -> Option<Scope> {
        let all = self.all.as_bytes().ct_eq(given.as_bytes());
        let looks = self.looks.as_bytes().ct_eq(given.as_bytes());
        match (bool::from(all), bool::from(looks)) {
            (true, _) => Some(Scope::All),
            (false, true) => Some(Scope::Looks),
            (false, false) => None,
        }
    }

    /// Returns a new code for a scope.
    pub fn code(&self, scope: Scope) -> String {
        let code = random(16);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() >= CODES_MAX {
            codes.remove(0);
        }
        codes.push((code.clone(), scope));
        code
    }

    /// Exchanges a code for its scope; the code is worth nothing afterwards.
    pub fn trade(&self, given: &str) -> Option<Scope> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |code: &str| bool::from(code.as_bytes().ct_eq(given.as_bytes()));
        // All codes are compared, whichever matches, so that the time tells nothing.
        let found =
            codes.iter().enumerate().filter(|(_, (code, _))| is_it(code)).map(|(at, _)| at).next_back();
        found.map(|at| codes.remove(at).1)
    }
}

/// Reads what a supervisor hands in: the token on the first line, and on the second, if there is one, a host
/// name.
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
