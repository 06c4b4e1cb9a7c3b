//! What a repository says, on a user's terminal: row S13.

use super::*;
use support::life::now;

/// 300 strings: every byte alone, and sequences that terminals obey.
fn strings() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..=255u8).map(|b| vec![b'a', b, b'z']).collect();
    let sequences: &[&[u8]] = &[
        b"\x1b[2J",
        b"\x1b[31mred",
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://evil\x1b\\click",
        b"\x1b]52;c;ZXZpbA==\x07",
        b"\x1bP+q\x1b\\",
        b"\x1b_x\x1b\\",
        b"\x1b^x\x1b\\",
        b"\x1bc",
        b"\x1b[6n",
        b"\x1b[?1049h",
        b"\x9b31m",
        b"\xc2\x9b31m",
        b"\xc2\x9d0;x\x07",
        b"\xc2\x85",
        b"\rover",
        b"\x08\x08\x08back",
        b"\x0e\x0f",
        b"\x7f\x7f",
        "\u{202e}rtl".as_bytes(),
        "\u{202a}\u{202b}\u{202c}\u{202d}".as_bytes(),
        "\u{2066}x\u{2069}".as_bytes(),
        "\u{2067}\u{2068}".as_bytes(),
        "\u{200e}\u{200f}".as_bytes(),
        "\u{feff}bom".as_bytes(),
        b"\xff\xfe\xfd",
        b"\xc3(",
        b"\xed\xa0\x80",
        b"\xf8\x88\x80\x80\x80",
        "\u{85}\u{9c}".as_bytes(),
        b"\x1b[1;1H",
        b"\x1b[3J\x1b[H",
        b"\x1b(0lqqk",
        b"\x1b]1337;File=:eA==\x07",
        b"\x1b]777;notify;a;b\x07",
        b"\x1b[200~paste\x1b[201~",
        b"\x05enq",
        b"\x18\x1a\x1b",
        b"\x1b#8",
        b"\x1b[!p",
        b"\x1b=\x1b>",
        b"\x11\x13",
        b"\t\ttabs",
        b"%s%n",
        b"\\x1b[31m",
    ];
    all.extend(sequences.iter().map(|s| s.to_vec()));
    all
}

#[track_caller]
fn assert_tame(said: &Said, what: &[&str]) {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    for text in [&said.out, &said.err] {
        assert!(!text.contains(steers), "{what:?}: {text:?}");
    }
}

/// What a terminal is sent, its own line ends taken off; `None` where there is no `script` to make one.
fn on_a_terminal(world: &World, dir: &Path, args: &[&str]) -> Option<Said> {
    let line = format!("git-aynig {}", args.join(" "));
    let output = world.command("script", dir).args(["-qec", &line, "/dev/null"]).output();
    let Ok(output) = output else {
        support::skipped("S13: no script(1) here to make a terminal");
        return None;
    };
    let mut said = Said::from(output);
    said.out = said.out.replace("\r\n", "\n");
    Some(said)
}

/// K36, S13: 300 strings, as subject, state, trailer, body, person and log, through every verb that shows one
#[test]
fn s13_no_control_byte_reaches_a_terminal() {
    let strings = strings();
    assert!(strings.len() >= 300, "{}", strings.len());
    let world = World::any();
    let dir = repo(&world, &[("say", "cat \"$AYNIG_BODY_FILE\"; cat \"$AYNIG_BODY_FILE\" >&2; exit 3")]);
    for (n, part) in strings.chunks(times(10, 61)).enumerate() {
        let branch = format!("b{n}");
        let text: Vec<u8> = part.concat().into_iter().filter(|b| *b != b'\n').collect();
        let one_line = text.clone();
        let tree = world.git(&dir, &["rev-parse", "main^{tree}"]);
        let mut raw = format!("tree {tree}\nauthor ").into_bytes();
        let who = [b"A ", &*one_line, format!(" <a@b> {} +0000", now()).as_bytes()].concat();
        let who: Vec<u8> = who.into_iter().filter(|b| !matches!(b, 0)).collect();
        raw.extend(
            [&who[..], b"\ncommitter ", &who, b"\n\n", &one_line, b"\n\n", &part.join(&b'\n'), b"\n\n"]
                .concat(),
        );
        raw.extend(
            [b"dwp-state: say\ndwp-note: ", &*one_line, b"\ndwp-runner-id: ", &one_line, b"\n"].concat(),
        );
        world.raw_object(&dir, &branch, &raw);
        for args in [
            &["status"][..],
            &["status", "-v", &branch],
            &["status", "--porcelain"],
            &["events", &branch],
            &["events", &branch, "--history"],
            &["tick", "--dry-run", &branch],
            &["tick", "-v", &branch],
            &["status", "-v"],
            &["doctor"],
        ] {
            assert_tame(&world.aynig(&dir, args), args);
        }
        // What a log holds goes to a pipe as it is; to a terminal it does not.
        world.raw_object(&dir, &format!("tee{n}"), &raw);
        for args in [
            &["logs", &branch][..],
            &["logs", "--stderr", &branch],
            &["tick", "--tee", &format!("tee{n}")],
            &["events", "--history", "--json", &branch],
        ] {
            if let Some(said) = on_a_terminal(&world, &dir, args) {
                assert_tame(&said, args);
            }
        }
        for args in [&["status", "--json"][..], &["events", &branch, "--json", "--history"]] {
            let said = world.aynig(&dir, args).expect(0);
            for line in said.out.lines() {
                assert!(!line.chars().any(|c| c.is_control()), "{line:?}");
                assert!(!line.bytes().any(|b| b < 0x20 || b == 0x7f), "{line:?}");
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
        let body = world.git(&dir, &["log", "-1", "--format=%B", &branch]);
        assert!(!body.bytes().any(|b| b < 0x20 && b != b'\n' && b != b'\t'), "{body:?}");
        let state = [b"go\n\ndwp-state: ", &*one_line, b"\n"].concat();
        world.raw_commit(&dir, &format!("s{n}"), &state);
        for args in [&["tick", &format!("s{n}")][..], &["status"], &["events", &format!("s{n}")]] {
            assert_tame(&world.aynig(&dir, args), args);
        }
    }
}
