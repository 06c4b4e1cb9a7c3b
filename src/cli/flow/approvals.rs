//! `flow approvals`, `approve`, `deny`, `modify`.

use super::super::args_flow::{Approvals, Decide, Modify, Where};
use super::super::change::text;
use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::{changing, name};
use crate::app::flow::approvals::{Decision, list as listed, name_of, resolve, wanted};
use crate::app::flow::lines::ApprovalLine;
use crate::app::talk::send::hear;
use crate::app::talk::{MessageLine, id};
use crate::protocol::text::escape;

/// Runs `git aynig flow approvals`.
pub fn list(global: &Global, args: &Approvals) -> Result<i32, Failure> {
    changing(global, &args.place, |change| {
        for approval in listed(change, args.flow.as_deref())? {
            if args.place.json {
                output::line(&output::json(&ApprovalLine::of(&approval)));
                continue;
            }
            let question = &approval.asked.question;
            let at = format!("{}, {}", name(&approval.kept), escape(name_of(&approval).node.as_bytes()));
            output::line(&format!("{} {at}", question.id));
            question.text.lines().for_each(|line| output::line(&format!("    {}", escape(line.as_bytes()))));
        }
        Ok(0)
    })
}

/// Runs `git aynig flow approve`.
pub fn approve(global: &Global, args: &Decide) -> Result<i32, Failure> {
    let said = args.message.join("\n\n");
    decide(global, &args.place, &args.approval, !args.no_tick, &Decision::Approve(&said))
}

/// Runs `git aynig flow deny`.
pub fn deny(global: &Global, args: &Decide) -> Result<i32, Failure> {
    let said = args.message.join("\n\n");
    decide(global, &args.place, &args.approval, !args.no_tick, &Decision::Deny(&said))
}

/// Runs `git aynig flow modify`.
pub fn modify(global: &Global, args: &Modify) -> Result<i32, Failure> {
    let typed: Vec<String> = args.args.iter().cloned().collect();
    let args_wanted = wanted(&text(&typed, args.file.as_deref())?)?;
    decide(global, &args.place, &args.approval, !args.no_tick, &Decision::Modify(args_wanted))
}

fn decide(
    global: &Global,
    place: &Where,
    approval: &str,
    tick: bool,
    decision: &Decision<'_>,
) -> Result<i32, Failure> {
    let approval = id(approval, Some("flow approvals"))?;
    changing(global, place, |change| {
        let (asked, sent) = resolve(change, approval, decision)?;
        let word = match decision {
            Decision::Approve(_) => "approved",
            Decision::Deny(_) => "denied",
            Decision::Modify(_) => "modified",
        };
        match place.json {
            true => output::line(&output::json(&MessageLine::of_sent(&sent))),
            false => output::line(&format!("{}: {approval} {word}", escape(asked.branch().short()))),
        }
        if tick {
            hear(change, &sent)?;
        }
        Ok(0)
    })
}
