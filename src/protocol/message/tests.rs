//! Facts about reading and writing messages; `tests/message_oracle` asks Git about the rest.

use super::*;

fn read(raw: &str) -> Message {
    Message::parse(raw.as_bytes())
}

fn shown(raw: &str) -> String {
    let one = |t: &Trailer| format!("{}={}", t.key, String::from_utf8_lossy(&t.value));
    read(raw).trailers.iter().map(one).collect::<Vec<_>>().join("|")
}

fn body(raw: &str) -> String {
    String::from_utf8(read(raw).body).unwrap()
}

fn refusal(subject: &str, body: &str, trailers: &[(&str, &str)]) -> RenderError {
    message(subject, body, trailers).render().unwrap_err()
}

fn message(subject: &str, body: &str, trailers: &[(&str, &str)]) -> Message {
    Message::new(subject, body, trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect())
}

#[test]
fn a_message_has_three_parts() {
    let m = read("feat: x\n\nWhy.\n\nMore.\n\ndwp-state: build\nkey: v\n");
    assert_eq!(m, message("feat: x", "Why.\n\nMore.", &[("dwp-state", "build"), ("key", "v")]));
}

#[test]
fn the_first_paragraph_is_never_trailers() {
    assert_eq!(shown("dwp-state: build\n"), "");
    assert_eq!(shown("\n \ndwp-state: build\nkey: v\n"), "");
    assert_eq!(shown("dwp-state: build\n \n"), "");
    assert_eq!(shown("dwp-state: build\n \n \n# c\n"), "");
}

/// K3, K1.
#[test]
fn the_last_value_wins_and_keys_are_case_sensitive() {
    let m = read("s\n\nk: 1\nK: 2\nk: 3\n");
    assert_eq!(m.last("k"), Some(&b"3"[..]));
    assert_eq!(m.all("k").collect::<Vec<_>>(), [b"1", b"3"]);
    assert_eq!(m.last("K"), Some(&b"2"[..]));
    assert_eq!(m.last("dwp-state"), None);
}

#[test]
fn continuations_are_folded_with_one_space() {
    assert_eq!(shown("s\n\nk: a  \n \t b\n\tc\nl:\n x\n"), "k=a   b c|l=x");
}

#[test]
fn only_ascii_blanks_are_trimmed() {
    assert_eq!(shown("s\n\nk:\u{a0}v\u{b}\r\n"), "k=\u{a0}v\u{b}");
}

#[test]
fn the_separator_is_a_colon_with_blanks_before_it() {
    assert_eq!(shown("s\n\nk \t: v\nl:\n-: x\n"), "k=v|l=|-=x");
    assert_eq!(shown("s\n\nk=v\n"), "");
    assert_eq!(shown("s\n\nk v: x\n"), "");
    assert_eq!(shown("s\n\n: x\n"), "");
}

#[test]
fn prose_spoils_a_block_unless_git_signed_a_quarter_of_it() {
    assert_eq!(shown("s\n\nk: v\nprose\n"), "");
    assert_eq!(shown("s\n\nk: v\nSigned-off-by: x\np\np\np\np\np\np\n"), "k=v|Signed-off-by=x");
    assert_eq!(shown("s\n\nk: v\nSigned-off-by: x\np\np\np\np\np\np\np\n"), "");
    assert_eq!(shown("s\n\n(cherry picked from commit 1)\nk: v\np\n"), "k=v");
    assert_eq!(shown("s\n\nsigned-off-by: x\np\n"), "");
}

#[test]
fn comments_are_ignored_but_end_a_continuation() {
    assert_eq!(shown("s\n\n# c\nk: v\n# c\nl: w\n\n# c\n"), "k=v|l=w");
    assert_eq!(shown("s\n\nk: v\n# c\n w\n"), "");
}

#[test]
fn a_scissors_line_ends_trailers_and_body() {
    let cut = "# ------------------------ >8 ------------------------\n";
    let raw = format!("s\n\nbody\n\nk: v\n{cut}x: y\n\nz: w\n");
    assert_eq!(read(&raw), message("s", "body", &[("k", "v")]));
    assert_eq!(read(&format!("{cut}\nk: v\n")).trailers, []);
}

#[test]
fn blank_lines_and_comments_after_the_block_are_no_block() {
    assert_eq!(shown("s\n\nk: v\n \n\t\n"), "k=v");
    assert_eq!(shown("s\n\nk: v\n \n# c\n \n"), "k=v");
}

#[test]
fn a_dashed_line_divides_nothing() {
    assert_eq!(shown("s\n\n---\n\nk: v\n"), "k=v");
    assert_eq!(shown("s\n\nk: v\n\n---\n a | 1 +\n"), "");
}

#[test]
fn a_conflicts_list_is_no_block_and_stays_in_the_body() {
    let raw = "s\n\nbody\n\nk: v\n\nConflicts:\n\ta\n\tb\n";
    assert_eq!(read(raw), message("s", "body\n\nConflicts:\n\ta\n\tb", &[("k", "v")]));
    // The block does not take in anything else that Git ignores after it, either.
    let raw = "s\n\nk: v\n\nConflicts:\n\ta\n# c\n\n# d\n";
    assert_eq!(read(raw), message("s", "Conflicts:\n\ta\n# c\n\n# d", &[("k", "v")]));
}

#[test]
fn a_body_without_trailers_is_kept_as_it_is() {
    assert_eq!(body("s\n\n\n  text\n# c\n\n\n"), "  text\n# c");
    assert_eq!(body("s\n \t\ntext \r\nend\r\n\r\n"), "text \r\nend");
    assert_eq!(body("s\n"), "");
}

