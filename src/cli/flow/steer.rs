//! `flow send`, `interrupt`, `reset`, `pause`, `resume`, `stop`, `start`, `mode`, `set`, `rm`.

use super::super::args_flow::{MaybeNode, Mode, One, OneNode, Say, Set, Start, Where};
use super::super::fail::Failure;
use super::super::session::Global;
use super::super::{change, exit, output};
use super::{Part, changing, name, node_name, told, typed};
use crate::app::Exit;
use crate::app::change::Change;
use crate::app::flow::NodeName;
use crate::app::flow::build::word;
use crate::app::flow::remove::{Left, remove};
use crate::app::flow::say::{Said, interrupt as interrupted, reset as did_reset, send as sent};
use crate::app::flow::steer::{Steered, Wanted, hold, set as steered};
use crate::app::talk::pause::EndedRuns;
use crate::app::talk::send::hear;
use crate::app::talk::{MessageLine, id};
use crate::contract::words::{GlobalMode, RunStatus};
use crate::protocol::text::{escape, shell_word};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig flow send`.
pub fn send(global: &Global, args: &Say) -> Result<i32, Failure> {
    let text = change::text(&args.message, args.file.as_deref())?;
    let id = args.id.as_deref().map(|typed| id(typed, None)).transpose()?;
    let at = NodeName { flow: &args.flow, node: &args.node };
    changing(global, &args.place, |change| {
        let said = sent(change, at, &text, id)?;
        say(global, change, args, &said)
    })
}

/// Runs `git aynig flow interrupt`.
pub fn interrupt(global: &Global, args: &Say) -> Result<i32, Failure> {
    let text = change::text(&args.message, args.file.as_deref())?;
    let id = args.id.as_deref().map(|typed| id(typed, None)).transpose()?;
    let signals = Interrupt::by_signals()?;
    let at = NodeName { flow: &args.flow, node: &args.node };
    changing(global, &args.place, |change| {
        let said = interrupted(change, at, &text, id, &signals)?;
        say(global, change, args, &said)
    })
}

fn say(global: &Global, change: &Change<'_>, args: &Say, said: &Said) -> Result<i32, Failure> {
    let (kept, node) = (&said.kept, said.node);
    match (&said.sent, args.place.json) {
        (Some(sent), true) => output::line(&output::json(&MessageLine::of_sent(sent))),
        (None, true) => told(&args.place, kept, Part::Node(node), ""),
        (Some(sent), false) => {
            let what = match (sent.fresh, sent.waiting) {
                (true, _) => "sent",
                (false, true) => "was sent already, and waits",
                (false, false) => "was sent already, and heard",
            };
            output::line(&format!(
                "{}: {} {} {what}",
                node_name(kept, node),
                sent.letter.kind,
                sent.letter.id
            ));
        }
        (None, false) => {}
    }
    if let Some(ended) = &said.ended
        && !args.place.json
    {
        ends(ended);
    }
    if said.sent.is_some() && kept.flow.holds(node) && !global.quiet {
        let flow = typed(&args.flow, args.place.remote.as_deref());
        let (what, mend) = match kept.flow.run.status {
            RunStatus::Running => (
                "the node is stopped".to_owned(),
                format!("start{flow} {}", shell_word(args.node.as_bytes())),
            ),
            RunStatus::Queued
            | RunStatus::Paused
            | RunStatus::Stopped
            | RunStatus::Completed
            | RunStatus::Failed => (format!("the flow is {}", kept.flow.run.status), format!("resume{flow}")),
        };
        output::note(&format!("it waits: {what}"));
        output::note(&format!("hint: git aynig flow {mend}"));
    }
    if let Some(sent) = said.sent.as_ref().filter(|_| !args.no_tick && !kept.flow.holds(node)) {
        hear(change, sent)?;
    }
    Ok(said.ended.as_ref().map_or(0, code))
}

/// Runs `git aynig flow reset`.
pub fn reset(global: &Global, args: &OneNode) -> Result<i32, Failure> {
    changing(global, &args.place, |change| {
        let done = did_reset(change, NodeName { flow: &args.flow, node: &args.node })?;
        let branch = done.kept.branch(done.node).unwrap_or_else(|| RefName::branch(""));
        if args.place.json {
            done.dropped
                .iter()
                .for_each(|one| output::line(&output::json(&MessageLine::of_waiting(&branch, one))));
        } else {
            for one in &done.dropped {
                output::line(&format!(
                    "{}: {} {} dropped",
                    node_name(&done.kept, done.node),
                    one.kind,
                    one.id
                ));
            }
        }
        let line = format!("{}: its next turn begins a new session", node_name(&done.kept, done.node));
        told(&args.place, &done.kept, Part::Node(done.node), &line);
        Ok(0)
    })
}

fn steer(global: &Global, place: &Where, flow: &str, wanted: &Wanted, tick: bool) -> Result<i32, Failure> {
    let signals = Interrupt::by_signals()?;
    changing(global, place, |change| {
        let done = steered(change, flow, wanted, &signals)?;
        let run = &done.kept.flow.run;
        let line = format!("{}: {}, {}, {}", name(&done.kept), run.status, run.mode, run.global_mode);
        after(change, place, &done, Part::Whole, &line, tick)
    })
}

fn after(
    change: &Change<'_>,
    place: &Where,
    done: &Steered,
    part: Part,
    line: &str,
    tick: bool,
) -> Result<i32, Failure> {
    told(place, &done.kept, part, line);
    if !place.json {
        ends(&done.ended);
    }
    if tick && !done.ready.is_empty() {
        change.answer_all(&done.ready)?;
    }
    Ok(code(&done.ended))
}

fn ends(ended: &EndedRuns) {
    let say = |branches: &[RefName], what: &str| {
        branches.iter().for_each(|branch| output::line(&format!("{}: {what}", escape(branch.short()))));
    };
    say(&ended.left, "ended by itself");
    say(&ended.canceled, "canceled");
}

fn code(ended: &EndedRuns) -> i32 {
    exit::code(ended.signal.map_or(Exit::Done, Exit::of_signal))
}

fn status(status: RunStatus) -> Wanted {
    Wanted { status: Some(status), ..Wanted::default() }
}

/// Runs `git aynig flow pause`.
pub fn pause(global: &Global, args: &One) -> Result<i32, Failure> {
    steer(global, &args.place, &args.flow, &status(RunStatus::Paused), false)
}

/// Runs `git aynig flow resume`.
pub fn resume(global: &Global, args: &Start) -> Result<i32, Failure> {
    steer(global, &args.place, &args.flow, &status(RunStatus::Running), !args.no_tick)
}

/// Runs `git aynig flow stop`.
pub fn stop(global: &Global, args: &MaybeNode) -> Result<i32, Failure> {
    match &args.node {
        None => steer(global, &args.place, &args.flow, &status(RunStatus::Stopped), false),
        Some(node) => held(global, &args.place, NodeName { flow: &args.flow, node }, true, false),
    }
}

/// Runs `git aynig flow start`.
pub fn start(global: &Global, args: &OneNode) -> Result<i32, Failure> {
    held(global, &args.place, NodeName { flow: &args.flow, node: &args.node }, false, !args.no_tick)
}

fn held(global: &Global, place: &Where, at: NodeName<'_>, stopped: bool, tick: bool) -> Result<i32, Failure> {
    let signals = Interrupt::by_signals()?;
    changing(global, place, |change| {
        let done = hold(change, at, stopped, &signals)?;
        let node = done.kept.flow.named(at.node).ok();
        let shown = node.map_or_else(|| escape(at.node.as_bytes()), |node| node_name(&done.kept, node));
        let line =
            format!("{}: {shown} is {}", name(&done.kept), if stopped { "stopped" } else { "started" });
        after(change, place, &done, node.map_or(Part::Whole, Part::Node), &line, tick)
    })
}

/// Runs `git aynig flow mode`.
pub fn mode(global: &Global, args: &Mode) -> Result<i32, Failure> {
    let wanted = Wanted {
        mode: args.mode.as_deref().map(word).transpose()?,
        global_mode: match (args.plan, args.implement) {
            (true, _) => Some(GlobalMode::Planning),
            (false, true) => Some(GlobalMode::Implementation),
            (false, false) => None,
        },
        ..Wanted::default()
    };
    steer(global, &args.place, &args.flow, &wanted, !args.no_tick)
}

/// Runs `git aynig flow set`.
pub fn set(global: &Global, args: &Set) -> Result<i32, Failure> {
    let status = Some(word(&args.status)?);
    let wanted = Wanted { status, summary: args.message.clone(), ..Wanted::default() };
    steer(global, &args.place, &args.flow, &wanted, !args.no_tick)
}

/// Runs `git aynig flow rm` or `git aynig flow node remove`.
pub fn rm(global: &Global, place: &Where, flow: &str, node: Option<&str>) -> Result<i32, Failure> {
    let signals = Interrupt::by_signals()?;
    changing(global, place, |change| {
        let gone = remove(change, flow, node, &signals)?;
        told(
            place,
            &gone.kept,
            Part::Whole,
            &format!("{}: {} is gone", name(&gone.kept), node.map_or("it", |_| "the node")),
        );
        if !place.json {
            ends(&gone.ended);
            for branch in &gone.branches {
                output::line(&format!("{}: deleted", escape(branch.short())));
            }
            if gone.messages > 0 {
                output::line(&format!("{} messages that waited are gone", gone.messages));
            }
        }
        for (branch, why) in &gone.left {
            let why = match why {
                Left::NotOurs => "was not made for this flow",
                Left::Shared => "is another flow's node",
            };
            output::note(&format!("warning: '{}' stays: it {why}", escape(branch.short())));
        }
        Ok(code(&gone.ended))
    })
}
