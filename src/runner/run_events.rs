//! The file of a run to which its command may append what happens: progress, usage, events of its own.
//!
//! It lies beside the run's logs. A command, or any process that it started, may have put anything in its
//! place, so it is opened as a log is, through no link, as a plain file, and no more of it is read than a log
//! may have. The process that writes to it first creates it. Where `aynig.exec` or a sandbox confines the
//! command, which may have no right to the folder, the runner creates it before the start. Once a run has
//! ended, a file that is too long keeps its head and its tail. Implements K48a, K54 (what was told), K55 (the
//! last line of a log).

use super::active_run::ActiveRun;
use super::{Runner, logs};
use crate::protocol::complete::Declared;
use crate::protocol::declaration::LINE_PREFIX;
use crate::protocol::dialect::{Dialect, USAGE};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::run_events::{EVENT_LINE_MAX, Progress, RunEvent};
use crate::protocol::usage::{Usage, tally};
use crate::store::beneath::{BeneathError, apart};
use crate::store::repository::Repository;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How many bytes of the file's end are searched for the last progress.
const LOOKED_AT: u64 = 128 << 10;
/// How many bytes of a log's end are searched for its last line, and how many characters of that are shown.
const LINE_LOOKED_AT: u64 = 4 << 10;
const LINE_MAX: usize = 200;

impl Runner<'_> {
    /// Returns how far the command of a run says that it is, if its events are on this machine.
    pub(crate) fn progress_of(&self, run_id: &str, trigger: ObjectId) -> Option<Progress> {
        let events = logs::of_run(self.repo, run_id, trigger)?.events();
        let (folder, name) = apart(&events).ok()?;
        let tail = folder.read_tail(name, LOOKED_AT).ok()?;
        Progress::last(&tail, (tail.len() as u64) < LOOKED_AT)
    }
}

impl Runner<'_> {
    /// Returns what the command of a run reported that it used, one entry per model; none if its events are
    /// not on this machine.
    pub(super) fn told_usage(&self, run_id: &str, trigger: ObjectId) -> Vec<Usage> {
        let logs = logs::of_run(self.repo, run_id, trigger);
        logs.map(|logs| usage_in(&logs.events(), self.settings.log_max)).unwrap_or_default()
    }
}

/// Returns the trailers that say what a run used.
pub(super) fn usage_trailers(dialect: Dialect, usage: &[Usage]) -> Vec<Trailer> {
    usage.iter().map(|one| dialect.trailer(USAGE, one.value())).collect()
}

impl Runner<'_> {
    /// Returns the last line that a run's command wrote to standard output, or to standard error where it
    /// wrote none there, if its logs are on this machine.
    pub(crate) fn last_line_of(&self, run_id: &str, trigger: ObjectId) -> Option<String> {
        let logs = logs::of_run(self.repo, run_id, trigger)?;
        [logs.stdout, logs.stderr].iter().find_map(|log| {
            let (folder, name) = apart(log).ok()?;
            last_line(&folder.read_tail(name, LINE_LOOKED_AT).ok()?)
        })
    }
}

/// Returns the last line that is neither blank nor a declaration.
fn last_line(tail: &[u8]) -> Option<String> {
    let mut lines = tail.rsplit(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with(LINE_PREFIX.as_bytes()))?;
    Some(String::from_utf8_lossy(line).chars().take(LINE_MAX).collect())
}

impl ActiveRun<'_> {
    /// Returns what this run used: what its command reported while it ran, and what it declared in the end.
    pub(super) fn what_was_used(&self, declared: &Declared) -> Vec<Usage> {
        let mut all = usage_in(&self.logs.events(), self.runner.settings.log_max);
        match declared {
            Declared::State(next) => next.usage.iter().for_each(|one| tally(&mut all, one.clone())),
            Declared::Nothing | Declared::BadResult(_) | Declared::BadLine(_) => {}
        }
        all
    }

    /// Shortens the file to the length that a log may have, now that no process of the run writes to it.
    pub(super) fn bound_events(&self) {
        // If the file can't be shortened it stays as it is: no reader reads more of it than this.
        let _ = bound(&self.logs.events(), self.runner.settings.log_max);
    }
}

