//! K19: what a line or a result file has to say, and the reason that is reported where it is no declaration.

use super::*;

fn parse(json: &str) -> Result<Declaration, Invalid> {
    Declaration::parse(json.as_bytes())
}

fn review() -> Declaration {
    Declaration {
        state: StateName::new("review").unwrap(),
        subject: "chore: set review".into(),
        body: String::new(),
        keep_trailers: false,
        trailers: Vec::new(),
        take: Take::default(),
        not_before: None,
        usage: None,
    }
}

fn full() -> Declaration {
    Declaration {
        subject: "feat: x".into(),
        body: "Why.\n\nMore.".into(),
        keep_trailers: true,
        trailers: vec![Trailer::new("ticket", "7"), Trailer::new("dwp-tone", "a: b")],
        ..review()
    }
}

/// K19.
#[test]
fn a_state_alone_is_a_declaration_and_other_fields_are_ignored() {
    for json in [
        r#"{"state":"review"}"#,
        r#" {"state":"review","hop":1,"trigger":["x"]} "#,
        r#"{"state":"review","subject":"","body":"","keep_trailers":false,"trailers":[]}"#,
        r#"{"state":"review","subject":null,"body":null,"keep_trailers":null,"trailers":null}"#,
    ] {
        assert_eq!(parse(json), Ok(review()), "{json}");
    }
}

/// K19: a list of lines, a list of pairs and an object say the same.
#[test]
fn trailers_are_declared_in_three_ways() {
    for trailers in [
        r#"["ticket: 7", "dwp-tone:a: b"]"#,
        r#"["ticket \t:\t 7 ", {"key": "dwp-tone", "value": " a: b"}]"#,
        r#"{"ticket": "7", "dwp-tone": "a: b"}"#,
    ] {
        let json = format!(
            r#"{{"state":"review","subject":"feat: x","body":"Why.\n\nMore.","keep_trailers":true,"trailers":{trailers}}}"#
        );
        assert_eq!(parse(&json), Ok(full()), "{trailers}");
    }
}

