//! What runs use and cost: tokens, dollars, models, as `dwp-usage` trailers say it.
//!
//! One trailer for each model: `dwp-usage: input=.. output=.. cost-usd=.. model=.. provider=..`, and all of
//! them count. Dollars are exact decimals, held as millionths, so that a sum of a thousand amounts is exact
//! too. Implements K54 (the values).

use super::dialect::{Dialect, USAGE};
use super::message::{Message, Trailer};
use std::fmt;
use std::fmt::Write;
use std::str::FromStr;

/// Most models that the usage of one commit is split into; the rest counts as one more, without a name.
pub const MODELS_MAX: usize = 16;
/// Longest name of a model or provider, in characters.
pub const NAME_MAX: usize = 200;

/// An amount of US dollars, in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Usd(u64);

/// The error for a text that is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadAmount;

impl fmt::Display for BadAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount is a decimal number of dollars, as in 12.50")
    }
}

impl std::error::Error for BadAmount {}

impl Usd {
    /// Returns the amount of so many millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the amount in millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Returns the sum of both amounts, or the highest amount there is where the sum overflows.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Usd {
    type Err = BadAmount;
    /// Reads a decimal number, with an exponent too, as JSON writes it. A part of a millionth counts as a
    /// whole one.
    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| BadAmount)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) || text.len() > 100
        {
            return Err(BadAmount);
        }
        let point = i64::from(exponent) + whole.len() as i64 + 6;
        let mut micros: u64 = 0;
        let mut below = false;
        for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            if (at as i64) < point {
                let next = micros.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
                micros = next.ok_or(BadAmount)?;
            } else {
                below |= digit != b'0';
            }
        }
        let missing = point - (whole.len() + fraction.len()) as i64;
        if micros > 0 && missing > 0 {
            let scale = u32::try_from(missing).ok().and_then(|n| 10u64.checked_pow(n));
            micros = scale.and_then(|scale| micros.checked_mul(scale)).ok_or(BadAmount)?;
        }
        micros.checked_add(u64::from(below)).map(Self).ok_or(BadAmount)
    }
}

impl fmt::Display for Usd {
    /// Writes at least two decimals, and beyond those no trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % 1_000_000);
        let shown = fraction.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / 1_000_000, &fraction[..shown])
    }
}

/// What was used of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// What the usage cost, where that was said.
    pub cost: Option<Usd>,
    /// The model's name.
    pub model: Option<String>,
    /// The provider of the model.
    pub provider: Option<String>,
}

impl Usage {
    /// Adds the tokens and the cost of another usage to these; the names stay.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
    }

    /// True where nothing was used and no model is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the trailer's value.
    pub fn value(&self) -> String {
        let mut value = format!("input={} output={}", self.input, self.output);
        if let Some(cost) = self.cost {
            let _ = write!(value, " cost-usd={cost}");
        }
        for (key, name) in [("model", &self.model), ("provider", &self.provider)] {
            if let Some(name) = name {
                let _ = write!(value, " {key}={}", one_word(name));
            }
        }
        value
    }

    /// Returns the trailer.
    pub fn trailer(&self) -> Trailer {
        Dialect::Dwp.trailer(USAGE, self.value())
    }

    /// Reads a trailer's value. A number that can't be read counts as nothing, an unknown word is passed over.
    pub fn read(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value);
        let mut usage = Self::default();
        for word in text.split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("input", n)) => usage.input = n.parse().unwrap_or(0),
                Some(("output", n)) => usage.output = n.parse().unwrap_or(0),
                Some(("cost-usd", n)) => usage.cost = n.parse().ok(),
                Some(("model", name)) => usage.model = name_of(name),
                Some(("provider", name)) => usage.provider = name_of(name),
                Some(_) | None => {}
            }
        }
        usage
    }
}

/// Returns what one commit says was used, one entry for each model and provider.
pub fn usage_of(message: &Message) -> Vec<Usage> {
    let mut all = Vec::new();
    for key in Dialect::ALL.map(|dialect| USAGE.of(dialect)) {
        for value in message.all(key) {
            tally(&mut all, Usage::read(value));
        }
    }
    all
}

/// Adds usage to the entry of the same model and provider, or, beyond [`MODELS_MAX`] entries, to the one
/// without a name.
pub fn tally(all: &mut Vec<Usage>, one: Usage) {
    if one.is_empty() {
        return;
    }
    let same = |known: &&mut Usage| known.model == one.model && known.provider == one.provider;
    if let Some(known) = all.iter_mut().find(same) {
        known.add(&one);
    } else if all.len() < MODELS_MAX || one.model.is_none() && one.provider.is_none() {
        all.push(one);
    } else {
        tally(all, Usage { model: None, provider: None, ..one });
    }
}

