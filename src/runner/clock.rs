//! Time, passed to the runner so that tests can pass another.
//!
//! Three readings: the wall clock's seconds, which commits carry; a clock that counts suspend and never
//! jumps, by which a runner measures its own lease; and one that does not count suspend, for everything else.
//! Implements K18 (CLOCK_BOOTTIME).

use std::time::{Duration, Instant, SystemTime};

/// A source of time.
pub trait Clock: Sync {
    /// Returns whole seconds since 1970.
    fn now(&self) -> i64;
    /// Returns milliseconds since 1970, for ids that sort by time.
    fn millis(&self) -> u64 {
        u64::try_from(self.now()).unwrap_or(0).saturating_mul(1000)
    }
    /// Returns the time since some fixed moment, counting suspend where the system has such a clock (Linux).
    fn elapsed(&self) -> Duration;
    /// Returns a moment for deadlines within this process, and for how long something took: suspend does not
    /// count.
    fn instant(&self) -> Instant;
}

pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
    }

    fn millis(&self) -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }

    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let id = nix::time::ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let id = nix::time::ClockId::CLOCK_MONOTONIC;
        nix::time::clock_gettime(id).map_or(Duration::ZERO, Into::into)
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }
}
