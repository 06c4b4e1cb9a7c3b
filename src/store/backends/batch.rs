//! A `git cat-file --batch` child that is asked for objects, many questions ahead of the answers.
//!
//! [`Batch::ask`] reports whether the child is still usable. The caller throws away a child that died or gave
//! an answer that makes no sense, and starts another. Implements K37 (objects of the second backend).

use crate::protocol::id::ObjectId;
use crate::store::StoreError;
use crate::store::git::command::Git;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

/// How many objects are asked for before their answers are read. That many questions fit into the pipe to the
/// child, so that writing them never waits for a child that waits for its answers to be read.
pub(crate) const ASK_AHEAD: usize = 200;

/// A running `git cat-file --batch`.
pub(crate) struct Batch {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        // The child exits at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Why a batch child gave no object.
enum BatchError {
    /// The child died, or its answer makes no sense: a new child may do better.
    Broken,
    /// The child answered that there is no such object of the wanted kind; the cause, in words.
    Absent(String),
}

impl From<std::io::Error> for BatchError {
    fn from(_: std::io::Error) -> Self {
        Self::Broken
    }
}

/// The raw object, or why there is none.
pub(crate) type Answer = Result<Vec<u8>, String>;

impl Batch {
    /// Starts a child for the repository of this Git directory.
    pub(crate) fn start(git: &Git, common_dir: &Path) -> Result<Self, StoreError> {
        let mut child = git.command(common_dir).verb("cat-file").args(["--batch"]).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some(output) = output else {
            return Err(StoreError::Git { verb: "cat-file".to_owned(), message: "no pipe".to_owned() });
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Asks for these objects of one kind (`commit`, `tree`, `blob`). Returns the answers in the order of the questions, up
    /// to where the child failed, and true where the child can be asked again.
    pub(crate) fn ask(&mut self, ids: &[ObjectId], wanted: &str) -> (Vec<(ObjectId, Answer)>, bool) {
        let mut answers = Vec::with_capacity(ids.len());
        let questions: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let sent = match &mut self.input {
            Some(input) => input.write_all(questions.as_bytes()).and_then(|()| input.flush()),
            None => return (answers, false),
        };
        if sent.is_err() {
            return (answers, false);
        }
        for id in ids {
            match self.answer(*id, wanted) {
                Ok(raw) => answers.push((*id, Ok(raw))),
                Err(BatchError::Absent(cause)) => answers.push((*id, Err(cause))),
                Err(BatchError::Broken) => return (answers, false),
            }
        }
        (answers, true)
    }

    fn answer(&mut self, id: ObjectId, wanted: &str) -> Result<Vec<u8>, BatchError> {
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let words: Vec<&str> = header.split_whitespace().collect();
        match words.as_slice() {
            [found, kind, size] if *found == id.to_string() => {
                let size: usize = size.parse().map_err(|_| BatchError::Broken)?;
                let mut content = vec![0; size + 1];
                self.output.read_exact(&mut content)?;
                content.pop();
                if *kind == wanted { Ok(content) } else { Err(BatchError::Absent(format!("it is a {kind}"))) }
            }
            [found, "missing"] if *found == id.to_string() => {
                Err(BatchError::Absent("it is missing".to_owned()))
            }
            _ => Err(BatchError::Broken),
        }
    }
}
