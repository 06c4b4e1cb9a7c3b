//! What a turn used: tokens, and money where a program tells its price.

use crate::contract::node::Usage;

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens read, those from a cache included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// Millionths of a US dollar, where the program tells a price.
    pub micro_usd: Option<u64>,
    /// The model, where it is told.
    pub model: Option<String>,
}

impl Spent {
    /// What was used since there was that much: for a program that tells sums. Where the sum is smaller it is
    /// another thread's, and all of it is new.
    pub fn since(&self, before: &Self) -> Self {
        if self.input < before.input || self.output < before.output {
            return self.clone();
        }
        Self {
            input: self.input - before.input,
            output: self.output - before.output,
            cached: self.cached.saturating_sub(before.cached),
            micro_usd: self.micro_usd.map(|all| all.saturating_sub(before.micro_usd.unwrap_or(0))),
            model: self.model.clone(),
        }
    }

    /// One turn's more, of a process that tells each turn's own.
    pub(super) fn add(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cached = self.cached.saturating_add(more.cached);
    }

    /// The same as the contract counts it.
    pub fn usage(&self) -> Usage {
        Usage::of(self.input, self.output)
    }
}

/// Millionths of a dollar, of a number of dollars as a program prints it.
pub(super) fn micro_usd(dollars: f64) -> Option<u64> {
    let micro = (dollars * 1e6).round();
    // Beyond what a float counts exactly nothing is said, rather than something wrong.
    (0.0..=9e15).contains(&micro).then_some(micro as u64)
}