/// Returns the sum of all usage, without names.
pub fn total<'a>(all: impl IntoIterator<Item = &'a Usage>) -> Usage {
    let mut total = Usage::default();
    all.into_iter().for_each(|one| total.add(one));
    total
}

/// Returns a name as one word: what is no printable ASCII, blanks and `%` are written as `%XX`.
fn one_word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars().take(NAME_MAX) {
        if c.is_ascii_graphic() && c != '%' {
            word.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(word, "%{byte:02X}");
            }
        }
    }
    word
}

fn name_of(word: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push(digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0));
                rest = tail;
            }
            (byte, tail) => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    let name: String = String::from_utf8_lossy(&bytes).chars().take(NAME_MAX).collect();
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// K54.
    #[test]
    fn dollars_are_exact_decimals() {
        for (text, micros, shown) in [
            ("0", 0, "0.00"),
            ("12.5", 12_500_000, "12.50"),
            ("0.000001", 1, "0.000001"),
            ("0.0000001", 1, "0.000001"),
            ("1e-7", 1, "0.000001"),
            ("1.5e-3", 1500, "0.0015"),
            ("2E3", 2_000_000_000, "2000.00"),
            (".5", 500_000, "0.50"),
            ("0.10", 100_000, "0.10"),
            ("0e999", 0, "0.00"),
            ("0000000000000000000000001", 1_000_000, "1.00"),
            ("18446744073709.551615", u64::MAX, "18446744073709.551615"),
        ] {
            let read: Usd = text.parse().unwrap();
            assert_eq!((read.micros(), read.to_string().as_str()), (micros, shown), "{text}");
        }
        for bad in
            ["", ".", "-1", "+1", "1,5", "NaN", "inf", "1e", "1e999", "1 ", "18446744073709.551616", "$1"]
        {
            assert_eq!(bad.parse::<Usd>(), Err(BadAmount), "{bad}");
        }
        let third: Usd = "0.1".parse().unwrap();
        assert_eq!(third.plus(third).plus(third).to_string(), "0.30");
        assert_eq!(Usd::from_micros(u64::MAX).plus(third), Usd::from_micros(u64::MAX));
    }

    /// K54: one trailer for each model, and usage of the same model is added up.
    #[test]
    fn usage_reads_as_it_was_written_and_adds_up() {
        let one = Usage {
            input: 100,
            output: 20,
            cost: "0.25".parse().ok(),
            model: Some("large v1 100%".into()),
            provider: Some("acme".into()),
        };
        assert_eq!(one.value(), "input=100 output=20 cost-usd=0.25 model=large%20v1%20100%25 provider=acme");
        assert_eq!(Usage::read(one.value().as_bytes()), one);
        let free = Usage { cost: None, model: Some("small".into()), ..one.clone() };
        let message = Message::new("s", "", vec![one.trailer(), free.trailer(), one.trailer()]);
        let all = usage_of(&message);
        assert_eq!(all, [Usage { input: 200, output: 40, cost: "0.5".parse().ok(), ..one }, free]);
        let sum = total(&all);
        assert_eq!((sum.input, sum.output, sum.cost), (300, 60, "0.5".parse().ok()));
    }

    /// K54: what a pushed commit says is bounded.
    #[test]
    fn what_cannot_be_read_counts_as_nothing() {
        let odd = Usage::read(b"input=-1 output=x cost-usd=free model= cost=7 \xff provider=%ff%zz%4");
        assert_eq!(odd, Usage { provider: Some("\u{fffd}%zz%4".into()), ..Usage::default() });
        let many =
            (0..100).map(|n| Usage { input: 1, model: Some(n.to_string()), ..Usage::default() }.trailer());
        let all = usage_of(&Message::new("s", "", many.collect()));
        assert_eq!((all.len(), total(&all).input), (MODELS_MAX + 1, 100));
    }

    proptest! {
        #[test]
        fn any_amount_is_shown_as_it_is_read(micros in any::<u64>()) {
            let usd = Usd::from_micros(micros);
            prop_assert_eq!(usd.to_string().parse(), Ok(usd));
        }

        #[test]
        fn any_bytes_are_usage(raw in any::<Vec<u8>>(), text in "\\PC{0,60}") {
            let _ = (Usage::read(&raw), text.parse::<Usd>());
            let name: String = text.chars().take(NAME_MAX).collect();
            let usage = Usage { model: Some(name).filter(|name| !name.is_empty()), ..Usage::default() };
            prop_assert_eq!(Usage::read(usage.value().as_bytes()), usage);
        }
    }
}
