//! `gc`: says what was removed, or would be. The work is `runner::gc`'s.

use super::args::Gc;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output};
use crate::app::config::Flags;
use crate::app::{Exit, mend};
use crate::protocol::text::escape;
use crate::runner::Silent;
use crate::runner::gc::{Collector, Expiry, Removal};
use crate::supervisor::interrupt::Interrupt;
use serde_json::json;
use std::collections::HashSet;

/// The schema of a removal.
pub const GC_SCHEMA: &str = "aynig.gc/1";

/// `git aynig gc`.
pub fn run(global: &Global, args: &Gc) -> Result<i32, Failure> {
    let session = global.open()?;
    // What is removed is here, whatever remote is ticked.
    let settings = session.settings(&Flags::here())?;
    let expiry = Expiry {
        logs: session.config.expiry("logExpire", 30)?,
        attempts: session.config.expiry("attemptExpire", 90)?,
    };
    let interrupt = Interrupt::never()?;
    let runner = if args.dry_run {
        session.reader(&settings, &interrupt)?
    } else {
        session.runner(&settings, &interrupt, &Silent)?
    };
    if !args.dry_run {
        mend::finish_checkouts(&session);
    }
    let collected = Collector::new(&runner, expiry, args.dry_run).collect();
    for removal in &collected.removed {
        if args.json {
            output::line(&json(removal, args.dry_run));
        } else if !global.quiet {
            output::line(&text(removal, args.dry_run));
        }
    }
    let mut ended = Exit::Done;
    let mut said = HashSet::new();
    for error in collected.failed {
        ended = ended.max(Exit::from(&error));
        // What stands in the way of one stands in the way of many: it is said once.
        let text = Failure::from(error).render();
        if said.insert(text.clone()) {
            output::error(&text);
        }
    }
    Ok(exit::code(ended))
}

fn text(removal: &Removal, dry: bool) -> String {
    let what = if dry { "would remove" } else { "removed" };
    let name = escape(removal.name.as_os_str().as_encoded_bytes());
    let kept = removal.kept.as_ref().map(|kept| format!("; its work is kept in {}", escape(kept.as_bytes())));
    format!("{what} {} '{name}'{}", removal.kind.name().replace('-', " "), kept.unwrap_or_default())
}

fn json(removal: &Removal, dry: bool) -> String {
    output::json(&json!({
        "schema": GC_SCHEMA,
        "kind": removal.kind.name(),
        "name": removal.name.to_string_lossy(),
        "removed": !dry,
        "kept": removal.kept.as_ref().map(|kept| String::from_utf8_lossy(kept.as_bytes())),
    }))
}
