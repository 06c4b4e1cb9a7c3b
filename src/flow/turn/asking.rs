//! What a turn asks people, while everything else that it does goes on.
//!
//! Each question is the kernel's, and is watched until it is answered or withdrawn. If a turn dies, its
//! question is no run's any more, and counts as gone. While any question is open, the run lends its job to
//! other runs. Call `ask`, then `answers` whenever the inbox has changed; dropping the value withdraws what
//! is open. Implements N8 (asking), K49 (the wait).

use crate::protocol::id::ObjectId;
use crate::protocol::inbox::Letter;
use crate::protocol::message::Trailer;
use crate::runner::Runner;
use crate::runner::change::Inside;
use crate::runner::pending::begin_asking;
use crate::runner::talk::TalkError;
use crate::runner::talk::ask::Asked;
use nix::fcntl::Flock;
use std::fs::File;

/// The open questions, each with what it is about.
pub struct Asking<'t, A> {
    runner: &'t Runner<'t>,
    inside: &'t Inside,
    open: Vec<(Asked, A)>,
    /// The lock that says that this run waits for an answer, so that others may use its job; held while any
    /// question is open.
    given_back: Option<Flock<File>>,
}

impl<'t, A> Asking<'t, A> {
    /// Starts without a question.
    pub fn new(runner: &'t Runner<'t>, inside: &'t Inside) -> Self {
        Self { runner, inside, open: Vec::new(), given_back: None }
    }

    /// True while a person is asked something.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Asks a question, and returns it.
    ///
    /// # Errors
    /// Where the question can't be written, or the lease is lost.
    pub fn ask(
        &mut self,
        text: &str,
        choices: &[String],
        trailers: Vec<Trailer>,
        about: A,
    ) -> Result<&Asked, TalkError> {
        let asked = self.runner.ask_with(self.inside, text, choices, trailers, true)?;
        if self.given_back.is_none() {
            // If it can't be recorded that this run waits, the run waits all the same.
            self.given_back = begin_asking(&self.runner.run_dir(&self.inside.run_id)).ok().flatten();
        }
        let at = self.open.len();
        self.open.push((asked, about));
        Ok(&self.open[at].0)
    }

    /// Returns the questions that were answered since the last call, with what they are about. A look that
    /// fails is repeated with the next call.
    pub fn answers(&mut self) -> Vec<(Asked, A, Letter)> {
        let mut answered = Vec::new();
        let mut at = 0;
        while at < self.open.len() {
            match self.answer(&self.open[at].0) {
                Some((_, letter)) => {
                    let (asked, about) = self.open.remove(at);
                    answered.push((asked, about, letter));
                }
                None => at += 1,
            }
        }
        self.rest();
        answered
    }

    fn answer(&self, asked: &Asked) -> Option<(ObjectId, Letter)> {
        let (commit, letter) = self.runner.answer_of(asked).ok().flatten()?;
        self.runner.take_answer(asked, commit).ok()?;
        Some((commit, letter))
    }

    /// Withdraws the questions for which `is_meant` is true of what they are about, and returns them.
    pub fn withdraw(&mut self, is_meant: impl Fn(&A) -> bool) -> Vec<(Asked, A)> {
        let (gone, open) = std::mem::take(&mut self.open).into_iter().partition(|(_, about)| is_meant(about));
        self.open = open;
        let gone: Vec<(Asked, A)> = gone;
        // A question that can't be withdrawn is no run's any more once the lease is gone.
        gone.iter().for_each(|(asked, _)| drop(self.runner.withdraw(asked)));
        self.rest();
        gone
    }

    fn rest(&mut self) {
        if self.open.is_empty() {
            self.given_back = None;
        }
    }
}

impl<A> Drop for Asking<'_, A> {
    fn drop(&mut self) {
        self.withdraw(|_| true);
    }
}
