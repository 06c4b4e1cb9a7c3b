//! `status --watch`: a view that stays and follows what changes or, with `--json`, each object that changed.
//!
//! What runs stands first, then what waits for a person (the oldest first), what waits for a slot, what the
//! next tick runs, what is done (the newest first), and last every other branch. What is known so far is
//! drawn while the first look goes on. A frame that is shown already is not drawn again. Implements K36, K55
//! (`--watch`).

use super::args::Status;
use super::fail::Failure;
use super::session::{Global, Session};
use super::status::{answered, held, state};
use super::terminal::{Came, Key, Terminal};
use super::{exit, output};
use crate::app::status::{Filter, Group, StatusLine};
use crate::app::watch::{self, Changes, Seen, Watcher};
use crate::protocol::text::escape;
use crate::runner::settings::Settings;
use crate::runner::survey::BranchStatus;
use crate::supervisor::interrupt::Interrupt;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// How often to look whether something changed.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the frame is drawn anew where nothing changed, since the times in it grow.
const DRAW_EVERY: Duration = Duration::from_secs(1);
/// The widest that the columns of branches and of states get, in characters.
const BRANCH_MAX: usize = 32;
const STATE_MAX: usize = 16;
/// Most pauses that are shown.
const PAUSES_MAX: usize = 3;
/// The groups in the order in which they are shown.
const GROUPS: [Group; 7] =
    [Group::Running, Group::Waiting, Group::Stalled, Group::Queued, Group::Ready, Group::Done, Group::Other];

/// Runs `git aynig status --watch`.
pub fn run(global: &Global, session: &Session, args: &Status, filter: &Filter) -> Result<i32, Failure> {
    if !args.json && !Terminal::is_there() {
        return Err(Failure::usage("'--watch' draws on a terminal, and this is none")
            .hint("git aynig status --watch --json, or git aynig events --follow <branch>"));
    }
    let settings = watch::settings(session, args.remote.clone())?;
    let interrupt = Interrupt::by_signals()?;
    let mut watcher = Watcher::open(session, &settings, &interrupt)?;
    if args.json {
        watcher.mend();
        return print(&mut watcher, &settings, filter, &interrupt);
    }
    let mut view = View {
        settings: &settings,
        filter,
        verbose: global.verbose > 0,
        rows: Vec::new(),
        head: String::new(),
        top: 0,
    };
    let ended = view.stay(&mut watcher, &interrupt);
    ended.map(|()| exit::of_signal(interrupt.signal()))
}

/// Prints an object for each branch, then one for each that changes, until a signal comes or the reader is
/// gone.
fn print(
    watcher: &mut Watcher<'_>,
    settings: &Settings,
    filter: &Filter,
    interrupt: &Interrupt,
) -> Result<i32, Failure> {
    loop {
        let Changes { changed, gone, paused: _ } = watcher.look()?;
        if !changed.is_empty() || !gone.is_empty() {
            let (seen, now) = (&watcher.seen, watcher.seen.now);
            let mut lines = output::Lines::begin();
            let mut there: Vec<_> = changed.iter().filter_map(|branch| seen.status(branch)).collect();
            let (asking, around) = (&seen.asking, (&seen.asking, &seen.pauses));
            there.retain(|status| filter.wants(status, asking));
            filter.order(&mut there);
            let shown =
                there.into_iter().all(|s| lines.offer_json(&StatusLine::of(s, around, settings, now)));
            let gone = gone.iter().filter(|status| filter.wants(status, asking));
            let shown = shown
                && gone.into_iter().all(|s| lines.offer_json(&StatusLine::gone(s, around, settings, now)));
            drop(lines);
            if !shown {
                return Ok(0);
            }
        }
        interrupt.wait(LOOK_EVERY);
        if interrupt.signal().is_some() || output::reader_gone() {
            return Ok(exit::of_signal(interrupt.signal()));
        }
    }
}

/// How the first look ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// All branches were read.
    All,
    /// A key, a signal, or the end of the terminal ended it.
    Quit,
}

/// What is drawn.
struct View<'a> {
    settings: &'a Settings,
    filter: &'a Filter,
    verbose: bool,
    /// The branches, in the order in which they are shown.
    rows: Vec<(Group, crate::store::RefName)>,
    /// How many branches there are of each group, in words.
    head: String,
    /// The index of the first row that is shown.
    top: usize,
}

