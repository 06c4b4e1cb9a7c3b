//! Git itself says whether messages are read and written rightly.
//!
//! Cites K1 and K2. Hard messages are made from a seeded generator, written into one bare repository by
//! `git fast-import`, shown by one `git log`, and compared with what `Message` makes of them; for each
//! distinct `git` of the machine. Where an older Git reads a message otherwise than the newest one,
//! the newest is followed and the older one's count is printed.
//!
//! `AYNIG_SEED=7 AYNIG_CASES=1000000 cargo test --test message_oracle -- --nocapture` replays a seed or
//! runs longer. A message that differs is saved; moved to `tests/corpus/messages/` it is replayed forever.

mod generator;
mod oracle;
mod words;

use aynig::protocol::message::{Message, RenderError};
use generator::Generator;
use oracle::{Git, Shown};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Messages for one `fast-import` and one `git log`.
const BATCH: usize = 25_000;

fn setting(name: &str, default: u64) -> u64 {
    let parse = |s: String| s.parse().unwrap_or_else(|_| panic!("{name}={s} is no number"));
    std::env::var(name).map_or(default, parse)
}

fn generator(test: &str) -> (Generator, usize) {
    let (seed, cases) = (setting("AYNIG_SEED", 1), setting("AYNIG_CASES", 20_000) as usize);
    println!("{test}: AYNIG_SEED={seed} AYNIG_CASES={cases}");
    (Generator::new(seed, test), cases)
}

fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// What Git shows of a parsed message, in the words of its own formats.
fn as_shown(m: &Message) -> (Vec<u8>, Vec<u8>) {
    let mut trailers = Vec::new();
    for t in &m.trailers {
        trailers.extend_from_slice(t.key.as_bytes());
        trailers.extend_from_slice(b": ");
        trailers.extend_from_slice(&t.value);
        trailers.push(b'\n');
    }
    (m.subject.clone(), trailers)
}

/// True when the body is `%b` without the block `%(trailers)`, up to a scissors line.
fn body_agrees(m: &Message, git: &Shown) -> bool {
    let scissors = b"\n# ------------------------ >8 ------------------------\n";
    // A scissors line in the subject ends the body as well; `%s` can't tell it from one with blanks.
    if m.body.is_empty() && git.trailers.is_empty() && git.subject.windows(8).any(|w| w == b" >8 ----") {
        return true;
    }
    let text = [b"\n", &git.body[..]].concat();
    let cut = text.windows(scissors.len()).position(|w| w == scissors);
    let text = &text[..cut.map_or(text.len(), |at| at + 1)];
    let tidy = |text: &[u8]| Message::new("s", text, vec![]).body;
    if git.block.is_empty() {
        return m.body == tidy(text);
    }
    let places = text.windows(git.block.len()).enumerate().filter(|(_, w)| *w == git.block);
    places.map(|(at, _)| at).any(|at| {
        let (before, after) = (tidy(&text[..at]), tidy(&text[at + git.block.len()..]));
        let gap: &[u8] = if before.is_empty() || after.is_empty() { b"" } else { b"\n\n" };
        m.body == [&before[..], gap, &after[..]].concat()
    })
}

/// Compares the parser with each Git; returns how many differ from the newest.
fn compare(messages: &[Vec<u8>]) -> usize {
    let mut differing = 0;
    let gits = oracle::gits();
    for (age, git) in gits.iter().enumerate() {
        let mut bad: Vec<usize> = Vec::new();
        for (start, shown) in git.show(messages, BATCH) {
            for (i, shown) in shown.iter().enumerate() {
                let m = Message::parse(&messages[start + i]);
                let (subject, trailers) = as_shown(&m);
                if subject != shown.subject || trailers != shown.trailers || !body_agrees(&m, shown) {
                    bad.push(start + i);
                }
            }
        }
        println!("{git}: {} messages, {} differ", messages.len(), bad.len());
        if age > 0 && !bad.is_empty() {
            println!(
                "NOTE: {git} reads {} messages otherwise than the newer Git, which is followed",
                bad.len()
            );
        }
        differing += if age == 0 { bad.len() } else { 0 };
        report(git, messages, bad);
    }
    differing
}

fn report(git: &Git, messages: &[Vec<u8>], mut bad: Vec<usize>) {
    bad.sort_by_key(|i| messages[*i].len());
    for i in bad.into_iter().take(5) {
        let raw = oracle::shrink(&messages[i], |raw| {
            let m = Message::parse(raw);
            let shown = &git.show(&[raw.to_vec()], 1).next().unwrap().1[0];
            as_shown(&m) != (shown.subject.clone(), shown.trailers.clone()) || !body_agrees(&m, shown)
        });
        let shown = &git.show(std::slice::from_ref(&raw), 1).next().unwrap().1[0];
        let m = Message::parse(&raw);
        println!("message   \"{}\"", escaped(&raw));
        println!("  git     {shown}");
        println!("  parse   {}", Shown::of(&as_shown(&m).0, &as_shown(&m).1, &m.body));
        println!("  saved   {}", oracle::save(&raw).display());
    }
}

