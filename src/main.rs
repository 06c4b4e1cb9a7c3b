//! The `git-aynig` binary.

use aynig::supervisor::guardian;
use aynig::supervisor::interrupt::outlive_file_size_limit;
use std::process::ExitCode;

/// Adds the write bit for others to the umask, so that nothing that this process makes is world-writable:
/// some of its folders hold programs that are executed.
fn nothing_for_everybody() {
    use nix::sys::stat::{Mode, umask};
    let before = umask(Mode::S_IWOTH);
    umask(before | Mode::S_IWOTH);
}

fn main() -> ExitCode {
    nothing_for_everybody();
    outlive_file_size_limit();
    let mut args = std::env::args_os().skip(1);
    // Before anything else: a guardian must cost no more than a process start.
    if args.next().is_some_and(|first| first == guardian::ROLE) {
        return guardian::main(args);
    }
    aynig::cli::main(std::env::args_os().collect())
}
