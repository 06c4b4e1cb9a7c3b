//! What a turn used: tokens, and money if the program reports a price.

use crate::contract::node::Usage;

/// Tokens and money that were used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens that were read, from a cache too.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// Tokens that were read from a cache.
    pub cached: u64,
    /// The price in millionths of a US dollar, if the program reports one.
    pub micro_usd: Option<u64>,
    /// The model, if the program reports it.
    pub model: Option<String>,
}

impl Spent {
    /// Returns what was used since the sum was `before`, for a program that reports sums. A smaller sum is
    /// that of another thread, so all of it is new.
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

    /// Adds the tokens of one more turn, for a process that reports each turn on its own.
    pub(super) fn add(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cached = self.cached.saturating_add(more.cached);
    }

    /// Returns the usage in the contract's form.
    pub fn usage(&self) -> Usage {
        Usage::of(self.input, self.output)
    }
}

/// Returns a number of dollars, as a program prints it, in millionths; `None` for a negative number or one
/// too large to be exact.
pub(super) fn micro_usd(dollars: f64) -> Option<u64> {
    let micro = (dollars * 1e6).round();
    // Beyond what a float counts exactly, no price is better than a wrong one.
    (0.0..=9e15).contains(&micro).then_some(micro as u64)
}
