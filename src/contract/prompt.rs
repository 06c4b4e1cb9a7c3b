//! Prompts: four blocks, and the text that is composed of them.
//!
//! A session's first prompt is `full`: what this system is, the role, the mode, the task. Later prompts are
//! `delta`: the mode and the task. The text has exactly the blocks of its kind, so `prompt.full.txt` holds
//! what was sent. What others wrote is quoted line by line, so that no message can pretend to be a block.
//! Implements N4.

use super::edge::Edge;
use super::id::{NodeId, PayloadId, RunId};
use super::node::{Capabilities, NodeConfig};
use super::shown;
use super::words::{EdgeManagement, Expectation, GlobalMode, Mode};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Which blocks a prompt has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptKind {
    /// All four blocks.
    Full,
    /// The mode and the task.
    Delta,
}

impl PromptKind {
    /// Returns the word for the kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Delta => "delta",
        }
    }
}

/// The blocks of a prompt, all four whatever was sent; `prompt.blocks.json` holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBlocks {
    /// What this system is, and how its tools are called.
    pub system: String,
    /// What the node's role is to do.
    pub role: String,
    /// What turns may change.
    pub mode: String,
    /// What is to be done.
    pub task: String,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Which blocks were sent.
    pub kind: PromptKind,
    /// The blocks.
    pub blocks: PromptBlocks,
    /// The text that is sent; `prompt.full.txt` holds it.
    pub text: String,
}

/// A node, as the list of nodes in a prompt names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its id.
    pub id: NodeId,
    /// Its configuration.
    pub config: &'a NodeConfig,
}

/// A message to the node whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// The message's id.
    pub id: PayloadId,
    /// The name of the sender, for people: an alias, a label, a person's name.
    pub from: &'a str,
    /// The kind of message: `message`, `interrupt`, `handoff`.
    pub kind: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Whether the sender wants an answer.
    pub expectation: Option<Expectation>,
    /// What became of the work that came with it.
    pub work: Work<'a>,
}

/// What became of the work that a message brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work<'a> {
    /// The message brought no work.
    None,
    /// The work was merged into the node's tree.
    Merged,
    /// The work was in the tree already.
    Nothing,
    /// The work is not in the tree, as it conflicts in these paths.
    Conflict {
        /// The commit that holds the work.
        commit: &'a str,
        /// The paths in conflict.
        paths: &'a [&'a str],
    },
}

/// An answer for which a node still waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPromise<'a> {
    /// The name of the node that waits.
    pub to: &'a str,
    /// The name of the node that owes the answer.
    pub from: &'a str,
    /// What the answer is about.
    pub about: &'a str,
}

/// What a prompt is composed from.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// The run.
    pub run: RunId,
    /// The name of the run.
    pub name: &'a str,
    /// Its mode.
    pub mode: Mode,
    /// What its turns may change.
    pub global_mode: GlobalMode,
    /// The node whose turn it is.
    pub node: Named<'a>,
    /// All nodes of the run, this one included.
    pub roster: &'a [Named<'a>],
    /// The edges of the run.
    pub edges: &'a [Edge],
    /// The text of the role's template, as it is now.
    pub template: &'a str,
    /// Whether the program has the flow's tools as tools; otherwise it calls them by lines of text.
    pub native_tools: bool,
    /// Whether the node works in its worktree by such calls too, as its program has no tools of its own.
    pub workspace: bool,
    /// The messages that the turn answers, oldest first.
    pub incoming: &'a [Incoming<'a>],
    /// Answers that this node owes, or waits for.
    pub promises: &'a [OpenPromise<'a>],
    /// What happened before, for a new session, which does not know it.
    pub catch_up: Option<&'a str>,
}

/// Composes a prompt. The role's block is the node's own text, if it has one, or else the template's.
pub fn compose(kind: PromptKind, of: &Situation) -> Prompt {
    let role = of.node.config.custom_system_prompt.as_deref().unwrap_or(of.template);
    let blocks = PromptBlocks {
        system: system(of),
        role: role.trim().to_owned(),
        mode: mode(of.global_mode).to_owned(),
        task: task(of),
    };
    let text = match kind {
        PromptKind::Full => [&*blocks.system, &blocks.role, &blocks.mode, &blocks.task].join("\n\n"),
        PromptKind::Delta => [&*blocks.mode, &blocks.task].join("\n\n"),
    };
    Prompt { kind, blocks, text }
}

impl PromptBlocks {
    /// Returns the content of `prompt.blocks.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn system(of: &Situation) -> String {
    let mut text = String::from(
        "# Where you are\n\nYou are one node of a flow: several agents, each with a branch of its own, that hand work to \
         one another. Your working directory is a worktree of your branch. What you change in it is committed for you \
         when your turn ends; what you hand over goes with your files, and is merged into the receiver's branch. Your \
         last message is what people and the next node read: begin it with one line that says what came of the turn.\n\n\
         # Tools of the flow\n\n",
    );
    text.push_str(match of.native_tools {
        true => {
            "They are offered to you as tools of the server `aynig`; where they are not in your list, search your tools \
             for them:\n\n"
        }
        false => {
            "Call one by a line of your last message that is exactly one JSON object and nothing else:\n\n\
             {\"tool_call\":{\"name\":\"send_handoff\",\"args\":{\"to\":\"reviewer\",\"message\":\"ready\"}}}\n\n"
        }
    });
    let may = &of.node.config.capabilities;
    text.push_str(
        "- send_handoff {to, message, structured?, artifacts?, status?, response?}: to a node that an edge leads to; \
         with response {\"expectation\":\"required\"} you wait for what it hands back\n\
         - ask {question, choices?}: asks a person\n\
         - todo_write {todos}: your list of tasks, as people see it\n",
    );
    match may.edge_management {
        EdgeManagement::None => {}
        EdgeManagement::SelfOnly => text.push_str(CREATE_EDGE),
        EdgeManagement::All => {
            text.push_str(
                "- spawn_node {label, roleTemplate, alias?, instructions?, input?, provider?}: a new node\n",
            );
            text.push_str(CREATE_EDGE);
            text.push_str("- finish_run {status, summary}: ends the flow, `completed` or `failed`\n");
        }
    }
    if of.workspace {
        text.push_str(&workspace(may));
    }
    text.trim_end().to_owned()
}

