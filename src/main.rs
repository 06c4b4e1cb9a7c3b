//! The `git-aynig` binary.

use aynig::supervisor::guardian;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before anything else: a guardian must cost no more than a process start.
    if args.next().is_some_and(|first| first == guardian::ROLE) {
        return guardian::main(args);
    }
    aynig::cli::main(std::env::args_os().collect())
}
