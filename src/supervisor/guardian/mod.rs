//! The guardian: a small process between the caller and one command.
//!
//! It starts the command, copies the command's output to the logs, reports to the caller, and makes sure that
//! no process of the run outlives the run: whatever ends first (the command, its time limit, the caller, the
//! caller's patience), everything below the guardian is ended with it, unless the caller lets it linger. The
//! guardian lives in neither the caller's nor the command's session, and holds no folder and no descriptor of
//! the caller's but the two pipes (stdin: orders, stdout: events) and the hold. `git-aynig guardian <options>
//! <argv>` is started by [`super::Supervised`] only. Implements K16-K18, K21.

mod clock;
mod control;
pub(super) mod kill;
mod log;
pub(crate) mod options;
mod outbox;
mod pump;
mod run;
mod scan;
mod signals;
mod spawn;

use super::background::leave_caller;
use super::ending::Ending;
use super::hold;
use super::wire::Event;
use log::CappedLog;
use nix::errno::Errno;
use nix::fcntl::Flock;
use options::Options;
use outbox::Outbox;
use spawn::{errno_of, not_started};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::ExitCode;

pub use options::ROLE;

/// Acts as the guardian that these arguments (those after [`ROLE`]) describe, until its run is over.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match Options::from_args(args) {
        Ok(options) => options,
        Err(argument) => {
            eprintln!("error: cannot read guardian argument '{}'", argument.display());
            return ExitCode::from(129);
        }
    };
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let Ok(mut outbox) = Outbox::new(stdout.as_fd()) else { return ExitCode::FAILURE };
    leave_caller();
    match prepare(&options, stdin.as_fd()) {
        Ok(prepared) => run::Run::new(&options, prepared, stdin.as_fd(), outbox).run(),
        Err(ending) => {
            outbox.send(Event::Exited { ending, leaked: false });
            outbox.send(Event::Done { survivors: 0 });
            outbox.drain();
        }
    }
    ExitCode::SUCCESS
}

/// What a run consists of once its command has started.
struct Prepared {
    hold: Option<Flock<File>>,
    logs: [CappedLog; 2],
    signals: signals::Signals,
    spawned: spawn::Spawned,
}

fn prepare(options: &Options, control: BorrowedFd<'_>) -> Result<Prepared, Ending> {
    let hold = options.hold.then(hold::received).transpose();
    let hold = hold.map_err(|e| not_started(errno_of(&e), "hold of the run".into()))?;
    let open = |path: &Path| {
        CappedLog::open(path, options.log_max)
            .map_err(|e| not_started(errno_of(&e), format!("log '{}'", path.display())))
    };
    let logs = [open(options.stdout_log.path())?, open(options.stderr_log.path())?];
    wake_with_the_caller();
    become_subreaper().map_err(|errno| not_started(errno, "guardian's subreaper role".into()))?;
    let signals = signals::Signals::watch().map_err(|e| not_started(errno_of(&e), "signal pipe".into()))?;
    // The machine may have been slow, or asleep: if the caller is gone, another run may own the place by now.
    if control::is_gone(control) {
        return Err(not_started(Errno::EPIPE, "run of a runner that is gone".into()));
    }
    Ok(Prepared { hold, logs, signals, spawned: spawn::spawn(options)? })
}

/// Asks the system to wake this guardian when its caller dies; it then finds the caller gone. This matters
/// where a command stops its guardian and kills the caller: then no other process is left that could act. A
/// guardian that is not stopped ignores the signal.
#[cfg(target_os = "linux")]
fn wake_with_the_caller() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGCONT);
}

#[cfg(not(target_os = "linux"))]
fn wake_with_the_caller() {}

#[cfg(target_os = "linux")]
fn become_subreaper() -> nix::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)
}

// Elsewhere orphans go to init: only the command's own process group can be ended then.
#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> nix::Result<()> {
    Ok(())
}