#[test]
fn a_subject_of_several_lines_is_one_line() {
    let m = read("\n \n a \r\n\tb  \n\nbody");
    assert_eq!(m.subject, b" a \tb");
    assert_eq!(m.body, b"body");
}

#[test]
fn nothing_after_a_nul_is_read() {
    assert_eq!(read("s\n\nk: v\0w\nl: x\n"), message("s", "", &[("k", "v")]));
}

#[test]
fn no_bytes_are_a_message_too() {
    assert_eq!(read(""), Message::default());
    assert_eq!(read(" \n\n\t\r\n"), Message::default());
}

#[test]
fn parsing_is_linear() {
    for unit in
        ["\n", " \n", "k:\n", " x\n", "# c\n", "k: v\n\n", "Conflicts:\n\t", "a", "k", "\r", "s\n\nk:\n \n"]
    {
        let raw = format!("s\n\n{}", unit.repeat((1 << 18) / unit.len()));
        Message::parse(raw.as_bytes());
    }
}

#[test]
fn what_was_rendered_reads_as_it_was_meant() {
    let cases = [
        message("s", "", &[]),
        message("s", "", &[("k", "v")]),
        message("s: t", "k: v\nl: w", &[("k", "")]),
        message("#1", "# heading\n\n---\n\nConflicts:\n\ta", &[("Conflicts", ""), ("---", "# x")]),
        message("s", "a\r\nb", &[("k", "\u{a0}v: w\u{b}")]),
    ];
    for m in cases {
        assert_eq!(Message::parse(&m.render().unwrap()), m);
    }
    let raw = message("s", "b", &[("k", "v"), ("l", "")]).render().unwrap();
    assert_eq!(raw, b"s\n\nb\n\nk: v\nl: \n");
}

#[test]
fn new_drops_blanks_and_blank_lines_at_the_ends() {
    let m = message(" s\t", "\n \n  text\n\n", &[("k", " v ")]);
    let plain = Message {
        subject: b"s".to_vec(),
        body: b"  text".to_vec(),
        trailers: vec![Trailer { key: "k".into(), value: b"v".to_vec() }],
    };
    assert_eq!(m, plain);
}

#[test]
fn what_would_be_misread_is_refused() {
    let key = || "k".to_owned();
    let cut = "# ------------------------ >8 ------------------------";
    assert_eq!(refusal(" ", "b", &[]), RenderError::EmptySubject);
    assert_eq!(refusal("a\nb", "", &[]), RenderError::SubjectBreaks);
    assert_eq!(refusal("a\r", "", &[]), RenderError::SubjectBreaks);
    assert_eq!(refusal("a\0", "", &[]), RenderError::Nul { part: Part::Subject });
    assert_eq!(refusal(cut, "", &[("k", "v")]), RenderError::SubjectHidesRest);
    assert_eq!(refusal("s", &format!("a\n{cut}"), &[("k", "v")]), RenderError::BodyHidesTrailers);
    assert_eq!(refusal("s", &format!("{cut}\nb"), &[]), RenderError::BodyHidesTrailers);
    assert_eq!(refusal("s", "text\n\nk: v", &[]), RenderError::BodyEndsInTrailers);
    assert_eq!(refusal("s", "(cherry picked from commit 1)", &[]), RenderError::BodyEndsInTrailers);
    for bad in ["", "k:", "a b", "ü", "k\n", "#"] {
        assert_eq!(refusal("s", "", &[(bad, "v")]), RenderError::BadKey { key: bad.into() });
    }
    assert_eq!(refusal("s", "", &[("k", "a\nb")]), RenderError::ValueBreaks { key: key() });
    assert_eq!(refusal("s", "", &[("k", "a\r")]), RenderError::ValueBreaks { key: key() });
    assert_eq!(refusal("s", "", &[("k", "a\0")]), RenderError::Nul { part: Part::Value { key: key() } });
}

#[test]
fn unclean_parts_are_refused_not_repaired() {
    let plain = message("s", "b", &[("k", "v")]);
    let with = |change: &dyn Fn(&mut Message)| {
        let mut m = plain.clone();
        change(&mut m);
        m.render().unwrap_err()
    };
    assert_eq!(with(&|m| m.subject = b"s ".to_vec()), RenderError::SubjectBlanks);
    assert_eq!(with(&|m| m.body = b"b\n".to_vec()), RenderError::BodyBlankEnds);
    assert_eq!(with(&|m| m.body = b" \nb".to_vec()), RenderError::BodyBlankEnds);
    assert_eq!(with(&|m| m.body = vec![0xff]), RenderError::NotUtf8 { part: Part::Body });
    let blanks = RenderError::ValueBlanks { key: "k".into() };
    assert_eq!(with(&|m| m.trailers[0].value = b"v ".to_vec()), blanks);
}

#[test]
fn errors_are_said_in_gits_way() {
    let said = refusal("s", "", &[("a b", "v")]).to_string();
    assert_eq!(said, "cannot write trailer 'a b': a key is ASCII letters, digits and '-'");
    let said = refusal("s", "b\0", &[]).to_string();
    assert_eq!(said, "cannot write message: the body has a NUL");
}

/// K4a.
#[test]
fn managed_keys_are_managed_in_any_case() {
    assert!(MANAGED.iter().all(|key| is_managed_key(key.of(Dialect::Dwp))));
    assert!(is_managed_key("Dwp-State"));
    assert!(!is_managed_key("dwp-status"));
    assert!(is_managed_key("aynig-state"));
    assert!(!is_managed_key("aynig-status"));
}
