//! What the core knows of flows: where they are kept, what a node's branch is called, and what holds that
//! branch.
//!
//! A flow is a commit under `refs/aynig/flows/<id>`, whose tree says which branches are its nodes. This
//! module reads only what concerns those branches and what holds them; the module `contract` has the whole
//! files. A flow speaks only for branches below `flow/<its slug>/`, whatever its files name: the user who
//! pushes a flow must not reach any other branch. Implements N3 (what a node's head takes), N12 (what holds).

use super::accepts::Accepts;
use super::event::Event;
use super::inbox::Kind;
use super::name::StateName;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The prefix of the refs of flows.
pub const FLOWS: &[u8] = b"refs/aynig/flows/";
/// The version of the contract that this program implements. A flow that names any other version is refused.
pub const VERSION: &str = "1";
/// The prefix of the refs that hold what turns left behind.
pub const TURNS: &[u8] = b"refs/aynig/turns/";
/// The ref of the repository's own templates.
pub const TEMPLATES: &[u8] = b"refs/aynig/templates";
/// The prefix of the names of all nodes' branches, without `refs/heads/`.
pub const BRANCHES: &[u8] = b"flow/";
/// The trailer that names the flow a node's branch was made for.
pub const FLOW: &str = "dwp-flow";
/// The trailer that names the node a branch was made for.
pub const NODE: &str = "dwp-node";
/// The state whose command is a node's turn.
pub const TURN: &str = "turn";
/// The state whose command does what follows from a turn.
pub const ROUTE: &str = "route";
/// The state of a node that waits for a message.
pub const IDLE: &str = "idle";
/// The kinds of message that bring a turn to a node which has none.
pub const KINDS: [&str; 3] = [Kind::MESSAGE, HANDOFF, Kind::INTERRUPT];
/// The kind of message by which work goes from one node to another.
pub const HANDOFF: &str = "handoff";
/// The states of a node's head whose turn, or what follows from it, went wrong: a message then serves as the
/// retry.
const WRONG: [&str; 4] = ["failed", "stalled", "blocked", "canceled"];
/// Longest slug, or name below it, in a node's branch name, in bytes.
const PART_MAX: usize = 64;

/// Returns the slug of the flow that a branch of this name (without `refs/heads/`) may be a node of. The name
/// must be `flow/<slug>/<name>`, where both parts consist of lower-case letters, digits and hyphens, and
/// begin with no hyphen.
pub fn slug_of(branch: &[u8]) -> Option<&str> {
    let below = std::str::from_utf8(branch.strip_prefix(BRANCHES)?).ok()?;
    let (slug, name) = below.split_once('/')?;
    let plain = |part: &str| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !part.is_empty() && part.len() <= PART_MAX && !part.starts_with('-') && part.bytes().all(fits)
    };
    (plain(slug) && plain(name)).then_some(slug)
}

/// Returns the value of the trailer that says which messages a node's idle head accepts.
pub fn accepts() -> String {
    KINDS.map(|kind| format!("{kind}={TURN}")).join(", ")
}

/// True for a head whose run, or what follows from it, went wrong.
pub fn goes_wrong(event: &Event) -> bool {
    event.state_name().is_some_and(|state| WRONG.contains(&state.as_str()))
}

/// True for the text of a command that does nothing but have this program answer a node's state, as
/// `flow init` writes it.
pub fn is_own_command(state: &str, text: &[u8]) -> bool {
    let mut lines = text.split(|b| *b == b'\n');
    let own = format!("exec git aynig flow {state}");
    let says = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    [TURN, ROUTE].contains(&state)
        && lines.next() == Some(b"#!/bin/sh")
        && lines.filter(says).eq([own.as_bytes()])
}

/// True for a head that waits for a message to start a turn, and so for no person in particular.
pub fn rests(event: &Event) -> bool {
    let is = |name: &str, state: &StateName| state.as_str() == name;
    let taken = Kind::new(Kind::MESSAGE).ok().and_then(|kind| Accepts::of(event).state(&kind).cloned());
    event.state_name().is_some_and(|state| is(IDLE, state)) && taken.is_some_and(|state| is(TURN, &state))
}

/// Returns the kinds of message that a node's head accepts without saying so because its turn went wrong,
/// each with the state that it brings; `None` for any other head.
pub fn taken_by(event: &Event) -> Option<Vec<(Kind, StateName)>> {
    let turn = StateName::new(TURN).ok().filter(|_| event.is_node && goes_wrong(event))?;
    Some(KINDS.iter().filter_map(|kind| Some((Kind::new(kind).ok()?, turn.clone()))).collect())
}

/// The fields of `run.json` that concern the branches of the flow's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Run {
    /// The flow's name.
    pub name: String,
    /// The folder of the nodes' branches, below `flow/`.
    pub slug: String,
    /// The flow's status, such as `running`.
    pub status: String,
    /// The version of the contract that the flow follows, where it names one.
    #[serde(default, rename = "contractVersion")]
    pub version: Option<String>,
}

/// The fields of `nodes/<id>.json` that concern the node's branch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// The node's branch, without `refs/heads/`.
    pub branch: String,
    /// Whether the node's stop flag is set.
    #[serde(default)]
    pub stopped: bool,
}

