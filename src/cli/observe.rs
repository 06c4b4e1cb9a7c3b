//! What is shown while commands run: a line on a terminal, or their output where it was asked for.

use super::output::{self, StreamEscaper};
use crate::protocol::text::escape;
use crate::runner::{Observer, Progress};
use crate::store::RefName;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lines that are not all there yet, by branch and whether they are stderr's.
type Begun = BTreeMap<(String, bool), Vec<u8>>;

/// Shows progress on standard error, if that is a terminal.
pub struct Display {
    live: bool,
    notes: bool,
    running: Mutex<BTreeMap<String, Instant>>,
    /// What commands print on stdout and stderr, where that goes to a terminal.
    tame: [Option<Mutex<StreamEscaper>>; 2],
    /// Where several commands print at once: the line that each is in the middle of, by branch and stream.
    begun: Option<Mutex<Begun>>,
    /// Where each of them stands in a line, where every line of a command's own has a mark.
    marked: Option<[Mutex<bool>; 2]>,
}

/// What stands before each line of a command's own that a pusher is shown: none of them can be taken for ours.
const MARK: &str = "| ";
/// A line above this is shown in pieces, each marked: memory stays bounded.
const LINE_MAX: usize = 64 * 1024;

impl Display {
    /// A display; `quiet` says nothing at all.
    pub fn new(quiet: bool, tee: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let tame = [std::io::stdout().is_terminal(), terminal].map(|shown| shown.then(Mutex::default));
        let live = terminal && !quiet && !tee;
        Self { live, notes: !quiet, running: Mutex::default(), tame, marked: None, begun: None }
    }

    /// A display for a user who pushed: at its other end is a terminal, whatever these streams are.
    pub fn for_pusher(tee: bool) -> Self {
        let tame = [true, true].map(|shown| shown.then(Mutex::default));
        Self { tame, marked: Some(Default::default()), ..Self::new(true, tee) }
    }

    /// A display that, where `several` commands may print at once, says of each whole line which branch it is of.
    pub fn several(self, several: bool) -> Self {
        Self { begun: several.then(Mutex::default), ..self }
    }

    /// What a command printed: as it comes, or in whole lines that say whose they are.
    fn pass_on(&self, branch: &str, stderr: bool, bytes: &[u8]) {
        let Some(begun) = &self.begun else { return self.put(stderr, bytes) };
        let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        let line = begun.entry((branch.to_owned(), stderr)).or_default();
        line.extend_from_slice(bytes);
        let whole = match line.iter().rposition(|b| *b == b'\n') {
            Some(end) => line.drain(..=end).collect::<Vec<_>>(),
            None if line.len() > LINE_MAX => std::mem::take(line),
            None => return,
        };
        drop(begun);
        self.put(stderr, &mark(branch, &whole));
    }

    /// The lines that a command ended without ending.
    fn end_named(&self, branch: &str) {
        let Some(begun) = &self.begun else { return };
        for stderr in [false, true] {
            let rest = begun.lock().ok().and_then(|mut all| all.remove(&(branch.to_owned(), stderr)));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                self.put(stderr, &mark(branch, &rest));
            }
        }
    }

    fn put(&self, stderr: bool, bytes: &[u8]) {
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
            Progress::Chunk { stderr, bytes } => self.pass_on(&name, stderr, bytes),
            Progress::Ended { .. } => {
                self.end_named(&name);
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

/// Each line with the branch that it is of, and ended.
fn mark(branch: &str, lines: &[u8]) -> Vec<u8> {
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    let marked = lines.split(|b| *b == b'\n').map(|line| [branch.as_bytes(), b" | ", line, b"\n"].concat());
    marked.collect::<Vec<_>>().concat()
}
