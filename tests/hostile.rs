//! Input from whoever can push: messages, names, trees, dates, links. None of it runs, leaves its place,
//! forges a transition, blocks a branch for good, or reaches a terminal raw.

mod support;

use std::path::{Path, PathBuf};
use support::flow::{FILES, Place};
use support::world::{Said, World, now};

/// A trusted repository with the usual command and these others: (state, script).
fn repo(world: &World, commands: &[(&str, &str)]) -> PathBuf {
    let dir = world.init("repo");
    Place::new(world, &dir).seed();
    for (state, script) in commands {
        let path = format!(".aynig/command/{state}");
        world.commit_files(&dir, "main", &[(&path, &format!("#!/bin/sh\n{script}\n"))], state);
    }
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    dir
}

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

fn head(world: &World, dir: &Path, branch: &str) -> String {
    world.git(dir, &["rev-parse", &format!("refs/heads/{branch}")])
}

fn log_of(dir: &Path, trigger: &str, kind: &str) -> String {
    let path = dir.join(format!(".aynig/logs/{trigger}.{kind}.log"));
    String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))).into_owned()
}

/// Nothing of what was said can steer a terminal.
#[track_caller]
fn assert_tame(said: &Said) {
    let steers = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}');
    assert!(!said.out.contains(steers), "{:?}", said.out);
    assert!(!said.err.contains(steers), "{:?}", said.err);
}

