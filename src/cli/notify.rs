//! `notify`: a process in the background that gives one notice. What goes wrong is one line in `hook.log`, which is
//! its standard error. Implements K53.

use super::inner::Notify;
use super::output;
use super::session::Global;
use crate::app::notice::{NOTICE_MAX, deliver};
use crate::protocol::text::with_causes;
use crate::supervisor::background::leave_caller;
use std::io::Read;

/// Runs `git aynig notify`.
pub fn run(global: &Global, args: &Notify) -> i32 {
    leave_caller();
    output::log_times();
    let mut notice = Vec::new();
    if std::io::stdin().lock().take(NOTICE_MAX).read_to_end(&mut notice).is_err() {
        return 0;
    }
    let told = match global.open() {
        Ok(session) => deliver(&session, notice, args.owed.as_deref()),
        Err(error) => Err(with_causes(&error)),
    };
    if let Err(why) = told {
        output::note(why.lines().next().unwrap_or_default());
    }
    0
}