/// Returns what a file of events says was used. Of a file that is longer than a log may be, only its head and
/// its tail count.
fn usage_in(path: &Path, most: u64) -> Vec<Usage> {
    let mut all = Vec::new();
    // There is no file, or something else is in its place: nothing was reported.
    let Ok(mut file) = apart(path).and_then(|(folder, name)| folder.file(name)) else { return all };
    let Ok(length) = file.metadata().map(|meta| meta.len()) else { return all };
    let half = if length > most { most / 2 } else { most };
    each_usage(&mut (&file).take(half), true, &mut all);
    if length > most && file.seek(SeekFrom::Start(length.saturating_sub(half))).is_ok() {
        each_usage(&mut file.take(half), false, &mut all);
    }
    all
}

/// Counts the usage of each line; the first line only counts where it is `whole`. Keeps no more than one line
/// in memory.
fn each_usage(from: &mut dyn Read, mut whole: bool, all: &mut Vec<Usage>) {
    let mut reader = BufReader::with_capacity(EVENT_LINE_MAX, from);
    let mut line = Vec::new();
    loop {
        line.clear();
        // If the file can't be read any more, what was counted until then is all.
        let limit = EVENT_LINE_MAX as u64 + 2;
        let Ok(1..) = (&mut reader).take(limit).read_until(b'\n', &mut line) else { return };
        let ended = line.pop_if(|b| *b == b'\n').is_some();
        if whole && let Some(RunEvent::Usage(one)) = RunEvent::parse(&line) {
            tally(all, one);
        }
        // A line that is too long is passed over to its end.
        whole = ended;
    }
}

/// Leaves head and tail of a file that is longer than `most` bytes, with a line between them that says how
/// many bytes were left out.
fn bound(path: &Path, most: u64) -> Result<(), BeneathError> {
    let (folder, name) = apart(path)?;
    let failed = |source| BeneathError::Io { what: "shorten", path: path.to_owned(), source };
    let mut file = folder.file(name)?;
    let length = file.metadata().map_err(failed)?.len();
    if length <= most {
        return Ok(());
    }
    // By this name `gc` recognizes the new file as a log of the run.
    let stem = name.to_string_lossy();
    let stem = stem.strip_suffix(logs::EVENTS).unwrap_or(&stem);
    let aside = PathBuf::from(format!("{stem}.{}{}", uuid::Uuid::new_v4(), logs::EVENTS));
    let mut short = folder.create_new(&aside, 0o600)?;
    let done = shorten(&mut file, length, most, &mut short).map_err(failed);
    match done.and_then(|()| folder.rename(&aside, name)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = folder.remove(&aside);
            Err(error)
        }
    }
}

fn shorten(file: &mut File, length: u64, most: u64, to: &mut File) -> io::Result<()> {
    let half = most / 2;
    let head = io::copy(&mut file.take(half), to)?;
    writeln!(to, "\n{{\"type\":\"aynig.left-out\",\"bytes\":{}}}", length.saturating_sub(2 * half))?;
    file.seek(SeekFrom::Start(length.saturating_sub(half).max(head)))?;
    // The file may grow meanwhile, if a process lives that was handed it.
    io::copy(&mut file.take(half), to).map(drop)
}

/// Adds one line to the events of a run, if they are on this machine: its command may follow them.
pub(crate) fn tell(
    repo: &Repository,
    run_id: &str,
    trigger: ObjectId,
    line: &str,
) -> Result<(), BeneathError> {
    let Some(logs) = logs::of_run(repo, run_id, trigger) else { return Ok(()) };
    let events = logs.events();
    let (folder, name) = apart(&events)?;
    let mut file = folder.append(name, 0o600)?;
    // One write, so that two lines written at once don't mix.
    let failed = |source| BeneathError::Io { what: "write", path: events.clone(), source };
    file.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}
