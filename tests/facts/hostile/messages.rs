//! Messages, states, declarations, trailers, bodies.

use super::*;

/// K4, S3: a state that is no path to a command is reported and moves nothing
#[test]
fn s03_states_that_are_no_names_are_not_actionable() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let long = "a".repeat(300);
    let states: Vec<&[u8]> = vec![
        b"../x",
        b"..",
        ".".as_bytes(),
        b"a//b",
        b"-x",
        b"/build",
        b"build/",
        b"a/../build",
        b".hidden",
        b"a/.git",
        b"build;id",
        b"$(id)",
        b"build x",
        b"b\xffd",
        b"\x1b[31mred",
        "b\u{fc}ild".as_bytes(),
        long.as_bytes(),
        b"refs/../x",
        b"a\\b",
        b"%2e%2e/x",
        b"*",
    ];
    for state in states {
        let message = [b"go\n\ndwp-state: ", state, b"\n"].concat();
        let trigger = world.raw_commit(&dir, "odd", &message);
        let said = world.aynig(&dir, &["tick", "odd"]).expect(0);
        assert!(said.out.contains("is not usable"), "{state:?}: {}", said.out);
        assert_tame(&said);
        assert_eq!(head(&world, &dir, "odd"), trigger);
        assert_tame(&world.aynig(&dir, &["tick"]).expect(0));
    }
    assert!(!dir.join(".aynig/logs").exists());
}

/// K1: a NUL ends a message, as it does for Git
#[test]
fn nothing_after_a_nul_is_part_of_a_message() {
    let world = World::any();
    let dir = repo(&world, &[("show", &format!("printf '%s|' \"$BODY\"\n{DONE}"))]);
    for (message, ran) in [
        (&b"s\n\nbody\0more\n\ndwp-state: show\n"[..], false),
        (b"s\n\nbody\n\ndwp-state: sh\0ow\n", false),
        (b"s\n\nbody\n\ndwp-state: show\n\0\n\ndwp-state: ../x\n", true),
    ] {
        let trigger = world.raw_commit(&dir, "nul", message);
        world.aynig(&dir, &["tick", "nul"]).expect(0);
        assert_eq!(head(&world, &dir, "nul") != trigger, ran, "{message:?}");
        if ran {
            assert!(log_of(&dir, &trigger, "stdout").starts_with("body|"));
        }
    }
}

/// K19, K2: what a command says can't forge a transition, whatever its text holds
#[test]
fn s11_a_declaration_cannot_smuggle_trailers() {
    let hostile = [
        r#"{"state":"evil","subject":"x\n\ndwp-state: evil"}"#,
        r#"{"state":"evil","subject":"x\rdwp-state: evil"}"#,
        r#"{"state":"evil","trailers":["dwp-run-id: forged"]}"#,
        r#"{"state":"evil","trailers":["Dwp-State: forged"]}"#,
        r#"{"state":"evil","trailers":["DWP-HOP: 0"]}"#,
        r#"{"state":"evil","trailers":["dwp-recovery-ID: x"]}"#,
        r#"{"state":"evil","trailers":{"dwp-trigger":"x"}}"#,
        r#"{"state":"evil","trailers":["note: a\ndwp-state: evil"]}"#,
        r#"{"state":"evil","trailers":[{"key":"a b","value":"x"}]}"#,
        r#"{"state":"evil","trailers":["dwp-state\u0000: evil"]}"#,
        r#"{"state":"evil","body":"x\u0000y"}"#,
        r##"{"state":"evil","body":"# ------------------------ >8 ------------------------\nx"}"##,
        r#"{"state":"working"}"#,
        r#"{"state":"../x"}"#,
        "{\"state\":\"\\u001b[31mred\"}",
        r#"{"state":"evil"} {"state":"evil"}"#,
        r#"["evil"]"#,
        "\u{1b}[31m",
    ];
    let body = r"text\n\ndwp-state: evil\ndwp-run-id: forged\n---\ndwp-hop: 0\nSigned-off-by: Eve <e@e>";
    let good = format!(
        r#"{{"state":"good","subject":"dwp-state: evil","body":"{body}","trailers":["note: fine"]}}"#
    );
    let mut script = format!("cat <<'END'\nSET_STATE {good}\n");
    hostile.iter().for_each(|line| script += &format!("SET_STATE {line}\n"));
    let world = World::any();
    let dir = repo(&world, &[("forge", &(script + "END"))]);
    world.aynig(&dir, &["set-state", "forge", "-b", "work"]).expect(0);
    let trigger = head(&world, &dir, "work");
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert_tame(&said);
    assert_eq!(
        said.err.matches("ignored '").count() + usize::from(said.err.contains("more invalid")),
        17,
        "{}",
        said.err
    );
    assert_eq!(world.states(&dir, "work", &trigger), ["good", "working"]);
    let format = "--format=%(trailers:only,unfold,keyonly)";
    let keys = world.git(&dir, &["log", "-1", format, "work"]);
    let want = ["dwp-state", "dwp-run-id", "dwp-origin-state", "dwp-trigger", "dwp-hop", "note"];
    assert_eq!(keys.lines().collect::<Vec<_>>(), want);
    world.assert_sound(&dir);
}

