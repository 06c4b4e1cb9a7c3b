//! `usage`: what runs have used and cost, added up from history: schema `aynig.usage/1`.
//!
//! Reads only, and works in a repository that is not trusted. Implements K54 (`usage`).

use super::config::Flags;
use super::session::Session;
use super::{AppError, events, mend};
use crate::protocol::event::ORIGIN_STATE;
use crate::protocol::usage::{Usage, total};
use crate::runner::spent::Used;
use crate::store::{RefName, StoreError};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema of a line.
pub const USAGE_SCHEMA: &str = "aynig.usage/1";

/// What is added up into one sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Everything.
    Total,
    /// The runs of a branch, by its short name.
    Branch,
    /// The runs that answered a state.
    State,
    /// The use of a model.
    Model,
    /// The runs that ended on a day, in UTC.
    Day,
}

/// What some runs used.
#[derive(Debug, Default, Clone)]
pub struct Sum {
    /// How many runs.
    pub runs: u64,
    /// How many of them did not say what they cost.
    pub unpriced: u64,
    /// What they used together.
    pub used: Usage,
}

impl Sum {
    fn add(&mut self, used: &Usage) {
        self.runs += 1;
        self.unpriced += u64::from(used.cost.is_none());
        self.used.add(&Usage { model: None, provider: None, ..used.clone() });
    }
}

/// The sums of what runs used.
pub struct Added {
    /// Each group's name and sum: days with the newest last, all others with the most expensive first.
    pub groups: Vec<(Option<Vec<u8>>, Sum)>,
    /// The sum of all groups.
    pub total: Sum,
    /// Branches whose head can't be read.
    pub failed: Vec<(RefName, StoreError)>,
}

/// Adds up what the runs used that ended since `since`, on all branches.
pub fn add_up(
    session: &Session,
    remote: Option<String>,
    since: Option<&str>,
    by: By,
) -> Result<Added, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    runner.store.refresh()?;
    let since = since.map(events::since).transpose()?;
    let heads = runner.store.read_heads("refs/heads/")?;
    let mut groups: BTreeMap<Option<Vec<u8>>, Sum> = BTreeMap::new();
    let mut all = Sum::default();
    runner.each_used(&heads.heads, since, &mut |run: Used<'_>| {
        all.add(&total(&run.usage));
        match by {
            By::Total => {}
            By::Model => {
                for one in &run.usage {
                    let name = one.model.as_ref().map(|model| model.clone().into_bytes());
                    groups.entry(name).or_default().add(one);
                }
            }
            By::Branch | By::State | By::Day => {
                groups.entry(name(&run, by)).or_default().add(&total(&run.usage));
            }
        }
    })?;
    let mut groups: Vec<_> = groups.into_iter().collect();
    if by != By::Day {
        // The sort is stable: equal sums stay in the order of their names.
        groups.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.used.cost, sum.used.input)));
    }
    Ok(Added { groups, total: all, failed: heads.failed })
}

fn name(run: &Used<'_>, by: By) -> Option<Vec<u8>> {
    match by {
        By::Branch => Some(run.branch.short().to_vec()),
        By::State => run.event.text(ORIGIN_STATE).map(|state| state.as_bytes().to_vec()),
        By::Day => run.at.and_then(day).map(String::into_bytes),
        By::Total | By::Model => None,
    }
}

/// Returns the day of a time, in UTC, as `2030-01-31`.
fn day(at: i64) -> Option<String> {
    events::date(Some(at)).map(|date| date.chars().take(10).collect())
}

/// A sum as programs read it.
#[derive(Serialize)]
pub struct UsageLine {
    schema: &'static str,
    by: By,
    name: Option<String>,
    runs: u64,
    unpriced: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: Option<f64>,
}

impl UsageLine {
    /// Makes the line of a group, or of the total.
    pub fn of(by: By, name: Option<&[u8]>, sum: &Sum) -> Self {
        Self {
            schema: USAGE_SCHEMA,
            by,
            name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
            runs: sum.runs,
            unpriced: sum.unpriced,
            input_tokens: sum.used.input,
            output_tokens: sum.used.output,
            // The nearest fraction to a decimal number is written as that number again.
            cost_usd: sum.used.cost.and_then(|cost| cost.to_string().parse().ok()),
        }
    }
}