/// Returns the part about the tools for the worktree, which a program without tools of its own calls.
fn workspace(may: &Capabilities) -> String {
    let mut text = String::from(
        "\n# Tools of the worktree\n\nCall them in the same way. Each is answered by a line of your input, and so is `ask`: read it, \
         and say another message then. Your turn ends with the first message that calls none of these. Paths are from the top of \
         your worktree.\n\n",
    );
    if may.run_commands {
        text.push_str("- command {cmd, cwd?}: runs a line of the shell\n");
    }
    text.push_str("- read_file {path}\n- list_files {path?}\n");
    if !may.delegate_only && (may.write_code || may.write_docs) {
        text.push_str("- write_file {path, content}\n- delete_file {path}\n");
    }
    text
}

const CREATE_EDGE: &str = "- create_edge {from, to, bidirectional?, type?, label?}: joins two nodes\n";

fn mode(mode: GlobalMode) -> &'static str {
    match mode {
        GlobalMode::Planning => {
            "# Mode: PLANNING\n\nOnly what is below `docs/` becomes part of your work. Anything else that you change \
             is set aside, and you are told."
        }
        GlobalMode::Implementation => {
            "# Mode: IMPLEMENTATION\n\nChange what the task needs, within what you may do."
        }
    }
}

fn task(of: &Situation) -> String {
    let (config, may) = (of.node.config, &of.node.config.capabilities);
    let mut text = format!(
        "# Your turn\n\nFlow: {} ({}), {}\nYou: {} ({}), role {}\n",
        one(of.name),
        of.run,
        of.mode,
        one(config.called()),
        of.node.id,
        one(&config.role_template),
    );
    let _ = writeln!(
        text,
        "You may: change code {}, change docs {}, run commands {}, only delegate {}, edges {}",
        yes(may.write_code),
        yes(may.write_docs),
        yes(may.run_commands),
        yes(may.delegate_only),
        may.edge_management,
    );
    let mut roster: Vec<&Named> = of.roster.iter().collect();
    roster.sort_by(|a, b| (&a.config.label, a.id).cmp(&(&b.config.label, b.id)));
    text.push_str("\n## Nodes\n\n");
    for node in &roster {
        let alias =
            node.config.alias.as_deref().map_or_else(String::new, |alias| format!(" `{}`", one(alias)));
        let (label, role) = (one(&node.config.label), one(&node.config.role_template));
        let _ = writeln!(text, "- {label}{alias}: {role}, {}, {}", node.config.provider, node.id);
    }
    text.push_str("\n## Edges\n\n");
    for edge in of.edges {
        let arrow = if edge.bidirectional { "<->" } else { "->" };
        let end = |id| roster.iter().find(|node| node.id == id).map_or("?".to_owned(), |node| called(node));
        let _ = writeln!(text, "- {} {arrow} {}: {}", end(edge.from), end(edge.to), one(&edge.label));
    }
    if !of.promises.is_empty() {
        text.push_str("\n## Answers that are waited for\n\n");
        for promise in of.promises {
            let _ =
                writeln!(text, "- {} owes {}: {}", one(promise.from), one(promise.to), one(promise.about));
        }
    }
    if let Some(before) = of.catch_up {
        let _ = write!(text, "\n## What went before\n\n{}", quoted(before));
    }
    text.push_str("\n## What came\n\n");
    if of.incoming.is_empty() {
        text.push_str("Nothing: go on by yourself, or finish the run.\n");
    }
    for message in of.incoming {
        text.push_str(&incoming(message));
    }
    text.trim_end().to_owned()
}

fn incoming(message: &Incoming) -> String {
    let mut text = format!(
        "{} {} from {}:\n\n{}",
        one(message.kind),
        message.id,
        one(message.from),
        quoted(message.text)
    );
    match message.expectation {
        Some(Expectation::Required) => text.push_str("\nAn answer is required.\n"),
        Some(Expectation::Optional) => text.push_str("\nAn answer would be read.\n"),
        Some(Expectation::None) | None => {}
    }
    match &message.work {
        Work::None => {}
        Work::Merged => text.push_str("\nIts work is in your tree.\n"),
        Work::Nothing => text.push_str("\nIts work was in your tree already.\n"),
        Work::Conflict { commit, paths } => {
            let _ = writeln!(text, "\nIts work, {}, is not in your tree: it conflicts in", one(commit));
            for path in *paths {
                let _ = writeln!(text, "- {}", one(path));
            }
            text.push_str("Merge it with git, resolve that, and commit.\n");
        }
    }
    text.push('\n');
    text
}

fn called(node: &Named) -> String {
    one(node.config.called())
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Returns a name as one line, whatever it holds, so that it can't add lines to the prompt.
fn one(text: &str) -> String {
    shown::line(text.as_bytes())
}

/// Quotes the words of a person or of another node: every line is marked, whatever character ends it.
fn quoted(text: &str) -> String {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let text = text.replace("\r\n", "\n");
    text.trim_end_matches(ends).split(ends).fold(String::new(), |mut all, line| {
        all.push_str(if line.is_empty() { ">" } else { "> " });
        all.push_str(line);
        all.push('\n');
        all
    })
}
