//! Pauses: who holds which branches, and which runs were ended for one, which `resume` asks for again.
//!
//! A pause is a commit and a ref. With `--stop`, a second commit on it names the runs that are ended, and is
//! written before the first of them is: it never names fewer than were ended, even if the verb is killed in
//! between. The commit that ends a run names the pause, and no other run is asked for again, because more
//! users may push a pause than a branch. Implements K50.

use super::super::change::{ChangeError, Inside};
use super::super::known::ReadPause;
use super::super::{Runner, RunnerError, Tip};
use super::TalkError;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Kind, Letter, MessageId, PAUSED, derived_id, inbox_ref, paused_ref};
use crate::protocol::message::{Message, Trailer};
use crate::protocol::pause::{PATTERNS_MAX, Pause, ended_for};
use crate::protocol::transition;
use crate::store::{Expected, RefName, pattern, swap};

/// The trailer that names a run that was ended for a pause: its trigger, then its branch.
const STOPPED: &str = "dwp-stopped";
/// The most runs that are read from one pause.
const STOPPED_MAX: usize = 100_000;

/// A pause that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Its ref.
    name: RefName,
    /// The pause's id, or a stand-in derived from the ref's name if that is no valid id.
    pub id: MessageId,
    pub commit: ObjectId,
    /// What it holds, who made it, and why.
    pub pause: Pause,
    /// Since when, in seconds since 1970.
    pub since: Option<i64>,
    /// The runs that were ended for it.
    pub stopped: Vec<Stopped>,
}

/// A run that was ended for a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    pub branch: RefName,
    /// The trigger that the run answered.
    pub trigger: ObjectId,
}

/// A run that is under way on a branch that a pause holds.
#[derive(Debug, Clone)]
pub struct Held {
    pub branch: RefName,
    /// The trigger that the run answers.
    pub trigger: ObjectId,
    pub run_id: String,
}

impl Paused {
    fn message(&self) -> Result<Message, TalkError> {
        let mut message = self.pause.message().map_err(|why| TalkError::Message(why.to_string()))?;
        let line = |run: &Stopped| [run.trigger.to_string().as_bytes(), b" ", run.branch.as_bytes()].concat();
        message.trailers.extend(self.stopped.iter().map(|run| Trailer::new(STOPPED, line(run))));
        Ok(message)
    }

    /// True if the pause holds this branch.
    pub fn holds(&self, branch: &RefName) -> bool {
        self.pause.holds(|patterns| pattern::any(patterns, branch))
    }
}