impl Run {
    /// True where the flow's nodes may have turns.
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }

    /// Returns the version of the contract that the flow names, if it is not [`VERSION`].
    pub fn unknown_version(&self) -> Option<&str> {
        self.version.as_deref().filter(|version| *version != VERSION)
    }

    /// True where the flow may speak for a branch.
    pub fn may_have(&self, branch: &[u8]) -> bool {
        slug_of(branch) == Some(&self.slug)
    }
}

/// The branches that a flow speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The flow.
    pub run: Run,
    nodes: BTreeMap<String, bool>,
}

impl Claim {
    /// Returns the claim of a flow without any branch yet.
    pub fn new(run: Run) -> Self {
        Self { run, nodes: BTreeMap::new() }
    }

    /// Adds a node, unless its branch is none that the flow may speak for. Of several nodes that name one
    /// branch, any can stop it.
    pub fn add(&mut self, node: Node) {
        if self.run.may_have(node.branch.as_bytes()) {
            *self.nodes.entry(node.branch).or_default() |= node.stopped;
        }
    }

    /// Returns whether the node of this branch is stopped; `None` where the branch is no node of this flow.
    pub fn node(&self, branch: &[u8]) -> Option<bool> {
        self.nodes.get(std::str::from_utf8(branch).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Message, Trailer};

    /// N1, N3.
    #[test]
    fn only_branches_of_their_own_folder_are_nodes() {
        assert_eq!(slug_of(b"flow/review/planner-2"), Some("review"));
        for branch in [
            &b"main"[..],
            b"flow",
            b"flow/x",
            b"flow/x/",
            b"flow//y",
            b"flow/x/y/z",
            b"flow/X/y",
            b"flow/x/-y",
            b"flow/x/y.lock",
            b"flow/x/..",
            b"Flow/x/y",
            b"refs/heads/flow/x/y",
            b"flow/x/\xff",
        ] {
            assert_eq!(slug_of(branch), None, "{branch:?}");
        }
        assert_eq!(slug_of(format!("flow/x/{}", "y".repeat(65)).as_bytes()), None);
    }

    /// N12: a flow speaks only for its own folder, and of two nodes that name one branch either can stop it.
    #[test]
    fn a_flow_claims_the_branches_of_its_own_folder() {
        let run = |status: &str| Run {
            name: "X".into(),
            slug: "x".into(),
            status: status.into(),
            version: Some(VERSION.into()),
        };
        let mut claim = Claim::new(run("running"));
        for (branch, stopped) in
            [("flow/x/a", false), ("flow/x/a", true), ("flow/x/b", false), ("flow/y/a", true), ("main", true)]
        {
            claim.add(Node { branch: branch.into(), stopped });
        }
        let node = |branch: &str| claim.node(branch.as_bytes());
        assert_eq!((node("flow/x/a"), node("flow/x/b")), (Some(true), Some(false)));
        assert_eq!((node("flow/y/a"), node("main"), node("flow/x/c")), (None, None, None));
        for status in ["queued", "paused", "stopped", "completed", "failed", "", "Running"] {
            assert!(run("running").is_running() && !run(status).is_running());
        }
    }

    /// K59: only a command that is known to be this program's own is started outside of the sandbox.
    #[test]
    fn a_command_is_ours_where_it_does_nothing_else() {
        let ours = |text: &str| is_own_command(TURN, text.as_bytes());
        assert!(ours("#!/bin/sh\n# A node has its turn.\n\nexec git aynig flow turn\n"));
        for text in [
            "exec git aynig flow turn\n",
            "#!/bin/sh -x\nexec git aynig flow turn\n",
            "#!/bin/sh\nexec git aynig flow turn; evil\n",
            "#!/bin/sh\nevil\nexec git aynig flow turn\n",
            "#!/bin/sh\nexec git aynig flow turn\nevil\n",
            "#!/bin/sh\n # x\nexec git aynig flow turn\n",
            "#!/bin/sh\nexec git aynig flow route\n",
            "#!/bin/sh\n# x\revil\nexec git aynig flow turn \n",
            "#!/bin/sh\n",
            "",
        ] {
            assert!(!ours(text), "{text:?}");
        }
        assert!(!is_own_command("build", b"#!/bin/sh\nexec git aynig flow build\n"));
    }

    fn event(state: &str, is_node: bool) -> Event {
        let trailers = vec![Trailer::new("dwp-state", state)];
        Event { is_node, ..Event::of(Message::new("s", "", trailers)).unwrap() }
    }

    /// N3: a message is the retry, but only for nodes.
    #[test]
    fn heads_of_nodes_that_went_wrong_take_messages() {
        let taken = |state, is_node| Accepts::of(&event(state, is_node)).kinds().len();
        for state in WRONG {
            assert_eq!((taken(state, true), taken(state, false)), (3, 0), "{state}");
        }
        for state in ["done", "build", "idle", "working", "turn", "route"] {
            assert_eq!(taken(state, true), 0, "{state}");
        }
        let mut said = event("blocked", true);
        said.message.trailers.push(Trailer::new("dwp-accepts", "message=rework"));
        let accepts = Accepts::of(&said);
        let state = |kind| accepts.state(&Kind::new(kind).unwrap()).map(StateName::as_str);
        assert_eq!((state("message"), state("handoff")), (Some("rework"), Some("turn")));
    }
}