#[test]
fn s12_k1_parse_reads_what_git_log_reads() {
    let (mut generator, cases) = generator("k1");
    let mut left = cases;
    let mut blocks = 0;
    while left > 0 {
        let messages: Vec<_> = (0..left.min(4 * BATCH)).map(|_| generator.message()).collect();
        assert_eq!(compare(&messages), 0, "messages differ from git log; see above");
        left -= messages.len();
        blocks += messages.iter().filter(|raw| !Message::parse(raw).trailers.is_empty()).count();
    }
    println!("{blocks} of {cases} have trailers");
    assert!(
        blocks > cases / 5 && blocks < cases * 4 / 5,
        "the generator makes too few hard choices: {blocks}"
    );
}

#[test]
fn k1_the_corpus_of_past_mismatches_is_read_as_git_reads_it() {
    let corpus = oracle::corpus();
    assert!(!corpus.is_empty());
    assert_eq!(compare(&corpus), 0, "messages differ from git log; see above");
}

#[test]
fn s11_k2_what_render_accepts_git_and_parse_read_as_meant() {
    let (mut generator, cases) = generator("k2");
    let mut left = cases;
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    let mut attempts = 0usize;
    while left > 0 {
        let mut meant = Vec::new();
        while meant.len() < left.min(4 * BATCH) {
            attempts += 1;
            let m = generator.parts();
            match m.render() {
                Ok(raw) => meant.push((m, raw)),
                Err(RenderError::WouldChange) => panic!("refused without a name: {m:?}"),
                Err(e) => *refused.entry(situation(&e)).or_default() += 1,
            }
        }
        left -= meant.len();
        let raw: Vec<_> = meant.iter().map(|(_, raw)| raw.clone()).collect();
        for git in oracle::gits() {
            for (start, shown) in git.show(&raw, BATCH) {
                shown
                    .iter()
                    .zip(&meant[start..])
                    .for_each(|(shown, (m, raw))| check_meant(&git, m, raw, shown));
            }
            println!("{git}: {} rendered messages agree", raw.len());
        }
    }
    println!("{attempts} attempts, refused: {refused:?}");
    let total: usize = refused.values().sum();
    assert!(total > 0 && total < attempts / 2, "the generator is too tame or too wild: {total}");
}

fn situation(e: &RenderError) -> String {
    let name = format!("{e:?}");
    name.split([' ', '{']).next().unwrap().to_owned()
}

fn check_meant(git: &Git, m: &Message, raw: &[u8], shown: &Shown) {
    let (subject, trailers) = as_shown(m);
    let mut body = m.body.clone();
    if !body.is_empty() {
        body.push(b'\n');
    }
    if !body.is_empty() && !trailers.is_empty() {
        body.push(b'\n');
    }
    body.extend_from_slice(&trailers);
    let agree = Message::parse(raw) == *m
        && (&subject, &trailers, &body) == (&shown.subject, &shown.trailers, &shown.body);
    assert!(agree, "{git} reads {shown}\nfrom \"{}\"\nmeant {m:?}\n", escaped(raw));
}

#[test]
fn k2_plain_messages_are_never_refused() {
    let (mut generator, cases) = generator("plain");
    for _ in 0..cases {
        let m = generator.plain();
        let raw = m.render().unwrap_or_else(|e| panic!("{e}: {m:?}"));
        assert_eq!(Message::parse(&raw), m);
    }
}

/// What came from a commit can be written again, unless it holds something with a named refusal.
#[test]
fn k2_what_was_parsed_is_a_fixed_point_or_refused() {
    let (mut generator, cases) = generator("fixed");
    for _ in 0..cases {
        let m = Message::parse(&generator.message());
        match m.render() {
            Ok(raw) => assert_eq!(Message::parse(&raw), m),
            Err(
                e @ (RenderError::WouldChange
                | RenderError::SubjectBlanks
                | RenderError::BodyBlankEnds
                | RenderError::BadKey { .. }
                | RenderError::ValueBlanks { .. }
                | RenderError::Nul { .. }),
            ) => panic!("{e}: {m:?}"),
            Err(
                RenderError::EmptySubject
                | RenderError::SubjectBreaks
                | RenderError::SubjectHidesRest
                | RenderError::BodyHidesTrailers
                | RenderError::BodyEndsInTrailers
                | RenderError::ValueBreaks { .. }
                | RenderError::NotUtf8 { .. },
            ) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/corpus/messages.proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_a_message(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
        let m = Message::parse(&raw);
        prop_assert!(m.trailers.iter().all(|t| t.key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
        if let Ok(raw) = m.render() {
            prop_assert_eq!(Message::parse(&raw), m);
        }
    }

    #[test]
    fn any_hard_bytes_are_a_message(raw in "([a-z#:\\- \t\r\n\u{b}\0(>8=ü]|k: |\n\n|Signed-off-by: |Conflicts:\n){0,60}") {
        let m = Message::parse(raw.as_bytes());
        if let Ok(raw) = m.render() {
            prop_assert_eq!(Message::parse(&raw), m);
        }
    }
}
