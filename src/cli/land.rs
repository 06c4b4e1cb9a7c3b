//! `land`: lands branches on another one, each after a check.

use super::args::{Land, Run, Ticking};
use super::choices::CurrentBranchArg;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output, tick, written};
use crate::app::Exit;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::land::landing;
use crate::protocol::fan::DONE;
use crate::protocol::landing::{History, LANDED};
use crate::protocol::text::escape;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// How often to look whether another branch's check is over.
const LOOK: Duration = Duration::from_millis(200);

/// Runs `git aynig land`.
pub fn run(global: &Global, args: &Land) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let history = match (args.merge, args.linear) {
        (true, _) => Some(History::Merge),
        (_, true) => Some(History::Linear),
        (false, false) => None,
    };
    let landing = landing(&change, args.onto.as_deref(), history, &args.after)?;
    let (mut worst, mut asked) = (Exit::Done, Vec::new());
    let branches = change.named_or_current(&args.branches)?;
    for branch in &branches {
        match change.land(branch, &landing) {
            Ok(written) => {
                if args.no_tick || !args.json {
                    written::print(&written, change.remote(), args.json, global.quiet);
                }
                asked.push((written.branch, written.commit));
            }
            Err(error) if branches.len() == 1 => return Err(error.into()),
            Err(error) => {
                worst = worst.max(Exit::from(&error));
                output::error(&Failure::from(&error).render());
            }
        }
    }
    if args.no_tick || asked.is_empty() {
        return Ok(exit::code(worst));
    }
    let names: Vec<RefName> = asked.iter().map(|(branch, _)| branch.clone()).collect();
    let code = until_landed(global, args, &change, &names)?;
    if code != 0 {
        return Ok(code);
    }
    // Each run ended well, but a check that names a state of its own does not say that it passed.
    for (branch, state) in change.not_landed(&asked)? {
        worst = worst.max(Exit::Unfinished);
        if let Some(state) = state.filter(|_| !global.quiet) {
            let passed = [LANDED, DONE].contains(&state.as_str());
            let why = match passed {
                true => {
                    format!(
                        "a command wrote '{state}' on it, which lands nothing; a check declares it with SET_STATE"
                    )
                }
                false => {
                    format!("its check says '{state}'; a check that passed declares nothing, or '{DONE}'")
                }
            };
            output::note(&format!("{}: not landed: {why}", escape(branch.short())));
        }
    }
    Ok(exit::code(worst))
}

/// Ticks the branches. Those that wait for another branch's check are ticked again when that check is over.
fn until_landed(
    global: &Global,
    args: &Land,
    change: &Change<'_>,
    branches: &[RefName],
) -> Result<i32, Failure> {
    let names: Vec<OsString> =
        branches.iter().map(|branch| OsStr::from_bytes(branch.short()).to_owned()).collect();
    let interrupt = Interrupt::by_signals().map_err(crate::app::AppError::from)?;
    loop {
        let code = tick::run(global, Run { ticking: ticking(args, &names), every: None })?;
        let Some((branch, first)) = change.queued(branches)? else { return Ok(code) };
        if !global.quiet {
            let (branch, first) = (escape(branch.short()), escape(first.short()));
            output::note(&format!("{branch}: '{first}' is checked first"));
        }
        while change.queued(branches)?.is_some() {
            interrupt.wait(LOOK);
            if let Some(signal) = interrupt.signal() {
                return Ok(exit::code(Exit::of_signal(signal)));
            }
        }
    }
}

fn ticking(args: &Land, names: &[OsString]) -> Ticking {
    Ticking {
        branches: names.to_vec(),
        remote: args.remote.clone(),
        role: None,
        current_branch: CurrentBranchArg::Include,
        lease: None,
        grace: None,
        timeout: None,
        jobs: None,
        dry_run: false,
        tee: args.tee,
        log_level: None,
        json: args.json,
    }
}
