//! The guardian's clock: time since boot, suspended time counted, never set back.
//!
//! A lease goes on while a machine sleeps, and so must a time limit. Implements K17, K18.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
// Elsewhere (macOS) the monotonic clock is the nearest.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Returns the time since boot.
pub(super) fn now() -> Duration {
    // These clocks always exist; on a kernel that lacks them, time would seem to stand still.
    clock_gettime(CLOCK).map(Duration::from).unwrap_or_default()
}
