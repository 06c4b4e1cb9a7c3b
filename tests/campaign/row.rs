//! What a sweep counted, how large it is to be, and how it is replayed.
//!
//! ```text
//! let sweep = Sweep::begin("kill-local", "SIGKILL at every mutating call of a local tick", ">= 500 points, 0 lost");
//! let points = sweep.size(60, usize::MAX);      // a sample, or all
//! sweep.at_least("points", 1, 500);              // fewer in a sample, or in all, are a violation
//! ... sweep.bad("point 17 (rename #3): branch is wedged"); sweep.count("points", 1); ...
//! sweep.end();                                   // writes the row, and panics when something was bad
//! ```
#![allow(dead_code, reason = "each sweep uses its own part")]

use super::support::skipped;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub struct Sweep {
    name: &'static str,
    what: &'static str,
    figure: &'static str,
    seed: u64,
    started: Instant,
    counts: RefCell<BTreeMap<String, u64>>,
    least: RefCell<Vec<(String, u64)>>,
    bad: RefCell<Vec<String>>,
}

/// True for the whole campaign, false for the sample that every test run makes.
pub fn full() -> bool {
    std::env::var("AYNIG_CAMPAIGN").is_ok_and(|v| v == "full")
}

/// How long a sweep may go on, where `AYNIG_SECONDS` says so.
pub fn seconds() -> Option<Duration> {
    let seconds = std::env::var("AYNIG_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("AYNIG_SECONDS is a number")))
}

/// Where the rows are written, when the user asked for them.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("AYNIG_CAMPAIGN_ROWS").map(PathBuf::from)
}

impl Sweep {
    /// Begins a sweep: a short name, what it does, and the figure that it is to reach. `AYNIG_SEED` is its seed;
    /// without one a run of today's has its own.
    pub fn begin(name: &'static str, what: &'static str, figure: &'static str) -> Self {
        let given = std::env::var("AYNIG_SEED").ok().and_then(|s| s.parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = given.unwrap_or(now.as_nanos() as u64 % 1_000_000);
        let sweep = Self {
            name,
            what,
            figure,
            seed,
            started: Instant::now(),
            counts: RefCell::default(),
            least: RefCell::default(),
            bad: RefCell::default(),
        };
        eprintln!("{name}: replay with: {}", sweep.replay());
        sweep
    }

    fn replay(&self) -> String {
        let size = if full() { "AYNIG_CAMPAIGN=full " } else { "" };
        let thread = std::thread::current();
        let test = thread.name().unwrap_or(self.name).to_owned();
        format!("{size}AYNIG_SEED={} cargo test --test campaign -- --exact {test}", self.seed)
    }

    pub fn dice(&self) -> Dice {
        Dice(self.seed)
    }

    /// How much: the sample's number, or the whole campaign's.
    pub fn size(&self, sample: usize, whole: usize) -> usize {
        if full() { whole } else { sample }
    }

    pub fn count(&self, what: &str, more: u64) {
        *self.counts.borrow_mut().entry(what.to_owned()).or_default() += more;
    }

    /// Says how many of these a sample counts at least, and a full run: with fewer, nothing being wrong says little.
    pub fn at_least(&self, what: &str, sample: u64, whole: u64) {
        self.least.borrow_mut().push((what.to_owned(), if full() { whole } else { sample }));
    }

    /// Notes what the figure asks for and was not counted.
    fn judge_figure(&self) {
        for (what, least) in self.least.take() {
            let counted = self.counted(&what);
            if counted < least {
                self.bad(format!("only {counted} of the {least} {what} that make it worth its name"));
            }
        }
    }

    /// Keeps the largest of what was measured.
    pub fn most(&self, what: &str, value: u64) {
        let mut counts = self.counts.borrow_mut();
        let kept = counts.entry(what.to_owned()).or_default();
        *kept = value.max(*kept);
    }

    pub fn counted(&self, what: &str) -> u64 {
        self.counts.borrow().get(what).copied().unwrap_or(0)
    }

    /// Notes a violation; the sweep goes on, so that one run shows all.
    pub fn bad(&self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("{}: VIOLATION: {what}", self.name);
        self.bad.borrow_mut().push(what);
    }

    /// Notes that this sweep cannot run here, and why.
    pub fn skip(self, reason: &str) {
        skipped(&format!("{}: {reason}", self.name));
        self.write(Some(reason));
    }

    /// Judges the figure and writes the row; fails the test when something was bad.
    pub fn end(self) {
        self.judge_figure();
        self.write(None);
        let bad = self.bad.borrow();
        assert!(bad.is_empty(), "{} violations, first: {}\nreplay: {}", bad.len(), bad[0], self.replay());
    }

    fn write(&self, skipped: Option<&str>) {
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("{}: {:?} in {seconds:.1} s", self.name, self.counts.borrow());
        let Some(folder) = folder() else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let row = json!({
            "name": self.name, "what": self.what, "figure": self.figure, "seed": self.seed,
            "seconds": seconds, "counts": *self.counts.borrow(), "violations": *self.bad.borrow(),
            "skipped": skipped, "full": full(), "replay": self.replay(), "commit": commit(),
        });
        std::fs::write(folder.join(format!("{}.json", self.name)), row.to_string()).unwrap();
    }
}

/// The commit that is tried, `-dirty` where that is not all.
fn commit() -> String {
    let mut git = std::process::Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    String::from_utf8_lossy(&git.output().unwrap().stdout).trim().to_owned()
}

/// A small generator that is the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another generator, of this one's seed and a number.
    pub fn of(&self, number: u64) -> Self {
        Self(self.0.wrapping_mul(31).wrapping_add(number))
    }

    /// A number from 0 up to, and without, `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// `n` of these, in order, at random.
    pub fn sample<T>(&mut self, mut from: Vec<T>, n: usize) -> Vec<T> {
        while from.len() > n {
            let out = self.below(from.len());
            from.remove(out);
        }
        from
    }

    /// These in an order at random.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for n in (1..all.len()).rev() {
            all.swap(n, self.below(n + 1));
        }
    }
}
