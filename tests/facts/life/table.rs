//! The table of completions, every ending of a command, and every rule of declarations.

use crate::support::life::Life;
use std::path::Path;

fn note_with<'a>(report: &'a serde_json::Value, words: &str) -> Option<&'a str> {
    report["notes"].as_array().unwrap().iter().filter_map(|n| n.as_str()).find(|n| n.contains(words))
}

/// Runs one command once; the branch is `work`.
fn once(script: &str, args: &[&str]) -> (Life, serde_json::Value, Option<i32>) {
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "dwp-role: b\ndwp-log-level: info\nIssue: 12\n");
    let (done, report) = life.report(&[&["work"], args].concat());
    (life, report, done.code)
}

/// K23, K26, K27
#[test]
fn a_command_that_fails_ends_stalled_with_its_last_words_and_its_work_kept() {
    let script = "echo half >>file; i=0; while [ $i -lt 2000 ]; do echo \"line $i\"; i=$((i+1)); done\n\
        printf 'bad \\033[31mred\\n' >&2; echo 'SET_STATE {\"state\":\"review\"}'; exit 3";
    let (life, report, code) = once(script, &[]);
    assert_eq!((code, &report["result"], &report["why"]), (Some(1), &"stalled".into(), &"exit 3".into()));
    let (run, trigger) = (report["run_id"].as_str().unwrap(), life.rev("work~2"));
    let trailers = life.trailers("work");
    let expected = [
        ("dwp-hop", "1"),
        ("dwp-origin-state", "build"),
        ("dwp-run-id", run),
        ("dwp-stalled-run", run),
        ("dwp-state", "stalled"),
        ("dwp-trigger", &trigger),
    ];
    assert_eq!(trailers, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    let body = life.body("work");
    assert!(body.contains("exit 3") && body.contains("line 1999") && !body.contains("line 10\n"), "{body}");
    assert!(!body.contains('\x1b') && body.contains("bad ") && body.len() < 8192 + 1024, "{body}");
    let attempt = format!("refs/aynig/attempts/{run}");
    assert_eq!((report["attempt"].as_str(), life.attempts()), (Some(&*attempt), vec![attempt.clone()]));
    assert!(body.contains(&attempt), "{body}");
    assert_eq!(life.show(&attempt, "file"), "one\nhalf");
    assert_eq!(life.show("work", "file"), "one");
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
    life.repo.assert_sound();
}

/// K17, K23
#[test]
fn every_ending_of_a_command_has_its_words() {
    let endings = [
        ("exit 1", &[][..], "exit 1"),
        ("kill -9 $$", &[], "killed by signal 9"),
        ("kill -TERM $$", &[], "killed by signal 15"),
        ("sleep 300", &["--timeout", "1s"], "timed out after 1.0s"),
        // The guardian is the command's parent.
        ("kill -9 $PPID; sleep 300", &[], "its supervisor was killed"),
    ];
    for (script, args, why) in endings {
        let (life, report, code) = once(script, args);
        assert_eq!((code, report["why"].as_str()), (Some(1), Some(why)), "{script}");
        assert_eq!(life.states("work"), ["stalled", "working", "build"], "{script}");
        assert!(life.body("work").contains(why), "{}", life.body("work"));
    }
}

/// K23: what only the start itself can tell ends the run, in words that fit a subject.
#[test]
fn an_interpreter_that_the_worktree_lacks_ends_stalled() {
    let life = Life::new(&[]);
    life.command("build", "");
    life.write(".aynig/command/build", "#!tools/interpreter\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "command"]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    let why = "could not be started: interpreter 'tools/interpreter' of '.aynig/command/build': \
               No such file or directory";
    assert_eq!((done.code, report["why"].as_str()), (Some(1), Some(why)));
    let subject = life.git(&["log", "-1", "--format=%s", "work"]);
    assert_eq!(subject.trim_end(), format!("aynig: build stalled: {why}"));
    assert!(life.body("work").contains(why), "{}", life.body("work"));
}

/// K13: what the system would refuse to start is known before the claim, and is one start away once mended.
#[test]
fn a_command_that_can_not_be_started_costs_no_commit() {
    let life = Life::new(&[("build", "#!/bin/sh\n")]);
    let cases = [
        ("", "it is empty"),
        ("echo hi\n", "its first line does not begin with #!"),
        ("#!/bin/sh\r\necho\r\n", "its first line ends in a carriage return (CRLF)"),
        ("#!/no/such/interpreter\n", "its interpreter '/no/such/interpreter' is not here"),
        ("#!/usr/bin/env no-such-program\n", "env does not find 'no-such-program' on PATH"),
        // These start themselves, for ever.
        ("#!/usr/bin/env\necho\n", "env is given no program to start: several words need -S"),
        ("#!/usr/bin/env -S A=1\necho\n", "env is given no program to start: several words need -S"),
    ];
    for (script, why) in cases {
        life.write(".aynig/command/build", script);
        life.git(&["commit", "-qam", "command"]);
        let trigger = life.event("work", "build", "");
        let (done, report) = life.report(&["work"]);
        assert_eq!((done.code, report["result"].as_str()), (Some(2), Some("unusable")), "{report}");
        assert_eq!(report["why"], why);
        let said = life.tick(&["work"]).expect(2);
        assert!(said.stderr.contains("hint: ") && said.stderr.contains(".aynig/command/build"), "{said:?}");
        let stands = life.run(&["status", "work"]).expect(0).stdout;
        assert!(stands.contains(&format!("unusable command: .aynig/command/build: {why}")), "{stands}");
        assert_eq!(life.rev("work"), trigger);
        life.git(&["branch", "-qD", "work"]);
    }
    // Text without `#!` is what the shell behind a prefix program starts.
    life.write(".aynig/command/build", "echo 'SET_STATE {\"state\":\"done\"}'\n");
    life.git(&["commit", "-qam", "command"]);
    life.event("work", "build", "");
    life.config("aynig.exec", "env");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "done");
}

/// K13: the command is resolved before the claim.
#[test]
fn a_command_that_is_not_executable_costs_no_commit() {
    let life = Life::new(&[]);
    life.write(".aynig/command/build", "#!/bin/sh\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "command"]);
    let trigger = life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(2), Some("unusable")));
    assert_eq!(report["why"], "not executable", "{report}");
    let said = life.tick(&["work"]).expect(2);
    assert_eq!(life.rev("work"), trigger);
    // The hint mends it, whatever is checked out, and what the branch asked for is not lost.
    let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_git-aynig")).parent().unwrap().display().to_string();
    let mut shell = life.repo.command("sh");
    shell.current_dir(life.repo.path()).args(["-ec", &format!("PATH={bin}:$PATH; {hint}")]);
    let mended = shell.env("GIT_EDITOR", "echo mended >").output().unwrap();
    assert!(mended.status.success(), "{hint}: {mended:?}");
    assert_eq!((life.state("work").as_str(), life.git(&["status", "--short"])), ("build", String::new()));
    life.tick(&["work"]);
    assert_eq!(life.states("work")[1], "working");
    // An unknown state costs none either.
    let trigger = life.event("other", "nothing", "");
    life.tick(&["other"]).expect(0);
    assert_eq!(life.rev("other"), trigger);
}

