//! Flows as refs: they are read, and changed by compare-and-swap.
//!
//! A change reads the flow, applies its mutations, writes one commit for each, and swaps the ref. A process
//! that loses the race reads again and applies them again, so if two processes change one flow at once, both
//! changes land. The branches of new nodes are created in the same transaction. Where refs are files,
//! branches move first: a branch whose node did not get into the flow is used when that node is added again,
//! or deleted by the next process that adds a node. A ref that was pushed and holds no flow is reported by
//! its name, and hides no other flow. Implements N1.

use super::FlowError;
use crate::contract::flow::{Flow, Mutation, NewRun, apply, create};
use crate::contract::id::{NodeId, RunId};
use crate::contract::time::Time;
use crate::protocol::dialect::{Dialect, FROM, RECOVERY_ID};
use crate::protocol::flow::FLOWS;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::pause::Holder;
use crate::protocol::swap::{Patience, try_again};
use crate::runner::nodes::BOUNDS;
use crate::runner::{Runner, is_written};
use crate::store::files::{Read, read_files, write_files};
use crate::store::{Expected, RefChange, RefName, RemoteFailure, StoreError, Swap, swap};
use std::time::Duration;

/// How often a change is tried, if other processes are quicker each time.
const TRIES: usize = 500;

/// The flows of a repository, or of its remote.
#[derive(Clone, Copy)]
pub struct Flows<'f, 'r> {
    /// The runner that reads and writes the flows.
    pub runner: &'f Runner<'r>,
}

/// A flow as it was read.
#[derive(Debug, Clone)]
pub struct Kept {
    pub id: RunId,
    /// The commit that the flow's ref held.
    pub commit: ObjectId,
    /// The flow's content.
    pub flow: Flow,
    files: Read,
}

impl Kept {
    /// Returns the branch of a node; `None` where the flow has no such node.
    pub fn branch(&self, node: NodeId) -> Option<RefName> {
        self.flow.nodes.get(&node).map(|node| RefName::branch(&node.branch))
    }
}

/// Returns the ref of a flow.
pub fn ref_of(id: RunId) -> RefName {
    RefName::new([FLOWS, id.to_string().as_bytes()].concat())
}

/// One ref below `refs/aynig/flows/`.
#[derive(Debug)]
pub struct Listed {
    pub name: RefName,
    /// The flow, or why the ref holds none.
    pub read: Result<Kept, FlowError>,
}

impl<'f, 'r> Flows<'f, 'r> {
    /// Gives access to the flows that this runner sees.
    pub fn new(runner: &'f Runner<'r>) -> Self {
        Self { runner }
    }

    /// Returns all flows as they are now, in the order of their creation; what can't be read comes first.
    pub fn all(&self) -> Result<Vec<Listed>, FlowError> {
        self.runner.store.hear_shared(&[FLOWS])?;
        let scan = self.runner.store.scan_all(&String::from_utf8_lossy(FLOWS))?;
        let read = |(name, commit)| Listed { read: self.read(&name, commit), name };
        let mut all: Vec<Listed> = scan.refs.into_iter().map(read).collect();
        let unreadable = scan.unreadable.into_iter();
        all.extend(unreadable.map(|(name, why)| Listed { read: Err(FlowError::bad(&name, why)), name }));
        let made = |listed: &Listed| listed.read.as_ref().ok().map(|kept| kept.flow.run.created_at);
        all.sort_by(|a, b| (made(a), &a.name).cmp(&(made(b), &b.name)));
        Ok(all)
    }