impl Runner<'_> {
    /// Returns every pause that stands, the oldest first.
    pub fn pauses(&self) -> Result<Vec<Paused>, TalkError> {
        // The pauses of a remote that came with the fetched heads may be out of date.
        self.store.hear_shared(&[PAUSED])?;
        self.known_pauses()
    }

    /// Returns the pauses as [`Runner::pauses`] does, but those of a remote as they were last fetched.
    pub fn known_pauses(&self) -> Result<Vec<Paused>, TalkError> {
        let mut all = Vec::new();
        for ReadPause { name, id, at, commit, pause } in self.read_pauses()? {
            let since = commit.as_ref().and_then(|commit| commit.committed);
            let message = commit.map(|commit| Message::parse(&commit.message));
            let all_of =
                |message: &Message| message.all(STOPPED).take(STOPPED_MAX).filter_map(stopped).collect();
            let stopped = message.as_ref().map_or_else(Vec::new, all_of);
            // The commit of a ref that can't be read is not known, and the empty tree stands in for it. That
            // does no harm: to take such a pause back fails where the ref is read, before this value is used.
            let commit = at.map_or_else(|| self.repo.empty_tree(), Ok)?;
            all.push(Paused { name, id, commit, pause, since, stopped });
        }
        Ok(all)
    }

    /// Holds the branches that match these patterns, or without any pattern all branches: `pause`.
    ///
    /// # Errors
    /// [`TalkError::Message`] where a pattern or the reason can't be written.
    pub fn pause(
        &self,
        patterns: &[String],
        reason: &str,
        inside: Option<&Inside>,
    ) -> Result<Paused, TalkError> {
        let wrong = |pattern: &&String| pattern.trim().len() != pattern.len() || pattern.is_empty();
        if let Some(pattern) = patterns.iter().find(wrong) {
            return Err(TalkError::Message(format!("'{pattern}' is no pattern")));
        }
        if patterns.len() > PATTERNS_MAX {
            return Err(TalkError::Message(format!("more than {PATTERNS_MAX} patterns")));
        }
        let holder = self.speaker(inside);
        let pause = Pause { patterns: patterns.to_vec(), holder, reason: reason.to_owned() };
        let (id, since) = (self.new_id(), Some(self.clock.now()));
        let (name, commit) = (RefName::new(paused_ref(id)), self.repo.empty_tree()?);
        let mut paused = Paused { name, id, commit, pause, since, stopped: Vec::new() };
        paused.commit = self.write_pause(&paused, Vec::new())?;
        match self.create(&paused.name, paused.commit, "aynig: pause")? {
            true => Ok(paused),
            false => Err(ChangeError::Raced(paused.name.clone()).into()),
        }
    }

    fn write_pause(&self, paused: &Paused, parents: Vec<ObjectId>) -> Result<ObjectId, TalkError> {
        self.write_said(&paused.name, self.repo.empty_tree()?, parents, paused.message()?)
    }

    /// Returns the runs that are under way on the branches that a pause holds.
    pub fn held_runs(&self, paused: &Paused) -> Result<Vec<Held>, TalkError> {
        self.store.refresh()?;
        let mut found = Vec::new();
        self.store.visit_heads("refs/heads/", &mut |branch, read| {
            let Some(tip) = read.ok().map(Tip::from).filter(|_| paused.holds(&branch)) else { return };
            found.extend(run_of(&tip).map(|(trigger, run_id)| Held { branch, trigger, run_id }));
        })?;
        found.sort_by(|a, b| a.branch.cmp(&b.branch));
        Ok(found)
    }

    /// Returns the run that holds a branch now.
    pub fn run_on(&self, branch: &RefName) -> Result<Option<Held>, TalkError> {
        let tip = self.fresh_tip(branch)?;
        let run = tip.as_ref().and_then(run_of);
        Ok(run.map(|(trigger, run_id)| Held { branch: branch.clone(), trigger, run_id }))
    }

    /// Writes on a pause which runs are about to be ended for it.
    pub fn note_stopped(&self, paused: &Paused, runs: &[Held]) -> Result<Paused, TalkError> {
        let stopped = |run: &Held| Stopped { branch: run.branch.clone(), trigger: run.trigger };
        let mut noted = Paused { stopped: runs.iter().map(stopped).collect(), ..paused.clone() };
        noted.commit = self.write_pause(&noted, vec![paused.commit])?;
        let (name, by) = (paused.name.clone(), self.signature());
        let expected = Expected::At(paused.commit);
        let moved = swap::compare_and_swap(&*self.store, &name, expected, noted.commit, &by, "aynig: stop")?;
        match super::is_written(&name, moved)? {
            true => Ok(noted),
            // The pause was taken back already.
            false => Err(ChangeError::Raced(name).into()),
        }
    }

    /// Asks a run to end, by a message that its command may follow. For a pause its text is the pause's
    /// reason, otherwise it has none.
    pub fn interrupt_run(&self, paused: Option<&Paused>, run: &Held) -> Result<Interrupting, TalkError> {
        let tip = self.fresh_tip(&run.branch)?;
        let (name, id) = interrupt_of(paused.map(|paused| paused.id), &run.branch, run.trigger)?;
        let text = match paused.map(|paused| &*paused.pause.reason) {
            None => "",
            Some("") => "Paused.",
            Some(reason) => reason,
        };
        let letter = Letter {
            id,
            kind: interrupt()?,
            from: self.speaker(None).to_string(),
            hop: 0,
            seen: tip.as_ref().map(Tip::id),
            attached: None,
            question: None,
            choice: None,
            trailers: Vec::new(),
            text: text.to_owned(),
        };
        let commit = self.write_letter(&run.branch, &letter)?;
        self.create(&name, commit, "aynig: interrupt")?;
        Ok(Interrupting { name, commit, letter })
    }

    /// Deletes a message of [`Runner::interrupt_run`]: it is not meant for a run that is asked for again.
    pub fn unsay(&self, said: &Interrupting) -> Result<(), TalkError> {
        swap::delete_ref(&*self.store, &said.name, said.commit, &self.signature())?;
        Ok(())
    }

    /// True while this run holds its branch.
    pub fn holds_on(&self, run: &Held) -> Result<bool, TalkError> {
        let tip = self.fresh_tip(&run.branch)?;
        Ok(tip.as_ref().and_then(run_of).is_some_and(|(_, run_id)| run_id == run.run_id))
    }

    /// Deletes a pause; false if it is gone already.
    pub fn take_back(&self, paused: &Paused) -> Result<bool, TalkError> {
        if self.store.tip(&paused.name)?.is_none() {
            return Ok(false);
        }
        swap::delete_ref(&*self.store, &paused.name, paused.commit, &self.signature())?;
        Ok(true)
    }

    /// Returns the runs that a pause may ask for again: all that it names, or an error if the policy asks for
    /// a signature that it does not have.
    pub fn may_bring_back<'a>(&self, paused: &'a Paused) -> Result<&'a [Stopped], TalkError> {
        if paused.stopped.is_empty() {
            return Ok(&[]);
        }
        let message = Message::parse(&self.store.read_commit(paused.commit)?.message);
        match self.is_vouched(&paused.name, paused.commit, &message)? {
            true => Ok(&paused.stopped),
            false => Err(ChangeError::NotVouched(paused.name.clone(), paused.commit).into()),
        }
    }

    /// Asks again for a run that was canceled for this pause, with all that its trigger said. `None` if its
    /// branch has gone on by itself, or the commit that ended the run does not name the pause: a user who may
    /// push a pause could name any run in it.
    pub fn ask_again(&self, run: &Stopped, pause: MessageId) -> Result<Option<ObjectId>, TalkError> {
        // A message that a killed `pause --stop` left would end the run that is asked for now.
        let (said, _) = interrupt_of(Some(pause), &run.branch, run.trigger)?;
        if let Some(left) = self.store.tip(&said)? {
            swap::delete_ref(&*self.store, &said, left, &self.signature())?;
        }
        let (branch, Some(head)) = (&run.branch, self.fresh_tip(&run.branch)?) else { return Ok(None) };
        let ended = |event: &&Event| ended_for(event, run.trigger, pause);
        if head.event.as_ref().filter(ended).is_none() || !self.descends(run.trigger, head.id())? {
            return Ok(None);
        }
        let trigger = Tip::from(self.store.read_commit(run.trigger)?);
        for said in [&head, &trigger] {
            if self.not_vouched(branch, said)?.is_some() {
                return Err(ChangeError::NotVouched(branch.clone(), said.id()).into());
            }
        }
        let Some((event, state)) = trigger.event.as_ref().and_then(|e| Some((e, e.state_name()?))) else {
            return Ok(None);
        };
        let message = transition::retried(state, event, None);
        let commit = self.write(branch, head.commit.tree, vec![head.id()], &message)?;
        self.write_on_head(branch, (head.id(), commit), &format!("aynig: resume {state}"))?;
        Ok(Some(commit))
    }

    /// Returns those of the held branches whose heads are state events without a run, for which there may be
    /// something to do now that nothing holds them.
    pub fn released(&self, holds: &dyn Fn(&RefName) -> bool) -> Result<Vec<RefName>, RunnerError> {
        let mut found = Vec::new();
        self.store.visit_heads("refs/heads/", &mut |branch, read| {
            let event = read.ok().map(Tip::from).and_then(|tip| tip.event);
            if event.is_some_and(|event| !event.is_working()) && holds(&branch) {
                found.push(branch);
            }
        })?;
        found.sort_unstable();
        Ok(found)
    }
}