/// K4, S3: a state that is no path to a command is reported and moves nothing
#[test]
fn states_that_are_no_names_are_not_actionable() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let long = "a".repeat(300);
    let states: Vec<&[u8]> = vec![
        b"../x", b"..", ".".as_bytes(), b"a//b", b"-x", b"/build", b"build/", b"a/../build", b".hidden", b"a/.git",
        b"build;id", b"$(id)", b"build x", b"b\xffd", b"\x1b[31mred", "b\u{fc}ild".as_bytes(), long.as_bytes(),
        b"refs/../x", b"a\\b", b"%2e%2e/x", b"*",
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
fn a_declaration_cannot_smuggle_trailers() {
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
    let good = format!(r#"{{"state":"good","subject":"dwp-state: evil","body":"{body}","trailers":["note: fine"]}}"#);
    let mut script = format!("cat <<'END'\nSET_STATE {good}\n");
    hostile.iter().for_each(|line| script += &format!("SET_STATE {line}\n"));
    let world = World::any();
    let dir = repo(&world, &[("forge", &(script + "END"))]);
    world.aynig(&dir, &["set-state", "forge", "-b", "work"]).expect(0);
    let trigger = head(&world, &dir, "work");
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert_tame(&said);
    assert_eq!(said.err.matches("ignored '").count() + usize::from(said.err.contains("more invalid")), 17, "{}", said.err);
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
fn names_that_steer_terminals_are_shown_escaped() {
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

fn lease(seconds: &str) -> Vec<u8> {
    let run = "11111111-1111-4111-8111-111111111111";
    format!(
        "aynig: working\n\ndwp-state: working\ndwp-origin-state: build\ndwp-run-id: {run}\n\
         dwp-runner-id: elsewhere-1\ndwp-lease-seconds: {seconds}\n"
    )
    .into_bytes()
}

/// Ages the note of when a head was first seen.
fn age_seen(dir: &Path, branch: &str, seconds: u64) {
    let name: String = format!("refs/heads/{branch}").bytes().map(|b| format!("{b:02x}")).collect();
    let path = dir.join(".git/aynig/seen").join(name);
    let mut seen: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    seen["at"] = (seen["at"].as_u64().unwrap() - seconds).into();
    std::fs::write(&path, seen.to_string()).unwrap();
}

/// A lease that can't be believed: never taken early, never stuck.
fn observed(date: &str, seconds: &str, length: u64) {
    let world = World::any();
    let dir = repo(&world, &[]);
    let id = world.raw_commit_dated(&dir, "held", date, &lease(seconds));
    for _ in 0..2 {
        let said = world.aynig(&dir, &["tick", "held"]).expect(3);
        assert!(said.err.contains("judged by observation"), "{date} {seconds}: {}", said.err);
        assert_eq!(head(&world, &dir, "held"), id, "{date} {seconds}: taken early");
    }
    age_seen(&dir, "held", length - 60.min(length - 1));
    world.aynig(&dir, &["tick"]).expect(0);
    assert_eq!(head(&world, &dir, "held"), id, "{date} {seconds}: taken early");
    age_seen(&dir, "held", 62);
    let said = world.aynig(&dir, &["tick", "held"]).expect(1);
    assert!(said.out.contains("lease of run"), "{}", said.out);
    assert_eq!(world.states(&dir, "held", &id), ["stalled"], "{date} {seconds}");
}

/// K7: dates that nobody can believe
#[test]
fn leases_with_absurd_dates_are_judged_by_observation() {
    for date in ["4070908800", "99999999999999999999", "-5", "soon", "", "9223372036854775807"] {
        observed(date, "120", 120);
    }
}

/// K7: lengths that nobody can believe stand for 300 s
#[test]
fn leases_with_absurd_lengths_are_judged_by_observation() {
    for seconds in ["0", "-1", "1e9", "9999999999999999999", "abc", "", " ", "120 s", "0x10", "99999999"] {
        observed(&now().to_string(), seconds, 300);
    }
}

/// K7, K8: a date of 1970 is believed: that lease is long over
#[test]
fn a_lease_of_1970_is_recovered_at_once() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let id = world.raw_commit_dated(&dir, "held", "1", &lease("120"));
    world.aynig(&dir, &["tick", "held"]).expect(1);
    assert_eq!(world.states(&dir, "held", &id), ["stalled"]);
    let held = world.raw_commit_dated(&dir, "held", &(now() - 60).to_string(), &lease("120"));
    world.aynig(&dir, &["tick", "held"]).expect(3);
    assert_eq!(head(&world, &dir, "held"), held);
}

/// K15: a body of any size reaches the command whole, in a file
#[test]
fn a_body_of_ten_mebibytes() {
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
    let script = format!("echo \"${{#AYNIG_TRAILER_BIG}} ${{SMALL-none}} $AYNIG_TRAILER_K9999\"\n{DONE}");
    let world = World::any();
    let dir = repo(&world, &[("show", &script)]);
    let big = "x".repeat(200 * 1024);
    let message = format!("s\n\ndwp-state: show\nbig: {big}\nsmall: 1\ndwp-note: {big}\n");
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
        let kept = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-kept,valueonly)", &format!("{name}~1")]);
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
    let mut raw = format!("tree {tree}\nparent {parent}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n").into_bytes();
    raw.extend_from_slice(b"encoding ISO-8859-1\n\nsch\xf6n\n\nK\xf6rper\n\ndwp-state: show\ndwp-note: gr\xf6\xdfer\n");
    let trigger = world.raw_object(&dir, "latin", &raw);
    world.aynig(&dir, &["tick", "latin"]).expect(0);
    assert!(log_of(&dir, &trigger, "stdout").starts_with("Körper|größer\n"));
    let note = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-note,valueonly)", "latin~1"]);
    assert_eq!(note.trim(), "größer");
}

/// K16, S15: logs go through no link
#[test]
fn logs_are_not_written_through_links() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let outside = world.root().join("outside");
    let tick = |branch: &str| {
        world.aynig(&dir, &["set-state", "build", "-b", branch, "-m", branch]).expect(0);
        let trigger = head(&world, &dir, branch);
        let said = world.aynig(&dir, &["tick", branch]).expect(0);
        (trigger, said)
    };
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    // The folder itself, to a folder that exists and to one that does not.
    let logs = dir.join(".aynig/logs");
    std::fs::create_dir(&outside).unwrap();
    for target in [outside.clone(), world.root().join("nowhere")] {
        link(&target, &logs);
        let (trigger, said) = tick(if target == outside { "a" } else { "b" });
        assert!(said.err.contains("symbolic link"), "{}", said.err);
        assert!(dir.join(format!(".git/aynig/logs/{trigger}.stdout.log")).exists());
        std::fs::remove_file(&logs).unwrap();
    }
    // What is in it.
    std::fs::create_dir(&logs).unwrap();
    link(&outside.join("ignored"), &logs.join(".gitignore"));
    world.aynig(&dir, &["set-state", "build", "-b", "c", "-m", "c"]).expect(0);
    let trigger = head(&world, &dir, "c");
    link(&outside.join("out"), &logs.join(format!("{trigger}.stdout.log")));
    link(&outside.join("err"), &logs.join(format!("{trigger}.2.stderr.log")));
    let said = world.aynig(&dir, &["tick", "c"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
    link(&outside.join("hook"), &logs.join("hook.log"));
    let _ = world.aynig(&dir, &["tick", "--detach", "c"]);
    // The folder above.
    std::fs::rename(dir.join(".aynig"), world.root().join("kept")).unwrap();
    link(&outside, &dir.join(".aynig"));
    let (trigger, _) = tick("d");
    assert!(dir.join(format!(".git/aynig/logs/{trigger}.stdout.log")).exists());
    let there: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(there.is_empty(), "{there:?}");
}

/// A tree object of these entries, whatever their names.
fn raw_tree(world: &World, dir: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut raw = Vec::new();
    for (mode, name, id) in entries {
        raw.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        raw.extend((0..id.len()).step_by(2).map(|i| u8::from_str_radix(&id[i..i + 2], 16).unwrap()));
    }
    world.git_in(dir, &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &raw)
}

/// S3, CVE-2018-11235 and its kin: nothing is written outside the slot or into a Git directory
#[test]
fn trees_with_paths_that_lead_elsewhere_are_not_checked_out() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let blob = world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"[core]\n\tfsmonitor = touch /tmp/evil\n");
    let inner = raw_tree(&world, &dir, &[("100644", "config", &blob)]);
    let link = world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"../..");
    let aynig = world.git(&dir, &["rev-parse", "main:.aynig"]);
    let parent = head(&world, &dir, "main");
    for (n, entry) in [
        vec![("40000", ".git", &inner)],
        vec![("40000", ".GIT", &inner)],
        vec![("40000", "..", &inner)],
        vec![("40000", ".", &inner)],
        vec![("100644", "a/b", &blob)],
        vec![("100644", "../escaped", &blob)],
        vec![("100644", "/tmp/escaped", &blob)],
        vec![("120000", "link", &link), ("40000", "link", &inner)],
        vec![("100644", "twice", &blob), ("100644", "twice", &blob)],
        vec![("100644", "", &blob)],
    ]
    .iter()
    .enumerate()
    {
        let mut entries = vec![("40000", ".aynig", &*aynig)];
        entries.extend(entry.iter().map(|(mode, name, id)| (*mode, *name, id.as_str())));
        let tree = raw_tree(&world, &dir, &entries);
        let raw = format!(
            "tree {tree}\nparent {parent}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\ngo\n\ndwp-state: build\n"
        );
        let branch = format!("tree-{n}");
        let trigger = world.raw_object(&dir, &branch, raw.as_bytes());
        let said = world.aynig(&dir, &["tick", &branch]);
        assert!([0, 1, 128].contains(&said.code), "{entry:?}: {}: {}{}", said.code, said.out, said.err);
        // Stalled, or refused before anything moved; never between.
        let at = head(&world, &dir, &branch);
        if at != trigger {
            assert_eq!(world.states(&dir, &branch, &trigger)[0], "stalled", "{entry:?}: {}{}", said.out, said.err);
        }
        for escaped in ["escaped", "config"] {
            assert!(support::flow::files_below(&world.home(), &|f| f == escaped.as_bytes()).is_empty(), "{entry:?}");
        }
        assert!(!Path::new("/tmp/escaped").exists());
        let own = std::fs::read_to_string(dir.join(".git/config")).unwrap();
        assert!(!own.contains("evil"), "{entry:?}");
    }
    // And the pool works on.
    world.aynig(&dir, &["set-state", "build", "-b", "fine"]).expect(0);
    let said = world.aynig(&dir, &["tick", "fine"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
}

/// K11: a branch that is another name for one is left to that one
#[test]
fn a_symbolic_branch_is_not_moved() {
    let world = World::any();
    let dir = repo(&world, &[]);
    world.aynig(&dir, &["set-state", "build", "-b", "real"]).expect(0);
    let trigger = head(&world, &dir, "real");
    world.git(&dir, &["symbolic-ref", "refs/heads/alias", "refs/heads/real"]);
    let said = world.aynig(&dir, &["tick", "alias"]);
    assert_ne!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("'real'"), "{}", said.err);
    assert_eq!(head(&world, &dir, "real"), trigger);
    let said = world.aynig(&dir, &["tick"]).expect(0);
    assert!(said.out.contains("real: build -> review"), "{}{}", said.out, said.err);
    assert_eq!(world.states(&dir, "real", &trigger), ["review", "working"], "once");
    assert_eq!(world.git(&dir, &["symbolic-ref", "refs/heads/alias"]), "refs/heads/real");
}

/// K43: a ref that can't be read is an error of its own and blocks no other
#[test]
fn a_broken_branch_blocks_no_other() {
    let world = World::any();
    let dir = repo(&world, &[]);
    world.aynig(&dir, &["set-state", "build", "-b", "fine"]).expect(0);
    std::fs::write(dir.join(".git/refs/heads/broken"), "garbage\n").unwrap();
    std::fs::write(dir.join(".git/refs/heads/absent"), format!("{}\n", "1".repeat(40))).unwrap();
    let blob = world.git(&dir, &["rev-parse", "main:file.txt"]);
    std::fs::write(dir.join(".git/refs/heads/blob"), format!("{blob}\n")).unwrap();
    let said = world.aynig(&dir, &["tick"]);
    assert!(said.out.contains("fine: build -> review"), "{}{}", said.out, said.err);
    assert_eq!(said.code, 128, "{}{}", said.out, said.err);
    for name in ["broken", "absent", "blob"] {
        assert!(said.err.contains(name), "{name}: {}", said.err);
    }
    let _ = FILES;
}
