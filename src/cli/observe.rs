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
    /// Where each of them stands in a line, where every line of a command's own has a mark.
    marked: Option<[Mutex<bool>; 2]>,
}

/// What stands before each line of a command's own that a pusher is shown: none of them can be taken for ours.
const MARK: &str = "| ";

impl Display {
    /// A display; `quiet` says nothing at all.
    pub fn new(quiet: bool, tee: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let tame = [std::io::stdout().is_terminal(), terminal].map(|shown| shown.then(Mutex::default));
        Self {
            live: terminal && !quiet && !tee,
            notes: !quiet,
            running: Mutex::default(),
            tame,
            marked: None,
        }
    }

    /// A display at the other end of which is somebody's terminal, whatever these streams are: a pusher's.
    pub fn for_pusher(tee: bool) -> Self {
        let tame = [true, true].map(|shown| shown.then(Mutex::default));
        Self { tame, marked: Some(Default::default()), ..Self::new(true, tee) }
    }

    /// What a command printed.
    fn pass_on(&self, stderr: bool, bytes: &[u8]) {
        match self.tame[usize::from(stderr)].as_ref().map(|tame| tame.lock()) {
            None => output::raw(stderr, bytes),
            Some(Ok(mut tame)) => output::raw(stderr, self.mark(stderr, tame.take(bytes)).as_bytes()),
            Some(Err(_)) => {}
        }
    }

    /// The text with a mark before each line that begins in it.
    fn mark(&self, stderr: bool, text: String) -> String {
        let Some(Ok(mut within)) = self.marked.as_ref().map(|lines| lines[usize::from(stderr)].lock()) else {
            return text;
        };
        let mut marked = String::with_capacity(text.len() + MARK.len());
        for line in text.split_inclusive('\n') {
            if !*within {
                marked.push_str(MARK);
            }
            *within = !line.ends_with('\n');
            marked.push_str(line);
        }
        marked
    }

    /// Ends the lines that a command left open.
    fn end_lines(&self) {
        for (stderr, within) in self.marked.iter().flatten().enumerate() {
            if within.lock().is_ok_and(|mut within| std::mem::take(&mut *within)) {
                output::raw(stderr == 1, b"\n");
            }
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
                self.end_lines();
                self.clear();
            }
            Progress::Started { .. } | Progress::Renewed => {}
        }
    }
}
