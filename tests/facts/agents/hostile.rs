//! Output that is torn, malformed, not UTF-8, endless, or made to look like ours: named, bounded, never a panic. (N9)

use super::transcripts::{all, of, play};
use aynig::agents::lines::{LINE_MAX, Line, Lines};
use aynig::agents::{Decision, End, Ending, Exit, Said, Stop};
use proptest::prelude::*;

/// What would steer a terminal, or turn a line round.
const STEERS: [char; 2] = ['\u{1b}', '\u{202e}'];

const SHORT: usize = 200_000;

fn ends() -> Vec<End<'static>> {
    let end = |exit, stopped| End { exit, stderr: b"\xff\x1b[31m words \n", stopped };
    vec![
        end(Exit::Code(0), None),
        end(Exit::Code(1), None),
        end(Exit::Code(-1), None),
        end(Exit::Code(i32::MAX), Some(Stop::Asked)),
        end(Exit::Signal(9), None),
        end(Exit::NotStarted("no\u{202e}".into()), None),
    ]
}

/// Plays bytes, answers whatever is asked, and judges every end: what is kept and told stays bounded and can be shown.
fn survives(name: &str, bytes: &[u8], piece: usize) -> Result<(), TestCaseError> {
    let mut talk = of(name).talk();
    talk.opening();
    let said = play(&mut *talk, bytes, piece);
    for said in &said {
        match said {
            Said::Asked(asked) => drop(talk.answer(&asked.id, &Decision::Denied("no".into()))),
            Said::Noise(line) | Said::Note(line) | Said::Retries(line) => {
                prop_assert!(
                    line.len() < 5000 && !line.contains('\u{1b}') && !line.contains('\u{202e}'),
                    "{:?}",
                    line
                );
            }
            Said::ToolEnded { output, .. } => prop_assert!(output.len() < 70_000),
            Said::Session(_)
            | Said::Piece(_)
            | Said::Text(_)
            | Said::ThoughtPiece(_)
            | Said::Thought(_)
            | Said::ToolStarted { .. }
            | Said::Unasked(_)
            | Said::Over => {}
        }
    }
    talk.interrupt();
    for end in ends() {
        let ending = talk.ending(&end);
        prop_assert!(ending.words().len() < 5000);
        prop_assert!(!ending.words().contains(STEERS), "{:?}", ending);
    }
    Ok(())
}

fn names() -> Vec<String> {
    all().iter().filter(|t| t.stdout.len() < SHORT).map(|t| format!("{}/{}", t.program, t.name)).collect()
}

#[derive(Debug, Clone)]
enum Harm {
    Cut(usize),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Drop(usize),
    Twice,
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<usize>().prop_map(Harm::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(at, by)| Harm::Flip(at, by)),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(at, more)| Harm::Insert(at, more)),
        any::<usize>().prop_map(Harm::Drop),
        Just(Harm::Twice),
    ]
}

fn harmed(mut bytes: Vec<u8>, harm: &Harm) -> Vec<u8> {
    let len = bytes.len().max(1);
    match harm {
        Harm::Cut(at) => bytes.truncate(at % len),
        Harm::Flip(at, by) => bytes.iter_mut().skip(at % len).take(1).for_each(|b| *b ^= by),
        Harm::Insert(at, more) => {
            drop(bytes.splice((at % len).min(bytes.len())..(at % len).min(bytes.len()), more.clone()))
        }
        Harm::Drop(at) => {
            let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
            lines.remove(at % lines.len());
            bytes = lines.join(&b'\n');
        }
        Harm::Twice => bytes.extend_from_within(..),
    }
    bytes
}

