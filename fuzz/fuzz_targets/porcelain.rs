//! Answers to a push: only the ref's own line and Git's own success say that it moved (K12).
//!
//! The first byte says whether Git ended well; the text up to the first NUL is the ref's name.
#![no_main]

#[path = "../../src/store/remote/porcelain.rs"]
mod porcelain;

use libfuzzer_sys::fuzz_target;
use porcelain::{Word, word};

/// The first line about the ref, found another way: flag and summary.
fn line_about<'a>(stdout: &'a [u8], full: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    for line in stdout.split(|b| *b == b'\n') {
        let tabs: Vec<usize> = line.iter().enumerate().filter(|(_, b)| **b == b'\t').map(|(i, _)| i).collect();
        let [first, second, ..] = tabs[..] else { continue };
        let refs = &line[first + 1..second];
        let Some(colon) = refs.iter().position(|b| *b == b':') else { continue };
        if &refs[colon + 1..] == full {
            return Some((&line[..first], &line[second + 1..]));
        }
    }
    None
}

fuzz_target!(|data: &[u8]| {
    let [well, rest @ ..] = data else { return };
    let well = well % 2 == 0;
    let at = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
    let (full, stdout) = (&rest[..at], rest.get(at + 1..).unwrap_or_default());
    let about = line_about(stdout, full);
    match word(stdout, well, full) {
        Word::Moved => {
            let (flag, _) = about.expect("a line of its own");
            assert!(well && matches!(flag, b" " | b"*" | b"+"));
        }
        Word::Gone => assert!(well && about.is_some_and(|(flag, _)| flag == b"-")),
        Word::Same => assert!(well && about.is_some_and(|(flag, _)| flag == b"=")),
        Word::Rejected => assert!(about.is_some_and(|(f, s)| f == b"!" && s.starts_with(b"[rejected]"))),
        Word::Refused(summary) => {
            assert_eq!(about, Some((&b"!"[..], summary)));
            assert!(summary.starts_with(b"[remote rejected]"));
        }
        Word::Nothing => assert!(
            about.is_none_or(|(flag, s)| {
                let is_no = [&b"[rejected]"[..], b"[remote rejected]"].iter().any(|no| s.starts_with(no));
                !(flag == b"!" && is_no) && !(well && matches!(flag, b" " | b"*" | b"+" | b"-" | b"="))
            })
        ),
    }
    // Nothing that is said of others changes the answer.
    let more = [b"To /r\n*\txrefs/heads/other:refs/heads/other\t[new branch]\n", stdout, b"\nDone\n"].concat();
    if full != b"refs/heads/other" {
        assert_eq!(word(&more, well, full), word(stdout, well, full));
    }
    // A failed push never says that the ref moved.
    assert!(!matches!(word(stdout, false, full), Word::Moved | Word::Gone | Word::Same));
});
