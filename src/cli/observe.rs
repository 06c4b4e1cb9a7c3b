//! What is shown while commands run: a line on a terminal, or their output where it was asked for.

use super::output;
use crate::protocol::text::escape;
use crate::runner::{Observer, Progress};
use crate::store::RefName;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

/// Shows progress on standard error, if that is a terminal.
pub struct Display {
    live: bool,
    notes: bool,
    running: Mutex<BTreeMap<String, Instant>>,
}

impl Display {
    /// A display; `quiet` says nothing at all.
    pub fn new(quiet: bool, tee: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { live: terminal && !quiet && !tee, notes: !quiet, running: Mutex::default() }
    }

    /// Takes the progress line away before something else is printed.
    pub fn clear(&self) {
        if self.live {
            output::error("\r\x1b[K");
        }
    }

    fn show(&self, branch: &str, text: &str) {
        let elapsed = self.running.lock().ok().and_then(|r| r.get(branch).map(Instant::elapsed));
        let seconds = elapsed.unwrap_or_default().as_secs();
        let line: String = format!("{branch}: {seconds}s {text}").chars().take(78).collect();
        output::error(&format!("\r\x1b[K{line}"));
    }
}

impl Observer for Display {
    fn told(&self, branch: &RefName, progress: Progress<'_>) {
        let name = escape(branch.short());
        match progress {
            Progress::WaitingForSlot => {
                if self.notes {
                    self.clear();
                    output::note(&format!("{name}: all worktrees are in use; waiting for one"));
                }
            }
            Progress::Claimed { state, .. } => {
                if let Ok(mut running) = self.running.lock() {
                    running.insert(name.clone(), Instant::now());
                }
                if self.live {
                    self.show(&name, &escape(state.as_bytes()));
                }
            }
            Progress::Output { last, .. } => {
                if self.live {
                    self.show(&name, &escape(last));
                }
            }
            Progress::Chunk { stderr, bytes } => output::raw(stderr, bytes),
            Progress::Ended { .. } => {
                if let Ok(mut running) = self.running.lock() {
                    running.remove(&name);
                }
                self.clear();
            }
            Progress::Started { .. } | Progress::Renewed => {}
        }
    }
}