/// K19: the same from set-state, where a person types it
#[test]
fn set_state_refuses_what_could_not_be_read_back() {
    let world = World::any();
    let dir = repo(&world, &[]);
    for args in [
        &["build", "--trailer", "dwp-run-id: x"][..],
        &["build", "--trailer", "DWP-STATE: x"],
        &["build", "--trailer", "no colon"],
        &["build", "--trailer", "a: b\nc: d"],
        &["working"],
        &["../x"],
        &["-x"],
        &[""],
        &["build", "-m", "s", "-m", "# ------------------------ >8 ------------------------\nx"],
    ] {
        let said = world.aynig(&dir, &[&["set-state", "-b", "never"], args].concat());
        assert_eq!(said.code, 129, "{args:?}: {}{}", said.out, said.err);
        assert_ne!(world.try_git(&dir, &["rev-parse", "-q", "--verify", "never"]).code, 0);
    }
    for bad in ["..", "a..b", "a.lock", "-x", "a b", "a~1", "@{-1}", "a\nb", "refs/heads/", "/a", "a//b"] {
        let said = world.aynig(&dir, &["set-state", "build", &format!("-b{bad}")]);
        assert_ne!(said.code, 0, "{bad}");
        assert_tame(&said);
    }
}

/// K36: paths and branches are shown, not obeyed
#[test]
fn s13_names_that_steer_terminals_are_shown_escaped() {
    let world = World::any();
    let dir = world.init("x\x1b[31my\u{202e}z");
    Place::new(&world, &dir).seed();
    let rtl = "rtl\u{202e}x";
    world.aynig(&dir, &["set-state", "build", "-b", rtl]).expect(0);
    assert_tame(&world.aynig(&dir, &["tick"]).expect(2));
    assert_tame(&world.aynig(&dir, &["trust"]).expect(0));
    assert_tame(&world.aynig(&dir, &["trust", "--list"]).expect(0));
    std::os::unix::fs::symlink("/nowhere", dir.join(".aynig/logs")).unwrap();
    let said = world.aynig(&dir, &["tick"]).expect(0);
    assert!(said.err.contains("symbolic link"), "{}", said.err);
    assert_tame(&said);
    world.aynig(&dir, &["set-state", "build", "-b", "busy"]).expect(0);
    let linked = world.root().join("w\x1b[31m");
    world.git(&dir, &["worktree", "add", "-q", linked.to_str().unwrap(), "busy"]);
    let git_dir = PathBuf::from(world.git(&linked, &["rev-parse", "--absolute-git-dir"]));
    world.git(&linked, &["checkout", "-q", "--detach"]);
    std::fs::write(git_dir.join("BISECT_START"), "busy\n").unwrap();
    let said = world.aynig(&dir, &["tick", "busy"]).expect(3);
    assert!(said.out.contains("bisected"), "{}", said.out);
    assert_tame(&said);
}

/// K15: a body of any size reaches the command whole, in a file
#[test]
fn s02_a_body_of_ten_mebibytes_reaches_the_command_whole() {
    let script = format!(
        "wc -c <\"$AYNIG_BODY_FILE\"\nprintf '%s' \"$BODY\" | wc -c\necho \"$AYNIG_BODY_TRUNCATED\"\n{DONE}"
    );
    let world = World::any();
    let dir = repo(&world, &[("show", &script)]);
    let body = "0123456789 ü\n".repeat(10 * 1024 * 1024 / 14);
    std::fs::write(world.root().join("message"), format!("subject\n\n{body}")).unwrap();
    world.aynig(&dir, &["set-state", "show", "-b", "big", "-F", "../message"]).expect(0);
    let trigger = head(&world, &dir, "big");
    world.aynig(&dir, &["tick", "big"]).expect(0);
    let printed = log_of(&dir, &trigger, "stdout");
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    assert_eq!(lines[0], (body.len() - 1).to_string());
    let cut: usize = lines[1].parse().unwrap();
    assert!((128 * 1024 - 20..128 * 1024).contains(&cut), "{cut}");
    assert_eq!(lines[2], "1");
}

