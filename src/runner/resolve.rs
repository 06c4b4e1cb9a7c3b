//! The command of a head's state: where commands come from, which one answers, and which are similar where
//! none does.
//!
//! Resolving a command starts nothing, and comes before a head is judged. So a command that can't be started
//! on this machine is known before a claim, and costs the branch nothing. Similar commands are a hint to the
//! user; nothing depends on them. A scan of many heads asks through `lookups`. Implements K6 (its last
//! sentence), K13, K33-K35.

use super::landing::AnsweredBy;
use super::report::{Note, Refusal, Verdict};
use super::settings::CommandsFrom;
use super::{Runner, RunnerError, Tip};
use crate::protocol::accepts::Accepts;
use crate::protocol::decide::Idle;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::name::{RESERVED, StateName};
use crate::protocol::resemble::nearest;
use crate::store::command_start::{self, Unfit};
use crate::store::command_tree::{self, Command, Lookup, Reads};
use crate::store::{RefName, StoreError};
use std::ffi::OsStr;

/// What was found for the state of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// Nothing was looked for: the head is no state event, or a lease, or its state names no command.
    NotAsked,
    /// This runner may look for no command.
    Refused(Refusal),
    /// There is no command of that name.
    Missing,
    /// There is a command that can't be started on this machine.
    Unusable {
        /// The command's path below `.aynig/`.
        path: String,
        /// What is wrong with it.
        why: Unfit,
    },
    /// This command answers the state.
    Found(Command),
}

/// Where commands for a head come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandTree {
    /// This `.aynig` tree.
    At(ObjectId),
    /// There is no such tree.
    Missing,
    /// This runner may look for no command.
    Refused(Refusal),
}

impl From<Lookup> for Resolved {
    fn from(found: Lookup) -> Self {
        match found {
            Lookup::Found(command) => Resolved::Found(command),
            Lookup::Missing => Resolved::Missing,
            Lookup::Unusable { path, why } => Resolved::Unusable { path, why },
        }
    }
}

