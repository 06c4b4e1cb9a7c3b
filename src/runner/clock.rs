//! Time, given to the runner so that tests can give another.
//!
//! Two clocks: the wall's seconds, which commits carry, and one that counts suspend and never jumps, by
//! which a runner measures its own lease. Implements K18 (CLOCK_BOOTTIME).

use std::time::{Duration, SystemTime};

/// A source of time.
pub trait Clock: Sync {
    /// Whole seconds since 1970.
    fn now(&self) -> i64;
    /// Time since some fixed moment, suspend counted.
    fn elapsed(&self) -> Duration;
}

/// The system's clocks.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
    }

    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let id = nix::time::ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let id = nix::time::ClockId::CLOCK_MONOTONIC;
        nix::time::clock_gettime(id).map_or(Duration::ZERO, Into::into)
    }
}