/// K15
#[test]
fn trailers_too_large_or_too_many_are_left_out_and_the_command_runs() {
    let script = format!("echo \"${{#AYNIG_TRAILER_BIG}} ${{DWP_SMALL-none}} $AYNIG_TRAILER_K9999\"\n{DONE}");
    let world = World::any();
    let dir = repo(&world, &[("show", &script)]);
    let big = "x".repeat(200 * 1024);
    let message = format!("s\n\ndwp-state: show\nbig: {big}\ndwp-small: 1\ndwp-note: {big}\n");
    let trigger = world.raw_commit(&dir, "one", message.as_bytes());
    let said = world.aynig(&dir, &["tick", "one"]).expect(0);
    assert!(said.err.contains("were left out: BIG, DWP_NOTE"), "{}", said.err);
    assert!(log_of(&dir, &trigger, "stdout").starts_with("0 1 \n"));
    let many: String = (0..10_000).map(|n| format!("k{n}: v{n}\n")).collect();
    let trigger = world.raw_commit(&dir, "many", format!("s\n\n{many}dwp-state: show\n").as_bytes());
    world.aynig(&dir, &["tick", "many"]).expect(0);
    assert!(log_of(&dir, &trigger, "stdout").starts_with("0 none v9999\n"));
    let huge: String = (0..500).map(|n| format!("k{n}: {}\n", "y".repeat(4000))).collect();
    world.raw_commit(&dir, "huge", format!("s\n\n{huge}dwp-state: show\n").as_bytes());
    let said = world.aynig(&dir, &["tick", "huge"]).expect(0);
    assert!(said.err.contains("were left out"), "{}", said.err);
    assert!(said.err.len() < 2000, "a short note: {}", said.err.len());
}

/// K10, K2: a trailer that can't be written again is not copied; the branch is claimed all the same
#[test]
fn trailers_that_cannot_be_rendered_stop_no_claim() {
    let world = World::any();
    let dir = repo(&world, &[]);
    for (name, line) in [
        ("cr", &b"dwp-note: a\rb"[..]),
        ("utf8", b"dwp-note: a\xff\xfeb"),
        ("scissors", b"dwp-note: x\ndwp-more: # ------------------------ >8 ------------------------"),
        ("empty", b"dwp-note:"),
        ("folded", b"dwp-note: a\n  dwp-state: evil"),
        ("case", b"Dwp-State: evil\nDWP-HOP: 99"),
        ("hop", b"dwp-source: git:origin\ndwp-run-id: forged\ndwp-trigger: forged"),
    ] {
        let message = [b"s\n\ndwp-state: build\n", line, b"\ndwp-kept: yes\n"].concat();
        let trigger = world.raw_commit(&dir, name, &message);
        let said = world.aynig(&dir, &["tick", name]);
        assert_eq!(said.code, 0, "{name}: {}{}", said.out, said.err);
        assert_eq!(world.states(&dir, name, &trigger), ["review", "working"], "{name}");
        let kept = world
            .git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-kept,valueonly)", &format!("{name}~1")]);
        assert_eq!(kept.trim(), "yes", "{name}: the others are copied");
    }
    world.git(&dir, &["update-ref", "-d", "refs/heads/utf8"]);
    world.git(&dir, &["update-ref", "-d", "refs/heads/cr"]);
}

/// K1: Git decodes what a commit declares, and so do we
#[test]
fn a_message_in_another_encoding_is_told_in_utf8() {
    let world = World::any();
    let dir = repo(&world, &[("show", &format!("printf '%s|%s\\n' \"$BODY\" \"$DWP_NOTE\"\n{DONE}"))]);
    let (tree, parent) = (world.git(&dir, &["rev-parse", "main^{tree}"]), head(&world, &dir, "main"));
    let mut raw =
        format!("tree {tree}\nparent {parent}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n").into_bytes();
    raw.extend_from_slice(
        b"encoding ISO-8859-1\n\nsch\xf6n\n\nK\xf6rper\n\ndwp-state: show\ndwp-note: gr\xf6\xdfer\n",
    );
    let trigger = world.raw_object(&dir, "latin", &raw);
    world.aynig(&dir, &["tick", "latin"]).expect(0);
    assert!(log_of(&dir, &trigger, "stdout").starts_with("Körper|größer\n"));
    let note = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-note,valueonly)", "latin~1"]);
    assert_eq!(note.trim(), "größer");
}
