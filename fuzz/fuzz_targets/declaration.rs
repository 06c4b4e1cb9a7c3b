//! Declarations: the scanner says the same however a stream is cut, and what it finds is written as it was
//! meant (K16, K19).
//!
//! The first byte says how the rest is cut; the second, how long a line may be.
#![no_main]

#[allow(dead_code, reason = "the shipped file, as it is")]
#[path = "../../src/supervisor/guardian/scan.rs"]
mod scan;

use aynig::protocol::declaration::{Declaration, Declarations, LINE_PREFIX};
use aynig::protocol::dialect::Dialect;
use aynig::protocol::event::Event;
use aynig::protocol::message::{Message, is_managed_key};
use libfuzzer_sys::fuzz_target;
use scan::{Found, LastLine, Scanner};

fn scanned(pieces: &[&[u8]], max: usize) -> (Vec<Found>, Vec<u8>) {
    let mut scanner = Scanner::new(LINE_PREFIX.as_bytes().to_vec(), max);
    let (mut found, mut last) = (Vec::new(), LastLine::default());
    for piece in pieces {
        scanner.feed(piece, |f| found.push(f));
        last.feed(piece);
    }
    scanner.finish(|f| found.push(f));
    (found, last.get())
}

/// The same, by reading the whole at once.
fn expected(text: &[u8], max: usize) -> Vec<Found> {
    let lines = text.split(|b| *b == b'\n').filter(|line| line.starts_with(LINE_PREFIX.as_bytes()));
    let kept = |line: &[u8]| line.len() <= max || line.len() == LINE_PREFIX.len();
    lines.map(|l| if kept(l) { Found::Line(l.to_vec()) } else { Found::Long(l.len() as u64) }).collect()
}

/// Pieces whose lengths follow from the seed.
fn cut(mut text: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut pieces, mut n) = (Vec::new(), seed as usize);
    while !text.is_empty() {
        n = (n * 31 + 7) % 257;
        let (piece, rest) = text.split_at((1 + n % (1 + seed as usize)).min(text.len()));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

fn check_valid(declaration: &Declaration) {
    assert!(!declaration.state.is_working());
    assert!(declaration.trailers.iter().all(|t| !is_managed_key(&t.key)));
    let again = Declaration::parse(declaration.to_json().as_bytes());
    assert_eq!(again.as_ref(), Ok(declaration));
    for dialect in Dialect::ALL {
        let message = declaration.message(dialect, &[]);
        let raw = message.render().expect("a valid declaration can be written");
        assert_eq!(Message::parse(&raw), message);
        let event = Event::of(message).expect("it is a state event");
        assert_eq!(event.state_name(), Some(&declaration.state));
        assert_eq!((event.dialect, event.run_id(), event.hop()), (dialect, None, 0));
    }
}

fuzz_target!(|data: &[u8]| {
    let [seed, limit, text @ ..] = data else { return };
    let max = LINE_PREFIX.len() + *limit as usize * 8;
    let (whole, last) = scanned(&[text], max);
    assert_eq!(scanned(&cut(text, *seed), max), (expected(text, max), last));
    assert_eq!(whole, expected(text, max));
    let mut all = Declarations::default();
    for found in &whole {
        match found {
            Found::Line(line) => {
                if let Ok(declaration) = Declaration::parse_line(line) {
                    check_valid(&declaration);
                }
                all.line(line);
            }
            Found::Long(length) => all.too_long(*length),
        }
    }
    assert_eq!(all.valid_count() + all.invalid().1, whole.len() as u64);
    assert_eq!(all.last().is_some(), all.valid_count() > 0);
    // What a command may leave in its result file.
    if let Ok(declaration) = Declaration::parse(text) {
        check_valid(&declaration);
    }
});
