//! `gc`: removes what is no longer needed, and what programs are told of each removal: schema `aynig.gc/1`.
//!
//! The work is `runner::gc`'s. Implements git-aynig-gc(1).

use super::config::Flags;
use super::session::Session;
use super::shown::full;
use super::{AppError, mend};
use crate::runner::Silent;
use crate::runner::gc::{Collected, Collector, Expiry, Removal};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;

/// The schema of a removal.
pub const GC_SCHEMA: &str = "aynig.gc/1";

/// Removes what is no longer needed, or with `dry` only finds it.
pub fn collect(session: &Session, dry: bool) -> Result<Collected, AppError> {
    // Only what is in this repository is removed, whatever remote is ticked.
    let settings = session.settings(&Flags::here())?;
    let expiry = Expiry {
        logs: session.config.expiry("logExpire", 30)?,
        attempts: session.config.expiry("attemptExpire", 90)?,
    };
    let interrupt = Interrupt::never()?;
    let runner = if dry {
        session.reader(&settings, &interrupt)?
    } else {
        session.runner(&settings, &interrupt, &Silent)?
    };
    if !dry {
        mend::finish_checkouts(session);
    }
    Ok(Collector::new(&runner, expiry, dry).collect())
}

/// A removal as programs read it.
#[derive(Serialize)]
pub struct GcLine<'a> {
    schema: &'static str,
    kind: &'static str,
    name: Cow<'a, str>,
    removed: bool,
    kept: Option<Cow<'a, str>>,
    kept_bytes: Option<u64>,
}

impl<'a> GcLine<'a> {
    /// Makes the line of a removal, or with `dry` of what would be one.
    pub fn new(removal: &'a Removal, dry: bool) -> Self {
        Self {
            schema: GC_SCHEMA,
            kind: removal.kind.name(),
            name: removal.name.to_string_lossy(),
            removed: !dry,
            kept: removal.kept.as_ref().map(full),
            kept_bytes: removal.bytes,
        }
    }
}
