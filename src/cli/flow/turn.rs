//! `flow turn`: the command of the state `turn`. A turn that failed says why, and its run stalls. Implements
//! N4, N9 (endings).

use super::super::declare;
use super::super::exit;
use super::super::fail::Failure;
use super::super::session::Global;
use crate::app::Exit;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::flow::turn::turn;
use crate::flow::turn::Ended;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig flow turn`.
pub(super) fn run(global: &Global) -> Result<i32, Failure> {
    // Signals are caught before the agent's program is started, so that a signal ends both.
    let interrupt = Interrupt::by_signals()?;
    let session = global.open()?;
    let change = Change::begin(&session, &Flags::default())?;
    match turn(&change, &interrupt)? {
        Ended::Declared(declaration) => {
            declare::aloud(&declaration.to_json())?;
            Ok(0)
        }
        Ended::Failed { why, mend } => {
            let hints = Some(mend).filter(|mend| !mend.is_empty()).into_iter().collect();
            Err(Failure { code: exit::code(Exit::Failed), hints, ..Failure::fatal(why) })
        }
        Ended::Terminated(signal) => Ok(exit::code(Exit::of_signal(signal))),
    }
}
