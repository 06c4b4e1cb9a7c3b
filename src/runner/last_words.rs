//! The body of a `stalled` commit: what ended the command, how long it took, its last lines.
//!
//! Implements K23.

use super::Runner;
use super::supervise::Live;
use crate::protocol::complete::{Exit, Stall};
use crate::protocol::text::{escape, tail_block};
use crate::store::RefName;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much of each log goes into a `stalled` body, in bytes.
const TAIL: usize = 3 * 1024;

impl Runner<'_> {
    /// The body of a `stalled` commit: what ended it, how long it took, the last lines (K23).
    pub(super) fn details(
        &self,
        live: &Live,
        exit: Option<&Exit>,
        why: &Stall,
        attempt: Option<&RefName>,
    ) -> String {
        let took = humantime::format_duration(std::time::Duration::from_millis(
            live.started.elapsed().as_millis() as u64,
        ));
        let mut text = match (exit, why) {
            (_, Stall::Exit(exit)) => {
                format!("The command ended after {took}: {}.\n", escape(exit.to_string().as_bytes()))
            }
            (Some(exit), why) => {
                format!("{}.\nThe command ended after {took}: {exit}.\n", escape(why.to_string().as_bytes()))
            }
            (None, why) => format!("{}.\n", escape(why.to_string().as_bytes())),
        };
        if let Stall::Checkout(words) = why {
            text += &format!("\n{}\n", tail_block(words.as_bytes(), TAIL));
        }
        for (name, path) in [("stderr", &live.logs.stderr), ("stdout", &live.logs.stdout)] {
            let tail = tail_block(&last_bytes(path, TAIL), TAIL);
            if !tail.is_empty() && exit.is_some() {
                text += &format!("\nLast lines of {name}:\n\n{tail}\n");
            }
        }
        if let Some(name) = attempt {
            text += &format!(
                "\nWork that is not on the branch is kept in {}.\n",
                String::from_utf8_lossy(name.as_bytes())
            );
        }
        text
    }
}

fn last_bytes(path: &Path, limit: usize) -> Vec<u8> {
    let mut raw = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let length = file.metadata().map_or(0, |m| m.len());
        if file.seek(SeekFrom::Start(length.saturating_sub(limit as u64))).is_ok() {
            let _ = file.take(limit as u64).read_to_end(&mut raw);
        }
    }
    raw
}
