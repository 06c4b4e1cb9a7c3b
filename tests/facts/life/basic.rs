//! One tick from trigger to outcome, and what it leaves alone.

use crate::support::life::{Life, NOT_THEIRS, differences};
use std::fs;
use std::path::PathBuf;

const BUILD: &str = "echo said; echo wrong >&2; echo new >>file; echo add >added\n\
    echo 'SET_STATE {\"state\":\"review\",\"subject\":\"done\",\"body\":\"the body\"}'";

/// K10, K20, K25, K27
#[test]
fn a_tick_puts_exactly_a_lease_and_an_outcome_on_top_of_the_trigger() {
    let life = Life::new(&[("build", BUILD)]);
    let trigger = life.event("work", "build", "dwp-role: builder\nIssue: 12\n");
    life.tick(&["work"]).expect(0);
    let (lease, outcome) = (life.rev("work~1"), life.rev("work"));
    assert_eq!(
        life.git(&["rev-list", "--parents", &format!("{trigger}..work")]),
        format!("{outcome} {lease}\n{lease} {trigger}")
    );
    assert_eq!(life.rev(&format!("{lease}^{{tree}}")), life.rev(&format!("{trigger}^{{tree}}")));
    let said = |commit: &str| {
        let text = life.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit]);
        text.lines()
            .map(|l| l.split_once(": ").unwrap())
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect::<Vec<_>>()
    };
    let (of_lease, of_outcome) = (said(&lease), said(&outcome));
    let value = |key: &str| of_lease.iter().find(|(k, _)| k == key).unwrap().1.clone();
    let (run, runner) = (value("dwp-run-id"), value("dwp-runner-id"));
    assert_eq!(uuid::Uuid::parse_str(&run).unwrap().get_version_num(), 4);
    let pairs = |all: &[(&str, &str)]| {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(
        of_lease,
        pairs(&[
            ("dwp-state", "working"),
            ("dwp-origin-state", "build"),
            ("dwp-run-id", &run),
            ("dwp-runner-id", &runner),
            ("dwp-lease-seconds", "300"),
            ("dwp-trigger", &trigger),
            ("dwp-hop", "1"),
            ("dwp-role", "builder"),
        ])
    );
    assert_eq!(
        of_outcome,
        pairs(&[
            ("dwp-state", "review"),
            ("dwp-run-id", &run),
            ("dwp-origin-state", "build"),
            ("dwp-trigger", &trigger),
            ("dwp-hop", "1"),
        ])
    );
    assert_eq!(life.git(&["log", "-1", "--format=%s|%an|%ce|%cn", "work"]), "done|Ada|ada@example.com|Ada");
    assert!(
        life.body("work").starts_with("done\n\nthe body\n\ndwp-state: review\n"),
        "{}",
        life.body("work")
    );
    assert_eq!((life.show("work", "file"), life.show("work", "added")), ("one\nnew".into(), "add".into()));
    let host = runner.rsplit_once('-').unwrap();
    assert!(!host.0.is_empty() && host.1.len() == 8, "{runner}");
}

/// K45
#[test]
fn what_is_the_users_stays_byte_for_byte() {
    let life = Life::new(&[("build", BUILD)]);
    life.write("file", "edited\n");
    life.write("staged", "s\n");
    life.git(&["add", "staged"]);
    life.write("untracked", "u\n");
    life.git(&["branch", "other"]);
    life.git(&["tag", "v1"]);
    life.git(&["stash"]);
    life.git(&["stash", "apply", "-q", "--index"]);
    life.event("work", "build", "");
    let status = life.git(&["status", "--porcelain=v2", "--branch"]);
    let before = life.snapshot(NOT_THEIRS);
    life.tick(&["work"]).expect(0);
    assert_eq!(differences(&before, &life.snapshot(NOT_THEIRS)), Vec::<PathBuf>::new());
    assert_eq!(life.git(&["status", "--porcelain=v2", "--branch"]), status);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/"]), "");
    life.repo.assert_sound();
    let worktrees = life.git(&["worktree", "list", "--porcelain"]);
    assert!(!worktrees.contains("prunable"), "{worktrees}");
    life.git(&["worktree", "prune", "--expire=now"]);
    assert_eq!(life.git(&["worktree", "list", "--porcelain"]), worktrees);
}

/// K16
#[test]
fn logs_hold_what_was_printed_and_a_second_run_adds_a_numbered_pair() {
    let life = Life::new(&[("build", BUILD)]);
    let trigger = life.event("work", "build", "");
    let log = |suffix: &str| life.read(&format!(".aynig/logs/{trigger}{suffix}.log"));
    life.tick(&["work"]).expect(0);
    let declared = "SET_STATE {\"state\":\"review\",\"subject\":\"done\",\"body\":\"the body\"}\n";
    assert_eq!(log(".stdout"), format!("said\n{declared}"));
    assert_eq!(log(".stderr"), "wrong\n");
    assert_eq!(life.git(&["status", "--porcelain", "--ignored"]), "!! .aynig/logs/");
    life.git(&["update-ref", "refs/heads/work", &trigger]);
    life.tick(&["work"]).expect(0);
    assert_eq!(log(".2.stdout"), log(".stdout"));
    assert_eq!(log(".2.stderr"), "wrong\n");
    assert_eq!(fs::read_dir(life.path(".aynig/logs")).unwrap().count(), 5);
}

/// K15, K16
#[test]
fn a_command_knows_its_trigger_and_its_logs() {
    let script = r#"printf '%s|' "$BODY" "$COMMIT_HASH" "$WORKTREE_PATH" "$PWD" "$DWP_ROLE" "$ISSUE" "$AYNIG_STATE" "$AYNIG_BRANCH" >"$T/env"
        cat "$AYNIG_BODY_FILE" >"$T/body"; cp "$0" "$T/self"; echo x; git aynig set-state --emit done"#;
    let life = Life::new(&[("build", script)]);
    let trigger =
        life.event_at("work", "go\n\nline 1\n\nline 2\n\ndwp-state: build\ndwp-role: b\nIssue: 12\n", None);
    life.tick(&["work"]).expect(0);
    let slot = life.slot(life_slot(&life)).display().to_string();
    assert_eq!(life.said("env"), format!("line 1\n\nline 2|{trigger}|{slot}|{slot}|b|12|build|work|"));
    assert_eq!(life.said("body").trim_end(), "line 1\n\nline 2");
    assert_eq!(life.state("work"), "done");
}

/// The only slot that was made.
fn life_slot(life: &Life) -> usize {
    (0..8).find(|n| life.slot(*n).exists()).unwrap()
}
