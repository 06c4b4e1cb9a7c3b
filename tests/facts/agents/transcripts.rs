//! The recorded transcripts, and a program played from one.

use aynig::agents::claude::Claude;
use aynig::agents::codex::{Exec, Server};
use aynig::agents::custom::{Custom, Protocol};
use aynig::agents::gemini::{Acp, Stream};
use aynig::agents::lines::{Line, Lines};
use aynig::agents::{End, Exit, Said, Stop, Talk};
use aynig::contract::id::TurnId;
use aynig::contract::prompt::PromptKind;
use serde::Deserialize;
use std::sync::LazyLock;

/// One run of a real program.
#[derive(Debug, Clone, Deserialize)]
pub struct Transcript {
    pub name: String,
    pub argv: Vec<String>,
    /// Negative: the signal.
    pub exit: i32,
    /// Seconds after which it was killed.
    pub time: Option<u64>,
    /// Whether it was sent a signal.
    #[serde(default)]
    pub asked: bool,
    /// What was written to it, as far as that is fixed.
    #[serde(default)]
    pub sent: Vec<String>,
    pub stdout: String,
    pub stderr: String,
    #[serde(skip)]
    pub program: String,
}

static ALL: LazyLock<Vec<Transcript>> = LazyLock::new(|| {
    let files = [
        ("claude", include_str!("../../corpus/agents/claude.jsonl")),
        ("codex", include_str!("../../corpus/agents/codex.jsonl")),
        ("gemini", include_str!("../../corpus/agents/gemini.jsonl")),
        ("opencode", include_str!("../../corpus/agents/opencode.jsonl")),
    ];
    let read = |(program, text): (&str, &'static str)| {
        let program = program.to_owned();
        text.lines()
            .map(move |line| Transcript { program: program.clone(), ..serde_json::from_str(line).unwrap() })
    };
    files.into_iter().flat_map(read).collect()
});

/// Every one.
pub fn all() -> &'static [Transcript] {
    &ALL
}

/// The one of this name: `claude/text`.
pub fn of(name: &str) -> &'static Transcript {
    all()
        .iter()
        .find(|t| format!("{}/{}", t.program, t.name) == name)
        .unwrap_or_else(|| panic!("no '{name}'"))
}

impl Transcript {
    /// A conversation with the program that this is of, as its arguments call it.
    pub fn talk(&self) -> Box<dyn Talk> {
        let has = |word: &str| self.argv.iter().any(|arg| arg == word);
        let turn = TurnId::parse("0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
        match self.program.as_str() {
            "claude" => Box::new(Claude::new("do it", has("--input-format"))),
            "codex" if has("app-server") => Box::new(Server::new("do it", "/tree", None, None)),
            "codex" => Box::new(Exec::new("do it")),
            "gemini" if has("--acp") => Box::new(Acp::new("do it", "/tree", None)),
            "gemini" => Box::new(Stream::new("do it")),
            // A program that is not known here.
            _ => Box::new(Custom::new(Protocol::Jsonl, "do it", PromptKind::Full, turn)),
        }
    }

    pub fn end(&self) -> End<'_> {
        let exit = if self.exit < 0 { Exit::Signal(-self.exit) } else { Exit::Code(self.exit) };
        let stopped = match (self.time, self.asked) {
            (Some(seconds), _) => Some(Stop::Time(seconds)),
            (None, true) => Some(Stop::Asked),
            (None, false) => None,
        };
        End { exit, stderr: self.stderr.as_bytes(), stopped }
    }
}

/// Plays bytes to a conversation, in pieces of this many, and gives what was said.
pub fn play(talk: &mut dyn Talk, bytes: &[u8], piece: usize) -> Vec<Said> {
    let (mut lines, mut said) = (Lines::default(), Vec::new());
    let mut hear = |line: Line| match line {
        Line::Whole(line) | Line::Torn(line) => said.extend(talk.line(&line).said),
        Line::TooLong(bytes) => said.push(Said::Note(format!("a line of {bytes} bytes"))),
    };
    for piece in bytes.chunks(piece.max(1)) {
        lines.feed(piece).into_iter().for_each(&mut hear);
    }
    lines.end().into_iter().for_each(&mut hear);
    said
}
