//! What is shown while commands run: a line on a terminal, or their output where it was asked for.

use super::output::{self, Tame};
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
    /// What commands print on stdout and stderr, where that goes to a terminal.
    tame: [Option<Mutex<Tame>>; 2],
}

impl Display {
    /// A display; `quiet` says nothing at all.
    pub fn new(quiet: bool, tee: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let tame = [std::io::stdout().is_terminal(), terminal].map(|shown| shown.then(Mutex::default));
        Self { live: terminal && !quiet && !tee, notes: !quiet, running: Mutex::default(), tame }
    }

    /// A display at the other end of which is somebody's terminal, whatever these streams are: a pusher's.
    pub fn for_pusher(tee: bool) -> Self {
        Self { tame: [true, true].map(|shown| shown.then(Mutex::default)), ..Self::new(true, tee) }
    }

    /// What a command printed.
    fn pass_on(&self, stderr: bool, bytes: &[u8]) {
        match self.tame[usize::from(stderr)].as_ref().map(|tame| tame.lock()) {
            None => output::raw(stderr, bytes),
            Some(Ok(mut tame)) => output::raw(stderr, tame.take(bytes).as_bytes()),
            Some(Err(_)) => {}
        }
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
                    output::note(&format!(
                        "{name}: all worktrees are in use; waiting for one (git aynig doctor says who has them)"
                    ));
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
            Progress::Chunk { stderr, bytes } => self.pass_on(stderr, bytes),
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