/// A message that asks a run to end.
#[derive(Debug)]
pub struct Interrupting {
    name: RefName,
    commit: ObjectId,
    /// The message.
    pub letter: Letter,
}

/// Returns the ref and the id of the message that asks a run to end. Both are derived from the pause and the
/// run, so that a process that takes the pause back can name them.
fn interrupt_of(
    pause: Option<MessageId>,
    branch: &RefName,
    trigger: ObjectId,
) -> Result<(RefName, MessageId), TalkError> {
    let (millis, of) = pause.as_ref().map_or((0, &[][..]), |pause| (pause.millis(), pause.as_bytes()));
    let id = derived_id(millis, &[b"interrupt", of, trigger.as_bytes()]);
    Ok((RefName::new(inbox_ref(branch.short(), &interrupt()?, id)), id))
}

fn interrupt() -> Result<Kind, TalkError> {
    Kind::new(Kind::INTERRUPT).map_err(|why| TalkError::Message(why.to_string()))
}

/// Returns the trigger and the id of the run whose lease is this head; `None` if the head is no lease.
fn run_of(tip: &Tip) -> Option<(ObjectId, String)> {
    let lease = tip.event.as_ref().filter(|event| event.is_working())?;
    Some((lease.trigger()?, lease.run_id()?.to_owned()))
}

fn stopped(line: &[u8]) -> Option<Stopped> {
    let at = line.iter().position(|b| *b == b' ')?;
    let trigger = ObjectId::from_hex(&line[..at]).ok()?;
    let branch = RefName::new(&line[at + 1..]);
    let is_branch = branch.is_valid() && branch.as_bytes().starts_with(b"refs/heads/");
    is_branch.then_some(Stopped { branch, trigger })
}
