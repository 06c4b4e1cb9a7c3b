//! A flow whose turns are scripts: the command of the state `turn` does what a test wrote down for that turn of that node,
//! and declares what a turn declares.

use crate::support::life::{Done, Life};
use aynig::contract::event::{Event, ToolCall};
use aynig::contract::flow::{Flow, Mutation, NewRun, apply, create};
use aynig::contract::id::{EdgeId, NodeId, RunId, ToolId};
use aynig::contract::run::Run;
use aynig::contract::time::Time;
use aynig::contract::words::{GlobalMode, Mode};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use uuid::Uuid;

/// Runs `$T/<node>.<n>.sh`, then declares `$T/<node>.<n>.json`, `n` being the node's how many-th turn this is; a turn that
/// nothing was written down for ends with nothing to do.
pub const TURN: &str = "node=${AYNIG_BRANCH##*/}\n\
    n=$(cat \"$T/$node.n\" 2>/dev/null || echo 0); n=$((n+1)); echo $n >\"$T/$node.n\"\n\
    cp \"${AYNIG_MESSAGES:-/dev/null}\" \"$T/$node.$n.messages\"\n\
    if [ -e \"$T/$node.$n.sh\" ]; then . \"$T/$node.$n.sh\"; fi\n\
    if [ -e \"$T/$node.$n.json\" ]; then cp \"$T/$node.$n.json\" \"$AYNIG_RESULT\"\n\
    else echo '{\"state\":\"route\",\"subject\":\"nothing to do\"}' >\"$AYNIG_RESULT\"; fi";
/// What follows from a turn.
pub const ROUTE: &str = "exec git aynig flow route";

/// A flow on a stage.
pub struct Stage {
    pub life: Life,
    pub flow: Flow,
}

/// A node of a stage: its alias, and its role.
pub type Role<'a> = (&'a str, &'a str);

