//! What is shown while commands run: a line on a terminal, or their output where it was asked for.

use super::output::{self, StreamEscaper};
use super::terminal::is_dumb;
use crate::protocol::text::escape;
use crate::runner::{Observer, Progress};
use crate::store::RefName;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lines that are not complete yet, by branch and by whether they are of standard error.
type Begun = BTreeMap<(String, bool), Vec<u8>>;

/// Shows progress on standard error, if that is a terminal that can be drawn on.
pub struct Display {
    live: bool,
    notes: bool,
    running: Mutex<BTreeMap<String, Instant>>,
    /// What escapes the output of commands on stdout and stderr; `None` for a stream that gets bytes as they
    /// are.
    tame: [Option<Mutex<StreamEscaper>>; 2],
    /// The line that each command is in the middle of, by branch and stream; `None` where no two commands
    /// print at once.
    begun: Option<Mutex<Begun>>,
    /// The stream whose line is open; `None` where lines of commands get no mark. There is one line for both
    /// streams, because a pusher is shown both as one.
    marked: Option<Mutex<Open>>,
}

/// Whether a line is open on a stream, and if so whether that is standard error.
type Open = Option<bool>;

/// What stands before each line of a command's output that a pusher is shown, so that no such line can be
/// taken for this program's own.
const MARK: &str = "| ";
/// A line of more bytes than this is shown in pieces, each marked, so that memory stays bounded.
const LINE_MAX: usize = 64 * 1024;

impl Display {
    /// Creates a display. With `quiet` it shows neither progress nor notes; with `tee` output takes the place
    /// of progress.
    pub fn new(quiet: bool, tee: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let tame = [std::io::stdout().is_terminal(), terminal].map(|shown| shown.then(Mutex::default));
        let live = terminal && !quiet && !tee && !is_dumb();
        Self { live, notes: !quiet, running: Mutex::default(), tame, marked: None, begun: None }
    }

    /// Creates a display for a user who pushed. A terminal may be at that user's end whatever these streams
    /// are, so all output is escaped, and each line of a command is marked.
    pub fn for_pusher(tee: bool) -> Self {
        let tame = [true, true].map(|shown| shown.then(Mutex::default));
        Self { tame, marked: Some(Default::default()), ..Self::new(true, tee) }
    }

    /// Makes the display print whole lines that name their branch, where `several` commands may print at
    /// once.
    pub fn several(self, several: bool) -> Self {
        Self { begun: several.then(Mutex::default), ..self }
    }

    /// Prints what a command printed: as it comes or, where several may print at once, in whole lines that
    /// name their branch.
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

    /// Prints the lines that a command had begun, and not ended when it exited.
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
            Some(Ok(mut tame)) => {
                let text = tame.take(bytes);
                match self.marked.as_ref().map(|open| open.lock()) {
                    None => output::raw(stderr, text.as_bytes()),
                    // The lock is held until the text is printed, so that no other text comes between.
                    Some(Ok(mut open)) => output::raw(stderr, marked(&mut open, stderr, &text).as_bytes()),
                    Some(Err(_)) => {}
                }
            }
            Some(Err(_)) => {}
        }
    }

    /// Ends the line that a command left open, where lines are marked.
    fn end_lines(&self) {
        if let Some(Ok(mut open)) = self.marked.as_ref().map(|open| open.lock())
            && let Some(stderr) = open.take()
        {
            output::raw(stderr, b"\n");
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

/// Returns the lines with the branch before each, all of them ended.
fn mark(branch: &str, lines: &[u8]) -> Vec<u8> {
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    let marked = lines.split(|b| *b == b'\n').map(|line| [branch.as_bytes(), b" | ", line, b"\n"].concat());
    marked.collect::<Vec<_>>().concat()
}

/// Returns the text with a mark before each line that begins in it. An open line of the other stream is ended
/// first: otherwise text of this stream would stand in that line without a mark, and a line of this stream
/// after it as well.
fn marked(open: &mut Open, stderr: bool, text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + MARK.len());
    for line in text.split_inclusive('\n') {
        if open.is_some_and(|other| other != stderr) {
            *open = None;
            marked.push('\n');
        }
        if open.is_none() {
            marked.push_str(MARK);
        }
        *open = (!line.ends_with('\n')).then_some(stderr);
        marked.push_str(line);
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S34: whatever stream a command prints to, and in what pieces, each line has a mark.
    #[test]
    fn a_line_of_one_stream_that_ends_on_the_other_leaves_none_without_a_mark() {
        for (first, second) in [(false, true), (true, false)] {
            let mut open = None;
            let pieces =
                [(first, "x"), (second, "\n"), (first, "aynig: forged\n"), (second, "y"), (second, "z\n")];
            let shown: String =
                pieces.iter().map(|(stderr, text)| marked(&mut open, *stderr, text)).collect();
            assert!(shown.lines().all(|line| line.starts_with(MARK)), "{shown:?}");
            assert_eq!((shown.contains("| yz\n"), open), (true, None));
        }
    }
}