/// K19, K4, K4a, K2: each is reported with its reason.
#[test]
fn what_is_no_declaration_says_why() {
    let trailers = r#"'trailers' must be a list of "key: value" or {"key", "value"}, or an object"#;
    let written = "cannot be written as a commit message: cannot write";
    for (json, why) in [
        ("[]", "not a JSON object"),
        ("{}", "'state' is missing"),
        (r#"{"state":null}"#, "'state' is missing"),
        (r#"{"state":1}"#, "'state' must be a string"),
        (
            r#"{"state":"../x"}"#,
            r#"state "../x" is not usable: each part between '/' must start with a letter or digit"#,
        ),
        (r#"{"state":"working"}"#, "state 'working' is reserved for leases"),
        (r#"{"state":"a","subject":1}"#, "'subject' must be a string"),
        (r#"{"state":"a","body":[]}"#, "'body' must be a string"),
        (r#"{"state":"a","keep_trailers":"yes"}"#, "'keep_trailers' must be true or false"),
        (r#"{"state":"a","trailers":"k: v"}"#, trailers),
        (r#"{"state":"a","trailers":[1]}"#, trailers),
        (r#"{"state":"a","trailers":[{"key":"k"}]}"#, trailers),
        (r#"{"state":"a","trailers":{"k":1}}"#, trailers),
        (
            r#"{"state":"a","trailers":["k v"]}"#,
            r#"trailer "k v" is not 'key: value', with a key of letters, digits and '-'"#,
        ),
        (
            r#"{"state":"a","trailers":[": v"]}"#,
            r#"trailer "" is not 'key: value', with a key of letters, digits and '-'"#,
        ),
        (
            r#"{"state":"a","trailers":["k l: v"]}"#,
            r#"trailer "k l" is not 'key: value', with a key of letters, digits and '-'"#,
        ),
        (
            r#"{"state":"a","trailers":{"ü":"v"}}"#,
            r#"trailer "ü" is not 'key: value', with a key of letters, digits and '-'"#,
        ),
        (r#"{"state":"a","trailers":["dwp-hop: 0"]}"#, "trailer 'dwp-hop' is set by the runner alone"),
        (
            r#"{"state":"a","trailers":{"Aynig-Run-Id":"x"}}"#,
            "trailer 'Aynig-Run-Id' is set by the runner alone",
        ),
        (r#"{"state":"a","subject":"a\nb"}"#, &format!("{written} message: the subject has a line break")),
        (
            r#"{"state":"a","trailers":["k: a\nb"]}"#,
            &format!("{written} trailer 'k': its value has a line break"),
        ),
    ] {
        assert_eq!(parse(json).map_err(|e| e.to_string()), Err(why.to_owned()), "{json}");
    }
    for json in ["", "{", "review", r#"{"state":"a"} {}"#] {
        assert!(matches!(parse(json), Err(Invalid::Json(_))), "{json}");
    }
    assert!(Invalid::Json("x".into()).to_string().starts_with("not valid JSON: x"));
    assert_eq!(Invalid::Unreadable("is a folder".into()).to_string(), "cannot be read: is a folder");
}

/// K19: above 16 MiB nothing is read.
#[test]
fn a_declaration_has_at_most_16_mib() {
    let padded = |length: usize| {
        let mut json = br#"{"state":"review"}"#.to_vec();
        json.resize(length, b' ');
        Declaration::parse(&json)
    };
    assert_eq!(padded(16_777_216), Ok(review()));
    assert_eq!(padded(16_777_217), Err(Invalid::TooLong(16_777_217)));
    let said = Invalid::TooLong(16_777_217).to_string();
    assert_eq!(said, "the line has 16777217 bytes, more than 16 MiB");
}

/// K20: first the state, then the runner's own trailers, then those that were declared.
#[test]
fn an_outcome_tells_the_runners_trailers_before_the_declared_ones() {
    let own = [Trailer::new("aynig-hop", "2")];
    let message = full().message(Dialect::Aynig, &own);
    let trailers = [("aynig-state", "review"), ("aynig-hop", "2"), ("ticket", "7"), ("dwp-tone", "a: b")];
    let trailers = trailers.map(|(key, value)| Trailer::new(key, value)).to_vec();
    assert_eq!(message, Message::new("feat: x", "Why.\n\nMore.", trailers));
}

/// K19.
#[test]
fn what_is_printed_as_json_is_read_back() {
    for declaration in [review(), full()] {
        let line = format!("{LINE_PREFIX}{}", declaration.to_json());
        assert_eq!(Declaration::parse_line(line.as_bytes()), Ok(declaration));
    }
    assert_eq!(review().to_json(), r#"{"state":"review","subject":"chore: set review"}"#);
}

/// K10, K19, K47: the trailers of the dialect travel that the runner does not manage, that do not concern one
/// head alone, and that can be written again.
#[test]
fn only_a_workflows_own_trailers_travel() {
    let all = [
        ("dwp-ticket", "7"),
        ("ticket", "7"),
        ("aynig-ticket", "8"),
        ("dwp-state", "build"),
        ("aynig-hop", "1"),
        ("dwp-odd", "a\rb"),
        ("dwp-accepts", "message=rework"),
        ("dwp-not-before", "5"),
        ("dwp-after", "a=done"),
        ("dwp-question", "x"),
        ("dwp-usage", "input=1"),
        ("dwp-conflict", "x"),
        ("dwp-heard", "x"),
    ];
    let message = Message::new("s", "", all.map(|(key, value)| Trailer::new(key, value)).to_vec());
    assert_eq!(travelling(&message, Dialect::Dwp), [Trailer::new("dwp-ticket", "7")]);
    assert_eq!(travelling(&message, Dialect::Aynig), [Trailer::new("aynig-ticket", "8")]);
}

/// K19.
#[test]
fn the_last_valid_line_counts_whatever_is_said_after_it() {
    let mut said = Declarations::default();
    assert_eq!((said.last(), said.valid_count(), said.invalid()), (None, 0, (&[][..], 0)));
    said.line(br#"SET_STATE {"state":"done"}"#);
    said.line(br#"SET_STATE {"state":"review"}"#);
    said.line(b"SET_STATE {}");
    said.too_long(20_000_000);
    assert_eq!((said.last(), said.valid_count()), (Some(&review()), 2));
    let invalid = [
        ("SET_STATE {}".to_owned(), Invalid::NoState),
        ("SET_STATE ".to_owned(), Invalid::TooLong(20_000_000)),
    ];
    assert_eq!(said.invalid(), (&invalid[..], 2));
}

/// K19: each invalid line is reported; a command that prints nothing else takes no memory for it.
#[test]
fn invalid_lines_are_counted_and_the_first_few_are_kept_cut_short() {
    let mut said = Declarations::default();
    said.line("ü".repeat(80).as_bytes());
    said.line("ü".repeat(81).as_bytes());
    (2..20).for_each(|n| said.line(format!("SET_STATE {n}").as_bytes()));
    let (kept, count) = said.invalid();
    assert_eq!((kept.len(), count), (16, 20));
    assert_eq!([&kept[0].0, &kept[1].0], [&"ü".repeat(80), &format!("{}...", "ü".repeat(80))]);
    assert_eq!(kept[15], ("SET_STATE 15".to_owned(), Invalid::NoObject));
}

/// K19, K25.
#[test]
fn what_is_taken_is_named_by_paths_in_the_worktree() {
    let taken = |take: &str| parse(&format!(r#"{{"state":"review","take":{take}}}"#)).map(|d| d.take);
    let take = Take { paths: vec!["a/.b".into(), "c".into()], rest: Rest::Kept };
    assert_eq!(taken(r#"{"paths":["a/.b","c"],"rest":"kept"}"#), Ok(take.clone()));
    assert_eq!(taken("null"), Ok(Take::default()));
    let declared = Declaration { take, ..review() };
    assert_eq!(parse(&declared.to_json()), Ok(declared));
    for wrong in [
        "1",
        "[]",
        r#"{"rest":"none"}"#,
        r#"{"paths":"a"}"#,
        r#"{"paths":["../a"]}"#,
        r#"{"paths":["/a"]}"#,
        r#"{"paths":["a//b"]}"#,
        r#"{"paths":[".git/config"]}"#,
        r#"{"paths":[""]}"#,
    ] {
        assert!(matches!(taken(wrong), Err(Invalid::Type { field: "take", .. })), "{wrong}");
    }
}
