//! `gc`: says what was removed, or would be. The work is `runner::gc`'s.

use super::args::Gc;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output};
use crate::app::Exit;
use crate::app::gc::{GcLine, collect};
use crate::protocol::text::escape;
use crate::runner::gc::Removal;
use std::collections::HashSet;

/// Runs `git aynig gc`.
pub fn run(global: &Global, args: &Gc) -> Result<i32, Failure> {
    let collected = collect(&global.open()?, args.dry_run)?;
    let mut lines = output::Lines::begin();
    for removal in &collected.removed {
        if args.json {
            lines.offer_json(&GcLine::new(removal, args.dry_run));
        } else if !global.quiet {
            lines.offer(&text(removal, args.dry_run));
        }
    }
    drop(lines);
    let mut ended = Exit::Done;
    let mut said = HashSet::new();
    for error in collected.failed {
        ended = ended.max(Exit::from(&error));
        // What keeps one thing from being removed often keeps many from it: each text is printed once.
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
    let aside = removal
        .aside
        .as_ref()
        .map(|dir| format!("; what it held is in '{}'", escape(dir.as_os_str().as_encoded_bytes())));
    let files = removal.bytes.map(|bytes| format!("; {} MiB of files kept for its branch", bytes >> 20));
    let more: String = [kept, aside, files].into_iter().flatten().collect();
    format!("{what} {} '{name}'{more}", removal.kind.name().replace('-', " "))
}
