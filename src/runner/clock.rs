//! Time, given to the runner so that tests can give another.
//!
//! Three readings: the wall's seconds, which commits carry; one that counts suspend and never jumps, by which a runner
//! measures its own lease; and one that does not count suspend, for everything else. Implements K18 (CLOCK_BOOTTIME).

use std::time::{Duration, Instant, SystemTime};

/// A source of time.
pub trait Clock: Sync {
    /// Whole seconds since 1970.
    fn now(&self) -> i64;
    /// Milliseconds since 1970, for ids that sort by time.
    fn millis(&self) -> u64 {
        u64::try_from(self.now()).unwrap_or(0).saturating_mul(1000)
    }
    /// Time since some fixed moment, suspend counted.
    fn elapsed(&self) -> Duration;
    /// A moment for deadlines within this process, and for how long something took: suspend does not count.
    fn instant(&self) -> Instant;
}

/// The system's clocks.
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
