//! The raw text of a commit object, read and written.
//!
//! Both stores hand a commit's bytes to `parse`, so they agree on every odd commit: a date that is missing,
//! negative, 20 digits long or no number is a value, never a panic. gix's decoder would refuse some of those
//! commits. The message is returned in UTF-8 where the `encoding` header names a known encoding and the bytes
//! fit it, and unchanged otherwise, as `git log` does. `encode` writes no `encoding` header, uses time zone
//! `+0000`, and refuses what `git commit-tree` refuses. Names and addresses are cleaned as Git cleans them.
//!
//! Implements K10 (the written form), K37.

use crate::protocol::id::ObjectId;
use crate::store::{Commit, NewCommit, Signature, StoreError};
use std::io::BufRead;

/// Parses the bytes of a commit; the error says what is wrong with them.
pub(crate) fn parse(id: ObjectId, raw: &[u8]) -> Result<Commit, &'static str> {
    let mut rest = raw;
    let tree = cut_line(&mut rest).strip_prefix(b"tree ").ok_or("it has no tree line")?;
    let tree = ObjectId::from_hex(tree).map_err(|_| "its tree line holds no object id")?;
    let mut commit = Commit { id, tree, parents: Vec::new(), committed: None, message: Vec::new() };
    let mut in_parents = true;
    let mut committer = None;
    let mut encoding = None;
    // The header ends at an empty line, and where the commit ends.
    while let line @ [_, ..] = cut_line(&mut rest) {
        // Git reads parents only in one block right after the tree.
        if let (true, Some(hex)) = (in_parents, line.strip_prefix(b"parent ")) {
            commit.parents.push(ObjectId::from_hex(hex).map_err(|_| "a parent line holds no object id")?);
            continue;
        }
        in_parents = false;
        if let Some(rest) = line.strip_prefix(b"committer ") {
            committer = committer.or(Some(rest));
        } else if let Some(label) = line.strip_prefix(b"encoding ") {
            encoding = encoding.or(Some(label));
        }
    }
    commit.committed = committer.and_then(seconds);
    commit.message = match encoding {
        Some(label) => to_utf8(label, rest.to_vec()),
        None => rest.to_vec(),
    };
    Ok(commit)
}

/// Takes the first line from a text and returns it without its line feed; empty where the text is.
fn cut_line<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    // `skip_until` searches with the C library's memchr. Reading from memory never fails.
    let mut rest = *text;
    let (line, _) = text.split_at(rest.skip_until(b'\n').unwrap_or_default());
    *text = rest;
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Returns the seconds of `Name <mail> 1700000000 +0000`, whatever the zone; `None` where they are no number.
fn seconds(person: &[u8]) -> Option<i64> {
    let after = &person[person.iter().rposition(|b| *b == b'>')? + 1..];
    let word = after.split(u8::is_ascii_whitespace).find(|w| !w.is_empty())?;
    // Only digits, with at most a leading minus: `i64::from_str` alone would take "+5".
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn to_utf8(label: &[u8], message: Vec<u8>) -> Vec<u8> {
    // The web reads "latin1" as windows-1252, iconv (and so Git) as ISO-8859-1.
    let name = label.trim_ascii().to_ascii_lowercase();
    if matches!(name.as_slice(), b"iso-8859-1" | b"iso8859-1" | b"iso88591" | b"latin1" | b"latin-1") {
        return encoding_rs::mem::decode_latin1(&message).into_owned().into_bytes();
    }
    let Some(encoding) = encoding_rs::Encoding::for_label(&name) else { return message };
    if encoding == encoding_rs::UTF_8 {
        return message;
    }
    match encoding.decode_without_bom_handling_and_without_replacement(&message) {
        Some(text) => text.into_owned().into_bytes(),
        None => message,
    }
}

/// Returns the bytes of a commit object.
///
/// Refuses a NUL in the message and a moment before 1970, as `git commit-tree` does.
pub(crate) fn encode(commit: &NewCommit) -> Result<Vec<u8>, StoreError> {
    if commit.message.contains(&0) {
        return Err(StoreError::RefusedCommit { cause: "a NUL byte in the message" });
    }
    if commit.signature.seconds < 0 {
        return Err(StoreError::RefusedCommit { cause: "a moment before 1970" });
    }
    let person = person(&commit.signature);
    let mut raw = format!("tree {}\n", commit.tree).into_bytes();
    for parent in &commit.parents {
        raw.extend(format!("parent {parent}\n").into_bytes());
    }
    raw.extend(format!("author {person}\ncommitter {person}\n\n").into_bytes());
    raw.extend(&commit.message);
    Ok(raw)
}

/// Returns `Name <mail> seconds +0000`, as commits and reflogs carry it.
pub(super) fn person(by: &Signature) -> String {
    let (name, email) = clean(by);
    format!("{name} <{email}> {} +0000", by.seconds)
}

/// Returns name and address as Git would write them: without brackets and line breaks, and without
/// punctuation at the ends. Git refuses an empty name, so `aynig` stands in.
pub(super) fn clean(by: &Signature) -> (String, String) {
    let strip = |text: &str| {
        let kept: String = text.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\r' | '\0')).collect();
        kept.trim_matches(|c: char| c <= ' ' || ",:;\"\\'".contains(c)).to_owned()
    };
    let name = strip(&by.name);
    (if name.is_empty() { "aynig".to_owned() } else { name }, strip(&by.email))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(committer: &str, rest: &[u8]) -> Commit {
        let id = ObjectId::from_bytes(&[1; 20]).unwrap();
        let mut raw = format!("tree {id}\nparent {id}\n{committer}").into_bytes();
        raw.extend(rest);
        parse(id, &raw).unwrap()
    }

    #[test]
    fn absurd_dates_are_values() {
        for (line, want) in [
            ("committer A <a> 1700000000 +0000\n", Some(1_700_000_000)),
            ("committer A <a> -5 +0000\n", Some(-5)),
            ("committer A <a> 9223372036854775807 +0000\n", Some(i64::MAX)),
            ("committer A <a> 99999999999999999999 +0000\n", None),
            ("committer A <a> 17 +99999999\n", Some(17)),
            ("committer A <a> 17\n", Some(17)),
            ("committer A <a> +17 +0000\n", None),
            ("committer A <a> soon\n", None),
            ("committer A <a>\n", None),
            ("committer\n", None),
            ("committer A <a\n", None),
            ("", None),
        ] {
            assert_eq!(read(line, b"\nx").committed, want, "{line:?}");
        }
    }

    #[test]
    fn a_declared_encoding_is_undone_where_it_fits() {
        assert_eq!(read("encoding ISO-8859-1\n", b"\n\xfc").message, "ü".as_bytes());
        assert_eq!(read("encoding cp1252\n", b"\n\x80").message, "€".as_bytes());
        assert_eq!(read("encoding Shift_JIS\n", b"\n\x83\x65").message, "テ".as_bytes());
        assert_eq!(read("encoding Shift_JIS\n", b"\n\xff\xff").message, b"\xff\xff");
        assert_eq!(read("encoding nonsense\n", b"\n\xfc").message, b"\xfc");
        assert_eq!(read("gpgsig x\n encoding latin1\n", b"\n\xfc").message, b"\xfc");
    }

    #[test]
    fn no_bytes_panic() {
        let id = ObjectId::from_bytes(&[1; 20]).unwrap();
        for raw in [&b""[..], b"\n\n", b"tree ", b"tree \n\n", b"\0", b"tree 1\nparent\n\n"] {
            assert!(parse(id, raw).is_err());
        }
    }
}
