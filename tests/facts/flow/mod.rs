//! Flows: their refs, their nodes' branches, and the verbs about them, on real repositories. Implements the proof of N1-N3,
//! N8, N10-N12, N14.

mod answers;
mod approvals;
mod build;
mod forged;
mod held;
mod hostile;
mod project;
mod remote;
mod remove;
mod route;
mod sandbox;
mod stage;
mod steer;
mod templates;
mod together;
mod tools;
mod turn;
mod turn_ends;
mod turn_faults;
mod turn_sessions;
mod waits;

use crate::support::life::{Done, Life};
use serde_json::Value;

/// What a node's head says that waits.
pub const ACCEPTS: &str = "dwp-accepts: message=turn, handoff=turn, interrupt=turn";
/// A turn that says what it heard, and waits again.
pub const TURN: &str = "cat \"$AYNIG_MESSAGES\" >>\"$T/heard\"\n\
    echo 'SET_STATE {\"state\":\"idle\",\"subject\":\"turn: done\",\"trailers\":[\"dwp-accepts: message=turn, handoff=turn, interrupt=turn\"]}'";
pub const ROUTE: &str = "echo 'SET_STATE {\"state\":\"idle\",\"trailers\":[\"dwp-accepts: message=turn, handoff=turn, interrupt=turn\"]}'";

/// A repository with commands for turns, and the flow 'review' with the nodes 'lead' and 'ada'.
pub fn review() -> Life {
    let life = Life::new(&[("turn", TURN), ("route", ROUTE)]);
    make(&life, &[]);
    life
}

/// Makes that flow.
pub fn make(life: &Life, more: &[&str]) {
    life.flow(&[&["new", "Review", "--mode", "interactive"], more].concat()).expect(0);
    for (alias, role) in [("lead", "orchestrator"), ("ada", "implementer")] {
        let add = ["node", "add", "review", "--label", alias, "--alias", alias, "--role", role];
        life.flow(&[&add, &["--provider", "custom"][..], more].concat()).expect(0);
    }
    life.flow(&[&["edge", "add", "review", "lead", "ada"], more].concat()).expect(0);
}

impl Life {
    pub fn flow(&self, args: &[&str]) -> Done {
        self.run(&[&["flow"], args].concat())
    }

    /// The ref of the only flow.
    pub fn flow_ref(&self) -> String {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/flows/"])
    }

    /// A file of the only flow, as JSON.
    pub fn flow_file(&self, path: &str) -> Value {
        serde_json::from_str(&self.git(&["show", &format!("{}:{path}", self.flow_ref())])).unwrap()
    }

    /// Puts a flow there whose files are these, whichever user wrote them.
    pub fn push_flow(&self, name: &str, files: &[(&str, &str)]) -> String {
        let index = self.path(".git/foreign");
        let _ = std::fs::remove_file(&index);
        let git = |args: &[&str]| {
            let output = self.repo.command("git").env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
            assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        for (path, content) in files {
            self.write("foreign", content);
            let blob = git(&["hash-object", "-w", "foreign"]);
            std::fs::remove_file(self.path("foreign")).unwrap();
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
        }
        let tree = git(&["write-tree"]);
        let commit = git(&["commit-tree", &tree, "-m", "foreign"]);
        git(&["update-ref", &format!("refs/aynig/flows/{name}"), &commit]);
        commit
    }

    /// The names of branches.
    pub fn branches(&self) -> Vec<String> {
        let all = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/"]);
        all.lines().map(str::to_owned).collect()
    }
}