impl Stage {
    /// A flow called `play` with these nodes, each joined to all others.
    pub fn new(mode: Mode, nodes: &[Role<'_>]) -> Self {
        Self::with(TURN, mode, nodes)
    }

    /// The same with another command of the state `turn`.
    pub fn with(turn: &str, mode: Mode, nodes: &[Role<'_>]) -> Self {
        let life = Life::new(&[("turn", turn), ("route", ROUTE)]);
        let flow = flow(&life.rev("HEAD"), mode, nodes);
        let stage = Self { life, flow };
        stage.write_flow();
        stage.write_branches();
        stage
    }

    /// Has each call of a node wait for a person.
    pub fn gate(&mut self, label: &str) {
        let id = self.id(label);
        let gated =
            serde_json::json!({"cliPermissionsMode": "gated", "agentManagementRequiresApproval": true});
        self.flow.nodes[&id].config.permissions = serde_json::from_value(gated).unwrap();
        self.write_flow();
    }

    /// Writes the flow, by Git alone.
    pub fn write_flow(&self) {
        let git = |args: &[&str]| self.life.git(args);
        let index = self.life.shared().join("flow.index");
        for (path, content) in self.flow.files() {
            let file = self.life.shared().join("flow.file");
            fs::write(&file, content).unwrap();
            let blob = git(&["hash-object", "-w", file.to_str().unwrap()]);
            let entry = format!("100644,{blob},{path}");
            self.on(&index, &["update-index", "--add", "--cacheinfo", &entry]);
        }
        let tree = self.on(&index, &["write-tree"]);
        let commit = git(&["commit-tree", &tree, "-m", "flow: new flow 'play'"]);
        git(&["update-ref", &format!("refs/aynig/flows/{}", self.flow.run.id), &commit]);
        fs::remove_file(index).unwrap();
    }

    /// Writes its nodes' branches.
    fn write_branches(&self) {
        let git = |args: &[&str]| self.life.git(args);
        for (id, node) in &self.flow.nodes {
            let message = format!(
                "node\n\ndwp-state: idle\ndwp-accepts: message=turn, handoff=turn, interrupt=turn\ndwp-flow: {}\ndwp-node: {id}\n",
                self.flow.run.id
            );
            let base = &self.flow.run.base;
            let tree = format!("{base}^{{tree}}");
            let born = git(&["commit-tree", "-p", base, &tree, "-m", &message]);
            git(&["update-ref", &format!("refs/heads/{}", node.branch), &born]);
        }
    }

    fn on(&self, index: &PathBuf, args: &[&str]) -> String {
        let output = self.life.repo.command("git").env("GIT_INDEX_FILE", index).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What a node's `n`th turn declares, and what it does before.
    pub fn turn(&self, node: &str, n: u32, script: &str, calls: &[Value], more: &[String]) {
        self.declares(node, n, script, "route", &format!("{node} {n}"), calls, more);
    }

    #[allow(clippy::too_many_arguments, reason = "one line of a script")]
    pub fn declares(
        &self,
        node: &str,
        n: u32,
        script: &str,
        state: &str,
        subject: &str,
        calls: &[Value],
        more: &[String],
    ) {
        let calls = calls.iter().map(|call| format!("dwp-flow-call: {call}"));
        let trailers: Vec<String> = calls.chain(more.iter().cloned()).collect();
        let declared = json!({"state": state, "subject": subject, "body": format!("text of {node} {n}"),
            "trailers": trailers, "usage": {"input_tokens": 100, "output_tokens": 10}});
        fs::write(self.life.shared().join(format!("{node}.{n}.json")), declared.to_string()).unwrap();
        fs::write(self.life.shared().join(format!("{node}.{n}.sh")), format!("{script}\n")).unwrap();
    }

    /// Says something to a node, and has all go on until nothing is to be done.
    #[track_caller]
    pub fn say(&self, node: &str, text: &str) -> Done {
        self.life.run(&["send", &self.branch(node), "-m", text, "--no-tick"]).expect(0);
        self.go()
    }

    #[track_caller]
    pub fn go(&self) -> Done {
        self.life.run(&["run"])
    }

    pub fn branch(&self, node: &str) -> String {
        format!("flow/play/{node}")
    }

    /// How many turns a node had.
    pub fn turns(&self, node: &str) -> u32 {
        self.life.said(&format!("{node}.n")).trim().parse().unwrap_or(0)
    }

    /// What a node's `n`th turn was brought.
    pub fn messages(&self, node: &str, n: u32) -> Vec<Value> {
        let text = self.life.said(&format!("{node}.{n}.messages"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn id(&self, node: &str) -> NodeId {
        self.flow.named(node).unwrap()
    }

    /// The flow as it is now.
    pub fn now(&self) -> Flow {
        let name = format!("refs/aynig/flows/{}", self.flow.run.id);
        let paths = self.life.git(&["ls-tree", "-r", "--name-only", &name]);
        let files: Vec<(String, String)> = paths
            .lines()
            .map(|path| (path.to_owned(), self.life.git(&["cat-file", "blob", &format!("{name}:{path}")])))
            .collect();
        Flow::read(files.iter().map(|(path, content)| (path.as_str(), content.as_bytes()))).unwrap()
    }

    /// The refs of messages that wait, or were heard.
    pub fn letters(&self) -> Vec<String> {
        let all =
            self.life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox", "refs/aynig/heard"]);
        all.lines().map(str::to_owned).collect()
    }

    /// The flow's folder.
    pub fn folder(&self) -> PathBuf {
        let data = self.life.repo.git_dir().join("aynig/data/runs");
        data.join(self.flow.run.id.to_string())
    }

    /// All events, as the verb tells them.
    pub fn events(&self) -> Vec<Event> {
        let done = self.life.run(&["flow", "events", "play", "--json"]).expect(0);
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The run's state, as its events make it.
    pub fn run(&self) -> Run {
        self.events();
        serde_json::from_slice(&fs::read(self.folder().join("state.json")).unwrap()).unwrap()
    }
}

/// A flow called `play` with these nodes, each joined to all others.
pub fn flow(base: &str, mode: Mode, nodes: &[Role<'_>]) -> Flow {
    let at = Time::from_seconds(crate::support::life::now() as i64);
    let new = NewRun {
        id: RunId(Uuid::new_v4()),
        name: Some("play".into()),
        mode,
        global_mode: GlobalMode::Implementation,
        base: base.into(),
        folder: None,
    };
    let mut flow = create(&new, &[], at).unwrap().flow;
    for (alias, role) in nodes {
        let spec = json!({"label": alias, "alias": alias, "provider": "custom", "roleTemplate": role});
        let add = Mutation::AddNode {
            id: NodeId(Uuid::new_v4()),
            spec: serde_json::from_value(spec).unwrap(),
            branch: format!("flow/play/{alias}"),
        };
        flow = apply(&flow, &add, at).unwrap().flow;
    }
    let ids: Vec<NodeId> = flow.nodes.keys().copied().collect();
    for (n, from) in ids.iter().enumerate() {
        for to in &ids[n + 1..] {
            let spec = serde_json::from_value(json!({"from": from, "to": to})).unwrap();
            flow = apply(&flow, &Mutation::PutEdge { id: EdgeId(Uuid::new_v4()), spec }, at).unwrap().flow;
        }
    }
    flow
}

/// A call of a tool, with an id of its own.
pub fn call(name: &str, args: Value) -> Value {
    let args = args.as_object().unwrap().clone();
    let call = ToolCall { id: ToolId(Uuid::new_v4()), name: name.into(), args, provider_id: None };
    serde_json::to_value(call).unwrap()
}

/// A handoff.
pub fn handoff(to: &str, message: &str) -> Value {
    call("send_handoff", json!({"to": to, "message": message}))
}

/// The session of a script that plays a provider's program.
pub const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// The line of such a script that prints this line.
pub fn print(line: &Value) -> String {
    format!("printf '%s\\n' '{}'\n", line.to_string().replace('\'', "'\\''"))
}
