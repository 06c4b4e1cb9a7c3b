//! What a line that the agent's program prints means for the turn.
//!
//! A line is read as if an enemy wrote it: one that is torn, too long, not UTF-8, or only looks like ours
//! becomes a line of the log, and nothing else. Implements N4 (events as they come), N7 (calls in text), N8
//! (the programs' own gates).

use super::TurnError;
use super::active::{About, Active, Untold};
use super::round::Talking;
use crate::agents::Said;
use crate::agents::lines::Line;
use crate::agents::tool_calls::{Apart, apart};
use crate::contract::event::ToolCall;

/// The tools whose result the caller waits for, so that its last word comes after that.
const WAITED_FOR: [&str; 6] = ["command", "read_file", "write_file", "list_files", "delete_file", "ask"];

impl Active<'_> {
    /// Takes in one line of the program's standard output.
    pub(super) fn line(&mut self, talking: &mut Talking<'_>, line: Line) -> Result<(), TurnError> {
        let raw = match line {
            Line::Whole(raw) | Line::Torn(raw) => raw,
            Line::TooLong(bytes) => {
                self.note(&format!("a line of {bytes} bytes is left out"));
                return Ok(());
            }
        };
        let heard = talking.talk.line(&raw);
        talking.program.say(&heard.send);
        for said in heard.said {
            self.said(talking, said)?;
        }
        Ok(())
    }

    fn said(&mut self, talking: &mut Talking<'_>, said: Said) -> Result<(), TurnError> {
        let events = self.reporter.events(&said);
        self.events.say_all(&events);
        match said {
            Said::Asked(asked) => self.ask_gate(asked, talking)?,
            Said::Unasked(id) => {
                let is_it = |about: &About| matches!(about, About::Gate(asked) if asked.id == id);
                for (question, about) in self.asking.withdraw(is_it) {
                    self.unasked(&question, &about, "its program asks no more");
                }
            }
            Said::Text(text) if talking.answers_calls && !talking.is_stopping() => {
                self.calls_of(&text, talking)?;
            }
            Said::ToolStarted { name, .. } => self.events.progress(&format!("calls {name}")),
            Said::Over => talking.rest(self.ground.runner.clock.instant()),
            Said::Session(_)
            | Said::Piece(_)
            | Said::Text(_)
            | Said::ThoughtPiece(_)
            | Said::Thought(_)
            | Said::ToolEnded { .. }
            | Said::Retries(_)
            | Said::Note(_)
            | Said::Noise(_) => {}
        }
        Ok(())
    }

    /// Makes the calls in the text of a program that is told what comes of them while it runs.
    fn calls_of(&mut self, text: &str, talking: &mut Talking<'_>) -> Result<(), TurnError> {
        let Apart { calls, problems, .. } = apart(text, true);
        let made: Vec<ToolCall> = calls.iter().map(|call| self.reporter.written(call)).collect();
        if made.iter().any(|call| WAITED_FOR.contains(&call.name.as_str())) {
            talking.talk.goes_on();
        }
        for call in made {
            self.make(call, Some(talking))?;
        }
        self.untold.extend(problems.into_iter().map(Untold::from));
        Ok(())
    }

    /// Makes the calls in the last message of a program that is gone.
    pub(super) fn calls_at_end(&mut self, text: &str) -> Result<(), TurnError> {
        let Apart { calls, problems, .. } = apart(text, false);
        for call in calls {
            let call = self.reporter.written(&call);
            self.make(call, None)?;
        }
        self.untold.extend(problems.into_iter().map(Untold::from));
        Ok(())
    }
}