    fn read(&self, name: &RefName, commit: ObjectId) -> Result<Kept, FlowError> {
        let id = name.as_bytes().strip_prefix(FLOWS).and_then(|id| std::str::from_utf8(id).ok());
        let id = id.and_then(|id| RunId::parse(id).ok()).filter(|id| ref_of(*id) == *name);
        let id = id.ok_or_else(|| FlowError::bad(name, "its name is no id"))?;
        let store = &*self.runner.store;
        let read = store.read_commit(commit)?;
        // An unsigned flow could bring a pusher's words before an agent.
        if !self.runner.is_vouched(name, commit, &Message::parse(&read.message))? {
            return Err(FlowError::bad(name, "it is not signed"));
        }
        let files = read_files(store, read.tree, BOUNDS).map_err(|why| FlowError::tree(name, why))?;
        let plain = files.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()));
        let flow = Flow::read(plain).map_err(|why| FlowError::flow(name, why))?;
        if flow.run.id != id {
            return Err(FlowError::bad(name, format!("it says that it is flow {}", flow.run.id)));
        }
        Ok(Kept { id, commit, flow, files })
    }

    /// Reads the flow of this id.
    ///
    /// # Errors
    /// [`FlowError::NoFlow`], [`FlowError::Unreadable`].
    pub fn of_id(&self, id: RunId) -> Result<Kept, FlowError> {
        let name = ref_of(id);
        match self.runner.store.tip(&name)? {
            Some(commit) => self.read(&name, commit),
            None => Err(FlowError::NoFlow(id.to_string())),
        }
    }

    /// Finds the flow that a user means, by its name in any case, by its id, or by the folder of its
    /// branches.
    ///
    /// # Errors
    /// [`FlowError::NoFlow`], [`FlowError::Several`], [`FlowError::Unreadable`].
    pub fn named(&self, name: &str) -> Result<Kept, FlowError> {
        let wanted = name.trim();
        if let Ok(id) = RunId::parse(wanted) {
            return self.of_id(id);
        }
        let says = |name: &str| name.to_lowercase() == wanted.to_lowercase();
        let (mut found, mut of_folder, mut other) = (Vec::new(), None, None);
        for listed in self.all()? {
            match listed.read {
                Ok(kept) if says(&kept.flow.run.name) => found.push(kept),
                Ok(kept) if kept.flow.run.slug == wanted => of_folder = Some(kept),
                Err(error @ FlowError::OtherVersion { .. }) => {
                    let is_it = matches!(&error, FlowError::OtherVersion { name, .. } if says(name));
                    other = other.or(is_it.then_some(error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            (Some(one), false) => {
                let ids = found.iter().chain([&one]).map(|kept| kept.id).collect();
                Err(FlowError::Several { name: shown(name), ids })
            }
            (None, _) => match (other, of_folder) {
                (Some(other), _) => Err(other),
                (None, Some(kept)) => Ok(kept),
                (None, None) => Err(FlowError::NoFlow(shown(name))),
            },
        }
    }

    /// Returns the time now, in the form that a flow's files have.
    pub fn now(&self) -> Time {
        Time(i64::try_from(self.runner.clock.millis()).unwrap_or(i64::MAX))
    }

    /// Creates a flow.
    ///
    /// # Errors
    /// [`FlowError::Refused`] where its name is taken.
    pub fn create(&self, new: &NewRun, by: &Holder) -> Result<Kept, FlowError> {
        let others = || -> Result<Vec<Kept>, FlowError> {
            Ok(self.all()?.into_iter().filter_map(|listed| listed.read.ok()).collect())
        };
        let names: Vec<_> =
            others()?.into_iter().map(|kept| (kept.flow.run.name, kept.flow.run.slug)).collect();
        let made = create(new, &names, self.now())?;
        let (commit, files) = self.write(new.id, &made.flow, &made.line, Vec::new(), &Read::default(), by)?;
        let kept = Kept { id: new.id, commit, flow: made.flow, files };
        let change = RefChange::create(ref_of(new.id), commit);
        if !self.swap(change, &[])? {
            return Err(FlowError::Raced(new.id.to_string()));
        }
        // Two processes may create flows of one name at once. Either each sees the other's flow now, or only
        // the one that came later does; the flow with the larger id gives way.
        let name = kept.flow.run.name.to_lowercase();
        let same = |other: &Kept| other.flow.run.name.to_lowercase() == name && other.id < kept.id;
        if others()?.iter().any(same) {
            swap::delete_ref(&*self.runner.store, &ref_of(kept.id), commit, &self.runner.signature())?;
            return Err(crate::contract::flow::Refused::NameTaken(shown(&kept.flow.run.name)).into());
        }
        Ok(kept)
    }

    /// Changes a flow. `wanted` says what to do to the flow as it was read, and is called again after a lost
    /// race. Returns the flow as it is afterwards; if nothing changes, nothing is written.
    ///
    /// # Errors
    /// Those of `wanted`; [`FlowError::Refused`], with nothing written.
    pub fn change(
        &self,
        id: RunId,
        by: &Holder,
        mut wanted: impl FnMut(&Kept) -> Result<Vec<Mutation>, FlowError>,
    ) -> Result<Kept, FlowError> {
        for tries in 0..TRIES {
            if tries > 0 {
                // The branches may be what changed, so they are fetched anew.
                self.runner.store.refresh()?;
            }
            let before = self.of_id(id)?;
            let after = self.applied(&before, &wanted(&before)?, by)?;
            if after.commit == before.commit {
                return Ok(before);
            }
            let change = RefChange {
                name: ref_of(id),
                expected: Expected::At(before.commit),
                new: Some(after.commit),
            };
            if self.swap(change, &self.branches_of(&before.flow, &after)?)? {
                return Ok(after);
            }
        }
        Err(FlowError::Raced(id.to_string()))
    }

    /// Deletes a flow's ref; it is no error if there is none.
    pub fn delete(&self, id: RunId) -> Result<(), FlowError> {
        for _ in 0..TRIES {
            let name = ref_of(id);
            let Some(commit) = self.runner.store.tip(&name)? else { return Ok(()) };
            if self.swap(RefChange::delete(name, commit), &[])? {
                return Ok(());
            }
        }
        Err(FlowError::Raced(id.to_string()))
    }

    /// Writes one commit for each mutation that changes something, each on top of the one before.
    fn applied(&self, before: &Kept, mutations: &[Mutation], by: &Holder) -> Result<Kept, FlowError> {
        let mut now = before.clone();
        for mutation in mutations {
            let done = apply(&now.flow, mutation, self.now())?;
            if done.changed {
                let parents = vec![now.commit];
                let (commit, files) = self.write(now.id, &done.flow, &done.line, parents, &now.files, by)?;
                now = Kept { id: now.id, commit, flow: done.flow, files };
            }
        }
        Ok(now)
    }

    fn write(
        &self,
        id: RunId,
        flow: &Flow,
        line: &str,
        parents: Vec<ObjectId>,
        before: &Read,
        by: &Holder,
    ) -> Result<(ObjectId, Read), FlowError> {
        let files = flow.files();
        let tree = write_files(&*self.runner.store, &files, before)?;
        let trailers = vec![
            Dialect::Dwp.trailer(FROM, by),
            // Keeps two processes that do the same at once from writing the same commit.
            Dialect::Dwp.trailer(RECOVERY_ID, uuid::Uuid::new_v4()),
        ];
        let message = Message::new(format!("flow: {line}"), "", trailers);
        let commit = self.runner.write_said(&ref_of(id), tree, parents, message)?;
        let read = read_files(&*self.runner.store, tree, BOUNDS);
        Ok((commit, read.map_err(|why| FlowError::tree(&ref_of(id), why))?))
    }

    /// Moves a flow's ref together with other refs. False if one of them did not hold the expected value.
    pub(super) fn swap(&self, change: RefChange, others: &[RefChange]) -> Result<bool, FlowError> {
        let RefChange { name, expected, new } = &change;
        let (store, by, mut waits) = (&*self.runner.store, self.runner.signature(), 0);
        loop {
            let made = match new {
                Some(new) => {
                    swap::compare_and_swap_with(store, name, *expected, *new, others, &by, "aynig: flow")
                }
                None => store.try_swaps(std::slice::from_ref(&change), &by, "").map(|()| Swap::Won),
            };
            return match made {
                Ok(made) => Ok(is_written(name, made)?),
                Err(StoreError::Moved { .. }) => Ok(false),
                Err(StoreError::Remote {
                    failure: RemoteFailure::Declined | RemoteFailure::Busy, ..
                }) if try_again(Patience::Tries, waits, Duration::ZERO).is_some() => {
                    let wait = try_again(Patience::Tries, waits, Duration::ZERO).unwrap_or_default();
                    std::thread::sleep(wait);
                    waits += 1;
                    continue;
                }
                Err(error) => Err(error.into()),
            };
        }
    }
}

/// Returns a name that came from elsewhere, made fit for a line of our own.
fn shown(name: &str) -> String {
    crate::contract::shown::line(name.as_bytes())
}