impl Runner<'_> {
    /// Looks for the command that answers a head.
    pub fn resolve(&self, tip: &Tip) -> Result<Resolved, RunnerError> {
        match self.answered_by(tip)? {
            AnsweredBy::Check(target, check) => return self.lookup(&target, &check),
            AnsweredBy::NoRules => return Ok(Resolved::Missing),
            AnsweredBy::NoRequest => {}
        }
        match tip.event.as_ref().and_then(Event::state_name).filter(|state| !state.is_working()) {
            Some(state) => self.lookup(tip, state),
            None => Ok(Resolved::NotAsked),
        }
    }

    /// Looks for the command of a state where commands for this head come from.
    pub fn lookup(&self, tip: &Tip, state: &StateName) -> Result<Resolved, RunnerError> {
        Ok(match self.command_tree(tip)? {
            CommandTree::At(tree) => self.lookup_in(&*self.store, tree, state)?.into(),
            CommandTree::Missing => Resolved::Missing,
            CommandTree::Refused(refusal) => Resolved::Refused(refusal),
        })
    }

    /// Returns the `.aynig` tree that commands for this head come from.
    fn command_tree(&self, tip: &Tip) -> Result<CommandTree, RunnerError> {
        let tree = match &self.settings.commands_from {
            CommandsFrom::Nowhere => return Ok(CommandTree::Refused(Refusal::NotTrusted)),
            CommandsFrom::Branch => tip.commit.tree,
            CommandsFrom::Ref(name) => match self.commands_tip(name)? {
                Some(id) => self.store.read_commit(id)?.tree,
                None => return Ok(CommandTree::Refused(Refusal::NoCommandsRef(name.clone()))),
            },
        };
        Ok(command_tree::find(&*self.store, tree)?.map_or(CommandTree::Missing, CommandTree::At))
    }

    /// Returns the commit of the ref that commands come from; of an annotated tag the one that it names. Where only a
    /// commit named the remote (K30) the ref is this repository's, because a pusher must not choose whose commands are
    /// trusted (K33).
    pub fn commands_tip(&self, name: &RefName) -> Result<Option<ObjectId>, RunnerError> {
        let tip =
            if self.settings.commands_here { self.scratch()?.tip(name) } else { self.store.known_tip(name) };
        Ok(tip?.map(|id| self.repo.peeled(name, id)).transpose()?)
    }

    /// Looks for the command of a state in this `.aynig` tree. A command that certainly can't be started on
    /// this machine is not usable: that is known before a claim, and costs the branch nothing.
    pub(super) fn lookup_in<S: Reads + ?Sized>(
        &self,
        trees: &S,
        tree: ObjectId,
        state: &StateName,
    ) -> Result<Lookup, StoreError> {
        let found = command_tree::lookup(trees, tree, self.settings.role_filter(), state)?;
        let Lookup::Found(command) = &found else { return Ok(found) };
        let why = self.unfit(&command.path, command.file).filter(|why| why.is_certain());
        // A prefix program (`aynig.exec`) may start the command in another way, or elsewhere.
        let why = why.filter(|_| self.settings.exec.is_empty());
        let path = command.path.clone();
        Ok(why.map_or(found, |why| Lookup::Unusable { path, why }))
    }

    /// Returns what keeps the file of a command from being started as it is.
    pub(super) fn unfit(&self, path: &str, file: ObjectId) -> Option<Unfit> {
        let why = command_start::judge(&*self.store, file, path, self.search_path());
        // A prefix program may start the command elsewhere, where what this machine lacks may exist.
        why.filter(|why| self.settings.exec.is_empty() || !why.is_of_machine())
    }

    /// Returns the error for a program of `aynig.exec` that certainly can't be started, and so no command could be;
    /// `None` where it may be, or none is set.
    pub(super) fn no_wrapper(&self) -> Option<RunnerError> {
        let program = self.settings.exec.first()?;
        let why = command_start::unstartable(program, self.search_path())?;
        Some(RunnerError::NoWrapper { program: program.clone(), why })
    }

    /// Returns the `PATH` in which programs are looked for.
    fn search_path(&self) -> Option<&OsStr> {
        self.environment().iter().find(|(name, _)| name == "PATH").map(|(_, value)| &**value)
    }

    /// Returns the verdict about a head whose state has a command that can't be started.
    pub(super) fn unusable(&self, tip: &Tip, idle: Idle, path: String, why: Unfit) -> Verdict {
        match tip.event.as_ref().and_then(|e| e.state_name()).cloned() {
            Some(state) => Verdict::Unusable { state, path, why, home: self.home() },
            None => Verdict::Idle(idle),
        }
    }

    /// Returns a hint to a command of that name that exists, but not where it counts (K13), or to states with
    /// a command and nearly that name.
    pub fn command_elsewhere(&self, tip: &Tip, state: &StateName) -> Result<Option<Note>, RunnerError> {
        let tree = tip.commit.tree;
        let own = || command_tree::find(&*self.store, tree);
        Ok(about(tip, self.hint_for(&*self.store, own, state, || self.alike(state, tree))?))
    }

    /// Returns the same for a commit that was just written, if no command answers its state.
    pub(super) fn missed(&self, commit: ObjectId, state: &StateName) -> Result<Option<Note>, RunnerError> {
        let tip = Tip::from(self.store.read_commit(commit)?);
        match self.resolve(&tip)? {
            Resolved::Missing => {
                let hint = self.command_elsewhere(&tip, state)?;
                let is_far = self.settings.remote.is_some() && !self.settings.commands_here;
                let is_ref = matches!(self.settings.commands_from, CommandsFrom::Ref(_));
                // The ref that commands come from may have moved on the remote since it was fetched.
                if hint.is_none() || !is_far || !is_ref || self.store.refresh().is_err() {
                    return Ok(hint);
                }
                match self.resolve(&tip)? {
                    Resolved::Missing => self.command_elsewhere(&tip, state),
                    _ => Ok(None),
                }
            }
            // Which commands count is yet to be said; the branch's own may.
            Resolved::Refused(_) => {
                let own = command_tree::find(&*self.store, tip.commit.tree)?;
                let found = own.map(|tree| self.lookup_in(&*self.store, tree, state)).transpose()?;
                let is_there = found.is_some_and(|found| found != Lookup::Missing);
                let meant = if is_there { Vec::new() } else { self.alike(state, tip.commit.tree)? };
                Ok(about(&tip, Some(Note::NearlyAState(state.clone(), meant))))
            }
            Resolved::Found(_) | Resolved::Unusable { .. } | Resolved::NotAsked => Ok(None),
        }
    }

    /// Returns the same for any head of this state with one tree; [`about`] makes it the hint for one head. `own` finds
    /// the `.aynig` tree in it, and `alike` what [`Runner::alike`] does.
    pub(super) fn hint_for<S: Reads + ?Sized>(
        &self,
        trees: &S,
        own: impl FnOnce() -> Result<Option<ObjectId>, StoreError>,
        state: &StateName,
        alike: impl FnOnce() -> Result<Vec<String>, RunnerError>,
    ) -> Result<Option<Note>, RunnerError> {
        let role = self.settings.role_filter();
        if let CommandsFrom::Ref(_) = &self.settings.commands_from
            && let Some(tree) = own()?
        {
            match command_tree::lookup(trees, tree, role, state)? {
                Lookup::Found(Command { path, .. }) | Lookup::Unusable { path, .. } => {
                    return Ok(Some(Note::NotInRef { state: state.clone(), path, home: self.home() }));
                }
                Lookup::Missing => {}
            }
        }
        if let Some(dir) = self.repo.main_dir.as_ref().map(|dir| dir.join(command_tree::FOLDER))
            && let Some(path) = command_tree::paths(role, state).find(|path| dir.join(path).is_file())
        {
            return Ok(Some(Note::NotCommitted { state: state.clone(), path, home: self.home() }));
        }
        let alike = alike()?;
        Ok((!alike.is_empty()).then(|| Note::NearlyAState(state.clone(), alike)))
    }

    /// Returns states with a command whose names are nearly that of a state without one; `tree` is that of
    /// its commit. None for states that have a meaning of their own.
    pub fn alike(&self, state: &StateName, tree: ObjectId) -> Result<Vec<String>, RunnerError> {
        if RESERVED.contains(&state.as_str()) {
            return Ok(Vec::new());
        }
        let tree = match &self.settings.commands_from {
            CommandsFrom::Nowhere | CommandsFrom::Branch => tree,
            CommandsFrom::Ref(name) => match self.commands_tip(name)? {
                Some(id) => self.store.read_commit(id)?.tree,
                None => return Ok(Vec::new()),
            },
        };
        let Some(folder) = command_tree::find(&*self.store, tree)? else { return Ok(Vec::new()) };
        Ok(self.nearly(state, &command_tree::list(&*self.store, folder)?))
    }

    /// Returns those of these states with a command, each with the role that it is of, whose names are nearly that of
    /// a state without one.
    pub(super) fn nearly(&self, state: &StateName, known: &[(String, Option<String>)]) -> Vec<String> {
        let role = self.settings.role.as_ref().map(|role| role.as_str());
        let ours = known.iter().filter(|(_, of)| of.is_none() || of.as_deref() == role);
        let near = nearest(state.as_str(), ours.map(|(state, _)| state.as_str()));
        near.into_iter().map(str::to_owned).collect()
    }
}

/// Returns what is left of a hint for this head: the state that its ended run answered is no slip for what the command
/// declared, as 'drafted' is the outcome of 'draft'; and a head that accepts messages waits for them.
pub(super) fn about(tip: &Tip, hint: Option<Note>) -> Option<Note> {
    let Some(Note::NearlyAState(state, mut alike)) = hint else { return hint };
    if tip.event.as_ref().is_some_and(|event| !Accepts::of(event).is_empty()) {
        return None;
    }
    let origin = tip.event.as_ref().and_then(Event::origin_state);
    alike.retain(|name| origin.as_ref().is_none_or(|origin| origin.as_str() != name));
    (!alike.is_empty()).then_some(Note::NearlyAState(state, alike))
}
