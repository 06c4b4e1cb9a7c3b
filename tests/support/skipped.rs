//! The one way in which a test says that it did not look; files that need nothing else of `support` name this one.

use std::io::Write;

/// Says that a fact was not looked at, also where the test runner hides what passing tests print.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