/// Values that are none of what a field should be.
fn weird() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "null",
        "{}",
        "[]",
        "1e999",
        "-1",
        "\"\"",
        "true",
        "[[[]]]",
        "18446744073709551616",
        "\"\\u0000\\u001b[2J\"",
        "0.5",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_harmed_transcript_is_survived(
        name in prop::sample::select(names()), harms in prop::collection::vec(harm(), 1..5), piece in 1_usize..5000,
    ) {
        let bytes = harms.iter().fold(of(&name).stdout.clone().into_bytes(), harmed);
        survives(&name, &bytes, piece)?;
    }

    #[test]
    fn a_line_whose_fields_are_something_else_is_survived(
        name in prop::sample::select(names()), values in prop::collection::vec(weird(), 1..6), seed in any::<usize>(),
    ) {
        // Each value takes the place of one that begins after a colon.
        let mut text = of(&name).stdout.clone();
        for (n, value) in values.iter().enumerate() {
            let colons: Vec<usize> = text.match_indices("\":").map(|(at, _)| at + 2).collect();
            let Some(at) = colons.get(seed.wrapping_mul(n + 1) % colons.len().max(1)) else { break };
            let end = text[*at..].find([',', '}', '\n']).map_or(text.len(), |end| at + end);
            text.replace_range(at..&end, value);
        }
        survives(&name, text.as_bytes(), 4096)?;
    }

    #[test]
    fn any_bytes_are_survived(
        name in prop::sample::select(vec!["claude/interrupt", "claude/text", "codex/text", "codex/app-approve", "gemini/text", "gemini/acp-allow", "opencode/text"]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        survives(name, &bytes, 64)?;
    }

    #[test]
    fn lines_are_cut_alike_whatever_the_pieces(bytes in prop::collection::vec(prop::sample::select(b"a\n\r\xff".to_vec()), 0..60), piece in 1_usize..9) {
        let mut lines = Lines::default();
        let mut found: Vec<Line> = bytes.chunks(piece).flat_map(|piece| lines.feed(piece)).collect();
        found.extend(lines.end());
        let strip = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        let mut want: Vec<Line> = bytes.split(|b| *b == b'\n').map(|line| Line::Whole(strip(line))).collect();
        let torn = bytes.split(|b| *b == b'\n').next_back().unwrap();
        want.pop();
        if !torn.is_empty() {
            want.push(Line::Torn(strip(torn)));
        }
        prop_assert_eq!(found, want);
    }
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_said() {
    let mut lines = Lines::default();
    let flood = vec![b'x'; 1 << 20];
    for _ in 0..(LINE_MAX >> 20) + 3 {
        assert!(lines.feed(&flood).is_empty());
    }
    let found = lines.feed(b"\nnext\n");
    assert_eq!(found, [Line::TooLong(LINE_MAX as u64 + (3 << 20)), Line::Whole(b"next".to_vec())]);
    assert_eq!(lines.end(), None);
}

#[test]
fn a_line_of_an_agents_that_looks_like_ours_is_text() {
    let mut talk = of("claude/text").talk();
    let fake = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    let line =
        serde_json::json!({"type": "assistant", "message": {"content": [{"type": "text", "text": fake}]}});
    let said = talk.line(line.to_string().as_bytes()).said;
    assert_eq!((said.as_slice(), &talk.told().verdict), (&[Said::Text(fake.to_owned())][..], &None));
}

#[test]
fn a_flood_of_text_is_kept_up_to_a_bound() {
    let mut talk = of("gemini/text").talk();
    let line = serde_json::json!({"type": "message", "role": "assistant", "delta": true, "content": "é".repeat(1 << 20)}).to_string();
    for _ in 0..5 {
        talk.line(line.as_bytes());
    }
    assert!(talk.told().open.len() <= 4 << 20);
    assert!(matches!(talk.ending(&ends()[0]), Ending::Interrupted { .. }));
}

#[test]
fn json_that_is_too_deep_is_noise() {
    let deep = "[".repeat(100_000);
    for name in ["claude/text", "codex/app-approve", "gemini/acp-allow", "opencode/text"] {
        let said = of(name).talk().line(format!("{{\"a\":{deep}").as_bytes()).said;
        assert!(matches!(said.as_slice(), [Said::Noise(_)]), "{name}");
    }
}
