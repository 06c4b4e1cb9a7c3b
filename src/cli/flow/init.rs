//! `flow init`: scaffolds the two commands that nodes' turns need; overwrites nothing.

use super::super::args_flow::Init;
use super::super::fail::Failure;
use super::super::init::{not_written, write_new};
use super::super::session::Global;
use super::super::{hints, output, trust};
use crate::app::AppError;
use crate::app::trust::default_source;
use crate::protocol::flow::{ROUTE, TURN};
use crate::supervisor::beneath::Root;

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
    let turn = command("A node of a flow has its turn.", TURN);
    let route = command("What follows from a node's turn: handoffs, new nodes, what comes next.", ROUTE);
    let made = [
        write_new((&root, &tracked), ".aynig/command/turn", &turn, 0o777)?,
        write_new((&root, &tracked), ".aynig/command/route", &route, 0o777)?,
    ];
    let trusted = session.settings(&Default::default())?.commands_from;
    if args.trust {
        trust::give(&session, &default_source(&session)?)?;
    }
    if !global.quiet {
        let what = if made.contains(&true) { "Wrote" } else { "Nothing to do:" };
        output::line(&format!("{what} .aynig/command/turn and .aynig/command/route"));
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
