//! What flows say of a branch: that it is a node's, and whether the node is held.
//!
//! Only a branch below `flow/` can be a node's, so no other costs a look. A user who may push a flow may hold
//! the branches of the flow's own folder, as by a pause. A flow that can't be read holds the branches that no
//! other flow speaks for, and is named. A head that went wrong is a node's only where its run answered a
//! turn, or its branch was made for that flow: a flow alone makes no other branch take messages. Implements
//! N3 (what a node's head takes), N12 (what holds).

use super::{Runner, Tip};
use crate::protocol::decide::Paused;
use crate::protocol::event::Event;
use crate::protocol::flow::{Claim, FLOW, FLOWS, Node, ROUTE, Run, TURN, goes_wrong, slug_of};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::derived_id;
use crate::protocol::message::Message;
use crate::protocol::pause::{Holder, Pause};
use crate::store::files::{Bounds, NoFiles, read_files};
use crate::store::{Commit, RefName, StoreError};
use std::sync::Arc;

/// How much of a flow's tree is read.
pub(crate) const BOUNDS: Bounds = Bounds { files: 20_000, file: 4 << 20, all: 64 << 20 };
/// How many commits of a branch are searched for the one that it was made with.
const BORN_MAX: usize = 10_000;

/// What flows say of a branch.
#[derive(Debug, Default)]
pub(crate) struct OfFlows {
    /// The ids of the flows that it is a node of.
    pub flows: Vec<String>,
    /// The flow that holds it, as a pause.
    pub held: Option<Paused>,
}

impl Runner<'_> {
    /// Returns what flows say of a branch, as they were last fetched.
    pub(crate) fn of_flows(&self, branch: &RefName) -> Result<OfFlows, StoreError> {
        let mut found = OfFlows::default();
        if slug_of(branch.short()).is_none() {
            return Ok(found);
        }
        let scan = self.store.scan_all(&String::from_utf8_lossy(FLOWS))?;
        let mut unread = scan.unreadable.into_iter().map(|(name, why)| (name, why.to_string())).next();
        for (name, commit) in scan.refs {
            match self.claim_of(&name, commit)? {
                ClaimRead::Not(why) => unread = unread.or(Some((name, why))),
                ClaimRead::Claim(claim) => {
                    let Some(stopped) = claim.node(branch.short()) else { continue };
                    let id = name.as_bytes().strip_prefix(FLOWS).unwrap_or_default();
                    found.flows.push(String::from_utf8_lossy(id).into_owned());
                    let reason = match (claim.run.unknown_version(), claim.run.is_running()) {
                        (Some(version), _) => Some(format!(
                            "its contractVersion '{version}' is not known here: it waits for a git-aynig that speaks it"
                        )),
                        (None, false) => Some(format!("the flow is {}", claim.run.status)),
                        (None, true) => stopped.then(|| "the node is stopped".to_owned()),
                    };
                    let held = reason.map(|reason| held_by(&claim.run.name, reason));
                    found.held = found.held.or(held);
                }
            }
        }
        if let Some((name, why)) = unread.filter(|_| found.flows.is_empty()) {
            let mend = format!("'git update-ref -d {name}'");
            let pause = Pause::unreadable(&name.to_string(), &why, &mend);
            found.held = Some(held_by(&name.to_string(), pause.reason));
        }
        Ok(found)
    }

    /// Reads the branches that a flow speaks for.
    fn claim_of(&self, name: &RefName, commit: ObjectId) -> Result<ClaimRead, StoreError> {
        if let Some(known) = self.repo.known_claim(name, commit) {
            return Ok(ClaimRead::Claim(known));
        }
        let not = |why: &str| Ok(ClaimRead::Not(why.to_owned()));
        let Ok(read) = self.store.read_commit(commit) else { return not("it is no commit") };
        if !self.is_vouched(name, commit, &Message::parse(&read.message))? {
            return not("it is not signed");
        }
        let files = match read_files(&*self.store, read.tree, BOUNDS) {
            Ok(read) => read.files,
            Err(NoFiles::Store(error)) => return not(&error.to_string()),
            Err(why) => return not(&why.to_string()),
        };
        Ok(match claim(&files) {
            Ok(claim) => ClaimRead::Claim(self.repo.keep_claim(name, commit, Arc::new(claim))),
            Err(why) => ClaimRead::Not(why),
        })
    }

    /// Returns a head with what flows say of it: where a node's turn went wrong, a message is what retries
    /// it, so the head is marked as a node's.
    pub(super) fn with_node(&self, branch: &RefName, mut tip: Tip) -> Tip {
        let wrong = |event: &Event| goes_wrong(event) && slug_of(branch.short()).is_some();
        if tip.event.as_ref().is_some_and(wrong) {
            // A flow that can't be read makes no branch take messages.
            let flows = self.of_flows(branch).map(|found| found.flows).unwrap_or_default();
            let is_node = !flows.is_empty() && (answers_a_turn(&tip) || self.is_born_of(&tip.commit, &flows));
            if let Some(event) = &mut tip.event {
                event.is_node = is_node;
            }
        }
        tip
    }

    /// True where a branch with this head was made for one of these flows.
    pub(crate) fn is_born_of(&self, head: &Commit, flows: &[String]) -> bool {
        let mut commit = head.clone();
        for _ in 0..BORN_MAX {
            let said = Message::parse(&commit.message);
            if said.last(FLOW).is_some_and(|of| flows.iter().any(|flow| flow.as_bytes() == of)) {
                return true;
            }
            let Some(Ok(next)) = commit.parents.first().map(|parent| self.store.read_commit(*parent)) else {
                return false;
            };
            commit = next;
        }
        false
    }
}

/// True where the head's run answered a turn, or the `route` that follows from one.
fn answers_a_turn(tip: &Tip) -> bool {
    let origin = tip.event.as_ref().and_then(Event::origin_state);
    origin.is_some_and(|state| [TURN, ROUTE].contains(&state.as_str()))
}

/// What a commit of a flow says of branches.
enum ClaimRead {
    /// The branches that the flow speaks for.
    Claim(Arc<Claim>),
    /// That can't be read, for this reason.
    Not(String),
}

fn held_by(flow: &str, reason: String) -> Paused {
    Paused { id: derived_id(0, &[b"flow", flow.as_bytes()]), holder: Holder::Flow(flow.to_owned()), reason }
}

fn claim(files: &crate::store::files::Files) -> Result<Claim, String> {
    let bad = |path: &str, why: serde_json::Error| format!("'{path}' of it can't be read: {why}");
    let run = files.get("run.json").ok_or("there is no 'run.json' in it")?;
    let run: Run = serde_json::from_slice(run).map_err(|why| bad("run.json", why))?;
    let mut claim = Claim::new(run);
    for (path, content) in files.iter().filter(|(path, _)| path.starts_with("nodes/")) {
        let node: Node = serde_json::from_slice(content).map_err(|why| bad(path, why))?;
        claim.add(node);
    }
    Ok(claim)
}