impl View<'_> {
    /// Draws until a key or a signal ends it.
    fn stay(&mut self, watcher: &mut Watcher<'_>, interrupt: &Interrupt) -> Result<(), Failure> {
        let mut terminal = Terminal::take()?;
        // Mending what earlier processes left may take long, and so may reading many branches from a slow
        // disk: the user is shown at once that work goes on.
        if !terminal.draw(&["looking at all branches   (q quits)".to_owned()]) {
            return Ok(());
        }
        watcher.mend();
        if self.begin(watcher, &mut terminal, interrupt)? == Read::Quit {
            return Ok(());
        }
        self.arrange(&watcher.seen);
        let mut drawn = None::<Instant>;
        loop {
            if drawn.is_none_or(|at| at.elapsed() >= DRAW_EVERY) {
                if !terminal.draw(&self.lines(&watcher.seen, terminal.size())) {
                    return Ok(());
                }
                drawn = Some(Instant::now());
            }
            match terminal.wait(interrupt, LOOK_EVERY) {
                Came::End | Came::Key(Key::Quit) => return Ok(()),
                Came::Key(Key::Scroll(by)) => {
                    self.top = self.top.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
                    drawn = None;
                }
                Came::Key(Key::Top) => (self.top, drawn) = (0, None),
                Came::Size => drawn = None,
                Came::Key(Key::Other) | Came::Nothing => {}
            }
            if !watcher.look()?.is_empty() {
                self.arrange(&watcher.seen);
                drawn = None;
            }
        }
    }

    /// Takes the first look, and meanwhile draws what it has found so far.
    fn begin(
        &mut self,
        watcher: &mut Watcher<'_>,
        terminal: &mut Terminal,
        interrupt: &Interrupt,
    ) -> Result<Read, Failure> {
        let (mut drawn, mut read) = (Instant::now(), Read::All);
        watcher.look_telling(&mut |seen| {
            if read == Read::All && drawn.elapsed() >= LOOK_EVERY {
                self.arrange(seen);
                self.head += " so far";
                let is_seen = terminal.draw(&self.lines(seen, terminal.size()));
                let came = terminal.wait(interrupt, Duration::ZERO);
                if !is_seen || matches!(came, Came::End | Came::Key(Key::Quit)) {
                    read = Read::Quit;
                }
                drawn = Instant::now();
            }
            read == Read::All
        })?;
        Ok(read)
    }

    /// Puts the branches in order, and counts them by group.
    fn arrange(&mut self, seen: &Seen) {
        let wanted = seen.statuses().filter(|status| self.filter.wants(status, &seen.asking));
        let mut all: Vec<(Group, &BranchStatus)> = wanted.map(|status| (Group::of(status), status)).collect();
        let place = |group: Group| GROUPS.iter().position(|one| *one == group);
        all.sort_by_key(|(group, status)| {
            let at = status.tip.commit.committed.unwrap_or(0);
            // What is done is ordered by the newest first, everything else by the oldest.
            let order = if *group == Group::Done { Reverse(at) } else { Reverse(-at) };
            (place(*group), order)
        });
        self.rows = all.into_iter().map(|(group, status)| (group, status.branch.clone())).collect();
        let counts = GROUPS.map(|group| (self.rows.iter().filter(|(of, _)| *of == group).count(), group));
        let counts: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, group)| format!("{n} {}", group.name())).collect();
        self.head =
            if counts.is_empty() { "no branch is as asked for".to_owned() } else { counts.join(", ") };
        self.top = self.top.min(self.rows.len().saturating_sub(1));
    }

    /// Returns the frame for a terminal of this size.
    fn lines(&self, known: &Seen, (_, height): (usize, usize)) -> Vec<String> {
        let failed = match known.failed {
            0 => String::new(),
            n => format!("   {n} cannot be read: see git aynig status"),
        };
        let mut lines = vec![format!("{}{failed}   (q quits)", self.head)];
        let pauses = known.pauses.of_any(&self.filter.named).take(PAUSES_MAX);
        lines.extend(pauses.map(|paused| held(paused, known.now, self.settings.remote.as_deref())));
        lines.push(String::new());
        let room = height.saturating_sub(lines.len());
        let seen: Vec<(Group, [String; 2], String)> = self
            .rows
            .iter()
            .skip(self.top)
            .take(room)
            .filter_map(|(group, branch)| {
                let status = known.status(branch)?;
                let remote = self.settings.remote.as_deref();
                let words = answered(status, &known.asking, known.now, remote, self.verbose);
                Some((*group, [escape(branch.short()), state(status)], words))
            })
            .collect();
        let width = |nth: usize, most: usize| {
            let widths = seen.iter().map(|(_, columns, _)| columns[nth].chars().count());
            widths.max().unwrap_or(0).min(most)
        };
        let (first, second) = (width(0, BRANCH_MAX), width(1, STATE_MAX));
        lines.extend(seen.iter().map(|(group, [branch, state], words)| {
            format!("{:<8} {branch:<first$}  {state:<second$}  {words}", group.name())
        }));
        lines
    }
}