/// K19
#[test]
fn each_invalid_declaration_is_named_and_the_last_valid_one_wins() {
    let invalid = [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{}", "'state' is missing"),
        (r#"{"state":1}"#, "'state' must be a string"),
        (r#"{"state":"../x"}"#, "not usable"),
        (r#"{"state":"working"}"#, "'working' is reserved"),
        (r#"{"state":"a","subject":"x\ny"}"#, "cannot be written"),
        (r#"{"state":"a","keep_trailers":1}"#, "'keep_trailers' must be"),
        (r#"{"state":"a","trailers":3}"#, "'trailers' must be"),
        (r#"{"state":"a","trailers":["none"]}"#, "is not 'key: value'"),
        (r#"{"state":"a","trailers":["Dwp-State: x"]}"#, "'Dwp-State' is set by the runner alone"),
        (r#"{"state":"a","trailers":{"dwp-hop":"1"}}"#, "'dwp-hop' is set by the runner alone"),
        (r#"{"state":"a","trailers":{"k":"x\ny"}}"#, "cannot be written"),
        (r#"{"state":"a"} {"state":"b"}"#, "not valid JSON"),
    ];
    let mut script =
        "cat <<'END'\nSET_STATE {\"state\":\"first\"}\nSET_STATE {\"state\":\"last\",\"unknown\":1}\n"
            .to_owned();
    for (json, _) in invalid {
        script += &format!("SET_STATE {json}\n");
    }
    script += " SET_STATE {\"state\":\"indented\"}\nset_state {\"state\":\"small\"}\nEND\n";
    script += "echo 'SET_STATE {\"state\":\"stderr\"}' >&2";
    let (life, report, code) = once(&script, &[]);
    assert_eq!((code, life.state("work")), (Some(0), "last".into()));
    assert_eq!(life.git(&["log", "-1", "--format=%s", "work"]), "chore: set last");
    for (json, why) in invalid {
        assert!(note_with(&report, why).is_some(), "{json}: {why}: {}", report["notes"]);
    }
    assert_eq!(report["notes"].as_array().unwrap().len(), invalid.len());
}

/// K19
#[test]
fn the_result_file_wins_over_stdout_and_an_invalid_one_ends_stalled() {
    let printed = "echo 'SET_STATE {\"state\":\"printed\"}'\n";
    let result = |what: &str| format!("{printed}{what} >\"$AYNIG_RESULT\"");
    let (life, _, code) = once(&result("printf '\\n{\"state\":\"filed\",\\n\"subject\":\"s\"}\\n'"), &[]);
    assert_eq!((code, life.state("work")), (Some(0), "filed".into()));
    let (life, _, code) = once(&result("printf ' \\n'"), &[]);
    assert_eq!((code, life.state("work")), (Some(0), "printed".into()));
    for (what, why) in [("echo oops", "not valid JSON"), ("echo '{\"state\":\"working\"}'", "is reserved")] {
        let (life, report, code) = once(&result(what), &[]);
        assert_eq!((code, life.state("work")), (Some(1), "stalled".into()));
        let words = report["why"].as_str().unwrap();
        assert!(words.starts_with("the result file is no declaration: ") && words.contains(why), "{words}");
        assert!(life.body("work").contains(why));
    }
}

/// K19: what no plain file neither blocks the runner nor counts as "nothing was said".
#[test]
fn a_result_that_cannot_be_read_ends_stalled() {
    for (what, why) in [
        ("mkfifo \"$AYNIG_RESULT\"", "no plain file"),
        ("ln -s /dev/zero \"$AYNIG_RESULT\"", "a symbolic link"),
        ("mkdir \"$AYNIG_RESULT\"", "no plain file"),
    ] {
        let (life, report, code) = once(&format!("echo 'SET_STATE {{\"state\":\"a\"}}'; {what}"), &[]);
        assert_eq!((code, life.state("work")), (Some(1), "stalled".into()), "{what}: {report}");
        assert!(report["why"].as_str().unwrap().contains(why), "{report}");
    }
}

/// K19
#[test]
fn trailers_travel_and_are_added_in_each_form() {
    let forms = [
        r#"["Key: v1","dwp-extra: v2"]"#,
        r#"[{"key":"Key","value":"v1"},{"key":"dwp-extra","value":"v2"}]"#,
        r#"{"Key":"v1","dwp-extra":"v2"}"#,
    ];
    for form in forms {
        let line = format!(r#"SET_STATE {{"state":"next","keep_trailers":true,"trailers":{form}}}"#);
        let (life, _, code) = once(&format!("echo '{line}'"), &[]);
        assert_eq!(code, Some(0));
        let text = life.git(&["log", "-1", "--format=%(trailers:only,unfold)", "work"]);
        // Only `dwp-*` travels, and what was declared comes after it.
        assert!(text.contains("\ndwp-role: b\ndwp-log-level: info\nKey: v1\ndwp-extra: v2"), "{text}");
        assert!(!text.contains("Issue"), "{text}");
    }
    let (life, ..) = once("echo 'SET_STATE {\"state\":\"next\"}'", &[]);
    assert_eq!(life.trailer("work", "dwp-role"), None);
}

/// K24, K26
#[test]
fn a_head_of_somebody_else_is_never_written_over() {
    for (ending, whole) in
        [("echo 'SET_STATE {\"state\":\"next\"}'", true), ("exit 0", false), ("exit 7", false)]
    {
        let life = Life::new(&[(
            "build",
            &format!("echo w >>file; echo up >\"$T/up\"; read x <\"$T/gate\"; {ending}"),
        )]);
        life.event("work", "build", "");
        let mut gate = life.gate("gate");
        let tick = life.start_tick(&["--json", "work"]);
        life.hear("up");
        let other = life.event_at("work", "somebody\n", None);
        gate.open();
        let done = tick.done().expect(3);
        let report = done.json();
        assert_eq!(report["result"].as_str(), Some("fenced"));
        assert_eq!(life.rev("work"), other);
        let attempt = report["attempt"].as_str().unwrap();
        assert_eq!(life.show(attempt, "file"), "one\nw");
        // What could have been the outcome is kept as one.
        assert_eq!(life.trailer(attempt, "dwp-state").is_some(), whole, "{ending}");
        assert_eq!(life.git(&["for-each-ref", "refs/aynig/run"]), "");
    }
}

/// K24: a deleted branch stays deleted (K11).
#[test]
fn a_branch_that_was_deleted_meanwhile_is_not_made_again() {
    let script = "echo w >>file; git --git-dir=\"$AYNIG_RUN_DIR/../../..\" branch -D work; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(3), Some("fenced")));
    assert_eq!(life.try_rev("refs/heads/work"), None);
    assert_eq!(life.show(report["attempt"].as_str().unwrap(), "file"), "one\nw");
}
