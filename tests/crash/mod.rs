//! Death between two file operations: the points that [`super::disk`] passes, counted in tests alone.
//!
//! `src/governed/mod.rs` takes this folder in for its unit tests: only inside the crate can the process be
//! killed between any two file operations. Implements G1.

mod scenarios;
mod sweep;

use std::cell::Cell;

thread_local! {
    /// How many file operations are left before the end; none is counted while it is `None`.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

/// A file operation is about to happen.
pub(super) fn step() {
    PASSED.set(PASSED.get() + 1);
    let Some(left) = LEFT.get() else { return };
    if left == 0 {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }
    LEFT.set(Some(left - 1));
}
