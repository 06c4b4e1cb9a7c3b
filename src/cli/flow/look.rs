//! `flow list` and `flow show`.

use super::super::args_flow::{Look, One};
use super::super::fail::Failure;
use super::super::hints::Addressed;
use super::super::output;
use super::super::session::Global;
use super::super::status::answer_call;
use super::{flags, name, node_name};
use crate::app::flow::events::Reading;
use crate::app::flow::lines::FlowLine;
use crate::app::flow::look::{FlowView, NodeView, list as listed, show as shown};
use crate::protocol::flow::FLOWS;
use crate::protocol::text::escape;

/// Runs `git aynig flow list`.
pub fn list(global: &Global, args: &Look) -> Result<i32, Failure> {
    let session = global.open()?;
    for one in listed(&session, &flags(&args.place))? {
        let whole = String::from_utf8_lossy(one.name.as_bytes()).into_owned();
        if args.place.json {
            let read = one.read.as_ref().map_err(ToString::to_string);
            output::line(&output::json(&FlowLine::of(&whole, read)));
            continue;
        }
        match &one.read {
            Ok(kept) => {
                let (run, nodes) = (&kept.flow.run, kept.flow.nodes.len());
                let (status, mode, what) = (run.status, run.mode, run.global_mode);
                output::line(&format!(
                    "{}: {status}, {mode}, {what}, {nodes} nodes ({})",
                    name(kept),
                    kept.id
                ));
            }
            Err(why) => {
                let below = whole.as_bytes().strip_prefix(FLOWS).unwrap_or(whole.as_bytes());
                output::line(&format!("{}: {}", escape(below), escape(why.to_string().as_bytes())));
            }
        }
    }
    Ok(0)
}

/// Runs `git aynig flow show`.
pub fn show(global: &Global, args: &One) -> Result<i32, Failure> {
    let session = global.open()?;
    let view = shown(&session, &flags(&args.place), &args.flow)?;
    let FlowView { kept, nodes } = &view;
    if args.place.json {
        let whole = crate::flow::store::ref_of(kept.id).to_string();
        let run = Reading::state_of(&session, &flags(&args.place), kept.id)?;
        output::line(&output::json(&FlowLine::of(&whole, Ok(kept)).with(run)));
        return Ok(0);
    }
    let run = &kept.flow.run;
    let remote = session.settings(&flags(&args.place))?.remote;
    let lines = output::Together::begin();
    output::line(&format!("{}: {}, {}, {} ({})", name(kept), run.status, run.mode, run.global_mode, kept.id));
    if let Some(summary) = &run.summary {
        output::line(&format!("  {}", escape(summary.as_bytes())));
    }
    for node in nodes {
        output::line(&format!("  {}", line(&view, node)));
        let said = node.summary.as_deref().unwrap_or("its branch is gone");
        output::line(&format!("    {}: {}", escape(node.file.branch.as_bytes()), escape(said.as_bytes())));
        for (asked, is_call) in &node.asks {
            let at = Addressed::new(&asked.branch(), remote.as_deref());
            let answer = if *is_call {
                format!("git aynig flow approve {}, or deny", asked.question.id)
            } else {
                answer_call(&asked.question, &at, node.asks.len() > 1)
            };
            output::line(&format!("    asks: {answer}"));
        }
    }
    for (id, file) in &kept.flow.edges {
        let edge = &file.edge;
        let (from, to) = (node_name(kept, edge.from), node_name(kept, edge.to));
        let way = if edge.bidirectional { "<->" } else { "->" };
        let label = escape(edge.label.as_bytes());
        output::line(&format!("  {from} {way} {to}: {}, '{label}' ({id})", edge.edge_type));
    }
    for promise in run.promises.values() {
        let (to, from) = (node_name(kept, promise.to), node_name(kept, promise.from));
        output::line(&format!("  {to} waits for {from}: {}", escape(promise.about.as_bytes())));
    }
    drop(lines);
    Ok(0)
}

/// Returns a node as one line: its name, status, role, provider, and what waits for it.
fn line(view: &FlowView, node: &NodeView) -> String {
    let config = &node.file.config;
    let (role, provider) = (escape(config.role_template.as_bytes()), config.provider);
    let mut line = format!("{}: {}, {role}, {provider}", node_name(&view.kept, node.id), node.status);
    if node.file.stopped {
        line.push_str(", stopped");
    } else if node.held {
        line.push_str(", held");
    }
    match node.waiting {
        0 => {}
        1 => line.push_str(", 1 message waits"),
        more => line.push_str(&format!(", {more} messages wait")),
    }
    line
}
