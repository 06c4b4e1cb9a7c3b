//! `flow init`: scaffolds the two commands that nodes' turns need; overwrites nothing.

use super::super::args_flow::Init;
use super::super::fail::Failure;
use super::super::init::{not_written, write_new};
use super::super::session::Global;
use super::super::{hints, output, trust};
use crate::app::AppError;
use crate::app::trust::default_source;
use crate::protocol::flow::{ROUTE, TURN};
use crate::supervisor::beneath::{Kind, Root};
use std::path::Path;

/// The files that are written, below the top of the working tree.
const TURN_FILE: &str = ".aynig/command/turn";
const ROUTE_FILE: &str = ".aynig/command/route";

fn command(what: &str, state: &str) -> String {
    format!("#!/bin/sh\n# {what} See gitaynig-flow(7).\nexec git aynig flow {state}\n")
}

/// Runs `git aynig flow init`.
pub fn run(global: &Global, args: &Init) -> Result<i32, Failure> {
    let session = global.open()?;
    let Some(dir) = &session.repo.work_dir else {
        return Err(Failure::fatal("a bare repository has no files: commands come with a push")
            .hint("git aynig trust --ref <branch>"));
    };
    let root = Root::open(dir).map_err(|e| not_written(&e))?;
    let tracked = session.repo.git.tracked(&session.repo.git_dir, dir, ".aynig").map_err(AppError::from)?;
    for (name, state) in [(TURN_FILE, TURN), (ROUTE_FILE, ROUTE)] {
        if root.kind(Path::new(name)).is_ok_and(|kind| kind == Some(Kind::Folder)) {
            let why =
                format!("'{name}' is a folder, for states '{state}/...', and flows need a command there");
            return Err(Failure::refused(why)
                .hint(format!("where no branch has such a state: git mv {name} .aynig/command/<name>")));
        }
    }
    let turn = command("A node of a flow has its turn.", TURN);
    let route = command("What follows from a node's turn: handoffs, new nodes, what comes next.", ROUTE);
    let made = [
        write_new((&root, &tracked), TURN_FILE, &turn, 0o777)?,
        write_new((&root, &tracked), ROUTE_FILE, &route, 0o777)?,
    ];
    let trusted = session.settings(&Default::default())?.commands_from;
    if args.trust {
        trust::give(&session, &default_source(&session)?)?;
    }
    if !global.quiet {
        output::line(&match made {
            [true, true] => format!("Wrote {TURN_FILE} and {ROUTE_FILE}"),
            [true, false] => format!("Wrote {TURN_FILE}"),
            [false, true] => format!("Wrote {ROUTE_FILE}"),
            [false, false] => format!("Nothing to do: {TURN_FILE} and {ROUTE_FILE} are there"),
        });
        output::line("Next:");
        if let Some(first) = hints::to_top(session.repo.work_dir.as_deref()) {
            output::line(&format!("  {first}"));
        }
        output::line("  git add .aynig && git commit -m 'aynig: flows'");
        if !args.trust && trusted == crate::runner::settings::CommandsFrom::Nowhere {
            output::line("  git aynig trust");
        }
        output::line("  git aynig flow new first");
        output::line("  git aynig flow node add first --label Lead --role orchestrator --provider claude");
        output::line("  git aynig flow send first Lead -m 'What is wanted.'");
        output::line("  git aynig run");
    }
    Ok(0)
}
