//! Every transcript, and what is read from it. (N9)

use super::transcripts::{Transcript, all, of, play};
use aynig::agents::ending::Next;
use aynig::agents::said::Wait;
use aynig::agents::{End, Ending, Exit, Said, Stop};
use aynig::contract::time::Time;
use aynig::contract::words::Provider;
use std::collections::BTreeMap;
use std::fmt::Write;

fn kind(said: &Said) -> &'static str {
    match said {
        Said::Session(_) => "session",
        Said::Piece(_) => "piece",
        Said::Text(_) => "text",
        Said::ThoughtPiece(_) => "thought-piece",
        Said::Thought(_) => "thought",
        Said::ToolStarted { .. } => "tool",
        Said::ToolEnded { ok: true, .. } => "tool-ok",
        Said::ToolEnded { ok: false, .. } => "tool-failed",
        Said::Asked(_) => "asked",
        Said::Unasked(_) => "unasked",
        Said::Retries(_) => "retries",
        Said::Note(_) => "note",
        Said::Noise(_) => "noise",
        Said::Over => "over",
    }
}

fn row(of: &Transcript) -> String {
    let mut talk = of.talk();
    let said = play(&mut *talk, of.stdout.as_bytes(), 4096);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    said.iter().for_each(|said| *counts.entry(kind(said)).or_default() += 1);
    let (told, ending) = (talk.told(), talk.ending(&of.end()));
    let mut row = format!("{}/{}: {}", of.program, of.name, ending.name());
    if let Ending::Quota { wait, .. } | Ending::Overload { wait, .. } = &ending {
        let _ = write!(row, " {wait:?}");
    }
    let counts: Vec<String> = counts.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    let _ = write!(row, " | {}", counts.join(", "));
    let spent = &told.spent;
    let _ = write!(row, " | {} in, {} out", spent.input, spent.output);
    spent.micro_usd.into_iter().for_each(|micro| write!(row, ", {micro} u$").unwrap());
    spent.model.iter().for_each(|model| write!(row, ", {model}").unwrap());
    let text: String = told.text.iter().flat_map(|text| text.chars()).take(60).collect();
    let words: String = ending.words().chars().take(100).collect();
    let _ = write!(row, " | {text:?} | {words:?}");
    row
}

