//! Commands of many heads, each looked up once.
//!
//! What the ref holds that commands come from, where a tree keeps its commands, what it holds there, and which command
//! answers a state are each looked up once in a look at all branches, so ten thousand heads cost little more than
//! their commits. Nothing is kept from one look to the next, and no claim relies on it. Implements K13 (for a
//! scan).

use super::landing::AnsweredBy;
use super::report::{Note, Refusal};
use super::resolve::about;
use super::settings::CommandsFrom;
use super::{Runner, RunnerError, Tip};
use crate::protocol::id::ObjectId;
use crate::protocol::landing::LAND;
use crate::protocol::name::{RESERVED, StateName};
use crate::store::command_tree::{self, Lookup, ReadOnce};
use crate::store::{Commit, RefName, StoreError};
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

type Hints = HashMap<Option<ObjectId>, HashMap<StateName, Option<Note>>>;

/// The states with a command in an `.aynig` tree, each with the role that it is of.
type Listed = Vec<(String, Option<String>)>;

/// What one look found so far.
pub(super) struct Lookups<'a> {
    runner: &'a Runner<'a>,
    objects: ReadOnce<'a>,
    /// The `.aynig` tree of the ref that commands come from, or its absence; the outer `None`: they come from
    /// no ref.
    shared: Option<Option<ObjectId>>,
    absent: Option<RefName>,
    trees: RefCell<HashMap<ObjectId, Option<ObjectId>>>,
    found: RefCell<HashMap<ObjectId, HashMap<StateName, Lookup>>>,
    listed: RefCell<HashMap<ObjectId, Listed>>,
    hints: RefCell<Hints>,
}

impl<'a> Lookups<'a> {
    /// Reads what all branches share.
    pub(super) fn new(runner: &'a Runner<'a>) -> Result<Self, RunnerError> {
        let mut absent = None;
        let shared = match &runner.settings.commands_from {
            CommandsFrom::Nowhere | CommandsFrom::Branch => None,
            CommandsFrom::Ref(name) => Some(match runner.commands_tip(name)? {
                Some(id) => command_tree::find(&*runner.store, runner.store.read_commit(id)?.tree)?,
                None => {
                    absent = Some(name.clone());
                    None
                }
            }),
        };
        Ok(Self {
            runner,
            objects: ReadOnce::new(&*runner.store),
            shared,
            absent,
            trees: RefCell::default(),
            found: RefCell::default(),
            listed: RefCell::default(),
            hints: RefCell::default(),
        })
    }

    /// Returns the ref that commands come from, if it does not exist: then no state has a command.
    pub(super) fn absent(&self) -> Option<&RefName> {
        self.absent.as_ref()
    }

    /// Returns why this runner may look for no command at all; `None` where it may.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match (&self.runner.settings.commands_from, &self.absent) {
            (CommandsFrom::Nowhere, _) => Some(Refusal::NotTrusted),
            (CommandsFrom::Branch | CommandsFrom::Ref(_), Some(name)) => {
                Some(Refusal::NoCommandsRef(name.clone()))
            }
            (CommandsFrom::Branch | CommandsFrom::Ref(_), None) => None,
        }
    }

    /// Looks a command up where commands come from; in the branch itself where that is not configured.
    pub(super) fn lookup(&self, commit: &Commit, state: &StateName) -> Result<Lookup, StoreError> {
        if state.as_str() == LAND {
            match self.runner.answered_by(&commit.clone().into())? {
                // The state that checks a landing is no request to land itself.
                AnsweredBy::Check(target, check) => return self.lookup(&target.commit, &check),
                AnsweredBy::NoRules => return Ok(Lookup::Missing),
                AnsweredBy::NoRequest => {}
            }
        }
        let tree = match self.shared {
            Some(tree) => tree,
            None => self.tree_of(commit.tree)?,
        };
        let Some(tree) = tree else { return Ok(Lookup::Missing) };
        if let Some(found) = self.found.borrow().get(&tree).and_then(|states| states.get(state)) {
            return Ok(found.clone());
        }
        let found = self.runner.lookup_in(&self.objects, tree, state)?;
        self.found.borrow_mut().entry(tree).or_default().insert(state.clone(), found.clone());
        Ok(found)
    }

    fn tree_of(&self, tree: ObjectId) -> Result<Option<ObjectId>, StoreError> {
        if let Some(known) = self.trees.borrow().get(&tree) {
            return Ok(*known);
        }
        let found = command_tree::find(&*self.runner.store, tree)?;
        self.trees.borrow_mut().insert(tree, found);
        Ok(found)
    }

    /// Returns the hint to a command that exists where it does not count (K13), or to states with nearly this
    /// name.
    pub(super) fn hint(&self, tip: &Tip, state: &StateName) -> Result<Option<Note>, RunnerError> {
        let tree = self.tree_of(tip.commit.tree)?;
        if let Some(known) = self.hints.borrow().get(&tree).and_then(|states| states.get(state)) {
            return Ok(about(tip, known.clone()));
        }
        let hint = self.runner.hint_for(&self.objects, || Ok(tree), state, || self.alike(state, tree))?;
        self.hints.borrow_mut().entry(tree).or_default().insert(state.clone(), hint.clone());
        Ok(about(tip, hint))
    }

    /// Does what [`Runner::alike`] does for a branch with this `.aynig` tree, but lists the commands of a tree once.
    fn alike(&self, state: &StateName, own: Option<ObjectId>) -> Result<Vec<String>, RunnerError> {
        let folder = self.shared.unwrap_or(own);
        let Some(folder) = folder.filter(|_| !RESERVED.contains(&state.as_str())) else {
            return Ok(Vec::new());
        };
        let mut listed = self.listed.borrow_mut();
        let known = match listed.entry(folder) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(empty) => empty.insert(command_tree::list(&*self.runner.store, folder)?),
        };
        Ok(self.runner.nearly(state, known))
    }
}
