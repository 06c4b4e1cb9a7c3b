//! The messages that a trigger brings, as its command reads them: one line of JSON each, in the run's folder.
//!
//! They are read again from the commits that the trigger names, so that a run that is asked for once more
//! gets the same. A message that is gone, or is none, is listed with what is known of it. Implements K47
//! (`AYNIG_MESSAGES`).

use super::{Runner, RunnerError, Tip};
use crate::protocol::dialect::Dialect;
use crate::protocol::heard::{Heard, conflicts_of, heard_of};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Letter, heard_ref};
use crate::protocol::message::Message;
use crate::store::RefName;
use serde::Serialize;

/// The name of the file in the run's folder.
pub(super) const FILE: &str = "messages";

#[derive(Serialize)]
struct Line {
    id: String,
    kind: Option<String>,
    from: Option<String>,
    commit: String,
    attached: Option<String>,
    merged: Option<&'static str>,
    question: Option<String>,
    choice: Option<String>,
    text: Option<String>,
    trailers: Vec<Pair>,
    unreadable: Option<String>,
}

#[derive(Serialize)]
struct Pair {
    key: String,
    value: String,
}

impl Runner<'_> {
    /// Returns the lines of the messages that a trigger brings; `None` where it brings none.
    pub(crate) fn told_messages(&self, trigger: &Tip) -> Result<Option<Vec<u8>>, RunnerError> {
        let Some(event) = trigger.event.as_ref().filter(|event| event.dialect == Dialect::Dwp) else {
            return Ok(None);
        };
        let heard = heard_of(&event.message, event.dialect);
        if heard.is_empty() {
            return Ok(None);
        }
        let conflicts = conflicts_of(&event.message, event.dialect);
        let mut lines = Vec::new();
        for heard in heard {
            let line = self.told(&heard, &conflicts, trigger.commit.parents.first().copied())?;
            lines.extend(serde_json::to_vec(&line).unwrap_or_default());
            lines.push(b'\n');
        }
        Ok(Some(lines))
    }

    fn told(
        &self,
        heard: &Heard,
        conflicts: &[ObjectId],
        below: Option<ObjectId>,
    ) -> Result<Line, RunnerError> {
        let read = self.store.read_commit(heard.commit).or_else(|error| {
            // A message whose work conflicts is no parent of the trigger. A ref under `heard` keeps it where
            // the branch is; asking for that ref fetches the message.
            self.store.tip(&RefName::new(heard_ref(heard.id)))?;
            self.store.read_commit(heard.commit).map_err(|_| error)
        });
        let read = read.map_err(|error| error.to_string());
        let read = read.and_then(|commit| {
            let letter = Letter::read(&Message::parse(&commit.message), &commit.parents);
            letter.map_err(|why| why.to_string())
        });
        let letter = match read {
            Ok(letter) => letter,
            Err(why) => return Ok(Line::unknown(heard, why)),
        };
        let merged = match letter.attached {
            None => None,
            Some(work) if conflicts.contains(&work) => Some("conflict"),
            Some(work) => Some(match below {
                Some(below) if self.repo.git.is_ancestor(work, below)? => "nothing",
                Some(_) | None => "merged",
            }),
        };
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        Ok(Line {
            id: heard.id.to_string(),
            kind: Some(letter.kind.to_string()),
            from: Some(letter.from),
            commit: heard.commit.to_string(),
            attached: letter.attached.map(|work| work.to_string()),
            merged,
            question: letter.question.map(|id| id.to_string()),
            choice: letter.choice,
            text: Some(letter.text),
            trailers: letter
                .trailers
                .into_iter()
                .map(|t| Pair { key: t.key, value: text(&t.value) })
                .collect(),
            unreadable: None,
        })
    }
}

impl Line {
    fn unknown(heard: &Heard, why: String) -> Self {
        Self {
            id: heard.id.to_string(),
            kind: None,
            from: None,
            commit: heard.commit.to_string(),
            attached: None,
            merged: None,
            question: None,
            choice: None,
            text: None,
            trailers: Vec::new(),
            unreadable: Some(why),
        }
    }
}