#[test]
fn every_transcript_is_read_as_it_was() {
    let rows: String = all().iter().map(|transcript| row(transcript) + "\n").collect();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts/agents/transcripts.txt");
    if std::env::var_os("AYNIG_BLESS").is_some() {
        std::fs::write(file, &rows).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap();
    let differ: Vec<_> = rows.lines().zip(known.lines()).filter(|(now, then)| now != then).collect();
    assert!(differ.is_empty() && rows.lines().count() == known.lines().count(), "{differ:#?}");
}

#[test]
fn pieces_of_any_size_are_read_alike() {
    for transcript in all() {
        let whole = play(&mut *transcript.talk(), transcript.stdout.as_bytes(), usize::MAX);
        assert_eq!(
            play(&mut *transcript.talk(), transcript.stdout.as_bytes(), 7),
            whole,
            "{}",
            transcript.name
        );
    }
}

/// The last line counts, and the exit status too; neither alone.
#[test]
fn success_is_the_last_lines_verdict_and_exit_0() {
    let mut tried = 0;
    for transcript in all().iter().filter(|t| t.program != "opencode") {
        let mut talk = transcript.talk();
        play(&mut *talk, transcript.stdout.as_bytes(), 4096);
        let ended = |exit: Exit| End { exit, stderr: b"", stopped: None };
        let good = talk.ending(&ended(Exit::Code(0))) == Ending::Completed;
        for exit in [Exit::Code(1), Exit::Code(143), Exit::Signal(9), Exit::Missing("x".into())] {
            assert_ne!(talk.ending(&ended(exit)), Ending::Completed, "{}", transcript.name);
        }
        let lines: Vec<&str> = transcript.stdout.lines().collect();
        let ends = |line: &&str| {
            ["\"result\"", "turn.completed", "turn/completed"].iter().any(|word| line.contains(word))
        };
        if good {
            let kept: Vec<&str> = lines.iter().copied().filter(|line| !ends(line)).collect();
            let mut talk = transcript.talk();
            play(&mut *talk, kept.join("\n").as_bytes(), 4096);
            let ending = talk.ending(&ended(Exit::Code(0)));
            assert!(matches!(ending, Ending::Interrupted { .. }), "{}: {ending:?}", transcript.name);
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

fn ending(name: &str) -> Ending {
    let transcript = of(name);
    let mut talk = transcript.talk();
    play(&mut *talk, transcript.stdout.as_bytes(), 4096);
    talk.ending(&transcript.end())
}

#[test]
fn what_is_used_up_says_when_it_is_there_again() {
    let Ending::Quota { wait, words } = ending("claude/error-limit-oauth") else { panic!() };
    assert_eq!(wait, Wait::Until(Time::from_seconds(1_900_000_000)));
    assert!(words.contains("session limit"), "{words}");
    let Ending::Overload { wait, .. } = ending("gemini/error-429-later") else { panic!() };
    assert_eq!(wait, Wait::Seconds(3600));
    assert_eq!(ending("codex/error-quota").next(), Next::Later(Wait::Unknown));
}

#[test]
fn endings_have_names_words_and_mends() {
    for (name, want) in [
        ("claude/no-key", "login-ended"),
        ("claude/error-401", "login-ended"),
        ("claude/error-529", "overload"),
        ("claude/error-refused", "unreachable"),
        ("claude/error-400", "request-refused"),
        ("claude/max-budget", "limit-reached"),
        ("claude/resume-unknown", "session-lost"),
        ("claude/int-drip", "interrupted"),
        ("claude/write-skip", "misconfigured"),
        ("codex/error-usage-limit-at", "quota"),
        ("codex/error-500", "overload"),
        ("codex/error-401", "login-ended"),
        ("codex/resume-unknown", "session-lost"),
        ("codex/no-git", "misconfigured"),
        ("codex/error-hang", "unreachable"),
        ("gemini/error-401", "login-ended"),
        ("gemini/max-turns", "limit-reached"),
        ("gemini/resume-unknown", "session-lost"),
        ("gemini/text-untrusted", "misconfigured"),
        ("gemini/error-hang", "out-of-time"),
    ] {
        let ending = ending(name);
        assert_eq!(ending.name(), want, "{name}: {ending:?}");
        let mended = ending.mend(Provider::Claude);
        assert_eq!(mended.is_empty(), ending.next() == Next::Afresh, "{name}: {mended}");
        let silent = matches!(ending, Ending::OutOfTime { .. });
        assert_eq!(ending.words().is_empty(), silent, "{name}: {ending:?}");
    }
}

#[test]
fn a_caller_who_ends_a_program_knows_why() {
    let talk = of("codex/int-drip").talk();
    let stopped = |stop: Stop| talk.ending(&End { exit: Exit::Signal(2), stderr: b"", stopped: Some(stop) });
    assert_eq!(stopped(Stop::Silence(60)), Ending::Silent { seconds: 60 });
    assert_eq!(stopped(Stop::Time(9)), Ending::OutOfTime { seconds: 9 });
    assert_eq!(stopped(Stop::Asked).name(), "interrupted");
    let missing = End { exit: Exit::Missing("codex".into()), stderr: b"", stopped: None };
    assert_eq!(
        talk.ending(&missing).mend(Provider::Codex),
        "install 'codex', or set 'aynig.provider.codex.command' to where it is"
    );
}

#[test]
fn codex_tells_sums_and_a_turn_is_what_is_new() {
    let spent = |name: &str| {
        let mut talk = of(name).talk();
        play(&mut *talk, of(name).stdout.as_bytes(), 4096);
        talk.told().spent.clone()
    };
    let (first, second) = (spent("codex/recommended-resume-1"), spent("codex/recommended-resume-2"));
    assert_eq!((first.input, first.output, second.input, second.output), (30_055, 17, 62_510, 34));
    let turn = second.since(&first);
    assert_eq!((turn.input, turn.output, turn.usage().total_tokens), (32_455, 17, 32_472));
    // A smaller sum is another thread's.
    assert_eq!(first.since(&second), first);
}

#[test]
fn a_session_is_told_and_one_that_differs_is_a_new_one() {
    for (name, id) in [
        ("claude/recommended-resume-2", "39a435a1-4bc2-4eee-8209-d9a2faeac1d5"),
        ("codex/recommended-resume-2", "01a2041c-afd9-74c3-a8cc-b7801ce44b7e"),
        ("gemini/text", "679b1d13-b078-47f9-b8b8-3ccf53c4ac3a"),
        ("gemini/acp-allow", "98637292-b056-442d-9d95-0a23dd6ec092"),
        ("codex/app-approve", "01a203e5-23a5-7f33-9e4a-da3861d99d75"),
    ] {
        let said = play(&mut *of(name).talk(), of(name).stdout.as_bytes(), 4096);
        let sessions: Vec<&Said> = said.iter().filter(|said| matches!(said, Said::Session(_))).collect();
        assert_eq!(sessions, [&Said::Session(id.to_owned())], "{name}");
    }
    let asked = of("codex/resume-nonsense").argv.iter().any(|arg| arg == "resume");
    let mut talk = of("codex/resume-nonsense").talk();
    play(&mut *talk, of("codex/resume-nonsense").stdout.as_bytes(), 4096);
    assert!(asked && uuid::Uuid::parse_str(talk.told().session.as_deref().unwrap()).is_ok());
}

#[test]
fn a_tool_begins_and_ends_under_one_name() {
    for name in ["claude/recommended", "codex/recommended-resume-1", "gemini/recommended"] {
        let said = play(&mut *of(name).talk(), of(name).stdout.as_bytes(), 4096);
        let started: Vec<&String> = said
            .iter()
            .filter_map(|said| if let Said::ToolStarted { id, .. } = said { Some(id) } else { None })
            .collect();
        let ended: Vec<&String> = said
            .iter()
            .filter_map(|said| if let Said::ToolEnded { id, ok: true, .. } = said { Some(id) } else { None })
            .collect();
        assert_eq!((started.len(), &started), (2, &ended), "{name}");
    }
}
